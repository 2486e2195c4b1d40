//! Groups the rows of `groups` of all traces by some of their columns.

use std::collections::HashMap;
use std::sync::Arc;

use polars::prelude::{DataType, Expr, LazyFrame, col, lit, when};

use super::caveats::FleetCaveat;
use super::choice::FleetCriteria;
use super::no_match::caveats;
use super::scan::{AnswerRow, records};
use super::traces::{Fleet, numbers, sums};
use crate::FleetError;
use handlescope_query::GroupColumn;
use handlescope_session::cancel::Cancel;

/// Amounts of handles and views, or of allocations.
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

/// Sums of the handles and allocations that many processes acquired.
#[derive(Debug, Clone, Default)]
pub struct FleetGroup {
    /// Values of the group columns, in order.
    pub keys: Vec<Option<String>>,
    /// The stack, if it is a group key.
    pub stack: Option<Arc<StackTexts>>,
    pub machines: usize,
    pub traces: usize,
    pub handles: Amounts,
    pub allocations: Amounts,
    pub bytes_acquired: i64,
    pub bytes_unreleased: i64,
    /// Share of all leaks, 0 to 1; if nothing leaks, share of everything acquired.
    pub share: f64,
}

/// Functions and frames of a stack.
#[derive(Debug, Clone, Default)]
pub struct StackTexts {
    pub function: String,
    pub lines: String,
}

/// The groups of a fleet.
pub struct FleetGroups {
    pub by: Vec<GroupColumn>,
    pub groups: Vec<FleetGroup>,
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

/// Which rows of `groups` count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LeaksOnly {
    /// Only rows with leaks that nothing released.
    pub leak: bool,
    /// Also rows with leaks that only process exit released.
    pub at_exit: bool,
}

impl LeaksOnly {
    fn passes(self) -> Expr {
        let columns = [(self.leak, "leaked"), (self.at_exit, "closed_at_exit")];
        let chosen = columns.into_iter().filter(|(is_chosen, _)| *is_chosen);
        let some = chosen.map(|(_, column)| col(column).gt(lit(0)));
        some.reduce(Expr::or).unwrap_or(lit(true))
    }
}

/// Whether a row is an allocation.
pub fn is_allocation() -> Expr {
    let is = |kind: &str| col("kind").eq_missing(lit(kind));
    is("handle").or(is("view")).not()
}

/// Columns of [`Amounts`], and their names for allocations in sums.
const AMOUNTS: [&str; 4] = ["acquired", "released", "leaked", "closed_at_exit"];
const OF_ALLOCATIONS: [&str; 4] = ["allocated", "freed", "unfreed", "freed_at_exit"];
const BYTES: [&str; 2] = ["bytes_acquired", "bytes_unreleased"];

/// Groups what the processes of a fleet acquired.
///
/// # Errors
/// If a table cannot be read, or `cancel` asks to stop.
pub fn fleet_groups(
    fleet: &Fleet,
    criteria: &FleetCriteria,
    by: &[GroupColumn],
    leaks: LeaksOnly,
    cancel: &Cancel,
) -> Result<FleetGroups, FleetError> {
    let keys: Vec<&str> = by.iter().map(|column| column.name()).collect();
    let names: Vec<Expr> = keys.iter().map(|name| col(*name)).collect();
    let texts: &[&str] = if by.contains(&GroupColumn::CreateStack) {
        &["stack", "function", "stack_text"]
    } else {
        &[]
    };
    let columns =
        [&["build", "process", "pid", "type", "kind"], &AMOUNTS[..], &BYTES, texts, &keys];
    let rows = |frame: LazyFrame| {
        let split = AMOUNTS.into_iter().zip(OF_ALLOCATIONS).flat_map(|(name, of_allocations)| {
            let none = || lit(0).cast(DataType::Int64);
            [
                when(is_allocation()).then(none()).otherwise(col(name)).alias(name),
                when(is_allocation()).then(col(name)).otherwise(none()).alias(of_allocations),
            ]
        });
        frame.filter(criteria.passes().and(leaks.passes())).with_columns(split.collect::<Vec<_>>())
    };
    let amounts = [sums(&AMOUNTS), sums(&OF_ALLOCATIONS), sums(&BYTES), vec![numbers()]].concat();
    let groups = |frame: LazyFrame| frame.group_by(names.clone()).agg(amounts.clone());
    let stacks = |frame: LazyFrame| match texts {
        [stack, texts @ ..] => {
            let texts: Vec<Expr> = texts.iter().map(|name| col(*name).first()).collect();
            frame.group_by([col(*stack)]).agg(texts)
        }
        [] => frame.select([col("number")]).limit(0),
    };
    let [sums, stacks] =
        fleet.summed("groups", &columns.concat(), rows, [&groups, &stacks], cancel)?;
    let stacks = records(&stacks).filter_map(|row| {
        let text = |name| row.text(name).unwrap_or_default();
        let texts = StackTexts { function: text("function"), lines: text("stack_text") };
        Some((row.text("stack")?, Arc::new(texts)))
    });
    let stacks: HashMap<String, Arc<StackTexts>> = stacks.collect();
    let groups = records(&sums).map(|row| group(row, &keys, &stacks, fleet));
    let mut groups: Vec<FleetGroup> = groups.collect();
    let caveats = caveats(fleet, criteria, groups.is_empty(), cancel)?;
    with_shares(&mut groups);
    groups.sort_by(|a, b| {
        let order = |group: &FleetGroup| (group.unreleased(), group.acquired());
        order(b).cmp(&order(a)).then_with(|| a.keys.cmp(&b.keys))
    });
    Ok(FleetGroups {
        by: by.to_vec(),
        groups,
        caveats,
        machines: fleet.machines.len(),
        traces: fleet.traces.len(),
    })
}

fn group(
    row: AnswerRow<'_>,
    keys: &[&str],
    stacks: &HashMap<String, Arc<StackTexts>>,
    fleet: &Fleet,
) -> FleetGroup {
    let amounts = |[acquired, released, leaked, closed_at_exit]: [&str; 4]| Amounts {
        acquired: row.count(acquired),
        released: row.count(released),
        leaked: row.count(leaked),
        closed_at_exit: row.count(closed_at_exit),
    };
    let traces = row.numbers("number").into_iter().map(|number| number as usize);
    FleetGroup {
        keys: keys.iter().map(|name| row.text(name)).collect(),
        stack: row.text("stack").and_then(|stack| stacks.get(&stack).cloned()),
        traces: traces.len(),
        machines: fleet.machines_of(traces),
        handles: amounts(AMOUNTS),
        allocations: amounts(OF_ALLOCATIONS),
        bytes_acquired: row.count(BYTES[0]),
        bytes_unreleased: row.count(BYTES[1]),
        share: 0.0,
    }
}

fn with_shares(groups: &mut [FleetGroup]) {
    let sum = |amount: fn(&FleetGroup) -> i64| {
        groups.iter().map(|group| amount(group) as f64).sum::<f64>()
    };
    let (unreleased, acquired) = (sum(FleetGroup::unreleased), sum(FleetGroup::acquired));
    for group in groups {
        let (part, all) = if unreleased > 0.0 {
            (group.unreleased(), unreleased)
        } else {
            (group.acquired(), acquired)
        };
        group.share = if all > 0.0 { part as f64 / all } else { 0.0 };
    }
}
