//! Flame graphs of changes.

use std::fs;

use handlescope_tests::binary::{Shell, sample_symbols};

use super::{DiffRecording, MS, SECOND, compared, sample, shell, states};

/// Returns the type frames of a flame graph: name, handles, and the change in percent of all handles.
fn types(svg: &str) -> Vec<(&str, u64, f64)> {
    svg.split("<title>[")
        .skip(1)
        .map(|rest| {
            let (name, rest) = rest.split_once("] (").unwrap();
            let (count, rest) = rest.split_once(" handles, ").unwrap();
            let (_, change) = rest.split_once("%; ").unwrap();
            let change = change.split_once('%').unwrap().0;
            (name, count.replace(',', "").parse().unwrap(), change.parse().unwrap())
        })
        .collect()
}

#[test]
fn a_flame_graph_between_points_is_as_wide_as_handles_are_open_at_the_second() {
    let symbols = sample_symbols();
    let arguments = ["--symbol-path", symbols.to_str().unwrap(), "leaky.etl"];
    let shell = Shell::new();
    for (points, from, to) in
        [("", -1, i64::MAX), ("0.5s", SECOND / 2, i64::MAX), ("0.9s 1.5s", 900 * MS, 1_500 * MS)]
    {
        let written = shell.script(&arguments, &format!(".diff {points} -flame grown.svg\n")).ok();
        assert!(written.stdout.starts_with("SVG export was successful."), "{}", written.stdout);
        let svg = fs::read_to_string(shell.path("grown.svg")).unwrap();
        let count = |at: i64| -> u64 {
            let query = format!(
                ".sql SELECT count(*) AS n FROM handles WHERE opened_ns >= 0 AND opened_ns <= {at} AND \
                 (ended_ns IS NULL OR ended_ns > {at}) -csv\n"
            );
            sample(&query).ok().stdout.lines().last().unwrap().parse().unwrap()
        };
        let open = count(to);
        assert!(svg.contains(&format!("<title>all ({open} handles, 100%)")), "{points}: {svg}");
        let grown: f64 = types(&svg).iter().map(|own| own.2).sum();
        let difference = open as f64 - count(from) as f64;
        // Handles open at the first point have no width if none of their group is open at the second.
        assert!(grown >= 100.0 * difference / open as f64 - 0.1, "{points}: {grown} {difference}");
    }
    let svg = fs::read_to_string(shell.path("grown.svg")).unwrap();
    assert!(svg.contains("Handles and views open at 1.5s, compared with 0.9s"), "{svg}");
    assert!(svg.contains("leaky; red: more, blue: fewer than at 0.9s"), "{svg}");
    assert!(svg.contains("leaky.exe!leaky::EventCache::GetOrCreate ("), "{svg}");
}

#[test]
fn a_flame_graph_of_two_traces_is_as_wide_as_handles_are_lost_in_the_second() {
    let before = DiffRecording::healthy(700, 0x7ff6_0000_0000, 10);
    let after = DiffRecording::healthy(700, 0x7ff6_0000_0000, 10).opens(0x300, 40, None);
    let (document, _) = compared(&before, &after);
    let shell = shell(&before, &after);
    let run = shell.run(&["diff", "before.etl", "after.etl", "-flame", "worse.svg"]);
    assert_eq!(run.status, Some(1), "{run:?}");
    assert!(run.stderr.contains("warning: 1 group of handles got worse"), "{}", run.stderr);
    let svg = fs::read_to_string(shell.path("worse.svg")).unwrap();
    let mut lost: Vec<u64> = states(&document).iter().map(|own| own.2).collect();
    let mut widths: Vec<u64> = types(&svg).iter().map(|own| own.1).collect();
    lost.sort_unstable();
    widths.sort_unstable();
    assert_eq!(widths, lost);
    let all: u64 = lost.iter().sum();
    for (_, width, change) in types(&svg) {
        let expected = if width == 40 { 4_000.0 / all as f64 } else { 0.0 };
        assert!((change - expected).abs() < 0.01, "{width}: {change}");
    }
    assert!(
        svg.contains("Handles and views leaked in after, compared with before in the same time"),
        "{svg}"
    );
    let run = shell.run(&["diff", "after.etl", "before.etl", "-flame", "better.svg"]).ok();
    assert!(run.stdout.starts_with("SVG export was successful."), "{}", run.stdout);
    let svg = fs::read_to_string(shell.path("better.svg")).unwrap();
    assert!(svg.contains("red: more, blue: fewer than expected from after; 1 gone"), "{svg}");
}

#[test]
fn a_flame_graph_of_traces_of_other_lengths_has_the_colours_of_what_changed() {
    let leak = |seconds, count| {
        DiffRecording::new(700, 0x7ff6_0000_0000, seconds).opens(0x300, count, None)
    };
    let change = |before: &DiffRecording, after: &DiffRecording| {
        let shell = shell(before, after);
        let run = shell.run(&["diff", "before.etl", "after.etl", "-flame", "changed.svg"]);
        assert!(run.stdout.starts_with("SVG export was successful."), "{run:?}");
        let svg = fs::read_to_string(shell.path("changed.svg")).unwrap();
        types(&svg).iter().map(|own| own.2).collect::<Vec<f64>>()
    };
    assert_eq!(change(&leak(60, 60), &leak(20, 20)), [0.0]);
    // A third of the time would have 20, and three times as long 180.
    let worse = change(&leak(60, 60), &leak(20, 60));
    assert!((worse[0] - 66.67).abs() < 0.01, "{worse:?}");
    assert_eq!(change(&leak(20, 60), &leak(60, 60)), [-200.0]);
    let healthy = |seconds| DiffRecording::healthy(700, 0x7ff6_0000_0000, seconds);
    for (before, after) in [(10, 3), (3, 10)] {
        assert_eq!(change(&healthy(before), &healthy(after)), [0.0, 0.0], "{before} {after}");
    }
}

#[test]
fn a_flame_graph_stands_in_the_place_of_the_rows_and_replaces_what_is_ours() {
    let shell = Shell::new();
    fs::write(shell.path("mine.svg"), "mine").unwrap();
    for (line, message) in [
        (".diff -flame x.svg -json", "-flame and -json cannot be combined"),
        (".dump Diff -TopN 3 -flame x.svg", "-flame and -TopN cannot be combined"),
        (".diff -flame x.png", "x.png: the extension selects the format; use .svg"),
        (
            ".diff 0s 0.000001s -flame x.svg",
            "no picture: nothing opened in the trace is still open",
        ),
        (".diff -flame mine.svg", "use -Force to replace it"),
        (".diff -flame leaky.etl.svg/x.svg", "cannot be written"),
    ] {
        let run = shell.run(&["leaky.etl", "-c", line]);
        assert!(run.stderr.contains(message), "{line}: {}", run.stderr);
        assert_eq!((run.status, run.stdout.as_str()), (Some(1), ""), "{line}");
    }
    assert!(!shell.path("x.svg").exists());
    assert_eq!(fs::read_to_string(shell.path("mine.svg")).unwrap(), "mine");
    let run = shell.run(&["leaky.etl", "-c", ".diff -flame mine.svg -Force"]).ok();
    assert!(run.stdout.contains("mine.svg"), "{}", run.stdout);
}

#[test]
fn that_nothing_is_lost_is_no_failure_of_a_comparison() {
    let of = || DiffRecording::new(700, 0x7ff6_0000_0000, 10).opens(0x100, 4, Some(MS));
    let shell = shell(&of(), &of());
    let run = shell.run(&["diff", "before.etl", "after.etl", "-flame", "none.svg"]).ok();
    assert!(run.stderr.contains("no picture: nothing leaks in the second trace"), "{run:?}");
    assert!(!shell.path("none.svg").exists());
}
