//! Requests to a server of language models, in the form that its users send.

use crate::{ModelApi, Plan, Streaming};
use serde_json::json;
use units::{ParseError, quoted};

/// Prompt if the options name none.
const PROMPT: &str = "Explain in a few sentences how a lighthouse works.";
const MODEL: &str = "default";
const TOKENS_MAX: u32 = 128;

/// Version of the Messages API, sent in the header that Anthropic requires.
const VERSION: (&str, &str) = ("anthropic-version", "2023-06-01");
const JSON: (&str, &str) = ("Content-Type", "application/json");

/// Parts of a request that options set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelRequest {
    pub model: Option<String>,
    pub prompt: Option<String>,
    pub tokens_max: Option<u32>,
}

/// Parses the maximum number of tokens of a response: at least 1.
///
/// # Errors
/// Fails for anything else.
pub fn parse_tokens(text: &str) -> Result<u32, ParseError> {
    let count = units::parse_count(text)?;
    u32::try_from(count).ok().filter(|count| *count > 0).ok_or_else(|| {
        ParseError(format!("{} is not a number of tokens: write one like 256", quoted(text)))
    })
}

impl Plan {
    /// Returns the interface of the language model, if all responses are its streams.
    pub fn model_api(&self) -> Option<ModelApi> {
        match self.measure.stream {
            Some(Streaming::Model(api)) => Some(api),
            _ => None,
        }
    }

    /// Sets body and fields of the request to a streamed chat; existing fields are kept.
    pub fn ask_model(&mut self, api: ModelApi, request: &ModelRequest) {
        let prompt = request.prompt.as_deref().unwrap_or(PROMPT);
        let mut body = json!({
            "model": request.model.as_deref().unwrap_or(MODEL),
            "stream": true,
            "max_tokens": request.tokens_max.unwrap_or(TOKENS_MAX),
            "messages": [{ "role": "user", "content": prompt }],
        });
        let mut fields = vec![JSON];
        match api {
            ModelApi::OpenAi => body["stream_options"] = json!({ "include_usage": true }),
            ModelApi::Anthropic => fields.push(VERSION),
        }
        self.request.body = Some(body.to_string().into_bytes());
        for (name, value) in fields {
            self.request.add_missing_header(name, value);
        }
    }
}
