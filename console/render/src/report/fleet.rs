//! The page about a dataset.

use std::collections::BTreeMap;
use std::path::Path;

use handlescope_model::Untrusted;

use crate::json::Document;
use crate::kinds::{fleet_amount, fleet_builds, fleet_causes};
use handlescope_fleet::dataset::short;
use handlescope_fleet::{Fleet, FleetSuspect, FleetWhy};
use handlescope_session::paths::shown;

/// Suspects that are listed; the others are counted.
const SUSPECTS: usize = 500;

/// Machines of the heat map: those that leak most.
const MACHINES: usize = 200;

/// Answers that a page is made of.
pub struct FleetReport<'a> {
    pub folder: &'a Path,
    pub fleet: &'a Fleet,
    pub why: &'a FleetWhy,
    /// The command line, if it chose traces or processes.
    pub command_line: Option<&'a str>,
    /// Pages of traces, by the ids of the traces, as paths relative to this page.
    pub pages: BTreeMap<String, String>,
}

/// Data that the script of the page reads.
pub fn data<'a>(report: &'a FleetReport<'a>) -> Document<'a> {
    let FleetReport { folder, fleet, why, command_line, .. } = report;
    let days = fleet.days();
    let (listed, rest) = why.suspects.split_at(why.suspects.len().min(SUSPECTS));
    let suspects = listed.iter().map(|row| suspect(row, report, &days));
    let name = shown(folder).file_name().unwrap_or_default().to_string_lossy().into_owned();
    Document::default()
        .with("exporter", concat!("handlescope ", env!("CARGO_PKG_VERSION")))
        .with("asked", command_line.map(clean))
        .with("name", clean(&name))
        .with("machines", why.machines)
        .with("traces", why.traces)
        .with("days", days.clone())
        .with("caveats", why.caveats.iter().map(|caveat| &caveat.text).collect::<Vec<_>>())
        .with("suspects", suspects.collect::<Vec<_>>())
        .with("suspects_left_out", rest.len())
        .with("heat", heat(fleet, &days))
}

/// Leaked handles of each machine on each day, on average per trace.
fn heat<'a>(fleet: &Fleet, days: &[&str]) -> Document<'a> {
    let places: BTreeMap<&str, usize> = days.iter().copied().zip(0..).collect();
    let mut sums = vec![vec![(0_i64, 0_usize); days.len()]; fleet.machines.len()];
    for trace in &fleet.traces {
        let day = places.get(trace.day.as_str());
        let cell = sums.get_mut(trace.machine).zip(day).and_then(|(row, day)| row.get_mut(*day));
        if let Some((unreleased, traces)) = cell {
            *unreleased = unreleased.saturating_add(trace.unreleased);
            *traces += 1;
        }
    }
    let mut rows: Vec<(&String, Vec<(i64, usize)>)> = fleet.machines.iter().zip(sums).collect();
    let total = |row: &[(i64, usize)]| row.iter().map(|(unreleased, _)| unreleased).sum::<i64>();
    rows.sort_by(|(a_name, a), (b_name, b)| total(b).cmp(&total(a)).then(a_name.cmp(b_name)));
    let rest = rows.split_off(rows.len().min(MACHINES)).len();
    let rows = rows.into_iter().map(|(machine, cells)| {
        let means = cells
            .into_iter()
            .map(|(unreleased, traces)| (traces > 0).then(|| unreleased as f64 / traces as f64));
        Document::default().with("machine", clean(machine)).with("cells", means.collect::<Vec<_>>())
    });
    Document::default().with("rows", rows.collect::<Vec<_>>()).with("left_out", rest)
}

fn suspect<'a>(row: &'a FleetSuspect, report: &FleetReport<'_>, days: &[&str]) -> Document<'a> {
    let kind = match &row.site.allocator {
        Some(allocator) => clean(&format!("{} {allocator}", row.site.type_name)),
        None => clean(&row.site.type_name),
    };
    let by_day = days.iter().map(|day| row.by_day.get(*day).map_or(0, |leaks| leaks.unreleased));
    let counted = |words: &[(String, usize)]| {
        let words = words.iter().map(|(word, traces)| format!("{} {traces}", clean(word)));
        words.collect::<Vec<_>>().join(", ")
    };
    let frames = row.site.stack_text.as_deref().unwrap_or_default().lines().map(|frame| {
        let is_function = Some(frame) == row.site.function.as_deref();
        Document::default().with("name", clean(frame)).with("own", is_function)
    });
    let worst = &row.worst;
    let dump = if row.site.is_of_allocations() { "Resource" } else { "ObjectRef" };
    Document::default()
        .with("rank", row.rank)
        .with("machines", row.machines)
        .with("of_machines", row.machines_of_process)
        .with("traces", row.traces)
        .with("of_traces", row.traces_of_process)
        .with("process", clean(&row.site.process))
        .with("type", kind)
        .with("leaked", row.unreleased())
        .with("rate", row.rate_per_minute.map(|(median, _)| median))
        .with("most", row.rate_per_minute.map(|(_, most)| most))
        .with("first_build", row.first_build.as_deref().map(clean))
        .with("last_build", row.last_build.as_deref().map(clean))
        .with("fixed", row.builds_without.first().map(|build| clean(build)))
        .with("first_day", row.days()[0])
        .with("last_day", row.days()[1])
        .with("amount", fleet_amount(row))
        .with("builds", clean(&fleet_builds(row)))
        .with("verdicts", counted(&row.verdicts))
        .with("causes", clean(&fleet_causes(row)))
        .with("by_day", by_day.collect::<Vec<_>>())
        .with("function", clean(row.site.function.as_deref().unwrap_or("no stack")))
        .with("frames", frames.collect::<Vec<_>>())
        .with("worst_machine", clean(&worst.machine))
        .with("worst_day", &worst.day)
        .with("evidence", clean(&worst.evidence))
        .with("page", report.pages.get(&worst.trace).cloned())
        .with(
            "commands",
            [
                format!(".load {}", short(&worst.trace)),
                format!(".dump {dump} -Suspect {} -ShowStack", worst.suspect),
            ],
        )
}

fn clean(text: &str) -> String {
    Untrusted(text).to_string()
}
