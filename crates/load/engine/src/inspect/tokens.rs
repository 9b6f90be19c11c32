//! Streams of language models: events with content are counted, and the token counts in the stream
//! are read. Server-Sent Events with JSON, as sent by OpenAI and Anthropic.

use plan::ModelApi;
use serde_json::Value;
use stats::TokenUsage;

/// Maximum size of an event in bytes; a longer one fails the stream.
const EVENT_MAX: usize = 1 << 20;

/// Reads one body in pieces; the result does not depend on where it is cut.
#[derive(Clone, Debug)]
pub(crate) struct TokenReader {
    api: ModelApi,
    /// The part of the current line that arrived in earlier pieces.
    line: Vec<u8>,
    /// Data of the current event.
    data: Vec<u8>,
    has_data: bool,
    /// The previous byte was a carriage return: its line feed belongs to it.
    after_return: bool,
    usage: TokenUsage,
    ended: bool,
    failed: bool,
}

impl TokenReader {
    pub(crate) fn new(api: ModelApi) -> TokenReader {
        TokenReader {
            api,
            line: Vec::new(),
            data: Vec::new(),
            has_data: false,
            after_return: false,
            usage: TokenUsage::default(),
            ended: false,
            failed: false,
        }
    }

    /// Returns the tokens that the stream has reported so far.
    pub(crate) fn usage(&self) -> TokenUsage {
        self.usage
    }

    /// Returns whether a whole body has failed: it reported an error, an event was not JSON, or the
    /// end mark is missing.
    pub(crate) fn is_broken(&self) -> bool {
        self.failed || !self.ended
    }

    /// Processes a piece of the body; returns how many events with content end in it.
    pub(crate) fn push(&mut self, mut rest: &[u8]) -> u64 {
        let mut events = 0;
        if self.after_return && !rest.is_empty() {
            self.after_return = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        while let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            events += u64::from(self.end_line(&rest[..end]));
            let returned = rest[end] == b'\r';
            rest = &rest[end + 1..];
            if returned {
                self.after_return = rest.is_empty();
                rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            }
        }
        if self.line.len() + rest.len() > EVENT_MAX {
            self.failed = true;
            self.line.clear();
        } else {
            self.line.extend_from_slice(rest);
        }
        events
    }

    /// Completes a line with its last part. Returns true if an event with content ends with it.
    fn end_line(&mut self, last: &[u8]) -> bool {
        let mut line = std::mem::take(&mut self.line);
        let whole = if line.is_empty() {
            last
        } else {
            line.extend_from_slice(last);
            &line
        };
        let counts = if whole.is_empty() {
            self.end_event()
        } else {
            self.take_field(whole);
            false
        };
        line.clear();
        self.line = line;
        counts
    }

    /// Processes a field of an event. Only data fields matter: their JSON names the type.
    fn take_field(&mut self, line: &[u8]) {
        let Some(value) = line.strip_prefix(b"data:") else { return };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        if self.data.len() + value.len() >= EVENT_MAX {
            self.failed = true;
            return;
        }
        if self.has_data {
            self.data.push(b'\n');
        }
        self.has_data = true;
        self.data.extend_from_slice(value);
    }

    fn end_event(&mut self) -> bool {
        if !std::mem::take(&mut self.has_data) {
            return false;
        }
        let data = std::mem::take(&mut self.data);
        let counts = match &data[..] {
            b"[DONE]" => {
                self.ended = true;
                false
            }
            text => match serde_json::from_slice::<Value>(text) {
                Ok(event) => self.take_event(&event),
                Err(_) => {
                    self.failed = true;
                    false
                }
            },
        };
        self.data = data;
        self.data.clear();
        counts
    }

    /// Returns whether the event has content.
    fn take_event(&mut self, event: &Value) -> bool {
        let kind = event["type"].as_str().unwrap_or_default();
        if !event["error"].is_null() || kind == "error" || kind == "response.failed" {
            self.failed = true;
            return false;
        }
        match self.api {
            ModelApi::OpenAi => self.take_openai(kind, event),
            ModelApi::Anthropic => self.take_anthropic(kind, event),
        }
    }

    /// Reads a chunk of a chat completion or of a completion, or an event of the Responses API.
    fn take_openai(&mut self, kind: &str, event: &Value) -> bool {
        if !kind.is_empty() {
            let last = matches!(kind, "response.completed" | "response.incomplete");
            self.ended |= last;
            let usage = &event["response"]["usage"];
            self.report(&usage["input_tokens"], &usage["output_tokens"]);
            return kind.ends_with(".delta") && has_text(&event["delta"]);
        }
        let usage = &event["usage"];
        self.report(&usage["prompt_tokens"], &usage["completion_tokens"]);
        let choices = event["choices"].as_array().map_or(&[][..], Vec::as_slice);
        choices.iter().any(|choice| {
            let delta = &choice["delta"];
            let texts = ["content", "reasoning_content", "reasoning", "refusal"];
            texts.iter().any(|name| has_text(&delta[*name]))
                || delta["tool_calls"].as_array().is_some_and(|calls| !calls.is_empty())
                || has_text(&choice["text"])
        })
    }

    /// Reads an event of the Messages API.
    fn take_anthropic(&mut self, kind: &str, event: &Value) -> bool {
        match kind {
            "message_start" => {
                let usage = &event["message"]["usage"];
                self.report(&usage["input_tokens"], &Value::Null);
            }
            // counts are cumulative
            "message_delta" => self.report(&Value::Null, &event["usage"]["output_tokens"]),
            "message_stop" => self.ended = true,
            "content_block_delta" => {
                let texts = ["text", "thinking", "partial_json"];
                return texts.iter().any(|name| has_text(&event["delta"][*name]));
            }
            _ => {}
        }
        false
    }

    /// Takes reported token counts. The last report counts: some servers report with every event.
    fn report(&mut self, input: &Value, output: &Value) {
        self.usage.input = input.as_u64().or(self.usage.input);
        self.usage.output = output.as_u64().or(self.usage.output);
    }
}

fn has_text(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the events with content, tokens of request and response, and whether the stream
    /// failed; the same wherever the body is split.
    fn read(api: ModelApi, body: &str) -> (u64, Option<u64>, Option<u64>, bool) {
        let all: Vec<_> = (0..=body.len())
            .map(|cut| {
                let mut reader = TokenReader::new(api);
                let (first, second) = body.as_bytes().split_at(cut);
                let events = reader.push(first) + reader.push(second);
                let TokenUsage { input, output } = reader.usage();
                (events, input, output, reader.is_broken())
            })
            .collect();
        assert!(all.iter().all(|it| *it == all[0]), "{body}: {all:?}");
        all[0]
    }

    fn events(lines: &[&str]) -> String {
        lines.iter().map(|line| format!("data: {line}\n\n")).collect()
    }

    #[test]
    fn chat_completions_count_content_and_report_their_usage() {
        let chat = events(&[
            r#"{"choices":[{"delta":{"role":"assistant","content":""}}]}"#,
            r#"{"choices":[{"delta":{"content":"Hello"}}],"usage":null}"#,
            r#"{"choices":[{"delta":{"reasoning_content":"so"}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0}]}}]}"#,
            r#"{"choices":[{"text":" there"}]}"#,
            r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#,
            r#"{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":12}}"#,
            "[DONE]",
        ]);
        assert_eq!(read(ModelApi::OpenAi, &chat), (4, Some(9), Some(12), false));
        let returns = chat.replace('\n', "\r\n");
        assert_eq!(read(ModelApi::OpenAi, &returns), (4, Some(9), Some(12), false));
        let without = events(&[r#"{"choices":[{"delta":{"content":"Hello"}}]}"#, "[DONE]"]);
        assert_eq!(read(ModelApi::OpenAi, &without), (1, None, None, false));
    }

    #[test]
    fn responses_and_messages_have_their_own_events() {
        let responses = events(&[
            r#"{"type":"response.created","response":{"usage":null}}"#,
            r#"{"type":"response.output_text.delta","delta":"Hello"}"#,
            r#"{"type":"response.completed","response":{"usage":{"input_tokens":3,"output_tokens":5}}}"#,
        ]);
        assert_eq!(read(ModelApi::OpenAi, &responses), (1, Some(3), Some(5), false));
        let messages = "event: message_start\n\
            data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":25,\"output_tokens\":1}}}\n\n\
            event: ping\ndata: {\"type\":\"ping\"}\n\n\
            data: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"Hi\"}}\n\n\
            data: {\"type\":\"content_block_delta\",\"delta\":{\"partial_json\":\"\"}}\n\n\
            data: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":15}}\n\n\
            event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
        assert_eq!(read(ModelApi::Anthropic, messages), (1, Some(25), Some(15), false));
    }

    #[test]
    fn streams_without_an_end_or_with_an_error_are_broken() {
        let content = r#"{"choices":[{"delta":{"content":"Hello"}}]}"#;
        for (lines, wanted) in [
            (&[content][..], (1, true)),
            (&[content, "[DONE]"], (1, false)),
            (&[content, r#"{"error":{"message":"overloaded"}}"#, "[DONE]"], (1, true)),
            (&["{\"choices\":", "[DONE]"], (0, true)),
        ] {
            let (count, _, _, broken) = read(ModelApi::OpenAi, &events(lines));
            assert_eq!((count, broken), wanted, "{lines:?}");
        }
        let overloaded = r#"{"type":"error","error":{"type":"overloaded_error"}}"#;
        let stopped = events(&[overloaded, r#"{"type":"message_stop"}"#]);
        assert!(read(ModelApi::Anthropic, &stopped).3);
    }

    #[test]
    fn an_endless_event_takes_a_bounded_memory() {
        let mut reader = TokenReader::new(ModelApi::OpenAi);
        reader.push(b"data: ");
        for _ in 0..3 * EVENT_MAX / 1_000 {
            reader.push(&[b'a'; 1_000]);
        }
        assert!(reader.line.len() + reader.data.len() <= 2 * EVENT_MAX);
        reader.push(b"\n\ndata: [DONE]\n\n");
        assert!(reader.is_broken());
    }
}
