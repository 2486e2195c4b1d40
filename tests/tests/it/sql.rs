//! `.sql`: the tables give the same answers as `.dump`.

use std::collections::BTreeSet;
use std::fs;

use handlescope_tests::binary::{Shell, handlescope, run_script, sample_symbols};
use handlescope_tests::data::SharedTrace;
use handlescope_tests::needs_data;
use serde_json::{Deserializer, Value};

/// Returns the documents that a script prints.
fn documents(printed: &str) -> Vec<Value> {
    Deserializer::from_str(printed).into_iter().map(Result::unwrap).collect()
}

/// Formats an opened handle or view: object, type, name, origin, process id of the owner, thread, time, handle, stack.
fn of_event(object: &Value, event: &Value, stack: &str) -> String {
    let origin = match event["kind"].as_str().unwrap_or_default() {
        "handle_create" => "create",
        "handle_duplicate" if event["inherited_by_pid"].is_u64() => "inherit",
        "handle_duplicate" => "duplicate",
        origin => origin,
    };
    let origin = Value::from(origin);
    let owner =
        Some(&event["inherited_by_pid"]).filter(|pid| pid.is_u64()).unwrap_or(&event["pid"]);
    let fields = [&object["id"], &object["type"], &object["name"], &origin, owner];
    let more = [&event["tid"], &event["time_ns"], &event["handle"]];
    let fields: Vec<String> = fields.iter().chain(&more).map(|field| field.to_string()).collect();
    format!("{} {stack:?}", fields.join(" "))
}

/// Lists the opened (or only the leaked) handles and views in the document of `.dump ObjectRef -ShowStack -json`.
fn opened(document: &Value, only_leaks: bool) -> BTreeSet<String> {
    let mut opened = BTreeSet::new();
    for object in document["objects"].as_array().unwrap() {
        for event in object["events"].as_array().unwrap() {
            let kind = event["kind"].as_str().unwrap();
            if !["handle_create", "handle_duplicate", "map"].contains(&kind)
                || (only_leaks && event["leaked"] != true)
            {
                continue;
            }
            opened.insert(of_event(object, event, &stack_text(document, &event["stack"])));
        }
    }
    opened
}

/// Returns the lines of a stack as `.dump` prints them.
fn stack_text(document: &Value, stack: &Value) -> String {
    let Some(frames) = document["stacks"][stack.to_string()].as_array() else {
        return "null".into();
    };
    let line = |frame: &Value| {
        let text = |member: &str| frame[member].as_str().map(str::to_owned);
        match (text("module"), text("function"), text("rva")) {
            (Some(module), Some(function), _) => format!("{module}!{function}"),
            (Some(module), None, Some(rva)) => format!("{module}+{rva}"),
            (Some(module), None, None) => module,
            (None, _, _) => "<UnknownMethod>".to_owned(),
        }
    };
    frames.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Formats the rows of a view, joined with the stacks.
fn rows(document: &Value) -> BTreeSet<String> {
    document["rows"].as_array().unwrap().iter().map(|row| {
        let event = serde_json::json!({
            "kind": row["origin"], "pid": row["pid"], "tid": row["opened_tid"], "time_ns": row["opened_ns"],
            "handle": if row["kind"] == "handle" { row["key"].clone() } else { Value::Null },
        });
        of_event(row, &event, row["text"].as_str().unwrap_or("null"))
    })
    .collect()
}

const QUESTIONS: &str = "\
.dump ObjectRef -ShowStack -json
.sql SELECT h.*, s.text FROM handles h LEFT JOIN stacks s ON s.row = h.opened_stack -json
.sql SELECT l.*, s.text FROM leaks l LEFT JOIN stacks s ON s.row = l.opened_stack -json
.sql SELECT sum(CASE WHEN leaked THEN 1 ELSE 0 END) AS leaked_handles, sum(CASE WHEN at_exit THEN 1 ELSE 0 END) AS closed_at_exit FROM handles -json
";

#[needs_data]
#[test]
fn handles_and_leaks_are_those_of_dump_object_ref() {
    let traces = ["eventleak", "threadleak", "registry", "objectref", "filemap", "duplicates"];
    for name in traces {
        let trace = SharedTrace::open(&format!("synthetic/{name}"));
        let (home, pdbs) = (tempfile::tempdir().unwrap(), trace.pdbs());
        fs::copy(trace.etl(), home.path().join("trace.etl")).unwrap();
        let mut command = handlescope(home.path());
        command.arg("--symbol-path").arg(pdbs.path()).arg("trace.etl");
        let run = run_script(&mut command, QUESTIONS).ok();
        let [dumped, handles, leaks, count] = &documents(&run.stdout)[..] else {
            panic!("{run:?}")
        };
        assert_eq!(rows(handles), opened(dumped, false), "{name}");
        assert_eq!(rows(leaks), opened(dumped, true), "{name}");
        for member in ["leaked_handles", "closed_at_exit"] {
            assert_eq!(count["rows"][0][member], dumped["totals"][member], "{name}: {member}");
        }
    }
}

#[test]
fn the_sample_answers_the_questions_of_the_help() {
    let shell = Shell::new();
    let help = shell.run(&["-c", ".help sql"]).ok();
    let examples: Vec<&str> = help
        .stdout
        .lines()
        .filter_map(|line| line.strip_prefix("  "))
        .filter(|line| line.starts_with(".sql "))
        .collect();
    assert!(examples.len() >= 5, "{help:?}");
    let symbols = sample_symbols().to_string_lossy().into_owned();
    let script = format!(".load leaky.etl\n{}\n", examples.join("\n"));
    let run = shell.script(&["--symbol-path", &symbols], &script).ok();
    insta::assert_snapshot!(
        "the questions of the help",
        run.stdout.replace(&*shell.path("").to_string_lossy(), "")
    );
    let modules = fs::read_to_string(shell.path("modules.csv")).unwrap();
    assert!(modules.starts_with("name,base\n"), "{modules}");
    assert!(modules.contains("ntoskrnl.exe,0xFFFF"), "{modules}");
}

#[test]
fn a_script_gets_json_or_csv_and_every_row() {
    let shell = Shell::new();
    let run = shell
        .run(&[
            "leaky.etl",
            "-c",
            ".sql SELECT e.row AS r FROM events e CROSS JOIN processes p -csv",
        ])
        .ok();
    assert_eq!(run.stdout.lines().count(), 1 + 183 * 6);
    let query = ".sql SELECT id, name, lifetime_ns, leaked, opened_stack FROM handles ORDER BY id LIMIT 2 -json";
    let run = shell.run(&["leaky.etl", "-c", query]).ok();
    let document = &documents(&run.stdout)[0];
    assert_eq!(document["command"], query);
    assert_eq!(
        document["columns"],
        serde_json::json!(["id", "name", "lifetime_ns", "leaked", "opened_stack"])
    );
    assert_eq!(document["rows"][0]["id"], 1);
    assert_eq!(document["rows"][0]["leaked"], false);
    let pretty = shell.run(&["leaky.etl", "-c", &query.replace("-json", "-json-pretty")]).ok();
    assert_eq!(documents(&pretty.stdout)[0]["rows"], document["rows"]);
}

#[test]
fn people_get_the_first_thousand_rows_and_a_note() {
    let shell = Shell::new();
    let query = ".sql SELECT e.row AS r FROM events e CROSS JOIN processes p";
    let run = shell.run(&["leaky.etl", "-c", query]).ok();
    assert_eq!(run.stdout.lines().count(), 1001);
    assert!(run.stderr.contains("the first 1,000 of 1,098 rows; -json and -csv"), "{run:?}");
}

#[test]
fn a_wrong_query_is_an_error_that_a_script_sees() {
    let shell = Shell::new();
    for (query, message) in [
        ("SELECT * FROM leak", "did you mean leaks?"),
        ("SELECT zzqq FROM leaks", "column 'zzqq' not found; the columns are "),
        ("SELECT nam FROM processes", "column 'nam' not found, did you mean name?"),
        (
            "SELECT o.nme FROM objects o JOIN events e ON e.objct = o.row",
            "column 'objct' not found in 'e', did you mean object?",
        ),
        (
            "SELECT name + pid FROM processes",
            "arithmetic on text and u32 is not possible ('name' and 'pid')",
        ),
        (
            "SELECT cast(name AS int) FROM processes",
            "values of 'name' cannot be converted from text to i32",
        ),
        ("SELECT * FROM processes WHERE name", "a condition must be bool, but this is text"),
        ("SELECT * FROM processes WHERE", "expected an expression, found the end of the query"),
        ("SELECT (name FROM processes", "expected ), found FROM at line 1, column 14"),
        ("SELEKT 1", "starts with SELECT"),
        ("SELECT * FROM leaks -csv /no/such/folder/a.csv", "cannot be written"),
    ] {
        let run = shell.run(&["leaky.etl", "-c", &format!(".sql {query}")]);
        assert_eq!(run.status, Some(1), "{run:?}");
        assert!(run.stderr.contains(message), "{query}: {run:?}");
        assert_eq!(run.stdout, "", "{query}");
    }
    let nothing = shell.run(&["-c", ".sql SELECT 1"]);
    assert!(nothing.stderr.contains("no trace is loaded"), "{nothing:?}");
}

#[test]
fn several_traces_are_asked_as_one_or_by_their_names() {
    let shell = Shell::new();
    fs::copy(shell.path("leaky.etl"), shell.path("second.etl")).unwrap();
    let count = ".sql SELECT file_index, count(*) AS n FROM leaks GROUP BY file_index ORDER BY file_index -csv";
    let joined = ".sql SELECT count(*) AS n FROM leaks l JOIN stacks s ON s.row = l.opened_stack JOIN processes p ON p.row = l.process_row WHERE p.pid = l.pid AND p.file_index = l.file_index AND s.file_index = l.file_index -csv";
    let script = format!(".load leaky.etl second.etl\n{count}\n{count} -fd *second*\n{joined}\n");
    let run = shell.script(&[], &script).ok();
    assert_eq!(run.stdout, "file_index,n\n0,19\n1,19\nfile_index,n\n1,19\nn\n38\n");
}

#[test]
fn tables_and_their_columns_can_be_asked_for() {
    let shell = Shell::new();
    let asked = |query: &str| {
        let run = shell.run(&["leaky.etl", "-c", &format!(".sql {query} -csv")]).ok();
        run.stdout
    };
    assert!(asked("SHOW TABLES").contains("\nleaks\n"));
    let columns = asked("DESCRIBE leaks");
    assert!(columns.starts_with("column,type,unit,meaning\n"), "{columns}");
    assert!(
        columns.contains("\nopened_ns,i64,ns since session start,When it was opened.\n"),
        "{columns}"
    );
    let unknown = shell.run(&["leaky.etl", "-c", ".sql DESCRIBE leeks"]);
    assert_eq!(unknown.status, Some(1));
    assert!(unknown.stderr.contains("no table 'leeks', did you mean leaks?"), "{}", unknown.stderr);
}

#[test]
fn a_count_without_a_name_is_called_count() {
    let shell = Shell::new();
    let asked =
        |query: &str| shell.run(&["leaky.etl", "-c", &format!(".sql {query} -csv")]).ok().stdout;
    let by_type = asked("SELECT type, count(*) FROM leaks GROUP BY type ORDER BY type");
    assert!(by_type.starts_with("type,count\n"), "{by_type}");
    assert!(asked("SELECT count(*) AS len FROM leaks").starts_with("len\n"));
}

#[test]
fn calls_over_one_column_have_names_of_their_own() {
    let shell = Shell::new();
    let trace = handlescope_tests::binary::sample_trace();
    let header = |query: &str| {
        let command = format!(".sql {query} -csv");
        let run = shell.run(&[trace.to_str().unwrap(), "-c", &command]).ok();
        run.stdout.lines().next().map(str::to_owned)
    };
    assert_eq!(
        header("SELECT kind, min(handle), max(handle) FROM events GROUP BY kind").as_deref(),
        Some("kind,min(handle),max(handle)")
    );
    assert_eq!(
        header("SELECT min(handle), max(handle) AS last, max(handle), count(*) FROM events")
            .as_deref(),
        Some("min(handle),last,max(handle),count")
    );
    for (query, expected) in [
        ("SELECT count(DISTINCT process) FROM leaks", "count(DISTINCT process)"),
        (
            "SELECT CASE WHEN pid = 4 THEN 1 ELSE 2 END FROM processes",
            "CASE WHEN pid = 4 THEN 1 ELSE 2 END",
        ),
        ("SELECT lower(name), 'a', pid + 1 FROM processes", "lower(name),'a',pid + 1"),
        ("SELECT 1, 1", "1,1_1"),
        ("SELECT count(*), count(*) FROM leaks", "count,count_1"),
        (
            "SELECT p.pid, q.pid FROM processes p JOIN processes q ON p.pid = q.parent_pid",
            "pid,pid_1",
        ),
    ] {
        assert_eq!(header(query).as_deref(), Some(expected), "{query}");
    }
}

#[test]
fn a_text_in_double_quotes_is_explained() {
    let shell = Shell::new();
    for (condition, hint) in [
        ("LIKE \"%x%\"", "put text in single quotes: LIKE '%x%'"),
        ("= \"leaky.exe\"", "put text in single quotes: 'leaky.exe'"),
        ("LIKE type", "LIKE takes a text in single quotes, not the column type"),
    ] {
        let query = format!(".sql SELECT pid FROM leaks WHERE process {condition}");
        let run = shell.run(&["leaky.etl", "-c", &query]);
        assert!(run.status == Some(1) && run.stderr.contains(hint), "{run:?}");
    }
}

#[test]
fn aggregates_without_a_name_are_columns_of_their_own_and_sort() {
    let shell = Shell::new();
    let rows = |query: &str| {
        let run = shell.run(&["leaky.etl", "-c", &format!(".sql {query} -csv")]).ok();
        run.stdout.lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    let from = "FROM events GROUP BY kind";
    for (unnamed, named) in [
        (
            format!("SELECT kind, min(tid), max(tid) {from} ORDER BY max(tid), kind"),
            format!("SELECT kind, min(tid) AS a, max(tid) AS b {from} ORDER BY b, kind"),
        ),
        (
            format!("SELECT kind, count(*) {from} ORDER BY COUNT(*) DESC"),
            format!("SELECT kind, count(*) AS n {from} ORDER BY n DESC"),
        ),
        (
            format!("SELECT * FROM (SELECT kind, min(tid), max(tid) {from}) ORDER BY kind"),
            format!("SELECT kind, min(tid) AS a, max(tid) AS b {from} ORDER BY kind"),
        ),
        (
            "SELECT min(tid), max(tid) FROM events UNION ALL SELECT min(row), max(row) FROM events".into(),
            "SELECT min(tid) AS a, max(tid) AS b FROM events UNION ALL SELECT min(row) AS a, max(row) AS b \
             FROM events"
                .into(),
        ),
    ] {
        let rows = [unnamed.as_str(), named.as_str()].map(rows);
        assert!(rows[0].len() > 1, "{unnamed}");
        assert_eq!(rows[0], rows[1], "{unnamed}");
    }
    let run =
        shell.run(&["leaky.etl", "-c", &format!(".sql SELECT kind {from} ORDER BY count(*)")]);
    assert_eq!(run.status, Some(1));
    assert!(run.stderr.contains("not in SELECT; add it there"), "{run:?}");
}
