//! Code outside all modules: just-in-time compiled methods without names, and traces without image events. It keeps
//! call sites apart, with and without symbols.

use handlescope_tests::binary::{ProgramRun, Shell, sample_symbols};
use handlescope_tests::bytes::Guid;
use handlescope_tests::scenario::TraceBuilder;
use serde_json::Value;

const MS: i64 = 1_000_000;
const EVENT: u16 = 16;
const KERNEL: [u64; 1] = [0xffff_f800_0000_1000];
const PROGRAM: u64 = 0x7ff7_0000_0000;
/// Two call sites in the same function of the program.
const PLACE_A: u64 = PROGRAM + 0x13bb;
const PLACE_B: u64 = PROGRAM + 0x140a;
/// Just-in-time compiled code for each of them.
const METHOD_A: u64 = 0x7ff8_1000_0100;
const METHOD_B: u64 = 0x7ff8_1000_0200;

/// A recording of processes that close the handles of site A and leak those of site B.
struct SiteTrace {
    trace: TraceBuilder,
    handles: u32,
}

impl SiteTrace {
    fn new(pids: &[u32], has_images: bool) -> Self {
        let mut trace = TraceBuilder::new();
        trace.process(4, "System");
        trace.object_type(EVENT, "Event");
        for pid in pids {
            trace.process(*pid, "leaky.exe");
            if has_images {
                let guid = Guid::new(0x641F_C440_82B9_E1ED_4C4C_4420_5044_422E);
                let module = trace.module(*pid, r"C:\demo\leaky.exe", PROGRAM, 0x5000);
                module.pdb("leaky.pdb", guid, 1);
                let runtime = r"C:\Windows\Microsoft.NET\Framework64\v4.0.30319\clr.dll";
                trace.module(*pid, runtime, 0x7ff9_0000_0000, 0x10_0000);
            }
        }
        trace.end(70_000 * MS);
        Self { trace, handles: 0 }
    }

    /// Opens handles on a stack, spread evenly over a minute.
    fn open(&mut self, pid: u32, user: &[u64], count: i64, is_closed: bool) -> &mut Self {
        for number in 0..count {
            self.handles += 1;
            let object = 0xffff_8100_0000_0000 + u64::from(self.handles) * 0x100;
            let (caller, handle) = ((pid, pid + 1), self.handles * 4);
            let ns = 1_000 * MS + number * (60_000 * MS / count) + i64::from(self.handles) * 100;
            let created = self.trace.create_handle(ns, caller, object, handle, EVENT);
            created.stack(&KERNEL, user);
            if is_closed {
                self.trace.close_handle(ns + 2 * MS, caller, object, handle, EVENT, "");
            }
        }
        self
    }

    fn of_process(&mut self, pid: u32) -> &mut Self {
        self.open(pid, &[METHOD_A, PLACE_A], 3_000, true);
        self.open(pid, &[METHOD_B, PLACE_B], 40, false)
    }
}

fn sites(has_images: bool) -> TraceBuilder {
    let mut sites = SiteTrace::new(&[700], has_images);
    sites.of_process(700);
    sites.trace
}

fn run(trace: &TraceBuilder, script: &str, with_symbols: bool) -> ProgramRun {
    let shell = Shell::new();
    trace.write(shell.path("a.etl")).unwrap();
    let symbols = sample_symbols();
    let options = ["--symbol-path", symbols.to_str().unwrap()];
    let options = if with_symbols { &options[..] } else { &[] };
    shell.script(&[options, &["a.etl"]].concat(), script).ok()
}

fn document(trace: &TraceBuilder, command: &str, with_symbols: bool) -> Value {
    let run = run(trace, &format!("{command} -json\n"), with_symbols);
    serde_json::from_str(&run.stdout).unwrap()
}

/// Returns leaked and opened handles of each suspect, and the address of the code that opened them.
fn suspects(document: &Value) -> Vec<(u64, u64, String)> {
    document["suspects"]
        .as_array()
        .unwrap()
        .iter()
        .map(|suspect| {
            let frames = &document["stacks"][suspect["create_stack"].to_string()];
            let frames = frames.as_array().unwrap().iter();
            let addresses: Vec<&str> =
                frames.filter_map(|frame| frame["address"].as_str()).collect();
            let count = |name: &str| suspect[name].as_u64().unwrap();
            (count("leaked"), count("created"), addresses.join(" "))
        })
        .collect()
}

#[test]
fn a_leak_behind_unnamed_methods_is_not_hidden_by_a_healthy_site_of_the_same_functions() {
    for (has_images, with_symbols) in [(true, true), (true, false), (false, true), (false, false)] {
        let document = document(&sites(has_images), ".why", with_symbols);
        let found = suspects(&document);
        let [(40, 40, addresses)] = found.as_slice() else {
            panic!("images {has_images}, symbols {with_symbols}: {found:?}")
        };
        assert!(addresses.to_lowercase().contains("7ff810000200"), "{addresses}");
    }
}

#[test]
fn groups_and_pictures_keep_unnamed_methods_apart() {
    let trace = sites(true);
    let groups = document(&trace, ".dump ObjectRef -GroupBy createstack", true);
    let handles = |group: &Value| group["created"].as_u64().unwrap();
    let counts: Vec<u64> = groups["groups"].as_array().unwrap().iter().map(handles).collect();
    assert_eq!(counts, [40, 3_000], "{groups}");
    let shell = Shell::new();
    trace.write(shell.path("a.etl")).unwrap();
    let _ = shell.script(&["a.etl"], ".flame a.svg\n").ok();
    let picture = std::fs::read_to_string(shell.path("a.svg")).unwrap();
    assert!(picture.contains("0x7FF810000200"), "{picture}");
}

#[test]
fn one_address_in_two_processes_is_two_suspects_with_ids_of_their_own() {
    let mut sites = SiteTrace::new(&[700, 800], true);
    sites.of_process(700).of_process(800);
    let document = document(&sites.trace, ".why", true);
    let ids: Vec<&str> = document["suspects"]
        .as_array()
        .unwrap()
        .iter()
        .map(|suspect| suspect["id"].as_str().unwrap())
        .collect();
    assert_eq!(suspects(&document).len(), 2, "{document}");
    assert_ne!(ids[0], ids[1]);
    for id in ids {
        let asked =
            self::document(&sites.trace, &format!(".dump ObjectRef -Leak -Suspect {id}"), true);
        assert_eq!(asked["totals"]["leaked_handles"], 40, "{asked}");
    }
}

#[test]
fn a_caveat_names_the_processes_of_dot_net_without_names_of_methods() {
    let text = run(&sites(true), ".why\n", true).stderr;
    let caveat = ".NET methods have no names in leaky.exe(700)";
    assert!(text.contains(caveat) && text.contains("record --clr"), "{text}");
    let without_images = run(&sites(false), ".why\n", true).stderr;
    assert!(!without_images.contains(".NET"), "{without_images}");
}

/// Compares two recordings of a program; its site B has another address in each run.
fn two_runs(shell: &Shell, methods: [u64; 2], leaked: [i64; 2]) -> (Value, ProgramRun) {
    for (name, pid, method, leaked) in
        [("before.etl", 700, methods[0], leaked[0]), ("after.etl", 900, methods[1], leaked[1])]
    {
        let mut sites = SiteTrace::new(&[pid], true);
        sites.open(pid, &[METHOD_A, PLACE_A], 3_000, true);
        sites.open(pid, &[method, PLACE_B], leaked, false);
        sites.trace.write(shell.path(name)).unwrap();
    }
    let symbols = sample_symbols();
    let options = ["diff", "before.etl", "after.etl", "-json", "--symbol-path"];
    let run = shell.run(&[&options[..], &[symbols.to_str().unwrap()]].concat());
    (serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run:?}")), run)
}

#[test]
fn a_leak_behind_unnamed_methods_of_another_run_is_uncertain_and_more_of_it_is_worse() {
    let shell = Shell::new();
    let (same, run) = two_runs(&shell, [METHOD_B, METHOD_B + 0x1000], [40, 40]);
    let worse = |document: &Value| -> Vec<bool> {
        document["groups"]
            .as_array()
            .unwrap()
            .iter()
            .map(|group| group["got_worse"].as_bool().unwrap())
            .collect()
    };
    assert_eq!(worse(&same), [false, false], "{same}");
    assert!(run.stderr.contains(".NET methods have no names"), "{}", run.stderr);
    let (more, run) = two_runs(&shell, [METHOD_B, METHOD_B + 0x1000], [40, 400]);
    assert!(worse(&more).contains(&true), "{more}");
    assert_eq!(run.status, Some(1));
}
