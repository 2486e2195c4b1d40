//! What the symbolizer promises, on images and PDBs that a linker wrote: those of the sample, and
//! new ones.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use goblin::pe::header::Header;
use handlescope_needs::needs_linker;
use symbolic::debuginfo::pe::PeObject;
use tempfile::TempDir;

use handlescope_model::Cancel;

use super::*;

const EXECUTABLE: u32 = 0x2000_0000;

/// A linked image.
struct Linked {
    image: PathBuf,
    pdb: PathBuf,
    module: ModuleIdentity,
    /// Its executable section.
    code: std::ops::Range<u64>,
}

impl Linked {
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

    /// Names of all addresses of the code, from the files in a folder.
    fn names(&self, folder: &Path) -> (Vec<FrameChain>, ModuleReport) {
        let symcaches = TempDir::new().expect("a folder");
        let options = SymbolizerOptions {
            symcache_folder: Some(symcaches.path().to_owned()),
            ..SymbolizerOptions::default()
        };
        let symbolizer = Symbolizer::new(SymbolPath::parse(&folder.to_string_lossy()), options);
        let rvas: Vec<u64> = self.code.clone().collect();
        let names = symbolizer.resolve(&self.module, &rvas);
        (names, symbolizer.report().remove(0))
    }

    fn names_from(&self, file: &Path) -> (Vec<FrameChain>, ModuleReport) {
        let folder = TempDir::new().expect("a folder");
        let name = file.file_name().expect("a name");
        fs::copy(file, folder.path().join(name)).expect("a copy");
        self.names(folder.path())
    }
}

/// The images of the sample with their PDBs.
fn sample() -> Vec<Linked> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
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
            Some(Linked::new(image, pdb))
        })
        .collect()
}

/// Compiles and links a module.
fn link(folder: &Path, target: &str, source: &str, compile: &[&str], link: &[&str]) -> Linked {
    fs::write(folder.join("m.cpp"), source).expect("a source file");
    let runs = |program: &str, fixed: &[&str], more: &[&str]| {
        let status = Command::new(program).args(fixed).args(more).current_dir(folder).status();
        assert!(status.expect(program).success(), "{program}");
    };
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
    runs("clang++", &fixed, compile);
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
    runs("lld-link", &fixed, link);
    Linked::new(folder.join("m.dll"), folder.join("m.pdb"))
}

/// What the exports say is what the PDB says; returns how many addresses they name.
fn assert_exports_agree_with_the_pdb(linked: &Linked) -> usize {
    let (by_pdb, _) = linked.names_from(&linked.pdb);
    let (by_image, report) = linked.names_from(&linked.image);
    let mut named = 0;
    for ((rva, by_pdb), by_image) in linked.code.clone().zip(by_pdb).zip(by_image) {
        let (Some(by_pdb), Some(by_image)) = (by_pdb.last(), by_image.last()) else { continue };
        named += 1;
        let expected = (by_pdb.function.rsplit("::").next(), by_pdb.offset);
        let found = (by_image.function.rsplit("::").next(), by_image.offset);
        assert_eq!(found, expected, "{} {rva:#x}", linked.module.name);
    }
    if named > 0 {
        assert!(matches!(report.outcome, Outcome::ResolvedFromExports { .. }), "{report}");
        assert!(report.named >= named && report.wanted == linked.code.clone().count());
    }
    named
}

#[test]
fn exports_of_the_sample_name_what_its_pdbs_name() {
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
        assert_eq!(report.outcome, Outcome::NotFound);
        let [error] = report.refused.as_slice() else { panic!("one refused file: {report}") };
        assert!(matches!(**error, SymbolFileError::WrongImage { .. }), "{report}");
    }
}

#[test]
fn an_image_is_found_where_symbol_stores_keep_it() {
    let linked = sample().remove(0);
    let folder = TempDir::new().expect("a folder");
    let timestamp = linked.module.timestamp.expect("a time stamp");
    let index = format!("{timestamp:08X}{:x}", linked.module.size);
    let place = folder.path().join(&linked.module.name).join(index);
    fs::create_dir_all(&place).expect("a folder");
    fs::copy(&linked.image, place.join(&linked.module.name)).expect("a copy");
    let (_, report) = linked.names(folder.path());
    assert!(matches!(report.outcome, Outcome::ResolvedFromExports { .. }), "{report}");
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
            if let Ok(table) = pe::ExportTable::read(&bytes, &linked.image, &image) {
                for rva in linked.code.clone().step_by(7) {
                    let _ = table.function(rva);
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
            if let Ok(symcache) =
                pdb::PdbFile::open(&path).and_then(|pdb| pdb.to_symcache(&Cancel::default()))
            {
                let names = module::SymcacheNames::new(
                    symbolic::common::ByteView::from_vec(symcache),
                    None,
                );
                let rvas: Vec<u64> = linked.code.clone().collect();
                let _ = module::ModuleSymbols::Symcache(names).resolve(&rvas, linked.module.size);
            }
        }
    }
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
fn inlined_functions_are_frames_of_their_own_with_file_and_line() {
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

/// The places of the source of a function, of a PDB with a stream.
fn sources_with(stream: &str, content: &str) -> Vec<String> {
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join("stream"), content).expect("a file");
    let option = format!("/pdbstream:{stream}=stream");
    let linked =
        link(folder.path(), "x86_64", NESTED, &["-fdebug-compilation-dir=C:/build"], &[&option]);
    let (names, report) = linked.names_from(&linked.pdb);
    assert!(matches!(report.outcome, Outcome::Resolved { .. } | Outcome::NotFound), "{report}");
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

    let server = |variables: &str| {
        format!(
            "SRCSRV: ini ------\nVERSION=1\nVERCTRL=Git\nSRCSRV: variables ------\n{variables}\n\
             SRCSRV: source files ------\n{file}*src/m.cpp*abc\nSRCSRV: end ------\n"
        )
    };
    let one = server("SRCSRVTRG=https://git.example/%var3%/%var2%");
    assert_eq!(sources_with("srcsrv", &one), ["https://git.example/abc/src/m.cpp"]);
    // A PDB whose text would take all memory, or the stack, is refused.
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
fn exports_of_every_architecture_name_what_the_pdb_names() {
    for target in ["x86_64", "aarch64", "i686"] {
        let folder = TempDir::new().expect("a folder");
        let forward = ["/export:forwarded=ntdll.NtClose"];
        let options = ["-mno-stack-arg-probe", "-funwind-tables"];
        let options = if target == "aarch64" { &options[1..] } else { &options[..] };
        let linked = link(folder.path(), target, EXPORTING, options, &forward);
        if target == "i686" {
            // Here an export reaches over functions that are not exported.
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
