//! Documents for <https://www.speedscope.app>, in the format of
//! <https://github.com/jlfwong/speedscope/wiki/Importing-from-custom-sources>.

use std::io::{self, Write};

use super::folded::{FoldedFile, FrameTable};
use crate::json::{self, Document};
use handlescope_session::values::JsonMode;

const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

/// Writes a profile for each trace: a "sampled" one with a sample for each stack.
pub fn write(title: &str, unit: &str, files: &[FoldedFile], out: &mut dyn Write) -> io::Result<()> {
    let (mut table, mut profiles) = (FrameTable::default(), Vec::new());
    for FoldedFile { name, stacks } in files {
        let weights: Vec<u64> = stacks.iter().map(|stack| stack.count).collect();
        let sum = weights.iter().fold(0_u64, |sum, weight| sum.saturating_add(*weight));
        // Indexes in the list of frames, outermost first.
        let samples = stacks
            .iter()
            .map(|stack| stack.frames.iter().map(|frame| table.number(frame)).collect())
            .collect::<Vec<Vec<usize>>>();
        let profile = Document::default()
            .with("type", "sampled")
            .with("name", name)
            // The other units of the format do not fit.
            .with("unit", if unit == "bytes" { "bytes" } else { "none" })
            .with("startValue", 0)
            .with("endValue", sum)
            .with("samples", samples)
            .with("weights", weights);
        profiles.push(profile);
    }
    let frames = table.values.iter().map(|frame| {
        let source = frame.source.as_ref();
        Document::default()
            .with("name", &frame.name)
            .with_some("file", source.map(|(file, _)| file))
            .with_some("line", source.and_then(|(_, line)| *line))
    });
    let document = Document::default()
        .with("$schema", SCHEMA)
        .with("name", title)
        .with("exporter", concat!("handlescope ", env!("CARGO_PKG_VERSION")))
        .with("activeProfileIndex", 0)
        .with("shared", Document::default().with("frames", frames.collect::<Vec<_>>()))
        .with("profiles", profiles);
    json::write(&document, JsonMode::Lines, out)
}
