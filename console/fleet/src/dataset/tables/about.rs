//! The trace itself, its processes and modules.

use super::place::{Build, Owned, Owner, Place, Placed, owner_columns, place_columns};
use crate::dataset::column::{DatasetRow, RowColumn};

/// A trace.
#[derive(Debug, Clone, Default)]
pub struct TraceRow {
    pub machine: Option<String>,
    pub build: Option<Build>,
    pub source: String,
    pub source_bytes: i64,
    pub windows_build: Option<i32>,
    pub started_us: Option<i64>,
    pub ended_us: Option<i64>,
    pub recorded_s: Option<f64>,
    pub events: Option<i64>,
    pub events_lost: Option<i64>,
    pub buffers_lost: Option<i64>,
    pub opened: i64,
    pub leaked: i64,
    pub closed_at_exit: i64,
    pub allocations: i64,
    pub unfreed: i64,
    pub suspects: i32,
    pub stacks: i64,
    pub stacks_without_symbols: i64,
    pub extractor: String,
    pub schema_version: i32,
}

impl DatasetRow for TraceRow {
    const TABLE: &'static str = "traces";

    fn columns() -> Vec<RowColumn<Self>> {
        vec![
            RowColumn::text("machine", "Computer that recorded the trace.", |row: &Self| {
                row.machine.as_deref()
            }),
            RowColumn::text("build", "Build that was given for the trace.", |row| {
                row.build.as_ref().map(|build| build.name.as_str())
            }),
            RowColumn::text(
                "build_order",
                "The build with numbers of equal length, so that builds sort as text.",
                |row| row.build.as_ref().map(|build| build.order.as_str()),
            ),
            RowColumn::text("source", "File name of the trace.", |row| Some(&row.source)),
            RowColumn::big_int("source_bytes", "Its bytes.", |row| Some(row.source_bytes)),
            RowColumn::int("windows_build", "Build number of Windows.", |row| row.windows_build),
            RowColumn::timestamp("started_utc", "Session start.", |row| row.started_us),
            RowColumn::timestamp("ended_utc", "End of the recording.", |row| row.ended_us),
            RowColumn::double(
                "recorded_s",
                "Seconds of which the trace has the events; null without a clock.",
                |row| row.recorded_s,
            ),
            RowColumn::big_int("events", "Events in the file.", |row| row.events),
            RowColumn::big_int("events_lost", "Events that the session lost.", |row| {
                row.events_lost
            }),
            RowColumn::big_int("buffers_lost", "Buffers that the session lost.", |row| {
                row.buffers_lost
            }),
            RowColumn::big_int("opened", "Handles and views that were opened.", |row| {
                Some(row.opened)
            }),
            RowColumn::big_int(
                "leaked",
                "Handles and views that nothing closes, as .dump ObjectRef -Leak counts them.",
                |row| Some(row.leaked),
            ),
            RowColumn::big_int(
                "closed_at_exit",
                "Handles that nothing but the exit of their process closed.",
                |row| Some(row.closed_at_exit),
            ),
            RowColumn::big_int("allocations", "Allocations, each once.", |row| {
                Some(row.allocations)
            }),
            RowColumn::big_int(
                "unfreed",
                "Allocations that nothing, or only the exit of their process, freed.",
                |row| Some(row.unfreed),
            ),
            RowColumn::int("suspects", "Suspects of .why.", |row| Some(row.suspects)),
            RowColumn::big_int("stacks", "Rows in the table of stacks.", |row| Some(row.stacks)),
            RowColumn::big_int(
                "stacks_without_symbols",
                "Stacks of which a frame of the program has no name.",
                |row| Some(row.stacks_without_symbols),
            ),
            RowColumn::text("extractor", "Version of handlescope that added the trace.", |row| {
                Some(&row.extractor)
            }),
            RowColumn::int("schema_version", "Version of the tables.", |row| {
                Some(row.schema_version)
            }),
        ]
    }
}

/// A lifetime of a process.
#[derive(Debug, Clone)]
pub struct ProcessRow<'t> {
    pub owner: Owner<'t>,
    pub parent_pid: i64,
    pub path: Option<&'t str>,
    pub command_line: &'t str,
    pub sid: Option<&'t str>,
    pub build_id: Option<&'t str>,
    pub started_us: Option<i64>,
    pub started_s: Option<f64>,
    pub ended_us: Option<i64>,
    pub ended_s: Option<f64>,
    pub exit_code: Option<i64>,
    pub observed_s: Option<f64>,
}

impl Owned for ProcessRow<'_> {
    fn owner(&self) -> &Owner<'_> {
        &self.owner
    }
}

impl DatasetRow for ProcessRow<'_> {
    const TABLE: &'static str = "processes";

    fn columns() -> Vec<RowColumn<Self>> {
        let mut columns = owner_columns();
        columns.extend([
            RowColumn::big_int("parent_pid", "Process id of the parent.", |row: &Self| {
                Some(row.parent_pid)
            }),
            RowColumn::text("path", "Path of the executable.", |row| row.path),
            RowColumn::text("command_line", "Command line.", |row| {
                Some(row.command_line).filter(|line| !line.is_empty())
            }),
            RowColumn::text("sid", "Security identifier of the user.", |row| row.sid),
            RowColumn::text(
                "build_id",
                "Identity of the executable: PDB GUID and age, or else time stamp and size.",
                |row| row.build_id,
            ),
            RowColumn::timestamp("started_utc", "Start; null before the trace.", |row| {
                row.started_us
            }),
            RowColumn::double("started_s", "The same in seconds since session start.", |row| {
                row.started_s
            }),
            RowColumn::timestamp("ended_utc", "End; null if it outlived the trace.", |row| {
                row.ended_us
            }),
            RowColumn::double("ended_s", "The same in seconds since session start.", |row| {
                row.ended_s
            }),
            RowColumn::big_int("exit_code", "Exit code.", |row| row.exit_code),
            RowColumn::double("observed_s", "Seconds that the trace shows of it.", |row| {
                row.observed_s
            }),
        ]);
        columns
    }
}

/// A module.
#[derive(Debug, Clone)]
pub struct ModuleRow<'t> {
    pub place: Place<'t>,
    pub number: i32,
    pub name: &'t str,
    pub path: &'t str,
    pub file_version: Option<&'t str>,
    pub build_id: Option<String>,
    pub pdb_name: Option<&'t str>,
    pub size_bytes: Option<i64>,
    pub product: Option<&'t str>,
    pub company: Option<&'t str>,
}

impl Placed for ModuleRow<'_> {
    fn place(&self) -> &Place<'_> {
        &self.place
    }
}

impl DatasetRow for ModuleRow<'_> {
    const TABLE: &'static str = "modules";

    fn columns() -> Vec<RowColumn<Self>> {
        let mut columns = place_columns();
        columns.extend([
            RowColumn::int("module_number", "Number of the module in its trace.", |row: &Self| {
                Some(row.number)
            }),
            RowColumn::text("module", "File name.", |row| Some(row.name)),
            RowColumn::text("path", "Path as the trace has it.", |row| {
                Some(row.path).filter(|path| !path.is_empty())
            }),
            RowColumn::text("file_version", "File version.", |row| row.file_version),
            RowColumn::text(
                "build_id",
                "Identity: PDB GUID and age, or else time stamp and size.",
                |row| row.build_id.as_deref(),
            ),
            RowColumn::text("pdb_name", "File name of the PDB.", |row| row.pdb_name),
            RowColumn::big_int("size_bytes", "Bytes of the mapping.", |row| row.size_bytes),
            RowColumn::text("product", "Product.", |row| row.product),
            RowColumn::text("company", "Company.", |row| row.company),
        ]);
        columns
    }
}
