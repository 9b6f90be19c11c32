//! Steps on the user's WebSocket as calls.

use super::Travel;
use super::carried::CarriedView;
use super::request;
use crate::check::judge::content_differs;
use crate::check::prepare::content;
use plan::check::{Body, ValueSource};
use plan::journey::{JourneyStep, MessageRule, SocketStep};
use regex::bytes::Regex;
use std::collections::BTreeMap;
use std::sync::Arc;
use url::Url;
use workload::{AwaitedMessages, MessageFilter, SocketAction, SocketCall, Template};

/// Message for a step that needs a WebSocket when none is open.
pub(super) const NOT_OPEN: &str = "no WebSocket is open: a step with connect must come first";

/// Returns the call of a step. `open`: URL of the user's WebSocket; a step that opens a WebSocket
/// replaces it.
///
/// # Errors
/// Fails if a value is missing, no WebSocket is open, or the request is invalid.
pub(super) fn call(
    travel: &Arc<Travel>,
    step: &JourneyStep,
    socket: &SocketStep,
    view: &CarriedView<'_>,
    open: Option<&Arc<Url>>,
) -> Result<Box<Template>, String> {
    let action = match socket {
        SocketStep::Connect => SocketAction::Connect,
        SocketStep::Send { answer } => SocketAction::Send {
            text: !matches!(step.ask.body, Body::Bytes(_)),
            answer: answer.as_ref().map(|rule| awaited(travel, step, rule, view)),
        },
        SocketStep::Expect(rule) => SocketAction::Expect(awaited(travel, step, rule, view)),
        SocketStep::Close { code } => SocketAction::Close { code: *code },
    };
    let timeout = socket.rule().and_then(|rule| rule.timeout);
    let call = Arc::new(SocketCall { action, timeout, listens: false, socket: 0 });
    if matches!(socket, SocketStep::Connect) {
        let made = request::make(&travel.plan, step, view, 0, false)?;
        return Ok(Box::new(Template { socket: Some(call), ..made }));
    }
    let url = open.ok_or(NOT_OPEN)?;
    let payload = content(&step.ask.body, view, &mut Vec::new())?.unwrap_or_default();
    Ok(Box::new(Template::on_socket(url.clone(), payload, call)))
}

fn awaited(
    travel: &Arc<Travel>,
    step: &JourneyStep,
    rule: &MessageRule,
    view: &CarriedView<'_>,
) -> AwaitedMessages {
    let filters = rule.matching != plan::check::Content::default();
    let filter = filters.then(|| {
        let named = |name: &str| Some((name.to_owned(), view.value(name)?.to_owned()));
        let values = rule.names().into_iter().filter_map(named).collect();
        let filter = StepFilter { travel: travel.clone(), row: step.row, values };
        Arc::new(filter) as Arc<dyn MessageFilter>
    });
    AwaitedMessages { filter, count: rule.count }
}

/// Patterns of a step's messages, with the user's values.
#[derive(Debug)]
struct StepFilter {
    travel: Arc<Travel>,
    row: u32,
    values: BTreeMap<String, String>,
}

impl ValueSource for StepFilter {
    fn value(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    fn pattern(&self, text: &str) -> Option<Regex> {
        self.travel.patterns.get(text).cloned()
    }
}

impl MessageFilter for StepFilter {
    fn takes(&self, payload: &[u8]) -> bool {
        let socket = self.travel.step(self.row).socket.as_ref();
        let rule = socket.and_then(|socket| socket.rule());
        rule.is_none_or(|rule| !content_differs(&rule.matching, payload, self))
    }
}
