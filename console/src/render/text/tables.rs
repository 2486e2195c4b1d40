//! `.dump Process` and `.dump Module` as text.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;

use handlescope_model::tables::{Module, Process};
use indicatif::HumanCount;
use nu_ansi_term::Color;

use crate::query::{LoadedModule, ModuleAnswer, ProcessAnswer};
use crate::settings::Display;
use crate::terminal::Clean;
use crate::terminal::Screen;
use crate::terminal::table;

/// What stands where something is not known.
const UNKNOWN: &str = "-";

pub(in crate::render) fn processes(
    answers: &[ProcessAnswer<'_>],
    display: &Display,
    out: &mut impl Write,
) -> io::Result<()> {
    let screen = display.screen;
    for answer in answers {
        write_header(answer.path, screen, out)?;
        let mut table = table::table(
            screen,
            &[
                "Pid",
                "Name",
                "Parent",
                "Session",
                "Start [s]",
                "End [s]",
                "Exit code",
                "Command line",
            ],
        );
        table::align_right(&mut table, &[0, 2, 3, 4, 5, 6]);
        for process in &answer.processes {
            table.add_row(process_cells(process));
        }
        write!(out, "{}", table::text(&table))?;
        let (count, new) = (answer.processes.len(), started(&answer.processes));
        writeln!(out, "{count} processes, {new} started in the trace")?;
    }
    Ok(())
}

fn process_cells(process: &Process) -> [String; 8] {
    [
        process.pid.to_string(),
        Clean(&process.name).to_string(),
        process.parent_pid.to_string(),
        known(process.session_id),
        known(process.start_ns.map(seconds)),
        known(process.end_ns.map(seconds)),
        known(process.exit_code.map(exit_code)),
        Clean(&process.command_line).to_string(),
    ]
}

fn started(processes: &[Process]) -> usize {
    processes.iter().filter(|process| process.start_ns.is_some()).count()
}

/// Small codes are chosen by programs, the others are NTSTATUS values that people know in hex.
fn exit_code(code: i32) -> String {
    if (-0x1000..0x1_0000).contains(&code) { code.to_string() } else { format!("0x{code:X}") }
}

pub(in crate::render) fn modules(
    answers: &[ModuleAnswer<'_>],
    display: &Display,
    out: &mut impl Write,
) -> io::Result<()> {
    let screen = display.screen;
    for answer in answers {
        write_header(answer.path, screen, out)?;
        let mut table =
            table::table(screen, &["Name", "Size", "Version", "Loaded by", "Base", "Pdb", "Path"]);
        table::align_right(&mut table, &[1]);
        for module in &answer.modules {
            table.add_row(module_cells(module));
        }
        write!(out, "{}", table::text(&table))?;
        let without = answer.modules.iter().filter(|m| m.module.pdb_guid.is_none()).count();
        let count = answer.modules.len();
        writeln!(out, "{count} modules, {without} without a PDB identity")?;
    }
    Ok(())
}

fn module_cells(loaded: &LoadedModule) -> [String; 7] {
    let LoadedModule { module, .. } = loaded;
    [
        Clean(&module.name).to_string(),
        HumanCount(module.size).to_string(),
        known(module.file_version.as_deref().map(Clean)),
        loaders(loaded),
        base(loaded),
        pdb(module),
        Clean(&module.path).to_string(),
    ]
}

/// Who loaded a module: the kernel, one process, or a number of them.
fn loaders(loaded: &LoadedModule) -> String {
    let pids: BTreeSet<u32> = loaded.loads.iter().map(|load| load.pid).collect();
    match pids.iter().collect::<Vec<_>>()[..] {
        [] => UNKNOWN.to_owned(),
        [0] => "kernel".to_owned(),
        [pid] => format!("pid {pid}"),
        ref pids => format!("{} processes", pids.len()),
    }
}

fn base(loaded: &LoadedModule) -> String {
    let bases: BTreeSet<u64> = loaded.loads.iter().filter_map(|load| load.base).collect();
    match bases.iter().collect::<Vec<_>>()[..] {
        [] => UNKNOWN.to_owned(),
        [base] => format!("0x{base:X}"),
        ref bases => format!("{} addresses", bases.len()),
    }
}

fn pdb(module: &Module) -> String {
    let (Some(name), Some(guid)) = (&module.pdb_name, &module.pdb_guid) else {
        return UNKNOWN.to_owned();
    };
    format!("{} {} {}", Clean(name), Clean(guid), module.pdb_age.unwrap_or_default())
}

/// The name of the trace, above its tables.
pub(super) fn write_header(path: &Path, screen: Screen, out: &mut impl Write) -> io::Result<()> {
    let path = path.display().to_string();
    writeln!(out, "{}", screen.paint(Color::Cyan, Clean(&path)))
}

/// A value, or what stands for an unknown one.
pub(super) fn known(value: Option<impl ToString>) -> String {
    value.map_or_else(|| UNKNOWN.to_owned(), |value| value.to_string())
}

fn seconds(ns: i64) -> String {
    format!("{:.6}", ns as f64 / 1e9)
}
