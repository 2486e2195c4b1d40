//! Tests of the symbolizer with small PDBs in temporary folders.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use handlescope_model::Cancel;

use super::fixture::{I386, TestPdb};
use super::*;

/// A plain folder with PDBs, and a folder for symcaches.
struct SymbolFolders {
    root: TempDir,
}

impl SymbolFolders {
    fn new() -> Self {
        Self { root: tempfile::tempdir().expect("temporary folder") }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Writes a file below the folder `plain`.
    fn with(self, path: &str, bytes: &[u8]) -> Self {
        write(&self.path("plain").join(path), bytes);
        self
    }

    /// Starts a session on the folder `plain`, with symcaches in `symcaches`.
    fn symbolizer(&self) -> Symbolizer {
        self.symbolizer_on(&self.path("plain").to_string_lossy())
    }

    fn symbolizer_on(&self, path: &str) -> Symbolizer {
        let symcache_folder = Some(self.path("symcaches"));
        let options = SymbolizerOptions { symcache_folder, ..SymbolizerOptions::default() };
        Symbolizer::new(SymbolPath::parse(path), options)
    }

    fn symcache(&self) -> PathBuf {
        files(&self.path("symcaches")).pop().expect("a symcache")
    }
}

fn write(path: &Path, bytes: &[u8]) {
    fs::create_dir_all(path.parent().expect("has a parent")).expect("folder");
    fs::write(path, bytes).expect("file");
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            files.extend(self::files(&entry.path()));
        } else {
            files.push(entry.path());
        }
    }
    files
}

fn pdb() -> TestPdb {
    TestPdb::new(&[(0x1010, "NtOpen"), (0x1040, "?Open@Cache@@QEAAXH@Z"), (0x1080, "NtClose")])
}

fn names(symbolizer: &Symbolizer, module: &ModuleIdentity, rvas: &[u64]) -> Vec<String> {
    let name = |chain: FrameChain| match chain.last() {
        Some(frame) => format!("{}+{:#x}", frame.function, frame.offset),
        None => "-".to_owned(),
    };
    symbolizer.resolve(module, rvas).into_iter().map(name).collect()
}

fn report(symbolizer: &Symbolizer) -> ModuleReport {
    symbolizer.report().pop().expect("a module was asked for")
}

#[test]
fn an_address_is_named_after_the_function_that_starts_before_it() {
    let folders = SymbolFolders::new().with(&pdb().store_path("a.pdb"), &pdb().bytes());
    let mut module = pdb().module(r"D:\build\a.pdb");
    module.size = 0x2000;
    assert_eq!(
        names(&folders.symbolizer(), &module, &[0x1010, 0x103f, 0x1044, 0x1080, 0x1fff]),
        ["NtOpen+0x0", "NtOpen+0x2f", "Cache::Open+0x4", "NtClose+0x0", "NtClose+0xf7f"]
    );
}

#[test]
fn an_address_before_the_first_function_or_outside_the_module_has_no_name() {
    let folders = SymbolFolders::new().with("a.pdb", &pdb().bytes());
    let mut module = pdb().module("a.pdb");
    module.size = 0x2000;
    let outside = [0, 0x100f, 0x2000, 0xffff_ffff, 1 << 32, u64::MAX];
    assert_eq!(names(&folders.symbolizer(), &module, &outside), ["-"; 6]);
}

#[test]
fn c_names_of_a_32_bit_module_lose_their_decoration() {
    let functions = [(0x1010, "_main"), (0x1020, "_Sleep@4"), (0x1030, "@fast@8")];
    let pdb = TestPdb { machine: I386, ..TestPdb::new(&functions) };
    let folders = SymbolFolders::new().with("a.pdb", &pdb.bytes());
    assert_eq!(
        names(&folders.symbolizer(), &pdb.module("a.pdb"), &[0x1010, 0x1020, 0x1030]),
        ["main+0x0", "Sleep+0x0", "fast+0x0"]
    );
}

#[test]
fn a_pdb_of_another_build_is_refused_and_the_matching_pdb_behind_it_taken() {
    let rebuilt = TestPdb { guid: uuid::Uuid::from_u128(1), ..pdb() };
    let module = pdb().module("a.pdb");
    let folders = SymbolFolders::new().with(&pdb().store_path("a.pdb"), &rebuilt.bytes());
    let symbolizer = folders.symbolizer();
    assert_eq!(names(&symbolizer, &module, &[0x1010]), ["-"]);
    let refusal = report(&symbolizer);
    assert_eq!(refusal.outcome, SearchOutcome::NotFound);
    let [error] = refusal.refused.as_slice() else { panic!("one refused file: {refusal}") };
    assert!(matches!(**error, SymbolFileError::WrongIdentity { .. }), "{refusal}");

    write(&folders.path("second/a.pdb"), &pdb().bytes());
    let path = format!("{};{}", folders.path("plain").display(), folders.path("second").display());
    let symbolizer = folders.symbolizer_on(&path);
    assert_eq!(names(&symbolizer, &module, &[0x1010]), ["NtOpen+0x0"]);
    assert_eq!(report(&symbolizer).refused.len(), 1);
}

#[test]
fn the_age_that_counts_is_in_the_debug_information() {
    let folders = SymbolFolders::new().with("a.pdb", &pdb().bytes());
    let mut module = pdb().module("a.pdb");
    for (age, name) in [(pdb().age, "NtOpen+0x0"), (pdb().info_age, "-"), (pdb().age + 1, "-")] {
        module.pdb.as_mut().expect("a pdb").age = age;
        assert_eq!(names(&folders.symbolizer(), &module, &[0x1010]), [name], "age {age}");
    }
}

#[test]
fn the_second_session_reads_the_symcache() {
    let folders = SymbolFolders::new().with("a.pdb", &pdb().bytes());
    for was_converted in [false, true] {
        let symbolizer = folders.symbolizer();
        assert_eq!(names(&symbolizer, &pdb().module("a.pdb"), &[0x1012]), ["NtOpen+0x2"]);
        let file = folders.path("plain/a.pdb");
        assert_eq!(report(&symbolizer).outcome, SearchOutcome::Resolved { file, was_converted });
    }
}

#[test]
fn a_damaged_symcache_is_built_again() {
    let folders = SymbolFolders::new().with("a.pdb", &pdb().bytes());
    let module = pdb().module("a.pdb");
    names(&folders.symbolizer(), &module, &[0]);
    let intact = fs::read(folders.symcache()).expect("a symcache");
    let damage: [fn(&mut Vec<u8>); 5] = [
        |bytes| bytes[200] ^= 1,
        |bytes| bytes.truncate(bytes.len() / 2),
        |bytes| bytes.clear(),
        |bytes| bytes.truncate(20),
        |bytes| bytes.fill(0),
    ];
    for damage in damage {
        let mut bytes = intact.clone();
        damage(&mut bytes);
        fs::write(folders.symcache(), bytes).expect("damaged symcache");
        assert_eq!(names(&folders.symbolizer(), &module, &[0x1010]), ["NtOpen+0x0"]);
        assert!(fs::read(folders.symcache()).expect("a symcache") == intact, "built again");
    }
}

#[test]
fn a_symcache_does_not_vouch_for_a_pdb_that_was_replaced() {
    let rebuilt = TestPdb { guid: uuid::Uuid::from_u128(1), ..pdb() };
    let folders = SymbolFolders::new().with("a.pdb", &pdb().bytes());
    let module = pdb().module("a.pdb");
    assert_eq!(names(&folders.symbolizer(), &module, &[0x1010]), ["NtOpen+0x0"]);
    fs::remove_file(folders.path("plain/a.pdb")).expect("pdb removed");
    assert_eq!(names(&folders.symbolizer(), &module, &[0x1010]), ["-"]);
    assert_eq!(rebuilt.bytes().len(), pdb().bytes().len());
    std::thread::sleep(Duration::from_millis(20));
    let folders = folders.with("a.pdb", &rebuilt.bytes());
    assert_eq!(names(&folders.symbolizer(), &module, &[0x1010]), ["-"]);
}

#[test]
fn a_symcache_in_a_cache_folder_of_the_path_needs_no_pdb() {
    let folders = SymbolFolders::new().with("a.pdb", &pdb().bytes());
    let module = pdb().module("a.pdb");
    let path = format!("cache*{};{}", folders.path("c").display(), folders.path("plain").display());
    let session = || Symbolizer::new(SymbolPath::parse(&path), SymbolizerOptions::default());
    assert_eq!(names(&session(), &module, &[0x1010]), ["NtOpen+0x0"]);
    fs::remove_file(folders.path("plain/a.pdb")).expect("pdb removed");
    assert_eq!(names(&session(), &module, &[0x1010]), ["NtOpen+0x0"]);
}

#[test]
fn nothing_is_written_to_a_plain_folder() {
    let folders = SymbolFolders::new().with(&pdb().store_path("a.pdb"), &pdb().bytes());
    names(&folders.symbolizer(), &pdb().module("a.pdb"), &[0x1010]);
    assert_eq!(files(&folders.path("plain")).len(), 1);
    assert_eq!(files(&folders.path("symcaches")).len(), 1);
}

#[test]
fn names_are_resolved_without_a_folder_for_symcaches() {
    let folders = SymbolFolders::new().with("a.pdb", &pdb().bytes());
    write(&folders.path("symcaches"), b"a file where the folder should be");
    let symbolizer = folders.symbolizer();
    assert_eq!(names(&symbolizer, &pdb().module("a.pdb"), &[0x1010]), ["NtOpen+0x0"]);
    assert!(report(&symbolizer).unsaved.is_some());
}

#[test]
fn a_hostile_name_reaches_no_folder() {
    let folders = SymbolFolders::new().with("a.pdb", &pdb().bytes());
    let symbolizer = folders.symbolizer();
    for name in ["..", "", r"x\..", "a.pdb\0", "c:"] {
        let module = pdb().module(name);
        assert_eq!(names(&symbolizer, &module, &[0x1010]), ["-"]);
        assert_eq!(report(&symbolizer).outcome, SearchOutcome::UnusableName, "{name:?}");
    }
    assert!(files(&folders.path("symcaches")).is_empty());
}

#[test]
fn the_report_names_the_missing_pdbs() {
    let folders = SymbolFolders::new();
    let symbolizer = folders.symbolizer();
    let module = pdb().module("a.pdb");
    let nameless = ModuleIdentity { pdb: None, name: "b.dll".into(), ..module.clone() };
    names(&symbolizer, &module, &[0x1010]);
    names(&symbolizer, &nameless, &[0x1010]);
    names(&symbolizer, &module, &[0x1020]);
    let lines: Vec<String> = symbolizer.report().iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            "a.dll: a.pdb {0155fe84-c000-1eb1-57c6-858e85d46b4c} age 2 not found on the symbol path",
            "b.dll: no pdb identity in the trace",
        ]
    );

    let symbolizer = folders.symbolizer_on(";");
    names(&symbolizer, &module, &[0x1010]);
    assert_eq!(report(&symbolizer).outcome, SearchOutcome::NoSymbolPath);
}

#[test]
fn many_modules_are_answered_in_the_order_of_the_requests() {
    let names: Vec<String> = (0..40).map(|n| format!("m{n}.pdb")).collect();
    let folders =
        names.iter().fold(SymbolFolders::new(), |folders, name| folders.with(name, &pdb().bytes()));
    let rvas = [0x1044, 0x1010, 0x1044, 1];
    let mut requests: Vec<(ModuleIdentity, Vec<CodeAddress>)> =
        names.iter().map(|name| (pdb().module(name), rvas.map(Into::into).to_vec())).collect();
    requests.push((pdb().module("missing.pdb"), vec![0x1010.into()]));
    requests.push((pdb().module("m7.pdb"), Vec::new()));
    let symbolizer = folders.symbolizer();
    let answers = symbolizer.resolve_all(&requests, &NoSymbolObserver, &Cancel::default());
    assert_eq!(answers.len(), requests.len());
    for ((module, addresses), answer) in requests.iter().zip(&answers) {
        let rvas: Vec<u64> = addresses.iter().map(|address| address.rva).collect();
        assert_eq!(*answer, symbolizer.resolve(module, &rvas), "{}", module.name);
    }
    let texts = |answer: &Vec<FrameChain>| -> Vec<String> {
        answer.iter().map(|chain| chain.iter().map(|frame| &*frame.function).collect()).collect()
    };
    assert!(
        answers
            .iter()
            .take(40)
            .all(|answer| { texts(answer) == ["Cache::Open", "NtOpen", "Cache::Open", ""] })
    );
    let reports = symbolizer.report();
    assert_eq!(reports.len(), 41);
    for report in reports {
        let counts = (report.requested, report.named);
        assert_eq!(counts, if report.is_resolved() { (3, 2) } else { (1, 0) }, "{report}");
    }
}

#[test]
fn a_cancelled_module_is_resolved_the_next_time() {
    #[derive(Default)]
    struct After(std::sync::atomic::AtomicUsize, Cancel);
    impl SymbolObserver for After {
        fn resolved(&self, _module: &ModuleIdentity, _done: usize, of: usize) {
            assert_eq!(of, 20);
            if self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 4 {
                self.1.cancel();
            }
        }
    }
    let names: Vec<String> = (0..20).map(|n| format!("m{n}.pdb")).collect();
    let folders =
        names.iter().fold(SymbolFolders::new(), |folders, name| folders.with(name, &pdb().bytes()));
    let requests: Vec<(ModuleIdentity, Vec<CodeAddress>)> =
        names.iter().map(|name| (pdb().module(name), vec![0x1010.into()])).collect();
    let symbolizer = folders.symbolizer();
    let is_named = |answers: &[Vec<FrameChain>]| {
        answers.iter().flatten().filter(|chain| !chain.is_empty()).count()
    };
    let after = After::default();
    let answers = symbolizer.resolve_all(&requests, &after, &after.1);
    assert_eq!(answers.len(), 20);
    assert!((5..20).contains(&is_named(&answers)));
    assert_eq!(
        is_named(&symbolizer.resolve_all(&requests, &NoSymbolObserver, &Cancel::default())),
        20
    );
    assert!(symbolizer.report().iter().all(ModuleReport::is_resolved));
}

#[test]
fn threads_that_want_the_same_pdb_convert_it_once() {
    let folders = SymbolFolders::new().with("a.pdb", &pdb().bytes());
    let symbolizer = folders.symbolizer();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                assert_eq!(names(&symbolizer, &pdb().module("a.pdb"), &[0x1012]), ["NtOpen+0x2"]);
            });
        }
    });
    let was_converted = false;
    let file = folders.path("plain/a.pdb");
    assert_eq!(report(&symbolizer).outcome, SearchOutcome::Resolved { file, was_converted });
    assert_eq!((report(&symbolizer).requested, report(&symbolizer).named), (1, 1));
}

#[test]
fn a_damaged_pdb_is_an_error_in_the_report() {
    let intact = pdb().bytes();
    let module = pdb().module("a.pdb");
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    for round in 0..400 {
        let mut bytes = intact.clone();
        for _ in 0..=round % 7 {
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7f);
            let at = (random >> 33) as usize % bytes.len();
            match round % 3 {
                0 => bytes[at] ^= 1 << (random >> 20 & 7),
                1 => bytes[at] = 0xff,
                _ => bytes.truncate(at + 1),
            }
        }
        let folders = SymbolFolders::new().with("a.pdb", &bytes);
        let symbolizer = folders.symbolizer();
        let _ = names(&symbolizer, &module, &[0x1010, 0x1044]);
        let report = report(&symbolizer);
        assert!(report.is_resolved() || report.refused.len() == 1, "round {round}: {report}");
    }
}
