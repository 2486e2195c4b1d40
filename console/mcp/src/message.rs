//! Messages of the client: reads a line, or says why it is not a message.
//!
//! The protocol's SDK is silent about much that is no message, and leaves the id out of its other errors, so that the
//! caller would wait for ever. Whatever has an id is answered here with it, before the SDK sees it.

use rmcp::model::{ClientRequest, JsonRpcMessage, JsonRpcRequest, RequestId};
use rmcp::service::RxJsonRpcMessage;
use rmcp::{ErrorData, RoleServer};
use serde::Deserialize;
use serde_json::Value;

use super::lines::{InputLine, MAX_BYTES};

pub type Message = RxJsonRpcMessage<RoleServer>;

/// Parameters of the methods that take some: `NAME:TYPE` of JSON schema, with `?` for those that may be missing.
const PARAMETERS: [(&str, &str); 8] = [
    ("initialize", "protocolVersion:string capabilities:object clientInfo:object"),
    ("tools/call", "name:string arguments:object?"),
    ("resources/read", "uri:string"),
    ("prompts/get", "name:string arguments:object?"),
    ("tools/list", "cursor:string?"),
    ("resources/list", "cursor:string?"),
    ("resources/templates/list", "cursor:string?"),
    ("prompts/list", "cursor:string?"),
];

/// The mark that some programs put in front of UTF-8.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// A message that is answered with an error at once.
#[derive(Debug)]
pub struct MessageRefusal {
    pub id: Option<RequestId>,
    pub error: ErrorData,
}

/// Reads a line; `None` for one that gets no answer.
///
/// # Errors
/// When it is no message, or a request without what its method needs.
pub fn read(line: &InputLine) -> Result<Option<Message>, MessageRefusal> {
    let line = match line {
        InputLine::Whole(line) => line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line),
        InputLine::TooLong(outline) => {
            let reason = format!("a message has at most {} MiB", MAX_BYTES >> 20);
            return Err(MessageRefusal { id: id_in(outline), error: invalid(reason) });
        }
    };
    if line.trim_ascii().is_empty() {
        return Ok(None);
    }
    let message: Value = serde_json::from_slice(line).map_err(|error| MessageRefusal {
        id: id_in(line),
        error: ErrorData::parse_error(format!("not JSON: {error}"), None),
    })?;
    let parsed = Message::deserialize(&message).ok();
    // Notifications and answers are never answered.
    if message.is_object() && !is_request(&message) {
        return Ok(parsed);
    }
    let id = RequestId::deserialize(&message["id"]).ok();
    let fault = wrong_shape(&message, id.as_ref()).map(invalid).or_else(|| {
        Some(ErrorData::invalid_params(wrong_parameters(&message, parsed.as_ref())?, None))
    });
    match fault {
        Some(error) => Err(MessageRefusal { id, error }),
        None => Ok(parsed),
    }
}

/// Whether an object waits for an answer: it has an id, or nothing by which it could be anything else.
fn is_request(message: &Value) -> bool {
    let has = |name: &str| message.get(name).is_some();
    !has("result") && !has("error") && (has("id") || !has("method"))
}

/// Returns the reason why a message is not a request of any method.
fn wrong_shape(message: &Value, id: Option<&RequestId>) -> Option<&'static str> {
    if !message.is_object() {
        Some("a message is an object on a line of its own; there are no batches")
    } else if message["jsonrpc"] != "2.0" {
        Some("'jsonrpc' must be \"2.0\"")
    } else if id.is_none() {
        Some("'id' must be a string or an integer")
    } else if !message["method"].is_string() {
        Some("'method' must be a string")
    } else {
        None
    }
}

/// Returns the reason why the parameters of a request do not fit its method.
fn wrong_parameters(message: &Value, parsed: Option<&Message>) -> Option<String> {
    let method = message["method"].as_str().unwrap_or_default();
    let params = &message["params"];
    if !params.is_object() && !params.is_null() {
        return Some(format!("the params of {method} must be an object"));
    }
    let known = PARAMETERS.iter().find(|(name, _)| *name == method);
    let expected = known.map_or("", |(_, expected)| expected).split_whitespace();
    for (name, kind) in expected.chain(["_meta:object?"]).filter_map(|param| param.split_once(':'))
    {
        let (kind, is_optional) = kind.strip_suffix('?').map_or((kind, false), |kind| (kind, true));
        let fits = match &params[name] {
            Value::Null => is_optional,
            Value::Object(_) => kind == "object",
            Value::String(_) => kind == "string",
            _ => false,
        };
        if !fits {
            return Some(format!("'{name}' of {method} must be of type {kind}"));
        }
    }
    // The SDK takes a request whose parameters do not fit for one of a method that it does not know.
    let is_taken = match parsed {
        Some(JsonRpcMessage::Request(JsonRpcRequest { request, .. })) => {
            known.is_none() || !matches!(request, ClientRequest::CustomRequest(_))
        }
        _ => false,
    };
    (!is_taken).then(|| format!("the params of {method} do not match the protocol"))
}

fn invalid(reason: impl Into<String>) -> ErrorData {
    ErrorData::invalid_request(reason.into(), None)
}

/// The id in a line with something that cannot be read, like half of a surrogate pair.
fn id_in(line: &[u8]) -> Option<RequestId> {
    #[derive(Deserialize)]
    struct RequestHead {
        id: RequestId,
    }
    serde_json::from_slice(line).ok().map(|request: RequestHead| request.id)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The code, id and text of the error that a line is answered with.
    fn refused(line: &[u8]) -> (i32, Option<Value>, String) {
        let MessageRefusal { id, error } = read(&InputLine::Whole(line.into()))
            .expect_err(&format!("{:?} is refused", String::from_utf8_lossy(line)));
        (error.code.0, id.map(RequestId::into_json_value), error.message.into_owned())
    }

    fn request(method: &str, params: &Value) -> Value {
        json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params})
    }

    #[test]
    fn requests_that_lack_what_their_method_needs_are_refused() {
        for (method, params, text) in [
            ("tools/call", json!({"name": "why", "arguments": "{}"}), "'arguments' of tools/call"),
            ("tools/call", json!({"name": "why", "arguments": []}), "must be of type object"),
            ("tools/call", json!({"name": 3}), "'name' of tools/call must be of type string"),
            ("tools/call", json!(null), "'name' of tools/call"),
            ("tools/call", json!({"name": "why", "_meta": "x"}), "'_meta' of tools/call"),
            ("tools/call", json!([]), "the params of tools/call must be an object"),
            ("resources/read", json!({}), "'uri' of resources/read"),
            ("initialize", json!({}), "'protocolVersion' of initialize"),
            (
                "initialize",
                json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {}}),
                "the params of initialize do not match the protocol",
            ),
            ("x/y", json!("text"), "the params of x/y must be an object"),
        ] {
            let line = request(method, &params).to_string();
            let (code, id, message) = refused(line.as_bytes());
            assert_eq!((code, id), (-32602, Some(json!(7))), "{line}");
            assert!(message.contains(text), "{line}: {message}");
        }
    }

    #[test]
    fn a_request_of_another_shape_is_refused_with_its_id() {
        for line in [
            r#"{"id":7,"method":"ping"}"#,
            r#"{"jsonrpc":"1.0","id":7,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":7}"#,
            r#"{"jsonrpc":"2.0","id":7,"method":3}"#,
        ] {
            assert_eq!(refused(line.as_bytes()).0, -32600, "{line}");
            assert_eq!(refused(line.as_bytes()).1, Some(json!(7)), "{line}");
        }
        for line in [
            r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
            r#"[{"jsonrpc":"2.0","id":7,"method":"ping"}]"#,
            "3",
            "{}",
        ] {
            assert_eq!(refused(line.as_bytes()).0, -32600, "{line}");
            assert_eq!(refused(line.as_bytes()).1, None, "{line}");
        }
    }

    #[test]
    fn unreadable_messages_are_refused_with_their_id_if_there_is_one() {
        let half = br#"{"method":"ping","params":{"x":"\ud800"},"jsonrpc":"2.0","id":"a"}"#;
        let bytes = b"{\"id\":7,\"method\":\"p\xffng\"}";
        let deep = format!(r#"{{"id":7,"params":{}{}}}"#, "[".repeat(500), "]".repeat(500));
        for (line, id) in [
            (&half[..], Some(json!("a"))),
            (bytes, Some(json!(7))),
            (deep.as_bytes(), Some(json!(7))),
            (b"hello", None),
            (br#"{"jsonrpc":"2.0","id":7,"#, None),
        ] {
            let (code, answered, message) = refused(line);
            assert_eq!((code, answered), (-32700, id), "{message}");
            assert!(message.starts_with("not JSON: "), "{message}");
        }
        let long = read(&InputLine::TooLong(br#"{"method":"a","params":{},"id":7}"#.into()));
        let MessageRefusal { id, error } = long.expect_err("too long");
        assert_eq!((id, error.code.0), (Some(RequestId::Number(7)), -32600));
        assert_eq!(error.message, "a message has at most 16 MiB");
    }

    #[test]
    fn messages_are_taken_and_what_is_never_answered_is_not_refused() {
        for line in [
            request("ping", &json!({})).to_string(),
            request("tools/call", &json!({"name": "why", "arguments": null})).to_string(),
            request("tools/list", &json!(null)).to_string(),
            request("x/y", &json!({})).to_string(),
            json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string(),
            format!("\u{feff}{}\r", json!({"jsonrpc": "2.0", "id": 7, "result": {}})),
        ] {
            let message = read(&InputLine::Whole(line.clone().into())).expect("a message");
            assert!(message.is_some(), "{line}");
        }
        for line in [
            "",
            " \r",
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":[]}"#,
            r#"{"jsonrpc":"2.0","id":7,"error":"x"}"#,
        ] {
            let message = read(&InputLine::Whole(line.into())).expect("no error");
            assert!(message.is_none(), "{line}");
        }
    }
}
