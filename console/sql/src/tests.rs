//! Tests answers to queries over small hand-made traces.

use std::{fs, path::Path};

use handlescope_model::tables::{AcquisitionKind, End, Event, Origin};
use handlescope_model::{Cancel, Cancelled, StackIdx};
use handlescope_symbols::{CodeAddress, FrameChain, ModuleIdentity};
use polars::prelude::{Column, DataFrame, ParquetWriter};
use polars::sql::keywords::all_functions;
use tempfile::TempDir;

use super::planner::MAX_BYTES;
use super::{MemoryLimit, Relation, SqlError, ViewError, Views, sql};
use handlescope_query::{
    AcquisitionCriteria, FrameNames,
    fixture::{
        APP, CHILD, Fixture, NewObject, OTHER, SavedTrace, With, close, create, duplicate, map,
    },
    object_ref,
};
use handlescope_render::write_frame;
use handlescope_session::filter::SystemModules;
use handlescope_session::trace::LoadedTrace;
use handlescope_session::values::{CsvText, Format};

/// Resolves no names.
struct NoNames;

impl FrameNames for NoNames {
    fn resolve(&self, requests: &[(ModuleIdentity, Vec<CodeAddress>)]) -> Vec<Vec<FrameChain>> {
        requests.iter().map(|(_, addresses)| vec![FrameChain::default(); addresses.len()]).collect()
    }
}

const UNLIMITED: MemoryLimit = MemoryLimit { most: None, end_program: |_| () };

fn loaded(fixture: Fixture) -> LoadedTrace {
    let SavedTrace { trace, .. } = fixture.save();
    LoadedTrace::new(Path::new("a.etl").into(), trace)
}

/// Creates a trace with objects of type Event.
fn trace(objects: Vec<Vec<Event>>) -> LoadedTrace {
    let mut fixture = Fixture::new();
    objects.into_iter().for_each(|events| fixture.event_object(events));
    loaded(fixture)
}

fn answer(files: &[LoadedTrace], query: &str) -> Result<DataFrame, String> {
    let files: Vec<_> = files.iter().enumerate().collect();
    sql(
        &files,
        query,
        Views::built_in(),
        UNLIMITED,
        &NoNames,
        SystemModules::usual(),
        &Cancel::default(),
    )
    .map_err(|error| error.to_string())
}

/// Returns the answer as CSV, one line per row, without the header.
fn rows(files: &[LoadedTrace], query: &str) -> Vec<String> {
    let answer = answer(files, query).expect(query);
    let mut text = Vec::new();
    write_frame(answer, Format::Csv(CsvText::Raw), &Cancel::default(), &mut text).expect("written");
    let text = String::from_utf8(text).expect("text");
    text.lines().skip(1).map(str::to_owned).collect()
}

#[test]
fn a_handle_has_its_names_and_its_end_in_its_row() {
    let mut fixture = Fixture::new();
    let closed =
        Event { closing_event: Some(handlescope_model::EventIdx(1)), ..create(APP, 1, 0xC0) };
    fixture.object(NewObject {
        name: r"\a, b",
        events: vec![closed, close(APP, 4, 0xC0)],
        ..NewObject::default()
    });
    let inherited = duplicate(OTHER, 5, 8, (APP, 4)).leaked().inherited_by(CHILD);
    fixture.object(NewObject { kind: "Key", events: vec![inherited], ..NewObject::default() });
    let files = [loaded(fixture)];
    let query = "SELECT id, type, name, origin, key, process, pid, opened_ns, ended_ns, lifetime_ns, leaked, \
                 source_process, object, row FROM handles";
    assert_eq!(
        rows(&files, query),
        [
            r#"1,Event,"\a, b",create,0xC0,app.exe,100,1000,4000,3000,false,,0,0"#,
            "2,Key,,inherit,0x8,child.exe,200,5000,,,true,app.exe,1,1",
        ]
    );
    assert_eq!(rows(&files, "SELECT id FROM leaks"), ["2"]);
}

#[test]
fn leaks_are_as_many_as_the_totals_say() {
    let mut fixture = Fixture::new();
    fixture.event_object(vec![create(APP, 1, 4).leaked(), close(OTHER, 2, 4)]);
    let view = NewObject {
        kind: "FileMapping",
        events: vec![map(APP, 1, 0x1000, 0x100).leaked()],
        ..NewObject::default()
    };
    fixture.object(view);
    let saved = fixture.save();
    let leaked = {
        let (sources, all, cancel) =
            ([saved.source()], AcquisitionCriteria::default(), Cancel::default());
        let answer = object_ref(&sources, &all, &saved, &cancel).expect("an answer");
        answer.totals().leaked_handles
    };
    let SavedTrace { trace, .. } = saved;
    let files = [LoadedTrace::new(Path::new("a.etl").into(), trace)];
    assert_eq!(rows(&files, "SELECT count(*) FROM leaks"), [leaked.to_string()]);
    assert_eq!(
        rows(&files, "SELECT type, key FROM leaks WHERE kind = 'view'"),
        ["FileMapping,0x1000"]
    );
}

#[test]
fn a_function_in_place_of_a_table_is_refused_wherever_it_stands() {
    let files = [trace(vec![vec![create(APP, 1, 4)]])];
    let folder = tempfile::tempdir().expect("a folder");
    let mut frame = Column::new("a".into(), [1]).into_frame();
    let path = folder.path().join("a.parquet");
    ParquetWriter::new(fs::File::create(&path).expect("a file")).finish(&mut frame).expect("rows");
    let places = [path.to_str().expect("text"), "*.parquet", "http://127.0.0.1:9/a", "/none"];
    let (known, refused) = (all_functions(), "FROM takes tables and views, not a function like ");
    assert!(known.contains(&"read_parquet"), "{known:?}");
    // It makes rows from an array in the query.
    for function in known.iter().filter(|function| **function != "unnest") {
        let query = format!("SELECT * FROM {function}('/none') x");
        let error = answer(&files, &query).expect_err(&query);
        assert!(error.starts_with(refused), "{query}: {error}");
    }
    let readers = known.into_iter().filter(|function| function.starts_with("read_"));
    for function in readers.chain(["READ_Parquet", "read_csv", "\"read_parquet\""]) {
        for place in places {
            let call = format!("{function}('{place}')");
            for query in [
                format!("SELECT * FROM {call}"),
                format!("SELECT *, FROM {call}"),
                format!("FROM {call}"),
                format!("SELECT * FROM events, {call}"),
                format!("SELECT * FROM events e JOIN {call} f ON e.row = f.a"),
                format!("SELECT * FROM (events CROSS JOIN {call})"),
                format!("WITH x AS (SELECT * FROM {call}) SELECT * FROM x"),
                format!("WITH x AS (SELECT 1 AS a) SELECT * FROM (SELECT * FROM {call}) y, x"),
                format!("SELECT row FROM events WHERE row IN (SELECT a FROM {call})"),
                format!("SELECT row FROM events WHERE EXISTS (SELECT 1 FROM {call})"),
                format!("SELECT (SELECT max(a) FROM {call}) AS a"),
                format!("SELECT row FROM events UNION SELECT a FROM {call}"),
                format!("SELECT row FROM events ORDER BY (SELECT a FROM {call})"),
                format!("SELECT a FROM LATERAL {call} x"),
                format!("SELECT * FROM TABLE({call})"),
                format!("EXPLAIN SELECT * FROM {call}"),
                format!("CREATE TABLE x AS SELECT * FROM {call}"),
            ] {
                let error = answer(&files, &query).expect_err(&query);
                // If polars cannot parse it, it does not read it either.
                let is_refused = error.starts_with(refused) || error.starts_with("expected ");
                assert!(is_refused, "{query}: {error}");
            }
        }
    }
}

#[test]
fn every_relation_has_the_columns_it_says() {
    let files = [trace(vec![vec![create(APP, 1, 4), close(APP, 2, 4)]])];
    for relation in Relation::all() {
        let frame = answer(&files, &format!("SELECT * FROM {}", relation.name())).expect("a frame");
        let specs = relation.columns();
        let names: Vec<&str> = specs.iter().map(|spec| &*spec.name).collect();
        let columns: Vec<&str> =
            frame.columns().iter().map(|column| column.name().as_str()).collect();
        assert_eq!(columns, names, "{}", relation.name());
        for (spec, column) in specs.iter().zip(frame.columns()) {
            let name = format!("{}.{}", relation.name(), spec.name);
            assert_eq!(column.dtype(), &spec.dtype, "{name}");
            assert!(spec.nullable || Column::null_count(column) == 0, "{name}");
            assert!(!spec.doc.trim().is_empty(), "{name}");
        }
    }
}

#[test]
fn rows_of_several_files_count_on_and_still_point_to_each_other() {
    let of = |process| trace(vec![vec![create(process, 1, 4).leaked()]]);
    let files = [of(APP), of(OTHER)];
    let joined = "SELECT e.file_index, e.row, o.row, p.name FROM events e JOIN objects o ON o.row = \
                  e.object JOIN processes p ON p.row = e.process ORDER BY e.row";
    let joined = joined.replace("o.row,", "o.row AS object,");
    assert_eq!(rows(&files, &joined), ["0,0,0,app.exe", "1,1,1,other.exe"]);
    let ids = "SELECT file_index, id, object, process FROM leaks";
    assert_eq!(rows(&files, ids), ["0,1,0,app.exe", "1,1,1,other.exe"]);
}

#[test]
fn frames_of_several_files_stay_those_of_their_stacks() {
    let of = |frame: &str| {
        let mut fixture = Fixture::new();
        let stack = fixture.stack(&["ntdll.dll+0x10", frame]);
        fixture.event_object(vec![create(APP, 1, 4).on(stack)]);
        loaded(fixture)
    };
    let files = [of("app.exe+0x1A"), of("0xFFFF")];
    let texts = "SELECT row, frames, depth, function, text FROM stacks";
    assert_eq!(
        answer(&files, texts)
            .expect("stacks")
            .column("text")
            .expect("texts")
            .str()
            .expect("text")
            .get(0),
        Some("ntdll.dll+0x10\napp.exe+0x1A")
    );
    let functions = "SELECT function FROM handles ORDER BY file_index";
    assert_eq!(rows(&files[..1], functions), ["app.exe+0x1A"]);
    assert_eq!(
        rows(&files, "SELECT row, frames, depth FROM stacks"),
        ["0,\"[0,1]\",2", "1,\"[2,3]\",2"]
    );
    let innermost = "SELECT h.file_index, s.row FROM handles h JOIN stacks s ON s.row = h.opened_stack WHERE \
                     s.text LIKE '%UnknownMethod%'";
    assert_eq!(rows(&files, innermost), ["1,1"]);
}

#[test]
fn an_address_is_written_as_everywhere_else() {
    let files = [trace(vec![vec![create(APP, 1, 0xFFFF_FFFF_FFFF_FFFF)]])];
    assert_eq!(
        rows(&files, "SELECT hex(handle), HEX(source_handle) AS none, hex(tid) AS tid FROM events"),
        ["0xFFFFFFFFFFFFFFFF,,0x7"]
    );
    let error = answer(&files, "SELECT hex(leaked) FROM events").expect_err("a flag");
    assert!(error.contains("hex takes a number"), "{error}");
    for function in ["hex", "number"] {
        let error = answer(&files, &format!("SELECT {function}('x') FROM events"));
        let expected = format!("{function} takes a number or text like 0xC0, not 'x'");
        assert!(error.as_ref().is_err_and(|error| error.contains(&expected)), "{error:?}");
    }
    let error = answer(&files, "SELECT hex(tid, tid) FROM events").expect_err("two");
    assert!(error.contains("hex takes one value"), "{error}");
}

#[test]
fn addresses_have_one_form_in_tables_and_views_and_are_compared_with_literals() {
    let mut fixture = Fixture::new();
    fixture.object(NewObject {
        events: vec![create(APP, 1, 0xC0), close(APP, 2, 0xC0)],
        ..NewObject::default()
    });
    let files = [loaded(fixture)];
    for condition in [
        "o.pointer = 0xffff810000000000",
        "o.pointer = '0xffff810000000000'",
        "o.pointer IN (0x1, 0xFFFF810000000000)",
        "h.pointer > 0xFFFF000000000000",
        "number(o.pointer) + 0x78 = number('0xFFFF810000000078')",
        "h.key = 192",
        "h.key BETWEEN 0x9 AND 0x100",
        "h.pid <> 0xFFFF",
    ] {
        let query = format!(
            "SELECT o.pointer, h.key FROM objects o JOIN handles h ON h.pointer = o.pointer \
             WHERE {condition}"
        );
        assert_eq!(rows(&files, &query), ["0xFFFF810000000000,0xC0"], "{condition}");
        let none = format!("{query} AND h.key <> 0xc0");
        assert_eq!(rows(&files, &none), [""; 0], "{condition}");
    }
    let calculated = "SELECT number(handle) + 0x10 AS n, hex(handle) AS h FROM events LIMIT 1";
    assert_eq!(rows(&files, calculated), ["208,0xC0"]);
    let error = answer(&files, "SELECT number(process) FROM handles").expect_err("a name");
    assert!(error.contains("number takes a number or text like 0xC0, not 'app.exe'"), "{error}");
    assert!(
        rows(&files, "DESCRIBE events")
            .contains(&"handle,text,hex,Handle value (handle events).".into())
    );
}

#[test]
fn rows_that_a_damaged_file_makes_up_are_unknown() {
    let stack = Some(StackIdx(77));
    let broken =
        Event { closing_event: Some(handlescope_model::EventIdx(99)), ..create(APP, 1, 4) };
    let files = [trace(vec![vec![broken.on(stack)]])];
    assert_eq!(rows(&files, "SELECT ended_ns, ended_by FROM handles"), [","]);
}

#[test]
fn a_wrong_query_is_refused_with_the_nearest_names() {
    let files = [trace(vec![vec![create(APP, 1, 4)]])];
    let error = |query| answer(&files, query).expect_err(query);
    assert!(error("SELECT * FROM leak").contains("did you mean leaks?"));
    assert!(error("SELECT typ FROM leaks").contains("did you mean type?"));
    assert!(!error("SELECT row AS a, p.row AS a FROM processes p").contains("Resolved plan"));
    assert!(error("SELECT * FROM").starts_with("expected "));
    assert!(error("SELECT 1; SELECT 2").contains("one"));
    assert_eq!(error("DROP TABLE nothing"), "table 'nothing' does not exist");
}

#[test]
fn a_shape_that_polars_gets_wrong_is_refused_with_another_way_to_write_it() {
    let files = [trace(vec![vec![create(APP, 1, 4)], vec![create(APP, 2, 8)]])];
    for (query, way) in [
        ("SELECT sum(opened_tid) OVER (ORDER BY id) FROM handles", "ROWS UNBOUNDED PRECEDING"),
        ("SELECT avg(opened_tid) OVER (ORDER BY id) FROM handles", "write sum, min, max or count"),
        ("SELECT rank() OVER (ORDER BY ended_ns) FROM handles", "WHERE ended_ns IS NOT NULL"),
        (
            "SELECT avg(utc_time(ended_ns) - utc_time(opened_ns)) FROM handles",
            "avg(ended_ns - opened_ns)",
        ),
        ("SELECT sum(1) FROM handles", "count(*)"),
        (
            "SELECT id FROM handles WHERE opened_tid = (SELECT max(opened_tid) FROM handles)",
            "CROSS JOIN",
        ),
        ("SELECT h.id FROM handles h LEFT JOIN processes p ON h.pid < p.pid", "LEFT JOIN (SELECT"),
        ("SELECT id FROM handles WHERE row_number() OVER (ORDER BY id) = 1", "in a subquery"),
        (
            "WITH leaks AS (SELECT opened_tid FROM leaks) SELECT opened_tid FROM leaks",
            "give it another name",
        ),
        ("SELECT 9223372036854775807 + opened_tid FROM handles", "CAST(… AS DOUBLE)"),
        ("SELECT regexp_matches(type, 'E') FROM handles", "did you mean regexp_like?"),
        ("SELECT id FROM handles WHERE type SIMILAR TO 'E'", "SIMILAR TO is not possible here"),
        ("SELECT id FROM handles WHERE EXISTS (SELECT 1 FROM leaks)", "EXISTS is not possible"),
    ] {
        let reason = answer(&files, query).expect_err(query);
        assert!(reason.contains(way) && !reason.contains("Span("), "{query}: {reason}");
    }
}

#[test]
fn our_functions_are_known_in_queries_inside_queries() {
    let files = [trace(vec![vec![create(APP, 1, 0xC0)], vec![create(APP, 2, 0xC4)]])];
    let queries = [
        "SELECT x FROM (SELECT hex(number(key) - 1) AS x FROM handles) AS t ORDER BY x",
        "WITH t AS (SELECT hex(number(key) - 1) AS x FROM handles) SELECT x FROM t ORDER BY x",
        "WITH t AS (SELECT number(key) AS n FROM handles), u AS (SELECT hex(n - 1) AS x FROM t) \
         SELECT a.x FROM (SELECT x FROM u) AS a ORDER BY x",
        "SELECT hex(number(key) - 1) AS x FROM handles WHERE id = 1 UNION ALL SELECT \
         hex(number(key) - 1) AS x FROM handles WHERE id = 2 ORDER BY x",
    ];
    for query in queries {
        assert_eq!(rows(&files, query), ["0xBF", "0xC3"], "{query}");
    }
}

#[test]
fn a_time_of_the_trace_becomes_a_calendar_time() {
    let file = trace(vec![vec![create(APP, 1_500_000, 4)]]);
    let files = std::slice::from_ref(&file);
    let start = "SELECT strftime(utc_time(0), '%Y-%m-%d %H:%M:%S') AS t FROM handles";
    let later = "SELECT strftime(utc_time(opened_ns), '%Y-%m-%d %H:%M:%S') AS t FROM handles";
    let of_file = later.replace("opened_ns", "opened_ns, file_index");
    assert_eq!(rows(files, start), ["2024-05-10 10:46:34"]);
    assert_eq!(rows(files, later), ["2024-05-10 10:46:36"]);
    assert_eq!(rows(files, &of_file), rows(files, later));
    let none = "SELECT id, utc_time(ended_ns) AS t FROM handles";
    assert_eq!(rows(files, none), ["1,"]);
}

#[test]
fn names_of_tables_count_in_any_case_and_slices_are_exact() {
    let files = [trace((0..9).map(|i| vec![create(APP, i, 4)]).collect())];
    assert_eq!(rows(&files, "SELECT id FROM Handles LIMIT 2 OFFSET 3"), ["4", "5"]);
    assert_eq!(rows(&files, "SELECT id FROM HANDLES LIMIT 2"), ["1", "2"]);
    assert_eq!(rows(&files, "SELECT count(*) FROM events"), ["9"]);
    assert_eq!(rows(&files, "SELECT id FROM handles WHERE id > 3 ORDER BY id DESC LIMIT 1"), ["9"]);
}

#[test]
fn a_query_ends_when_asked_to() {
    let file = trace(vec![vec![create(APP, 1, 4)]]);
    let cancel = Cancel::default();
    cancel.cancel();
    for query in ["SELECT * FROM handles", "SELECT * FROM stacks"] {
        let result = sql(
            &[(0, &file)],
            query,
            Views::built_in(),
            UNLIMITED,
            &NoNames,
            SystemModules::usual(),
            &cancel,
        );
        assert!(matches!(result, Err(SqlError::Cancelled(Cancelled))), "{query}");
    }
}

#[test]
fn a_query_is_no_longer_than_the_planner_can_bear() {
    let files = [trace(vec![vec![create(APP, 1, 4)]])];
    let chain = |count: usize| format!("SELECT {} AS x FROM leaks", vec!["type"; count].join("||"));
    assert_eq!(answer(&files, &chain(400)).expect("an answer").height(), 0);
    assert!(answer(&files, &chain(600)).expect_err("long").contains("599 ||"));
    let long = format!("SELECT 1 -- {}", " ".repeat(MAX_BYTES));
    assert!(answer(&files, &long).expect_err("long").contains("bytes, more than"));
}

fn meaning(view: &str, column: &str) -> String {
    let columns = Relation::named(view).expect(view).columns();
    columns.into_iter().find(|known| known.name == column).expect(column).doc.into_owned()
}

#[test]
fn the_words_of_views_are_those_of_the_codes() {
    for (column, words) in [
        ("kind", AcquisitionKind::ALL.map(AcquisitionKind::name).to_vec()),
        ("origin", Origin::ALL.map(Origin::name).to_vec()),
        ("end", End::ALL.map(End::name).to_vec()),
    ] {
        let meaning = meaning("acquisitions", column);
        assert!(words.iter().all(|word| meaning.contains(word)), "{meaning}");
    }
}

/// Creates a folder with views.
fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        fs::write(folder.path().join(name), text).expect(name);
    }
    folder
}

#[test]
fn views_of_the_user_are_added_or_replace_others() {
    let folder = folder(&[
        (
            "By_Type.sql",
            "-- Leaks by type.\n--\n-- n [handles]: How many.\nSELECT type, count(*) AS n FROM leaks GROUP BY type",
        ),
        ("handles.sql", "-- Without maps.\nSELECT row AS event, tid FROM events WHERE kind < 2"),
        ("notes.txt", "no view"),
    ]);
    let views = Views::with(Some(folder.path()), &Cancel::default()).expect("views");
    let file = trace(vec![vec![create(APP, 1, 4).leaked(), create(APP, 2, 8)]]);
    let ask = |query| {
        let answer = sql(
            &[(0, &file)],
            query,
            &views,
            UNLIMITED,
            &NoNames,
            SystemModules::usual(),
            &Cancel::default(),
        );
        let mut text = Vec::new();
        let answer = answer.expect(query);
        write_frame(answer, Format::Csv(CsvText::Raw), &Cancel::default(), &mut text)
            .expect("written");
        String::from_utf8(text).expect("text")
    };
    assert_eq!(ask("SELECT * FROM BY_TYPE"), "type,n\nEvent,1\n");
    assert_eq!(ask("SELECT * FROM handles"), "event,tid\n0,7\n1,7\n");
    assert_eq!(ask("WITH leaks AS (SELECT 1 AS a) SELECT * FROM leaks"), "a\n1\n");
    let described = ask("DESCRIBE by_type");
    // The column of a table or view keeps its meaning.
    let type_of = "type,text,,\"Type of the object, as in Event; for an allocation the kind.\"";
    let expected = format!("column,type,unit,meaning\n{type_of}\nn,u32,handles,How many.\n");
    assert_eq!(described, expected);
    assert!(ask("DESCRIBE handles").contains("tid,u32,,Thread that made the call.\n"));
    let names: Vec<&str> = views.relations().map(Relation::name).collect();
    assert_eq!(
        names[..7],
        [
            "acquisitions",
            "leaks",
            "handles",
            "open_handles",
            "allocations",
            "provider_values",
            "by_type"
        ]
    );
}

#[test]
fn a_view_that_cannot_be_is_named_with_its_line() {
    for (files, expected) in [
        (&[("a.sql", "-- x\n\nSELECT (type\nFROM leaks")][..], "a.sql: line 4: expected "),
        (
            &[("a.sql", "-- x\nSELECT\n typ\nFROM leaks")],
            "a.sql: line 3: column 'typ' not found, did you mean type?",
        ),
        (
            &[("a.sql", "SELECT 1 AS b\nFROM leak")],
            "a.sql: line 2: table 'leak' not found, did you mean leaks?",
        ),
        (
            &[("a.sql", "-- x\n--\n-- c: Nothing.\nSELECT 1 AS b")],
            "a.sql: line 3: the query has no column 'c'",
        ),
        (&[("a.sql", "SELECT *\nFROM a")], "a.sql: line 2: the view a refers to itself"),
        (
            &[
                ("a.sql", "SELECT *\nFROM b"),
                ("b.sql", "SELECT * FROM c"),
                ("c.sql", "\nSELECT * FROM B"),
            ],
            "refers to itself",
        ),
        (&[("events.sql", "SELECT 1 AS b")], "events.sql: line 1: events is a table; "),
        (
            &[("a b.sql", "SELECT 1 AS b")],
            "a b.sql: line 1: the file name is not a valid view name",
        ),
        (&[("a.sql", "")], "a.sql: line 1: a query is one statement"),
        (&[("a.sql", "DROP TABLE leaks")], "a.sql: line 1: "),
        (&[("a.sql", "SELECT hex(leaked) AS x FROM leaks")], "a.sql: line 1: hex takes a number"),
        (
            &[("a.sql", "SELECT objects_typ(object) AS x FROM events")],
            "a.sql: line 1: unsupported function 'objects_typ'",
        ),
    ] {
        let folder = folder(files);
        let error =
            Views::with(Some(folder.path()), &Cancel::default()).expect_err(expected).to_string();
        assert!(error.contains(expected), "{error}");
    }
    let missing = Views::with(Some(Path::new("/no/such/folder")), &Cancel::default())
        .expect_err("nothing")
        .to_string();
    assert!(missing.starts_with("/no/such/folder: the views cannot be read: "), "{missing}");
}

#[test]
fn a_query_plans_only_the_views_that_it_needs_until_it_is_cancelled() {
    let folder = folder(&[
        ("broken.sql", "SELECT nothing FROM leaks"),
        ("a.sql", "SELECT type FROM leaks"),
        ("b.sql", "SELECT type FROM a"),
    ]);
    let (cancel, file) = (Cancel::default(), trace(vec![vec![create(APP, 1, 4).leaked()]]));
    let planned = |query| Views::from_query(Some(folder.path()), query, &cancel);
    let (query, system) = ("SELECT * FROM b", SystemModules::usual());
    let views = planned(query).expect("views");
    let answer = sql(&[(0, &file)], query, &views, UNLIMITED, &NoNames, system, &cancel);
    assert_eq!(answer.expect("an answer").height(), 1);
    let error = planned("SELECT * FROM Broken").expect_err("broken").to_string();
    assert!(error.contains("broken.sql: line 1: "), "{error}");
    cancel.cancel();
    assert!(matches!(planned(query), Err(ViewError::Cancelled(_))));
}

#[test]
fn an_error_while_a_view_of_the_user_runs_names_its_file() {
    let folder = folder(&[
        ("numbers.sql", "-- Numbers.\nSELECT row,\n CAST(kind_name AS INT) AS number\nFROM events"),
        ("ORDER.sql", "SELECT row, number + 1 AS next FROM numbers"),
        ("sound.sql", "SELECT row, kind_name FROM events"),
    ]);
    let views = Views::with(Some(folder.path()), &Cancel::default()).expect("views");
    let file = trace(vec![vec![create(APP, 1, 4).leaked(), create(APP, 2, 8)]]);
    let refused = |query: &str| {
        let answer = sql(
            &[(0, &file)],
            query,
            &views,
            UNLIMITED,
            &NoNames,
            SystemModules::usual(),
            &Cancel::default(),
        );
        answer.expect_err(query).to_string()
    };
    let path = folder.path().join("numbers.sql").display().to_string();
    for query in [
        "SELECT number FROM numbers",
        "SELECT max(number) FROM Numbers WHERE row = 0",
        "SELECT next FROM \"order\"",
        "SELECT n.number FROM sound s JOIN numbers n ON n.row = s.row",
    ] {
        let reason = refused(query);
        assert!(reason.starts_with(&format!("{path}: line 3: ")), "{query}: {reason}");
        assert!(reason.contains("of 'kind_name' cannot be converted"), "{query}: {reason}");
    }
    for (query, expected) in [
        ("SELECT CAST(kind_name AS INT) FROM sound", "cannot be converted"),
        ("SELECT numbr FROM numbers", "column 'numbr' not found"),
        ("SELECT row + kind_name FROM sound", "arithmetic on"),
    ] {
        let reason = refused(query);
        assert!(reason.contains(expected) && !reason.contains(".sql"), "{query}: {reason}");
    }
}

#[test]
fn groups_of_a_joined_table_may_be_renamed() {
    let files = [trace(vec![vec![create(APP, 1, 0xC0)], vec![create(APP, 2, 0xC4)]])];
    let join = "FROM handles a JOIN handles b ON a.key = b.key";
    for (query, expected) in [
        (format!("SELECT b.type AS t, count(*) AS n {join} GROUP BY b.type"), vec!["Event,2"]),
        (
            format!(
                "SELECT count(*) AS n, b.key AS type {join} GROUP BY b.key ORDER BY b.key DESC"
            ),
            vec!["1,0xC4", "1,0xC0"],
        ),
        (
            format!(
                "SELECT b.type AS t, row_number() OVER (ORDER BY b.type) AS n {join} GROUP BY b.type"
            ),
            vec!["Event,1"],
        ),
    ] {
        assert_eq!(rows(&files, &query), expected, "{query}");
    }
}
