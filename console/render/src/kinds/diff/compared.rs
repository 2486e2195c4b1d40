//! What a comparison says about the leaks of a group, of two traces or of two builds.

use indicatif::HumanCount;

use crate::table::{CellType, ColumnDeclaration, Columns, FileRows};
use handlescope_query::{ComparedLeaks, ComparisonTotals, GroupState, SideLeaks, Verdict};
use handlescope_session::settings::Display;
use handlescope_session::terminal::Role;

/// Returns how a group grows on a side, if it leaks there.
pub fn growth(side: &SideLeaks) -> Option<&'static str> {
    side.verdict.map(Verdict::word)
}

/// Adds a column about one side.
pub fn add_side<'c, 'a, R: 'a, T: CellType + 'a>(
    columns: &'c mut Columns<'a, R>,
    (side, name): (usize, &'static str),
    meaning: &'static str,
    leaks: fn(&R) -> &ComparedLeaks,
    value: fn(&SideLeaks) -> T,
) -> &'c mut ColumnDeclaration<'a, R> {
    columns.add(name, meaning, move |row| value(&leaks(row).sides[side]))
}

/// Adds the columns of the result; the arguments give the meanings. With `as_numbers`, files of rows have flags as
/// numbers.
pub fn add_state<'a, R: 'a>(
    columns: &mut Columns<'a, R>,
    [state, got_worse, uncertain, p_value]: [&'static str; 4],
    leaks: fn(&R) -> &ComparedLeaks,
    as_numbers: bool,
) {
    type Flag = fn(&ComparedLeaks) -> bool;
    let flags: [(&'static str, &'static str, Flag); 2] = [
        ("got_worse", got_worse, |leaks| leaks.got_worse),
        ("uncertain", uncertain, |leaks| leaks.is_uncertain),
    ];
    columns.add("state", state, move |row| leaks(row).state.word()).title("State");
    for (name, meaning, flag) in flags {
        if as_numbers {
            columns.add(name, meaning, move |row| u32::from(flag(leaks(row)))).rows_only();
            columns.nest(name, "boolean", meaning, move |row| flag(leaks(row)));
        } else {
            columns.add(name, meaning, move |row| flag(leaks(row)));
        }
    }
    columns.add("p_value", p_value, move |row| leaks(row).p_value);
}

/// Returns the line about a group: its state, in colour, what it is of, the counts of both sides, their rates, and how
/// it grows.
pub fn compared_title(
    leaks: &ComparedLeaks,
    heading: String,
    mut text: String,
    rates: Option<[String; 2]>,
    growth: Option<Verdict>,
    display: &Display,
) -> String {
    let ComparedLeaks { state, got_worse, is_uncertain, .. } = *leaks;
    let role = match state {
        _ if got_worse => Role::Error,
        GroupState::Gone | GroupState::Better => Role::Opened,
        _ => Role::Plain,
    };
    let also = match (got_worse, is_uncertain) {
        (true, _) if state != GroupState::Worse => ", worse",
        (false, true) if state != GroupState::Uncertain => ", uncertain",
        _ => "",
    };
    if let Some([before, after]) = rates {
        text += &format!(" ({before} and {after} per minute)");
    }
    if let Some(verdict) = growth {
        text += &format!(", growth {}", verdict.word());
    }
    let state = display.screen.paint(role, format!("{}{also}", state.word()));
    let heading = display.screen.paint(Role::Heading, heading);
    format!("{state}: {heading}: {}", display.whole(&text))
}

/// Returns the rates of both sides, if they are known.
pub fn rates(leaks: &ComparedLeaks) -> Option<[String; 2]> {
    let [before, after] = leaks.sides.map(|side| rate(side.per_minute));
    Some([before?, after?])
}

/// Returns the lines about both sides, with what there is to say of each, and below the rows the number of groups in
/// each state and of known leaks.
pub fn compared_rows(
    [before, after]: &[String; 2],
    noun: &str,
    totals: &ComparisonTotals,
    ignored: Option<String>,
) -> FileRows {
    let count = |state| HumanCount(totals.count(state) as u64).to_string();
    let uncertain = match totals.count(GroupState::Uncertain) {
        0 => String::new(),
        number => format!(", {} uncertain", HumanCount(number as u64)),
    };
    let states = format!(
        "Got worse: {} of {} groups{noun}; {} worse, {} new, {} gone, {} better, {} same{uncertain}",
        HumanCount(totals.worse as u64),
        HumanCount(totals.groups as u64),
        count(GroupState::Worse),
        count(GroupState::New),
        count(GroupState::Gone),
        count(GroupState::Better),
        count(GroupState::Same)
    );
    let rows = FileRows::rows_of(totals.groups)
        .above(format!("before: {before}\nafter:  {after}\n"))
        .below(states);
    ignored.into_iter().fold(rows, FileRows::below)
}

/// Formats handles per minute for people; `None` if the duration is unknown.
pub fn rate(per_minute: Option<f64>) -> Option<String> {
    let rate = per_minute?;
    Some(match rate.abs() {
        100.0.. => format!("{rate:.0}"),
        // A slow leak gets two digits, so that it does not look like none.
        size if size > 0.0 && size < 0.05 => {
            let decimals = (1.0 - size.log10().floor()).clamp(1.0, 9.0) as usize;
            format!("{rate:.decimals$}")
        }
        _ => format!("{rate:.1}"),
    })
}
