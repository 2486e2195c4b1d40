//! Rows about the trace itself, its processes and its modules.

use handlescope_model::tables::{Module, Process, TraceInfo};
use handlescope_model::{ModuleIdx, ProcessIdx};

use super::SCHEMA_VERSION;
use super::place::{Owner, Place};
use crate::dataset::column::{Utc, columns};
use crate::dataset::origin::seconds;
use crate::dataset::rows::{TraceRows, count};
use handlescope_query::session_start_us;

/// A trace.
pub struct TraceRow<'t> {
    pub rows: &'t TraceRows<'t>,
    pub info: &'t TraceInfo,
    pub stacks: usize,
    /// Number of stacks without symbols.
    pub unnamed: usize,
}

impl TraceRow<'_> {
    fn ended_utc(&self) -> Option<Utc> {
        self.rows.origin.utc(*self.info.recorded_ns()?.end())
    }

    fn recorded_s(&self) -> Option<f64> {
        self.info.recorded_ns().map(|times| seconds(times.end() - times.start()))
    }

    fn opened(&self) -> i64 {
        let totals = self.rows.inventory.totals();
        count(totals.handles_created + totals.handles_duplicated + totals.map_count)
    }
}

columns! {
    &TraceRow<'t>: row {
        /// Computer that recorded the trace.
        machine: Option<&'t str> = row.rows.origin.machine.as_deref();
        /// Build given for the trace.
        build: Option<&'t str> = row.rows.origin.place(None).build.map(|build| build.name.as_str());
        /// The build with numbers of equal length, so that builds sort as text.
        build_order: Option<&'t str> =
            row.rows.origin.place(None).build.map(|build| build.order.as_str());
        /// File name of the trace.
        source: &'t str = &row.info.source_name;
        /// Its bytes.
        source_bytes: i64 = count(row.info.source_size);
        /// Build number of Windows.
        windows_build: Option<i32> =
            i32::try_from(row.info.os_build).ok().filter(|build| *build != 0);
        /// Session start.
        started_utc: Option<Utc> = session_start_us(row.info).map(Utc);
        /// End of the recording.
        ended_utc: Option<Utc> = row.ended_utc();
        /// Seconds that the trace covers; null without a clock.
        recorded_s: Option<f64> = row.recorded_s();
        /// Events in the file.
        events: Option<i64> = row.info.known(row.info.events_total).map(count);
        /// Events that the session lost.
        events_lost: Option<i64> = row.info.losses().map(|(events, _)| count(events));
        /// Buffers that the session lost.
        buffers_lost: Option<i64> = row.info.losses().map(|(_, buffers)| count(buffers));
        /// Handles and views opened.
        opened: i64 = row.opened();
        /// Handles and views never closed, as .dump ObjectRef -Leak counts them.
        leaked: i64 = count(row.rows.inventory.totals().leaked_handles);
        /// Handles closed only by process exit.
        closed_at_exit: i64 = count(row.rows.inventory.totals().closed_at_exit);
        /// Allocations, each once.
        allocations: i64 = count(row.rows.inventory.allocations);
        /// Allocations never freed, or only by process exit.
        unfreed: i64 = count(row.rows.inventory.unfreed);
        /// Suspects of .why.
        suspects: i32 = i32::try_from(row.rows.inventory.suspects().len()).unwrap_or(i32::MAX);
        /// Rows in the table of stacks.
        stacks: i64 = row.stacks as i64;
        /// Stacks with a frame of the program that has no name.
        stacks_without_symbols: i64 = row.unnamed as i64;
        /// Version of handlescope that added the trace.
        extractor: &'static str = env!("CARGO_PKG_VERSION");
        /// Version of the tables.
        schema_version: i32 = SCHEMA_VERSION;
    }
}

/// A lifetime of a process.
pub struct DatasetProcessRow<'t> {
    pub rows: &'t TraceRows<'t>,
    pub row: ProcessIdx,
    pub process: &'t Process,
}

impl<'t> DatasetProcessRow<'t> {
    fn build_id(&self) -> Option<&'t str> {
        self.rows.build_id(self.rows.origin.executable(self.row)?)
    }

    fn observed_s(&self) -> Option<f64> {
        let inventory = self.rows.inventory;
        let observed = inventory.observed(inventory.process(self.row));
        observed.map(|window| seconds(window.length_ns()))
    }
}

columns! {
    &DatasetProcessRow<'t>: row {
        owner: Owner<'t> =
            row.rows.origin.owner(Some(row.row), &row.process.name, Some(row.process.pid));
        /// Process id of the parent.
        parent_pid: i64 = i64::from(row.process.parent_pid);
        /// Path of the executable.
        path: Option<&'t str> = row.process.image_path.as_deref();
        /// Command line.
        command_line: Option<&'t str> =
            Some(row.process.command_line.as_str()).filter(|line| !line.is_empty());
        /// Security identifier of the user.
        sid: Option<&'t str> = row.process.sid.as_deref();
        /// Identity of the executable: PDB GUID and age, or else time stamp and size.
        build_id: Option<&'t str> = row.build_id();
        /// Start; null before the trace.
        started_utc: Option<Utc> = row.process.start_ns.and_then(|ns| row.rows.origin.utc(ns));
        /// The same in seconds since session start.
        started_s: Option<f64> = row.process.start_ns.and_then(|ns| row.rows.origin.seconds(ns));
        /// End; null if it outlived the trace.
        ended_utc: Option<Utc> = row.process.end_ns.and_then(|ns| row.rows.origin.utc(ns));
        /// The same in seconds since session start.
        ended_s: Option<f64> = row.process.end_ns.and_then(|ns| row.rows.origin.seconds(ns));
        /// Exit code.
        exit_code: Option<i64> = row.process.exit_code.map(i64::from);
        /// Seconds that it ran within the trace.
        observed_s: Option<f64> = row.observed_s();
    }
}

/// A module.
pub struct ModuleRow<'t> {
    pub rows: &'t TraceRows<'t>,
    pub row: ModuleIdx,
    pub module: &'t Module,
}

columns! {
    &ModuleRow<'t>: row {
        place: Place<'t> = row.rows.origin.place(None);
        /// Number of the module in its trace.
        module_number: i32 = i32::try_from(row.row.row()).unwrap_or(i32::MAX);
        /// File name.
        module: &'t str = &row.module.name;
        /// Path as the trace has it.
        path: Option<&'t str> = Some(row.module.path.as_str()).filter(|path| !path.is_empty());
        /// File version.
        file_version: Option<&'t str> = row.module.file_version.as_deref();
        /// Identity: PDB GUID and age, or else time stamp and size.
        build_id: Option<&'t str> = row.rows.build_id(row.row);
        /// File name of the PDB.
        pdb_name: Option<&'t str> = row.module.pdb_name.as_deref();
        /// Bytes of the mapping.
        size_bytes: Option<i64> = i64::try_from(row.module.size).ok();
        /// Product.
        product: Option<&'t str> = row.module.product_name.as_deref();
        /// Company.
        company: Option<&'t str> = row.module.company.as_deref();
    }
}
