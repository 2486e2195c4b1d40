//! Minidumps of processes with handle data.

mod answers;
mod compared;
mod files;
mod hostile;

use std::fs;

use handlescope_tests::binary::Shell;
use handlescope_tests::bytes::PointerSize;
use handlescope_tests::dump::{DumpModule, SampleDump, TraceOperation};
use serde_json::Value;

const QUESTION: &str = ".dump ObjectRef -ShowStack -json";

/// Base address of the program in a dump.
const PROGRAM: u64 = 0x7FF6_0000_0000;

/// Makes a folder with the dump `a.dmp`.
fn with(dump: &SampleDump) -> Shell {
    let shell = Shell::new();
    fs::write(shell.path("a.dmp"), dump.to_bytes()).unwrap();
    shell
}

/// Returns the answer to a question about a dump, and the messages.
fn answer(dump: &SampleDump, question: &str) -> (Value, String) {
    let run = with(dump).run(&["a.dmp", "-c", question]).ok();
    (serde_json::from_str(&run.stdout).unwrap(), run.stderr)
}

/// Makes a dump of a program with one module.
fn program() -> SampleDump {
    let modules = vec![DumpModule::new(r"C:\demo\server.exe", PROGRAM, 0x10_0000)];
    SampleDump { modules, ..SampleDump::default() }
}

/// Makes that dump with handles and operations on them, newest first like the output of `!htrace`.
fn traced() -> SampleDump {
    program()
        .handle(0x4, "Event", r"\BaseNamedObjects\Go")
        .handle(0x8, "File", r"\Device\HarddiskVolume3\log.txt")
        .handle(0xC, "Event", "")
        .operation(TraceOperation::Open, 0xC, &[PROGRAM + 0x100, PROGRAM + 0x200])
        .operation(TraceOperation::BadReference, 0x10, &[PROGRAM + 0x400])
        .operation(TraceOperation::Close, 0x10, &[PROGRAM + 0x300])
        .operation(TraceOperation::Open, 0x10, &[PROGRAM + 0x100, PROGRAM + 0x200])
}

/// Turns the dump into one of a 32-bit process.
fn narrow(dump: SampleDump) -> SampleDump {
    let lower = |address: u64| address - PROGRAM + 0x40_0000;
    let mut dump = SampleDump { pointer_size: PointerSize::Four, ..dump };
    dump.modules.iter_mut().for_each(|module| module.base = lower(module.base));
    dump.operations
        .iter_mut()
        .flatten()
        .for_each(|it| it.addresses.iter_mut().for_each(|address| *address = lower(*address)));
    dump
}
