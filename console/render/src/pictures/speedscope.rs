//! Documents for <https://www.speedscope.app>, in the format of
//! <https://github.com/jlfwong/speedscope/wiki/Importing-from-custom-sources>.

use std::io::{self, Write};

use serde::Serialize;

use super::folded::{FoldedFile, FrameTable, PictureFrame};
use crate::json;
use handlescope_session::values::JsonMode;

const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SpeedscopeFile<'a> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    name: &'a str,
    exporter: &'static str,
    active_profile_index: usize,
    shared: SharedFrames<'a>,
    profiles: Vec<SpeedscopeProfile<'a>>,
}

#[derive(Serialize)]
struct SharedFrames<'a> {
    frames: Vec<SpeedscopeFrame<'a>>,
}

#[derive(Serialize)]
struct SpeedscopeFrame<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

impl<'a> SpeedscopeFrame<'a> {
    fn new(frame: &'a PictureFrame) -> Self {
        let source = frame.source.as_ref();
        Self {
            name: &frame.name,
            file: source.map(|(file, _)| file.as_str()),
            line: source.and_then(|(_, line)| *line),
        }
    }
}

/// The stacks of a trace: a "sampled" profile with one sample per stack.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SpeedscopeProfile<'a> {
    r#type: &'static str,
    name: &'a str,
    unit: &'static str,
    start_value: u64,
    end_value: u64,
    /// Indexes in the list of frames, outermost first.
    samples: Vec<Vec<usize>>,
    weights: Vec<u64>,
}

/// Writes a profile for each trace.
pub fn write(title: &str, unit: &str, files: &[FoldedFile], out: &mut dyn Write) -> io::Result<()> {
    let (mut table, mut profiles) = (FrameTable::default(), Vec::new());
    for FoldedFile { name, stacks } in files {
        let weights: Vec<u64> = stacks.iter().map(|stack| stack.count).collect();
        profiles.push(SpeedscopeProfile {
            r#type: "sampled",
            name,
            // The other units of the format do not fit.
            unit: if unit == "bytes" { "bytes" } else { "none" },
            start_value: 0,
            end_value: weights.iter().fold(0, |sum, weight| sum.saturating_add(*weight)),
            samples: stacks
                .iter()
                .map(|stack| stack.frames.iter().map(|frame| table.number(frame)).collect())
                .collect(),
            weights,
        });
    }
    let document = SpeedscopeFile {
        schema: SCHEMA,
        name: title,
        exporter: concat!("handlescope ", env!("CARGO_PKG_VERSION")),
        active_profile_index: 0,
        shared: SharedFrames { frames: table.values.iter().map(SpeedscopeFrame::new).collect() },
        profiles,
    };
    json::write(&document, JsonMode::Lines, out)
}
