//! Tests of the symbolizer with images and PDBs written by a linker: those of the sample, and new ones.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use goblin::pe::header::Header;
use handlescope_needs::needs_linker;
use symbolic::debuginfo::pe::PeObject;
use tempfile::TempDir;

use handlescope_model::Cancel;

use super::pdb::ranges::Ranges;
use super::pdb::symcache::{FileStamp, Symcaches};
use super::pdb::{Conversion, PdbFile};
use super::*;

const EXECUTABLE: u32 = 0x2000_0000;

/// A linked image.
struct LinkedImage {
    image: PathBuf,
    pdb: PathBuf,
    module: ModuleIdentity,
    /// Range of its executable section.
    code: std::ops::Range<u64>,
}

impl LinkedImage {
    fn new(image: PathBuf, pdb: PathBuf) -> Self {
        let bytes = fs::read(&image).expect("an image");
        let header = Header::parse(&bytes).expect("an image");
        let parsed = PeObject::parse(&bytes).expect("an image");
        let id = parsed.debug_id();
        let text = |path: &Path| path.file_name().map(|n| n.to_string_lossy().into_owned());
        let name = text(&image).expect("a name");
        let code = parsed.sections().iter().find(|s| s.characteristics & EXECUTABLE != 0);
        let code = code
            .map(|s| u64::from(s.virtual_address)..u64::from(s.virtual_address + s.virtual_size));
        let size = header.optional_header.expect("a size").windows_fields.size_of_image;
        let pdb_identity =
            PdbIdentity { name: text(&pdb).expect("a name"), guid: id.uuid(), age: id.appendix() };
        let module = ModuleIdentity {
            path: name.clone(),
            name,
            size: size.into(),
            timestamp: Some(header.coff_header.time_date_stamp),
            pdb: Some(pdb_identity),
        };
        Self { image, pdb, module, code: code.expect("code") }
    }

    /// Resolves every instruction address of the code, or every return address, with the files in a folder.
    fn names(&self, folder: &Path, is_return: bool) -> (Vec<FrameChain>, ModuleReport) {
        let symcaches = TempDir::new().expect("a folder");
        let options = SymbolizerOptions {
            symcache_folder: Some(symcaches.path().to_owned()),
            ..SymbolizerOptions::default()
        };
        let symbolizer = Symbolizer::new(SymbolPath::parse(&folder.to_string_lossy()), options);
        let addresses = self.code.clone().map(|rva| CodeAddress { rva, is_return }).collect();
        let requests = [(self.module.clone(), addresses)];
        let names = symbolizer.resolve_all(&requests, &NoSymbolObserver, &Cancel::default());
        (names.into_iter().flatten().collect(), symbolizer.report().remove(0))
    }

    fn names_from(&self, file: &Path) -> (Vec<FrameChain>, ModuleReport) {
        self.names_in_copy(file, false)
    }

    /// Resolves every address as a return address, that is, by the call before it.
    fn callers_from(&self, file: &Path) -> Vec<FrameChain> {
        self.names_in_copy(file, true).0
    }

    fn names_in_copy(&self, file: &Path, is_return: bool) -> (Vec<FrameChain>, ModuleReport) {
        let folder = TempDir::new().expect("a folder");
        let name = file.file_name().expect("a name");
        fs::copy(file, folder.path().join(name)).expect("a copy");
        self.names(folder.path(), is_return)
    }
}

/// Returns the images of the sample with their PDBs.
fn sample() -> Vec<LinkedImage> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let pdb_of = |name: &str| {
        let pdb = if name == "ntoskrnl" { "ntkrnlmp" } else { name };
        let folder = root.join("symbols").join(format!("{}.pdb", pdb.to_lowercase()));
        let build = fs::read_dir(&folder).ok()?.flatten().next()?.path();
        Some(build.join(folder.file_name()?))
    };
    let images = fs::read_dir(root.join("bin")).expect("the sample").flatten();
    images
        .map(|entry| entry.path())
        .filter_map(|image| {
            let pdb = pdb_of(&image.file_stem()?.to_string_lossy())?;
            Some(LinkedImage::new(image, pdb))
        })
        .collect()
}

/// Runs a program of the compiler toolchain in a folder.
fn run<'a>(folder: &Path, program: &str, arguments: impl IntoIterator<Item = &'a &'a str>) {
    let status = Command::new(program).args(arguments).current_dir(folder).status();
    assert!(status.expect(program).success(), "{program}");
}

/// Compiles and links a module.
fn link(folder: &Path, target: &str, source: &str, compile: &[&str], link: &[&str]) -> LinkedImage {
    fs::write(folder.join("m.cpp"), source).expect("a source file");
    let target = format!("--target={target}-pc-windows-msvc");
    let fixed = [
        "-O1",
        "-g",
        "-gcodeview",
        "-ffreestanding",
        "-fno-exceptions",
        "-c",
        "m.cpp",
        "-o",
        "m.obj",
        &target,
    ];
    run(folder, "clang++", fixed.iter().chain(compile));
    let fixed = [
        "/nologo",
        "/nodefaultlib",
        "/dll",
        "/noentry",
        "/debug",
        "/opt:noref,noicf",
        "/out:m.dll",
        "/pdb:m.pdb",
        "m.obj",
    ];
    run(folder, "lld-link", fixed.iter().chain(link));
    LinkedImage::new(folder.join("m.dll"), folder.join("m.pdb"))
}

/// Asserts that the exports agree with the PDB and returns how many addresses they name.
fn assert_exports_agree_with_the_pdb(linked: &LinkedImage) -> usize {
    let (by_pdb, _) = linked.names_from(&linked.pdb);
    let (by_image, report) = linked.names_from(&linked.image);
    let mut named = 0;
    for ((rva, by_pdb), by_image) in linked.code.clone().zip(by_pdb).zip(by_image) {
        let (Some(by_pdb), Some(by_image)) = (by_pdb.last(), by_image.last()) else { continue };
        named += 1;
        let expected = (by_pdb.function.rsplit("::").next(), by_pdb.offset);
        let function = (by_image.function.rsplit("::").next(), by_image.offset);
        assert_eq!(function, expected, "{} {rva:#x}", linked.module.name);
    }
    if named > 0 {
        assert!(matches!(report.outcome, SearchOutcome::ResolvedFromExports { .. }), "{report}");
        assert!(report.named >= named && report.requested == linked.code.clone().count());
    }
    named
}

#[test]
fn exports_of_the_sample_name_the_functions_that_its_pdbs_name() {
    let mut named = 0;
    for linked in sample() {
        named += assert_exports_agree_with_the_pdb(&linked);
    }
    assert!(named > 200, "{named}");
}

#[test]
fn an_image_of_another_build_is_refused() {
    for mut linked in sample() {
        linked.module.timestamp = linked.module.timestamp.map(|timestamp| timestamp ^ 1);
        let (names, report) = linked.names_from(&linked.image);
        assert!(names.iter().all(|chain| chain.is_empty()));
        assert_eq!(report.outcome, SearchOutcome::NotFound);
        let [error] = report.refused.as_slice() else { panic!("one refused file: {report}") };
        assert!(matches!(**error, SymbolFileError::WrongImage { .. }), "{report}");
    }
}

#[test]
fn an_image_is_read_from_the_path_that_symbol_stores_have() {
    let linked = sample().remove(0);
    let folder = TempDir::new().expect("a folder");
    let timestamp = linked.module.timestamp.expect("a time stamp");
    let index = format!("{timestamp:08X}{:x}", linked.module.size);
    let folder_of_build = folder.path().join(&linked.module.name).join(index);
    fs::create_dir_all(&folder_of_build).expect("a folder");
    fs::copy(&linked.image, folder_of_build.join(&linked.module.name)).expect("a copy");
    let (_, report) = linked.names(folder.path(), false);
    assert!(matches!(report.outcome, SearchOutcome::ResolvedFromExports { .. }), "{report}");
}

#[test]
fn a_damaged_image_is_an_error_in_the_report_or_says_less() {
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    for linked in sample() {
        let intact = fs::read(&linked.image).expect("an image");
        let image = identity::ImageIdentity::new(&linked.module).expect("an identity");
        for round in 0..3000 {
            let mut bytes = intact.clone();
            for _ in 0..=round % 5 {
                random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7f);
                let at = (random >> 33) as usize % bytes.len();
                match round % 4 {
                    0 => bytes[at] ^= 1 << (random >> 20 & 7),
                    1 => bytes[at] = 0xff,
                    2 => bytes[at] = 0,
                    _ => bytes.truncate(at + 1),
                }
            }
            if let Ok(table) = pdb::pe::ExportTable::read(&bytes, &linked.image, &image) {
                for rva in linked.code.clone().step_by(7) {
                    let _ = table.at(rva.into());
                }
            }
        }
    }
}

#[test]
fn a_damaged_pdb_of_a_linker_is_an_error_or_says_less() {
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let folder = TempDir::new().expect("a folder");
    for linked in sample() {
        let intact = fs::read(&linked.pdb).expect("a pdb");
        for round in 0..100 {
            let mut bytes = intact.clone();
            for _ in 0..=round % 9 {
                random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7f);
                let at = (random >> 33) as usize % bytes.len();
                match round % 3 {
                    0 => bytes[at] ^= 1 << (random >> 20 & 7),
                    1 => bytes[at] = 0xff,
                    _ => bytes.truncate(at.max(bytes.len() / 2)),
                }
            }
            let path = folder.path().join("a.pdb");
            fs::write(&path, &bytes).expect("a pdb");
            let stamp = FileStamp::new(&path).expect("a stamp");
            let addresses: Vec<CodeAddress> = linked.code.clone().map(Into::into).collect();
            let instructions: Vec<u32> = linked.code.clone().map(|rva| rva as u32).collect();
            for whole_up_to in [u64::MAX, 0] {
                let request = Conversion {
                    addresses: &instructions,
                    covered: &Ranges::default(),
                    whole_up_to,
                };
                if let Ok(parts) = PdbFile::open(&path)
                    .and_then(|pdb| pdb.to_symcaches(&request, &Cancel::default()))
                {
                    let symcaches = Symcaches::none_of(stamp).with(&parts, stamp);
                    let names = module::SymcacheNames::new(symcaches, None);
                    let symbols = module::ModuleSymbols::Symcache(names);
                    let _ = symbols.resolve(&addresses, linked.module.size);
                }
            }
        }
    }
}

/// Compiles and links a module from several object files whose functions are interleaved.
fn link_many(folder: &Path) -> LinkedImage {
    let source = |part: usize| {
        format!(
            r#"
            struct Shared {{ int x; __attribute__((always_inline)) int get(volatile int *p) {{ return *p * x; }} }};
            namespace part{part} {{
            static __attribute__((noinline)) int local(Shared *s, volatile int *p) {{
                *p = {part};
                return s->get(p) + 7;
            }}
            __attribute__((noinline)) int twice(Shared *s, volatile int *p) {{
                int r = local(s, p);
                *p = r;
                return r + local(s, p) + s->get(p);
            }}
            }}
            extern "C" __declspec(dllexport) int entry{part}(Shared *s, volatile int *p) {{
                int r = part{part}::twice(s, p);
                *p = r;
                return r;
            }}
            "#
        )
    };
    let objects = ["part0.obj", "part1.obj", "part2.obj", "part3.obj"];
    for (part, object) in objects.iter().enumerate() {
        fs::write(folder.join("part.cpp"), source(part)).expect("a source file");
        let options =
            "--target=x86_64-pc-windows-msvc -O1 -g -gcodeview -ffunction-sections -c part.cpp -o";
        let options: Vec<&str> = options.split(' ').collect();
        run(folder, "clang++", options.iter().chain([object]));
    }
    let options =
        "/nologo /nodefaultlib /dll /noentry /debug /opt:noref,noicf /out:m.dll /pdb:m.pdb";
    let options: Vec<&str> = options.split(' ').collect();
    run(folder, "lld-link", options.iter().chain(&objects));
    LinkedImage::new(folder.join("m.dll"), folder.join("m.pdb"))
}

#[needs_linker]
#[test]
fn functions_of_a_pdb_that_is_converted_in_parts_are_those_of_the_whole() {
    let build = TempDir::new().expect("a folder");
    let linked = link_many(build.path());
    let folder = TempDir::new().expect("a folder");
    fs::copy(&linked.pdb, folder.path().join("m.pdb")).expect("a copy");
    let symcaches = TempDir::new().expect("a folder");
    let symbolizer = |whole_pdb_bytes, name: &str| {
        let options = SymbolizerOptions {
            symcache_folder: Some(symcaches.path().join(name)),
            whole_pdb_bytes,
            ..SymbolizerOptions::default()
        };
        Symbolizer::new(SymbolPath::parse(&folder.path().to_string_lossy()), options)
    };
    let addresses: Vec<u64> = linked.code.clone().collect();
    let whole = symbolizer(u64::MAX, "whole").resolve(&linked.module, &addresses);
    let functions: std::collections::BTreeSet<_> =
        whole.iter().flat_map(|chain| chain.iter()).map(|frame| frame.function.clone()).collect();
    assert!(functions.len() >= 13, "{functions:?}");

    let at_once = symbolizer(0, "at once").resolve(&linked.module, &addresses);
    assert_eq!(at_once, whole);

    // Address by address in random order, in one session and then in others that find what earlier ones converted.
    let mut session = symbolizer(0, "in turn");
    let places: Vec<usize> = (0..addresses.len()).map(|n| n * 37 % addresses.len()).collect();
    for (turn, &place) in places.iter().enumerate() {
        if turn % 50 == 7 {
            session = symbolizer(0, "in turn");
        }
        let [chain] = &session.resolve(&linked.module, &[addresses[place]])[..] else { panic!() };
        assert_eq!(chain, &whole[place], "{:#x}", addresses[place]);
    }
    let was_converted = |report: Vec<ModuleReport>| match report[0].outcome {
        SearchOutcome::Resolved { was_converted, .. } => was_converted,
        _ => false,
    };
    let last = symbolizer(0, "in turn");
    assert_eq!(last.resolve(&linked.module, &addresses), whole);
    assert!(was_converted(last.report()), "nothing is left to convert");

    // Nothing is converted twice for the last possible address, where no module has a function.
    let of_unknown_size = ModuleIdentity { size: 0, ..linked.module.clone() };
    for is_second in [false, true] {
        let session = symbolizer(0, "last address");
        let chains = session.resolve(&of_unknown_size, &[u32::MAX.into(), 1 << 32]);
        assert!(chains.iter().all(|chain| chain.is_empty()));
        assert_eq!(was_converted(session.report()), is_second);
    }

    // Without the PDB, whatever was not converted is unknown.
    let first = symbolizer(0, "first only");
    let named = whole.iter().position(|chain| !chain.is_empty()).expect("a function");
    assert_eq!(first.resolve(&linked.module, &[addresses[named]]), [whole[named].clone()]);
    fs::remove_file(folder.path().join("m.pdb")).expect("removed");
    let rest = first.resolve(&linked.module, &addresses);
    let unknown = rest.iter().zip(&whole).filter(|(rest, whole)| rest != whole);
    assert!(unknown.clone().count() > 0 && unknown.clone().all(|(rest, _)| rest.is_empty()));
    let report = first.report().remove(0);
    assert_eq!(report.refused.len(), 1, "the PDB cannot be read: {report}");

    // The same holds if a cache has only the symcache left; once the PDB is back, the rest is converted.
    let cache = TempDir::new().expect("a folder");
    let path = SymbolPath::parse(&format!("cache*{}", cache.path().to_string_lossy()));
    let session = || {
        let options = SymbolizerOptions { whole_pdb_bytes: 0, ..SymbolizerOptions::default() };
        Symbolizer::new(path.clone(), options)
    };
    let identity = linked.module.pdb.as_ref().expect("a PDB");
    let key = identity::StoreKey::new(identity).expect("a name");
    let build = cache.path().join(&key.name).join(&key.index);
    fs::create_dir_all(&build).expect("a folder");
    fs::copy(&linked.pdb, build.join("m.pdb")).expect("a copy");
    assert_eq!(session().resolve(&linked.module, &[addresses[named]]), [whole[named].clone()]);
    fs::remove_file(build.join("m.pdb")).expect("removed");
    let without = session();
    for _ in 0..2 {
        assert_eq!(without.resolve(&linked.module, &addresses), rest);
        let report = without.report().remove(0);
        assert_eq!((report.origin, report.refused.len()), (Some(SymbolOrigin::Symcache), 0));
    }
    fs::copy(&linked.pdb, build.join("m.pdb")).expect("a copy");
    assert_eq!(session().resolve(&linked.module, &addresses), whole);
}

const NESTED: &str = r#"
typedef unsigned u32;
__attribute__((always_inline)) static u32 inner(volatile u32 *p) {
    return *p * 3;
}
struct Outer {
    u32 x;
    __attribute__((always_inline)) u32 outer(volatile u32 *p) {
        return inner(p) + x;
    }
};
extern "C" __declspec(dllexport) u32 physical(Outer *o, volatile u32 *p) {
    *p = 7;
    u32 r = o->outer(p);
    *p = r;
    return r;
}
"#;

#[needs_linker]
#[test]
fn inlined_functions_are_separate_frames_with_file_and_line() {
    let folder = TempDir::new().expect("a folder");
    let linked = link(folder.path(), "x86_64", NESTED, &[], &[]);
    let (names, _) = linked.names_from(&linked.pdb);
    let deepest = names.iter().find(|chain| chain.len() == 3).expect("three functions");
    let functions: Vec<_> =
        deepest.iter().map(|frame| (&*frame.function, frame.inlined, frame.line)).collect();
    assert_eq!(
        functions,
        [("inner", true, Some(4)), ("Outer::outer", true, Some(9)), ("physical", false, Some(14))]
    );
    assert!(deepest.iter().all(|frame| frame.offset == deepest[2].offset));
    assert!(
        deepest.iter().all(|frame| frame.file.as_deref().is_some_and(|f| f.ends_with("m.cpp")))
    );
    for chain in names.iter().filter(|chain| !chain.is_empty()) {
        let (physical, inlined) = chain.split_last().expect("not empty");
        assert!(&*physical.function == "physical" && !physical.inlined);
        assert!(inlined.iter().all(|frame| frame.inlined));
    }
}

/// Returns where the source of a function can be fetched according to a PDB with this stream.
fn sources_with(stream: &str, content: &str) -> Vec<String> {
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join("stream"), content).expect("a file");
    let option = format!("/pdbstream:{stream}=stream");
    let linked =
        link(folder.path(), "x86_64", NESTED, &["-fdebug-compilation-dir=C:/build"], &[&option]);
    let (names, report) = linked.names_from(&linked.pdb);
    assert!(
        matches!(report.outcome, SearchOutcome::Resolved { .. } | SearchOutcome::NotFound),
        "{report}"
    );
    let mut sources: Vec<String> = names
        .iter()
        .flat_map(|chain| chain.iter())
        .filter_map(|frame| frame.source.as_deref().map(str::to_owned))
        .collect();
    sources.dedup();
    sources
}

#[needs_linker]
#[test]
fn source_link_and_source_servers_say_where_a_file_can_be_got() {
    let folder = TempDir::new().expect("a folder");
    let linked = link(folder.path(), "x86_64", NESTED, &["-fdebug-compilation-dir=C:/build"], &[]);
    let (names, _) = linked.names_from(&linked.pdb);
    let file = names.iter().find_map(|chain| chain.first()?.file.clone()).expect("a file");
    assert!(names.iter().flat_map(|chain| chain.iter()).all(|frame| frame.source.is_none()));

    let start = file.strip_suffix("m.cpp").expect("the file").replace('\\', "\\\\");
    let link = format!(r#"{{"documents": {{"{start}*": "https://git.example/raw/abc/*"}}}}"#);
    assert_eq!(sources_with("sourcelink", &link), ["https://git.example/raw/abc/m.cpp"]);

    let server = |stream: &str| {
        format!(
            "SRCSRV: ini ------\nVERSION=1\nVERCTRL=Git\nSRCSRV: variables ------\n{stream}\n\
             SRCSRV: source files ------\n{file}*src/m.cpp*abc\nSRCSRV: end ------\n"
        )
    };
    let stream = server("SRCSRVTRG=https://git.example/%var3%/%var2%");
    assert_eq!(sources_with("srcsrv", &stream), ["https://git.example/abc/src/m.cpp"]);
    // A PDB whose expanded text would exhaust memory or the stack is refused.
    let doubling: String = (1..60).map(|n| format!("A{n}=%A{}%%A{}%\n", n - 1, n - 1)).collect();
    assert!(
        sources_with("srcsrv", &server(&format!("A0=x\n{doubling}SRCSRVTRG=%A59%"))).is_empty()
    );
    let deep = "%fnvar%(".repeat(100_000);
    assert!(sources_with("srcsrv", &server(&format!("SRCSRVTRG={deep}"))).is_empty());
}

const EXPORTING: &str = r#"
typedef unsigned u32;
extern "C" u32 far(volatile u32 *);
#define EXPORT extern "C" __declspec(dllexport) __attribute__((noinline))
EXPORT u32 leaf(u32 x) { return x * 3; }
static __attribute__((noinline)) u32 hidden(volatile u32 *p) { volatile u32 a[4]; a[*p & 3] = *p; return a[1]; }
EXPORT u32 framed(volatile u32 *p) { volatile u32 a[64]; a[*p & 63] = hidden(p); return a[2] + hidden(p); }
namespace N { struct C { static __declspec(dllexport) __attribute__((noinline)) u32 method(volatile u32 *p); }; }
u32 N::C::method(volatile u32 *p) { volatile u32 a[64]; a[*p & 63] = framed(p); return a[2] + framed(p); }
"#;

#[needs_linker]
#[test]
fn exports_of_every_architecture_name_the_functions_that_the_pdb_names() {
    for target in ["x86_64", "aarch64", "i686"] {
        let folder = TempDir::new().expect("a folder");
        let forward = ["/export:forwarded=ntdll.NtClose"];
        let options = ["-mno-stack-arg-probe", "-funwind-tables"];
        let options = if target == "aarch64" { &options[1..] } else { &options[..] };
        let linked = link(folder.path(), target, EXPORTING, options, &forward);
        if target == "i686" {
            // Here an export extends over functions that are not exported.
            let (names, _) = linked.names_from(&linked.image);
            let names: Vec<_> = names.iter().filter_map(|chain| chain.last()).collect();
            assert!(names.iter().any(|frame| &*frame.function == "framed" && frame.offset == 0));
            continue;
        }
        let named = assert_exports_agree_with_the_pdb(&linked);
        let (names, _) = linked.names_from(&linked.image);
        for function in ["leaf", "framed", "N::C::method"] {
            let is_named =
                names.iter().flat_map(|chain| chain.iter()).any(|f| &*f.function == function);
            assert!(is_named, "{target} {function}");
        }
        assert!(named > 40, "{target}: {named}");
    }
}

/// Templates and functions whose names the compiler and the linker spell differently.
const TEMPLATES: &str = r#"
namespace ns { struct S { int x; int m(int); }; enum E { A }; union U { int a; }; class C {}; int S::m(int a) { return a; } }
namespace std {
template <class T> struct allocator {};
template <class T, class A = allocator<T>> struct vector { T *p; void push_back(const T &); T &operator[](unsigned long long); operator bool() const; };
template <class T, class A> void vector<T, A>::push_back(const T &t) { p = (T *)&t; }
template <class T, class A> T &vector<T, A>::operator[](unsigned long long i) { return p[i]; }
template <class T, class A> vector<T, A>::operator bool() const { return p; }
template <class K, class V> struct pair { K k; V v; pair(); ~pair(); template <class T> pair(T); };
template <class K, class V> pair<K, V>::pair() {}
template <class K, class V> pair<K, V>::~pair() {}
template <class K, class V> template <class T> pair<K, V>::pair(T) {}
template <class F> struct function;
template <class R, class... A> struct function<R(A...)> { void set(R (*)(A...)); };
template <class R, class... A> void function<R(A...)>::set(R (*)(A...)) {}
}
template struct std::pair<int, int>; template std::pair<int, int>::pair(char *);
template struct std::function<void()>; template struct std::function<ns::S *(ns::S &, const char *, int (*)(int))>;
template struct std::vector<int>; template struct std::vector<unsigned long long>; template struct std::vector<ns::S *>;
template struct std::vector<const char *>; template struct std::vector<std::vector<int>>;
template struct std::vector<std::pair<const int, std::vector<long long>>>;
template <class T> int f(T *) { return sizeof(T); }
template <class... T> int v(T *...) { return sizeof...(T); }
template <int I> int n() { return I; }
template <bool B> int b() { return B; }
template <int *P> int p() { return *P; }
template <char C> int c() { return C; }
template <class T> int r() { return 1; }
int global;
#define F(...) template int f<__VA_ARGS__>(__VA_ARGS__ *);
#define G(name, ...) using name = __VA_ARGS__; template int f<name>(name *);
F(int) F(unsigned) F(unsigned long long) F(long long) F(char) F(signed char) F(unsigned char) F(wchar_t) F(char16_t) F(bool) F(double)
F(const int) F(volatile int) F(const volatile int) F(int *) F(const int *) F(int **) F(ns::S) F(ns::S *) F(const ns::S *) F(ns::E) F(ns::U) F(ns::C)
F(std::vector<int>) F(std::vector<std::vector<ns::S *>>)
G(ConstPointer, int *const) G(ConstBoth, const char *const) G(Function, int (*)(const char *, ...)) G(NoParameters, void (*const)())
G(Member, int ns::S::*) G(Method, int (ns::S::*)(int)) G(Array, int[4]) G(Table, char[4][5]) G(Pair, std::pair<const int, unsigned long long>)
template int v<>(); template int v<int, char, ns::S>(int *, char *, ns::S *);
template int n<1>(); template int n<-5>(); template int n<1000>(); template int b<true>(); template int p<&global>(); template int p<nullptr>();
template int c<'a'>(); template int c<')'>(); template int c<'>'>(); template int c<'\''>(); template int c<0>();
template int r<ns::S *const &>(); template int r<const int *const *>(); template int r<int (*&)(int)>(); template int r<int (*const &)(int)>();
template int r<int(char *)>(); template int r<int(int) const>(); template int r<void() const &>(); template int r<int(int) noexcept>();
template int r<void (*(*)(int))(char)>(); template int r<int (*(*)(int))[4]>(); template int r<int (ns::S::*(*)())(int)>();
template int r<int (ns::S::*)(int) const>(); template int r<const char *(*)(const char *)>(); template int r<int[]>(); template int r<void (ns::S::*)() &&>();
struct Outer { template <class T> struct In { int w(T); }; };
template <class T> int Outer::In<T>::w(T t) { return sizeof t; }
template struct Outer::In<ns::S *>;
struct Op { int operator+(int); bool operator<(int); int operator()(int); operator int(); template <class T> operator T *(); int operator->*(int); };
int Op::operator+(int a) { return a; } bool Op::operator<(int a) { return a; } int Op::operator()(int a) { return a; }
Op::operator int() { return 3; } template <class T> Op::operator T *() { return 0; } template Op::operator ns::S *();
int Op::operator->*(int a) { return a; }
"#;

#[needs_linker]
#[test]
fn public_and_private_symbols_give_a_function_the_same_name() {
    let folders = [TempDir::new().expect("a folder"), TempDir::new().expect("a folder")];
    let private = link(folders[0].path(), "x86_64", TEMPLATES, &["-O0"], &[]);
    let public = link(folders[1].path(), "x86_64", TEMPLATES, &["-O0", "-g0"], &[]);
    let (private_names, _) = private.names_from(&private.pdb);
    let (public_names, _) = public.names_from(&public.pdb);
    assert_eq!(private.code, public.code);
    let mut functions = std::collections::BTreeSet::new();
    for (private, public) in private_names.iter().zip(&public_names) {
        let (Some(private), Some(public)) = (private.last(), public.last()) else { continue };
        assert_eq!((&private.function, private.offset), (&public.function, public.offset));
        functions.insert(private.function.clone());
    }
    assert!(functions.len() > 60, "{functions:?}");
    for name in [
        "std::vector<std::vector<int,std::allocator<int> >,std::allocator<std::vector<int,std::allocator<int> > > >::push_back",
        "f<unsigned __int64>",
        "f<char const * const>",
        "f<int ns::S::*>",
        "std::pair<int,int>::pair<int,int><char *>",
        "std::function<void __cdecl(void)>::set",
    ] {
        assert!(functions.contains(name), "{name}: {functions:?}");
    }
}

#[needs_linker]
#[test]
fn a_call_that_does_not_return_is_of_the_function_that_it_ends() {
    let source = "extern \"C\" __attribute__((noinline, noreturn)) void die(volatile int *p) { for (;;) *p = 1; }\n\
                  extern \"C\" __declspec(dllexport) void first(volatile int *p) { *p = 2; die(p); }\n\
                  extern \"C\" __declspec(dllexport) void second(volatile int *p) { *p = 3; die(p); }\n\
                  extern \"C\" __declspec(dllexport) void third(volatile int *p) { *p = 4; *p = 5; }\n";
    // Public symbols and exports have no end, and there is no padding here either.
    let tight = ["-O1", "-g0", "-Oz"];
    for (target, compile, file) in [
        ("x86_64", &tight[..1], "m.pdb"),
        ("i686", &tight[..1], "m.pdb"),
        ("x86_64", &tight[..2], "m.pdb"),
        ("i686", &tight, "m.pdb"),
        ("i686", &tight, "m.dll"),
    ] {
        let folder = TempDir::new().expect("a folder");
        let linked = link(folder.path(), target, source, compile, &[]);
        let bytes = fs::read(&linked.image).expect("an image");
        let parsed = PeObject::parse(&bytes).expect("an image");
        let code =
            parsed.sections().iter().find(|section| section.characteristics & EXECUTABLE != 0);
        let code = code.expect("code");
        let raw = code.pointer_to_raw_data as usize;
        let (names, _) = linked.names_from(&folder.path().join(file));
        let callers = linked.callers_from(&folder.path().join(file));
        let mut calls = 0;
        // Five-byte calls to a function in the section.
        for at in 0..names.len().saturating_sub(5) {
            let Some(&[0xE8, a, b, c, d]) = bytes.get(raw + at..raw + at + 5) else { continue };
            let target = (at as i64 + 5).checked_add(i32::from_le_bytes([a, b, c, d]).into());
            if !target.is_some_and(|target| (0..names.len() as i64).contains(&target)) {
                continue;
            }
            let (within, behind) = (names[at + 1].last(), callers[at + 5].last());
            let (within, behind) = (within.expect("a name"), behind.expect("a name"));
            assert_eq!(within.function, behind.function, "{target:?}");
            assert_eq!(behind.offset, within.offset + 4);
            // An instruction at that address starts the next function.
            if compile == tight && within.function.as_ref() == "first" {
                let next = names[at + 5].last().expect("a name");
                assert_eq!((&*next.function, next.offset), ("second", 0));
            }
            calls += 1;
        }
        assert!(calls >= 2, "{calls}");
    }
}
