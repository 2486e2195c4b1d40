//! Whole sessions: what is typed, which output goes to which stream, and the exit status.
//!
//! Each snapshot was read. Folders, durations and archive sizes are replaced, because they differ between machines.

use std::fmt::Write as _;
use std::fs;

use handlescope_tests::binary::{
    ProgramRun, handlescope, run_script, sample_hunt, sample_symbols, sample_trace,
};
use handlescope_tests::data::SharedTrace;
use handlescope_tests::needs_data;
use tempfile::TempDir;

/// A folder with traces and their symbols.
struct SessionFolder {
    home: TempDir,
    symbols: Vec<String>,
    /// Unpacked symbols, removed at the end.
    _unpacked: Vec<TempDir>,
}

impl SessionFolder {
    fn sample() -> Self {
        let home = tempfile::tempdir().unwrap();
        fs::copy(sample_trace(), home.path().join("leaky.etl")).unwrap();
        let symbols = vec![sample_symbols().display().to_string()];
        Self { home, symbols, _unpacked: Vec::new() }
    }

    /// Starts with some of the published synthetic traces.
    fn published(names: &[&str]) -> Self {
        let home = tempfile::tempdir().unwrap();
        let mut unpacked = Vec::new();
        for name in names {
            let trace = SharedTrace::open(&format!("synthetic/{name}"));
            fs::copy(trace.etl(), home.path().join(format!("{name}.etl"))).unwrap();
            unpacked.push(trace.pdbs());
        }
        let symbols = unpacked.iter().map(|folder| folder.path().display().to_string()).collect();
        Self { home, symbols, _unpacked: unpacked }
    }

    /// Runs the program with arguments as typed, and a script as its input.
    fn run(&self, arguments: &str, script: &str) -> ProgramRun {
        let mut command = handlescope(self.home.path());
        command.env("TZ", "UTC").arg("--symbol-path").arg(self.symbols.join(";"));
        command.args(arguments.split_whitespace());
        run_script(&mut command, script)
    }

    /// Returns the transcript of a session.
    fn transcript(&self, arguments: &str, script: &str) -> String {
        self.text(arguments, script, &self.run(arguments, script))
    }

    /// Returns the transcript of a single command line without leading options and without input.
    fn one_shot(&self, arguments: &str) -> String {
        let mut command = handlescope(self.home.path());
        command.env("TZ", "UTC").args(arguments.split_whitespace());
        self.text(arguments, "", &run_script(&mut command, ""))
    }

    /// Returns the input and output of a run as text.
    fn text(&self, arguments: &str, script: &str, run: &ProgramRun) -> String {
        let mut text = format!("$ handlescope {arguments}").trim_end().to_owned() + "\n";
        for line in script.lines() {
            writeln!(text, "> {line}").unwrap();
        }
        for (name, stream) in [("stdout", &run.stdout), ("stderr", &run.stderr)] {
            writeln!(text, "\n[{name}]").unwrap();
            stream.lines().for_each(|line| writeln!(text, "{}", self.redacted(line)).unwrap());
        }
        let status = run.status.map_or_else(|| "none".to_owned(), |status| status.to_string());
        writeln!(text, "\n[exit status] {status}").unwrap();
        text
    }

    /// Replaces what differs between runs in a line.
    fn redacted(&self, line: &str) -> String {
        let home = self.home.path().display().to_string();
        let home = fs::canonicalize(&home).map_or(home, |path| path.display().to_string());
        let mut line = line.replace(&home, "[home]");
        for symbols in &self.symbols {
            line = line.replace(symbols, "[symbols]");
        }
        // `…, 0 lost events, 37.37 KiB in 0.02 s, 12.40 MiB/s`
        match line.split_once(" lost events, ") {
            Some((counts, speed)) if speed.ends_with("B/s") => {
                format!("{counts} lost events, [size and time]")
            }
            _ => line,
        }
    }
}

/// Returns the transcript of a session with the sample.
fn sample(arguments: &str, script: &str) -> String {
    SessionFolder::sample().transcript(arguments, script)
}

/// Compares the transcript of a session with published traces.
macro_rules! published {
    ($name:literal, $traces:expr, $arguments:expr, $script:expr) => {
        let session = SessionFolder::published(&$traces);
        insta::assert_snapshot!($name, session.transcript($arguments, $script));
    };
}

#[test]
fn the_leak_hunt_of_the_examples() {
    insta::assert_snapshot!("sample_leak_hunt", sample("leaky.etl", &sample_hunt()));
}

#[test]
fn errors_name_the_remedy_and_end_a_script() {
    let script = "\
.dump
.dump ObjectReff
.dump ObjectRef -Laek
.dump ObjectRef Leak
.dump ObjectRef -ShowTotal Totl
.dump ObjectRef -MinMaxTime soon
.dump ObjectRef -pn
.dump ObjectRef -MinMaxTime 1 ObjectRef
.dmup ObjectRef
ObjectRef
.load
.load no.etl
.unload no.etl
.help nonsense
.quit now
";
    insta::assert_snapshot!("sample_errors", sample("--keep-going leaky.etl", script));
    insta::assert_snapshot!(
        "sample_first_error",
        sample("leaky.etl", ".dump ObjectRef -Foo\n.list\n")
    );
    insta::assert_snapshot!("sample_no_such_file", sample("no.etl", ".list\n"));
    insta::assert_snapshot!("nothing_loaded", sample("", ".list\n.dump ObjectRef -Leak\n"));
}

#[test]
fn the_sample_by_owner_name_stack_time_and_id() {
    let script = "\
# one object, three ways
.dump ObjectRef -ObjectName *Signal_41 -Leak
.dump ObjectRef -MinMaxId 89 89
.dump ObjectRef -Handle 0xF4 -MinMaxDuration 9999
# inherited, and given to another process
.dump ObjectRef -Inherit
.dump ObjectRef -MultiProcess
# the helper, and the handle it closes
.dump ObjectRef -RelatedProcess 9044 -MinMaxTime 0.41 0.42
# what was there before the trace
.dump ObjectRef -pn csrss
# the stack of a destruction
.dump ObjectRef -DestroyStack *App::Close* -Type File -ShowStack
# only what one function did
.dump ObjectRef -StackFilter *ExSweepHandleTable*
";
    insta::assert_snapshot!("sample_filters", sample("leaky.etl", script));
}

#[test]
fn totals_of_the_sample() {
    let script = "\
.dump ObjectRef -ShowTotal Total
.dump ObjectRef -ShowTotal Process -TopN 2 1
.dump ObjectRef -ShowTotal None -MinMaxId 91 91
";
    insta::assert_snapshot!("sample_totals", sample("leaky.etl", script));
}

#[test]
fn times_and_processes_are_written_as_wanted() {
    let one = "-RelatedProcess 9044 -MinMaxTime 0.41 0.42 -ShowTotal None";
    let mut script = String::new();
    for format in ["s", "Local", "LocalTime", "UTC", "UTCTime", "Here", "HereTime"] {
        script += &format!(".dump ObjectRef {one} -TimeFmt {format}\n");
    }
    for options in [
        "-TimeDigits 3",
        "-TimeFmt s -TimeDigits 0",
        "-ProcessFmt s",
        "-ProcessFmt LocalTime -TimeDigits 2",
        "-ProcessFmt None",
        "-ShowFullFileName",
    ] {
        script += &format!(".dump ObjectRef {one} {options}\n");
    }
    insta::assert_snapshot!("sample_formats", sample("leaky.etl", &script));
}

#[test]
fn folders_and_patterns_are_loaded_added_and_listed() {
    let session = SessionFolder::sample();
    for folder in ["traces", "traces/older"] {
        fs::create_dir(session.home.path().join(folder)).unwrap();
    }
    for name in ["traces/one.etl", "traces/two.etl", "traces/older/three.etl"] {
        fs::copy(sample_trace(), session.home.path().join(name)).unwrap();
    }
    fs::write(session.home.path().join("traces/notes.txt"), "no trace").unwrap();
    let script = "\
.load traces
.list
.load traces/o*.etl
.load+ traces/Extract/one.json7z traces/two.etl
.list
.load -r traces
.list
.unload *three*
.load traces/tow.etl
.cd traces
.load+ two.etl older/three.etl
.cd nowhere
.load *.zip
.load+ notes.txt
.unload
.list
";
    insta::assert_snapshot!("files", session.transcript("--keep-going", script));
}

#[test]
fn events_go_to_a_csv_file() {
    let session = SessionFolder::sample();
    let script = "\
.dump ObjectRef -MinMaxId 68 70 -csv all.csv
.dump ObjectRef -Leak -ObjectName *Signal_41 -ShowStack -csv stacks.csv -NoCSVSeparator -NoCmdLine
.dump ObjectRef -csv no/such/folder.csv
";
    let mut text = session.transcript("--keep-going leaky.etl", script);
    for name in ["all.csv", "stacks.csv"] {
        let csv = fs::read_to_string(session.home.path().join(name)).unwrap();
        writeln!(text, "\n[{name}]\n{}", csv.trim_end()).unwrap();
    }
    insta::assert_snapshot!("sample_csv", text);
}

#[test]
fn a_session_keeps_how_it_prints_and_an_option_wins() {
    let script = "\
.timefmt s 3
.dump ObjectRef -MinMaxId 89 89 -ShowTotal None
.dump ObjectRef -MinMaxId 89 89 -ShowTotal None -TimeFmt UTCTime
.timefmt LocalTime
.timedigits 1
.processfmt s
.sffn 1
.dump ObjectRef -MinMaxId 91 91 -ShowTotal None
.timedigits
.timedigits usual
.processfmt usual
.timefmt usual
.timefmt
.clip
.clip 0
.clip
.timefmt nonsense
.timedigits 7
.processfmt x
.clip maybe
.dump ObjectRef -MinMaxId 91 91 -ShowTotal None
";
    insta::assert_snapshot!("sample_settings", sample("--keep-going leaky.etl", script));
}

#[needs_data]
#[test]
fn a_thread_leak_from_the_numbers_to_the_stack() {
    let script = "\
.dump ObjectRef -topN 5 -ShowTotal Total
.dump ObjectRef -topN 5 -ShowTotal Process
.dump Objectref -topN 5 -ShowTotal Process -type Thread
.dump ObjectRef -pn ZSATunnel -Type Thread -Leak -MinMaxTime 9.7 -MinMaxId 405 405 -ShowStack
";
    published!("threadleak", ["threadleak"], "threadleak.etl", script);
}

#[needs_data]
#[test]
fn the_leak_of_a_process_that_has_ended() {
    let script = "\
.dump ObjectRef -pn EventLeak -Leak
.dump ObjectRef -pn EventLeak -ObjectName *signalevent_* -DestroyStack *NtTerminateProcess* -MinMaxTime 3.79
.dump ObjectRef -pn EventLeak -ObjectName *signalevent_3? -DestroyStack *NtTerminateProcess* -ShowStack
.dump ObjectRef -Inherit -RelatedProcess Eventleak
";
    published!("eventleak", ["eventleak"], "eventleak.etl", script);
}

#[needs_data]
#[test]
fn registry_keys() {
    let script = "\
.dump ObjectRef -Leak -ShowTotal Process
.dump ObjectRef -pn svchost.exe -Leak -MinMaxTime 5 10
.dump ObjectRef -MinMaxId 1000 1001
";
    published!("registry", ["registry"], "registry.etl", script);
}

#[needs_data]
#[test]
fn file_mappings() {
    let script = "\
.dump ObjectRef -Map 1 -MinMaxId 9 10 -NoDigitSep
.dump ObjectRef -Map 1 -PtrInMap 0x1B544000010
.dump ObjectRef -Map 1 -Leak -pn msbuild
";
    published!("filemap", ["filemap"], "filemap.etl", script);
}

#[needs_data]
#[test]
fn duplicates_and_inherited_handles() {
    let script = "\
.dump ObjectRef -Inherit -RelatedProcess helper
.dump ObjectRef -ObjectName *push_* -Leak
.dump ObjectRef -ObjectName *own_dup
";
    published!("duplicates", ["duplicates"], "duplicates.etl", script);
}

#[needs_data]
#[test]
fn reference_counts() {
    let script = "\
.dump ObjectRef -Map 0 -ShowRef -Object 0xFFFF81002A8033C0
.dump ObjectRef -Leak
.dump ObjectRef -ObjectName *outlives
";
    published!("objectref", ["objectref"], "objectref.etl", script);
}

#[needs_data]
#[test]
fn several_files_have_totals_each_and_together() {
    let script = "\
.list
.dump ObjectRef -MinMaxId 27 27
.dump ObjectRef -ShowTotal Process -TopN 3
.dump ObjectRef -ShowTotal File
.dump ObjectRef -ShowTotal File -fd *objectref*
.dump ObjectRef -ShowTotal File -fd !*objectref* -LastNDays 3
.dump ObjectRef -fd *nothing*
.unload objectref.etl
.list
";
    published!(
        "several_files",
        ["objectref", "duplicates", "filemap"],
        "--keep-going objectref.etl duplicates.etl filemap.etl",
        script
    );
}

#[test]
fn one_question_in_one_command_line() {
    let session = SessionFolder::sample();
    let one = "-MinMaxId 89 89";
    let mut text = String::new();
    for arguments in [
        &format!("dump ObjectRef -fd leaky.etl {one} -TimeFmt s"),
        &format!("-dump ObjectRef -FileDir leaky.etl {one} -NoCSVSeparator -csv one.csv"),
        "-extract ObjectRef -fd leaky.etl -symserver ms -symcache cache -outdir out",
        "-extract ObjectRef -fd leaky.etl -nThreads 4",
        "-dump Version -fd leaky.etl -dll leaky.exe",
        "-converttime -fd leaky.etl -time 1.5s",
        "convert-time -fd leaky.etl -time 2026-02-10 10:30:01.5",
        "-console leaky.etl -c .list",
        "-dump ObjectRef -fd leaky.etl -Laek",
        "-dump ObjectRef -fd no.etl",
        "-dump Process",
        "-loadsymbol -fd leaky.json7z",
        "-extract CPU -fd leaky.etl",
    ] {
        text += &session.one_shot(arguments);
        text.push('\n');
    }
    insta::assert_snapshot!("one_shot", text);
}

#[test]
fn times_are_converted_both_ways() {
    let script = "\
.converttime -time 1.5s
.converttime -time 2026-02-10 10:30:01.5
.converttime -time 10:30:01.5
.converttime -time 2026-02-10T09:30:01.5Z
.converttime -time later
.converttime
";
    insta::assert_snapshot!("sample_converttime", sample("--keep-going leaky.etl", script));
}
