//! Symbol servers, good and bad, on the loopback interface.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::fixture::TestPdb;
use super::*;

/// For servers that answer, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(30);
/// For a server that does not.
const TIMEOUT: Duration = Duration::from_secs(2);

/// A server that answers every request with what a function says; `None` is silence.
struct Server {
    url: String,
    requests: Arc<AtomicUsize>,
}

type Response = Option<(u16, Vec<u8>)>;

impl Server {
    fn start(answer: impl Fn(&str) -> Response + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}/symbols", listener.local_addr().expect("an address"));
        let requests = Arc::new(AtomicUsize::new(0));
        let (counter, answer) = (requests.clone(), Arc::new(answer));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                counter.fetch_add(1, Ordering::SeqCst);
                let answer = answer.clone();
                thread::spawn(move || respond(stream, &*answer));
            }
        });
        Self { url, requests }
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

fn respond(mut stream: TcpStream, answer: &dyn Fn(&str) -> Response) {
    let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
    let request = lines.next().unwrap_or_default();
    lines.by_ref().find(String::is_empty);
    let path = request.split(' ').nth(1).unwrap_or_default();
    let Some((status, body)) = answer(path) else {
        thread::sleep(PATIENCE);
        return;
    };
    let head = format!(
        "HTTP/1.1 {status} X\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
}

/// A cache folder, and sessions that use it before the servers.
struct Cache(TempDir);

impl Cache {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("temporary folder"))
    }

    fn symbolizer(&self, servers: &[&str], download_timeout: Duration) -> Symbolizer {
        let cache = self.0.path().display();
        let entries: Vec<_> = servers.iter().map(|url| format!("srv*{cache}*{url}")).collect();
        let options = SymbolizerOptions { symcache_folder: None, download_timeout };
        Symbolizer::new(SymbolPath::parse(&entries.join(";")), options)
    }
}

fn pdb() -> TestPdb {
    TestPdb::new(&[(0x1010, "NtOpen")])
}

fn is_named(symbolizer: &Symbolizer, pdb_name: &str) -> bool {
    symbolizer.resolve(&pdb().module(pdb_name), &[0x1010]).iter().any(Option::is_some)
}

/// Requests to the loopback interface would go to the proxy.
fn behind_proxy() -> bool {
    ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"]
        .iter()
        .any(|name| std::env::var_os(name).is_some())
}

fn delivering() -> Server {
    let path = format!("/symbols/{}", pdb().store_path("a.pdb"));
    Server::start(move |asked| {
        Some(if asked == path { (200, pdb().bytes()) } else { (404, Vec::new()) })
    })
}

#[test]
fn a_pdb_is_downloaded_once_into_the_cache() {
    if behind_proxy() {
        return;
    }
    let (cache, server) = (Cache::new(), delivering());
    let symbolizer = cache.symbolizer(&[&server.url], PATIENCE);
    assert!(is_named(&symbolizer, "a.pdb"), "{:?}", symbolizer.report());
    let stored = cache.0.path().join(pdb().store_path("a.pdb"));
    assert!(fs::read(stored).is_ok_and(|bytes| bytes == pdb().bytes()));

    let requests = server.requests();
    assert!(is_named(&cache.symbolizer(&[&server.url], PATIENCE), "a.pdb"));
    assert_eq!(server.requests(), requests);
}

#[test]
fn a_file_the_server_does_not_have_is_no_failure_of_the_server() {
    if behind_proxy() {
        return;
    }
    let (cache, server) = (Cache::new(), delivering());
    let symbolizer = cache.symbolizer(&[&server.url], PATIENCE);
    assert!(!is_named(&symbolizer, "b.pdb"));
    let report = symbolizer.report().remove(0);
    assert_eq!((report.outcome, report.failures), (Outcome::NotFound, Vec::new()));
    assert!(is_named(&symbolizer, "a.pdb"), "the server is asked again");
}

#[test]
fn a_failure_is_remembered_for_the_session() {
    if behind_proxy() {
        return;
    }
    let (cache, server) = (Cache::new(), Server::start(|_| Some((503, Vec::new()))));
    let symbolizer = cache.symbolizer(&[&server.url], PATIENCE);
    assert!(!is_named(&symbolizer, "a.pdb"));
    let requests = server.requests();
    assert!(!is_named(&symbolizer, "a.pdb"));
    assert_eq!(server.requests(), requests);
    let line = symbolizer.report().remove(0).to_string();
    assert!(line.contains(&server.url) && line.contains("503"), "{line}");
}

#[test]
fn a_download_of_another_build_is_refused() {
    if behind_proxy() {
        return;
    }
    let other = TestPdb { age: 9, ..pdb() };
    let server = Server::start(move |path| {
        Some(if path.ends_with(".pdb") { (200, other.bytes()) } else { (404, Vec::new()) })
    });
    let symbolizer = Cache::new().symbolizer(&[&server.url], PATIENCE);
    assert!(!is_named(&symbolizer, "a.pdb"));
    assert_eq!(symbolizer.report().remove(0).refused.len(), 1);
}

#[test]
fn a_silent_server_is_waited_for_once_and_does_not_hide_the_next_one() {
    if behind_proxy() {
        return;
    }
    let (cache, silent, good) = (Cache::new(), Server::start(|_| None), delivering());
    let symbolizer = cache.symbolizer(&[&silent.url, &good.url], TIMEOUT);
    let start = Instant::now();
    assert!(is_named(&symbolizer, "a.pdb"), "{:?}", symbolizer.report());
    let asked = silent.requests();
    assert!(start.elapsed() >= TIMEOUT && start.elapsed() < TIMEOUT * 10);

    for name in ["b.pdb", "c.pdb", "d.pdb", "e.pdb"] {
        assert!(!is_named(&symbolizer, name));
    }
    assert_eq!(silent.requests(), asked);
    let line = symbolizer.report().pop().map(|report| report.to_string()).unwrap_or_default();
    assert!(line.contains(&silent.url) && line.contains("not asked again"), "{line}");
}

#[test]
fn a_server_out_of_reach_is_reported_and_given_up() {
    if behind_proxy() {
        return;
    }
    let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let url = format!("http://{}", port.expect("a port that is free again"));
    let symbolizer = Cache::new().symbolizer(&[&url], PATIENCE);
    for (name, reason) in [("a.pdb", "refused"), ("b.pdb", "not asked again")] {
        assert!(!is_named(&symbolizer, name));
        let line = symbolizer.report().pop().map(|report| report.to_string()).unwrap_or_default();
        assert!(line.contains(&url) && line.contains(reason), "{line}");
    }
}
