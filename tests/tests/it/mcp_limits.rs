//! What `handlescope mcp` does not do: read outside its roots, write, take arguments as options, or continue without a
//! client.

use std::fs;
use std::time::{Duration, Instant};
#[cfg(unix)]
use std::{
    io::{PipeReader, Read as _, Write as _},
    process::{Child, ChildStdin, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
};

use handlescope_tests::binary::{Shell, sample_symbols, sample_trace};
#[cfg(unix)]
use handlescope_tests::binary::{ended, handlescope};
use handlescope_tests::folders::files;
use handlescope_tests::mcp::McpServer;
use handlescope_tests::symbol_server::{ServerAnswer, SymbolServer};
use serde_json::json;

#[test]
fn nothing_outside_of_the_roots_is_read() {
    let shell = Shell::new();
    let mut server = McpServer::with_sample(&shell, &[]);
    let outside = shell.path("leaky.etl");
    let mut paths =
        vec![outside.to_str().unwrap(), "../leaky.etl", "..", "/", "../none", "/etc/passwd"];
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(&outside, shell.path("traces/file.etl")).unwrap();
        std::os::unix::fs::symlink(shell.path(""), shell.path("traces/folder")).unwrap();
        paths.extend(["file.etl", "folder", "folder/leaky.etl"]);
    }
    for path in paths {
        for arguments in
            [json!({"paths": [path]}), json!({"paths": ["leaky.etl"], "symbols": [path]})]
        {
            let error = server.call("load", &arguments).unwrap_err();
            assert!(error.contains("is outside the folders that may be read: "), "{path}: {error}");
        }
    }
    // A pattern is taken as a file name, and there is no such file.
    let error = server.call("load", &json!({"paths": ["*.etl"]})).unwrap_err();
    assert!(error.contains("file not found"), "{error}");
}

#[cfg(unix)]
#[test]
fn a_link_out_of_the_roots_is_neither_found_in_a_folder_nor_used_as_an_extract() {
    let shell = Shell::new();
    let mut server = McpServer::with_sample(&shell, &[]);
    let secret = shell.path("secret.etl");
    fs::copy(sample_trace(), &secret).unwrap();
    std::os::unix::fs::symlink(&secret, shell.path("traces/link.etl")).unwrap();
    let loaded = server.call("load", &json!({"paths": ["."]})).unwrap();
    assert_eq!(loaded["document"]["files"][0]["path"], "leaky.etl", "{loaded}");
    assert_eq!(loaded["total"], 1, "{loaded}");
    let said = loaded["warnings"].to_string();
    assert!(said.contains("not loaded: link.etl: is outside the folders"), "{said}");
    fs::remove_file(shell.path("traces/link.etl")).unwrap();
    // An extract outside the roots that could pass for the trace's.
    let _ = shell.run(&["traces/leaky.etl", "-c", ".list"]).ok();
    fs::rename(shell.path("traces/Extract"), shell.path("outside")).unwrap();
    std::os::unix::fs::symlink(shell.path("outside"), shell.path("traces/Extract")).unwrap();
    let loaded = server.load_sample();
    assert_eq!(
        loaded["document"]["files"][0]["temporary_extract"], true,
        "it was extracted: {loaded}"
    );
    fs::remove_file(shell.path("traces/Extract")).unwrap();
    fs::rename(shell.path("outside"), shell.path("traces/Extract")).unwrap();
    let loaded = server.load_sample();
    let temporary = loaded["document"]["files"][0].get("temporary_extract");
    assert!(temporary.is_none(), "the extract is used: {loaded}");
    // The extract would be written outside.
    let mut writer = McpServer::start(&shell.path(""), &["--root", "traces", "--allow-write"]);
    fs::rename(shell.path("traces/Extract"), shell.path("outside")).unwrap();
    fs::remove_file(shell.path("outside/leaky.json7z")).unwrap();
    std::os::unix::fs::symlink(shell.path("outside"), shell.path("traces/Extract")).unwrap();
    let loaded = writer.load_sample();
    assert!(loaded["warnings"].to_string().contains("is outside the folders"), "{loaded}");
    assert_eq!(files(&shell.path("outside")), []);
}

/// A link replaces the file between the check of its name and its opening.
#[cfg(unix)]
#[test]
fn a_link_that_takes_the_place_of_a_file_while_it_is_loaded_does_not_lead_outside() {
    let shell = Shell::new();
    let mut server = McpServer::with_sample(&shell, &[]);
    let log = fs::read_to_string(sample_trace().with_file_name("htrace.log")).unwrap();
    let (good, secret) = (shell.path("good.log"), shell.path("secret.log"));
    fs::write(&good, &log).unwrap();
    fs::write(&secret, log.split_at(log.len() * 2 / 3).0).unwrap();
    let (path, new) = (shell.path("traces/a.log"), shell.path("traces/new"));
    fs::hard_link(&good, &path).unwrap();
    let loaded = json!({"paths": ["a.log"]});
    server.call("load", &loaded).unwrap();
    let events =
        server.call("stats", &json!({})).unwrap()["document"]["files"][0]["handle_events"].clone();
    let is_over = Arc::new(AtomicBool::new(false));
    let swapping = thread::spawn({
        let is_over = Arc::clone(&is_over);
        move || {
            while !is_over.load(Ordering::Relaxed) {
                std::os::unix::fs::symlink(&secret, &new).unwrap();
                fs::rename(&new, &path).unwrap();
                fs::hard_link(&good, &new).unwrap();
                fs::rename(&new, &path).unwrap();
            }
        }
    });
    let mut too_late = 0;
    for _ in 0..2_000 {
        match server.call("load", &loaded) {
            Ok(_) => {
                let stats = server.call("stats", &json!({})).unwrap();
                assert_eq!(stats["document"]["files"][0]["handle_events"], events, "{stats}");
            }
            // The name was right when it was checked.
            Err(error) => too_late += usize::from(error.contains("cannot open: it is outside")),
        }
        if too_late == 3 {
            break;
        }
    }
    assert_eq!(too_late, 3);
    is_over.store(true, Ordering::Relaxed);
    swapping.join().unwrap();
}

/// Renames the symbols, because a folder `symbols` beside a trace would be found without being asked for.
fn rename_symbols(shell: &Shell) {
    fs::rename(shell.path("traces/symbols"), shell.path("traces/pdbs")).unwrap();
}

#[cfg(unix)]
#[test]
fn symbols_are_not_found_by_links_out_of_their_folder() {
    let shell = Shell::new();
    let mut server = McpServer::with_sample(&shell, &[]);
    rename_symbols(&shell);
    fs::create_dir(shell.path("traces/linked")).unwrap();
    for entry in fs::read_dir(sample_symbols()).unwrap().map(Result::unwrap) {
        let link = shell.path("traces/linked").join(entry.file_name());
        std::os::unix::fs::symlink(entry.path().canonicalize().unwrap(), link).unwrap();
    }
    // The linked folder comes first, because a PDB that was converted once serves the whole session.
    for (folder, function) in
        [("linked", "leaky.exe+0x"), ("pdbs", "leaky.exe!leaky::EventCache::GetOrCreate")]
    {
        let sample = json!({"paths": ["leaky.etl"], "symbols": [folder]});
        server.call("load", &sample).unwrap();
        let why = server.call("why", &json!({})).unwrap();
        let found = why["document"]["suspects"][0]["function"].as_str().unwrap().to_owned();
        assert!(found.starts_with(function), "{folder}: {found}");
    }
}

#[test]
fn nothing_is_written_unless_it_is_allowed() {
    let shell = Shell::new();
    let mut server =
        McpServer::with_sample(&shell, &["--symbol-path", "cache*symbols-cache;traces/symbols"]);
    let before = files(&shell.path(""));
    server.load_sample();
    for (tool, arguments) in [
        ("why", json!({})),
        ("groups", json!({"by": ["type"]})),
        ("allocations", json!({"by": ["createstack"], "stacks": true})),
        ("objects", json!({"stacks": true})),
        ("stats", json!({})),
        ("sql", json!({"query": "SELECT text FROM stacks"})),
    ] {
        server.call(tool, &arguments).unwrap();
    }
    assert_eq!(server.end().status, Some(0));
    // The temporary files are gone with the session, too.
    assert_eq!(files(&shell.path("")), before);

    let mut server = McpServer::with_sample(&shell, &["--allow-write"]);
    let list = server.request("tools/list", &json!({}));
    assert_eq!(list["result"]["tools"][0]["annotations"]["readOnlyHint"], false);
    server.load_sample();
    assert!(shell.path("traces/Extract/leaky.json7z").is_file());
}

#[test]
fn arguments_are_never_options_or_files() {
    let shell = Shell::new();
    let mut server = McpServer::with_sample(&shell, &[]);
    server.load_sample();
    let before = files(&shell.path(""));
    for (tool, arguments) in [
        ("sql", json!({"query": "SELECT pid FROM leaks -csv x.csv"})),
        ("sql", json!({"query": "SELECT pid FROM leaks -parquet x.parquet"})),
        ("sql", json!({"query": "SELECT pid FROM leaks > x.csv"})),
        ("sql", json!({"query": "SELECT pid FROM leaks >> ./x"})),
        ("sql", json!({"query": "-csv x.csv SELECT pid FROM leaks"})),
        ("sql", json!({"query": "SELECT * FROM read_csv('leaky.etl')"})),
        ("sql", json!({"query": "DROP TABLE leaks"})),
        ("sql", json!({"query": "-help"})),
        ("objects", json!({"type": "-csv", "name": "x.csv"})),
        ("objects", json!({"type": "> x.csv", "name": ">"})),
        ("objects", json!({"type": "Event", "sort_by": ">x.csv"})),
        ("objects", json!({"csv": "x.csv"})),
        ("objects", json!({"file": "x.csv"})),
        ("groups", json!({"by": ["type -csv x.csv"]})),
        ("allocations", json!({"by": ["kind > x.csv"]})),
        ("allocations", json!({"by": ["kind"], "allocator": "> x.csv", "kind": "-csv"})),
        ("allocations", json!({"by": ["kind"], "sort_by": ">x.csv"})),
        ("why", json!({"process": "-help"})),
        ("why", json!({"race_window": "1ms > x.csv"})),
        ("schema", json!({"tables": ["-markdown"]})),
        ("load", json!({"paths": ["-MaxSize"]})),
    ] {
        match server.call(tool, &arguments) {
            // A filter that matches nothing.
            Ok(answer) => assert_eq!(answer["total"], 0, "{tool} {arguments}"),
            Err(error) => assert!(!error.is_empty()),
        }
    }
    for uri in ["handlescope://help/.load/>/x.txt", "handlescope://help/ObjectRef/>x.txt"] {
        let page = server.request("resources/read", &json!({"uri": uri}));
        assert!(page["error"].is_object(), "{page}");
    }
    assert_eq!(files(&shell.path("")), before);
}

#[test]
fn a_call_that_is_cancelled_makes_room_for_the_next() {
    let silent = SymbolServer::start(|_| ServerAnswer::Silence);
    let shell = Shell::new();
    let mut server = McpServer::with_sample(&shell, &["--allow-write", "--symserver", &silent.url]);
    rename_symbols(&shell);
    server.call("load", &json!({"paths": ["leaky.etl"]})).unwrap();
    let started = Instant::now();
    let id = server.send("tools/call", &json!({"name": "why", "arguments": {}}));
    while silent.asked().is_empty() {
        std::thread::sleep(Duration::from_millis(20));
        assert!(started.elapsed() < Duration::from_secs(15), "the server of symbols is asked");
    }
    server.notify("notifications/cancelled", &json!({"requestId": id}));
    assert_eq!(server.call("stats", &json!({})).unwrap()["total"], 1);
    // Waiting for the silent server would take longer.
    assert!(started.elapsed() < Duration::from_secs(19), "{:?}", started.elapsed());
}

#[test]
fn servers_of_symbols_are_asked_only_where_writing_is_allowed() {
    let store = SymbolServer::for_folder(&sample_symbols());
    let shell = Shell::new();
    let path = format!("srv*cache*{}", store.url);
    let mut reader = McpServer::with_sample(&shell, &["--symbol-path", &path]);
    reader.call("load", &json!({"paths": ["leaky.etl"]})).unwrap();
    reader.call("why", &json!({})).unwrap();
    let run = reader.end();
    assert!(run.stderr.contains("symbol servers are not used"), "{run:?}");
    assert_eq!(store.asked(), [""; 0]);
    let mut writer = McpServer::with_sample(&shell, &["--allow-write", "--symbol-path", &path]);
    writer.call("load", &json!({"paths": ["leaky.etl"]})).unwrap();
    let why = writer.call("why", &json!({})).unwrap();
    let first = &why["document"]["suspects"][0];
    assert_eq!(first["function"], "leaky.exe!leaky::EventCache::GetOrCreate");
}

#[cfg(unix)]
#[test]
fn a_signal_ends_the_server_and_its_temporary_files() {
    let shell = Shell::new();
    let mut server = McpServer::with_sample(&shell, &[]);
    server.load_sample();
    assert!(!files(&shell.path("tmp")).is_empty());
    let kill =
        std::process::Command::new("kill").args(["-TERM", &server.id().to_string()]).status();
    assert!(kill.unwrap().success());
    let started = Instant::now();
    let run = server.end();
    assert_eq!(run.status, Some(143), "{run:?}");
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    assert_eq!(files(&shell.path("tmp")), []);
}

#[cfg(target_os = "linux")]
#[test]
fn temporary_folders_are_private_and_go_when_their_server_was_killed() {
    use std::{collections::BTreeSet, os::unix::fs::PermissionsExt as _};

    let shell = Shell::new();
    let folders = || -> BTreeSet<_> {
        let entries = fs::read_dir(shell.path("tmp")).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    };
    let mut server = McpServer::with_sample(&shell, &[]);
    server.load_sample();
    let killed = folders();
    // One with function names, and one with the extract.
    assert_eq!(killed.len(), 2);
    for folder in &killed {
        let mode = fs::metadata(folder).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{folder:?}");
    }
    drop(server);
    assert_eq!(folders(), killed);
    let _server = McpServer::with_sample(&shell, &[]);
    assert!(folders().is_disjoint(&killed), "{:?}", folders());
}

#[test]
fn a_root_that_is_no_folder_is_an_error() {
    let shell = Shell::new();
    let run = shell.run(&["mcp", "--root", "none"]);
    assert_eq!(run.status, Some(1));
    assert!(run.stderr.contains("none: not a readable folder"), "{run:?}");
    assert_eq!(shell.run(&["mcp", "--rot", "."]).status, Some(2));
    // Nothing was sent.
    assert_eq!(shell.run(&["mcp"]).ok().stdout, "");
}

/// Starts a server with a client that does not read the answers. The client sends this many requests of this size, as
/// far as the server takes them. Returns the program, its output, and the sending thread, which returns the input when
/// everything is sent.
#[cfg(unix)]
fn unread(
    shell: &Shell,
    requests: usize,
    bytes: usize,
) -> (Child, PipeReader, JoinHandle<Option<ChildStdin>>) {
    let (mut output, writer) = std::io::pipe().unwrap();
    let mut command = handlescope(&shell.path(""));
    command.arg("mcp").stdin(Stdio::piped()).stdout(writer).stderr(Stdio::null());
    let mut program = command.spawn().unwrap();
    let mut input = program.stdin.take().unwrap();
    let client = json!({"name": "test", "version": "1"});
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    let first = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello});
    let second = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let params = json!({"_meta": {"padding": "x".repeat(bytes)}});
    let lists = (1..=requests)
        .map(|id| json!({"jsonrpc": "2.0", "id": id, "method": "tools/list", "params": params}));
    let lines: Vec<_> =
        [first, second].into_iter().chain(lists).map(|m| format!("{m}\n")).collect();
    let sender =
        thread::spawn(move || input.write_all(lines.concat().as_bytes()).ok().map(|()| input));
    output.read_exact(&mut [0]).expect("the first answer");
    (program, output, sender)
}

#[cfg(unix)]
#[test]
fn a_client_that_reads_nothing_does_not_keep_the_server() {
    let shell = Shell::new();
    for (signal, status) in [(None, 0), (Some("-TERM"), 143), (Some("-INT"), 130)] {
        // More answers than fit into a pipe.
        let (mut program, _output, sender) = unread(&shell, 1_000, 0);
        let input = sender.join().unwrap().expect("all are taken");
        match signal {
            None => drop(input),
            Some(signal) => {
                let id = program.id().to_string();
                assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
            }
        }
        assert_eq!(ended(&mut program).code(), Some(status), "{signal:?}");
    }
}

#[cfg(unix)]
#[test]
fn requests_are_not_taken_while_too_many_answers_wait() {
    let shell = Shell::new();
    // Many more than the server reads ahead.
    let (mut program, _output, sender) = unread(&shell, 1_000, 10_000);
    let start = Instant::now();
    while !sender.is_finished() && start.elapsed() < Duration::from_secs(5) {
        thread::sleep(Duration::from_millis(20));
    }
    program.kill().unwrap();
    program.wait().unwrap();
    assert!(sender.join().unwrap().is_none(), "all were taken");
}
