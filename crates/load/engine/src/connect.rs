//! Status of Connect calls.

use protocol::grpc::{BodyForm, ConnectError, Status, connect_status};
use serde_json::Value;

/// Returns the status. `end`: the body of a unary call, or the frame that ends a stream.
pub(crate) fn status(http_status: u16, end: &[u8], form: BodyForm) -> Status {
    let is_unary = matches!(form, BodyForm::Whole | BodyForm::Error);
    if is_unary && http_status == 200 {
        return connect_status(http_status, None, true);
    }
    let json: Option<Value> = serde_json::from_slice(end).ok().filter(Value::is_object);
    let described = match &json {
        // a response that is not a stream describes its error like a unary one
        Some(json) if is_unary || http_status != 200 => Some(json),
        Some(json) => json.get("error"),
        None => None,
    };
    let text = |json: &Value, key: &str| json.get(key)?.as_str().map(str::to_owned);
    let error = described.map(|error| ConnectError {
        code: text(error, "code"),
        message: text(error, "message").unwrap_or_default(),
    });
    connect_status(http_status, error, json.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::grpc::{CONNECT_STREAM, Code, Variant};

    #[test]
    fn errors_are_read_from_bodies_and_from_ends_of_streams() {
        let unary = BodyForm::new(Variant::Connect, "application/proto");
        let stream = BodyForm::new(Variant::Connect, CONNECT_STREAM);
        let of = |http, end: &str, form| {
            let status = status(http, end.as_bytes(), form);
            (status.code, status.message, status.sent)
        };
        let gone = r#"{"code": "not_found", "message": "gone"}"#;
        let known = (Code::NotFound, "gone".to_owned(), true);
        assert_eq!(of(404, gone, unary), known);
        assert_eq!(of(200, gone, unary).0, Code::Ok, "a message may be JSON");
        assert_eq!(of(200, &format!("{{\"error\": {gone}}}"), stream), known);
        assert_eq!(of(200, "{}", stream), (Code::Ok, String::new(), true));
        assert!(!of(200, "", stream).2, "a stream without its end");
        assert!(!of(200, "[1]", stream).2);
        assert_eq!(of(503, "<html>", unary).0, Code::Unavailable);
    }
}
