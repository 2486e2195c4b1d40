//! `groups` of all traces together, by some of their columns.

use std::collections::{BTreeSet, HashMap};

use super::caveats::FleetCaveat;
use super::choice::{FleetCriteria, RowTest};
use super::no_match::no_match;
use super::scan::Row;
use super::traces::{Fleet, FleetTrace};
use super::why::is_of_allocations;
use crate::FleetError;
use handlescope_session::cancel::Cancel;

/// A column by which groups are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FleetColumn {
    Machine,
    Build,
    Day,
    Trace,
    Process,
    Kind,
    Type,
    Allocator,
    CreateStack,
    Function,
}

/// Columns with their words, titles and meanings.
const COLUMNS: [(FleetColumn, &str, &str, &str); 10] = [
    (FleetColumn::Machine, "machine", "Machine", "computer that recorded the trace"),
    (FleetColumn::Build, "build", "Build", "build of the process"),
    (FleetColumn::Day, "day", "Day", "day of the session start, UTC"),
    (FleetColumn::Trace, "trace", "Trace", "trace, by its id"),
    (FleetColumn::Process, "process", "Process", "executable of the owner"),
    (FleetColumn::Kind, "kind", "Kind", "handle, view, or kind of allocations"),
    (FleetColumn::Type, "type", "Type", "type of the object; of allocations the kind"),
    (FleetColumn::Allocator, "allocator", "Allocator", "allocator, where traces have its name"),
    (FleetColumn::CreateStack, "createstack", "Created by", "stack that acquired it"),
    (FleetColumn::Function, "function", "Function", "first function of the program on that stack"),
];

impl FleetColumn {
    pub const ALL: [Self; 10] = {
        let mut all = [Self::Machine; 10];
        let mut index = 0;
        while index < COLUMNS.len() {
            all[index] = COLUMNS[index].0;
            index += 1;
        }
        all
    };

    /// Words with their meanings.
    pub fn words() -> Vec<(&'static str, &'static str)> {
        COLUMNS.iter().map(|(_, word, _, help)| (*word, *help)).collect()
    }

    fn declared(self) -> (&'static str, &'static str, &'static str) {
        let mut columns = COLUMNS.iter().filter(|(column, ..)| *column == self);
        columns.next().map_or(("", "", ""), |(_, word, title, help)| (word, title, help))
    }

    pub fn word(self) -> &'static str {
        self.declared().0
    }

    pub fn title(self) -> &'static str {
        self.declared().1
    }

    pub fn help(self) -> &'static str {
        self.declared().2
    }

    fn key<'r>(self, fleet: &'r Fleet, trace: &'r FleetTrace, row: &Row<'r>) -> Option<&'r str> {
        match self {
            Self::Machine => Some(fleet.machine(trace)),
            Self::Day => Some(&trace.day),
            Self::Trace => Some(&trace.partition.trace),
            Self::Build => row.text("build"),
            Self::Process => row.text("process"),
            Self::Kind => row.text("kind"),
            Self::Type => row.text("type"),
            Self::Allocator => row.text("allocator"),
            Self::CreateStack => row.text("stack"),
            Self::Function => row.text("function"),
        }
    }
}

/// Number of handles and views, or of allocations.
#[derive(Debug, Clone, Copy, Default)]
pub struct Amounts {
    pub acquired: i64,
    pub released: i64,
    pub leaked: i64,
    pub closed_at_exit: i64,
}

impl Amounts {
    fn unreleased(self) -> i64 {
        self.leaked.saturating_add(self.closed_at_exit)
    }
}

/// Sums of handles and allocations that many processes acquired.
#[derive(Debug, Clone, Default)]
pub struct FleetGroup {
    /// Values in the columns, in their order.
    pub keys: Vec<Option<String>>,
    pub machines: usize,
    pub traces: usize,
    pub handles: Amounts,
    pub allocations: Amounts,
    pub bytes_acquired: i64,
    pub bytes_unreleased: i64,
    /// Part of what all groups leak, 0 to 1; where nothing is leaked, of what they acquired.
    pub share: f64,
}

/// Functions and frames of a stack.
#[derive(Debug, Clone, Default)]
pub struct StackTexts {
    pub function: String,
    pub lines: String,
}

/// Groups of a fleet.
pub struct FleetGroups {
    pub by: Vec<FleetColumn>,
    pub groups: Vec<FleetGroup>,
    /// Stacks that are keys, by their identities.
    pub stacks: HashMap<String, StackTexts>,
    pub caveats: Vec<FleetCaveat>,
    pub machines: usize,
    pub traces: usize,
}

impl FleetGroup {
    pub fn unreleased(&self) -> i64 {
        self.handles.unreleased().saturating_add(self.allocations.unreleased())
    }

    fn acquired(&self) -> i64 {
        self.handles.acquired.saturating_add(self.allocations.acquired)
    }
}

/// Rows of `groups` that count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LeaksOnly {
    /// Only what leaks something that nothing released.
    pub leak: bool,
    /// Also what only the exit of a process released.
    pub at_exit: bool,
}

impl LeaksOnly {
    fn passes(self, leaked: i64, closed_at_exit: i64) -> bool {
        match (self.leak, self.at_exit) {
            (false, false) => true,
            (true, false) => leaked > 0,
            (false, true) => closed_at_exit > 0,
            (true, true) => leaked > 0 || closed_at_exit > 0,
        }
    }
}

/// Sums of a group.
#[derive(Default)]
struct Sums {
    machines: BTreeSet<usize>,
    /// The last trace that was added; traces come one after the other.
    last: Option<usize>,
    group: FleetGroup,
}

/// Groups what the processes of a fleet acquired.
///
/// # Errors
/// When a table cannot be read, or `cancel` asks to stop.
pub fn fleet_groups(
    fleet: &Fleet,
    criteria: &FleetCriteria,
    by: &[FleetColumn],
    leaks: LeaksOnly,
    cancel: &Cancel,
) -> Result<FleetGroups, FleetError> {
    let needs = |column| by.contains(&column);
    let mut columns = vec![
        "build",
        "process",
        "pid",
        "type",
        "kind",
        "acquired",
        "released",
        "leaked",
        "closed_at_exit",
        "bytes_acquired",
        "bytes_unreleased",
    ];
    columns.extend(needs(FleetColumn::Allocator).then_some("allocator"));
    columns.extend(
        needs(FleetColumn::CreateStack).then_some(["stack", "stack_text"]).into_iter().flatten(),
    );
    let has_function = needs(FleetColumn::Function) || needs(FleetColumn::CreateStack);
    columns.extend(has_function.then_some("function"));
    let mut test = RowTest::new(criteria);
    let mut sums: HashMap<Vec<Option<String>>, Sums> = HashMap::new();
    let mut stacks: HashMap<String, StackTexts> = HashMap::new();
    let mut matches = false;
    fleet.each("groups", &columns, cancel, |trace, number, row| {
        let text = |name| row.text(name).unwrap_or_default();
        let count = |name| row.whole(name).unwrap_or_default();
        let passes = test.passes_process(text("process"), row.whole("pid"))
            && test.passes_type(text("type"))
            && test.passes_build(row.text("build"));
        matches |= passes;
        if !passes || !leaks.passes(count("leaked"), count("closed_at_exit")) {
            return;
        }
        if let Some(stack) = row.text("stack").filter(|stack| !stacks.contains_key(*stack)) {
            let (function, lines) = (text("function").to_owned(), text("stack_text").to_owned());
            stacks.insert(stack.to_owned(), StackTexts { function, lines });
        }
        let keys = by.iter().map(|column| column.key(fleet, trace, row).map(str::to_owned));
        let sums = sums.entry(keys.collect()).or_default();
        sums.machines.insert(trace.machine);
        sums.group.traces += usize::from(sums.last != Some(number));
        sums.last = Some(number);
        let amounts = match is_of_allocations(text("kind")) {
            true => &mut sums.group.allocations,
            false => &mut sums.group.handles,
        };
        for (sum, name) in [
            (&mut amounts.acquired, "acquired"),
            (&mut amounts.released, "released"),
            (&mut amounts.leaked, "leaked"),
            (&mut amounts.closed_at_exit, "closed_at_exit"),
            (&mut sums.group.bytes_acquired, "bytes_acquired"),
            (&mut sums.group.bytes_unreleased, "bytes_unreleased"),
        ] {
            *sum = sum.saturating_add(count(name));
        }
    })?;
    let no_match = if matches { None } else { no_match(fleet, criteria, cancel)? };
    let groups = sums.into_iter().map(|(keys, Sums { machines, group, .. })| FleetGroup {
        keys,
        machines: machines.len(),
        ..group
    });
    let mut groups: Vec<FleetGroup> = groups.collect();
    with_shares(&mut groups);
    groups.sort_by(|a, b| {
        let order = |group: &FleetGroup| (group.unreleased(), group.acquired());
        order(b).cmp(&order(a)).then_with(|| a.keys.cmp(&b.keys))
    });
    Ok(FleetGroups {
        by: by.to_vec(),
        groups,
        stacks,
        caveats: no_match.into_iter().chain(fleet.caveats()).collect(),
        machines: fleet.machines.len(),
        traces: fleet.traces.len(),
    })
}

fn with_shares(groups: &mut [FleetGroup]) {
    let sum = |amount: fn(&FleetGroup) -> i64| {
        groups.iter().map(|group| amount(group) as f64).sum::<f64>()
    };
    let (unreleased, acquired) = (sum(FleetGroup::unreleased), sum(FleetGroup::acquired));
    for group in groups {
        let (part, all) = match unreleased > 0.0 {
            true => (group.unreleased(), unreleased),
            false => (group.acquired(), acquired),
        };
        group.share = if all > 0.0 { part as f64 / all } else { 0.0 };
    }
}
