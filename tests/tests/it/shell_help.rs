//! The help for shell users, and the options that may come before or after any subcommand.

use std::fs;
use std::os::unix::fs::symlink;

use handlescope_tests::binary::{Shell, examples, sample_symbols};

/// Makes a folder in which the examples of the help work.
fn shell() -> Shell {
    let shell = Shell::new();
    fs::create_dir(shell.path("examples")).unwrap();
    fs::copy(shell.path("leaky.etl"), shell.path("examples/leaky.etl")).unwrap();
    symlink(examples().join("symbols"), shell.path("examples/symbols")).unwrap();
    // Folders for the shell completions and the manual page.
    for folder in [".zfunc", ".config/fish/completions", ".local/share/man/man1"] {
        fs::create_dir_all(shell.path(folder)).unwrap();
    }
    shell
}

/// Returns the examples on a help page, at most one per line.
fn shown(page: &str) -> Vec<String> {
    let lines = page.lines().skip_while(|line| !line.starts_with("Example")).skip(1);
    let lines = lines.take_while(|line| line.starts_with("  "));
    lines.map(|line| line.trim().split("  ").next().unwrap_or_default().to_owned()).collect()
}

/// Returns the subcommands in the program's help.
fn subcommands(shell: &Shell) -> Vec<String> {
    let help = shell.run(&["--help"]).ok().stdout;
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    lines
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next())
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Changes an example so that a test can run it: nothing is recorded, and no other program is needed.
fn without_effects(example: &str) -> String {
    let line = example.split(" | ").next().unwrap_or_default();
    let records = ["handlescope record ", "handlescope live "].iter().any(|p| line.starts_with(p));
    let is_harmless = ["--replay", "--dry-run"].iter().any(|option| line.contains(option));
    format!("{line}{} </dev/null", if records && !is_harmless { " --dry-run" } else { "" })
}

#[test]
fn the_help_of_each_subcommand_has_three_examples_that_a_shell_runs() {
    let shell = shell();
    let kinds = shell.kinds();
    let kinds: Vec<String> = kinds.iter().map(|kind| format!("dump {}", kind.name)).collect();
    let subcommands = subcommands(&shell);
    assert!(subcommands.len() >= 14, "{subcommands:?}");
    let all = kinds.iter().chain(&subcommands).map(String::as_str);
    for subcommand in all.chain(["-LoadSymbol", "-console"]) {
        let page = shell.line(&format!("handlescope {subcommand} --help"), "").ok().stdout;
        let examples = shown(&page);
        assert!(examples.len() >= 3, "{subcommand}: {page}");
        let usage = format!("handlescope {subcommand}");
        assert!(page.contains(&format!("{usage} ")), "{subcommand}: {page}");
        for example in examples {
            assert!(example.starts_with(&usage), "{subcommand}: {example}");
            // It has a Windows path.
            if example.contains(r"C:\") {
                continue;
            }
            let run = shell.line(&without_effects(&example), "");
            assert_eq!(run.status, Some(0), "{example}: {run:?}");
        }
        assert!(!page.contains("\n.help"), "{subcommand}: {page}");
    }
}

#[test]
fn options_about_symbols_stand_before_and_behind_subcommands_that_use_them() {
    let shell = shell();
    let leaks = "-pn leaky.exe -Leak -MinMaxId 89 89 -ShowStack";
    let path = ["--symbol-path examples/symbols", "--symbol-path=examples/symbols"];
    let others = ["-symFolder examples/symbols", "--symfolder examples/symbols"];
    for option in path.iter().chain(&others) {
        for line in [
            format!("handlescope {option} dump ObjectRef -fd examples/leaky.etl {leaks}"),
            format!("handlescope dump ObjectRef -fd examples/leaky.etl {leaks} {option}"),
            format!("handlescope -dump ObjectRef {option} -fd examples/leaky.etl {leaks}"),
            format!("handlescope {option} examples/leaky.etl -c '.dump ObjectRef {leaks}'"),
            format!("handlescope examples/leaky.etl -c '.dump ObjectRef {leaks}' {option}"),
        ] {
            let run = shell.line(&line, "").ok();
            assert!(run.stdout.contains("leaky.exe!leaky::Worker::Run"), "{line}: {run:?}");
        }
        for line in [
            format!("handlescope extract --symbols {option} examples/leaky.etl"),
            format!("handlescope {option} extract examples/leaky.etl --symbols"),
            format!("handlescope -extract ObjectRef {option} -symbols -fd examples/leaky.etl"),
            format!("handlescope {option} -LoadSymbol -fd examples/leaky.etl"),
        ] {
            let run = shell.line(&line, "").ok();
            assert!(run.stdout.contains("96 of 96 frames have names, stored"), "{line}: {run:?}");
        }
        // ETWAnalyzer's spelling belongs to its own command lines.
        if option.starts_with("--") {
            let line = format!("handlescope {option} complete -- ext");
            assert!(!shell.line(&line, "").ok().stdout.is_empty(), "{line}");
            for action in ["schema objects", "completions bash", "man"] {
                let run = shell.line(&format!("handlescope {option} {action}"), "");
                assert_eq!((run.status, run.stdout.as_str()), (Some(2), ""), "{action}");
                assert!(run.stderr.contains("symbol options cannot be used here"), "{run:?}");
                let help = shell.line(&format!("handlescope {action} --help"), "").ok();
                assert!(!help.stdout.contains("--sym"), "{action}: {}", help.stdout);
            }
        }
    }
    let without = shell.line("handlescope extract examples/leaky.etl --symbol-path x", "").ok();
    assert!(without.stderr.contains("functions are resolved when stacks are shown"), "{without:?}");
}

#[test]
fn options_about_symbols_have_a_heading_of_their_own() {
    let shell = Shell::new();
    for subcommand in ["record", "live", "wprp", "--color=never"] {
        let page = shell.run(&[subcommand, "--help"]).ok().stdout;
        let (before, symbols) = page.split_once("\nSymbols:\n").expect(subcommand);
        let symbols = symbols.split("\n\nExamples:").next().unwrap();
        assert!(!before.contains("\n      --sym"), "{subcommand}: {page}");
        let names: Vec<&str> = symbols
            .lines()
            .filter(|line| line.trim_start().starts_with("--"))
            .map(str::trim)
            .collect();
        assert!(
            names.len() == 6 && names.iter().all(|name| name.starts_with("--sym")),
            "{names:?}"
        );
    }
}

#[test]
fn the_manual_cites_no_page_that_is_not_there() {
    let page = Shell::new().run(&["man"]).ok().stdout.replace("\\-", "-");
    for (at, _) in page.match_indices("(1)") {
        assert!(page[..at].ends_with("handlescope"), "{}", &page[at.saturating_sub(40)..at + 3]);
    }
    assert!(page.contains("convert-time") && page.contains("completions"));
}

#[test]
fn sizes_have_one_unit_and_no_rate_is_zero() {
    let shell = Shell::new();
    let symbols = sample_symbols().display().to_string();
    let script = ".save a.json7z\n.dir\n.export tables\n";
    let runs = [
        shell.run(&["extract", "--symbols", "--symbol-path", &symbols, "leaky.etl"]).ok(),
        shell.script(&["leaky.etl"], script).ok(),
    ];
    for run in runs {
        let said = format!("{}{}", run.stdout, run.stderr);
        for unit in ["kB", " MB", " KB", " GB", " 0 B/s"] {
            assert!(!said.contains(unit), "{unit}: {said}");
        }
    }
}
