//! Results of negotiating with a plan's servers. A plan stays as typed and validated: adding the
//! results makes another plan, which is run.

use plan::{AnswerField, HttpVersion, Plan};

/// Values negotiated with the servers, for every load of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settled {
    /// The protocol, if the plan leaves it to the servers.
    pub(crate) negotiated: Option<Negotiated>,
    /// Maximum streams of a connection, if fewer than the plan requests.
    pub(crate) streams: Option<u32>,
    /// The body of gRPC requests, made from the plan's message.
    pub(crate) body: Option<Vec<u8>>,
    /// The method of gRPC calls has a stream.
    pub(crate) has_stream: bool,
    /// Rows of the steps whose method has a stream.
    pub(crate) stream_rows: Vec<u32>,
    /// True if messages of gRPC responses answer those of requests.
    pub(crate) answers: bool,
    /// The field that messages and answers have in common, with its numbers.
    pub(crate) correlate: Option<AnswerField>,
    /// Descriptors of gRPC methods that the server sent.
    pub(crate) descriptors: Option<Vec<u8>>,
}

/// Protocol, as if the plan had named it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Negotiated {
    pub(crate) version: HttpVersion,
    /// ALPN protocols offered if the version leaves the choice open.
    pub(crate) alpn: Vec<String>,
}

impl Settled {
    /// Returns the plan with the negotiated values.
    pub(crate) fn applied(&self, plan: &Plan) -> Plan {
        let mut plan = plan.clone();
        if let Some(Negotiated { version, alpn }) = &self.negotiated {
            plan.request.version = *version;
            plan.tls.alpn.clone_from(alpn);
        }
        if let Some(body) = &self.body {
            plan.request.body = Some(body.clone());
        }
        plan.grpc.answers |= self.answers;
        if self.correlate.is_some() {
            plan.grpc.correlate.clone_from(&self.correlate);
        }
        if self.has_stream {
            plan.stream_connect(&self.stream_rows);
        }
        if let Some(descriptors) = &self.descriptors {
            plan.grpc.descriptors = Some(descriptors.clone());
        }
        if let Some(streams) = self.streams {
            plan.connection.pipeline = streams;
        }
        plan
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_negotiated_values_are_added_to_a_plan() {
        let mut typed = Plan::for_url("https://127.0.0.1:1/".parse().expect("a URL"));
        typed.request.version = HttpVersion::Auto;
        typed.connection.pipeline = 100;
        assert_eq!(Settled::default().applied(&typed), typed);
        let negotiated =
            Negotiated { version: HttpVersion::Http2, alpn: vec!["http/1.1".to_owned()] };
        let settled =
            Settled { negotiated: Some(negotiated), streams: Some(8), ..Settled::default() };
        let applied = settled.applied(&typed);
        let (request, connection) = (&applied.request, &applied.connection);
        assert_eq!((request.version, connection.pipeline), (HttpVersion::Http2, 8));
        assert_eq!(applied.tls.alpn, ["http/1.1"]);
        let mut back = applied.clone();
        back.request.version = typed.request.version;
        back.tls.alpn.clone_from(&typed.tls.alpn);
        back.connection.pipeline = typed.connection.pipeline;
        assert_eq!(back, typed);
        // applying them again changes nothing
        assert_eq!(settled.applied(&applied), applied);
    }
}
