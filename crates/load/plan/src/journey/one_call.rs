//! Journeys of one gRPC call: a plan without journeys whose message has inserted values.

use super::{read, targets};
use crate::grpc::GrpcVariant;
use crate::{FileSource, ID_MARK, Plan};
use toml::{Table, Value};
use units::{ParseError, quoted};

/// Start of an inserted value.
const MARK: &[u8] = b"{{";

impl Plan {
    /// Returns whether values are inserted into the message of each gRPC call.
    pub fn has_message_template(&self) -> bool {
        let message = self.grpc.message.as_deref().unwrap_or_default();
        self.is_grpc() && message.windows(MARK.len()).any(|part| part == MARK)
    }

    /// Turns gRPC calls with a message template into a journey of one step, so that the message is
    /// made like that of any step. `tables`: the variables and feeders, as in a plan file.
    ///
    /// # Errors
    /// Fails for several URLs, an undefined name, or a feeder that cannot be read.
    pub fn insert_into_message(
        &mut self,
        tables: Table,
        files: &dyn FileSource,
    ) -> Result<(), ParseError> {
        let [target] = &self.targets[..] else {
            let why = "a message with {{…}} takes one URL; drop the others";
            return Err(ParseError(why.to_owned()));
        };
        let message = self.grpc.message.as_deref().unwrap_or_default();
        let Ok(message) = std::str::from_utf8(message) else {
            return Err(ParseError("a message with {{…}} is UTF-8 text".to_owned()));
        };
        let message = message.replace(ID_MARK, "{{iteration.number}}");
        let base = target.url.clone();
        let read = read(&journey_text(base.path(), message, tables), &base, files);
        let read = read.map_err(without_line)?;
        self.targets = targets(&read).into();
        let journeys = self.journeys.insert(read);
        journeys.change_steps(&mut |step| step.line = 0);
        self.grpc.message = None;
        self.measure.stream = None;
        // the step has its own
        "GET".clone_into(&mut self.request.method);
        self.move_grpc_fields();
        Ok(())
    }

    /// Moves the fields of gRPC from all requests to the steps.
    fn move_grpc_fields(&mut self) {
        let variant = std::mem::replace(&mut self.grpc.variant, GrpcVariant::Grpc);
        for (name, value) in variant.fields() {
            self.request.headers.retain(|(known, text)| known != name || text != value);
        }
        self.carry_grpc(variant);
        if self.grpc.compress {
            self.remove_compressed_fields();
            self.compress_grpc();
        }
    }
}

/// Parses `NAME=FILE,…`: feeders of a message, as the tables of a plan file.
///
/// # Errors
/// Fails for a part that names no feeder or no file.
pub fn feeder_tables(text: &str) -> Result<Table, ParseError> {
    let feeder = |part: &str| {
        let named =
            part.split_once('=').filter(|(name, file)| !name.is_empty() && !file.is_empty());
        let (name, file) = named.ok_or_else(|| {
            ParseError(format!("{} is no feeder; write NAME=FILE.csv", quoted(part)))
        })?;
        let pairs = [("name", name), ("file", file)];
        let pairs = pairs.map(|(key, text)| (key.to_owned(), Value::String(text.to_owned())));
        Ok(Value::Table(pairs.into_iter().collect()))
    };
    let feeders = text.split(',').map(feeder).collect::<Result<Vec<Value>, ParseError>>()?;
    Ok([("feeder".to_owned(), Value::Array(feeders))].into_iter().collect())
}

fn journey_text(path: &str, message: String, mut tables: Table) -> String {
    let path = path.trim_start_matches('/');
    let name = path.rsplit('/').next().unwrap_or(path);
    let text = |value: &str| Value::String(value.to_owned());
    let mut step = Table::new();
    step.insert("name".to_owned(), text(name));
    step.insert("grpc".to_owned(), text(path));
    step.insert("message".to_owned(), Value::String(message));
    let mut journey = Table::new();
    journey.insert("name".to_owned(), text("calls"));
    journey.insert("step".to_owned(), Value::Array(vec![Value::Table(step)]));
    tables.insert("journey".to_owned(), Value::Array(vec![Value::Table(journey)]));
    tables.to_string()
}

/// Removes the line number, which refers to a generated text that the user never sees.
fn without_line(error: ParseError) -> ParseError {
    let rest = error.0.strip_prefix("line ").and_then(|rest| rest.split_once(": "));
    match rest {
        Some((number, rest)) if number.bytes().all(|byte| byte.is_ascii_digit()) => {
            ParseError(rest.to_owned())
        }
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HttpVersion, NoFiles, Secrets, from_toml, to_toml};

    const HEAD: &str = "version = 1\nurl = 'grpc://h:1/p.S/M'\n";

    fn plan(rest: &str) -> Result<Plan, String> {
        from_toml(&format!("{HEAD}{rest}"), &NoFiles).map_err(|why| why.0)
    }

    #[test]
    fn a_message_with_values_is_a_journey_of_one_call() {
        let feeder = "[[feeder]]\nname = 'f'\ngenerate = { v = ['x'] }\n";
        let text = format!(
            "{feeder}[grpc]\ncompress = 'gzip'\nmessage = '{{\"a\": \"{{{{f.v}}}}\", \"b\": {{id}}}}'\n"
        );
        let plan = plan(&text).unwrap();
        let steps = plan.journeys.as_ref().unwrap().steps();
        let step = steps[0];
        assert_eq!((steps.len(), &*step.name, &*step.ask.url.shown()), (1, "M", "/p.S/M"));
        assert_eq!(step.line, 0, "it is in no file");
        let fields: Vec<&str> = step.ask.headers.iter().map(|(name, _)| &**name).collect();
        let expected = ["content-type", "te", "grpc-encoding", "grpc-accept-encoding"];
        assert!(expected.iter().all(|name| fields.contains(name)), "{fields:?}");
        assert_eq!((&plan.request.headers[..], plan.is_grpc()), (&[][..], false));
        assert_eq!((plan.grpc_rows(), plan.request.version), (vec![0], HttpVersion::Http2));
        crate::validate(&plan).unwrap();
        let shown = to_toml(&plan, Secrets::Shown);
        assert!(shown.contains("{{f.v}}") && shown.contains("{{iteration.number}}"), "{shown}");
        assert_eq!(to_toml(&from_toml(&shown, &NoFiles).unwrap(), Secrets::Shown), shown);
    }

    #[test]
    fn faults_of_a_message_with_values_are_reported() {
        for (rest, part) in [
            ("[grpc]\nmessage = '{{x}}'\n", "{{x}} is not defined"),
            ("[vars]\na = '1'\n", "no {{…}} in its message"),
            ("[vars]\na = '1'\n[grpc]\nmessage = '{}'\n", "no {{…}} in its message"),
        ] {
            let why = plan(rest).unwrap_err();
            assert!(why.contains(part) && !why.starts_with("line"), "{rest}: {why}");
        }
        // braces of JSON alone are no mark
        assert!(plan("[grpc]\nmessage = '{\"a\": {\"b\": {}}}'\n").unwrap().is_grpc());
    }
}
