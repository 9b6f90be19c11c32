//! Serialization of parameter values: OpenAPI 3.0.3, "Style Values", and RFC 6570.

use crate::recorded::NOT_UNRESERVED;
use percent_encoding::{AsciiSet, utf8_percent_encode};
use serde_json::{Map, Value};

/// Location of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParameterPlace {
    Path,
    Query,
    Header,
    Cookie,
    /// A form in a body (`application/x-www-form-urlencoded`).
    Form,
}

/// Style in which a parameter's value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    Matrix,
    Label,
    Form,
    Simple,
    SpaceDelimited,
    PipeDelimited,
    DeepObject,
}

/// A parameter without its value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written {
    place: ParameterPlace,
    style: Style,
    explode: bool,
    /// Reserved characters are not escaped (`allowReserved`).
    reserved: bool,
}

impl Written {
    /// Reads `style`, `explode` and `allowReserved` of a parameter, or of an encoding of a form.
    ///
    /// # Errors
    /// Fails for a style that the place does not support.
    pub(super) fn new(
        place: ParameterPlace,
        holder: Option<&Map<String, Value>>,
    ) -> Result<Written, String> {
        let get = |name: &str| holder.and_then(|holder| holder.get(name));
        let flag = |name: &str| get(name).and_then(Value::as_bool);
        let default = match place {
            ParameterPlace::Path | ParameterPlace::Header => "simple",
            ParameterPlace::Query | ParameterPlace::Cookie | ParameterPlace::Form => "form",
        };
        let name = get("style").and_then(Value::as_str).unwrap_or(default);
        let query = matches!(place, ParameterPlace::Query | ParameterPlace::Form);
        let style = match name {
            "matrix" if place == ParameterPlace::Path => Style::Matrix,
            "label" if place == ParameterPlace::Path => Style::Label,
            "simple" if matches!(place, ParameterPlace::Path | ParameterPlace::Header) => {
                Style::Simple
            }
            "form" if query || place == ParameterPlace::Cookie => Style::Form,
            "spaceDelimited" if query => Style::SpaceDelimited,
            "pipeDelimited" if query => Style::PipeDelimited,
            "deepObject" if query => Style::DeepObject,
            other => return Err(format!("the style {other} is not supported for this parameter")),
        };
        let explode = flag("explode").unwrap_or(style == Style::Form);
        let reserved = query && flag("allowReserved").unwrap_or(false);
        Ok(Written { place, style, explode, reserved })
    }

    fn encoded(&self, text: &str) -> String {
        match self.place {
            ParameterPlace::Header => text.to_owned(),
            ParameterPlace::Form => url::form_urlencoded::byte_serialize(text.as_bytes()).collect(),
            _ if self.reserved => utf8_percent_encode(text, NOT_RESERVED).to_string(),
            _ => utf8_percent_encode(text, NOT_UNRESERVED).to_string(),
        }
    }

    /// Returns the separator between the values of a list.
    fn between(&self) -> &'static str {
        match (self.style, self.explode) {
            (Style::Matrix, true) => ";",
            (Style::Label, _) => ".",
            (Style::Form | Style::SpaceDelimited | Style::PipeDelimited, true) => "&",
            (Style::SpaceDelimited, false) if self.place == ParameterPlace::Form => "+",
            (Style::SpaceDelimited, false) => "%20",
            (Style::PipeDelimited, false) => "%7C",
            (Style::DeepObject, _) => "&",
            (Style::Matrix | Style::Form, false) | (Style::Simple, _) => ",",
        }
    }

    /// Returns whether each value of a list has the parameter's name.
    fn repeats_name(&self) -> bool {
        self.explode && !matches!(self.style, Style::Label | Style::Simple)
    }

    /// Returns the parameter as inserted: with its name, except in `simple` and `label`.
    ///
    /// # Errors
    /// Fails for a value that the style cannot express.
    pub(super) fn write(&self, name: &str, value: &Value) -> Result<String, String> {
        let encoded_name = self.encoded(name);
        let text = match value {
            Value::Array(values) => self.list(&encoded_name, values)?,
            Value::Object(fields) => self.object(name, fields)?,
            value => {
                let value = self.encoded(&scalar(value)?);
                self.named(&encoded_name, &value)
            }
        };
        Ok(match self.style {
            Style::Matrix => format!(";{text}"),
            Style::Label => format!(".{text}"),
            _ => text,
        })
    }

    fn named(&self, name: &str, value: &str) -> String {
        match self.style {
            Style::Simple | Style::Label => value.to_owned(),
            Style::Matrix if value.is_empty() => name.to_owned(),
            _ => format!("{name}={value}"),
        }
    }

    fn list(&self, name: &str, values: &[Value]) -> Result<String, String> {
        if self.style == Style::DeepObject {
            return Err("the style deepObject writes only objects".to_owned());
        }
        let each = values.iter().filter(|value| !value.is_null()).map(|value| {
            let value = self.encoded(&scalar(value)?);
            Ok(if self.repeats_name() { self.named(name, &value) } else { value })
        });
        let joined = each.collect::<Result<Vec<String>, String>>()?.join(self.between());
        Ok(if self.repeats_name() { joined } else { self.named(name, &joined) })
    }

    fn object(&self, name: &str, fields: &Map<String, Value>) -> Result<String, String> {
        if self.style == Style::DeepObject {
            let mut pairs = Vec::new();
            for (key, value) in fields {
                self.deep(&format!("{name}[{key}]"), value, &mut pairs)?;
            }
            return Ok(pairs.join("&"));
        }
        let sign = if self.explode { "=" } else { self.between() };
        let fields = fields.iter().filter(|(_, value)| !value.is_null());
        let each = fields.map(|(key, value)| {
            Ok(format!("{}{sign}{}", self.encoded(key), self.encoded(&scalar(value)?)))
        });
        let joined = each.collect::<Result<Vec<String>, String>>()?.join(self.between());
        Ok(if self.explode { joined } else { self.named(&self.encoded(name), &joined) })
    }

    fn deep(&self, name: &str, value: &Value, pairs: &mut Vec<String>) -> Result<(), String> {
        match value {
            Value::Null => {}
            Value::Object(fields) => {
                for (key, value) in fields {
                    self.deep(&format!("{name}[{key}]"), value, pairs)?;
                }
            }
            Value::Array(values) => {
                for value in values {
                    self.deep(name, value, pairs)?;
                }
            }
            value => {
                pairs.push(format!("{}={}", self.encoded(name), self.encoded(&scalar(value)?)));
            }
        }
        Ok(())
    }
}

/// Returns a value that is neither a list nor an object, as text.
fn scalar(value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Array(_) | Value::Object(_) => {
            Err("its style cannot write lists or objects within a value".to_owned())
        }
        other => Ok(other.to_string()),
    }
}

/// Characters that are percent-encoded where reserved ones are kept (RFC 6570 section 3.2.1).
const NOT_RESERVED: &AsciiSet = &NOT_UNRESERVED
    .remove(b':')
    .remove(b'/')
    .remove(b'?')
    .remove(b'[')
    .remove(b']')
    .remove(b'@')
    .remove(b'!')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b'=');

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn written(place: ParameterPlace, holder: &Value, value: &Value) -> String {
        let written = Written::new(place, holder.as_object());
        written.and_then(|it| it.write("color", value)).unwrap_or_else(|why| format!("! {why}"))
    }

    /// The table of OpenAPI 3.0.3, section "Style Values": place, style, `explode`, and the output
    /// for an empty text, a text, a list and an object.
    const TABLE: &str = "
        path matrix false ;color ;color=blue ;color=blue,black,brown ;color=B,150,G,200,R,100
        path matrix true ;color ;color=blue ;color=blue;color=black;color=brown ;B=150;G=200;R=100
        path label false . .blue .blue.black.brown .B.150.G.200.R.100
        path label true . .blue .blue.black.brown .B=150.G=200.R=100
        query form false color= color=blue color=blue,black,brown color=B,150,G,200,R,100
        query form true color= color=blue color=blue&color=black&color=brown B=150&G=200&R=100
        path simple false - blue blue,black,brown B,150,G,200,R,100
        header simple true - blue blue,black,brown B=150,G=200,R=100
        query spaceDelimited false color= color=blue color=blue%20black%20brown color=B%20150%20G%20200%20R%20100
        query pipeDelimited false color= color=blue color=blue%7Cblack%7Cbrown color=B%7C150%7CG%7C200%7CR%7C100
        query deepObject true color= color=blue ! color%5BB%5D=150&color%5BG%5D=200&color%5BR%5D=100
    ";

    #[test]
    fn values_follow_the_table_of_openapi() {
        let object = json!({"R": 100, "G": 200, "B": 150});
        let values = [json!(""), json!("blue"), json!(["blue", "black", "brown"]), object];
        for line in TABLE.trim().lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let place = match words[0] {
                "path" => ParameterPlace::Path,
                "query" => ParameterPlace::Query,
                _ => ParameterPlace::Header,
            };
            let holder = json!({"style": words[1], "explode": words[2] == "true"});
            for (value, expected) in values.iter().zip(&words[3..]) {
                let serialized = written(place, &holder, value);
                let expected = if *expected == "-" { "" } else { expected };
                let fits =
                    serialized == expected || expected == "!" && serialized.starts_with("! ");
                assert!(fits, "{line}: {serialized}");
            }
        }
    }

    #[test]
    fn defaults_follow_from_the_place() {
        let array = json!(["a b", "c,d", null, 3]);
        let none = json!({});
        assert_eq!(
            written(ParameterPlace::Query, &none, &array),
            "color=a%20b&color=c%2Cd&color=3"
        );
        assert_eq!(written(ParameterPlace::Form, &none, &array), "color=a+b&color=c%2Cd&color=3");
        assert_eq!(written(ParameterPlace::Path, &none, &array), "a%20b,c%2Cd,3");
        assert_eq!(written(ParameterPlace::Header, &none, &array), "a b,c,d,3");
        let reserved = json!({"allowReserved": true});
        assert_eq!(written(ParameterPlace::Query, &reserved, &json!("a/b?c d")), "color=a/b?c%20d");
        let deep = json!({"style": "deepObject"});
        let nested = json!({"a": {"b": [1, 2]}});
        let pairs = "color%5Ba%5D%5Bb%5D=1&color%5Ba%5D%5Bb%5D=2";
        assert_eq!(written(ParameterPlace::Query, &deep, &nested), pairs);
        assert!(
            written(ParameterPlace::Query, &none, &nested)
                .contains("cannot write lists or objects")
        );
        let matrix = json!({"style": "matrix"});
        assert!(written(ParameterPlace::Query, &matrix, &array).contains("the style matrix"));
    }
}
