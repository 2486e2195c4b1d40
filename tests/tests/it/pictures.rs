//! `.flame` and `.plot`: the handles of `.dump ObjectRef` as pictures.

use std::collections::BTreeMap;
use std::fs;

use handlescope_model::is_harmful;
use handlescope_tests::binary::{ProgramRun, Shell, examples, sample_symbols};
use handlescope_tests::needs_data;
use handlescope_tests::published::PublishedTrace;
use handlescope_tests::scenario::TraceBuilder;
#[cfg(unix)]
use handlescope_tests::terminal::Terminal;
use serde_json::Value;

/// Text that a page must not treat as markup, with control characters.
const HOSTILE: &str = "<script>alert(1)</script>\"'>]]>&amp;\u{202e}\u{1b}[2J;# 7";

fn sample(shell: &Shell, command: &str) -> ProgramRun {
    let symbols = sample_symbols();
    shell.run(&["--symbol-path", symbols.to_str().unwrap(), "leaky.etl", "-c", command])
}

fn written(shell: &Shell, command: &str, file: &str) -> String {
    let run = sample(shell, command).ok();
    assert!(run.stdout.contains("export was successful. File is: "), "{}", run.stdout);
    assert!(run.stdout.trim_end().ends_with(file), "{}", run.stdout);
    fs::read_to_string(shell.path(file)).unwrap()
}

/// Returns the frames of a flame graph: the text of their tooltips.
fn frames(svg: &str) -> Vec<&str> {
    svg.split("<title>").skip(1).map(|rest| rest.split("</title>").next().unwrap()).collect()
}

/// Builds a trace with a leak and this name for the process, module, type and object.
fn trace_of(name: &str) -> TraceBuilder {
    const OBJECT: u64 = 0xffff_8100_0000_1000;
    let mut trace = TraceBuilder::new();
    trace.process(700, name).command_line(name);
    trace.module(700, &format!(r"C:\{name}"), 0x40_0000, 0x2_0000);
    trace.object_type(16, name);
    for at in 0..8_u32 {
        let (time, object) = (1_000_000 * i64::from(at + 1), OBJECT + 0x100 * u64::from(at));
        trace.create_handle(time, (700, 8), object, 4 * (at + 1), 16);
        trace.stack(&[], &[0x40_1000]);
    }
    trace
}

#[test]
fn a_flame_graph_is_as_wide_as_handles_are_lost() {
    let shell = Shell::new();
    let svg = written(&shell, ".flame leaks.svg -pn leaky.exe -Leak", "leaks.svg");
    let frames = frames(&svg);
    let has = |start: &str| assert!(frames.iter().any(|own| own.starts_with(start)), "{frames:#?}");
    has("all (19 handles, 100%)");
    has("leaky.exe(7316) (19 handles, 100.00%)");
    has("leaky.exe!leaky::EventCache::GetOrCreate (");
    has("[Event] (");
}

#[test]
fn filters_of_object_ref_choose_the_handles_of_a_flame_graph() {
    let shell = Shell::new();
    let one =
        ".flame one.svg -pn leaky.exe -Type Event -ObjectName *Signal_41 -StackFrom *GetOrCreate";
    let svg = written(&shell, one, "one.svg");
    let frames = frames(&svg);
    assert!(frames.contains(&"all (1 handles, 100%)"), "{frames:#?}");
    assert!(!frames.iter().any(|own| own.contains("NtCreateEvent")), "{frames:#?}");
}

#[test]
fn speedscope_has_the_stacks_with_their_numbers_and_lines() {
    let shell = Shell::new();
    let text = written(
        &shell,
        ".flame leaks.speedscope.json -pn leaky.exe -Leak",
        "leaks.speedscope.json",
    );
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["$schema"], "https://www.speedscope.app/file-format-schema.json");
    let profile = &document["profiles"][0];
    assert_eq!((&profile["type"], &profile["unit"]), (&"sampled".into(), &"none".into()));
    let weights = profile["weights"].as_array().unwrap();
    let sum: u64 = weights.iter().map(|weight| weight.as_u64().unwrap()).sum();
    assert_eq!((sum, &profile["endValue"]), (19, &19.into()));
    let samples = profile["samples"].as_array().unwrap();
    assert_eq!(samples.len(), weights.len());
    let frames = document["shared"]["frames"].as_array().unwrap();
    for sample in samples {
        let names: Vec<&str> = sample
            .as_array()
            .unwrap()
            .iter()
            .map(|at| {
                frames[usize::try_from(at.as_u64().unwrap()).unwrap()]["name"].as_str().unwrap()
            })
            .collect();
        assert_eq!(names[0], "leaky.exe(7316)", "{names:?}");
        assert!(names.last().unwrap().starts_with('['), "{names:?}");
    }
    let source =
        frames.iter().find(|frame| frame["name"] == "leaky.exe!leaky::EventCache::GetOrCreate");
    assert!(source.unwrap()["line"].as_u64().is_some(), "{source:?}");
}

#[test]
fn a_picture_that_cannot_be_drawn_is_an_error_and_leaves_no_file() {
    let shell = Shell::new();
    for (command, error) in [
        (".flame leaks.png", "leaks.png: the extension selects the format"),
        (".flame leaks.svg -pn absent", "none of the chosen handles leaks"),
        (".flame no/leaks.svg", "cannot be written"),
        (".flame leaky.etl.svg -Leak", ""),
    ] {
        let run = sample(&shell, command);
        assert_eq!(run.status, Some(i32::from(!error.is_empty())), "{command}: {}", run.stderr);
        assert!(run.stderr.contains(error), "{command}: {}", run.stderr);
    }
    assert!(!shell.path("leaks.svg").exists());
    let run = sample(&shell, ".flame");
    assert!(run.stderr.contains("the file to write, NAME.svg"), "{}", run.stderr);
    fs::write(shell.path("mine.svg"), "mine").unwrap();
    let run = sample(&shell, ".flame mine.svg -Leak");
    assert!(run.stderr.contains("use -Force to replace it"), "{}", run.stderr);
    assert_eq!(fs::read_to_string(shell.path("mine.svg")).unwrap(), "mine");
    assert_eq!(sample(&shell, ".flame mine.svg -Leak -Force").status, Some(0));
}

#[test]
fn names_from_a_trace_are_text_in_a_flame_graph() {
    let shell = Shell::new();
    trace_of(HOSTILE).write(shell.path("hostile.etl")).unwrap();
    let run = shell.run(&["hostile.etl", "-c", ".flame hostile.svg"]);
    assert_eq!(run.status, Some(0), "{}", run.stderr);
    let svg = fs::read_to_string(shell.path("hostile.svg")).unwrap();
    assert_eq!(svg.matches("<script").count(), 1, "the one of inferno");
    assert!(svg.contains("&lt;script&gt;alert(1)&lt;/script&gt;"), "{svg}");
    assert!(!svg.contains(|c| is_harmful(c) && !['\n', '\t'].contains(&c)), "{svg}");
}

/// Returns the texts in a picture.
fn texts(svg: &str) -> Vec<&str> {
    svg.split("<text ")
        .skip(1)
        .filter_map(|rest| rest.split_once('>'))
        .map(|(_, rest)| rest.split("</text>").next().unwrap().trim())
        .collect()
}

#[test]
fn a_plot_lays_the_open_handles_of_processes_types_or_stacks_on_each_other() {
    let shell = Shell::new();
    for (options, areas, name) in [
        ("", 3, "leaky.exe(7316)"),
        ("-GroupBy process", 3, "leaky.exe(7316)"),
        ("-GroupBy type -pn leaky -Leak", 2, "Event"),
        ("-GroupBy stack -Leak -pn leaky.exe", 3, "leaky.exe!leaky::EventCache::GetOrCreate"),
        ("-GroupBy stack -Leak -pn leaky.exe -TopN 1", 2, "2 others"),
    ] {
        let svg = written(&shell, &format!(".plot handles.svg {options}"), "handles.svg");
        let texts = texts(&svg);
        assert_eq!(svg.matches("<polygon").count(), areas, "{options}: {texts:?}");
        let legend = format!("{name}, peak ");
        assert!(texts.iter().any(|text| text.starts_with(&legend)), "{options}: {texts:?}");
        assert!(texts.contains(&"seconds since the session started"), "{options}: {texts:?}");
    }
}

#[test]
fn a_plot_without_a_file_is_text_with_the_numbers_of_each_group() {
    let shell = Shell::new();
    let text = sample(&shell, ".plot -GroupBy type -pn leaky.exe -Leak").ok().stdout;
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("leaky: handles opened in the trace"), "{text}");
    assert!(lines[1].contains('⡁') && lines[1].ends_with(" 19"), "{text}");
    assert!(text.contains("0.0 s"), "{text}");
    let row = |name: &str| lines.iter().find(|line| line.ends_with(name)).unwrap().trim_start();
    assert!(row("  Event").starts_with("13      13"), "{text}");
    assert!(row("  Thread").starts_with("6       6"), "{text}");
    assert_eq!(
        sample(&shell, ".plot -GroupBy type -pn leaky.exe -Leak > plot.txt").ok().stdout,
        ""
    );
    assert_eq!(fs::read_to_string(shell.path("plot.txt")).unwrap(), text);
}

/// Returns the largest sum at any time, by process, from rows of `process,pid,begin,end,amount`.
fn most_by_process(rows: &str) -> BTreeMap<String, i64> {
    let mut changes: BTreeMap<String, BTreeMap<i64, i64>> = BTreeMap::new();
    for row in rows.lines().skip(1) {
        let fields: Vec<&str> = row.split(',').collect();
        let own = changes.entry(format!("{}({})", fields[0], fields[1])).or_default();
        let amount: i64 = fields[4].parse().unwrap();
        *own.entry(fields[2].parse().unwrap()).or_default() += amount;
        if let Ok(end) = fields[3].parse() {
            *own.entry(end).or_default() -= amount;
        }
    }
    let most = |changes: BTreeMap<i64, i64>| {
        let sums = changes.values().scan(0, |sum, change| {
            *sum += change;
            Some(*sum)
        });
        sums.max().unwrap()
    };
    changes.into_iter().map(|(process, changes)| (process, most(changes))).collect()
}

#[needs_data]
#[test]
fn most_is_the_largest_number_at_any_time_in_text_and_in_a_picture() {
    const HANDLES: &str =
        ".sql SELECT process, pid, opened_ns, ended_ns, 1 FROM handles WHERE opened_ns >= 0 -csv";
    let trace = PublishedTrace::open("growth");
    let mut most: Vec<(i64, String)> =
        most_by_process(&trace.ask(HANDLES)).into_iter().map(|(name, most)| (most, name)).collect();
    most.sort_unstable();
    let shown = most.split_off(most.len() - 4);
    let text = trace.ask(".plot -TopN 4");
    for (most, name) in &shown {
        let row = text.lines().find(|line| line.ends_with(&format!("  {name}")));
        let found = row.and_then(|row| row.split_whitespace().next());
        assert_eq!(found, Some(most.to_string().as_str()), "{name}: {text}");
    }
    let svg = trace.picture(".plot most.svg -TopN 4", "most.svg");
    for (most, name) in &shown {
        let legend = format!("{name}, peak {most}");
        assert!(texts(&svg).contains(&legend.as_str()), "{legend}: {:?}", texts(&svg));
    }
}

#[needs_data]
#[test]
fn most_bytes_are_those_at_any_time() {
    const BYTES: &str = ".sql SELECT process, pid, opened_ns, ended_ns, size FROM allocations \
                         WHERE kind = 'heap' AND process = 'leakyapp.exe' -csv";
    let trace = PublishedTrace::open("heap");
    let most = most_by_process(&trace.ask(BYTES))["leakyapp.exe(8120)"];
    let shown = format!("{:.2} MiB", most as f64 / f64::from(1 << 20));
    let text = trace.ask(".plot -Kind heap");
    let row = text.lines().find(|line| line.ends_with("leakyapp.exe(8120)")).unwrap();
    assert!(row.trim_start().starts_with(&shown), "{most}: {text}");
    let lives: Vec<&str> =
        text.lines().filter(|line| line.contains("converter.exe(9300)")).collect();
    assert!(lives[0].ends_with(" +-") && lives[1].ends_with(" +"), "{text}");
}

#[test]
fn handles_open_for_a_moment_count_in_the_peak_and_are_shown_first() {
    let shell = Shell::new();
    let mut trace = TraceBuilder::new();
    trace.object_type(16, "Event");
    for (pid, name) in [(700, "long.exe"), (800, "short.exe")] {
        trace.process(pid, name);
    }
    let second = 1_000_000_000_i64;
    trace.create_handle(second, (700, 8), 0xffff_8100_0000_1000, 4, 16);
    for at in 0..3_u32 {
        let time = 4 * second + 1_000 * i64::from(at);
        let object = 0xffff_8100_0000_2000 + 0x100 * u64::from(at);
        trace.create_handle(time, (800, 8), object, 4 * (at + 1), 16);
        trace.close_handle(time + 10_000, (800, 8), object, 4 * (at + 1), 16, "");
    }
    trace.close_handle(100 * second, (700, 8), 0xffff_8100_0000_1000, 4, 16, "");
    trace.write(shell.path("trace.etl")).unwrap();
    let text = shell.run(&["trace.etl", "-c", ".plot -TopN 1"]).ok().stdout;
    let rows: Vec<Vec<&str>> =
        text.lines().rev().take(2).map(|line| line.split_whitespace().collect()).collect();
    assert_eq!((rows[0][0], rows[0][1], rows[0][3]), ("3", "0", "short.exe(800)"), "{text}");
    assert_eq!((rows[1][0], rows[1][1], rows[1][3]), ("1", "0", "1"), "{text}");
}

#[cfg(unix)]
#[test]
fn a_plot_on_a_terminal_fits_it_and_talks_in_its_language() {
    for columns in [40, 100] {
        let shell = Shell::new();
        let terminal = Terminal::spawn(columns, 40, &["leaky.etl"], &shell.path(""));
        terminal.wait_for_line("leaky.etl> ");
        terminal.run("leaky.etl> ", ".plot -GroupBy type");
        let transcript = terminal.transcript();
        let drawn = |line: &&String| line.chars().any(|c| ('\u{2801}'..='\u{28FF}').contains(&c));
        assert_eq!(transcript.iter().filter(drawn).count(), 16, "{transcript:#?}");
        assert!(transcript.iter().any(|line| line.contains("Event")), "{transcript:#?}");
        assert_eq!(terminal.not_understood(), [""; 0]);
    }
}

#[test]
fn a_plot_needs_times_and_handles() {
    let shell = Shell::new();
    fs::copy(examples().join("htrace.log"), shell.path("session.log")).unwrap();
    let run = shell.run(&["session.log", "-c", ".plot"]);
    assert_eq!(run.status, Some(1), "{}", run.stdout);
    assert!(
        run.stderr.contains("session.log: has no clock, so nothing can be shown over time"),
        "{}",
        run.stderr
    );
    let run = sample(&shell, ".plot x.svg -pn absent");
    assert!(run.stderr.contains("none of the chosen handles was opened"), "{}", run.stderr);
    let run = sample(&shell, ".plot x.png");
    assert!(run.stderr.contains("the extension selects the format; use .svg"), "{}", run.stderr);
    assert!(!shell.path("x.svg").exists() && !shell.path("x.png").exists());
}

#[test]
fn names_from_a_trace_are_text_in_a_plot() {
    let shell = Shell::new();
    trace_of(HOSTILE).write(shell.path("hostile.etl")).unwrap();
    for by in ["process", "type", "stack"] {
        let plot = format!(".plot hostile.svg -GroupBy {by}");
        let run = shell.run(&["hostile.etl", "-c", &plot]);
        assert_eq!(run.status, Some(0), "{}", run.stderr);
        let svg = fs::read_to_string(shell.path("hostile.svg")).unwrap();
        assert!(!svg.contains("<script"), "{svg}");
        // A long name is cut between these.
        for part in ["script&gt;&quot;&apos;&gt;]]", "mp;\\u{202e}"] {
            assert!(svg.contains(part), "{svg}");
        }
        assert!(!svg.contains(|c| is_harmful(c) && c != '\n'), "{svg}");
    }
}
