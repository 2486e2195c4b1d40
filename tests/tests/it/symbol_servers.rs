//! Symbols from servers, through the program: existing ones are found and kept, missing ones are reported. No server
//! makes the program wait, or write where it should not.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use handlescope_tests::binary::{ProgramRun, Shell, run_over, sample_symbols};
use handlescope_tests::linked::ImageFacts;
use handlescope_tests::needs_linker;
use handlescope_tests::scenario::TraceBuilder;
use handlescope_tests::symbol_server::{ServerAnswer, SymbolServer};
use handlescope_tests::terminal::{ScreenView, Terminal};
use serde_json::{Value, json};

const STACK: &str = ".dump ObjectRef -MinMaxId 89 89 -ShowStack";
const LEAKY: &str = "leaky.pdb/641FC44082B9E1ED4C4C44205044422E1/leaky.pdb";

/// Runs commands with a server and a cache.
fn ask(shell: &Shell, server: &str, commands: &[&str]) -> ProgramRun {
    ask_with(&[], shell, server, commands)
}

fn ask_with(options: &[&str], shell: &Shell, server: &str, commands: &[&str]) -> ProgramRun {
    let mut arguments = vec!["leaky.etl", "-SymServer", server, "-symCache", "cache"];
    arguments.extend(options);
    for command in commands {
        arguments.extend(["-c", command]);
    }
    shell.run(&arguments).ok()
}

/// Returns the row of `leaky.exe` in `.dump Symbols`.
fn leaky(shell: &Shell, server: &str) -> Value {
    let run = ask(shell, server, &[".dump Symbols -Dll leaky.exe -json"]);
    let mut document: Value = serde_json::from_str(&run.stdout).expect("JSON");
    document["symbols"][0].take()
}

/// Returns all files below a folder.
fn paths(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .flat_map(|path| if path.is_dir() { paths(&path) } else { vec![path] })
        .collect()
}

/// Returns the names of all files below a folder.
fn files(folder: &Path) -> Vec<String> {
    let name = |path: &PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned());
    paths(folder).iter().filter_map(name).collect()
}

fn pdb() -> Vec<u8> {
    fs::read(sample_symbols().join(LEAKY)).expect("a PDB of the sample")
}

#[test]
fn symbols_are_downloaded_once_and_kept_for_every_session() {
    let (shell, server) = (Shell::new(), SymbolServer::for_folder(&sample_symbols()));
    let first = ask(&shell, &server.url, &[STACK]);
    assert!(first.stdout.contains("leaky.exe!leaky::EventCache::GetOrCreate\n"), "{first:?}");
    assert!(!first.stderr.contains("warning: no symbols"), "{first:?}");
    let requests = server.asked().len();
    assert_eq!(ask(&shell, &server.url, &[STACK]).stdout, first.stdout);
    assert_eq!(server.asked().len(), requests);
    let found = leaky(&shell, &server.url);
    assert_eq!((&found["status"], &found["frames_named"]), (&"pdb".into(), &found["frames"]));
    assert_eq!(found["found_in"]["kind"], "cache");
    // Debuggers can use the same cache.
    assert!(shell.path("cache").join(LEAKY).is_file());
    let offline = shell.run(&["leaky.etl", "-symFolder", "cache", "-c", STACK]).ok();
    assert_eq!(offline.stdout, first.stdout);
}

#[test]
fn wrong_answers_of_a_server_are_reported_and_not_kept() {
    let other = "kernel32.pdb/2B106654F53474234C4C44205044422E1/kernel32.pdb";
    let other = fs::read(sample_symbols().join(other)).expect("a PDB of the sample");
    let cases: [(ServerAnswer, &str, &str); 5] = [
        (ServerAnswer::Status(500), "failures", "500"),
        (ServerAnswer::CutOff(pdb(), 5000), "failures", "broke off"),
        (ServerAnswer::File(b"<html>sign in</html>".repeat(99)), "refused", "is damaged"),
        (ServerAnswer::File(other), "refused", "but the trace needs guid 641fc440"),
        (ServerAnswer::Redirect("file:///etc/passwd".into()), "failures", ""),
    ];
    for (answer, field, reason) in cases {
        let (shell, sent) = (Shell::new(), answer.clone());
        let server = SymbolServer::start(move |_| sent.clone());
        let found = leaky(&shell, &server.url);
        assert_eq!(found["status"], "not_found", "{answer:?}: {found}");
        let reported = found[field].to_string();
        assert!(reported.len() > 2 && reported.contains(reason), "{reason}: {found}");
        let kept = files(&shell.path("cache"));
        assert!(!kept.iter().any(|file| file.ends_with(".pdb")), "{reason}: {kept:?}");
        let text = ask(&shell, &server.url, &[STACK]);
        assert!(text.stdout.contains("leaky.exe+0x"), "{text:?}");
    }
}

#[test]
fn a_password_in_the_address_of_a_server_stands_nowhere() {
    let answers: [ServerAnswer; 6] = [
        ServerAnswer::File(pdb()),
        ServerAnswer::CutOff(pdb(), 5000),
        ServerAnswer::File(b"<html>sign in</html>".repeat(99)),
        ServerAnswer::Status(404),
        ServerAnswer::Status(500),
        ServerAnswer::Redirect("file:///etc/passwd".into()),
    ];
    for answer in answers {
        let (shell, sent) = (Shell::new(), answer.clone());
        let server = SymbolServer::start(move |_| sent.clone());
        let address = server.url.replace("://", "://joe:s3cret@") + "?sig=s3cret";
        let csv = format!("{STACK} -csv > stacks.csv");
        let commands =
            [STACK, &csv, ".sympath", ".dump Symbols", ".dump Symbols -json", ".symbolize"];
        for run in [ask(&shell, &address, &commands), ask(&shell, &address, &commands)] {
            assert!(run.stdout.contains("…@127.0.0.1"), "{answer:?}: {run:?}");
            assert!(!format!("{run:?}").contains("s3cret"), "{answer:?}: {run:?}");
        }
        assert!(server.asked().iter().all(|path| path.ends_with("?sig=s3cret")), "{answer:?}");
        for file in paths(shell.path("").as_path()) {
            let bytes = fs::read(&file).expect("a file");
            let text = String::from_utf8_lossy(&bytes);
            assert!(!text.contains("s3cret"), "{answer:?}: {}", file.display());
        }
    }
}

#[test]
fn a_redirect_leads_to_the_symbols() {
    let store = SymbolServer::for_folder(&sample_symbols());
    let to = store.url.clone();
    let server = SymbolServer::start(move |path| ServerAnswer::Redirect(format!("{to}/{path}")));
    let found = leaky(&Shell::new(), &server.url);
    assert_eq!((&found["status"], &found["found_in"]["kind"]), (&"pdb".into(), &"server".into()));
    assert_eq!(found["found_in"]["place"], server.url);
}

#[test]
fn missing_symbols_are_not_requested_again_until_retried() {
    let (shell, server) = (Shell::new(), SymbolServer::start(|_| ServerAnswer::Status(404)));
    let first = ask(&shell, &server.url, &[STACK]);
    assert!(first.stderr.contains("no symbols for "), "{first:?}");
    let requests = server.asked().len();
    assert!(requests > 0);
    let found = leaky(&shell, &server.url);
    assert_eq!(found["missing_at"][0]["remembered"], true, "{found}");
    assert_eq!(server.asked().len(), requests);
    let again = ask(&shell, &server.url, &[STACK, ".sympath -retry", STACK]);
    assert_eq!(server.asked().len(), 2 * requests);
    assert_eq!(again.stderr.matches("no symbols for ").count(), 2, "{again:?}");
}

#[test]
fn a_damaged_answer_is_remembered_for_minutes_and_not_as_missing() {
    let (shell, server) =
        (Shell::new(), SymbolServer::start(|_| ServerAnswer::File(b"<html>".repeat(99))));
    assert!(leaky(&shell, &server.url)["refused"][0].as_str().unwrap().contains("is damaged"));
    let requests = server.asked().len();
    let found = leaky(&shell, &server.url);
    assert_eq!(server.asked().len(), requests, "it is not asked again at once");
    let missing = json!([{ "server": server.url, "remembered": true, "refused": true }]);
    assert_eq!(found["missing_at"], missing);
    let text = ask(&shell, &server.url, &[".dump Symbols -Dll leaky.exe"]);
    assert!(text.stdout.contains("sent an unusable file minutes ago"), "{text:?}");
    ask(&shell, &server.url, &[".sympath -retry", STACK]);
    assert!(server.asked().len() > requests);
}

#[test]
fn the_largest_file_of_a_server_is_an_option() {
    let (shell, server) = (Shell::new(), SymbolServer::for_folder(&sample_symbols()));
    let ask = |limit: &str| {
        let commands = [".dump Symbols -Dll leaky.exe -json", ".sympath -retry"];
        let run = ask_with(&["--symbol-max-size", limit], &shell, &server.url, &commands);
        let document: Value = serde_json::from_str(&run.stdout).expect("JSON");
        document["symbols"][0].clone()
    };
    let refused = ask("1KiB");
    assert!(refused["refused"][0].as_str().unwrap().contains("is larger than 1024 bytes"));
    assert!(files(&shell.path("cache")).iter().all(|file| file == "missing.tsv"), "{refused}");
    assert_eq!(ask("1GiB")["status"], "pdb");
}

#[test]
fn a_dead_server_costs_no_time_and_the_next_one_is_asked() {
    let (shell, server) = (Shell::new(), SymbolServer::for_folder(&sample_symbols()));
    let start = Instant::now();
    let run = ask(&shell, &format!("http://127.0.0.1:9;{}", server.url), &[STACK]);
    assert!(start.elapsed() < Duration::from_secs(60));
    assert!(run.stdout.contains("leaky.exe!leaky::EventCache::GetOrCreate\n"), "{run:?}");
    assert_eq!(run.stderr.matches("127.0.0.1:9: ").count(), 1, "{run:?}");
}

#[test]
fn servers_that_say_nothing_are_waited_for_once_each() {
    let silent = [(); 2].map(|()| SymbolServer::start(|_| ServerAnswer::Silence));
    let [first, second] = silent.each_ref().map(|server| &server.url);
    let servers = format!("http://127.0.0.1:9;{first};{second}");
    let (shell, start) = (Shell::new(), Instant::now());
    let questions = [STACK, ".dump ObjectRef -Leak -ShowStack"];
    let run = ask_with(&["--symbol-timeout", "2"], &shell, &servers, &questions);
    // Two seconds each.
    assert!(start.elapsed() < Duration::from_secs(30), "{run:?}");
    assert!(run.stderr.contains("leaky.exe") && run.stdout.contains("leaky.exe+0x"), "{run:?}");
    for server in &silent {
        // At most as many as are requested at once, and none of them again.
        assert!(server.asked().len() <= 8, "{:?}", server.asked());
    }
}

#[test]
fn the_environment_counts_unless_something_else_is_said() {
    let server = SymbolServer::for_folder(&sample_symbols());
    let asks = |path: &str, arguments: &[&str]| {
        let (shell, before) = (Shell::new(), server.asked().len());
        let mut all = vec!["leaky.etl", "-c", STACK];
        all.extend(arguments);
        let mut command = shell.command(&all);
        let run = ProgramRun::from(command.env("_NT_SYMBOL_PATH", path).output().unwrap()).ok();
        let is_named = run.stdout.contains("leaky::EventCache::GetOrCreate");
        (is_named, server.asked().len() > before, files(&shell.path("kept")).len() > 1)
    };
    let path = format!("srv*down*{}", server.url);
    assert_eq!(asks(&path, &[]), (true, true, false));
    assert_eq!(asks(&path, &["-symcache", "kept"]), (true, true, true));
    assert_eq!(asks(&path, &["-symserver", "ntsymbolpath"]), (true, true, false));
    assert_eq!(asks(&path, &["-symfolder", "nowhere"]), (false, false, false));
    assert_eq!(asks(&path, &["-symserver", "http://127.0.0.1:9"]), (false, false, false));
    assert_eq!(asks("down", &[]), (false, false, false));
}

#[test]
fn folders_of_the_symbol_path_stay_where_they_are() {
    let shell = Shell::new();
    fs::create_dir(shell.path("elsewhere")).unwrap();
    fs::create_dir(shell.path("symbols")).unwrap();
    fs::write(shell.path("symbols").join("leaky.pdb"), pdb()).unwrap();
    let script = format!(".load leaky.etl\n.sympath symbols\n.cd elsewhere\n{STACK}\n");
    let run = shell.script(&[], &script).ok();
    assert!(run.stdout.contains("leaky::EventCache::GetOrCreate"), "{run:?}");
}

/// Sets a stand-in for the proxy that is used for all servers except those of tests. It records requests and refuses
/// them.
fn proxied(mut command: Command) -> (Command, SymbolServer) {
    let proxy = SymbolServer::start(|_| ServerAnswer::Status(403));
    for name in ["HTTPS_PROXY", "https_proxy"] {
        command.env(name, &proxy.url);
    }
    (command, proxy)
}

/// Puts a PDB of the sample where downloads go if no folder is named.
fn keep_leaky(shell: &Shell) {
    let kept = shell.path("cache/handlescope/sym").join(LEAKY);
    fs::create_dir_all(kept.parent().unwrap()).unwrap();
    fs::write(kept, pdb()).unwrap();
}

const PROMPT: &str = "leaky.etl> ";
const QUESTION: &str = " modules from Microsoft? [y/N/always] ";
const SETTINGS: &str = "config/handlescope/handlescope.toml";
const MICROSOFT: &str = "msdl.microsoft.com:443";

/// Shows stacks at the prompt and answers the offer; returns the folder, and the requests to the proxy.
fn answer_offer(answer: &str, is_agreed: bool, seen: &str) -> (Shell, Vec<String>) {
    let shell = Shell::new();
    let settings = shell.path(SETTINGS);
    fs::create_dir_all(settings.parent().unwrap()).unwrap();
    fs::write(&settings, "").unwrap();
    let (command, proxy) = proxied(shell.command(&["leaky.etl"]));
    let terminal = Terminal::start(command, 100, 50);
    let is_offered = |view: &ScreenView<'_>| view.before_cursor().ends_with(QUESTION);
    terminal.wait_for_line(PROMPT);
    terminal.send(&format!("{STACK}\r"));
    terminal.wait_until("the offer", is_offered);
    assert!(proxy.asked().is_empty(), "nothing is asked for without consent");
    terminal.send(&format!("{answer}\r"));
    terminal.wait_for(seen);
    terminal.run(PROMPT, ".dump Symbols -TopN 1");
    terminal.run(PROMPT, ".sympath");
    let path = if is_agreed { "srv**https://msdl" } else { "No symbol path is set" };
    terminal.wait_for(path);
    let offers = terminal.transcript().iter().filter(|line| line.contains(QUESTION.trim())).count();
    assert_eq!(offers, 1, "{:?}", terminal.transcript());
    let asked = proxy.asked();
    (shell, asked)
}

#[test]
fn the_prompt_downloads_from_microsoft_what_it_may() {
    let (shell, asked) = answer_offer("y", true, "msdl.microsoft.com");
    assert!(!asked.is_empty() && asked.iter().all(|address| address == MICROSOFT), "{asked:?}");
    assert_eq!(fs::read_to_string(shell.path(SETTINGS)).unwrap(), "", "for this session only");
}

#[test]
fn always_is_kept_for_later_sessions_and_scripts() {
    let (shell, asked) = answer_offer("always", true, "symbol-download is always");
    assert!(asked.iter().all(|address| address == MICROSOFT), "{asked:?}");
    let (mut command, proxy) = proxied(shell.command(&["leaky.etl", "-c", STACK]));
    let _ = ProgramRun::from(command.output().unwrap()).ok();
    assert!(proxy.asked().iter().any(|address| address == MICROSOFT));
}

#[test]
fn a_refusal_asks_for_nothing() {
    for answer in ["n", "", "what?"] {
        let (_, asked) = answer_offer(answer, false, ".sympath -symServer ms downloads them later");
        assert_eq!(asked, [""; 0], "{answer}");
    }
}

#[test]
fn scripts_get_one_warning_and_no_request() {
    let shell = Shell::new();
    fs::copy(shell.path("leaky.etl"), shell.path("again.etl")).unwrap();
    for arguments in [
        &["leaky.etl", "again.etl", "-c", STACK, "-c", ".why"][..],
        &["why", "leaky.etl", "again.etl"],
        &["dump", "ObjectRef", "-fd", "leaky.etl", "-CreateStack", "*nothing*"],
    ] {
        let (mut command, proxy) = proxied(shell.command(arguments));
        let run = ProgramRun::from(command.output().unwrap());
        assert_eq!(run.stderr.matches("no symbols for ").count(), 1, "{arguments:?}: {run:?}");
        assert_eq!(run.stderr.matches("--symserver ms").count(), 1, "{arguments:?}: {run:?}");
        assert_eq!(proxy.asked(), [""; 0], "{arguments:?}");
    }
}

#[test]
fn what_was_downloaded_before_needs_no_symbol_path() {
    let shell = Shell::new();
    keep_leaky(&shell);
    let run = shell.run(&["leaky.etl", "-c", STACK]).ok();
    assert!(run.stdout.contains("leaky.exe!leaky::EventCache::GetOrCreate\n"), "{run:?}");
}

#[test]
fn a_store_with_two_tiers_serves_and_is_filled() {
    let two_tiers = format!("le/{LEAKY}");
    let server = SymbolServer::start({
        let (path, pdb) = (two_tiers.clone(), pdb());
        move |asked| match asked {
            "index2.txt" => ServerAnswer::File(Vec::new()),
            asked if asked == path => ServerAnswer::File(pdb.clone()),
            _ => ServerAnswer::Status(404),
        }
    });
    let shell = Shell::new();
    fs::create_dir(shell.path("cache")).unwrap();
    fs::write(shell.path("cache/index2.txt"), "").unwrap();
    let named =
        |run: &ProgramRun| run.stdout.contains("leaky.exe!leaky::EventCache::GetOrCreate\n");
    assert!(named(&ask(&shell, &server.url, &[STACK])), "{:?}", server.asked());
    assert!(shell.path("cache").join(&two_tiers).is_file());
    let offline = shell.run(&["leaky.etl", "-symFolder", "cache", "-c", STACK]).ok();
    assert!(named(&offline), "{offline:?}");
}

#[test]
fn a_symbol_path_that_is_not_as_meant_gets_one_warning_with_a_remedy() {
    let server = SymbolServer::for_folder(&sample_symbols());
    let url = &server.url;
    for (path, words, is_named) in [
        ("srv*".to_owned(), "srv* names no server", false),
        ("cache*".to_owned(), "cache* names no server", false),
        (format!("\"srv*down*{url}\""), "quotes in the symbol path", true),
        (format!("srv*down* {url}"), "a blank beside *", true),
        ("nowhere".to_owned(), "no folder ", false),
        #[cfg(unix)]
        (format!(r"srv*C:\symbols*{url}"), r"C:\symbols is a Windows folder", true),
        #[cfg(unix)]
        (r"C:\symbols".to_owned(), r"C:\symbols is a Windows folder", false),
    ] {
        let shell = Shell::new();
        let mut command = shell.command(&["leaky.etl", "-c", STACK, "-c", ".why"]);
        let run = ProgramRun::from(command.env("_NT_SYMBOL_PATH", &path).output().unwrap()).ok();
        let of_path = run.stderr.lines().filter(|line| line.contains("_NT_SYMBOL_PATH: "));
        let of_path: Vec<&str> = of_path.collect();
        assert!(of_path.len() == 1 && of_path[0].contains(words), "{path}: {run:?}");
        assert_eq!(run.stdout.contains("leaky::EventCache::GetOrCreate"), is_named, "{path}");
        let odd = fs::read_dir(shell.path(""))
            .unwrap()
            .flatten()
            .map(|entry| entry.file_name())
            .filter(|name| name.to_string_lossy().contains([':', '\\', '"', ' ']));
        assert_eq!(odd.count(), 0, "{path}");
    }
}

const INLINED: &str = r"
__attribute__((always_inline)) static unsigned inner(volatile unsigned *p) {
    return *p * 3;
}
namespace leak {
struct Cache {
    unsigned x;
    __attribute__((always_inline)) unsigned find(volatile unsigned *p) { return inner(p) + x; }
    __declspec(dllexport) __attribute__((noinline)) unsigned open(volatile unsigned *p);
};
unsigned Cache::open(volatile unsigned *p) {
    *p = 7;
    unsigned r = find(p);
    *p = r;
    return r;
}
}
";

/// Compiles and links `m.dll` with its `m.pdb`.
fn link(folder: &Path) {
    fs::write(folder.join("m.cpp"), INLINED).unwrap();
    let compile = "--target=x86_64-pc-windows-msvc -O1 -g -gcodeview -c m.cpp -o m.obj";
    let link = "/nologo /nodefaultlib /dll /noentry /debug /opt:noref /out:m.dll /pdb:m.pdb m.obj";
    for (program, arguments) in [("clang++", compile), ("lld-link", link)] {
        let mut command = Command::new(program);
        let status = command.args(arguments.split(' ')).current_dir(folder).status();
        assert!(status.unwrap().success(), "{program}");
    }
}

/// Makes `m.dll` with `m.pdb` in a folder, and a trace of code in it that is inlined.
pub fn inlined_code(folder: &Path) -> TraceBuilder {
    const BASE: u64 = 0x7FF6_0000_0000;
    link(folder);
    let ImageFacts { guid, age, .. } = ImageFacts::read(&folder.join("m.dll")).unwrap();
    let mut trace = TraceBuilder::new();
    trace.process(700, "app.exe");
    trace.module(700, r"C:\app\m.dll", BASE, 0x5000).pdb(r"C:\build\m.pdb", guid, age);
    trace.object_type(16, "Event");
    let code: Vec<u64> = (0x1000..0x1018).map(|rva| BASE + rva).collect();
    trace.create_handle(1_000_000, (700, 701), 0xFFFF_8000_0000_1000, 4, 16).stack(&[], &code);
    trace
}

#[needs_linker]
#[test]
fn inlined_functions_of_a_fresh_pdb_have_frames_and_lines_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let trace = inlined_code(folder.path());
    let pdb = fs::read(folder.path().join("m.pdb")).unwrap();
    let server = SymbolServer::start(move |path| {
        if path.ends_with("/m.pdb") {
            ServerAnswer::File(pdb.clone())
        } else {
            ServerAnswer::Status(404)
        }
    });
    let script = format!(
        ".sympath -symserver {} -symcache cache\n.dump ObjectRef -ShowStack -ShowLine\n\
         .dump ObjectRef -CreateStack m.dll!inner -ShowTotal None\n\
         .dump ObjectRef -CreateStack !*leak::Cache::find\n",
        server.url
    );
    let run = run_over(&trace, &script).ok();
    let frames = [
        "m.dll!inner [inlined] ",
        "m.dll!leak::Cache::find [inlined] ",
        "m.dll!leak::Cache::open ",
    ];
    let lines: Vec<&str> = run.stdout.lines().collect();
    let is_chain = |lines: &[&str]| lines.iter().zip(frames).all(|(l, frame)| l.contains(frame));
    let chain = lines.windows(3).find(|lines| is_chain(lines)).expect("three functions");
    for (line, number) in chain.iter().zip([3, 8, 13]) {
        assert!(line.ends_with(&format!("m.cpp:{number}")), "{chain:?}");
    }
    // Once with its frames, and once because of an inlined function.
    assert_eq!(run.stdout.matches("Id: 1 ").count(), 2, "{run:?}");
}
