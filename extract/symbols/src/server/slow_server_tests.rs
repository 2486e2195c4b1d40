//! Tests of dead and slow servers: waiting for them is bounded.

use std::thread;
use std::time::{Duration, Instant};

use handlescope_model::Cancel;

use crate::server::test_server::*;
use crate::speed::MinSpeed;
use crate::*;

const TAG: (&str, &str) = ("ETag", "\"v1\"");
const MIN_SPEED: MinSpeed = MinSpeed { bytes_per_second: 1024, over: Duration::from_millis(300) };

/// Starts a session that does not wait for slow servers.
fn impatient(cache: &Cache, servers: &[&str]) -> Symbolizer {
    let min_speed = MIN_SPEED;
    cache.with_options(servers, SymbolizerOptions { min_speed, ..SymbolizerOptions::default() })
}

#[test]
fn a_slow_server_is_waited_for_as_long_as_it_makes_progress() {
    let server =
        Server::with_pdbs(|_| Reply::ok(&pdb().bytes()).in_pieces(20, Duration::from_millis(5)));
    let cache = Cache::new();
    let min_speed = MinSpeed { bytes_per_second: 512, over: Duration::from_secs(1) };
    let options = SymbolizerOptions { min_speed, ..SymbolizerOptions::default() };
    let start = Instant::now();
    assert!(is_named(&cache.with_options(&[&server.url], options), "a.pdb"));
    assert!(cache.holds("a.pdb") && start.elapsed() > min_speed.over);
}

#[test]
fn a_server_that_stops_is_given_up() {
    let server = Server::with_pdbs(|_| Reply::ok(&pdb().bytes()).cut(700).then_hang());
    let cache = Cache::new();
    let symbolizer = cache.symbolizer(&[&server.url], TIMEOUT);
    let start = Instant::now();
    assert!(!is_named(&symbolizer, "a.pdb"));
    assert!(start.elapsed() < LONG_TIMEOUT);
    assert!(last_failure(&symbolizer).contains("stopped"), "{:?}", symbolizer.report());
    assert_eq!(cache.left_overs("a.pdb").len(), 2, "what is there stays");
}

#[test]
fn a_server_that_drips_is_given_up_and_the_next_session_goes_on() {
    let server = Server::with_pdbs(|request| match request.range_start() {
        None => Reply::new(200, &[TAG], &pdb().bytes()).in_pieces(1, Duration::from_millis(10)),
        Some(start) => Reply::part(&pdb().bytes(), start, &[TAG]),
    });
    let cache = Cache::new();
    let symbolizer = impatient(&cache, &[&server.url]);
    let start = Instant::now();
    assert!(!is_named(&symbolizer, "a.pdb"));
    assert!(start.elapsed() >= MIN_SPEED.over && start.elapsed() < LONG_TIMEOUT / 2);
    let reason = last_failure(&symbolizer);
    assert!(reason.contains("too slow") && reason.contains("bytes in 300ms"), "{reason}");
    assert_eq!(cache.left_overs("a.pdb"), ["a.pdb.partial", "a.pdb.partial.source"]);

    assert!(!is_named(&symbolizer, "b.pdb"));
    assert_eq!(last_report(&symbolizer).skipped, std::slice::from_ref(&server.url));
    assert_eq!(server.requests(), 1, "it is given up");

    let next = impatient(&cache, &[&server.url]);
    assert!(is_named(&next, "a.pdb"), "{:?}", next.report());
    assert!(cache.holds("a.pdb") && cache.left_overs("a.pdb").is_empty());
    assert!(
        server
            .received()
            .last()
            .and_then(ReceivedRequest::range_start)
            .is_some_and(|start| start > 0)
    );
}

#[test]
fn a_byte_now_and_then_in_many_requests_is_too_slow_as_well() {
    let server = Server::with_pdbs(|request| {
        let whole = match request.range_start() {
            None => Reply::new(200, &[TAG], &pdb().bytes()),
            Some(start) => Reply::part(&pdb().bytes(), start, &[TAG]),
        };
        whole.cut(1).in_pieces(1, Duration::from_millis(100))
    });
    let symbolizer = impatient(&Cache::new(), &[&server.url]);
    assert!(!is_named(&symbolizer, "a.pdb"));
    assert!(last_failure(&symbolizer).contains("too slow"), "{:?}", symbolizer.report());
    assert!(server.requests() < 8);
}

#[test]
fn of_many_modules_a_single_module_reports_that_the_server_is_dead() {
    let server = Server::start(|_| Reply::silence());
    let symbolizer = Cache::new().symbolizer(&[&server.url], TIMEOUT);
    let (names, start) = (names(100), Instant::now());
    symbolizer.prepare(&modules(&names), &NoSymbolObserver, &Cancel::default());
    for name in &names {
        assert!(!is_named(&symbolizer, name));
    }
    assert!(start.elapsed() < LONG_TIMEOUT);
    assert!(server.requests() <= 8);
    let reports = symbolizer.report();
    assert_eq!(reports.iter().map(|report| report.failures.len()).sum::<usize>(), 1);
    assert_eq!(reports.iter().map(|report| report.skipped.len()).sum::<usize>(), 99);
}

#[test]
fn each_of_several_dead_servers_is_waited_for_once_and_hides_no_server() {
    let silent = [(); 3].map(|()| Server::start(|_| Reply::silence()));
    let drips =
        Server::with_pdbs(|_| Reply::ok(&pdb().bytes()).in_pieces(1, Duration::from_millis(10)));
    let good = Server::delivering("39.pdb");
    let mut servers: Vec<&str> = silent.iter().map(|server| server.url.as_str()).collect();
    servers.extend([drips.url.as_str(), good.url.as_str()]);
    let download_timeout = Duration::from_millis(500);
    let options =
        SymbolizerOptions { download_timeout, min_speed: MIN_SPEED, ..Default::default() };
    let symbolizer = Cache::new().with_options(&servers, options);
    let requests: Vec<_> =
        modules(&names(40)).into_iter().map(|module| (module, vec![0x1010.into()])).collect();
    let start = Instant::now();
    let named = symbolizer.resolve_all(&requests, &NoSymbolObserver, &Cancel::default());
    // This takes 1.8 seconds if the machine has nothing else to do.
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    assert!(
        named.iter().enumerate().all(|(number, chains)| chains[0].is_empty() == (number != 39))
    );
    for server in silent.iter().chain([&drips]) {
        assert!(server.requests() <= 8, "as many as are asked for at once");
        let reports = symbolizer.report();
        let failures = reports.iter().flat_map(|report| &report.failures);
        assert_eq!(failures.filter(|failure| failure.location == server.url).count(), 1);
    }
}

#[test]
fn of_several_paths_on_a_host_that_hangs_a_single_path_is_requested() {
    let (silent, good) = (Server::start(|_| Reply::silence()), Server::delivering("a.pdb"));
    let paths = ["a", "b", "c"].map(|path| format!("{}/{path}", silent.url));
    let [a, b, c] = &paths;
    let symbolizer = Cache::new().symbolizer(&[a, b, c, &good.url], TIMEOUT);
    assert!(is_named(&symbolizer, "a.pdb"), "{:?}", symbolizer.report());
    let report = last_report(&symbolizer);
    assert_eq!(report.failures.iter().map(|failure| &failure.location).collect::<Vec<_>>(), [a]);
    assert_eq!(report.skipped, paths[1..]);
    assert_eq!(silent.requests(), 1);
}

#[test]
fn a_server_that_was_given_up_is_not_waited_for_again() {
    const LATE: Duration = Duration::from_secs(5);
    const DEAD: Duration = Duration::from_secs(6);
    let first = Server::with_pdbs(|request| {
        if !request.path.contains("0.pdb") {
            thread::sleep(LATE);
        }
        Reply::missing()
    });
    let silent = Server::start(|_| Reply::silence());
    let symbolizer = Cache::new().symbolizer(&[&first.url, &silent.url], DEAD);
    let start = Instant::now();
    symbolizer.prepare(&modules(&names(2)), &NoSymbolObserver, &Cancel::default());
    assert!(start.elapsed() < DEAD + LATE, "{:?}", start.elapsed());
    assert_eq!(silent.requests(), 2);
    assert!(!is_named(&symbolizer, "1.pdb"));
    assert_eq!(last_report(&symbolizer).skipped, std::slice::from_ref(&silent.url));
}

#[test]
fn a_file_that_a_slow_server_does_not_have_is_requested_by_a_single_session() {
    const SLOW: Duration = Duration::from_millis(1500);
    // Longer than one answer takes, but shorter than the answers about all forms of a file.
    const PATIENCE: Duration = Duration::from_secs(4);
    let server = Server::start(|_| {
        thread::sleep(SLOW);
        Reply::missing()
    });
    let cache = Cache::new();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let symbolizer = cache.symbolizer(&[&server.url], PATIENCE);
                assert!(!is_named(&symbolizer, "a.pdb"));
                assert_eq!(last_report(&symbolizer).missing.len(), 1);
                assert_eq!(symbolizer.take_waited_for(), [""; 0], "no process downloaded it");
            });
        }
    });
    assert_eq!(server.requested_files().len(), 3, "once for each form");
}
