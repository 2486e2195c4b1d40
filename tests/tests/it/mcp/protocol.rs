//! How the server answers invalid requests and requests at the wrong time.

use handlescope_tests::binary::Shell;
use handlescope_tests::mcp::McpServer;
use handlescope_tests::symbol_server::{ServerAnswer, SymbolServer};
use serde_json::{Value, json};

/// Returns the id and the error code of the answer to a line.
fn refused(server: &mut McpServer, line: &[u8]) -> (Value, Value) {
    server.send_line(line);
    let answer = server.next_message();
    assert!(!answer["error"]["message"].as_str().unwrap().is_empty(), "{answer}");
    (answer["id"].clone(), answer["error"]["code"].clone())
}

#[test]
fn whatever_is_no_request_is_answered_and_the_session_goes_on() {
    let shell = Shell::new();
    let mut server = McpServer::with_sample(&shell, &[]);
    let call = |params: Value| {
        let message =
            json!({"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": params});
        message.to_string().into_bytes()
    };
    let long = call(json!({"name": "sql", "arguments": {"query": "x".repeat(17 << 20)}}));
    let half = br#"{"params":{"name":"\ud800"},"method":"tools/call","jsonrpc":"2.0","id":"a"}"#;
    for (line, id, code) in [
        (call(json!({"name": "schema", "arguments": "{}"})), json!("a"), -32602),
        (call(json!({"name": "schema", "arguments": []})), json!("a"), -32602),
        (call(json!(["schema"])), json!("a"), -32602),
        (br#"{"id":"a","method":"ping"}"#.into(), json!("a"), -32600),
        (half.into(), json!("a"), -32700),
        (b"{\"id\":\"a\",\"method\":\"\xff\"}".into(), json!("a"), -32700),
        (long, json!("a"), -32600),
        (b"hello".into(), Value::Null, -32700),
        (br#"[{"jsonrpc":"2.0","id":"a","method":"ping"}]"#.into(), Value::Null, -32600),
    ] {
        let start = String::from_utf8_lossy(&line[..line.len().min(80)]).into_owned();
        assert_eq!(refused(&mut server, &line), (id, json!(code)), "{start}");
    }
    assert_eq!(server.call("schema", &json!({"tables": ["leaks"]})).unwrap()["total"], 1);
}

#[test]
fn a_request_is_refused_while_another_one_has_its_id() {
    let shell = Shell::new();
    let mut server = McpServer::with_sample(&shell, &[]);
    let params = json!({"name": "load", "arguments": {"paths": ["leaky.etl"]}});
    let load = json!({"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": params});
    let ping = json!({"jsonrpc": "2.0", "id": "a", "method": "ping"}).to_string();
    let both = format!("{load}\n{ping}");
    assert_eq!(refused(&mut server, both.as_bytes()), (json!("a"), json!(-32600)));
    let loaded = server.next_message();
    assert_eq!(
        (&loaded["id"], &loaded["result"]["structuredContent"]["total"]),
        (&json!("a"), &json!(1))
    );
    server.send_line(ping.as_bytes());
    assert_eq!(server.next_message()["result"], json!({}));
}

#[test]
fn requests_before_initialize_are_refused_and_messages_without_an_answer_passed_over() {
    let shell = Shell::new();
    let mut server = McpServer::uninitialized(&shell.path(""), &[]);
    server.notify("notifications/initialized", &json!({}));
    for method in ["tools/list", "x/y"] {
        let answer = server.request(method, &json!({}));
        assert_eq!(answer["error"]["message"], "initialize must come first", "{answer}");
    }
    assert_eq!(server.request("ping", &json!({}))["result"], json!({}));
    let wrong = server.request("initialize", &json!({}));
    assert_eq!(wrong["error"]["code"], -32602, "{wrong}");
    assert_eq!(server.initialize("2025-06-18")["result"]["serverInfo"]["name"], "handlescope");
    assert!(server.request("tools/list", &json!({}))["result"]["tools"].is_array());
}

#[test]
fn lists_have_one_page_and_refuse_the_cursor_of_another() {
    let shell = Shell::new();
    let mut server = McpServer::with_sample(&shell, &[]);
    for list in ["tools", "resources", "resources/templates", "prompts"] {
        let method = format!("{list}/list");
        for cursor in [json!("nonsense"), json!(""), json!(1), json!({}), json!(["a"])] {
            let answer = server.request(&method, &json!({"cursor": cursor}));
            assert_eq!(answer["error"]["code"], -32602, "{method} {cursor}: {answer}");
        }
        for params in [json!({}), json!({"cursor": null})] {
            let answer = server.request(&method, &params);
            assert!(answer["result"].is_object(), "{method}: {answer}");
            assert!(answer["result"].get("nextCursor").is_none(), "{method}: {answer}");
        }
    }
}

#[test]
fn a_version_that_demands_batches_is_not_agreed_to() {
    let shell = Shell::new();
    for (asked, agreed) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2024-11-05"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2099-01-01", "2025-11-25"),
        ("1.0", "2025-11-25"),
    ] {
        let mut server = McpServer::uninitialized(&shell.path(""), &[]);
        let answer = server.initialize(asked);
        assert_eq!(answer["result"]["protocolVersion"], agreed, "{asked}: {answer}");
    }
}

#[test]
fn a_client_that_asks_for_progress_sees_that_a_long_call_is_at_work() {
    let silent = SymbolServer::start(|_| ServerAnswer::Silence);
    let shell = Shell::new();
    let mut server = McpServer::with_sample(&shell, &["--allow-write", "--symserver", &silent.url]);
    // Symbols beside the trace would give an immediate answer.
    std::fs::remove_dir_all(shell.path("traces/symbols")).unwrap();
    server.call("load", &json!({"paths": ["leaky.etl"]})).unwrap();
    let meta = json!({"progressToken": "p"});
    let id = server.send("tools/call", &json!({"name": "why", "arguments": {}, "_meta": meta}));
    let mut progress = || {
        let message = server.next_message();
        assert_eq!(message["method"], "notifications/progress", "{message}");
        assert_eq!(message["params"]["progressToken"], "p", "{message}");
        message["params"]["progress"].as_f64().unwrap()
    };
    let (first, second) = (progress(), progress());
    assert!(first < second, "{first} {second}");
    server.notify("notifications/cancelled", &json!({"requestId": id}));
}
