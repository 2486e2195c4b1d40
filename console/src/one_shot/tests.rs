//! Tests of how command lines are parsed.

use handlescope_symbols::ServerChoice;

use super::*;
use handlescope_commands::dump::object_ref::ObjectRefArgs;
use handlescope_commands::extract::ExtractArgs;
use handlescope_commands::registry::REGISTRY;

fn parsed(line: &[&str]) -> Option<Result<OneShot, LineRefusal>> {
    let words: Vec<String> = line.iter().map(|word| (*word).to_owned()).collect();
    parse(&words)
}

fn shot(line: &[&str]) -> OneShot {
    parsed(line).expect("one shot").unwrap_or_else(|error| panic!("{line:?}: {error:?}"))
}

fn refused(line: &[&str]) -> String {
    match parsed(line).expect("one shot") {
        Ok(_) => panic!("{line:?} is accepted"),
        Err(LineRefusal::Command(error)) => error.to_string(),
        Err(LineRefusal::Globals(error)) => error.to_string(),
    }
}

/// Returns the console line that a dump is the same as, and what is loaded first.
fn dump(line: &[&str]) -> (String, LoadArgs) {
    let shot = shot(line);
    let command = shot.command.expect("a command");
    assert!(command.call.args().is::<ObjectRefArgs>(), "{line:?}: {command:?}");
    (command.call.shared().expect("a kind").text.clone(), shot.load.expect("files"))
}

/// Returns the arguments of an extraction.
fn extraction(line: &[&str]) -> ExtractArgs {
    let command = shot(line).command.expect("a command");
    command.call.args().downcast_ref::<ExtractArgs>().unwrap_or_else(|| panic!("{line:?}")).clone()
}

#[test]
fn a_dump_is_written_in_many_ways() {
    let expected = (".dump ObjectRef -Leak".to_owned(), LoadArgs::replacing(vec!["a.etl".into()]));
    for line in [
        &["dump", "ObjectRef", "-fd", "a.etl", "-Leak"][..],
        &["-dump", "ObjectRef", "-fd", "a.etl", "-Leak"],
        &["-DUMP", "ObjectRef", "-FileDir", "a.etl", "-Leak", "-nocolor", "-debug"],
        &["-fd", "a.etl", "-dump", "ObjectRef", "-Leak"],
        &["-fd", "a.etl", "ObjectRef", "-Leak", "-dump"],
        &["--color", "never", "dump", "ObjectRef", "-Leak", "-fd", "a.etl"],
        &["dump", "ObjectRef", "-Leak", "--symbol-path=x", "-fd", "a.etl", "--keep-going"],
    ] {
        assert_eq!(dump(line), expected, "{line:?}");
    }
}

#[test]
fn a_kind_behind_dump_is_no_value_of_an_option_in_front_of_it() {
    let (text, _) = dump(&["-fd", "a.etl", "-MinMaxDuration", "9999", "-dump", "ObjectRef"]);
    assert_eq!(text, ".dump ObjectRef -MinMaxDuration 9999");
}

#[test]
fn words_with_spaces_stay_whole_and_can_be_typed_again() {
    let (text, load) = dump(&["dump", "ObjectRef", "-fd", "a b.etl", "-ObjectName", "*a b*;!*c*"]);
    assert_eq!(text, r#".dump ObjectRef -ObjectName "*a b*;!*c*""#);
    assert_eq!(load.queries, ["a b.etl"]);
    let typed = REGISTRY.parse(&text).expect("a line").expect("a command");
    assert_eq!(typed.call.shared().expect("a kind").text, text);
}

#[test]
fn files_are_those_behind_fd_or_the_current_folder() {
    assert_eq!(dump(&["-dump", "ObjectRef"]).1.queries, ["."]);
    let line = ["-dump", "-fd", "a", "ObjectRef", "-fd", "b", "-recursive"];
    let (text, load) = dump(&line);
    assert_eq!((load.queries, load.recursive), (vec!["a".into(), "b".into()], true));
    assert_eq!(text, ".dump ObjectRef");
    assert!(refused(&["-dump", "ObjectRef", "-fd", "-Leak"]).starts_with("-fd needs a value"));
}

#[test]
fn a_console_loads_what_stands_behind_it() {
    let console = shot(&["-console", "-fd", "a.etl", "-r", "b c.etl"]);
    let load = console.load.expect("files");
    assert_eq!((load.queries, load.recursive), (vec!["a.etl".into(), "b c.etl".into()], true));
    assert!(console.command.is_none());
    assert!(shot(&["-console"]).load.is_none());
    assert_eq!(shot(&["-console", "-c", ".list"]).globals.commands, [".list"]);
}

#[test]
fn nocolor_alone_opens_a_console_without_colours() {
    let console = shot(&["-NoColor"]);
    assert_eq!(console.globals.color, Some(ColorChoice::Never));
    assert!(console.load.is_none() && console.command.is_none());
    let console = shot(&["a.etl", "-nocolor", "-c", ".list"]);
    assert_eq!(console.load.expect("files").queries, ["a.etl"]);
    assert_eq!(console.globals.commands, [".list"]);
}

#[test]
fn options_about_symbols_are_those_of_the_session_or_of_an_extraction() {
    for line in [
        &["-dump", "ObjectRef", "-fd", "a.etl", "-SymServer", "ms", "-symCache", "c d"][..],
        &["-symcache", "c d", "a.etl", "-symserver", "MS", "-c", ".list"],
        &["dump", "ObjectRef", "-fd", "a.etl", "--symserver", "ms", "--symcache=c d"],
    ] {
        let symbols = shot(line).globals.symbols;
        assert_eq!(symbols.servers.as_deref(), Some(&[ServerChoice::Microsoft][..]), "{line:?}");
        assert_eq!(symbols.cache.as_deref(), Some(Path::new("c d")), "{line:?}");
    }
    for line in [
        &["extract", "a.etl", "-symServer", "google", "-symFolder", "f", "--symbol-path", "p"][..],
        &["--symbol-path=p", "--symserver", "google", "extract", "--symfolder=f", "a.etl"],
        &[
            "-symFolder",
            "f",
            "--symbol-path",
            "p",
            "-fd",
            "a.etl",
            "-symserver",
            "google",
            "-extract",
        ],
    ] {
        let args = extraction(line);
        assert_eq!(args.queries, ["a.etl"], "{line:?}");
        assert_eq!(args.symbols.servers.as_deref(), Some(&[ServerChoice::Google][..]), "{line:?}");
        assert_eq!(args.symbols.folder.as_deref(), Some(Path::new("f")), "{line:?}");
        assert_eq!(args.symbols.path.as_deref(), Some("p"), "{line:?}");
    }
    for (line, message) in [
        (&["-dump", "ObjectRef", "-symserver"][..], "a value is required for '--symserver"),
        (&["extract", "a.etl", "-symserver"], "--symserver needs a value"),
        (&["a.etl", "-symserver", "syngo"], "'syngo' is not a symbol server"),
    ] {
        let error = refused(line);
        assert!(error.contains(message), "{line:?}: {error}");
    }
}

#[test]
fn extractions_go_with_and_without_extractors() {
    for line in [
        &["extract", "a.etl", "-o", "out"][..],
        &["extract", "a.etl", "--outdir", "out"],
        &["-extract", "ObjectRef", "-fd", "a.etl", "-outdir", "out"],
        &["-extract", "all", "cpu", "-OutDir", "out", "a.etl"],
    ] {
        let args = extraction(line);
        assert_eq!(args.queries, ["a.etl"], "{line:?}");
        assert_eq!(args.outdir.as_deref(), Some(Path::new("out")), "{line:?}");
    }
}

/// Returns the command of a line as the prompt has it, and the files that are loaded first.
fn loaded(line: &[&str]) -> (String, Vec<String>) {
    let shot = shot(line);
    let command = shot.command.expect("a command").call;
    let text = command.shared().map(|shared| shared.text.clone());
    (text.unwrap_or_else(|| format!("{command:?}")), shot.load.expect("files").queries)
}

#[test]
fn a_query_and_its_files_stand_in_any_order() {
    let query = "SELECT 'a b' FROM leaks";
    let (text, files) = loaded(&["sql", "a.etl", "b.etl", query, "-json"]);
    assert_eq!(
        (&*text, &*files.join(" ")),
        (".sql \"SELECT 'a b' FROM leaks\" -json", "a.etl b.etl")
    );
    for line in [
        &["sql", query, "a.etl", "-json"][..],
        &["sql", "--json", "a.etl", query],
        &["sql", "-fd", "a.etl", query, "-json"],
        &["sql", "a.etl", "SELECT", "'a", "b'", "FROM", "leaks", "-json"],
        &["sql", "a.etl", "q.sql", "-json"],
    ] {
        assert_eq!(loaded(line).1, ["a.etl"], "{line:?}");
    }
    assert!(refused(&["sql", "a.etl"]).starts_with("handlescope sql needs a query"));
}

#[test]
fn a_picture_follows_the_traces_that_it_is_drawn_of() {
    for line in [
        &["flame", "a.etl", "b.etl", "leaks.svg", "-pn", "leaky"][..],
        &["plot", "a.etl", "b.etl", "leaks.svg", "-pn", "leaky"],
        &["plot", "-pn", "leaky", "a.etl", "b.etl"],
    ] {
        assert_eq!(shot(line).load.expect("files").queries, ["a.etl", "b.etl"], "{line:?}");
    }
    let error = refused(&["flame", "a.etl"]);
    assert!(
        error.starts_with("handlescope flame needs NAME.svg, NAME.speedscope.json or NAME.pb.gz"),
        "{error}"
    );
}

#[test]
fn a_kind_of_a_dump_may_go_without_dump() {
    let (text, files) = loaded(&["stats", "a.etl", "-Properties", "computer"]);
    assert_eq!((&*text, files), (".dump stats -Properties computer", vec!["a.etl".to_owned()]));
    assert_eq!(
        dump(&["ObjectRef", "a.etl", "-Leak"]),
        dump(&["dump", "ObjectRef", "a.etl", "-Leak"])
    );
    assert_eq!(dump(&["dump", "-Leak", "ObjectRef", "a.etl"]).1.queries, ["a.etl"]);
    assert_eq!(dump(&["dump", "a.etl", "ObjectRef", "-Leak"]).1.queries, ["a.etl"]);
}

#[test]
fn help_is_about_any_topic() {
    for (line, topic) in [
        (&["help", "why"][..], ".why"),
        (&["help", "ObjectRef"], "ObjectRef"),
        (&["help", "dump", "ObjectRef", "-Leak"], "-Leak"),
        (&["help", "leak"], "-Leak"),
        (&["help", "convert-time"], ".converttime"),
        (&["help", "filters"], "filters"),
        (&["help", "help"], ".help"),
        (&["help", "--help"], ".help"),
        (&["help", ".list"], ".list"),
    ] {
        let command = shot(line).command.expect("a command");
        assert_eq!(format!("{:?}", command.call), format!("help on {topic}"), "{line:?}");
    }
    for (line, part) in [
        (&["help"][..], "Usage: handlescope"),
        (&["help", "record"], "Usage: handlescope record"),
        (&["help", "dataset", "add"], "Usage: handlescope dataset add"),
        (&["help", "reprot"], "no help on 'reprot', did you mean .report?"),
    ] {
        assert!(refused(line).contains(part), "{line:?}: {}", refused(line));
    }
}

#[test]
fn a_wrong_line_says_why() {
    for (line, message) in [
        (&["-dump", "ObjectRef", "-Laek"][..], "unknown option -Laek, did you mean -Leak?"),
        (
            &["-extract", "ObjectReff", "-fd", "a.etl"],
            "unexpected 'ObjectReff', did you mean ObjectRef?",
        ),
        (&["-extract", "All", "-fd", "a.etl", "-Indent"], "-Indent: an extract holds tables"),
        (
            &["-extract", "All", "-fd", "a", "-symServer", "syngo"],
            "--symserver: 'syngo' is not a symbol server",
        ),
        (&["extract"], "handlescope extract needs at least one trace"),
        (
            &["-extract", "cpu", "disk", "-fd", "a"],
            "handlescope extract: CPU, Disk: not extracted; an extract",
        ),
        (&["why", "-x"], "unknown option -x; handlescope why --help lists the options"),
        (
            &["dump", "ObjectRef", "-x"],
            "unknown option -x; handlescope dump ObjectRef --help lists the options",
        ),
        (
            &["why", "a.etl", "--symbolpath", "s"],
            "unknown option --symbolpath, did you mean --symbol-path?",
        ),
        (
            &["dump", "Bogus", "a.etl"],
            "handlescope dump has no kind 'Bogus'; the kinds are ObjectRef",
        ),
        (&["dump", "a.etl", "CPU"], "handlescope dump has no kind 'CPU'; CPU is not about handles"),
        (&["dump", "a.etl"], "handlescope dump needs a kind"),
        (
            &["export", "a.etl", "tables"],
            ".export is a command of the prompt; write handlescope FILE -c '.export FOLDER'",
        ),
        (&["-mcp"], "-mcp: start the MCP server with handlescope mcp"),
        (&["-LoadSymbol", "-fd", "x", "-Indent"], "unknown option -Indent"),
        (&["-convert", "-fd", "x"], "-convert: other formats"),
        (&["dump", "ObjectRef", "-c", ".list"], "error: -c cannot"),
        (&["dump", "ObjectRef", "--echo"], "error: --echo cannot"),
        (&["extract", "a.etl", "--keep-going"], "error: --keep-going cannot"),
    ] {
        let error = refused(line);
        assert!(error.starts_with(message), "{line:?}: {error}");
    }
}

#[test]
fn other_lines_are_left_to_clap() {
    for line in [
        &["a.etl", "-c", "-dump"][..],
        &["complete", "--", "-dump", "Obj"],
        &["--", "-dump"],
        &["--", "-nocolor"],
        &["man", "-nocolor"],
        &["completions", "bash"],
        &["--version"],
        &[],
    ] {
        assert!(parsed(line).is_none(), "{line:?}");
    }
}

#[test]
fn help_is_about_the_kind_or_the_command() {
    for (line, topic) in [
        (&["-dump", "objectref", "-help"][..], "ObjectRef"),
        (&["dump", "--help"], ".dump"),
        (&["extract", "-h"], ".extract"),
    ] {
        let command = shot(line).command.expect("a command");
        assert_eq!(format!("{:?}", command.call), format!("help on {topic}"), "{line:?}");
    }
}

#[test]
fn a_word_behind_the_trace_names_a_suspect_or_processes_as_at_the_prompt() {
    for (line, expected) in [
        (&["why", "a.etl", "1"][..], ".why -Which 1"),
        (&["why", "a.etl", "40c99908b0"], ".why -Which 40c99908b0"),
        (&["why", "leaky", "-ss", "a.etl"], ".why -ss -Which leaky"),
        (&["why", "leaky", "2", "-fd", "a.etl"], ".why -Which leaky -Which 2"),
        (&["why", "a.etl"], ".why"),
    ] {
        assert_eq!(loaded(line), (expected.to_owned(), vec!["a.etl".to_owned()]), "{line:?}");
    }
    assert_eq!(loaded(&["why", "traces"]).1, ["traces"]);
}

#[test]
fn a_trace_behind_a_number_is_not_its_second_value() {
    let expected = (".why -TopN 1".to_owned(), vec!["a.etl".to_owned()]);
    assert_eq!(loaded(&["why", "-TopN", "1", "a.etl"]), expected);
    let expected = (".why -TopN 1 2".to_owned(), vec!["a.etl".to_owned()]);
    assert_eq!(loaded(&["why", "-TopN", "1", "2", "a.etl"]), expected);
}

#[test]
fn a_mistyped_option_is_named_before_the_picture_that_is_missing() {
    assert!(refused(&["report", "-Which", "a.etl"]).starts_with("-Which is an option of "));
    assert!(refused(&["flame", "a.etl", "-Lek"]).starts_with("unknown option -Lek"));
    assert!(refused(&["report", "a.etl"]).starts_with("handlescope report needs NAME.html"));
}
