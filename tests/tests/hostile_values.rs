//! An extract whose tables are sound and whose values are not: rows that do not exist, slices that end
//! nowhere, times at the end of the world. Every question has an answer or an error.

use std::num::NonZero;
use std::thread;
use std::time::{Duration, Instant};

use handlescope_model::{
    ColumnSpec, ColumnType, ContainerLimits, Table, Trace, is_harmful, replace_table,
};
use handlescope_tests::binary::{Kind, Shell};
use handlescope_tests::thorough::one_of;
use polars::prelude::{BinaryChunked, Column, DataFrame, IntoColumn, NamedFrom, Series};

/// Questions that touch every table, besides every kind of `.dump` in every format.
const QUESTIONS: [&str; 23] = [
    ".dump ObjectRef -ShowStack -json",
    ".dump ObjectRef -ShowRef -Inherit -MultiProcess -ShowStack",
    ".dump ObjectRef -Leak -ShowTotal Total",
    ".dump ObjectRef -MinMaxTime 0 1 -PtrInMap 0x1 -csv out.csv",
    ".dump ObjectRef -GroupBy process,type,createstack,closestack -ShowTime 5 -ShowStack",
    ".dump ObjectRef -GroupBy module,function,thread,lifetime,name,namepattern -FoldStack a* -json",
    ".why -ShowStack -RaceWindow 1s",
    ".plot",
    ".plot open.svg -GroupBy stack",
    ".flame lost.svg",
    ".diff 0.5s -flame grown.svg",
    ".report page.html",
    ".export tables -csv",
    ".save saved.json7z -etwanalyzer",
    ".symbolize",
    ".dump Events -ShowFields -Stack",
    ".dump Events -ShowFields -Stack -json",
    ".dump Events -pn 4;app -MinMaxTime 0 1",
    ".sql SELECT * FROM provider_events e JOIN event_values v ON v.event = e.row",
    ".sql SELECT * FROM handles",
    ".sql SELECT * FROM leaks",
    ".sql SELECT * FROM stacks",
    ".sql SELECT * FROM events JOIN frames ON events.stack = frames.module -json",
];

/// The longest that all of them may take; they take some tenths of a second.
const LONGEST: Duration = Duration::from_secs(30);

fn columns<T: Clone>(name: &str, rows: usize, values: &[T]) -> Vec<Column>
where
    Series: NamedFrom<Vec<T>, [T]>,
{
    let column = |value: &T| Series::new(name.into(), vec![value.clone(); rows]).into_column();
    values.iter().map(column).collect()
}

/// Columns of a type that no sound program writes.
fn hostile(spec: &ColumnSpec, rows: usize) -> Vec<Column> {
    let name = spec.name;
    let mut columns = match spec.dtype {
        ColumnType::Bool => columns(name, rows, &[true, false]),
        ColumnType::I32 => columns(name, rows, &[i32::MIN, i32::MAX]),
        ColumnType::I64 => columns(name, rows, &[i64::MIN, i64::MAX]),
        ColumnType::U32 => columns(name, rows, &[u32::MAX, u32::MAX - 1, 1_000_000, 0]),
        ColumnType::U64 => columns(name, rows, &[u64::MAX, 0]),
        ColumnType::F64 => columns(name, rows, &[f64::NAN, f64::INFINITY, -0.0]),
        ColumnType::Bytes => {
            let values = [&b""[..], &[0xFF; 300]].map(|bytes| vec![Some(bytes); rows]);
            values.map(|values| BinaryChunked::new(name.into(), values).into_column()).into()
        }
        ColumnType::Text => columns(
            name,
            rows,
            &[String::new(), "\u{1b}[2J\n\0\u{9b}\u{7f}\u{202e}\u{2028}".repeat(20)],
        ),
        ColumnType::U32List => {
            let list = |values: &[u32]| Series::new(name.into(), values);
            let lists = [list(&[u32::MAX, 0, 1_000_000]), list(&[])];
            let column = |list: &Series| Series::new(name.into(), vec![list.clone(); rows]);
            lists.iter().map(|list| column(list).into_column()).collect()
        }
    };
    if spec.nullable {
        columns.push(Column::full_null(name.into(), rows, &spec.dtype.dtype()));
    }
    columns
}

/// What is wrong with the answers about an archive with another column in a table, if something is.
fn ask(
    shell: &Shell,
    questions: &[String],
    table: Table,
    frame: &DataFrame,
    column: Column,
) -> Option<String> {
    let value: String = format!("{:?}", column.get(0)).chars().take(50).collect();
    let what = format!("{}.{} = {value}", table.name(), column.name());
    let mut frame = frame.clone();
    frame.with_column(column).unwrap();
    let path = shell.path("bad.json7z");
    std::fs::copy(shell.path("good.json7z"), &path).unwrap();
    replace_table(&path, table, Ok(frame), &ContainerLimits::for_members_of(1 << 30)).unwrap();
    let mut arguments = vec!["--keep-going", "bad.json7z"];
    arguments.extend(questions.iter().flat_map(|question| ["-c", question]));
    let begin = Instant::now();
    let run = shell.run(&arguments);
    if run.stderr.contains("panicked") || !matches!(run.status, Some(0 | 1)) {
        return Some(format!("{what}: status {:?}, {}", run.status, run.stderr));
    }
    if begin.elapsed() > LONGEST {
        return Some(format!("{what}: takes {:?}", begin.elapsed()));
    }
    let printed = [run.stdout, run.stderr].concat();
    let acts = |character| is_harmful(character) && character != '\t';
    let line = printed.split('\n').find(|line| line.contains(acts))?;
    Some(format!("{what}: controls the terminal: {line:.100?}"))
}

/// What is wrong with the answers about archives with hostile values in these tables.
fn problems(tables: impl Iterator<Item = Table>) -> Vec<String> {
    let shell = Shell::new();
    let _ = shell.run(&["extract", "leaky.etl", "-stacks", "all", "-symbols", "-o", "."]).ok();
    std::fs::rename(shell.path("leaky.json7z"), shell.path("good.json7z")).unwrap();
    let mut questions: Vec<String> = QUESTIONS.map(str::to_owned).into();
    questions.extend(shell.kinds().iter().flat_map(Kind::in_every_format));
    let trace = Trace::open(&shell.path("good.json7z")).unwrap();
    let mut cases = Vec::new();
    for table in tables {
        let frame = trace.frame(table).unwrap();
        for spec in table.columns().iter().filter(|_| frame.height() > 0) {
            let columns = hostile(spec, frame.height()).into_iter();
            cases.extend(columns.map(|column| (table, frame.clone(), column)));
        }
    }
    let cases = cases.into_iter().step_by(one_of(32));
    cases
        .flat_map(|(table, frame, column)| ask(&shell, &questions, table, &frame, column))
        .collect()
}

#[test]
fn values_that_point_nowhere_are_answered_or_refused() {
    let workers = thread::available_parallelism().map_or(1, NonZero::get);
    let problems: Vec<String> = thread::scope(|scope| {
        let start = |worker| {
            let tables = Table::ALL.into_iter().skip(worker).step_by(workers);
            scope.spawn(move || problems(tables))
        };
        let running: Vec<_> = (0..workers).map(start).collect();
        running.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
