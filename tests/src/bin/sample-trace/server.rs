//! Scenario of the longer sample: `examples/src/server.cpp`, which leaks for minutes.

use handlescope_tests::scenario::Caller;
use handlescope_tests::stacks::{CLOSE, CREATE_EVENT, CREATE_FILE};

use crate::handles::{EVENT, FILE, SampleObject};
use crate::machine::{Machine, SampleProcess};
use crate::scenario::{MS, US, jitter, local, system, user};

const SERVICES: Caller = Caller { pid: 692, tid: 696, cpu: 0 };
const LISTENER: Caller = Caller { pid: 5208, tid: 5212, cpu: 1 };
const WORKERS: [Caller; 2] =
    [Caller { pid: 5208, tid: 5216, cpu: 2 }, Caller { pid: 5208, tid: 5220, cpu: 3 }];

const CONNECTIONS: i64 = 280;
/// Time from one connection to the next: 30 a minute.
const STEP: i64 = 2_000 * MS;
const SESSIONS: i64 = 40;
/// Both workers create the session of every ninth connection.
const RACES: i64 = 9;

/// Adds the events of the whole trace: 9 minutes and 22 seconds.
pub fn run(machine: &mut Machine) {
    machine.process(system(), 0);
    let server = SampleProcess {
        pid: LISTENER.pid,
        parent: SERVICES,
        session: 0,
        name: "server.exe",
        command_line: r"C:\Server\server.exe --listen 8080",
        user: user(),
        started: None,
        ended: None,
        modules: &["server.exe", "ntdll.dll", "kernel32.dll", "KernelBase.dll"],
    };
    machine.process(server, 0);
    machine.opened_before(LISTENER.pid, FILE, r"\Device\Afd");
    machine.opened_before(4, FILE, r"\Device\Tcp");
    for id in 0..CONNECTIONS {
        let ns = STEP * (id + 1) + jitter(machine, 900 * MS);
        accept(machine, ns);
        append(machine, ns + MS);
        let name = local(&format!("Server_Session_{:02}", id % SESSIONS));
        let event = machine.object(EVENT, &name);
        let mut session = get_or_create(machine, WORKERS[0], ns + 20 * MS, &event);
        if id % RACES == 4 {
            // LEAK 2: the second handle takes the first one's slot.
            let later = ns + 20 * MS + 3 * US + jitter(machine, 5 * US);
            session = get_or_create(machine, WORKERS[1], later, &event);
        }
        let stack = "server::SessionCache::Expire server::Listener::Run Main";
        let stack = machine.stacks.called(CLOSE, "server.exe", stack);
        let expired = ns + 600 * MS + jitter(machine, 300 * MS);
        machine.close(LISTENER, expired, session, &stack);
    }
    machine.stop(STEP * (CONNECTIONS + 1));
}

/// `Connection::Accept`. LEAK 1: nothing closes the handle.
fn accept(machine: &mut Machine, ns: i64) {
    let event = machine.object(EVENT, "");
    let stack = "server::Connection::Accept server::Listener::Run Main";
    let stack = machine.stacks.called(CREATE_EVENT, "server.exe", stack);
    machine.create(LISTENER, ns, &event, &stack);
}

/// `RequestLog::Append`.
fn append(machine: &mut Machine, ns: i64) {
    let file = machine.object(FILE, r"\Device\HarddiskVolume3\Server\requests.log");
    let outer = "server::RequestLog::Append server::Connection::Serve server::Listener::Run Main";
    let stack = machine.stacks.called(CREATE_FILE, "server.exe", outer);
    let handle = machine.create(LISTENER, ns, &file, &stack);
    let stack = machine.stacks.called(CLOSE, "server.exe", outer);
    let written = ns + 300 * US + jitter(machine, MS);
    machine.close(LISTENER, written, handle, &stack);
}

/// `SessionCache::GetOrCreate` when it finds the slot empty.
fn get_or_create(machine: &mut Machine, worker: Caller, ns: i64, event: &SampleObject) -> u32 {
    let stack = "server::SessionCache::GetOrCreate server::Worker::Run server::Worker::Main";
    let stack = machine.stacks.called(CREATE_EVENT, "server.exe", stack);
    machine.create(worker, ns, event, &stack)
}
