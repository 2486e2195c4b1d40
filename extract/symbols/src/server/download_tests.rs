//! Tests of downloads: concurrent, continued, limited, cancelled.

use std::fs;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use handlescope_model::Cancel;

use crate::fixture::{TestPdb, cabinet, gzip};
use crate::server::test_server::*;
use crate::*;

const TAG: (&str, &str) = ("ETag", "\"v1\"");

/// Sends only the first half of the file unless the request is for a range, which it answers fully.
fn breaking_off(file: Vec<u8>, headers: &'static [(&'static str, &'static str)]) -> Server {
    Server::with_pdbs(move |request| match request.range_start() {
        Some(start) => Reply::part(&file, start, headers),
        None => Reply::new(200, headers, &file).cut(file.len() / 2),
    })
}

#[test]
fn a_broken_download_is_continued() {
    for headers in [&[][..], &[TAG], &[("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT")]] {
        let (cache, server) = (Cache::new(), breaking_off(pdb().bytes(), headers));
        let symbolizer = cache.session(&[&server]);
        assert!(is_named(&symbolizer, "a.pdb"), "{:?}", symbolizer.report());
        assert!(cache.holds("a.pdb") && cache.left_overs("a.pdb").is_empty());
        let request = server.received();
        assert_eq!(request.len(), 2);
        assert_eq!(request[1].range_start(), Some(pdb().bytes().len() / 2));
        assert_eq!(request[1].header("if-range"), headers.first().map_or("", |(_, value)| value));
    }
}

#[test]
fn a_compressed_download_is_continued_too() {
    let packed = gzip(&pdb().bytes());
    let (cache, server) = (Cache::new(), breaking_off(packed, &[("Content-Encoding", "gzip")]));
    assert!(is_named(&cache.session(&[&server]), "a.pdb"));
    assert!(cache.holds("a.pdb") && server.requests() == 2);
}

#[test]
fn the_next_session_fetches_only_missing_files() {
    let is_well = Arc::new(AtomicBool::new(false));
    let asks = is_well.clone();
    let server = Server::with_pdbs(move |request| {
        let file = pdb().bytes();
        match request.range_start() {
            None => Reply::new(200, &[TAG], &file).cut(1000),
            Some(_) if !asks.load(Ordering::SeqCst) => Reply::new(500, &[], b""),
            Some(start) => Reply::part(&file, start, &[TAG]),
        }
    });
    let cache = Cache::new();
    let symbolizer = cache.session(&[&server]);
    assert!(!is_named(&symbolizer, "a.pdb"));
    assert!(last_failure(&symbolizer).contains("500"));
    assert_eq!(cache.left_overs("a.pdb"), ["a.pdb.partial", "a.pdb.partial.source"]);
    assert!(!cache.stored("a.pdb").exists());

    is_well.store(true, Ordering::SeqCst);
    assert!(is_named(&cache.session(&[&server]), "a.pdb"));
    assert!(cache.holds("a.pdb") && cache.left_overs("a.pdb").is_empty());
    let request = server.received();
    assert_eq!(
        request.iter().filter_map(ReceivedRequest::range_start).collect::<Vec<_>>(),
        [1000, 1000]
    );
}

#[test]
fn a_server_that_can_not_continue_starts_again() {
    let (file, changed) = (pdb().bytes(), vec![b'x'; pdb().bytes().len() + 1]);
    let elsewhere = [("Content-Range", "bytes 0-9/9999")];
    let ways: [Reply; 4] = [
        Reply::ok(&file),
        Reply::new(416, &[], b""),
        Reply::part(&changed, file.len() / 2, &[("ETag", "\"v2\"")]),
        Reply::new(206, &elsewhere, b"0123456789"),
    ];
    for (number, way) in ways.into_iter().enumerate() {
        let breaks = AtomicBool::new(true);
        let file = file.clone();
        let server = Server::with_pdbs(move |request| match request.range_start() {
            Some(_) => way.clone(),
            None if breaks.swap(false, Ordering::SeqCst) => {
                Reply::new(200, &[TAG], &file).cut(file.len() / 2)
            }
            None => Reply::new(200, &[TAG], &file),
        });
        let cache = Cache::new();
        let symbolizer = cache.session(&[&server]);
        assert!(is_named(&symbolizer, "a.pdb"), "way {number}: {:?}", symbolizer.report());
        assert!(cache.holds("a.pdb") && cache.left_overs("a.pdb").is_empty());
    }
}

#[test]
fn a_server_that_breaks_off_for_ever_is_a_failure() {
    let server = Server::with_pdbs(|_| Reply::ok(&pdb().bytes()).cut(100));
    let symbolizer = Cache::new().session(&[&server]);
    assert!(!is_named(&symbolizer, "a.pdb"));
    assert!(last_failure(&symbolizer).contains("broke off"));
    assert!(server.requests() < 20);
}

#[test]
fn a_length_that_is_not_the_body_s_is_a_failure_or_a_damaged_file() {
    let short =
        Server::with_pdbs(|_| Reply::new(200, &[("Content-Length", "1000")], &pdb().bytes()));
    let long =
        Server::with_pdbs(|_| Reply::new(200, &[("Content-Length", "99999")], &pdb().bytes()));
    for server in [&short, &long] {
        let cache = Cache::new();
        let symbolizer = cache.session(&[server]);
        assert!(!is_named(&symbolizer, "a.pdb"));
        let report = last_report(&symbolizer);
        assert_eq!(report.failures.len() + report.refused.len(), 1, "{report}");
        assert!(!cache.stored("a.pdb").exists());
    }
    let unsaid = Server::with_pdbs(|_| Reply::unsized_with(200, &[], &pdb().bytes()));
    assert!(is_named(&Cache::new().session(&[&unsaid]), "a.pdb"));
}

#[test]
fn a_file_too_large_is_refused_however_it_is_sent() {
    const LIMIT: usize = 100_000;
    let mut huge = pdb().bytes();
    huge.resize(LIMIT + 1, 0);
    let said = huge.clone();
    let of_cabinet = cabinet("a.pdb", &huge);
    let of_gzip = gzip(&huge);
    let servers = [
        Server::with_pdbs(move |_| Reply::ok(&said)),
        Server::with_pdbs(move |_| Reply::unsized_with(200, &[], &huge)),
        Server::with_pdbs(move |_| Reply::new(200, &[("Content-Encoding", "gzip")], &of_gzip)),
        Server::start(move |request| {
            if request.path.ends_with(".pd_") { Reply::ok(&of_cabinet) } else { Reply::missing() }
        }),
    ];
    for server in &servers {
        let cache = Cache::new();
        let max_file_bytes = LIMIT as u64;
        let options = SymbolizerOptions { max_file_bytes, ..SymbolizerOptions::default() };
        let symbolizer = cache.with_options(&[&server.url], options);
        assert!(!is_named(&symbolizer, "a.pdb"));
        let error = last_refusal(&symbolizer);
        assert!(matches!(*error, SymbolFileError::TooLarge { .. }), "{error}");
        assert!(!cache.stored("a.pdb").exists() && cache.left_overs("a.pdb").is_empty());
    }
}

#[test]
fn all_downloads_of_a_run_share_a_budget_also_on_another_symbol_path() {
    const LIMIT: u64 = 100_000;
    let mut endless = pdb().bytes();
    endless.resize(30_000, 0);
    let mut bomb = pdb().bytes();
    bomb.resize(60_000, 0);
    let bomb = gzip(&bomb);
    let servers = [
        Server::with_pdbs(move |_| Reply::unsized_with(200, &[], &endless)),
        Server::with_pdbs(move |_| {
            Reply::unsized_with(200, &[("Content-Encoding", "gzip")], &bomb)
        }),
    ];
    for server in &servers {
        let cache = Cache::new();
        let download_budget = DownloadBudget::new(LIMIT);
        let options = SymbolizerOptions { download_budget, ..SymbolizerOptions::default() };
        let symbolizer = cache.with_options(&[&server.url], options.clone());
        // From another build than what is sent, so nothing of it is kept.
        let request: Vec<ModuleIdentity> =
            names(20).iter().map(|name| TestPdb { age: 9, ..pdb() }.module(name)).collect();
        symbolizer.prepare(&request, &NoSymbolObserver, &Cancel::default());
        let failures = |symbolizer: &Symbolizer| {
            let reports = symbolizer.report().into_iter();
            reports.flat_map(|report| report.failures).collect::<Vec<_>>()
        };
        for module in &request {
            assert!(symbolizer.resolve(module, &[0x1010])[0].is_empty());
        }
        let [failure] = &failures(&symbolizer)[..] else { panic!("{:?}", symbolizer.report()) };
        assert!(failure.reason.contains("100000 bytes"), "{failure:?}");
        assert!(server.requests() < request.len());
        assert!(names(20).iter().all(|name| cache.left_overs(name).is_empty()));

        let requests = server.requests();
        let second = cache.with_options(&[&server.url, "http://127.0.0.1:1/"], options);
        assert!(!is_named(&second, "a.pdb"));
        assert!(last_report(&second).to_string().contains("100000 bytes"), "{:?}", second.report());
        assert!(server.requests() <= requests + 1);
        second.forget_missing();
        assert!(is_named(&second, "a.pdb"), "a new budget");
    }
}

/// Counts what it observes; cancels on the first progress if asked to.
#[derive(Default)]
struct CountingObserver {
    planned: Mutex<usize>,
    started: Mutex<Vec<String>>,
    bytes: Mutex<u64>,
    finished: Mutex<usize>,
    cancels_on_progress: bool,
    cancel: Cancel,
}

impl SymbolObserver for CountingObserver {
    fn planned(&self, files: usize) {
        *self.planned.lock().expect("whole") += files;
    }

    fn started(&self, pdb: &PdbIdentity) {
        self.started.lock().expect("whole").push(pdb.name.clone());
    }

    fn progress(&self, _pdb: &PdbIdentity, bytes: u64, total: Option<u64>) {
        assert!(total.is_none_or(|total| bytes <= total));
        *self.bytes.lock().expect("whole") = bytes;
        if self.cancels_on_progress && bytes > 0 {
            self.cancel.cancel();
        }
    }

    fn finished(&self, _pdb: &PdbIdentity) {
        *self.finished.lock().expect("whole") += 1;
    }
}

#[test]
fn many_pdbs_come_at_once_and_then_no_request_is_sent_any_more() {
    const TOGETHER: usize = 8;
    // The server answers only once eight requests are waiting. If they came one by one, they would wait in vain.
    let waiting = Arc::new((Mutex::new(0), Condvar::new()));
    let (most, open) = (Arc::new(AtomicUsize::new(0)), AtomicUsize::new(0));
    let peak = most.clone();
    let server = Server::with_pdbs(move |request| {
        peak.fetch_max(open.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        let (count, all_there) = &*waiting;
        let mut count = count.lock().expect("count");
        *count += 1;
        all_there.notify_all();
        let (count, wait) = all_there
            .wait_timeout_while(count, LONG_TIMEOUT, |count| *count < TOGETHER)
            .expect("count");
        drop(count);
        open.fetch_sub(1, Ordering::SeqCst);
        if wait.timed_out() || request.path.contains("7.pdb") {
            Reply::missing()
        } else {
            Reply::ok(&pdb().bytes())
        }
    });
    let cache = Cache::new();
    let symbolizer = cache.session(&[&server]);
    let (observer, names) = (CountingObserver::default(), names(24));
    let twice = [modules(&names), modules(&names)].concat();
    symbolizer.prepare(&twice, &observer, &observer.cancel);
    assert!(most.load(Ordering::SeqCst) <= TOGETHER);
    assert_eq!(*observer.planned.lock().expect("whole"), 24);
    assert_eq!(observer.started.lock().expect("whole").len(), 24);
    assert_eq!(*observer.bytes.lock().expect("whole"), pdb().bytes().len() as u64);
    assert_eq!(*observer.finished.lock().expect("whole"), 24);

    let requests = server.requests();
    for name in &names {
        assert_eq!(is_named(&symbolizer, name), !name.contains('7'), "{name}");
    }
    let reports = symbolizer.report();
    // 7.pdb and 17.pdb are missing.
    assert_eq!(
        reports
            .iter()
            .filter(|report| matches!(report.origin, Some(SymbolOrigin::Server(_))))
            .count(),
        22
    );
    assert_eq!(reports.iter().filter(|report| !report.missing.is_empty()).count(), 2);
    symbolizer.prepare(&modules(&names), &observer, &observer.cancel);
    let next = cache.session(&[&server]);
    next.prepare(&modules(&names), &NoSymbolObserver, &Cancel::default());
    assert!(is_named(&next, "0.pdb"));
    assert_eq!(server.requests(), requests);
}

/// Replies of a server that does not deliver the file.
fn refusals() -> Vec<Reply> {
    vec![
        Reply::missing(),
        Reply::new(503, &[], b""),
        Reply::ok(b"<html>Please log in</html>"),
        Reply::new(200, &[TAG], &pdb().bytes()).cut(1000).then_hang(),
    ]
}

#[test]
fn a_file_that_another_process_downloads_meanwhile_is_taken_whatever_the_server_says() {
    for (number, refusal) in refusals().into_iter().enumerate() {
        let cache = Cache::new();
        let stored = cache.stored("a.pdb");
        let server = Server::with_pdbs(move |_| {
            write(&stored, &pdb().bytes());
            refusal.clone()
        });
        let symbolizer = cache.symbolizer(&[&server.url], TIMEOUT);
        assert!(is_named(&symbolizer, "a.pdb"), "{number}: {:?}", symbolizer.report());
        assert_eq!(last_report(&symbolizer).failures, [], "{number}");
        assert!(cache.holds("a.pdb") && cache.left_overs("a.pdb").is_empty(), "{number}");
        let next = cache.session(&[&server]);
        assert!(is_named(&next, "a.pdb"));
    }
}

#[test]
fn a_file_that_another_process_downloads_is_taken_though_the_server_was_given_up() {
    let (near, far) = (Cache::new(), Cache::new());
    let stored = far.stored("a.pdb");
    let first = Server::with_pdbs(move |request| {
        if request.path.ends_with("/a.pdb") {
            write(&stored, &pdb().bytes());
        }
        Reply::missing()
    });
    let dead = Server::start(|_| Reply::new(500, &[], b""));
    let store =
        |cache: &Cache, server: &Server| format!("srv*{}*{}", cache.0.path().display(), server.url);
    let path = format!("{};{}", store(&near, &first), store(&far, &dead));
    let symbolizer = Symbolizer::new(SymbolPath::parse(&path), SymbolizerOptions::default());
    assert!(names(8).iter().all(|name| !is_named(&symbolizer, name)));
    assert!(is_named(&symbolizer, "a.pdb"), "{:?}", symbolizer.report());
    assert_eq!(dead.requests(), 8);
}

#[test]
fn a_file_in_a_folder_is_not_requested() {
    let server = Server::start(|_| Reply::missing());
    let folder = tempfile::tempdir().expect("temporary folder");
    write(&folder.path().join("a.pdb"), &pdb().bytes());
    let (plain, cache) = (folder.path().display(), Cache::new());
    let path = format!("{plain};srv*{}*{}", cache.0.path().display(), server.url);
    let symbolizer = Symbolizer::new(SymbolPath::parse(&path), SymbolizerOptions::default());
    symbolizer.prepare(&[pdb().module("a.pdb")], &NoSymbolObserver, &Cancel::default());
    assert_eq!(server.requests(), 0);
    assert!(is_named(&symbolizer, "a.pdb"));
    let origin = Some(SymbolOrigin::Folder(folder.path().to_owned()));
    assert_eq!(last_report(&symbolizer).origin, origin);
}

#[test]
fn a_cancelled_download_goes_on_later() {
    let server = Server::with_pdbs(|request| match request.range_start() {
        None => Reply::new(200, &[TAG], &pdb().bytes()).cut(1000).then_hang(),
        Some(start) => Reply::part(&pdb().bytes(), start, &[TAG]),
    });
    let cache = Cache::new();
    let symbolizer = cache.session(&[&server]);
    let observer = CountingObserver { cancels_on_progress: true, ..CountingObserver::default() };
    symbolizer.prepare(&modules(&names(30)), &observer, &observer.cancel);
    assert_eq!(*observer.finished.lock().expect("whole"), 0);
    assert!(server.requests() <= 8);

    assert!(is_named(&symbolizer, "0.pdb"), "{:?}", symbolizer.report());
    assert_eq!(server.received().last().and_then(ReceivedRequest::range_start), Some(1000));
}

#[test]
fn stores_hold_pdbs_compressed_or_elsewhere() {
    let store = tempfile::tempdir().expect("temporary folder");
    let cache = Cache::new();
    let stored = |name: &str| store.path().join(pdb().store_path(name));
    write(&stored("a.pdb").with_extension("pd_"), &cabinet("x", &pdb().bytes()));
    write(&stored("b.pdb").with_extension("pd_"), b"MSCF and more");
    let elsewhere = store.path().join("elsewhere.pdb");
    write(&elsewhere, &pdb().bytes());
    let pointer = format!("PATH:{}", elsewhere.display());
    write(&stored("c.pdb").with_file_name("file.ptr"), pointer.as_bytes());
    write(&stored("d.pdb").with_file_name("file.ptr"), b"MSG: never stored");

    let path = format!("srv*{}*{}", cache.0.path().display(), store.path().display());
    let symbolizer = Symbolizer::new(SymbolPath::parse(&path), SymbolizerOptions::default());
    assert!(is_named(&symbolizer, "a.pdb"), "{:?}", symbolizer.report());
    assert!(cache.holds("a.pdb"));
    assert!(!is_named(&symbolizer, "b.pdb"));
    assert!(matches!(*last_refusal(&symbolizer), SymbolFileError::Malformed { .. }));
    assert!(is_named(&symbolizer, "c.pdb"), "{:?}", symbolizer.report());
    assert!(!is_named(&symbolizer, "d.pdb"));
    assert!(last_refusal(&symbolizer).to_string().contains("never stored"));
    assert!(
        fs::read_dir(stored("a.pdb").parent().expect("store")).is_ok_and(|dir| dir.count() == 1)
    );
}
