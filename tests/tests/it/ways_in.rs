//! All ways to run handlescope give the same answers: ETWAnalyzer command lines with only the program's name changed,
//! one-shot commands, and the console.

use std::fs;

use handlescope_tests::binary::{ProgramRun, Shell, handlescope, run_script, sample_trace};
#[cfg(unix)]
use handlescope_tests::needs_bash;
use handlescope_tests::scenario::TraceBuilder;
use sevenz_rust::{ArchiveEntry, ArchiveWriter};

/// Examples of ETWAnalyzer's options, with names from the sample trace.
const EXAMPLES: &[&str] = &[
    "-pn leaky -ObjectName *Signal_*",
    "-pn 924160",
    "-pn *;!svchost*;!4",
    "-RelatedProcess cmd -MinMaxTime 12 12.5",
    "-Leak -ShowStack -csv Leaks.csv -NoCSVSeparator -NoCmdLine",
    "-pn leaky -DestroyStack *NtTerminateProcess* -ShowStack",
    "-CreateStack *!CreateEvent*",
    "-StackFilter *GetOrCreateEvent*;!*ntdll*",
    "-Handle 0xC0;0xC4",
    "-Object 0xFFFF810008BE66F0",
    "-MinMaxId 5 6",
    "-MinMaxDuration 0 10ms",
    "-MinMaxDuration 9999",
    "-Type Event;Section",
    "-MultiProcess",
    "-Overlapped",
    "-Inherit -RelatedProcess leaky",
    "-Map 1",
    "-MinMaxMapSize 10MB",
    "-PtrInMap 0x1B544000010",
    "-ViewBase 0x1B5*",
    "-Map 0 -ShowRef",
    "-ShowTotal Total -TopN 5",
    "-ShowTotal Process -TopN 5 5",
    "-TimeFmt s -ProcessFmt s -ppn",
    "-Clip -NoDigitSep -sffn",
    // From the guide.
    "-topN 5 -ShowTotal Total",
    "-topN 5 -ShowTotal Process",
    "-topN 5 -ShowTotal Process -type Thread",
    "-pn EventLeak -ObjectName *signalevent_*",
    "-pn EventLeak -ObjectName *signalevent_* -DestroyStack *NtTerminateProcess*",
    "-pn EventLeak -ObjectName *signalevent_* -DestroyStack *NtTerminateProcess*  -ShowStack",
    "-Inherit -RelatedProcess Eventleak",
];

/// Makes a folder with the sample trace under the name that the guide uses, extracted as the guide says.
fn shell() -> Shell {
    let shell = Shell::new();
    fs::rename(shell.path("leaky.etl"), shell.path("HandleLeak.etl")).unwrap();
    let extracted = run(&shell, "-extract ObjectRef -fd HandleLeak.etl -symserver MS").ok();
    assert!(extracted.stdout.starts_with("Extract/HandleLeak.json7z: "), "{extracted:?}");
    assert!(extracted.stderr.contains("msdl.microsoft.com"), "{extracted:?}");
    shell
}

/// Runs a command line without quotes.
fn run(shell: &Shell, line: &str) -> ProgramRun {
    shell.run(&line.split_whitespace().collect::<Vec<_>>())
}

#[test]
fn command_lines_of_etw_analyzer_answer_as_the_console_does() {
    let shell = shell();
    for options in EXAMPLES {
        let console = shell.run(&["HandleLeak", "-c", &format!(".dump ObjectRef {options}")]).ok();
        for line in [
            format!("-dump ObjectRef -fd HandleLeak.json {options}"),
            format!("dump ObjectRef {options} -fd HandleLeak.etl"),
            format!("-fd HandleLeak.json7z {options} -DUMP objectref -nocolor"),
        ] {
            let one_shot = run(&shell, &line).ok();
            let answer =
                |run: &ProgramRun| run.stdout.replace("HandleLeak.etl", "HandleLeak.json7z");
            let console = console.stdout.replace("Extract/HandleLeak", "HandleLeak");
            let found = answer(&one_shot).replace("Extract/HandleLeak", "HandleLeak");
            let whole = |text: &str| text.replace(&format!("{}/", shell.path("").display()), "");
            if options.contains("-sffn") {
                assert!(whole(&found).contains("HandleLeak"), "{line}: {found}");
            } else {
                assert_eq!(found, console, "{line}");
            }
        }
    }
}

#[test]
fn the_guide_s_check_of_a_version_works() {
    let shell = shell();
    let console = "-console HandleLeak.json7z";
    let arguments: Vec<&str> = console.split(' ').collect();
    let missing =
        shell.run(&["-dump", "Version", "-Dll", "ZSATunnel.exe", "-fd", "HandleLeak.json"]);
    assert!(missing.ok().stdout.contains("Selected 0/"));
    let _ = fs::copy(shell.path("Extract/HandleLeak.json7z"), shell.path("HandleLeak.json7z"));
    let found = shell.script(&arguments, ".dump Version -Dll LEAKY.exe\n").ok();
    assert!(
        found.stdout.contains("leaky.exe") && found.stdout.contains("Selected 1/"),
        "{found:?}"
    );
}

#[test]
fn an_extract_of_etw_analyzer_beside_a_trace_is_kept() {
    let shell = Shell::new();
    fs::create_dir(shell.path("Extract")).unwrap();
    let theirs = shell.path("Extract/leaky.json7z");
    let mut archive = ArchiveWriter::new(fs::File::create(&theirs).unwrap()).unwrap();
    let member = ArchiveEntry::new_file("leaky.json");
    archive.push_archive_entry(member, Some(&b"{}"[..])).unwrap();
    archive.finish().unwrap();
    let before = fs::read(&theirs).unwrap();

    let loaded = shell.run(&["leaky.etl", "-c", ".dump ObjectRef -Leak -ShowTotal Total"]).ok();
    assert!(loaded.stderr.contains("is another program's extract and stays; using "));
    let again = shell.run(&["leaky.etl", "-c", ".dump ObjectRef -Leak -ShowTotal Total"]).ok();
    assert!(!again.stderr.contains("using"), "it is extracted once: {again:?}");
    assert_eq!(again.stdout, loaded.stdout);
    let extracted = shell.run(&["extract", "leaky.etl"]);
    assert!(extracted.stderr.contains("is not overwritten; choose a folder with --outdir"));
    assert_eq!(extracted.status, Some(1));
    assert_eq!(fs::read(&theirs).unwrap(), before);
}

#[test]
fn json_names_a_command_that_can_be_typed_again() {
    let shell = Shell::new();
    let options = ["-ObjectName", "*a b*", "-json"];
    let one_shot = ["dump", "ObjectRef", "-fd", "leaky.etl"].iter().chain(&options).copied();
    let one_shot = shell.run(&one_shot.collect::<Vec<_>>()).ok();
    let console =
        shell.run(&["leaky.etl", "-c", r#".dump ObjectRef -ObjectName "*a b*" -json"#]).ok();
    assert_eq!(one_shot.stdout, console.stdout);
}

#[test]
fn without_a_trace_the_only_one_of_the_folder_is_taken_and_several_are_listed() {
    let shell = Shell::new();
    let lines = ["why", "report out.html", "dump ObjectRef", "convert-time -time 1.5s"];
    for line in lines {
        assert!(run(&shell, line).ok().stderr.contains("loaded leaky.etl\n"), "{line}");
    }
    fs::copy(shell.path("leaky.etl"), shell.path("two.etl")).unwrap();
    for line in lines {
        let run = run(&shell, line);
        assert_eq!((run.status, run.stdout.as_str()), (Some(1), ""), "{line}: {run:?}");
        assert_eq!(
            run.stderr,
            "error: several traces in this folder; name one, or . for all of them:\n  leaky.etl\n  two.etl\n",
            "{line}"
        );
    }
    assert!(!shell.path("Extract/two.json7z").exists());
    assert!(run(&shell, "why .").ok().stderr.contains("loaded 2 files"));
}

#[test]
fn a_bad_trace_among_several_is_a_warning_and_the_exit_status() {
    let shell = Shell::new();
    fs::write(shell.path("bad.etl"), "noise").unwrap();
    for line in
        ["why leaky.etl bad.etl", "why .", "dump ObjectRef -fd *.etl", "leaky.etl bad.etl -c .why"]
    {
        let run = run(&shell, line);
        assert_eq!(run.status, Some(1), "{line}: {run:?}");
        assert!(run.stderr.contains("warning: bad.etl: "), "{line}: {run:?}");
        assert!(run.stdout.contains("leaky.exe"), "{line}: {run:?}");
    }
    let alone = run(&shell, "why bad.etl");
    assert!(alone.stderr.contains("error: bad.etl: ") && alone.stdout.is_empty(), "{alone:?}");
    let compared = run(&shell, "diff leaky.etl bad.etl");
    assert_eq!((compared.status, compared.stdout.as_str()), (Some(2), ""), "{compared:?}");
}

#[test]
fn without_fd_a_dump_asks_the_current_folder() {
    let shell = Shell::new();
    fs::create_dir_all(shell.path("below/deep")).unwrap();
    fs::copy(shell.path("leaky.etl"), shell.path("below/deep/other.etl")).unwrap();
    let here = run(&shell, "dump ObjectRef -ShowTotal None -MinMaxId 1 1").ok();
    assert_eq!(here.stdout.matches("Id: ").count(), 1, "{here:?}");
    let below = run(&shell, "dump ObjectRef -recursive -ShowTotal None -MinMaxId 1 1").ok();
    assert_eq!(below.stdout.matches("Id: ").count(), 2, "{below:?}");
}

#[test]
fn a_wrong_command_line_is_status_two_and_a_missing_file_status_one() {
    let shell = Shell::new();
    for (line, status, message) in [
        ("-dump ObjectRef -fd leaky.etl -Laek", 2, "did you mean -Leak?\n  -Leak"),
        (
            "dump -fd leaky.etl",
            2,
            "handlescope dump needs a kind, as in handlescope dump ObjectRef; the kinds are ObjectRef",
        ),
        ("-mcp", 2, "handlescope mcp --root"),
        ("-extract ObjectRef -fd leaky.etl -NoCompress", 2, "an extract is one archive"),
        ("-extract ObjectRef -fd leaky.etl -NoOverwrit", 2, "did you mean -NoOverwrite?"),
        ("-converttime -fd leaky.etl", 2, "needs -time"),
        ("dump ObjectRef -fd no.etl", 1, "no.etl: file not found"),
        ("-extract ObjectRef -fd no.etl", 1, "no.etl: file not found"),
        ("-converttime -fd leaky.etl -time soon", 1, "'soon' is not a valid time"),
    ] {
        let run = run(&shell, line);
        assert_eq!((run.status, run.stdout.as_str()), (Some(status), ""), "{line}: {run:?}");
        assert!(run.stderr.contains(message), "{line}: {run:?}");
    }
}

#[test]
fn options_of_each_dump_of_etw_analyzer_are_accepted_with_a_note_where_they_do_nothing() {
    let shell = Shell::new();
    let everywhere = [
        ("-NoCSVSeparator -NoCmdLine", "they concern ObjectRef"),
        ("-Clip -NoDigitSep -ppn -PlainProcessNames", "they concern ObjectRef"),
        ("-ShowFullFileName -ProcessFmt s", "they concern ObjectRef"),
        ("-LastNDays 1 -TestsPerRun 1 -trc 1", "test runs are not supported here"),
    ];
    let of_process = [
        ("-Details -ShowUser -ShowFileOnLine", "all processes are listed"),
        ("-ShowAllProcesses -ZeroProcessName Idle", "all processes are listed"),
    ];
    for kind in ["Process", "Version", "Stats"] {
        let plain = run(&shell, &format!("-dump {kind} -fd leaky.etl")).ok().stdout;
        let of_kind = if kind == "Process" { &of_process[..] } else { &[] };
        for (options, reason) in everywhere.iter().chain(of_kind) {
            let with = run(&shell, &format!("-dump {kind} -fd leaky.etl {options}")).ok();
            assert_eq!(with.stdout, plain, "{kind} {options}");
            let notes: Vec<_> = with.stderr.lines().filter(|l| l.starts_with("note: ")).collect();
            assert!(
                matches!(notes[..], [note] if note.contains(reason)),
                "{kind} {options}: {notes:?}"
            );
        }
    }
}

#[test]
fn a_mistyped_subcommand_names_the_nearest() {
    let shell = Shell::new();
    for (line, nearest) in [
        ("extrat leaky.etl", "extract"),
        ("Why", "why"),
        ("Dump ObjectRef -fd leaky.etl", "dump"),
        ("version", "--version"),
    ] {
        let run = run(&shell, line);
        let word = line.split(' ').next().unwrap();
        let message = format!("error: unknown command {word}, did you mean {nearest}?\n");
        assert_eq!((run.status, run.stderr.as_str()), (Some(2), message.as_str()), "{line}");
    }
    let run_in_prompt = run(&shell, "export leaky.etl tables");
    assert_eq!(
        (run_in_prompt.status, run_in_prompt.stderr.as_str()),
        (
            Some(2),
            "error: .export is a command of the prompt; write handlescope FILE -c '.export FOLDER'\n"
        )
    );
    fs::rename(shell.path("leaky.etl"), shell.path("extrac")).unwrap();
    assert!(!run(&shell, "extrac").stderr.contains("did you mean"), "a file has the name");
    assert!(run(&shell, "why.etl").stderr.contains("why.etl: file not found"));
}

#[test]
fn other_commands_and_kinds_take_their_files_as_why_does() {
    let shell = Shell::new();
    let stats = run(&shell, "dump Stats -fd leaky.etl").ok().stdout;
    assert_eq!(run(&shell, "stats leaky.etl").ok().stdout, stats);
    let query = "SELECT count(DISTINCT process) FROM leaks";
    for words in [["sql", "leaky.etl", query, "-csv"], ["sql", query, "leaky.etl", "--csv"]] {
        assert_eq!(shell.run(&words).ok().stdout, "count(DISTINCT process)\n1\n", "{words:?}");
    }
    let _ = run(&shell, "flame leaky.etl leaks.svg").ok();
    let _ = run(&shell, "plot leaky.etl handles.svg -pn leaky").ok();
    for picture in ["leaks.svg", "handles.svg"] {
        assert!(fs::read_to_string(shell.path(picture)).unwrap().contains("<svg"), "{picture}");
    }
    let table = run(&shell, "live leaky.etl").ok().stdout;
    assert_eq!(table, run(&shell, "live --replay leaky.etl").ok().stdout);
    assert_eq!(run(&shell, "live leaky.etl --dry-run").status, Some(2));
    let page = run(&shell, "help why").ok().stdout;
    assert_eq!(page, run(&shell, "why --help").ok().stdout);
    assert_eq!(run(&shell, "help").ok().stdout, run(&shell, "--help").ok().stdout);
}

#[test]
fn a_dump_takes_its_files_as_why_does() {
    let shell = Shell::new();
    let named = run(&shell, "dump ObjectRef -fd leaky.etl -Leak").ok();
    for line in ["dump ObjectRef leaky.etl -Leak", "dump ObjectRef -Leak leaky.etl"] {
        assert_eq!(run(&shell, line).ok().stdout, named.stdout, "{line}");
    }
    let missing = run(&shell, "dump ObjectRef laeky.etl");
    assert!(missing.stderr.contains("laeky.etl: file not found, did you mean leaky.etl?"));
}

#[test]
fn a_mistyped_name_loads_nothing_instead_of_the_folder() {
    let shell = Shell::new();
    let run = shell.script(&["--keep-going"], ".load laeky.etl\n.list\n");
    assert_eq!((run.status, run.stdout.as_str()), (Some(1), "No traces are loaded.\n"));
    assert!(run.stderr.contains("did you mean leaky.etl?"), "{run:?}");
}

#[test]
fn a_trace_is_loaded_once_however_it_is_named() {
    let shell = Shell::new();
    let script = ".load leaky.etl\n.load+ leaky.etl Extract\n.load+ Extract/leaky.json7z\n.list\n";
    let run = shell.script(&[], script).ok();
    assert_eq!(run.stdout.lines().count(), 2, "{run:?}");
    assert!(run.stderr.contains("is already loaded as leaky.etl"), "{run:?}");
}

#[test]
fn folders_are_loaded_and_appended_and_all_of_a_trace_is_read_if_wanted() {
    let shell = Shell::new();
    fs::create_dir_all(shell.path("below/deep")).unwrap();
    fs::copy(shell.path("leaky.etl"), shell.path("below/deep/b.etl")).unwrap();
    fs::write(shell.path("below/notes.txt"), "").unwrap();
    let run = shell.script(&[], ".load -all .\n.load+ below -r\n.list\n").ok();
    assert_eq!(run.stdout.lines().count(), 3, "{run:?}");
    assert!(run.stderr.contains("loaded leaky.etl, all of it"), "{run:?}");
    let both = shell.script(&["-console", "-fd", ".", "-r"], ".list\n").ok();
    assert!(both.stderr.contains("loaded 2 files"), "{both:?}");
}

#[test]
fn the_current_folder_changes_and_what_is_loaded_stays() {
    let shell = Shell::new();
    fs::create_dir(shell.path("below")).unwrap();
    let script = ".load leaky.etl\n.cd below\n.load+ ../leaky.etl\n.list\n.cd\n.dir ..\n";
    let run = shell.script(&[], script).ok();
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert!(lines[1].trim_start().starts_with("0  ") && lines[1].contains("leaky.etl"), "{run:?}");
    assert!(lines[2].ends_with("below"), "{run:?}");
    assert!(run.stdout.contains("<DIR>") && run.stdout.contains("  extracted  "), "{run:?}");
}

#[test]
fn small_traces_are_extracted_like_all_others() {
    let shell = Shell::new();
    assert!(fs::metadata(shell.path("leaky.etl")).unwrap().len() < 1 << 20);
    let run = run(&shell, "-extract all -fd leaky.etl -outdir out").ok();
    assert!(run.stdout.starts_with("out/leaky.json7z: "), "{run:?}");
}

#[test]
fn extractions_are_counted_skipped_and_only_listed() {
    let shell = Shell::new();
    fs::copy(shell.path("leaky.etl"), shell.path("two.etl")).unwrap();
    let dry = run(&shell, "-extract ObjectRef -fd . -DryRun").ok();
    assert_eq!(dry.stdout, "leaky.etl\ntwo.etl\n");
    assert!(!shell.path("Extract").exists());
    let first = run(&shell, "-extract ObjectRef CPU -fd leaky.etl -nThreads 3 -keepTemp").ok();
    assert!(first.stderr.contains("note: CPU: not extracted"), "{first:?}");
    assert!(first.stderr.contains("-keepTemp does nothing"), "{first:?}");
    let second = run(&shell, "-extract All -fd . -NoOverwrite").ok();
    let skipped = "Skipping file leaky.etl 1/2 because extract already exists";
    assert!(second.stderr.contains(skipped), "{second:?}");
    assert!(second.stderr.contains("Extracted 2/2 - Failed 0 files."), "{second:?}");
    fs::write(shell.path("bad.etl"), "noise").unwrap();
    let third = shell.script(&["--keep-going"], ".extract . -outdir out\n.list\n");
    assert_eq!(third.status, Some(1), "{third:?}");
    assert!(third.stderr.contains("Extracted 2/3 - Failed 1 files."), "{third:?}");
}

#[test]
fn times_are_converted_both_ways() {
    let shell = Shell::new();
    let there = run(&shell, "-converttime -time 1.5s -fd leaky.etl").ok();
    let (time, rest) = there.stdout.split_at("2024-05-10 12:46:35.500000".len());
    assert_eq!(rest, " for file leaky.etl\n");
    let back = shell.run(&["convert-time", "-time", time, "-fd", "leaky.etl"]).ok();
    assert_eq!(back.stdout, "1.500000 seconds since session start for file leaky.etl\n");
    let console = shell.script(&["leaky.etl"], &format!(".converttime -time {time}\n")).ok();
    assert_eq!(console.stdout, back.stdout);
}

#[test]
fn a_time_is_converted_for_the_files_whose_session_has_it() {
    let shell = Shell::new();
    let mut later = TraceBuilder::new();
    later.process(4, "System");
    later.write(shell.path("later.etl")).unwrap();
    let script = ".converttime -time 1.5s\n.converttime -time 2026-02-10T09:30:01.5Z\n\
                  .converttime -time 100000s\n.converttime -time 100000s -fd *leaky*\n";
    let lines = shell.script(&["leaky.etl", "later.etl"], script).ok().stdout;
    let lines: Vec<&str> = lines.lines().collect();
    assert_eq!(lines[0], "2026-02-10 10:30:01.500000 for file leaky.etl");
    assert_eq!(lines[1], "1.500000 seconds since session start for file leaky.etl");
    assert!(lines[2].ends_with(" for file later.etl, outside the recording"), "{}", lines[2]);
    assert!(lines[3].ends_with(" for file leaky.etl, outside the recording"), "{}", lines[3]);
    assert_eq!((lines[4], lines.len()), (lines[3], 5));
}

#[test]
fn no_query_writes_into_an_extract() {
    let shell = shell();
    let extract = shell.path("Extract/HandleLeak.json7z");
    let before = fs::read(&extract).unwrap();
    let _ = run(&shell, "-dump ObjectRef -fd HandleLeak.json -ShowStack").ok();
    assert_eq!(fs::read(&extract).unwrap(), before);
}

#[test]
fn help_is_found_after_every_command() {
    let shell = Shell::new();
    for (line, text) in [
        ("-dump ObjectRef -help", "-ShowTotal"),
        ("dump ObjectRef --help", "-ShowTotal"),
        ("extract --help", "-NoOverwrite"),
        ("-converttime -help", "-time"),
        ("--help", "completions"),
        ("man", "COMMANDS OF THE CONSOLE"),
    ] {
        let run = run(&shell, line).ok();
        assert!(run.stdout.contains(text), "{line}: {run:?}");
    }
}

#[needs_bash]
#[test]
#[cfg(unix)]
fn bash_completes_options_kinds_and_values() {
    let shell = Shell::new();
    let program = handlescope_tests::binary::handlescope_path();
    let script = shell.path("handlescope.bash");
    fs::write(&script, run(&shell, "completions bash").ok().stdout).unwrap();
    let completed = |words: &[&str]| -> String {
        let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
        let asked = format!(
            "source '{}'; COMP_WORDS=('{}' {}); COMP_CWORD={}; _handlescope; echo \"${{COMPREPLY[*]}}\"",
            script.display(),
            program.display(),
            quoted.join(" "),
            words.len()
        );
        let mut bash = std::process::Command::new("bash");
        let output = bash.args(["--norc", "-c", &asked]).current_dir(shell.path("")).output();
        ProgramRun::from(output.unwrap()).ok().stdout.trim().to_owned()
    };
    assert_eq!(completed(&["d"]), "dump diff dataset");
    assert_eq!(completed(&["ext"]), "extract");
    assert_eq!(completed(&["dump", "obj"]), "ObjectRef");
    assert_eq!(completed(&["-dump", "Obj"]), "ObjectRef");
    assert_eq!(completed(&["dump", "ObjectRef", "-fd", "a b.etl", "-Over"]), "-Overlapped");
    assert_eq!(completed(&["-dump", "ObjectRef", "-Lea"]), "-Leak -LeakAtExit");
    assert_eq!(completed(&["dump", "ObjectRef", "-ShowTotal", "T"]), "Total");
    assert_eq!(completed(&["dump", "ObjectRef", "-ShowTotal", "P"]), "Process");
    assert_eq!(completed(&["dump", "ObjectRef", "-fd", ""]), "", "files are left to bash");
    assert_eq!(completed(&["-extract", "-NoOver"]), "-NoOverwrite");
    assert_eq!(completed(&["--color", "al"]), "always");
    assert_eq!(completed(&["--color", "n"]), "never");
    assert_eq!(completed(&["--color", "=", "n"]), "never");
    assert_eq!(completed(&["why", ""]), "", "traces are left to bash");
    fs::create_dir(shell.path("extra")).unwrap();
    assert_eq!(completed(&["ext"]), "extract extra/");
    let groups = ["dump", "ObjectRef", "-GroupBy"];
    let next = completed(&[&groups[..], &["process\\,ty"]].concat());
    assert_eq!(next, "process\\,type", "what bash completed itself is completed on");
    let next = completed(&[&groups[..], &["process\\,type\\,namep"]].concat());
    assert_eq!(next, "process\\,type\\,namepattern");
}

#[test]
fn typographic_dashes_in_front_of_options_are_plain_ones_in_every_command() {
    let shell = Shell::new();
    let same = |plain: &[&str], typographic: &[&str]| {
        let [plain, typographic] = [plain, typographic].map(|words| shell.run(words));
        let shown = |run: &ProgramRun| (run.status, run.stdout.clone());
        assert_eq!(shown(&plain), shown(&typographic), "{typographic:?}");
        assert_eq!(plain.status, Some(0), "{plain:?}");
    };
    for dash in ["–", "—", "−", "‐", "‑"] {
        let option = |name: &str| format!("{dash}{name}");
        let [dump, pn, leak, fd] = ["dump", "pn", "Leak", "fd"].map(option);
        same(
            &["-dump", "ObjectRef", "-pn", "explorer", "-Leak", "-fd", "leaky.etl"],
            &[&dump, "ObjectRef", &pn, "explorer", &leak, &fd, "leaky.etl"],
        );
        let line = format!(".dump ObjectRef {dash}pn explorer {dash}Leak");
        same(
            &["leaky.etl", "-c", ".dump ObjectRef -pn explorer -Leak"],
            &["leaky.etl", "-c", &line],
        );
        let line = format!(".sql SELECT count(*) AS n FROM leaks {dash}csv");
        let plain = ".sql SELECT count(*) AS n FROM leaks -csv";
        same(&["leaky.etl", "-c", plain], &["leaky.etl", "-c", &line]);
        same(&["why", "leaky.etl", "-pn", "leaky"], &["why", "leaky.etl", &pn, "leaky"]);
    }
    same(
        &["--color", "never", "leaky.etl", "-c", ".list"],
        &["—color", "never", "leaky.etl", "–c", ".list"],
    );
}

#[test]
fn a_typographic_dash_in_front_of_no_option_is_an_error_and_a_quoted_one_is_a_word() {
    let shell = Shell::new();
    let run = shell.run(&["leaky.etl", "-c", ".dump ObjectRef –pnn explorer -Leak"]);
    assert_eq!((run.status, run.stdout.as_str()), (Some(1), ""), "{run:?}");
    assert!(run.stderr.contains("'–pnn'"), "{}", run.stderr);
    let run = shell.run(&["-dump", "ObjectRef", "–pnn", "explorer", "-Leak", "-fd", "leaky.etl"]);
    assert!(run.status != Some(0) && run.stdout.is_empty(), "{run:?}");
    fs::copy(shell.path("leaky.etl"), shell.path("–a.etl")).unwrap();
    let _ = shell.run(&["-c", ".load \"–a.etl\""]).ok();
}

#[test]
fn commands_without_their_dot_options_with_two_dashes_and_names_of_traces_are_understood() {
    let home = tempfile::tempdir().unwrap();
    fs::copy(sample_trace(), home.path().join("leaky.etl")).unwrap();
    let ask = |script: &str| run_script(&mut handlescope(home.path()), script).ok();
    let expected = ask(".load leaky.etl\n.dump ObjectRef -Leak -TopN 2\n.why -json\n");
    assert!(expected.stdout.contains("\"kind\":\"Why\""), "{}", expected.stdout);
    for script in [
        "leaky.etl\n.dump ObjectRef -Leak -TopN 2\n.why -json\n",
        "load leaky.etl\ndump ObjectRef -Leak --top 2\nwhy --json\n",
        "leaky.etl\nDUMP objectref --leak --TopN 2\n.Why --JSON\n",
    ] {
        let lines = |run: &ProgramRun| run.stdout.lines().map(str::to_owned).collect::<Vec<_>>();
        let without_command = |lines: Vec<String>| -> Vec<String> {
            lines.into_iter().filter(|line| !line.contains("\"command\":")).collect()
        };
        let run = ask(script);
        assert_eq!(without_command(lines(&run)), without_command(lines(&expected)), "{script}");
    }
}
