//! The report page about a dataset.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use indicatif::HumanCount;

use super::html::{BreakableName, EscapedText, clean, paragraph, suspects};
use super::summary::{self, EXPORTER, REST, headline};
use crate::json::Document;
use crate::text::{fleet as text, ignored_because, kind_name};
use handlescope_fleet::{Fleet, FleetSuspect, FleetWhy};
use handlescope_session::paths::shown;
use handlescope_session::values::CountedNoun;

/// Number of suspects in the table that is visible without the script.
const LISTED: usize = 12;

/// Maximum number of machines in the heat map; it has the machines that leak most.
const MACHINES: usize = 200;

/// The answers for a page.
pub struct FleetReport<'a> {
    pub folder: &'a Path,
    pub fleet: &'a Fleet,
    pub why: &'a FleetWhy,
    /// The command line, if it chose traces or processes.
    pub command_line: Option<&'a str>,
    /// Paths of the pages of traces, relative to this page, by trace id.
    pub pages: BTreeMap<String, String>,
}

impl FleetReport<'_> {
    /// Returns the name of the dataset.
    pub fn name(&self) -> String {
        let name =
            shown(self.folder).file_name().unwrap_or_default().to_string_lossy().into_owned();
        clean(&name)
    }
}

/// Returns the part of the page that is visible without its script.
pub fn summary(report: &FleetReport<'_>) -> String {
    let FleetReport { fleet, why, command_line, .. } = report;
    let mut html = summary::limited(*command_line);
    let _ = writeln!(html, "<article id=\"fleet\">\n<h1>{}</h1>", EscapedText(&report.name()));
    headline(&mut html, &text::headline(why));
    let days = match fleet.days().as_slice() {
        [first, .., last] => format!("Recorded {first} to {last} · "),
        [day] => format!("Recorded {day} · "),
        [] => String::new(),
    };
    paragraph(&mut html, "about", &format!("{days}Written by {EXPORTER}"));
    why.caveats.iter().for_each(|caveat| paragraph(&mut html, "caveat", &caveat.text));
    text::line_of_ignored_suspects(why).iter().for_each(|line| paragraph(&mut html, "dim", line));
    if !why.suspects.is_empty() {
        let titles = ["Rank", "Machines", "Leaked", "Type", "Process", "First build", "Function"];
        let rows = why.suspects.iter().take(LISTED).map(|row| {
            let texts = [
                row.rank.to_string(),
                format!("{} of {}", row.machines, row.machines_of_process),
                HumanCount(text::count(row.unreleased())).to_string(),
                row.site.type_name.clone(),
                row.site.process.clone(),
                row.first_build.clone().unwrap_or_default(),
            ];
            let function = row.site.function.as_deref().unwrap_or("no stack");
            let function = BreakableName(function).to_string();
            texts.map(|text| EscapedText(&text).to_string()).into_iter().chain([function])
        });
        let more = why.suspects.len().saturating_sub(LISTED) as u64;
        let others = (more > 0).then(|| CountedNoun(more, "more suspect").to_string());
        suspects(&mut html, &titles, rows, others.as_deref());
    }
    html.push_str("</article>\n");
    paragraph(&mut html, "static", REST);
    html
}

/// Returns the data that the page's script reads.
pub fn data<'a>(report: &'a FleetReport<'a>) -> Document<'a> {
    let FleetReport { fleet, why, .. } = report;
    let days = fleet.days();
    let suspects = why.suspects.iter().map(|row| suspect(row, report, &days));
    Document::default()
        .with("machines", why.machines)
        .with("traces", why.traces)
        .with("days", days.clone())
        .with("suspects", suspects.collect::<Vec<_>>())
        .with("heat", heat(fleet, &days))
}

/// Returns the average number of leaked handles per trace, for each machine and day.
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
    let kind = clean(&kind_name(&row.site.type_name, row.site.allocator.as_deref()));
    let by_day = days.iter().map(|day| row.by_day.get(*day).map_or(0, |leaks| leaks.unreleased));
    let frames = row.site.stack_text.as_deref().unwrap_or_default().lines().map(|frame| {
        let is_function = Some(frame) == row.site.function.as_deref();
        Document::default().with("name", clean(frame)).with("own", is_function)
    });
    let reason = row.ignored.as_ref().map(|entry| clean(&ignored_because(entry)));
    let worst = &row.worst;
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
        .with("amount", text::amounts(row))
        .with("builds", clean(&text::builds(row)))
        .with("verdicts", clean(&text::joined(&row.verdicts)))
        .with("causes", clean(&text::causes(row)))
        .with("ignored", reason)
        .with("by_day", by_day.collect::<Vec<_>>())
        .with("function", clean(row.site.function.as_deref().unwrap_or("no stack")))
        .with("frames", frames.collect::<Vec<_>>())
        .with("worst_machine", clean(&worst.machine))
        .with("worst_day", &worst.day)
        .with("evidence", clean(&worst.evidence))
        .with("page", report.pages.get(&worst.trace).cloned())
        .with("commands", text::commands(row))
}
