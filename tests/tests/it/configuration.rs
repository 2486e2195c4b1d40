//! The configuration file: its settings apply, `.config` and `.alias` show and write it, and a bad one is refused.

use std::fs;
use std::path::MAIN_SEPARATOR;

use handlescope_tests::binary::{ProgramRun, Shell, run_script, sample_symbols};
use handlescope_tests::mcp::McpServer;
use serde_json::json;

/// Runs console commands with a configuration file.
fn configured(shell: &Shell, commands: &[&str]) -> ProgramRun {
    let commands = commands.iter().flat_map(|command| ["-c", command]);
    shell.run(&["--config", "c.toml", "leaky.etl"].into_iter().chain(commands).collect::<Vec<_>>())
}

/// Makes a folder with a trace, its extract and a configuration file.
fn shell(configuration: &str) -> Shell {
    let shell = Shell::new();
    let _ = shell.run(&["extract", "leaky.etl"]).ok();
    fs::write(shell.path("c.toml"), configuration).unwrap();
    shell
}

fn written(shell: &Shell) -> String {
    fs::read_to_string(shell.path("c.toml")).unwrap()
}

#[test]
fn the_session_counts_before_the_command_line_the_environment_and_the_file() {
    let shell = shell(
        "symbol-path = 'file'\ncolor = 'always'\nclip = false\npager = false\ntime-digits = 3\n\
         time-format = 's'\nsystem-modules = 'a.dll'\n",
    );
    let shown = |arguments: &[&str], commands: &[&str]| {
        let mut command = shell.command(&[&["--config", "c.toml"], arguments].concat());
        command.env("NO_COLOR", "1").env("_NT_SYMBOL_PATH", "environment");
        command.args(commands.iter().chain(&[".config"]).flat_map(|command| ["-c", command]));
        let run = ProgramRun::from(command.output().unwrap()).ok();
        let folder = fs::canonicalize(shell.path("")).unwrap();
        let text = run.stdout.replace(&format!("{}{MAIN_SEPARATOR}", folder.display()), "");
        // The width of the table depends on the path of the folder.
        text.lines()
            .map(|line| line.split("  ").filter(|cell| !cell.is_empty()))
            .map(|cells| cells.map(str::trim).collect::<Vec<_>>().join("  ") + "\n")
            .collect::<String>()
    };
    insta::assert_snapshot!(shown(&[], &[]));
    insta::assert_snapshot!(shown(
        &["--symbol-path", "line", "--color", "never"],
        &[".timefmt UTC", ".clip 1", ".sffn 1", ".sys b.dll", ".processfmt None"],
    ));
    let session =
        shown(&["--symbol-path", "line"], &[".sympath session", ".timefmt s", ".timefmt usual"]);
    assert!(session.lines().any(|line| line == "symbol-path  session  this session"), "{session}");
    assert!(
        session.lines().any(|line| line == "time-format  s  the configuration file"),
        "{session}"
    );
}

#[test]
fn settings_in_the_file_apply_to_answers() {
    let symbols = sample_symbols().display().to_string();
    let shell = shell(&format!("time-format = 's'\ntime-digits = 1\nsymbol-path = '{symbols}'\n"));
    let answer = configured(&shell, &[".dump ObjectRef -MinMaxId 89 89 -ShowStack"]).ok().stdout;
    assert!(answer.contains("leaky.exe!leaky::EventCache::GetOrCreate"), "{answer}");
    assert!(answer.lines().any(|line| line.trim_start().starts_with("1.3 ")), "{answer}");
    for line in [
        &["why", "leaky.etl", "--config", "c.toml"][..],
        &["--config", "c.toml", "why", "leaky.etl"],
        &["-dump", "Why", "-fd", "leaky.etl", "--config=c.toml"],
    ] {
        let why = shell.run(line).ok().stdout;
        assert!(why.contains("leaky::EventCache::GetOrCreate   leaky.cpp:29"), "{line:?}: {why}");
    }
    let option = [".dump ObjectRef -MinMaxId 89 89 -TimeFmt UTC -TimeDigits 0"];
    let answer = configured(&shell, &option).ok().stdout;
    assert!(answer.contains("2026-02-10 09:30:01  7316/7420"), "{answer}");
}

#[test]
fn views_in_the_folder_that_the_file_names_are_asked_and_described() {
    let shell = shell("sql-views = 'views'\n");
    fs::create_dir(shell.path("views")).unwrap();
    let view = "-- Leaks by type.\n--\n-- n [handles]: How many.\n\
                SELECT type, count(*) AS n FROM leaks GROUP BY type ORDER BY n DESC, type";
    fs::write(shell.path("views/by_type.sql"), view).unwrap();
    let run = configured(&shell, &[".sql SELECT * FROM by_type LIMIT 1 -csv", ".schema by_type"]);
    let printed = run.ok().stdout;
    let described = "by_type (a view of .sql): Leaks by type.\n\
                     Column  Type  Unit     Meaning\n\
                     type    text           Type of the object, as in Event; for an allocation the kind.\n\
                     n       u32   handles  How many.\n";
    assert!(printed.starts_with("type,n\nEvent,"), "{printed}");
    assert!(printed.ends_with(&format!("{described}\n{view}\n")), "{printed}");
    assert!(configured(&shell, &[".schema"]).ok().stdout.contains(described));
    let mut server = McpServer::start(&shell.path(""), &["--config", "c.toml"]);
    server.call("load", &json!({"paths": ["leaky.etl"]})).unwrap();
    let rows = server.call("sql", &json!({"query": "SELECT * FROM by_type LIMIT 1"})).unwrap();
    assert!(rows.to_string().contains("Event"), "{rows}");
    fs::write(shell.path("views/broken.sql"), "SELECT type\nFROM leak").unwrap();
    let run = configured(&shell, &[".sql SELECT type FROM by_type LIMIT 1 -csv"]).ok();
    assert_eq!(run.stdout, "type\nEvent\n", "a query needs only the views that it names");
    for command in [".sql SELECT type FROM broken", ".schema"] {
        let run = configured(&shell, &[command]);
        let expected = "broken.sql: line 2: table 'leak' not found, did you mean leaks?";
        assert!(run.stderr.contains(expected), "{command}: {run:?}");
    }
}

#[test]
fn the_server_for_agents_looks_for_symbols_where_the_file_says() {
    let shell = shell(&format!("symbol-path = '{}'\n", sample_symbols().display()));
    let mut server = McpServer::start(&shell.path(""), &["--config", "c.toml"]);
    server.call("load", &json!({"paths": ["leaky.etl"]})).unwrap();
    let why = server.call("why", &json!({})).unwrap().to_string();
    assert!(why.contains("leaky::EventCache::GetOrCreate"), "{why}");
}

#[test]
fn a_setting_that_is_written_counts_at_once_and_later_and_comments_stay() {
    let shell = shell("# mine\ntime-format = 'UTC' # as the servers\n");
    let list = ".dump Process -pn leaky.exe";
    let run = configured(&shell, &[".timefmt Here", ".config time-format s", list]).ok();
    assert!(run.stderr.contains("c.toml: time-format is s\n"), "{}", run.stderr);
    assert!(run.stdout.contains(" 0.3"), "{}", run.stdout);
    assert_eq!(written(&shell), "# mine\ntime-format = \"s\" # as the servers\n");
    assert_eq!(configured(&shell, &[list]).ok().stdout, run.stdout);
    let run = configured(&shell, &[".config time-format usual", ".config time-format"]).ok();
    assert!(run.stderr.contains("c.toml: time-format is not set\n"), "{}", run.stderr);
    assert!(run.stdout.ends_with("time-format  Local  default\n"), "{}", run.stdout);
    assert_eq!(written(&shell), "# mine\n");
}

#[test]
fn a_setting_that_something_else_decides_is_written_and_that_is_said() {
    let shell = shell("");
    let mut command = shell.command(&["--config", "c.toml", "-c", ".config color always"]);
    let run = ProgramRun::from(command.env("NO_COLOR", "1").output().unwrap()).ok();
    assert!(
        run.stderr.contains("note: color stays never here, because NO_COLOR sets it"),
        "{run:?}"
    );
    assert_eq!(written(&shell), "color = \"always\"\n");
    let coloured = shell.run(&["--config", "c.toml", "-c", ".help"]).ok();
    assert!(coloured.stdout.contains("\u{1b}["), "{}", coloured.stdout);
    let plain = shell.run(&["--config", "c.toml", "--color", "never", "-c", ".help"]).ok();
    assert!(!plain.stdout.contains("\u{1b}["), "{}", plain.stdout);
}

#[test]
fn a_wrong_value_is_refused_and_nothing_is_written() {
    let shell = shell("clip = true\n");
    for (command, expected) in [
        (".config time-format x", "'x' is not one of s, Local"),
        (".config colour red", "'colour' is not one of symbol-path"),
        (".alias list = .dump Stats", ".list is a command"),
        (".alias a = .dmup", "unknown command .dmup, did you mean .dump?"),
        (".alias -Remove a", "no alias 'a'; .alias lists them"),
    ] {
        let run = configured(&shell, &[command]);
        assert_eq!((run.status, run.stdout.as_str()), (Some(1), ""), "{command}: {run:?}");
        assert!(run.stderr.contains(expected), "{command}: {run:?}");
    }
    assert_eq!(written(&shell), "clip = true\n");
}

#[test]
fn an_alias_is_used_like_its_command_in_every_way_and_survives() {
    let shell = shell("");
    let define = ".alias leaks = .dump ObjectRef -Leak -ShowTotal Process";
    let whole = configured(&shell, &[".dump ObjectRef -Leak -ShowTotal Process"]).ok().stdout;
    let chosen =
        configured(&shell, &[".dump ObjectRef -Leak -ShowTotal Process -Type Thread"]).ok();
    assert_eq!(configured(&shell, &[define, ".leaks"]).ok().stdout, whole);
    assert_eq!(configured(&shell, &[".LEAKS -Type Thread"]).ok().stdout, chosen.stdout);

    let script = ".alias threads = .leaks -Type Thread\n# .leaks\n.threads > a.txt\n.sql SELECT 1 AS one\n.threads\n";
    let mut command = shell.command(&["--config", "c.toml", "leaky.etl"]);
    let run = run_script(&mut command, script).ok();
    assert!(run.stdout.ends_with(&chosen.stdout), "{}", run.stdout);
    assert_eq!(fs::read_to_string(shell.path("a.txt")).unwrap(), chosen.stdout);

    let listed = configured(&shell, &[".alias", ".alias leaks"]).ok().stdout;
    assert_eq!(
        listed,
        "Alias     Command\n.leaks    .dump ObjectRef -Leak -ShowTotal Process\n\
         .threads  .leaks -Type Thread\n.dump ObjectRef -Leak -ShowTotal Process\n"
    );
    let help = configured(&shell, &[".help", ".help threads"]).ok().stdout;
    assert!(help.contains("\nAliases\n  .leaks"), "{help}");
    assert!(help.ends_with(".threads  an alias\nStands for .leaks -Type Thread\n"), "{help}");

    let run = configured(&shell, &[".alias -Remove leaks", ".threads"]);
    assert_eq!(run.status, Some(1));
    assert!(run.stderr.contains("command 2: .threads: unknown command .leaks"), "{}", run.stderr);
    assert_eq!(written(&shell), "[aliases]\nthreads = \".leaks -Type Thread\"\n");
}

#[test]
fn an_alias_that_is_wrong_on_its_line_says_why() {
    let shell = shell("[aliases]\nleaks = '.dump ObjectRef -Leak'\n");
    for (line, expected) in [
        (".leaks -Laek", "unknown option -Laek, did you mean -Leak?"),
        (".leask", "unknown command .leask, did you mean .leaks?"),
        ("leaks", "unknown command leaks, did you mean .leaks?"),
        (".alias leaks = .leaks -csv", "the alias .leaks refers to itself: .leaks → .leaks; "),
        (".help laeks", "no help on 'laeks', did you mean leaks?"),
    ] {
        let run = configured(&shell, &[line]);
        assert_eq!(run.status, Some(1), "{line}");
        assert!(run.stderr.contains(expected), "{line}: {}", run.stderr);
    }
}

#[test]
fn a_bad_file_is_refused_with_its_line_by_everything_that_reads_it() {
    let shell = shell("clip = true\ncolour = 'never'\n");
    for (line, status) in [
        ("-c .list", 1),
        ("dump Process -fd leaky.etl", 1),
        ("extract leaky.etl", 1),
        ("record --dry-run", 1),
        ("live --replay leaky.etl", 1),
        ("schema objects", 1),
        ("mcp", 1),
        ("diff leaky.etl leaky.etl", 2),
    ] {
        let arguments = ["--config", "c.toml"].into_iter().chain(line.split(' '));
        let run = shell.run(&arguments.collect::<Vec<_>>());
        assert_eq!((run.status, run.stdout.as_str()), (Some(status), ""), "{line}: {run:?}");
        assert!(run.stderr.starts_with("error: "), "{line}: {run:?}");
        assert!(run.stderr.contains("c.toml: line 2: 'colour' is not one of "), "{line}: {run:?}");
    }
}

#[test]
fn a_wrong_configuration_file_is_refused_at_once() {
    let shell = shell("");
    fs::create_dir(shell.path("folder")).unwrap();
    fs::write(shell.path("binary"), b"clip = \xFF").unwrap();
    fs::write(shell.path("long"), "#".repeat(3 << 20)).unwrap();
    fs::write(shell.path("deep"), format!("clip = {}", "[".repeat(100_000))).unwrap();
    for (file, expected) in [
        ("missing", "missing: the configuration cannot be read: "),
        ("folder", "folder: the configuration cannot be read: "),
        ("binary", "binary: is not UTF-8; save it as UTF-8"),
        ("long", "long: larger than 1048576 bytes"),
        ("deep", "deep: line 1: "),
    ] {
        let run = shell.run(&["--config", file, "-c", ".list"]);
        assert_eq!((run.status, run.stdout.as_str()), (Some(1), ""), "{file}: {run:?}");
        assert!(run.stderr.contains(expected), "{file}: {run:?}");
    }
}

#[cfg(unix)]
mod places {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn the_file_is_made_in_the_folder_of_the_platform() {
        let shell = Shell::new();
        let place = || shell.run(&["-c", ".config"]).ok().stdout.lines().next().unwrap().to_owned();
        assert!(place().ends_with("handlescope.toml (does not exist yet)"), "{}", place());
        let _ = shell.run(&["-c", ".config clip 0"]).ok();
        let path = place().strip_prefix("Configuration file: ").unwrap().to_owned();
        assert_eq!(fs::read_to_string(&path).unwrap(), "clip = false\n");
        assert!(shell.run(&["-c", ".config clip"]).ok().stdout.contains("false"));
        // Commands that do not use the configuration accept a broken one.
        fs::write(path, "clip").unwrap();
        assert_eq!(shell.run(&["-c", ".list"]).status, Some(1));
        for line in [&["man"][..], &["completions", "bash"], &["complete", "--", "ext"]] {
            assert_eq!(shell.run(line).ok().stderr, "", "{line:?}");
        }
        assert_eq!(shell.run(&["--config", "c.toml", "man"]).status, Some(2));
    }

    #[test]
    fn a_link_and_the_permissions_of_the_file_stay() {
        let shell = shell("");
        fs::rename(shell.path("c.toml"), shell.path("kept.toml")).unwrap();
        fs::set_permissions(shell.path("kept.toml"), fs::Permissions::from_mode(0o600)).unwrap();
        symlink("kept.toml", shell.path("c.toml")).unwrap();
        let _ = configured(&shell, &[".config clip 0"]).ok();
        assert!(fs::symlink_metadata(shell.path("c.toml")).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(shell.path("kept.toml")).unwrap(), "clip = false\n");
        let mode = fs::metadata(shell.path("kept.toml")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_pipe_in_the_place_of_the_file_does_not_hang() {
        let shell = shell("");
        let path = shell.path("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let run = shell.run(&["--config", "pipe", "-c", ".list"]);
        assert_eq!(run.status, Some(1));
        assert!(run.stderr.contains("it is a pipe, not a file"), "{}", run.stderr);
    }
}

#[test]
fn settings_written_by_several_processes_at_once_are_all_kept() {
    const PROCESSES: usize = 12;
    let shell = shell("# mine\ntime-digits = 3\n");
    let start = |number: usize| {
        let alias = format!(".alias a{number} = .list");
        shell.command(&["--config", "c.toml", "-c", &alias]).spawn().unwrap()
    };
    let mut running: Vec<_> = (0..PROCESSES).map(start).collect();
    assert!(running.iter_mut().all(|process| process.wait().unwrap().success()));
    let written = written(&shell);
    assert!(written.starts_with("# mine\ntime-digits = 3\n"), "{written}");
    for number in 0..PROCESSES {
        assert!(written.contains(&format!("\na{number} = \".list\"\n")), "{written}");
    }
}
