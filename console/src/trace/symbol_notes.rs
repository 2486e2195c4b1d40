//! Warnings about frames without names.

use std::sync::atomic::{AtomicUsize, Ordering};

use handlescope_extract::symbols::{ModuleIdentity, ModuleReport, Outcome, Symbolizer};
use handlescope_model::Untrusted;

use crate::terminal::Messages;

/// Names of modules in one message at most.
const MOST_NAMES: usize = 8;

/// Warns of missing symbols, of each module once.
#[derive(Debug, Default)]
pub(crate) struct SymbolNotes {
    /// Modules of the symbolizer's report that are done with.
    seen: AtomicUsize,
}

impl SymbolNotes {
    /// Says why modules that were asked for since the last call have no symbols.
    ///
    /// Files that were refused and places that cannot be reached get a line each, because there is
    /// something to do about them; modules that are just not there share one. A module is `served`
    /// when its names came from the extract.
    pub(crate) fn warn(
        &self,
        symbolizer: &Symbolizer,
        messages: &mut Messages<'_>,
        is_served: impl Fn(&ModuleIdentity) -> bool,
    ) {
        let reports = symbolizer.report();
        let seen = self.seen.swap(reports.len(), Ordering::Relaxed);
        let is_missing =
            |report: &ModuleReport| !report.is_resolved() && !is_served(&report.module);
        if seen == 0 && reports.iter().any(is_missing) {
            for folder in symbolizer.path().missing_folders() {
                let folder = Untrusted(folder);
                messages.warning(format_args!(
                    "{folder}: this folder of the symbol path does not exist; set another one with .sympath or \
                     --symbol-path"
                ));
            }
        }
        for text in texts(reports.get(seen..).unwrap_or_default(), &is_served) {
            messages.warning(text);
        }
    }

    /// Leaves out what was asked for since the last call.
    pub(crate) fn skip(&self, symbolizer: &Symbolizer) {
        self.seen.store(symbolizer.report().len(), Ordering::Relaxed);
    }
}

fn texts(reports: &[ModuleReport], is_served: impl Fn(&ModuleIdentity) -> bool) -> Vec<String> {
    let is_missing = |report: &&ModuleReport| !report.is_resolved() && !is_served(&report.module);
    let missing = || reports.iter().filter(is_missing);
    if missing().any(|report| report.outcome == Outcome::NoSymbolPath) {
        return vec![
            "no symbol path is set, so frames are printed as module+0xOFFSET; see .help .sympath"
                .to_owned(),
        ];
    }
    let has_trouble =
        |report: &ModuleReport| !report.refused.is_empty() || !report.failures.is_empty();
    let mut texts: Vec<String> =
        reports.iter().filter(|report| has_trouble(report)).map(ModuleReport::to_string).collect();
    // A cache that cannot be written is one trouble, not one of each module.
    let unsaved: Vec<&ModuleReport> =
        reports.iter().filter(|report| !has_trouble(report) && report.unsaved.is_some()).collect();
    if let Some(reason) = unsaved.first().and_then(|report| report.troubles().last()) {
        let names: Vec<&str> = unsaved.iter().map(|report| report.module.name.as_str()).collect();
        let names = listed(&names);
        texts.push(format!(
            "working without a cache of symbols: those of {names} cannot be kept ({reason})"
        ));
    }
    let absent: Vec<&str> = missing()
        .filter(|report| !has_trouble(report))
        .map(|report| report.module.name.as_str())
        .collect();
    if !absent.is_empty() {
        texts.push(format!("no symbols for {}; .dump Symbols lists why", listed(&absent)));
    }
    texts
}

/// `a, b and 3 more`
fn listed(names: &[&str]) -> String {
    let shown = names.iter().take(MOST_NAMES).map(|name| Untrusted(name).to_string());
    let shown: Vec<String> = shown.collect();
    let rest = names.len() - shown.len();
    let shown = shown.join(", ");
    if rest == 0 { shown } else { format!("{shown} and {rest} more") }
}

#[cfg(test)]
mod tests {
    use handlescope_extract::symbols::SearchFailure;

    use super::*;

    fn report(name: &str, outcome: Outcome) -> ModuleReport {
        let module = ModuleIdentity {
            name: name.to_owned(),
            path: name.to_owned(),
            size: 0,
            timestamp: None,
            pdb: None,
        };
        ModuleReport::new(module, outcome)
    }

    #[test]
    fn modules_without_symbols_share_a_line() {
        let reports: Vec<ModuleReport> =
            (0..10).map(|n| report(&format!("m{n}.dll"), Outcome::NotFound)).collect();
        assert_eq!(
            texts(&reports, |_| false),
            ["no symbols for m0.dll, m1.dll, m2.dll, m3.dll, m4.dll, m5.dll, m6.dll, m7.dll and \
                 2 more; .dump Symbols lists why"]
        );
    }

    #[test]
    fn without_a_symbol_path_one_line_says_so() {
        let reports =
            [report("a.dll", Outcome::NoSymbolPath), report("b.dll", Outcome::NoSymbolPath)];
        let texts = texts(&reports, |_| false);
        assert_eq!(texts.len(), 1);
        assert!(texts.iter().all(|text| text.starts_with("no symbol path is set")));
    }

    #[test]
    fn nothing_is_missing_where_the_extract_has_the_names() {
        let reports = [report("a.dll", Outcome::NotFound), report("b.dll", Outcome::NoSymbolPath)];
        assert!(texts(&reports, |_| true).is_empty());
        let texts = texts(&reports, |module| module.name == "b.dll");
        assert_eq!(texts, ["no symbols for a.dll; .dump Symbols lists why"]);
    }

    #[test]
    fn a_server_out_of_reach_is_named() {
        let mut silent = report("a.dll", Outcome::NotFound);
        silent.failures =
            vec![SearchFailure { place: "https://x".into(), reason: "timed out".into() }];
        let texts = texts(&[silent], |_| false);
        assert!(texts.iter().any(|text| text.contains("https://x: timed out")), "{texts:?}");
    }
}
