//! Tests of symbol servers: their files are found and their errors reported.

use std::fs;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::fixture::{TestPdb, cabinet, gzip};
use crate::server::test_server::*;
use crate::*;

#[test]
fn a_pdb_is_downloaded_once_into_the_cache() {
    let (cache, server) = (Cache::new(), Server::delivering("a.pdb"));
    let symbolizer = cache.session(&[&server]);
    assert!(is_named(&symbolizer, "a.pdb"), "{:?}", symbolizer.report());
    assert!(cache.holds("a.pdb") && cache.left_overs("a.pdb").is_empty());
    let origin = Some(SymbolOrigin::Server(server.url.clone()));
    assert_eq!(last_report(&symbolizer).origin, origin);

    let requests = server.requests();
    let symbolizer = cache.session(&[&server]);
    assert!(is_named(&symbolizer, "a.pdb"));
    assert_eq!(server.requests(), requests);
    let origin = Some(SymbolOrigin::Cache(cache.0.path().to_owned()));
    assert_eq!(last_report(&symbolizer).origin, origin);
}

#[test]
fn every_cache_in_front_of_the_server_gets_the_pdb() {
    let (near, far, server) = (Cache::new(), Cache::new(), Server::delivering("a.pdb"));
    let [first, second] = [&near, &far].map(|cache| cache.0.path().display());
    let path = SymbolPath::parse(&format!("cache*{first};srv*{second}*{}", server.url));
    assert!(is_named(&Symbolizer::new(path, SymbolizerOptions::default()), "a.pdb"));
    assert!(near.holds("a.pdb") && far.holds("a.pdb"));
}

#[test]
fn a_compressed_pdb_is_unpacked() {
    let path = pdb().store_path("a.pdb").replace("/a.pdb", "/a.pd_");
    let packed = cabinet(r"..\..\evil.pdb", &pdb().bytes());
    let (cache, server) = (Cache::new(), Server::with(vec![(path, packed)]));
    let symbolizer = cache.session(&[&server]);
    assert!(is_named(&symbolizer, "a.pdb"), "{:?}", symbolizer.report());
    assert!(cache.holds("a.pdb") && cache.left_overs("a.pdb").is_empty());
    assert_eq!(fs::read_dir(cache.0.path()).expect("cache").count(), 2, "a.pdb and symcaches");
}

#[test]
fn a_body_that_the_server_compresses_is_unpacked() {
    let packed = gzip(&pdb().bytes());
    let server = Server::with_pdbs(move |request| {
        assert_eq!(request.header("accept-encoding"), "gzip");
        Reply::new(200, &[("Content-Encoding", "gzip")], &packed)
    });
    let cache = Cache::new();
    assert!(is_named(&cache.session(&[&server]), "a.pdb"));
    assert!(cache.holds("a.pdb") && cache.left_overs("a.pdb").is_empty());

    let unknown = Server::with_pdbs(|_| Reply::new(200, &[("Content-Encoding", "br")], b"x"));
    let symbolizer = Cache::new().session(&[&unknown]);
    assert!(!is_named(&symbolizer, "a.pdb"));
    assert!(last_failure(&symbolizer).contains("encoding"));
}

#[test]
fn a_damaged_or_empty_cabinet_is_an_error_in_the_report() {
    let mut damaged = cabinet("a.pdb", &pdb().bytes());
    let middle = damaged.len() / 2;
    damaged[middle] ^= 0xff;
    for packed in [damaged.clone(), damaged[..60].to_vec(), b"MSCF".to_vec(), b"<html>".to_vec()] {
        let server = Server::start(move |request| {
            if request.path.ends_with(".pd_") { Reply::ok(&packed) } else { Reply::missing() }
        });
        let cache = Cache::new();
        let symbolizer = cache.session(&[&server]);
        assert!(!is_named(&symbolizer, "a.pdb"));
        let error = last_refusal(&symbolizer);
        assert!(matches!(*error, SymbolFileError::Malformed { .. }), "{error}");
        assert!(error.to_string().starts_with(&server.url), "{error}");
        assert!(cache.left_overs("a.pdb").is_empty());
    }
}

#[test]
fn a_pointer_leads_to_a_file_elsewhere_or_says_why_not() {
    let share = tempfile::tempdir().expect("temporary folder");
    let file = share.path().join("build 7.pdb");
    write(&file, &pdb().bytes());
    let answers = [
        (format!("PATH:{}", file.display()), Ok(())),
        ("MSG: not indexed".to_owned(), Err("not indexed")),
        (r"PATH:\\elsewhere\share\a.pdb".to_owned(), Err("elsewhere")),
        ("PATH:/does/not/exist.pdb".to_owned(), Err("cannot be reached")),
    ];
    for (text, expected) in answers {
        let server = Server::start(move |request| {
            let is_pointer = request.path.ends_with("/file.ptr");
            if is_pointer { Reply::ok(text.as_bytes()) } else { Reply::missing() }
        });
        let cache = Cache::new();
        let symbolizer = cache.session(&[&server]);
        assert_eq!(is_named(&symbolizer, "a.pdb"), expected.is_ok());
        match expected {
            Ok(()) => assert!(!cache.stored("a.pdb").exists(), "it stays where it is"),
            Err(reason) => {
                let error = last_refusal(&symbolizer);
                assert!(matches!(*error, SymbolFileError::Pointer { .. }), "{error}");
                assert!(error.to_string().contains(reason), "{error}");
            }
        }
    }
}

#[test]
fn a_file_the_server_does_not_have_is_no_failure_of_the_server() {
    let (cache, server) = (Cache::new(), Server::delivering("a.pdb"));
    let symbolizer = cache.session(&[&server]);
    assert!(!is_named(&symbolizer, "b.pdb"));
    let report = last_report(&symbolizer);
    assert_eq!((report.outcome, report.failures), (SearchOutcome::NotFound, Vec::new()));
    let url = server.url.clone();
    assert_eq!(
        report.missing,
        [MissingAt { server: url, is_remembered: false, is_refused: false }]
    );
    assert!(!cache.0.path().join("b.pdb").exists(), "it leaves no folder");
    assert!(is_named(&symbolizer, "a.pdb"), "the server is asked again");
}

#[test]
fn a_file_that_a_server_does_not_have_is_not_requested_at_every_start() {
    let (cache, server) = (Cache::new(), Server::start(|_| Reply::missing()));
    assert!(!is_named(&cache.session(&[&server]), "a.pdb"));
    let requests = server.requested_files().len();

    let symbolizer = cache.session(&[&server]);
    assert!(!is_named(&symbolizer, "a.pdb"));
    assert_eq!(server.requested_files().len(), requests);
    let url = server.url.clone();
    assert_eq!(
        last_report(&symbolizer).missing,
        [MissingAt { server: url, is_remembered: true, is_refused: false }]
    );
    assert!(!is_named(&symbolizer, "b.pdb"));
    assert_eq!(server.requested_files().len(), 2 * requests, "another pdb");

    symbolizer.forget_missing();
    assert!(!is_named(&symbolizer, "a.pdb"));
    assert_eq!(server.requested_files().len(), 3 * requests);

    let options = SymbolizerOptions { missing_for: Duration::ZERO, ..Default::default() };
    assert!(!is_named(&cache.with_options(&[&server.url], options), "a.pdb"));
    assert_eq!(server.requested_files().len(), 4 * requests);
}

#[test]
fn a_file_that_appears_later_is_fetched_when_missing_files_are_forgotten() {
    let has_it = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let asks = has_it.clone();
    let server = Server::with_pdbs(move |_| {
        let has_it = asks.load(std::sync::atomic::Ordering::SeqCst);
        if has_it { Reply::ok(&pdb().bytes()) } else { Reply::missing() }
    });
    let symbolizer = Cache::new().session(&[&server]);
    assert!(!is_named(&symbolizer, "a.pdb"));
    has_it.store(true, std::sync::atomic::Ordering::SeqCst);
    assert!(!is_named(&symbolizer, "a.pdb"));
    symbolizer.forget_missing();
    assert!(is_named(&symbolizer, "a.pdb"));
}

#[test]
fn a_failure_is_remembered_for_the_session_only() {
    let (cache, server) = (Cache::new(), Server::start(|_| Reply::new(503, &[], b"")));
    let symbolizer = cache.session(&[&server]);
    assert!(!is_named(&symbolizer, "a.pdb"));
    let requests = server.requests();
    assert!(!is_named(&symbolizer, "a.pdb"));
    assert_eq!(server.requests(), requests);
    let line = last_report(&symbolizer).to_string();
    assert!(line.contains(&server.url) && line.contains("503"), "{line}");

    assert!(!is_named(&cache.session(&[&server]), "a.pdb"));
    assert_eq!(server.requests(), 2 * requests);
}

#[test]
fn a_server_that_always_fails_is_given_up() {
    let server = Server::start(|_| Reply::new(500, &[], b""));
    let symbolizer = Cache::new().session(&[&server]);
    for number in 0..20 {
        assert!(!is_named(&symbolizer, &format!("{number}.pdb")));
    }
    assert_eq!(server.requests(), 8);
    let report = last_report(&symbolizer);
    assert_eq!((report.failures, report.skipped), (Vec::new(), vec![server.url.clone()]));
}

#[test]
fn a_download_of_another_build_is_refused_and_not_kept() {
    let old_pdb = TestPdb { age: 9, ..pdb() };
    let server = Server::with_pdbs(move |_| Reply::ok(&old_pdb.bytes()));
    let cache = Cache::new();
    let symbolizer = cache.session(&[&server]);
    assert!(!is_named(&symbolizer, "a.pdb"));
    let error = last_refusal(&symbolizer);
    assert!(matches!(*error, SymbolFileError::WrongIdentity { .. }), "{error}");
    assert!(!cache.stored("a.pdb").exists() && cache.left_overs("a.pdb").is_empty());

    let requests = server.requests();
    assert!(!is_named(&cache.session(&[&server]), "a.pdb"));
    assert_eq!(server.requests(), requests, "it is not downloaded at every start");
}

#[test]
fn a_web_page_or_a_damaged_pdb_is_refused_and_not_kept() {
    let (whole, mut damaged) = (pdb().bytes(), pdb().bytes());
    damaged[0x20..0x40].fill(0xff);
    for body in [b"<html>Please log in</html>".to_vec(), damaged, whole[..700].to_vec(), vec![]] {
        let server = Server::with_pdbs(move |_| Reply::ok(&body));
        let cache = Cache::new();
        let symbolizer = cache.session(&[&server]);
        assert!(!is_named(&symbolizer, "a.pdb"));
        let error = last_refusal(&symbolizer);
        assert!(matches!(*error, SymbolFileError::Malformed { .. }), "{error}");
        assert!(!cache.stored("a.pdb").exists() && cache.left_overs("a.pdb").is_empty());
    }
}

#[test]
fn a_server_that_speaks_no_http_is_a_failure() {
    let garbage: [&[u8]; 4] =
        [b"\0\xff\x13garbage\r\n\r\n", b"", b"HTTP/1.1 ", b"HTTP/9.9 999 ?\r\n"];
    for bytes in garbage {
        let server = Server::start(move |_| Reply::garbage(bytes));
        let symbolizer = Cache::new().session(&[&server]);
        assert!(!is_named(&symbolizer, "a.pdb"));
        assert!(!last_failure(&symbolizer).is_empty());
    }
}

#[test]
fn redirects_are_followed_also_to_another_host_but_not_in_circles() {
    let store = Server::delivering("a.pdb");
    let target = store.url.clone();
    for status in [301, 302, 303, 307, 308] {
        let target = target.clone();
        let server = Server::start(move |request| match request.path.strip_prefix("/symbols/") {
            Some(rest) => Reply::redirect(status, &format!("/moved/{rest}")),
            None => Reply::redirect(status, &request.path.replace("/moved", &target)),
        });
        let cache = Cache::new();
        assert!(is_named(&cache.session(&[&server]), "a.pdb"), "{status}");
        assert!(cache.holds("a.pdb"));
    }
    let circle = Server::start(|request| Reply::redirect(302, &request.path));
    let file = Server::start(|_| Reply::redirect(302, "file:///etc/passwd"));
    for server in [&circle, &file] {
        let symbolizer = Cache::new().session(&[server]);
        assert!(!is_named(&symbolizer, "a.pdb"));
        let reason = last_failure(&symbolizer);
        assert!(reason.contains("redirect") || reason.contains("302"), "{reason}");
        assert!(server.requests() < 20);
    }
}

#[test]
fn a_silent_server_is_waited_for_once_and_does_not_hide_the_next_server() {
    let (silent, good) = (Server::start(|_| Reply::silence()), Server::delivering("a.pdb"));
    let cache = Cache::new();
    let symbolizer = cache.symbolizer(&[&silent.url, &good.url], TIMEOUT);
    let start = Instant::now();
    assert!(is_named(&symbolizer, "a.pdb"), "{:?}", symbolizer.report());
    assert!(start.elapsed() >= TIMEOUT && start.elapsed() < LONG_TIMEOUT);
    assert!(last_failure(&symbolizer).contains("no answer"));

    for name in ["b.pdb", "c.pdb", "d.pdb", "e.pdb"] {
        assert!(!is_named(&symbolizer, name));
        let report = last_report(&symbolizer);
        assert_eq!((report.failures.len(), &report.skipped), (0, &vec![silent.url.clone()]));
        assert!(report.to_string().contains("not asked again"), "{report}");
    }
    assert_eq!(silent.requests(), 1);
}

#[test]
fn a_server_out_of_reach_is_reported_and_given_up() {
    let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let url = format!("http://{}", port.expect("a port that is free again"));
    let symbolizer = Cache::new().symbolizer(&[&url], LONG_TIMEOUT);
    for (name, reason) in [("a.pdb", "refused"), ("b.pdb", "not asked again")] {
        assert!(!is_named(&symbolizer, name));
        let line = last_report(&symbolizer).to_string();
        assert!(line.contains(&url) && line.contains(reason), "{line}");
    }
}

#[test]
fn a_hostile_name_asks_no_server_for_anything_else() {
    let (cache, server) = (Cache::new(), Server::start(|_| Reply::missing()));
    let symbolizer = cache.session(&[&server]);
    for name in ["..", r"..\..\..", "a.pdb/..", "?", "a\r\nHost: x"] {
        assert!(!is_named(&symbolizer, name));
    }
    assert_eq!(server.requests(), 0);
    assert!(!is_named(&symbolizer, "%2e%2e%2f#é.pdb"));
    for path in server.requested_files() {
        assert!(path.starts_with("/symbols/%252e%252e%252f%23%C3%A9.pdb/"), "{path}");
    }
}
