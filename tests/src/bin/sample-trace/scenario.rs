//! Scenario of the sample: `examples/src/leaky.cpp` and `explorer.cpp`, call by call.
//!
//! The calls and their order follow those sources. Only the times, and which event cache look-ups collide, are decided
//! here.

use handlescope_tests::payload::Sid;
use handlescope_tests::scenario::Caller;
use handlescope_tests::stacks::{
    CLOSE, CLOSE_KEY, CREATE_EVENT, CREATE_FILE, CREATE_SECTION, CREATE_THREAD, DUPLICATE,
    EventStack, INHERIT, NEW_PROCESS, NEW_PROCESS_THREAD, OPEN_KEY, PROCESS_EXIT, Service,
};

use crate::handles::{EVENT, FILE, KEY, PROCESS, SECTION, SampleObject, THREAD};
use crate::machine::{Machine, SampleProcess};

pub const US: i64 = 1_000;
pub const MS: i64 = 1_000_000;
const WININIT: Caller = Caller { pid: 540, tid: 544, cpu: 0 };
const USERINIT: Caller = Caller { pid: 4200, tid: 4204, cpu: 0 };
const CSRSS: u32 = 612;
const EXPLORER: Caller = Caller { pid: 4312, tid: 4316, cpu: 0 };
const LEAKY: Caller = Caller { pid: 7316, tid: 7320, cpu: 2 };
const HELPER: Caller = Caller { pid: 9044, tid: 9048, cpu: 3 };
/// The first worker thread; the others follow in steps of 4.
const FIRST_WORKER: u32 = 7404;

const LEAKY_MODULES: &[&str] = &["leaky.exe", "ntdll.dll", "kernel32.dll", "KernelBase.dll"];
const EXPLORER_MODULES: &[&str] = &["explorer.exe", "ntdll.dll", "kernel32.dll", "KernelBase.dll"];
/// Time between the start of a process and the load of its first module.
const LOAD_DELAY: i64 = 3 * MS;

const PAIRS: u32 = 3;
const EVENTS_PER_PAIR: u32 = 16;
const SESSIONS_PER_WORKER: u32 = 4;
/// Events that both workers of a pair create, because both find the slot empty.
const RACES: [u32; 8] = [2, 7, 13, 20, 27, 32, 38, 41];

/// Adds the events of the whole trace.
pub fn run(machine: &mut Machine) {
    let old = boot(machine);
    timer(machine, 150 * MS, Some(old));
    launch(machine, 300 * MS);
    let mut app = open(machine, 320 * MS);
    read_config(machine, LEAKY, 330 * MS, "leaky::App::ReadConfig leaky::App::Run Main");
    start_helper(machine, 350 * MS, &app);
    for pair in 0..PAIRS {
        run_pair(machine, (500 + 400 * i64::from(pair)) * MS, pair, &mut app.events);
    }
    close(machine, 1_740 * MS, &app);
    timer(machine, 1_950 * MS, None);
    machine.stop(2_100 * MS);
}

/// Handles that leaky.exe keeps open until it cleans up.
struct App {
    log: (u32, SampleObject),
    state: u32,
    stop: (u32, SampleObject),
    /// The cached handles, indexed by event number.
    events: Vec<u32>,
}

/// Adds the processes from before the trace; returns a handle that explorer.exe closes during the trace.
fn boot(machine: &mut Machine) -> u32 {
    let idle = SampleProcess { pid: 0, name: "Idle", ..system() };
    machine.process(idle.clone(), 0);
    machine.process(system(), 0);
    let csrss = SampleProcess {
        pid: CSRSS,
        parent: WININIT,
        session: 1,
        name: "csrss.exe",
        command_line: r"%SystemRoot%\system32\csrss.exe ObjectDirectory=\Windows",
        modules: &["ntdll.dll"],
        ..idle
    };
    machine.process(csrss.clone(), 0);
    let explorer = SampleProcess {
        pid: EXPLORER.pid,
        parent: USERINIT,
        name: "explorer.exe",
        command_line: r"C:\Windows\explorer.exe",
        user: user(),
        modules: EXPLORER_MODULES,
        ..csrss
    };
    machine.process(explorer, 0);

    for name in [r"\Device\HarddiskVolume3\Windows\System32\config\SOFTWARE", r"\Device\Tcp"] {
        machine.opened_before(4, FILE, name);
    }
    machine.opened_before(4, KEY, r"\REGISTRY\MACHINE\SYSTEM");
    machine.opened_before(CSRSS, PROCESS, "");
    machine.opened_before(CSRSS, THREAD, "");
    machine.opened_before(EXPLORER.pid, FILE, r"\Device\HarddiskVolume3\Windows");
    machine.opened_before(EXPLORER.pid, KEY, r"\REGISTRY\MACHINE\SOFTWARE\Microsoft\Ole");
    machine.opened_before(EXPLORER.pid, EVENT, &local("ShellReady"));
    machine.opened_before(EXPLORER.pid, SECTION, &local("ShellState"));
    let old = machine.opened_before(EXPLORER.pid, EVENT, "");
    machine.opened_before(EXPLORER.pid, THREAD, "");
    old
}

/// `shell::Taskbar::OnTimer`: closes everything it opens, and a handle from before the trace.
fn timer(machine: &mut Machine, ns: i64, old: Option<u32>) {
    let outer = "shell::Taskbar::OnTimer WinMain";
    let redraw = machine.object(EVENT, "");
    let redraw = create(machine, EXPLORER, ns, &redraw, CREATE_EVENT, outer);
    let key = machine.object(KEY, &registry("Shell"));
    let read = "shell::Settings::Read shell::Taskbar::OnTimer WinMain";
    let key = create(machine, EXPLORER, ns + 60 * US, &key, OPEN_KEY, read);
    let stack = machine.stacks.called(CLOSE_KEY, "explorer.exe", read);
    machine.close(EXPLORER, ns + 95 * US, key, &stack);
    close_handle(machine, EXPLORER, ns + 9 * MS, redraw, outer);
    if let Some(old) = old {
        let outer = "shell::Taskbar::OnTimer#2 WinMain";
        close_handle(machine, EXPLORER, ns + 9 * MS + 20 * US, old, outer);
    }
}

/// `shell::Launcher::Start`: leaky.exe starts.
fn launch(machine: &mut Machine, ns: i64) {
    let start = "shell::Launcher::Start shell::Taskbar::OnClick WinMain";
    let leaky = leaky(LEAKY, EXPLORER, ns);
    let (process, thread) = start_process(machine, LEAKY, leaky, start);
    let again = "shell::Launcher::Start#2 shell::Taskbar::OnClick WinMain";
    close_handle(machine, EXPLORER, ns + 3 * MS, thread, start);
    close_handle(machine, EXPLORER, ns + 3 * MS + 15 * US, process, again);
}

/// `App::Open`.
fn open(machine: &mut Machine, ns: i64) -> App {
    let outer = "leaky::App::Open leaky::App::Run Main";
    let file = machine.object(FILE, r"\Device\HarddiskVolume3\Tools\leaky.log");
    let log = create(machine, LEAKY, ns, &file, CREATE_FILE, outer);
    let section = machine.object(SECTION, &local("Leaky_State"));
    let state = create(machine, LEAKY, ns + 310 * US, &section, CREATE_SECTION, outer);
    let event = machine.object(EVENT, &local("Leaky_Stop"));
    let stop = create(machine, LEAKY, ns + 355 * US, &event, CREATE_EVENT, outer);
    let events = vec![0; (PAIRS * EVENTS_PER_PAIR) as usize];
    App { log: (log, file), state, stop: (stop, event), events }
}

/// `App::ReadConfig`.
fn read_config(machine: &mut Machine, thread: Caller, ns: i64, stack: &str) {
    let key = machine.object(KEY, &registry("Leaky"));
    let key = create(machine, thread, ns, &key, OPEN_KEY, stack);
    let stack = machine.stacks.called(CLOSE_KEY, "leaky.exe", stack);
    machine.close(thread, ns + 40 * US, key, &stack);
}

/// `App::StartHelper` and, in the helper, `App::RunHelper`.
fn start_helper(machine: &mut Machine, ns: i64, app: &App) {
    let outer = "leaky::App::StartHelper leaky::App::Run Main";
    let (log, file) = &app.log;
    let stack = machine.stacks.called(INHERIT, "leaky.exe", outer);
    machine.inherit(LEAKY, ns, (*log, file), HELPER.pid, &stack);
    let end = ns + 60 * MS;
    let helper = SampleProcess {
        command_line: "leaky.exe --helper",
        ended: Some(end),
        ..leaky(HELPER, LEAKY, ns + 400 * US)
    };
    let (process, thread) = start_process(machine, HELPER, helper, outer);
    let (stop, event) = &app.stop;
    let stack = machine.stacks.called(DUPLICATE, "leaky.exe", outer);
    let given = machine.duplicate_to(LEAKY, ns + 3 * MS, (*stop, event), HELPER.pid, &stack);

    let config = "leaky::App::ReadConfig leaky::App::RunHelper Main";
    read_config(machine, HELPER, ns + 30 * MS, config);
    let exit = EventStack { kernel: machine.stacks.kernel(PROCESS_EXIT), user: Vec::new() };
    machine.close(HELPER, end + 180 * US, *log, &exit);
    machine.close(HELPER, end + 195 * US, given, &exit);

    close_handle(machine, LEAKY, end + MS, thread, outer);
    let again = "leaky::App::StartHelper#2 leaky::App::Run Main";
    close_handle(machine, LEAKY, end + MS + 15 * US, process, again);
}

/// One turn of `App::RunWorkers`: two workers walk the same events, then run their own sessions.
fn run_pair(machine: &mut Machine, ns: i64, pair: u32, events: &mut [u32]) {
    let workers = [2 * pair, 2 * pair + 1].map(worker);
    for start in [ns, ns + 120 * US] {
        let object = machine.object(THREAD, "");
        let outer = "leaky::ThreadPool::StartWorker leaky::App::RunWorkers leaky::App::Run Main";
        // LEAK 3: nothing closes the handle.
        create(machine, LEAKY, start, &object, CREATE_THREAD, outer);
    }
    let mut time = ns + 2 * MS;
    for id in pair * EVENTS_PER_PAIR..(pair + 1) * EVENTS_PER_PAIR {
        time += 3 * MS + jitter(machine, 6 * MS);
        let (first, second) = if machine.rng.percent(50) { (0, 1) } else { (1, 0) };
        let handle = &mut events[id as usize];
        let object = machine.object(EVENT, &local(&format!("Leaky_Signal_{id:02}")));
        *handle = get_or_create(machine, workers[first], time, &object);
        if RACES.contains(&id) {
            // LEAK 1: the second handle takes the first one's slot.
            let later = time + 4 * US + jitter(machine, 5 * US);
            *handle = get_or_create(machine, workers[second], later, &object);
        }
    }
    for (worker, id) in workers.into_iter().zip(2 * pair..) {
        let mut time = time + 2 * MS + jitter(machine, MS) + i64::from(id) * 500;
        for session in id * SESSIONS_PER_WORKER..(id + 1) * SESSIONS_PER_WORKER {
            time += 4 * MS + jitter(machine, 9 * MS);
            session_of(machine, worker, time, session);
        }
        let started = ns + 30 * US + i64::from(id % 2) * 120 * US;
        machine.thread(worker, started, Some(time + 20 * MS));
    }
}

/// `EventCache::GetOrCreate` when it finds the slot empty.
fn get_or_create(machine: &mut Machine, worker: Caller, ns: i64, event: &SampleObject) -> u32 {
    let outer = "leaky::EventCache::GetOrCreate leaky::Worker::Run leaky::ThreadPool::WorkerMain";
    create(machine, worker, ns, event, CREATE_EVENT, outer)
}

/// `Session::Connect`, and `Session::Close` if connecting succeeds.
fn session_of(machine: &mut Machine, worker: Caller, ns: i64, id: u32) {
    let connect = "leaky::Session::Connect leaky::Worker::Run leaky::ThreadPool::WorkerMain";
    let ready = machine.object(EVENT, "");
    let ready = create(machine, worker, ns, &ready, CREATE_EVENT, connect);
    // LEAK 2: a refused session keeps its event.
    if id % 5 != 3 {
        let close = "leaky::Session::Close leaky::Worker::Run leaky::ThreadPool::WorkerMain";
        let later = ns + 800 * US + jitter(machine, 2 * MS);
        close_handle(machine, worker, later, ready, close);
    }
}

/// `App::Close`: closes everything leaky.exe still knows of.
fn close(machine: &mut Machine, ns: i64, app: &App) {
    let clear = "leaky::EventCache::Clear leaky::App::Close leaky::App::Run Main";
    let mut time = ns;
    for handle in &app.events {
        close_handle(machine, LEAKY, time, *handle, clear);
        time += 14 * US + jitter(machine, 10 * US);
    }
    let rest = [
        (app.stop.0, "leaky::App::Close leaky::App::Run Main"),
        (app.state, "leaky::App::Close#2 leaky::App::Run Main"),
        (app.log.0, "leaky::App::Close#3 leaky::App::Run Main"),
    ];
    for (handle, outer) in rest {
        time += 15 * US;
        close_handle(machine, LEAKY, time, handle, outer);
    }
}

/// Adds the events of `CreateProcessW`; returns the process handle and the thread handle.
fn start_process(
    machine: &mut Machine,
    first: Caller,
    process: SampleProcess,
    outer: &str,
) -> (u32, u32) {
    let (creator, ns) = (process.parent, process.started.expect("a process that starts"));
    machine.thread(first, ns + 100 * US, process.ended);
    machine.process(process, LOAD_DELAY);
    let object = machine.object(PROCESS, "");
    let process = create(machine, creator, ns + 90 * US, &object, NEW_PROCESS, outer);
    let object = machine.object(THREAD, "");
    let thread = create(machine, creator, ns + 120 * US, &object, NEW_PROCESS_THREAD, outer);
    (process, thread)
}

fn create(
    machine: &mut Machine,
    thread: Caller,
    ns: i64,
    object: &SampleObject,
    service: Service,
    outer: &str,
) -> u32 {
    let stack = machine.stacks.called(service, program(thread), outer);
    machine.create(thread, ns, object, &stack)
}

fn close_handle(machine: &mut Machine, thread: Caller, ns: i64, handle: u32, outer: &str) {
    let stack = machine.stacks.called(CLOSE, program(thread), outer);
    machine.close(thread, ns, handle, &stack);
}

fn program(thread: Caller) -> &'static str {
    if thread.pid == EXPLORER.pid { "explorer.exe" } else { "leaky.exe" }
}

/// Returns the kernel's process.
pub fn system() -> SampleProcess {
    SampleProcess {
        pid: 4,
        parent: Caller::default(),
        session: u32::MAX,
        name: "System",
        command_line: "",
        user: Sid::system(),
        started: None,
        ended: None,
        modules: &[],
    }
}

fn leaky(first: Caller, parent: Caller, ns: i64) -> SampleProcess {
    SampleProcess {
        pid: first.pid,
        parent,
        session: 1,
        name: "leaky.exe",
        command_line: r"C:\Tools\leaky.exe",
        user: user(),
        started: Some(ns),
        ended: None,
        modules: LEAKY_MODULES,
    }
}

fn worker(id: u32) -> Caller {
    Caller { pid: LEAKY.pid, tid: FIRST_WORKER + 4 * id, cpu: 1 + (id % 2) as u16 * 2 }
}

pub fn user() -> Sid {
    Sid { authority: 5, sub: vec![21, 1_004_336_348, 1_177_238_915, 682_003_330, 1001] }
}

/// Returns the full name of a named object in the user's session.
pub fn local(name: &str) -> String {
    format!(r"\Sessions\1\BaseNamedObjects\{name}")
}

fn registry(name: &str) -> String {
    let user = "S-1-5-21-1004336348-1177238915-682003330-1001";
    format!(r"\REGISTRY\USER\{user}\Software\{name}")
}

/// Returns a random time below `limit`, in whole clock ticks.
pub fn jitter(machine: &mut Machine, limit: i64) -> i64 {
    machine.rng.below(limit as u64 / 100) as i64 * 100
}
