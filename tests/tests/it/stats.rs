//! `.dump Stats -Properties`: selected properties of the traces, in every format.

use handlescope_tests::binary::Shell;

fn run(options: &str) -> String {
    let shell = Shell::new();
    shell.run(&["leaky.etl", "-c", &format!(".dump Stats {options}")]).ok().stdout
}

#[test]
fn properties_go_by_their_names_in_json_and_by_those_of_etwanalyzer() {
    let ours = run("-Properties cpu_count;os_*;!os_build*");
    let lines: Vec<Vec<&str>> =
        ours.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["leaky.etl"]);
    assert_eq!(lines[1], ["Property", "Value"]);
    assert_eq!((lines[2][0], lines[3][0], lines.len()), ("cpu_count", "os_version", 4));
    let theirs = run("-Properties NumberOfProcessors;OSVersion");
    assert_eq!(run("-Properties NumberOfProcessors,OSVersion"), theirs);
    let cells = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let renamed =
        ours.replace("cpu_count", "NumberOfProcessors").replace("os_version", "OSVersion");
    assert_eq!(cells(&theirs), cells(&renamed));
    assert_eq!(run("-Properties nothing").lines().count(), 2);
}

#[test]
fn properties_are_the_same_in_every_format() {
    let json: serde_json::Value =
        serde_json::from_str(&run("-Properties cpu_count;memory_mb -json")).unwrap();
    let rows = json["properties"].as_array().unwrap();
    assert_eq!(rows[0]["name"], "cpu_count");
    assert_eq!(rows[1]["name"], "memory_mb");
    let csv = run("-Properties cpu_count -csv");
    assert_eq!(
        csv,
        format!("file,name,value\n0,cpu_count,{}\n", rows[0]["value"].as_str().unwrap())
    );
    let all = run("-Properties * -ndjson");
    assert!(all.lines().count() > 30 && all.contains("source_etl"), "{all}");
    let stats: serde_json::Value = serde_json::from_str(&run("-json")).unwrap();
    assert_eq!(stats["files"][0]["cpu_count"].to_string(), rows[0]["value"].as_str().unwrap());
}
