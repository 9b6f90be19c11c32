//! A language model whose tokens are sent on a schedule, with the interfaces of OpenAI and
//! Anthropic. A token is a word: those of a request are counted, those of a response are drawn from
//! a list.

use std::fmt::Write;
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::{Request, Response, StatusCode};
use serde_json::{Value, json};

use super::Common;
use super::body::{PageBody, Upload};
use super::events::{EventText, Events};
use super::pages::page_of;
use crate::config::ModelPace;
use crate::route::{EventPlan, ModelPage, SLEEP_MAX};

/// Tokens of a response to a request that sets no maximum.
const TOKENS_DEFAULT: u64 = 128;
const TOKENS_MAX: u64 = 100_000;
const NAME_MAX: usize = 200;
const JSON: &str = "application/json";
const WORDS: [&str; 8] = ["a", "lamp", "turns", "above", "the", "dark", "water", "slowly"];

/// Requested chat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chat {
    page: ModelPage,
    model: String,
    /// Tokens of the request, and of the response.
    input: u64,
    output: u64,
    streams: bool,
    /// True if the stream ends with the counts of tokens.
    reports: bool,
}

impl Chat {
    /// Reads the body of a request.
    ///
    /// # Errors
    /// Fails if the body is malformed; the text states how.
    fn parse(page: ModelPage, body: &[u8]) -> Result<Chat, String> {
        let body: Value = serde_json::from_slice(body)
            .map_err(|error| format!("the body is not JSON: {error}"))?;
        let messages = body["messages"].as_array().filter(|all| !all.is_empty());
        let messages = messages.ok_or("messages must be a list of at least one message")?;
        let model = body["model"].as_str().unwrap_or_default();
        if model.is_empty() || model.len() > NAME_MAX {
            return Err(format!("model must be a name of at most {NAME_MAX} bytes"));
        }
        let most = ["max_completion_tokens", "max_tokens"].map(|name| &body[name]);
        let output = match most.into_iter().find(|value| !value.is_null()) {
            Some(value) => value.as_u64().filter(|count| (1..=TOKENS_MAX).contains(count)),
            None if page == ModelPage::Messages => None,
            None => Some(TOKENS_DEFAULT),
        };
        let output = output.ok_or(format!("max_tokens must be 1 to {TOKENS_MAX}"))?;
        Ok(Chat {
            page,
            model: model.to_owned(),
            input: messages.iter().map(|message| words_of(&message["content"])).sum(),
            output,
            streams: body["stream"].as_bool().unwrap_or(false),
            reports: body["stream_options"]["include_usage"].as_bool().unwrap_or(false),
        })
    }

    /// Writes the start of a stream, which is sent at once.
    pub(super) fn write_start(&self, text: &mut String) {
        match self.page {
            ModelPage::Chat => {
                self.chunk(text, &json!({ "role": "assistant", "content": "" }), None)
            }
            ModelPage::Messages => {
                let usage = json!({ "input_tokens": self.input, "output_tokens": 1 });
                let message = json!({ "id": "msg_1", "type": "message", "role": "assistant",
                    "model": self.model, "content": [], "usage": usage });
                event(text, &json!({ "type": "message_start", "message": message }));
                let block = json!({ "type": "text", "text": "" });
                event(
                    text,
                    &json!({ "type": "content_block_start", "index": 0, "content_block": block }),
                );
            }
        }
    }

    /// Writes token `number`, from 1; after the last one, the end of the stream.
    pub(super) fn write_token(&self, text: &mut String, number: u64) {
        let word = word(number);
        match self.page {
            ModelPage::Chat => self.chunk(text, &json!({ "content": word }), None),
            ModelPage::Messages => {
                let delta = json!({ "type": "text_delta", "text": word });
                event(text, &json!({ "type": "content_block_delta", "index": 0, "delta": delta }));
            }
        }
        if number == self.output {
            self.write_end(text);
        }
    }

    fn write_end(&self, text: &mut String) {
        match self.page {
            ModelPage::Chat => {
                self.chunk(text, &json!({}), Some("length"));
                if self.reports {
                    let usage = self.usage();
                    let last = json!({ "id": "chatcmpl-1", "object": "chat.completion.chunk",
                        "model": self.model, "choices": [], "usage": usage });
                    data(text, &last);
                }
                text.push_str("data: [DONE]\n\n");
            }
            ModelPage::Messages => {
                event(text, &json!({ "type": "content_block_stop", "index": 0 }));
                let delta = json!({ "stop_reason": "max_tokens" });
                let usage = json!({ "output_tokens": self.output });
                event(text, &json!({ "type": "message_delta", "delta": delta, "usage": usage }));
                event(text, &json!({ "type": "message_stop" }));
            }
        }
    }

    fn chunk(&self, text: &mut String, delta: &Value, reason: Option<&str>) {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": reason });
        let chunk = json!({ "id": "chatcmpl-1", "object": "chat.completion.chunk",
            "model": self.model, "choices": [choice] });
        data(text, &chunk);
    }

    fn usage(&self) -> Value {
        json!({ "prompt_tokens": self.input, "completion_tokens": self.output,
            "total_tokens": self.input + self.output })
    }

    /// Returns the response in one piece.
    fn whole(&self) -> Value {
        let content: String = (1..=self.output).map(word).collect();
        match self.page {
            ModelPage::Chat => {
                let message = json!({ "role": "assistant", "content": content });
                let choice = json!({ "index": 0, "message": message, "finish_reason": "length" });
                json!({ "id": "chatcmpl-1", "object": "chat.completion", "model": self.model,
                    "choices": [choice], "usage": self.usage() })
            }
            ModelPage::Messages => {
                let usage = json!({ "input_tokens": self.input, "output_tokens": self.output });
                json!({ "id": "msg_1", "type": "message", "role": "assistant", "model": self.model,
                    "content": [{ "type": "text", "text": content }],
                    "stop_reason": "max_tokens", "usage": usage })
            }
        }
    }
}

/// Returns the number of words of a message's content: a text, or parts with texts.
fn words_of(content: &Value) -> u64 {
    let count = |text: &Value| text.as_str().map_or(0, |text| text.split_whitespace().count());
    let parts = content.as_array().map_or(&[][..], Vec::as_slice);
    let counts = parts.iter().map(|part| count(&part["text"]));
    (count(content) + counts.sum::<usize>()) as u64
}

/// Returns token `number`, with a space before it except for the first.
fn word(number: u64) -> String {
    let word = WORDS[(number % WORDS.len() as u64) as usize];
    if number == 1 { word.to_owned() } else { format!(" {word}") }
}

fn data(text: &mut String, value: &Value) {
    write!(text, "data: {value}\n\n").expect("writing to a String cannot fail");
}

/// Writes an event named after its type.
fn event(text: &mut String, value: &Value) {
    let name = value["type"].as_str().unwrap_or_default();
    write!(text, "event: {name}\ndata: {value}\n\n").expect("writing to a String cannot fail");
}

/// Returns the response to a chat.
pub(super) async fn respond(
    page: ModelPage,
    request: Request<Upload>,
    common: &Common,
) -> Response<PageBody> {
    let mut incoming = request.into_body();
    let mut held = common.hold();
    while let Some(frame) = incoming.frame().await {
        let Ok(frame) = frame else { return refused(400, "the body broke off") };
        let Ok(data) = frame.into_data() else { continue };
        if held.len() + data.len() as u64 > common.body_max || !held.push(&data) {
            return refused(413, "the body is too long");
        }
    }
    let chat = match Chat::parse(page, held.bytes()) {
        Ok(chat) => chat,
        Err(why) => return refused(400, &why),
    };
    let ModelPace { first, every } = common.model;
    let span = every.0.checked_mul(chat.output - 1).and_then(|span| span.checked_add(first.0));
    let Some(span) = span.filter(|span| *span <= SLEEP_MAX.0) else {
        return refused(400, "the response would take more than an hour: lower max_tokens");
    };
    if !chat.streams {
        tokio::time::sleep(Duration::from_nanos(span)).await;
        let text = chat.whole().to_string();
        return page_of(StatusCode::OK, Some(JSON), PageBody::Whole(text.into()));
    }
    let plan = EventPlan { count: chat.output, first, every, lines: false };
    let events = Events::new(plan, EventText::Chat(Box::new(chat)));
    page_of(StatusCode::OK, Some("text/event-stream"), PageBody::Events(events))
}

/// Returns an error as both interfaces have it.
fn refused(status: u16, why: &str) -> Response<PageBody> {
    let error = json!({ "type": "invalid_request_error", "message": why });
    let text = json!({ "type": "error", "error": error }).to_string();
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
    page_of(status, Some(JSON), PageBody::Whole(text.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chat_is_read_with_its_bounds() {
        let read = |page, text: &str| Chat::parse(page, text.as_bytes());
        let chat = read(
            ModelPage::Chat,
            r#"{"model":"m","messages":[{"content":"one two"},{"content":[{"text":"three"}]}],"stream":true}"#,
        )
        .unwrap();
        assert_eq!((chat.input, chat.output, chat.streams, chat.reports), (3, 128, true, false));
        for (text, why) in [
            ("{", "not JSON"),
            ("{}", "messages"),
            (r#"{"messages":[{}]}"#, "model"),
            (r#"{"model":"m","messages":[{}],"max_tokens":0}"#, "max_tokens"),
            (r#"{"model":"m","messages":[{}],"max_tokens":"9"}"#, "max_tokens"),
        ] {
            let error = read(ModelPage::Chat, text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
        // the Messages API requires it
        let error = read(ModelPage::Messages, r#"{"model":"m","messages":[{}]}"#).unwrap_err();
        assert!(error.contains("max_tokens"), "{error}");
    }

    #[test]
    fn streams_end_with_their_counts() {
        let body = r#"{"model":"m","messages":[{"content":"a b"}],"max_tokens":2,"stream":true,
            "stream_options":{"include_usage":true}}"#;
        for (page, ends) in [
            (ModelPage::Chat, ["\"completion_tokens\":2", "data: [DONE]\n\n"]),
            (ModelPage::Messages, ["\"output_tokens\":2", "{\"type\":\"message_stop\"}\n\n"]),
        ] {
            let chat = Chat::parse(page, body.as_bytes()).unwrap();
            let mut text = String::new();
            chat.write_start(&mut text);
            (1..=2).for_each(|number| chat.write_token(&mut text, number));
            assert!(text.contains("lamp") && text.contains(" turns"), "{text}");
            assert!(text.contains(ends[0]) && text.ends_with(ends[1]), "{text}");
            assert!(chat.whole().to_string().contains("lamp turns"));
        }
    }
}
