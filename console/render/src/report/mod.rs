//! One page about everything that leaks. The summary is HTML, which is visible even if no script may run. The rest is
//! JSON in the page, which its script turns into text, so no name of a trace is ever markup. The page's policy allows
//! only its own style and script, by their hashes.

mod data;
mod fleet;
mod groups;
mod html;
mod pictures;
mod summary;
mod suspects;

use std::io::{self, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use self::data::data;
pub use self::fleet::FleetReport;
use self::html::EscapedText;
use super::json::{self, Document};
use handlescope_query::{AllocationsOverview, Suspect, WhyAnswer};
use handlescope_session::trace::{Caveat, CaveatKind};
use handlescope_session::values::JsonMode;

/// The answers about a trace on the page.
pub struct ReportAnswer<'a> {
    /// Suspects and their causes.
    pub why: WhyAnswer<'a>,
    /// Allocations, if the criteria select any.
    pub allocations: Option<AllocationsOverview<'a>>,
}

impl ReportAnswer<'_> {
    /// Returns the caveats about allocations that were not already given for handles.
    pub fn allocation_caveats(&self) -> impl Iterator<Item = &Caveat> {
        self.allocations
            .iter()
            .map(|allocations| &allocations.groups)
            .flat_map(|groups| &groups.about.caveats)
            .filter(|caveat| {
                !matches!(caveat.kind, CaveatKind::LostWhileRecording | CaveatKind::MissingInFile)
            })
    }
}

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = concat!(include_str!("common.js"), include_str!("script.js"));
const FLEET_SCRIPT: &str = concat!(include_str!("common.js"), include_str!("fleet.js"));

/// Writes the page about a dataset.
pub fn write_fleet(answer: &FleetReport<'_>, out: &mut dyn Write) -> io::Result<()> {
    let (title, body) = (summary::title(std::iter::once(answer.name())), fleet::summary(answer));
    write_page(&title, &body, &fleet::data(answer), FLEET_SCRIPT, out)
}

/// Writes the page. `command_line` is the one that selected handles, if any did; `command` returns the one that shows a
/// suspect's handles.
pub fn write(
    answers: &[ReportAnswer<'_>],
    command_line: Option<&str>,
    command: impl Fn(usize, &Suspect) -> String,
    out: &mut dyn Write,
) -> io::Result<()> {
    let (title, body) =
        (summary::title(summary::names(answers)), summary::of_traces(answers, command_line));
    write_page(&title, &body, &data(answers, command)?, SCRIPT, out)
}

fn write_page(
    title: &str,
    body: &str,
    data: &Document<'_>,
    script: &str,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut json = Vec::new();
    json::write(data, JsonMode::Lines, &mut json)?;
    // Without `<`, the data cannot end its element or start a comment.
    let data = String::from_utf8_lossy(&json).replace('<', "\\u003C");
    let policy = format!(
        "default-src 'none'; base-uri 'none'; form-action 'none'; style-src '{}'; script-src '{}'",
        hash(STYLE),
        hash(script)
    );
    let replacements = [
        ("{policy}", policy.as_str()),
        ("{title}", &EscapedText(title).to_string()),
        ("{style}", STYLE),
        ("{body}", body),
        ("{data}", &data),
        ("{script}", script),
    ];
    let mut rest = PAGE;
    for (mark, replacement) in replacements {
        let (before, behind) = rest.split_once(mark).unwrap_or((rest, ""));
        out.write_all(before.as_bytes())?;
        out.write_all(replacement.as_bytes())?;
        rest = behind;
    }
    out.write_all(rest.as_bytes())
}

/// Returns the source expression of an inline style or script (Content Security Policy Level 3, section 2.3.1). A clone
/// on Windows has other line ends, but browsers normalize them.
fn hash(content: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(content.replace("\r\n", "\n"))))
}
