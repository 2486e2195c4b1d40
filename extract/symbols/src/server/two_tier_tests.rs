//! Tests of two-tier stores, on servers and in caches.

use std::time::Duration;
use std::{fs, thread};

use crate::fixture::cabinet;
use crate::server::test_server::*;
use crate::*;

/// Returns the path of a PDB in a two-tier store.
fn in_two_tiers(name: &str) -> String {
    format!("{}/{}", &name[..2], pdb().store_path(name))
}

/// Returns the requested paths, relative to the server's address.
fn asked(server: &Server) -> Vec<String> {
    let path = |path: &str| path.trim_start_matches("/symbols/").to_owned();
    server.received().iter().map(|request| path(&request.path)).collect()
}

/// Starts a server with a two-tier store.
fn two_tier_server(files: &[(String, Vec<u8>)]) -> Server {
    let mark = ("index2.txt".to_owned(), Vec::new());
    Server::with(files.iter().cloned().chain([mark]).collect())
}

#[test]
fn a_server_with_two_tiers_is_asked_as_it_stores() {
    let stored = |name| (in_two_tiers(name), pdb().bytes());
    let server = two_tier_server(&[stored("app.pdb"), stored("Base.pdb")]);
    let cache = Cache::new();
    let symbolizer = cache.session(&[&server]);
    assert!(is_named(&symbolizer, "app.pdb"), "{:?}", symbolizer.report());
    assert!(cache.holds("app.pdb"), "the cache has one tier");
    let before = server.requests();
    assert!(is_named(&symbolizer, "Base.pdb"));
    let later: Vec<String> = asked(&server).split_off(before);
    assert_eq!(later, [in_two_tiers("Base.pdb")], "the tiers are known by then");
    assert!(!is_named(&symbolizer, "gone.pdb"));
    assert_eq!(last_report(&symbolizer).missing.len(), 1);
    assert_eq!(asked(&server).iter().filter(|path| *path == "index2.txt").count(), 1);
}

#[test]
fn the_first_tier_of_a_server_may_be_in_small_letters() {
    let server = two_tier_server(&[(format!("ap/{}", pdb().store_path("App.pdb")), pdb().bytes())]);
    assert!(is_named(&Cache::new().session(&[&server]), "App.pdb"), "{:?}", asked(&server));
}

#[test]
fn that_a_server_has_one_tier_is_remembered_until_retried() {
    let (cache, server) = (Cache::new(), Server::delivering("a.pdb"));
    let questions = || asked(&server).iter().filter(|path| *path == "index2.txt").count();
    assert!(is_named(&cache.session(&[&server]), "a.pdb"));
    assert_eq!(questions(), 0, "a server that has the file is not asked");
    for (name, expected) in [("b.pdb", 1), ("c.pdb", 1)] {
        let symbolizer = cache.session(&[&server]);
        assert!(!is_named(&symbolizer, name));
        assert_eq!(questions(), expected, "{name}");
    }
    let symbolizer = cache.session(&[&server]);
    symbolizer.forget_missing();
    assert!(!is_named(&symbolizer, "b.pdb"));
    assert_eq!(questions(), 2);
}

#[test]
fn a_server_that_cannot_say_its_tiers_has_one() {
    let server = Server::start(|request| {
        if request.path.ends_with("index2.txt") {
            Reply::new(500, &[], b"")
        } else {
            Reply::missing()
        }
    });
    let symbolizer = Cache::new().session(&[&server]);
    assert!(!is_named(&symbolizer, "a.pdb"));
    let report = last_report(&symbolizer);
    assert!(report.failures.is_empty() && report.missing.len() == 1, "{report}");
}

#[test]
fn downloads_are_filed_as_a_cache_with_two_tiers_wants_them() {
    let (near, far, server) = (Cache::new(), Cache::new(), Server::delivering("app.pdb"));
    write(&near.0.path().join("index2.txt"), b"");
    let [first, second] = [&near, &far].map(|cache| cache.0.path().display());
    let path = format!("srv*{first}*{second}*{}", server.url);
    let session = || Symbolizer::new(SymbolPath::parse(&path), SymbolizerOptions::default());
    assert!(is_named(&session(), "app.pdb"));
    assert!(near.0.path().join(in_two_tiers("app.pdb")).is_file());
    assert!(!near.0.path().join("app.pdb").exists(), "nothing is filed in one tier");
    assert!(far.holds("app.pdb"), "each cache as it wants");
    let requests = server.requests();
    let again = session();
    again.prepare(&[pdb().module("app.pdb")], &NoSymbolObserver, &Default::default());
    assert!(is_named(&again, "app.pdb"));
    assert_eq!(server.requests(), requests);
}

#[test]
fn a_folder_with_two_tiers_has_its_packed_files_and_pointers_too() {
    let (store, cache) = (Cache::new(), Cache::new());
    let root = store.0.path();
    write(&root.join("index2.txt"), b"");
    let packed =
        in_two_tiers("App.pdb").replace("/App.pdb", "/App.pd_").replacen("/App.pd_", "/App.pdb", 1);
    write(&root.join(&packed), &cabinet("x", &pdb().bytes()));
    let target = root.join("elsewhere/b.pdb");
    let pointer = root.join(in_two_tiers("Base.pdb")).with_file_name("file.ptr");
    write(&pointer, format!("PATH:{}", target.display()).as_bytes());
    write(&target.with_file_name("b.pd_"), &cabinet("x", &pdb().bytes()));
    let path = format!("cache*{};srv*{}", cache.0.path().display(), root.display());
    let symbolizer = Symbolizer::new(SymbolPath::parse(&path), SymbolizerOptions::default());
    for name in ["App.pdb", "Base.pdb"] {
        assert!(is_named(&symbolizer, name), "{:?}", symbolizer.report());
        assert!(cache.holds(name), "unpacked into the cache");
    }
}

#[test]
fn a_pointer_of_a_server_leads_to_a_file_that_was_compressed_since() {
    let share = tempfile::tempdir().expect("a folder");
    let target = share.path().join("a.pdb");
    fs::write(target.with_extension("pd_"), cabinet("x", &pdb().bytes())).expect("a file");
    let text = format!("PATH:{}", target.display());
    let server = Server::start(move |request| {
        if request.path.ends_with("/file.ptr") {
            Reply::ok(text.as_bytes())
        } else {
            Reply::missing()
        }
    });
    let cache = Cache::new();
    let symbolizer = cache.session(&[&server]);
    assert!(is_named(&symbolizer, "a.pdb"), "{:?}", symbolizer.report());
}

#[test]
fn sessions_that_look_for_different_files_ask_for_the_tiers_once() {
    let server = Server::start(|_| {
        thread::sleep(Duration::from_millis(50));
        Reply::missing()
    });
    let cache = Cache::new();
    thread::scope(|scope| {
        for name in ["a.pdb", "b.pdb", "c.pdb", "d.pdb"] {
            let symbolizer = cache.session(&[&server]);
            scope.spawn(move || assert!(!is_named(&symbolizer, name)));
        }
    });
    assert_eq!(asked(&server).iter().filter(|path| *path == "index2.txt").count(), 1);
}
