//! The hunts in `docs/hunts.md` are real: every command prints what the page shows.

use std::fs;

use handlescope_tests::binary::{examples, handlescope, run_script};
use handlescope_tests::data::SharedTrace;
use handlescope_tests::needs_data;

/// A trace, and commands with their output.
struct Hunt {
    trace: String,
    runs: Vec<(String, String)>,
}

fn hunts() -> Vec<Hunt> {
    let page = fs::read_to_string(examples().join("../docs/hunts.md")).unwrap();
    let mut hunts: Vec<Hunt> = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        if let Some(heading) = line.strip_prefix("## `") {
            let trace = heading.split('`').next().unwrap().to_owned();
            hunts.push(Hunt { trace, runs: Vec::new() });
        } else if line.starts_with("```") {
            inside = line == "```console";
        } else if let Some(command) = line.strip_prefix("> ").filter(|_| inside) {
            hunts.last_mut().unwrap().runs.push((command.to_owned(), String::new()));
        } else if let Some((_, shown)) = hunts.last_mut().and_then(|hunt| hunt.runs.last_mut())
            && inside
        {
            shown.push_str(line);
            shown.push('\n');
        }
    }
    hunts
}

#[needs_data]
#[test]
fn every_hunt_ends_at_the_leaking_function_in_one_command() {
    let hunts = hunts();
    assert_eq!(hunts.len(), 5);
    for Hunt { trace, runs } in hunts {
        assert_eq!(runs.len(), 1, "{trace}");
        let shared = SharedTrace::open(&format!("synthetic/{trace}"));
        let (home, pdbs) = (tempfile::tempdir().unwrap(), shared.pdbs());
        let file = format!("{trace}.etl");
        fs::copy(shared.etl(), home.path().join(&file)).unwrap();
        for (command, shown) in runs {
            let mut program = handlescope(home.path());
            program.arg("--symbol-path").arg(pdbs.path()).arg(&file);
            let run = run_script(&mut program, &format!("{command}\n")).ok();
            assert_eq!(run.stdout.trim_end(), shown.trim_end(), "{trace}: {command}");
        }
    }
}
