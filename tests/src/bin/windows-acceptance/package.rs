//! Packs what failed into a zip: redacted traces, truths, statistics, versions.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::process::Command;

use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::ProgramPaths;
use crate::recording::{CheckedRecording, RecordingReport, run};

/// Packs what failed.
///
/// # Errors
/// If the zip cannot be written.
pub fn pack(programs: &ProgramPaths, report: &RecordingReport, path: &Path) -> Result<(), String> {
    let failed = |error: io::Error| format!("{}: {error}", path.display());
    let mut zip = ZipWriter::new(File::create(path).map_err(failed)?);
    add(&mut zip, "report.txt", text(report).as_bytes())?;
    add(&mut zip, "versions.txt", versions(programs).as_bytes())?;
    for recording in report.recordings.iter().filter(|recording| recording.has_failed()) {
        add_recording(programs, recording, &mut zip)?;
    }
    zip.finish().map(drop).map_err(|error| format!("{}: {error}", path.display()))
}

/// Adds a redacted trace, its statistics and the truth. A part that cannot be made is replaced by the reason.
fn add_recording(
    programs: &ProgramPaths,
    recording: &CheckedRecording,
    zip: &mut ZipWriter<File>,
) -> Result<(), String> {
    let name = &recording.name;
    let redacted = recording.trace.with_extension("redacted.etl");
    let mut redact = Command::new(&programs.handlescope);
    redact.arg("redact").arg(&recording.trace).arg("-o").arg(&redacted).arg("-Force");
    match run(&mut redact).and_then(|_| fs::read(&redacted).map_err(|error| error.to_string())) {
        Ok(content) => add(zip, &format!("{name}.redacted.etl"), &content)?,
        Err(reason) => add(zip, &format!("{name}.redacted.txt"), reason.as_bytes())?,
    }
    let mut stats = Command::new(&programs.handlescope);
    stats.arg(&recording.trace).args(["-c", ".dump Stats -json"]);
    let stats = run(&mut stats).unwrap_or_else(String::into_bytes);
    add(zip, &format!("{name}.stats.json"), &stats)?;
    let truth = fs::read(&recording.truth).unwrap_or_default();
    add(zip, &format!("{name}.truth.ndjson"), &truth)
}

fn add(zip: &mut ZipWriter<File>, name: &str, content: &[u8]) -> Result<(), String> {
    let added = zip.start_file(name, SimpleFileOptions::default());
    added.map_err(|error| format!("{name}: {error}"))?;
    zip.write_all(content).map_err(|error| format!("{name}: {error}"))
}

fn text(report: &RecordingReport) -> String {
    report
        .recordings
        .iter()
        .flat_map(CheckedRecording::lines)
        .map(|line| format!("{line}\n"))
        .collect()
}

/// Returns the versions of handlescope, Windows and wpr.
fn versions(programs: &ProgramPaths) -> String {
    let mut handlescope = Command::new(&programs.handlescope);
    handlescope.arg("--version");
    let mut windows = Command::new("cmd");
    windows.args(["/c", "ver"]);
    let mut wpr = Command::new("wpr");
    wpr.arg("-help");
    let mut versions = String::new();
    for command in [&mut handlescope, &mut windows, &mut wpr] {
        let output = run(command).unwrap_or_else(String::into_bytes);
        let output = String::from_utf8_lossy(&output).into_owned();
        versions.extend(output.lines().take(4).map(|line| format!("{line}\n")));
    }
    versions
}
