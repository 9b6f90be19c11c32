//! Builds the request of a gRPC call before the first call: the plan's descriptors, or those that
//! the server's reflection sends, turn the plan's message into bytes.

use crate::exit::Failure;
use crate::session::Session;
use crate::{first_call, path};
use engine::build_template;
use engine::exchange::Message;
use grpc::reflection::{Inquiry, PATHS};
use grpc::{Schema, SchemaError};
use plan::Plan;
use protocol::grpc::{Code, status_of};

/// Bytes of one response of the server's reflection.
const REFLECTED_MAX: usize = 64 << 20;
/// Maximum number of requests per reflection.
const QUESTIONS_MAX: usize = 100;

impl Session {
    /// Makes the request's body from the plan's message, if the calls are gRPC.
    ///
    /// # Errors
    /// No descriptors, an unknown method, a message that does not fit.
    pub(crate) fn settle_grpc(&mut self) -> Result<(), Failure> {
        let plan = &*self.fit.plan.clone();
        if !plan.is_grpc() || plan.request.body.is_some() {
            return Ok(());
        }
        let schema = match &plan.grpc.descriptors {
            Some(set) => Schema::from_set(set).map_err(usage)?,
            // an empty message needs no descriptor
            None if plan.grpc.message.is_none() => {
                self.send(protocol::grpc::prefixed(&[]));
                return Ok(());
            }
            None => reflected(plan, self)?,
        };
        let mut bodies = Vec::new();
        for target in &plan.targets {
            let method = schema.method(target.url.path()).map_err(usage)?;
            let body = method.request(plan.grpc.message.as_deref());
            bodies.push(body.map_err(|why| Failure::usage(format!("--message: {why}")))?);
        }
        bodies.dedup();
        let [body] = <[Vec<u8>; 1]>::try_from(bodies).map_err(|_| {
            Failure::usage(
                "the methods of these URLs take different messages; give one grpc:// URL",
            )
        })?;
        self.send(body);
        Ok(())
    }

    /// Asks the first target's server for the descriptors of its service; returns a serialized
    /// FileDescriptorSet.
    ///
    /// # Errors
    /// A server that cannot be reached or does not describe its methods.
    pub fn describe_grpc(&mut self) -> Result<Vec<u8>, Failure> {
        let plan = &*self.fit.plan.clone();
        Ok(reflected(plan, self)?.to_set())
    }
}

fn usage(why: SchemaError) -> Failure {
    Failure::usage(why.0)
}

/// The descriptors of the first target's service, from its server.
fn reflected(plan: &Plan, session: &mut Session) -> Result<Schema, Failure> {
    let url = plan.targets.first().map(|target| target.url.clone());
    let url = url.ok_or_else(|| Failure::usage("the plan has no URL"))?;
    let mut unserved = String::new();
    for path in PATHS {
        let mut inquiry = Inquiry::about(url.path()).map_err(usage)?;
        let mut at = url.clone();
        at.set_path(path);
        let done = (0..QUESTIONS_MAX).try_for_each(|_| {
            let Some(question) = inquiry.question() else { return Ok(()) };
            let body = ask(plan, session, &at, &question)?;
            inquiry.hear(&body).map_err(|why| ReflectionRefusal::Final(why.0))
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

/// Why a question has no answer.
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
    let Some(endpoint) = session.servers.endpoints.first_mut() else {
        return Err(failed("it has no address".to_owned()));
    };
    let absolute = endpoint.absolute;
    let template = build_template(plan, url, "POST", &[], Some(question), 0, absolute)
        .map_err(|why| failed(why.to_string()))?;
    let message = Message::of(template, None);
    let (tls, network) = (session.servers.tls.as_ref(), &session.fit.network);
    let (heard, _) = path::through(network.route().map(|it| &**it), || {
        first_call::exchange(plan, endpoint, tls, network.own(), message, REFLECTED_MAX)
    })
    .map_err(ReflectionRefusal::Failed)?;
    let reply = heard.result.map_err(|trouble| failed(trouble.with_way_out()))?;
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
