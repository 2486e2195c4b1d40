//! Builds the rows of a dataset's tables from the inventory of a trace.

use handlescope_model::tables::{Module, Process};
use handlescope_model::{ModuleIdx, ProcessIdx, StackIdx};
use hashbrown::HashMap;

use super::column::Utc;
use super::origin::{Origin, seconds};
use super::tables::{
    AcquisitionRow, DatasetGroupRow, DatasetGrowthRow, DatasetProcessRow, DatasetSuspectRow,
    ModuleRow, Place, SCHEMA_VERSION, StackRow, TraceRow, What,
};
use handlescope_query::{
    Acquisition, Inventory, InventoryGroup, OpenAt, StackIdentity, StackOfProcess, Suspect,
};

/// The inventory of a trace and the identities of its stacks.
pub struct TraceRows<'t> {
    pub origin: &'t Origin,
    pub inventory: &'t Inventory<'t>,
    stacks: HashMap<StackOfProcess, StackIdentity>,
}

impl<'t> TraceRows<'t> {
    pub fn new(origin: &'t Origin, inventory: &'t Inventory<'t>) -> Self {
        let stacks = inventory.stacks().into_iter().collect();
        Self { origin, inventory, stacks }
    }

    fn identity(
        &self,
        stack: Option<StackIdx>,
        process: Option<ProcessIdx>,
    ) -> Option<&StackIdentity> {
        self.stacks.get(&self.inventory.stack_of(stack?, process))
    }

    /// Returns identity and function of a stack.
    fn stack(
        &self,
        stack: Option<StackIdx>,
        process: Option<ProcessIdx>,
    ) -> (Option<&str>, Option<&str>) {
        let identity = self.identity(stack, process);
        identity.map(|stack| (stack.id.as_str(), stack.function.as_str())).unzip()
    }

    fn stack_text(&self, stack: Option<StackIdx>) -> Option<String> {
        self.inventory.stack_text(stack?)
    }

    fn acquired<'r>(&'r self, group: &'r InventoryGroup) -> What<'r> {
        let (stack, function) = self.stack(group.stack, group.process);
        What {
            kind: &group.kind,
            r#type: &group.type_name,
            allocator: group.allocator.as_deref(),
            stack,
            function,
        }
    }

    pub fn acquisition<'r>(
        &'r self,
        group: &'r InventoryGroup,
        acquisition: &Acquisition<'r>,
    ) -> AcquisitionRow<'r> {
        let &Acquisition { opened_ns, closed_ns, .. } = acquisition;
        let origin = self.origin;
        let (close_stack, close_function) = self.stack(acquisition.close_stack, group.process);
        AcquisitionRow {
            owner: origin.owner(group.process, &group.process_name, group.pid),
            what: self.acquired(group),
            tid: acquisition.tid.map(i64::from),
            handle: acquisition.key.map(u64::cast_signed),
            handle_hex: acquisition.key.map(|key| format!("0x{key:X}")),
            object: acquisition.object.and_then(|object| i64::try_from(object).ok()),
            object_name: acquisition.object_name,
            bytes: acquisition.bytes,
            opened_utc: origin.utc(opened_ns),
            opened_s: origin.seconds(opened_ns),
            closed_utc: closed_ns.and_then(|ns| origin.utc(ns)),
            closed_s: closed_ns.and_then(|ns| origin.seconds(ns)),
            ended: acquisition.ended,
            is_leaked: acquisition.is_leaked,
            is_part: acquisition.is_part,
            close_stack,
            close_function,
        }
    }

    pub fn group<'r>(&'r self, group: &'r InventoryGroup) -> DatasetGroupRow<'r> {
        let origin = self.origin;
        DatasetGroupRow {
            owner: origin.owner(group.process, &group.process_name, group.pid),
            what: self.acquired(group),
            stack_text: self.stack_text(group.stack),
            acquired: count(group.counts.opened),
            released: count(group.released()),
            leaked: count(group.counts.leaked),
            closed_at_exit: count(group.counts.closed_at_exit),
            unreleased: count(group.counts.leaked) + count(group.counts.closed_at_exit),
            bytes_acquired: group.bytes.map(|bytes| bytes.allocated),
            bytes_unreleased: group.bytes.map(|bytes| bytes.unreleased),
            first_leaked_utc: group.leaked_ns.and_then(|(first, _)| origin.utc(first)),
            first_leaked_s: group.leaked_ns.and_then(|(first, _)| origin.seconds(first)),
            last_leaked_utc: group.leaked_ns.and_then(|(_, last)| origin.utc(last)),
            last_leaked_s: group.leaked_ns.and_then(|(_, last)| origin.seconds(last)),
            mean_lifetime_s: group
                .mean_lifetime_ns
                .filter(|_| origin.info.has_clock())
                .map(|ns| ns / 1e9),
            observed_s: origin.seconds(group.observed_ns),
        }
    }

    pub fn growth<'r>(&'r self, at: &OpenAt<'r>) -> DatasetGrowthRow<'r> {
        let group = at.group;
        DatasetGrowthRow {
            owner: self.origin.owner(group.process, &group.process_name, group.pid),
            kind: &group.kind,
            r#type: &group.type_name,
            step: i32::try_from(at.step).unwrap_or(i32::MAX),
            at_utc: self.origin.utc(at.at_ns),
            at_s: seconds(at.at_ns),
            open: at.open,
            open_bytes: at.bytes,
        }
    }

    pub fn suspect<'r>(&'r self, suspect: &'r Suspect) -> DatasetSuspectRow<'r> {
        let rows = || suspect.processes.iter().filter_map(|process| process.row);
        let process = rows().next();
        let name = process.map(|row| self.inventory.process(row).name.as_str());
        let observed = rows().filter_map(|row| {
            self.inventory.observed(self.inventory.process(row)).map(|window| window.length_ns())
        });
        let has_clock = self.inventory.window.is_some();
        let (stack, function) = self.stack(suspect.create_stack, process);
        let causes: Vec<&str> = suspect.diagnoses.iter().map(|diagnosis| diagnosis.cause).collect();
        DatasetSuspectRow {
            place: self.origin.place(process),
            what: What {
                kind: suspect.kind(),
                r#type: &suspect.type_name,
                allocator: suspect.allocator.as_deref(),
                stack,
                function,
            },
            stack_text: self.stack_text(suspect.create_stack),
            suspect: suspect.id.text(),
            rank: i32::try_from(suspect.rank).unwrap_or(i32::MAX),
            process: name.unwrap_or_else(|| suspect.program()),
            pid: suspect.pid.map(i64::from),
            processes: i32::try_from(suspect.processes.len()).unwrap_or(i32::MAX),
            acquired: count(suspect.counts.opened),
            leaked: count(suspect.counts.leaked),
            closed_at_exit: count(suspect.counts.closed_at_exit),
            unreleased: count(suspect.counts.leaked) + count(suspect.counts.closed_at_exit),
            bytes_unreleased: suspect.bytes.map(|bytes| bytes.unreleased),
            verdict: suspect.growth.verdict.word(),
            rate_per_minute: suspect.rate_per_minute(),
            score: suspect.score,
            causes: (!causes.is_empty()).then(|| causes.join(",")),
            evidence: suspect.evidence(),
            observed_s: has_clock.then(|| seconds(observed.sum())),
        }
    }

    /// Returns the stacks by identity; stacks with the same functions appear once.
    pub fn stacks(&self) -> Vec<(StackIdx, &StackIdentity)> {
        let mut stacks: Vec<(StackIdx, &StackIdentity)> =
            self.stacks.iter().map(|((stack, _), identity)| (*stack, identity)).collect();
        stacks.sort_unstable_by_key(|(stack, identity)| (identity.key(), *stack));
        stacks.dedup_by_key(|(_, identity)| identity.key());
        stacks
    }

    /// Returns the row of a stack; `acquired` has the amounts of all stacks.
    pub fn stack_row<'r>(
        &'r self,
        (index, stack): (StackIdx, &'r StackIdentity),
        acquired: &HashMap<(&str, &str), u64>,
    ) -> StackRow<'r> {
        StackRow {
            machine: self.origin.machine.as_deref(),
            stack: &stack.id,
            frames_id: &stack.frames_id,
            function: &stack.function,
            stack_text: self.stack_text(Some(index)),
            frames: i32::try_from(stack.frames).ok(),
            has_symbols: stack.has_symbols,
            acquired: count(acquired.get(&stack.key()).copied().unwrap_or_default()),
        }
    }

    /// Returns the number that each stack acquired, by its identities.
    pub fn acquired_by_stack(&self) -> HashMap<(&str, &str), u64> {
        let mut acquired = HashMap::new();
        for group in &self.inventory.groups {
            if let Some(stack) = self.identity(group.stack, group.process) {
                *acquired.entry(stack.key()).or_default() += group.counts.opened;
            }
        }
        acquired
    }

    /// Returns the row of the trace, with its number of stacks and of stacks without symbols.
    pub fn trace(&self, stacks: usize, unnamed: usize) -> TraceRow<'_> {
        let info = &self.origin.info;
        let Place { machine, build, build_order } = self.origin.place(None);
        let totals = self.inventory.totals();
        let losses = info.losses();
        let recorded = info.recorded_ns();
        let length_ns = recorded.as_ref().map(|times| times.end() - times.start());
        TraceRow {
            machine,
            build,
            build_order,
            source: &info.source_name,
            source_bytes: count(info.source_size),
            windows_build: i32::try_from(info.os_build).ok().filter(|build| *build != 0),
            started_utc: self.origin.session_start_us().map(Utc),
            ended_utc: recorded.and_then(|times| self.origin.utc(*times.end())),
            recorded_s: length_ns.map(seconds),
            events: info.known(info.events_total).map(count),
            events_lost: losses.map(|(events, _)| count(events)),
            buffers_lost: losses.map(|(_, buffers)| count(buffers)),
            opened: count(totals.handles_created + totals.handles_duplicated + totals.map_count),
            leaked: count(totals.leaked_handles),
            closed_at_exit: count(totals.closed_at_exit),
            allocations: count(self.inventory.allocations),
            unfreed: count(self.inventory.unfreed),
            suspects: i32::try_from(self.inventory.suspects().len()).unwrap_or(i32::MAX),
            stacks: stacks as i64,
            stacks_without_symbols: unnamed as i64,
            extractor: env!("CARGO_PKG_VERSION"),
            schema_version: SCHEMA_VERSION,
        }
    }

    pub fn process<'r>(&'r self, number: usize, process: &'r Process) -> DatasetProcessRow<'r> {
        let row = ProcessIdx::from_row(number);
        let origin = self.origin;
        let executable = origin.executable(row).map(ModuleIdx::row);
        let observed = self.inventory.observed(self.inventory.process(row));
        DatasetProcessRow {
            owner: origin.owner(Some(row), &process.name, Some(process.pid)),
            parent_pid: i64::from(process.parent_pid),
            path: process.image_path.as_deref(),
            command_line: Some(process.command_line.as_str()).filter(|line| !line.is_empty()),
            sid: process.sid.as_deref(),
            build_id: executable.and_then(|module| origin.build_ids.get(module)?.as_deref()),
            started_utc: process.start_ns.and_then(|ns| origin.utc(ns)),
            started_s: process.start_ns.and_then(|ns| origin.seconds(ns)),
            ended_utc: process.end_ns.and_then(|ns| origin.utc(ns)),
            ended_s: process.end_ns.and_then(|ns| origin.seconds(ns)),
            exit_code: process.exit_code.map(i64::from),
            observed_s: observed.map(|window| seconds(window.length_ns())),
        }
    }

    pub fn module<'r>(&'r self, number: usize, module: &'r Module) -> ModuleRow<'r> {
        ModuleRow {
            place: self.origin.place(None),
            module_number: i32::try_from(number).unwrap_or(i32::MAX),
            module: &module.name,
            path: Some(module.path.as_str()).filter(|path| !path.is_empty()),
            file_version: module.file_version.as_deref(),
            build_id: self.origin.build_ids.get(number).and_then(Option::as_deref),
            pdb_name: module.pdb_name.as_deref(),
            size_bytes: i64::try_from(module.size).ok(),
            product: module.product_name.as_deref(),
            company: module.company.as_deref(),
        }
    }
}

fn count(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
