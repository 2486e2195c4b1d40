//! Tests of symbol paths as users write them.

use super::*;

const SERVER: &str = "https://symbols.example/download";

fn plain(path: &SymbolPath) -> Vec<PathBuf> {
    path.folders().into_iter().filter(|(_, plain)| *plain).map(|(path, _)| path).collect()
}

#[test]
fn the_text_is_given_back_as_it_was_typed() {
    let text = " /sym ;;srv*/cache*https://symbols.example/download; ";
    assert_eq!(SymbolPath::parse(text).to_string(), text);
}

#[test]
fn no_password_of_a_server_is_shown() {
    for (text, shown) in [
        ("https://joe:s3cr%40t@x/s?sig=k3y", "https://…@x/s?…"),
        (
            "/a;SRV*/c*HTTPS://t0ken@x:8080;srv*http://y/@s/?k=v;/b",
            "/a;SRV*/c*HTTPS://…@x:8080;srv*http://y/@s/?…;/b",
        ),
        ("srv**https://joe:a@b@x?u=https://joe:pw@y*/c", "srv**https://…@x?…*/c"),
    ] {
        assert_eq!(without_secrets(text), shown);
        assert_eq!(SymbolPath::parse(text).to_string(), shown);
        assert_eq!(SymbolPath::parse(text).text(), text);
    }
}

#[test]
fn servers_caches_and_folders_are_distinguished() {
    let path = SymbolPath::parse(&format!("cache*/c;/plain;SRV*/down*{SERVER}"));
    let servers: Vec<_> = path.servers().into_iter().map(|server| server.url).collect();
    assert_eq!(servers, [SERVER]);
    assert_eq!(path.first_cache(), Some("/c".into()));
    assert_eq!(plain(&path), [PathBuf::from("/plain")]);
    let folders: Vec<_> = path.folders().into_iter().map(|(folder, _)| folder).collect();
    assert_eq!(folders, [Path::new("/c"), Path::new("/plain"), Path::new("/down")]);
}

#[test]
fn relative_folders_are_taken_from_a_folder() {
    let base = |text: &str| SymbolPath::parse(text).based_on(Path::new("/base")).to_string();
    let expected = "/base/a;/b;srv*/base/c*https://x/s;cache*/base/d;SYMSRV*symsrv.dll*/base/e";
    assert_eq!(base("a; /b;srv*c*https://x/s;cache*d;SYMSRV*symsrv.dll*e"), expected);
    let same = r"srv**https://x;https://y;\\server\share;C:\symbols;srv;;cache*";
    assert_eq!(base(same), same);
    let odd = SymbolPath::parse("a").based_on(Path::new("/odd;folder"));
    assert_eq!(odd.to_string(), "a");
}

#[test]
fn without_its_servers_a_path_keeps_folders_and_caches() {
    let local = |text: &str| SymbolPath::parse(text).without_servers().to_string();
    let text = "/a;srv*/b*/c*HTTPS://x/s;srv*https://x;https://y;cache*/d;srv**https://z;srv*/e";
    assert_eq!(local(text), "/a;srv*/b*/c;cache*/d;srv*/e");
    assert!(SymbolPath::parse(text).has_servers());
    assert!(!SymbolPath::parse(&local(text)).has_servers());
}

#[test]
fn empty_entries_do_not_mean_the_working_directory() {
    for text in ["", ";", " ; ;", "\t"] {
        assert!(SymbolPath::parse(text).is_empty(), "{text:?}");
    }
    assert_eq!(plain(&SymbolPath::parse(";/a; ;/b;")).len(), 2);
}

#[test]
fn a_plain_folder_or_store_is_never_a_cache_to_write_to() {
    assert_eq!(SymbolPath::parse("/symbols").first_cache(), None);
    assert_eq!(SymbolPath::parse("srv*/store").first_cache(), None);
    assert_eq!(SymbolPath::parse("srv*/cache*/store").first_cache(), Some("/cache".into()));
}

#[test]
fn downloads_go_to_the_caches_before_the_server_and_in_its_chain() {
    let servers = |text: &str| SymbolPath::parse(text).servers();
    let server = |url: &str, caches: &[&str]| Server {
        url: url.to_owned(),
        caches: caches.iter().map(PathBuf::from).collect(),
    };
    assert_eq!(
        servers("cache*/a;srv*/b*/c*https://x/s*https://y;cache*/d;SRV*/a*https://z"),
        [
            server("https://x/s", &["/a", "/b", "/c"]),
            server("https://y", &["/a", "/b", "/c"]),
            server("https://z", &["/a", "/d"]),
        ]
    );
    assert_eq!(servers("srv*/a*https://x;srv*/b*https://x"), [server("https://x", &["/a"])]);
    assert_eq!(servers("/plain;srv*/store;cache*/c"), []);
}

#[test]
fn a_bare_address_is_a_server_with_the_default_store() {
    for text in ["https://x/s", "srv*https://x/s", "srv**https://x/s", "HTTPS://x/s"] {
        let servers = SymbolPath::parse(text).servers();
        let [server] = servers.as_slice() else { panic!("one server in {text}") };
        assert_eq!(server.url, "https://x/s");
        assert_eq!(server.caches, Vec::from_iter(default_store()));
    }
}

#[test]
fn hosts_are_those_of_servers_and_shares() {
    let path = SymbolPath::parse(r"srv*\\Files\cache*https://Sym.Example:8080/x;\\build\out;/a");
    assert_eq!(path.hosts(), ["sym.example", "files", "build"]);
}

/// Checks the property of the fuzz target `symbol_path`, for machines without a fuzzer.
#[test]
fn any_text_is_a_symbol_path() {
    const PIECES: [&str; 16] = [
        "srv",
        "symsrv",
        "cache",
        "*",
        ";",
        "**",
        "http://",
        "https://x",
        " ",
        "",
        "\\\\h\\s",
        "/f",
        "://",
        "ä",
        "\0",
        "SRV*",
    ];
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..20_000 {
        let mut text = String::new();
        for _ in 0..=(random >> 60) {
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7f);
            text.push_str(PIECES[(random >> 33) as usize % PIECES.len()]);
        }
        let path = SymbolPath::parse(&text);
        assert_eq!(path.to_string(), text);
        let settled = path.based_on(Path::new("/base"));
        assert_eq!(settled.based_on(Path::new("/other")), settled);
        assert_eq!(settled.is_empty(), path.is_empty());
        assert!(path.folders().iter().all(|(folder, _)| !folder.as_os_str().is_empty()));
        assert!(path.servers().iter().all(|server| is_address(&server.url)), "{text:?}");
        let _ = path.hosts();
    }
}
