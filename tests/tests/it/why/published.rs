//! The published traces with their known leaks.

use std::collections::{HashMap, HashSet};
use std::fs;

use handlescope_tests::binary::stack_text;
use handlescope_tests::data::SharedTrace;
use handlescope_tests::needs_data;
use handlescope_tests::published::PublishedTrace;
use serde_json::Value;

use super::{causes, suspects};

#[needs_data]
#[test]
fn suspects_of_the_published_trace_have_its_verdicts_rates_and_causes() {
    let trace = SharedTrace::open("synthetic/growth");
    let expected: Value = serde_json::from_slice(&fs::read(trace.expected()).unwrap()).unwrap();
    let document = PublishedTrace::open("growth").why();
    let mut found: HashMap<(String, String, String), &Value> = HashMap::new();
    for suspect in suspects(&document) {
        let text = |key: &str| suspect[key].as_str().unwrap().to_owned();
        let key = (text("process"), text("type"), stack_text(&document, &suspect["create_stack"]));
        assert!(found.insert(key.clone(), suspect).is_none(), "twice: {key:?}");
    }
    let groups = expected["why"].as_array().unwrap();
    assert!(groups.len() > 40);
    let mut known = 0;
    for group in groups {
        let script = &group["script"];
        let stack = &expected["stacks"][group["create_stack"].as_u64().unwrap() as usize];
        let lines: Vec<&str> =
            stack.as_array().unwrap().iter().map(|frame| frame.as_str().unwrap()).collect();
        let others = group["process_or"].as_array().into_iter().flatten();
        let names = std::iter::once(&group["process"]).chain(others);
        let key = |process: &Value| {
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            (text(process), text(&group["type"]), lines.join("\n"))
        };
        let suspect = names.map(key).find_map(|key| found.get(&key).copied());
        if let Some(is) = group["must_rank"].as_bool() {
            assert_eq!(suspect.is_some(), is, "{script}: {suspect:?}");
        }
        let Some(suspect) = suspect else { continue };
        known += 1;
        assert_group(suspect, group);
    }
    assert!(known > 20, "{known}");
    // Groups that are not listed leak next to nothing.
    let lost =
        |own: &&Value| own["leaked"].as_u64().unwrap() + own["closed_at_exit"].as_u64().unwrap();
    let large = suspects(&document).iter().filter(|own| lost(own) > 3);
    assert!(large.count() <= known, "groups without truth are suspects");
}

/// Asserts that a suspect agrees with the truth about its group.
fn assert_group(suspect: &Value, group: &Value) {
    let script = &group["script"];
    if !group["verdict"].is_null() {
        assert_eq!(suspect["verdict"], group["verdict"], "{script}");
    }
    for verdict in group["not_verdicts"].as_array().into_iter().flatten() {
        assert_ne!(suspect["verdict"], *verdict, "{script}");
    }
    for figure in ["leaked", "closed_at_exit"] {
        assert_eq!(suspect[figure], group[figure], "{script}: {figure}");
    }
    assert_eq!(suspect["created"], group["opened"], "{script}");
    if let Some(rate) = group["rate_per_minute"].as_f64() {
        let own = suspect["rate_per_minute"].as_f64().unwrap();
        assert!((own / rate - 1.0).abs() <= 0.1, "{script}: {own} instead of {rate}");
    }
    let causes = causes(suspect);
    let words =
        |key: &str| group[key].as_array().unwrap().iter().map(|word| word.as_str().unwrap());
    for cause in words("causes").collect::<Vec<_>>() {
        assert!(causes.contains(&cause), "{script}: {causes:?}");
    }
    for cause in words("not_causes").collect::<Vec<_>>() {
        assert!(!causes.contains(&cause), "{script}: {causes:?}");
    }
}

#[needs_data]
#[test]
fn memory_leaks_of_the_published_traces_come_first() {
    for name in ["heap", "valloc"] {
        let trace = SharedTrace::open(&format!("synthetic/{name}"));
        let known: Value = serde_json::from_slice(&fs::read(trace.expected()).unwrap()).unwrap();
        // Notes such as "leaking stacks: 48 (alloc), 49 (realloc)".
        let leaks = known["notes"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(Value::as_str)
            .filter_map(|note| note.split_once("leaking stack"))
            .map(|(_, own)| own);
        let numbers = leaks.flat_map(|own| own.split(|c: char| !c.is_ascii_digit()));
        let leaks: HashSet<String> = numbers
            .filter_map(|number| number.parse::<usize>().ok())
            .map(|number| known["stacks"][number].to_string())
            .collect();
        assert!(!leaks.is_empty());
        let document = PublishedTrace::open(name).why();
        let worst = &suspects(&document)[..leaks.len()];
        let found: HashSet<String> = worst.iter().map(|own| frames(&document, own)).collect();
        assert_eq!(found, leaks, "{name}");
        assert!(worst.iter().all(|own| own["bytes_per_minute"].as_f64().unwrap() > 0.0));
    }
}

/// Returns the frames of the create stack as in the expected results.
fn frames(document: &Value, suspect: &Value) -> String {
    let frames = document["stacks"][suspect["create_stack"].to_string()].as_array().unwrap();
    let text = |frame: &Value| {
        format!("{}!{}", frame["module"].as_str().unwrap(), frame["function"].as_str().unwrap())
    };
    Value::from(frames.iter().map(text).collect::<Vec<_>>()).to_string()
}

/// Sums the numbers in a sentence that come before one of these words.
fn numbers(sentence: &str, words: &[&str]) -> u64 {
    let mut numbers = Vec::new();
    for part in sentence.split([',', ':', ';', '(', ')']) {
        let Some((number, rest)) = part.trim().split_once(' ') else { continue };
        if words.iter().any(|word| rest.starts_with(word)) {
            numbers.push(number.parse::<u64>().unwrap());
        }
    }
    numbers.iter().sum()
}

#[needs_data]
#[test]
fn ends_of_allocations_sum_up_to_all_of_them_and_agree_with_the_table() {
    const ENDS: [&str; 5] = ["reallocated", "replaced", "destroyed", "allocated nothing", "of "];
    for name in ["heap", "valloc"] {
        let document = PublishedTrace::open(name).why();
        let mut checked = 0;
        for suspect in suspects(&document) {
            let (all, evidence) = (&suspect["created"], suspect["evidence"].as_str().unwrap());
            let lost =
                suspect["leaked"].as_u64().unwrap() + suspect["closed_at_exit"].as_u64().unwrap();
            let Some((_, ended)) = evidence.split_once("; ") else { continue };
            let ended = ended.split(" after").next().unwrap();
            let begin = format!("{} of {all} ", all.as_u64().unwrap() - lost);
            let empty = |text: &str| numbers(text, &["allocated nothing"]);
            let freed = suspect["diagnoses"].as_array().unwrap().iter();
            let Some(freed) = freed.clone().find(|own| own["cause"] == "sometimes_freed") else {
                assert!(ended.starts_with(&begin), "{evidence}");
                continue;
            };
            let text = freed["text"].as_str().unwrap();
            assert_eq!(numbers(text, &ENDS) + lost, all.as_u64().unwrap(), "{text}");
            let ended_count = all.as_u64().unwrap() - lost - empty(text);
            assert!(ended.starts_with(&format!("{ended_count} of {all} freed")), "{evidence}");
            for word in ["reallocated", "replaced", "destroyed with the heap"] {
                assert_eq!(text.contains(word), ended.contains(word), "{word}: {evidence}: {text}");
            }
            checked += 1;
        }
        assert!(checked > 10, "{name}: {checked}");
    }
}

#[needs_data]
#[test]
fn a_suspect_has_the_ends_that_the_table_of_its_stack_has() {
    let trace = PublishedTrace::open("heap");
    let document = trace.why();
    let suspect = &suspects(&document)[3];
    assert_eq!(
        (&suspect["process"], &suspect["created"]),
        (&"cacheserver.exe(9044)".into(), &201.into())
    );
    let function = suspect["function"].as_str().unwrap();
    let groups = format!(".dump Resource -GroupBy end -pn 9044 -CreateStack {function} -json");
    let groups: Value = serde_json::from_str(&trace.ask(&groups)).unwrap();
    let count = |end: &str| {
        groups["groups"]
            .as_array()
            .unwrap()
            .iter()
            .find(|group| group["keys"]["end"] == end)
            .unwrap()["allocs"]
            .clone()
    };
    let text = format!(
        "{} of 201 are freed ({} reallocated, {} destroyed with the heap): check the error paths",
        count("freed"),
        count("reallocated"),
        count("destroyed")
    );
    assert_eq!(suspect["leaked"], count("open"));
    assert_eq!(suspect["diagnoses"][0]["text"], text);
    let evidence = suspect["evidence"].as_str().unwrap();
    let ended = "; 194 of 201 freed, reallocated or destroyed with the heap after ";
    assert!(evidence.contains(ended), "{evidence}");
}
