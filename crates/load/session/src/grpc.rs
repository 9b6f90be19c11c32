//! Builds the request of a gRPC call before the first call: the plan's descriptors, or those that
//! the server's reflection sends, turn the plan's message into bytes.

use crate::exit::Failure;
use crate::message_values::check_values;
use crate::session::Session;
use crate::threads::RequestSource;
use crate::{first_call, path};
use engine::exchange::Message;
use engine::journey::Codecs;
use engine::{build_template, endpoint_key};
use grpc::reflection::{Inquiry, PATHS, QUESTIONS_MAX};
use grpc::{GrpcMethod, Schema, SchemaError};
use plan::check::Body;
use plan::journey::JourneyStep;
use plan::{AnswerField, GrpcPlan, GrpcVariant, Plan};
use protocol::grpc::{Code, MessageCodec, messages, status_of};
use std::collections::BTreeMap;
use std::sync::Arc;
use units::{Nanos, quoted};
use workload::{MadeRequest, RequestMaker};

/// Maximum size of a response of the server's reflection, in bytes.
const REFLECTED_MAX: usize = 64 << 20;

impl Session {
    /// Makes the request's body from the plan's message, if the calls are gRPC; checks the gRPC
    /// steps of journeys.
    ///
    /// # Errors
    /// Fails without descriptors, for an unknown method, or for a message that does not fit.
    pub(crate) fn settle_grpc(&mut self) -> Result<(), Failure> {
        let plan = &self.authorized(&self.fit.plan);
        if !plan.grpc_rows().is_empty() {
            return self.settle_steps(plan);
        }
        if !plan.is_grpc() || plan.request.body.is_some() {
            return Ok(());
        }
        let schema = match &plan.grpc.descriptors {
            Some(set) => Schema::from_set(set).map_err(usage)?,
            // an empty message needs no descriptor
            None if plan.grpc.message.is_none() && plan.grpc.response_messages.is_none() => {
                self.send(plan.grpc.encoded(protocol::grpc::prefixed(&[]), false));
                return Ok(());
            }
            None if plan.grpc.variant != GrpcVariant::Grpc => return Err(no_reflection()),
            None => reflected(plan, self)?,
        };
        let (mut bodies, mut streams, mut answers) = (Vec::new(), false, false);
        let mut field = plan.grpc.correlate.clone();
        for target in &plan.targets {
            let method = schema.method(target.url.path()).map_err(usage)?;
            streams |= method.has_stream();
            answers |= method.is_client_streaming() && method.is_server_streaming();
            check_stream(plan, &method)?;
            if let Some(field) = &mut field {
                field.places = Some(places_of(field, &method)?);
            }
            let body = method.request(plan.grpc.message_of(0).as_deref());
            let body = body.map_err(|why| Failure::usage(format!("--message: {why}")))?;
            let body = repeated(body, plan.grpc.messages)?;
            bodies.push(plan.grpc.encoded(body, method.has_stream()));
        }
        bodies.dedup();
        let [body] = <[Vec<u8>; 1]>::try_from(bodies).map_err(|_| {
            Failure::usage(
                "the methods of these URLs take different messages; give one grpc:// URL",
            )
        })?;
        if plan.grpc.message_differs() {
            self.describe(schema.to_set());
        }
        if streams {
            self.stream_connect(Vec::new());
        }
        if answers && plan.grpc.message_rate.is_some() {
            self.answer_messages(field);
        }
        self.send(body);
        Ok(())
    }

    /// Finds the descriptors of the steps' methods, and checks the messages that are known.
    fn settle_steps(&mut self, plan: &Plan) -> Result<(), Failure> {
        if plan.grpc.descriptors.is_none() {
            if plan.grpc.variant != GrpcVariant::Grpc {
                return Err(no_reflection());
            }
            let mut schemas: BTreeMap<String, Schema> = BTreeMap::new();
            for row in plan.grpc_rows() {
                let Some(target) = plan.targets.get(row as usize) else { continue };
                let service = target.url.path().rsplit_once('/').map_or("", |(service, _)| service);
                if !schemas.contains_key(service) {
                    let schema = reflected_at(plan, self, &target.url)?;
                    schemas.insert(service.to_owned(), schema);
                }
            }
            let schema = Schema::merged(schemas.values()).map_err(usage)?;
            self.describe(schema.to_set());
        }
        let plan = self.fit.plan.clone();
        let feeders = plan.journeys.as_ref().map_or(&[][..], |journeys| &journeys.feeders);
        for (step, method) in step_methods(&plan)? {
            check_message(step, &method)?;
            if let Body::Json(text) = &step.ask.body {
                check_values(text, feeders, &method).map_err(|why| wrong_message(step, &why))?;
            }
        }
        let rows = stream_rows(&plan)?;
        if !rows.is_empty() {
            self.stream_connect(rows);
        }
        Ok(())
    }

    /// Checks a method that a server does not implement against the server's descriptors, so that a
    /// misspelled name is not measured.
    ///
    /// # Errors
    /// Fails if there is no such method; the error lists the most similar names.
    pub(crate) fn check_grpc_method(&mut self) -> Result<(), Failure> {
        let plan = &self.authorized(&self.fit.plan);
        let Some(url) = plan.targets.first().map(|target| &target.url) else { return Ok(()) };
        match reflected_at(plan, self, url) {
            Ok(schema) => schema.method(url.path()).map(drop).map_err(usage),
            // without descriptors the name may still be right
            Err(_) => Ok(()),
        }
    }

    /// Requests the descriptors of the service from the first target's server; returns a serialized
    /// FileDescriptorSet.
    ///
    /// # Errors
    /// Fails if the server cannot be reached or does not describe its methods.
    pub fn describe_grpc(&mut self) -> Result<Vec<u8>, Failure> {
        self.obtain_one_token(&self.fit.plan)?;
        let plan = &self.authorized(&self.fit.plan);
        Ok(reflected(plan, self)?.to_set())
    }
}

fn usage(why: SchemaError) -> Failure {
    Failure::usage(why.0)
}

fn no_reflection() -> Failure {
    Failure::usage("a server's reflection answers gRPC only; give --proto FILE or --protoset FILE")
}

/// Maximum number of bytes of the messages of a stream.
const STREAM_BYTES_MAX: usize = 64 << 20;

/// Refuses options of streams for other methods.
fn check_stream(plan: &Plan, method: &GrpcMethod) -> Result<(), Failure> {
    if plan.grpc.response_messages.is_some() && !method.is_server_streaming() {
        return Err(Failure::usage(format!(
            "--response-messages needs a server-streaming method, but {} returns one message; drop it",
            method.path()
        )));
    }
    let given = [
        ("--messages", plan.grpc.messages.is_some()),
        ("--message-rate", plan.grpc.message_rate.is_some()),
    ];
    match given.iter().find(|(_, given)| *given && !method.is_client_streaming()) {
        Some((option, _)) => Err(Failure::usage(format!(
            "{option} needs a client-streaming method, but {} takes one message; drop it",
            method.path()
        ))),
        None => Ok(()),
    }
}

/// Returns the numbers of the field by which answers are matched.
fn places_of(field: &AnswerField, method: &GrpcMethod) -> Result<(Vec<u32>, Vec<u32>), Failure> {
    let wrong = |why: String| Failure::usage(format!("--correlate field:{}: {why}", field.name));
    if !(method.is_client_streaming() && method.is_server_streaming()) {
        return Err(wrong(format!(
            "it is for bidirectional streams, and {} is not one; drop it",
            method.path()
        )));
    }
    method.field_places(&field.name).map_err(|why| wrong(why.0))
}

/// Repeats the messages of a body in turn, up to this number.
fn repeated(body: Vec<u8>, count: Option<u32>) -> Result<Vec<u8>, Failure> {
    let Some(count) = count else { return Ok(body) };
    let messages = messages(&body).unwrap_or_default();
    let mut out = Vec::new();
    for message in messages.iter().cycle().take(count as usize) {
        out.extend(protocol::grpc::prefixed(message));
        if out.len() > STREAM_BYTES_MAX {
            return Err(Failure::usage(format!(
                "--messages {count}: the messages of a stream are above 64 MiB; give fewer"
            )));
        }
    }
    Ok(out)
}

/// Returns the converters of the messages of a plan's steps.
///
/// # Errors
/// Fails for an unknown method, or a message without inserted values that does not fit.
pub(crate) fn codecs(plan: &Plan) -> Result<Codecs, Failure> {
    let mut codecs = Codecs::new();
    // without messages and descriptors, which may be large
    let (variant, compress) = (plan.grpc.variant, plan.grpc.compress);
    for (step, method) in step_methods(plan)? {
        check_message(step, &method)?;
        let grpc = GrpcPlan { variant, compress, ..GrpcPlan::default() };
        codecs.insert(step.row, Arc::new(StepCodec { method, grpc }));
    }
    Ok(codecs)
}

/// Checks the message of a step, unless values are inserted into it.
fn check_message(step: &JourneyStep, method: &GrpcMethod) -> Result<(), Failure> {
    let Body::Json(text) = &step.ask.body else { return Ok(()) };
    let Some(json) = text.settled() else { return Ok(()) };
    let body = method.request_body(Some(&json));
    body.map(drop).map_err(|why| wrong_message(step, &why))
}

/// Returns the methods of the plan's steps.
///
/// # Errors
/// Fails for an unknown method.
fn step_methods(plan: &Plan) -> Result<Vec<(&JourneyStep, GrpcMethod)>, Failure> {
    let Some(set) = &plan.grpc.descriptors else { return Ok(Vec::new()) };
    let steps = plan.journeys.iter().flat_map(|journeys| journeys.steps());
    let steps: Vec<&JourneyStep> = steps.filter(|step| step.grpc.is_some()).collect();
    if steps.is_empty() {
        return Ok(Vec::new());
    }
    let schema = Schema::from_set(set).map_err(usage)?;
    let mut methods = Vec::new();
    for step in steps {
        let Some(target) = plan.targets.get(step.row as usize) else { continue };
        let method = schema.method(target.url.path()).map_err(|why| wrong_step(step, &why.0))?;
        methods.push((step, method));
    }
    Ok(methods)
}

/// Returns the rows of the steps whose method has a stream.
fn stream_rows(plan: &Plan) -> Result<Vec<u32>, Failure> {
    let methods = step_methods(plan)?.into_iter();
    Ok(methods.filter(|(_, method)| method.has_stream()).map(|(step, _)| step.row).collect())
}

/// Gives steps the content types that Connect uses for methods with a stream, by the descriptors of
/// a plan that was read from its text.
///
/// # Errors
/// Fails for an unknown method.
pub fn declare_streams(plan: &mut Plan) -> Result<(), Failure> {
    if plan.grpc.variant == GrpcVariant::Connect {
        let rows = stream_rows(plan)?;
        plan.stream_connect(&rows);
    }
    Ok(())
}

/// Returns the error for the message of a step, or of `--message` if the step is made from it.
fn wrong_message(step: &JourneyStep, why: &str) -> Failure {
    match step.line {
        0 => Failure::usage(format!("--message: {why}")),
        _ => wrong_step(step, &format!("message: {why}")),
    }
}

fn wrong_step(step: &JourneyStep, why: &str) -> Failure {
    if step.line == 0 {
        return Failure::usage(why.to_owned());
    }
    Failure::usage(format!("line {}: step {}: {why}", step.line, quoted(&step.name)))
}

/// Converts the messages of a step to bodies in the plan's variant and coding, and back.
#[derive(Debug)]
struct StepCodec {
    method: GrpcMethod,
    grpc: GrpcPlan,
}

impl MessageCodec for StepCodec {
    fn request_body(&self, json: Option<&str>) -> Result<Vec<u8>, String> {
        let body = self.method.request_body(json)?;
        Ok(self.grpc.encoded(body, self.method.has_stream()))
    }

    fn response_json(&self, body: &[u8]) -> Result<String, String> {
        let messages = self.grpc.variant.response(body, self.method.has_stream());
        let messages = messages.ok_or("the response's messages are cut off")?;
        MessageCodec::response_json(&self.method, &messages)
    }
}

/// Returns the makers of messages that contain the number of their call.
///
/// # Errors
/// Fails like [`codecs`].
pub(crate) fn sources(plan: &Plan, workers: usize) -> Result<Vec<RequestSource>, Failure> {
    let (Some(set), Some(target)) = (&plan.grpc.descriptors, plan.targets.first()) else {
        return Ok(Vec::new());
    };
    let schema = Schema::from_set(set).map_err(usage)?;
    let method = schema.method(target.url.path()).map_err(usage)?;
    let maker = MessageMaker { method: Arc::new(method), plan: Arc::new(plan.grpc.clone()) };
    Ok((0..workers).map(|_| RequestSource::Maker(Box::new(maker.clone()))).collect())
}

/// Encodes the message of each call.
#[derive(Clone, Debug)]
struct MessageMaker {
    method: Arc<GrpcMethod>,
    plan: Arc<GrpcPlan>,
}

impl RequestMaker for MessageMaker {
    fn make(&mut self, index: u64, _now: Nanos) -> Option<MadeRequest> {
        let body = self.method.request(self.plan.message_of(index).as_deref()).ok()?;
        let body = repeated(body, self.plan.messages).ok()?;
        let body = self.plan.encoded(body, self.method.has_stream());
        Some(MadeRequest { headers: Vec::new(), body })
    }
}

/// Returns the descriptors of the first target's service, from its server.
fn reflected(plan: &Plan, session: &mut Session) -> Result<Schema, Failure> {
    let url = plan.targets.first().map(|target| target.url.clone());
    let url = url.ok_or_else(|| Failure::usage("the plan has no URL"))?;
    reflected_at(plan, session, &url)
}

/// Returns the descriptors of the service of a method, from its server.
fn reflected_at(plan: &Plan, session: &mut Session, url: &url::Url) -> Result<Schema, Failure> {
    let mut unserved = String::new();
    for path in PATHS {
        let mut inquiry = Inquiry::for_service(url.path()).map_err(usage)?;
        let mut at = url.clone();
        at.set_path(path);
        let done = (0..QUESTIONS_MAX).try_for_each(|_| {
            let Some(question) = inquiry.question() else { return Ok(()) };
            let body = ask(plan, session, &at, &question)?;
            inquiry.process(&body).map_err(|why| ReflectionRefusal::Final(why.0))
        });
        match done {
            Ok(()) => return inquiry.schema().map_err(usage),
            Err(ReflectionRefusal::Unimplemented(why)) => unserved = why,
            Err(ReflectionRefusal::Final(why)) => return Err(Failure::usage(why)),
            Err(ReflectionRefusal::Failed(why)) => return Err(why),
        }
    }
    Err(Failure::usage(format!(
        "{url}: the server does not describe its methods ({unserved}); give --proto FILE or \
         --protoset FILE"
    )))
}

/// Reason why a question has no answer.
enum ReflectionRefusal {
    /// The server does not have this version of the service.
    Unimplemented(String),
    Final(String),
    /// This machine cannot query the server.
    Failed(Failure),
}

fn ask(
    plan: &Plan,
    session: &mut Session,
    url: &url::Url,
    question: &[u8],
) -> Result<Vec<u8>, ReflectionRefusal> {
    let failed = |why: String| ReflectionRefusal::Final(format!("{url}: {why}"));
    let key = endpoint_key(url);
    let known = session.servers.endpoints.iter_mut().find(|endpoint| endpoint.key == key);
    let Some(endpoint) = known else {
        return Err(failed("it has no address".to_owned()));
    };
    let absolute = endpoint.absolute;
    // in a plan with journeys these are fields of steps
    let fields = if plan.is_grpc() { &[][..] } else { GrpcVariant::Grpc.fields() };
    let own: Vec<(String, String)> =
        fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let template = build_template(plan, url, "POST", &own, Some(question), 0, absolute)
        .map_err(|why| failed(why.to_string()))?;
    let message = Message::new(template, None);
    let (tls, network) = (session.servers.tls.as_ref(), &session.fit.network);
    let (heard, _) = path::run_on_path(network.route().map(|it| &**it), || {
        first_call::exchange(plan, endpoint, tls, network.own(), message, REFLECTED_MAX)
    })
    .map_err(ReflectionRefusal::Failed)?;
    let reply = heard.result.map_err(|trouble| failed(trouble.with_fix()))?;
    let status = status_of(reply.facts.status, &reply.head, &[]);
    // a response with content has its status in the trailers, which are not kept
    match (reply.body.is_empty(), status.code) {
        (true, Code::Unimplemented) => Err(ReflectionRefusal::Unimplemented(format!(
            "reflection: {} {}",
            status.code.name(),
            status.message
        ))),
        (true, code) => Err(failed(format!("reflection: {}: {}", code.name(), status.message))),
        (false, _) if reply.facts.status == 200 => Ok(reply.body),
        _ => Err(failed(format!("reflection: HTTP status {}", reply.facts.status))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::grpc::BodyForm;

    const PROTO: &str = "syntax = 'proto3'; package t; message M { string v = 1; }\n\
        service S { rpc One(M) returns (M); rpc Many(M) returns (stream M); }";

    /// An agent of a fleet reads the plan from its text.
    #[test]
    fn descriptors_of_a_plan_s_text_give_the_streams_of_connect() {
        let text = "version = 1\nurl = 'grpc://127.0.0.1:1'\n[grpc]\nprotocol = 'connect'\n\
            [[journey]]\nname = 'j'\n[[journey.step]]\nname = 'one'\ngrpc = 't.S/One'\n\
            [[journey.step]]\nname = 'many'\ngrpc = 't.S/Many'\n";
        let mut typed = plan::from_toml(text, &plan::NoFiles).expect("a plan");
        let source = |name: &str| (name == "t.proto").then(|| PROTO.to_owned());
        let schema = Schema::compile("t.proto", &source).expect("a schema");
        typed.grpc.descriptors = Some(schema.to_set());
        let mut settled = typed.clone();
        settled.stream_connect(&[1]);
        let sent = plan::to_toml(&settled, plan::Secrets::Shown);
        let mut read = plan::from_toml(&sent, &plan::NoFiles).expect("a plan");
        assert_ne!(read.grpc_forms(), settled.grpc_forms());
        declare_streams(&mut read).expect("known methods");
        assert_eq!(plan::identity(&read), plan::identity(&typed));
        let forms = read.grpc_forms();
        assert_eq!(forms, settled.grpc_forms());
        let of = |kind| BodyForm::new(GrpcVariant::Connect, kind);
        assert_eq!(forms, [of("application/proto"), of("application/connect+proto")]);
        // a name that the descriptors lack is refused with its step
        let wrong = sent.replace("t.S/Many", "t.S/Mani");
        let mut wrong = plan::from_toml(&wrong, &plan::NoFiles).expect("a plan");
        let why = declare_streams(&mut wrong).expect_err("unknown").text;
        assert!(why.contains("step \"many\"") && why.contains("Many"), "{why}");
    }
}
