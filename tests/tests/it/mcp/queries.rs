//! Queries of the tool `sql` that could harm the server.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use handlescope_tests::binary::Shell;
use handlescope_tests::mcp::McpServer;
use serde_json::json;

/// Returns a query that builds a text of `10^steps` million characters.
fn growing(steps: usize) -> String {
    let mut query = String::from("WITH s0 AS (SELECT lpad('x', 1000000) AS x)");
    for step in 1..=steps {
        let tenfold = ["x"; 10].join(" || ");
        write!(query, ", s{step} AS (SELECT {tenfold} AS x FROM s{})", step - 1).unwrap();
    }
    format!("{query} SELECT length(x) AS n FROM s{steps}")
}

#[test]
fn a_query_that_needs_too_much_is_refused_and_the_next_is_answered() {
    let shell = Shell::new();
    let mut server = McpServer::with_sample(&shell, &[]);
    server.load_sample();
    let grown = server.call("sql", &json!({"query": growing(1)})).unwrap();
    assert_eq!(grown["document"]["rows"], json!([{"n": 10_000_000}]));
    let products = "SELECT count(*) FROM events a, events b, events c, events d";
    for (query, reason) in [
        ("SELECT lpad('x', 2000000000)".to_owned(), "lpad makes at most 1000000 characters"),
        ("SELECT RPAD(type, 2000 * 1000000, 'y') FROM objects".to_owned(), "rpad makes at most"),
        ("SELECT lpad('x', 1000000000000000000)".to_owned(), "lpad makes at most"),
        ("WITH a AS (SELECT lpad('x', 1e12) AS x) SELECT * FROM a".to_owned(), "lpad makes"),
        ("SELECT repeat('x', 2000000000)".to_owned(), "unsupported function 'repeat'"),
        (growing(4), "the query needs more than 1.00 GiB of memory"),
        (products.to_owned(), "a join of this query would have"),
    ] {
        let start = Instant::now();
        let error = server.call("sql", &json!({"query": query})).unwrap_err();
        assert!(error.contains(reason), "{query}: {error}");
        assert!(start.elapsed() < Duration::from_secs(30), "{query}: {:?}", start.elapsed());
        let next = server.call("sql", &json!({"query": "SELECT count(*) AS n FROM events"}));
        assert_eq!(next.unwrap()["document"]["rows"], json!([{"n": 183}]), "{query}");
    }
    let why = server.call("why", &json!({})).unwrap();
    assert_eq!(why["total"], 4);
}

#[test]
fn a_query_that_is_cancelled_ends_at_once() {
    let shell = Shell::new();
    let mut server = McpServer::with_sample(&shell, &[]);
    server.load_sample();
    for query in [growing(4), "SELECT lpad('x', row + 2000000000) FROM events".to_owned()] {
        let params = json!({"name": "sql", "arguments": {"query": query}});
        let id = server.send("tools/call", &params);
        std::thread::sleep(Duration::from_millis(500));
        server.notify("notifications/cancelled", &json!({"requestId": id}));
        let start = Instant::now();
        let next = server.call("sql", &json!({"query": "SELECT count(*) AS n FROM events"}));
        assert_eq!(next.unwrap()["document"]["rows"], json!([{"n": 183}]));
        assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    }
}

#[test]
fn a_row_that_is_larger_than_a_page_does_not_end_the_pages() {
    let shell = Shell::new();
    let mut server = McpServer::with_sample(&shell, &[]);
    server.load_sample();
    let query = "SELECT row, lpad('x', CASE WHEN row % 50 = 0 THEN 900000 ELSE 2 END) AS a FROM events \
                 ORDER BY row";
    let mut arguments = json!({"query": query, "max_bytes": 3000});
    let (mut rows, mut cut) = (0, 0);
    loop {
        let page = server.call("sql", &arguments).unwrap();
        assert!(page.to_string().len() <= 3000, "{page}");
        rows += page["document"]["rows"].as_array().unwrap().len();
        cut += usize::from(page["cut"] == true);
        let Some(next) = page.get("next") else { break };
        arguments = next["arguments"].clone();
    }
    assert_eq!((rows, cut), (183, 4));
}
