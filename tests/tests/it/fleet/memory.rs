//! A dataset many times as large as the memory that a question on it may use.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use handlescope_tests::binary::{ProgramRun, Shell, handlescope};
use handlescope_tests::rng::Rng;
use handlescope_tests::thorough::one_of;
use serde_json::{Value, json};

use super::console::{BASE, EVENT, PID, document, rows, trace};

/// Address space limit of the program, KiB. Without optimization the program file takes 210 MB of it, and the stack of
/// a query 256 MiB.
const MAX_ADDRESSES: u64 = 800_000;

/// Handles in a trace that are opened and closed.
const CLOSED: u64 = 20_000;

/// Handles in a trace that are never closed.
const LEAKED: u64 = 29;

/// Length of object names, which hardly compress.
const NAME_LENGTH: usize = 400;

/// Writes a trace that leaks a few handles and closes many.
fn write_trace(path: &Path, seed: u64) {
    let mut trace = trace(seed as i64, seed, false);
    let mut rng = Rng::new(seed);
    for number in 0..CLOSED {
        let (object, handle) = (0xffff_9000_0000_0000 + number * 0x100, 0x10_0000 + 4 * number);
        // The time differs from that of all other events.
        let ns = 350_000 + number as i64 * 2_900_000;
        let created = trace.create_handle(ns, (PID, PID + 4), object, handle as u32, EVENT);
        created.stack(&[], &[BASE + 0x3000]);
        let letter = |_| {
            char::from(
                b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"
                    [rng.below(64) as usize],
            )
        };
        let name: String = (0..NAME_LENGTH).map(letter).collect();
        trace.close_handle(ns + 1_400_000, (PID, PID + 4), object, handle as u32, EVENT, &name);
    }
    trace.write(path).unwrap();
}

/// Links the traces of a dataset into another one under new ids, until it has at least `least` bytes. Returns the
/// number of traces, and their bytes.
fn multiply(from: &Path, to: &Path, least: u64) -> (u64, u64) {
    fs::create_dir_all(to.join("_manifests")).unwrap();
    fs::copy(from.join("_dataset.json"), to.join("_dataset.json")).unwrap();
    let manifests: Vec<(String, Value)> = fs::read_dir(from.join("_manifests"))
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let manifest = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            (path.file_stem().unwrap().to_str().unwrap().to_owned(), manifest)
        })
        .collect();
    let (mut traces, mut bytes) = (0, 0);
    while bytes < least {
        let day = format!("2026-10-{:02}", 1 + traces % 28);
        for (trace, manifest) in &manifests {
            let id = format!("{traces:032x}");
            for table in manifest["tables"].as_object().unwrap().keys() {
                let of_trace = manifest["date"].as_str().unwrap();
                let part =
                    from.join(format!("{table}/date={of_trace}/trace={trace}/part-0.parquet"));
                let folder = to.join(format!("{table}/date={day}/trace={id}"));
                fs::create_dir_all(&folder).unwrap();
                bytes += part.metadata().unwrap().len();
                fs::hard_link(part, folder.join("part-0.parquet")).unwrap();
            }
            let mut manifest = manifest.clone();
            manifest["date"] = day.clone().into();
            fs::write(to.join(format!("_manifests/{id}.json")), manifest.to_string()).unwrap();
            traces += 1;
        }
    }
    (traces, bytes)
}

/// Returns the document that a command on the dataset prints with a limited address space.
fn asked(shell: &Shell, command: &str) -> Value {
    document(&limited(shell, command))
}

/// Runs a command on the dataset with a limited address space.
fn limited(shell: &Shell, command: &str) -> ProgramRun {
    let program = handlescope(&shell.path(""));
    let mut limited = Command::new("sh");
    limited.args(["-c", &format!("ulimit -v {MAX_ADDRESSES}; exec \"$@\""), "sh"]);
    limited.arg(program.get_program()).args(["fleet", "-c", command]).current_dir(shell.path(""));
    limited.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    // Tests have large stacks; users do not. Each polars thread has rows in memory.
    limited.env("RUST_MIN_STACK", "4194304").env("POLARS_MAX_THREADS", "2");
    let run: ProgramRun = limited.stdin(Stdio::null()).output().expect("there is a shell").into();
    run.ok()
}

#[cfg(target_os = "linux")]
#[test]
fn a_dataset_of_ten_times_the_memory_limit_is_answered() {
    let shell = Shell::new();
    for (seed, build) in [(1, "1.0"), (2, "2.0")] {
        let name = format!("{build}.etl");
        write_trace(&shell.path(&name), seed);
        let _ = shell.run(&["dataset", "add", "base", &name, "--build", build]).ok();
    }
    // Ten times the limit in bytes, or a quarter more than the limit.
    let least = MAX_ADDRESSES * 1024 * 10 / one_of(8) as u64;
    let (traces, bytes) = multiply(&shell.path("base"), &shell.path("fleet"), least);
    assert!(bytes >= least);

    let why = asked(&shell, ".why -json");
    assert_eq!(
        (&why["traces"], &why["suspects"][0]["leaked"]),
        (&traces.into(), &(traces * LEAKED).into())
    );
    let groups = asked(&shell, ".dump ObjectRef -Leak -GroupBy build,createstack -json");
    let leaked: Vec<u64> =
        rows(&groups, "groups", &["leaked"]).iter().filter_map(|row| row[0].as_u64()).collect();
    assert_eq!(leaked, [traces / 2 * LEAKED; 2]);
    let compared = asked(&shell, ".diff -build 1.0 2.0 -json");
    assert_eq!(compared["groups"][0]["after"], traces / 2 * LEAKED);
    let plot = limited(&shell, ".plot").stdout;
    assert!(plot.contains("server.exe"), "{plot}");
    let query = "SELECT ended, count(*) AS n, count(distinct type) AS types, avg(closed_s - opened_s) AS s, \
                 max(length(object_name)) AS letters FROM acquisitions GROUP BY ended ORDER BY n";
    let answer = asked(&shell, &format!(".sql {query} -json"));
    let ends = rows(&answer, "rows", &["ended", "n", "types", "letters"]);
    let expected =
        json!([["open", traces * LEAKED, 1, null], ["closed", traces * CLOSED, 1, NAME_LENGTH],]);
    assert_eq!(Value::from(ends), expected);
    let seconds = answer["rows"][1]["s"].as_f64().unwrap();
    assert!((seconds - 0.0014).abs() < 1e-6, "{seconds}");
}
