//! An agent that has only the server: it is asked about generated traces for several seeds, and compared with the truth
//! of their scripts.

use std::fmt::Write as _;
use std::fs;

use handlescope_tests::binary::Shell;
use handlescope_tests::mcp::McpServer;
use handlescope_tests::planted::{PlantedLeak, SCENARIOS, planted};
use serde_json::{Value, json};

use super::benchmark::{Agent, MAX_BYTES, MAX_CALLS, WHY_BYTES};

const SEEDS: [u64; 3] = [101, 202, 303];

/// Returns the suspect for a planted leak, if it has the right process, type, function, counts and cause.
fn named<'a>(suspects: &'a [Value], leak: &PlantedLeak) -> Option<&'a Value> {
    suspects.iter().find(|suspect| {
        suspect["process"] == leak.process.as_str()
            && suspect["type"] == leak.kind
            && suspect["function"] == leak.function.as_str()
            && (&suspect["leaked"], &suspect["created"])
                == (&leak.leaked.into(), &leak.opened.into())
            && suspect["causes"]
                .as_array()
                .is_some_and(|causes| causes.contains(&leak.cause.into()))
    })
}

/// Asks for the leaks of a trace, and for the objects of each planted leak.
fn ask(scenario: &str, seed: u64) -> (Agent, usize) {
    let generated = planted(scenario, seed);
    let shell = Shell::new();
    let traces = shell.path("traces");
    fs::create_dir(&traces).unwrap();
    generated.trace.write(traces.join("trace.etl")).unwrap();
    let mut agent = Agent::new(McpServer::start(&traces, &[]));
    agent.call("load", &json!({"paths": ["trace.etl"]}));
    let mut why = agent.call("why", &json!({"max_bytes": WHY_BYTES}));
    let mut suspects = why["document"]["suspects"].as_array().unwrap().clone();
    if let Some(next) = why.get("next").cloned() {
        why = agent.call(next["tool"].as_str().unwrap(), &next["arguments"]);
        suspects.extend_from_slice(why["document"]["suspects"].as_array().unwrap());
    }
    for leak in &generated.leaks {
        let suspect = named(&suspects, leak)
            .unwrap_or_else(|| panic!("{scenario} {seed}: {leak:?}\n{suspects:#?}"));
        let rate = suspect["rate_per_minute"].as_f64();
        match leak.per_minute {
            Some(expected) => {
                let rate = rate.unwrap_or_default();
                assert!((rate / expected - 1.0).abs() < 0.1, "{scenario} {seed}: {rate} {leak:?}");
            }
            None => assert_eq!(rate, None, "{scenario} {seed}: {leak:?}"),
        }
    }
    assert!(why.get("next").is_none(), "{scenario} {seed}: further suspects");
    let worst = suspects[0]["next"].clone();
    let mut arguments = worst["arguments"].clone();
    arguments["max_bytes"] = 4096.into();
    let objects = agent.call(worst["tool"].as_str().unwrap(), &arguments);
    assert!(!objects["document"]["objects"].as_array().unwrap().is_empty());
    (agent, generated.leaks.len())
}

#[test]
fn an_agent_names_each_planted_leak_of_other_seeds_in_four_calls_and_sixteen_kilobytes() {
    let mut table = String::from("trace      seed  leaks  calls  KiB\n");
    for scenario in SCENARIOS {
        for seed in SEEDS {
            let (agent, leaks) = ask(scenario, seed);
            let (calls, bytes) = (agent.calls, agent.bytes);
            writeln!(
                table,
                "{scenario:<10} {seed:>4} {leaks:>6} {calls:>6} {:>4}",
                bytes.div_ceil(1024)
            )
            .unwrap();
            assert!(calls <= MAX_CALLS && bytes <= MAX_BYTES, "{scenario} {seed}: {bytes}");
        }
    }
    insta::assert_snapshot!(table);
}
