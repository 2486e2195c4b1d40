//! An extract with sound tables but hostile values: rows that do not exist, endless slices, extreme times. Every
//! question gets an answer or an error.

use std::num::NonZero;
use std::thread;
use std::time::{Duration, Instant};

use handlescope_model::{
    ColumnSpec, ColumnType, ContainerLimits, Table, Trace, is_harmful, replace_table,
};
use handlescope_tests::binary::{DumpKind, Shell};
use handlescope_tests::bytes::{ByteString, Guid};
use handlescope_tests::header::{ManifestEvent, Stamp};
use handlescope_tests::payload::{
    HeapCall, MEM_COMMIT, MEM_DECOMMIT, MEM_RESERVE, RangeRecord, trace_logging,
};
use handlescope_tests::scenario::TraceBuilder;
use handlescope_tests::thorough::one_of;
use polars::prelude::{BinaryChunked, Column, DataFrame, IntoColumn, NamedFrom, Series};

/// Questions that touch every table, besides every kind of `.dump` in every format.
const QUESTIONS: [&str; 34] = [
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
    ".flame lost.pb.gz",
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
    ".dump Resource",
    ".dump Resource -Leak -LeakAtExit -ShowStack -json",
    ".dump Resource -GroupBy process,kind,allocator,createstack,freestack,thread,end,size -ShowTime",
    ".dump Resource -GroupBy createstack,allocated_by -MinMaxTime 0 1 -json",
    ".dump Resource -MinMaxSize 0 9 -CreateStack a* -FreeStack b*",
    ".why",
    ".why -json",
    ".export parquet",
    ".sql SELECT * FROM acquisitions",
    ".sql SELECT * FROM allocations JOIN resource_misses ON allocations.size = resource_misses.size",
    ".sql SELECT * FROM events JOIN frames ON events.stack = frames.module -json",
];

/// The archive with allocations, and questions that cannot be answered without any.
const MEMORY: &str = "memory.json7z";
const OF_ALLOCATIONS: [&str; 8] = [
    ".plot memory.svg -Kind * -GroupBy type",
    ".flame blocks.svg -Kind *",
    ".flame blocks.pb.gz -Kind *",
    ".flame blocks.speedscope.json -Kind * -Count",
    ".diff 0.5s -Kind * -ShowStack",
    ".diff 0s 0.5s -Kind * -json",
    ".diff 0.5s -Kind * -flame grown-blocks.svg",
    ".report memory.html -Type heap;commit;reserve -CreateStack *",
];

const MS: i64 = 1_000_000;

/// Minimum step through the cases, even in thorough mode; all of them would take a quarter of an hour.
const MIN_STEP: usize = 4;

/// Maximum time for all questions together; they take some tenths of a second.
const MAX_DURATION: Duration = Duration::from_secs(30);

fn columns<T: Clone>(name: &str, rows: usize, values: &[T]) -> Vec<Column>
where
    Series: NamedFrom<Vec<T>, [T]>,
{
    let column = |value: &T| Series::new(name.into(), vec![value.clone(); rows]).into_column();
    values.iter().map(column).collect()
}

/// Returns a column of two alternating values.
fn turns<T: Clone>(name: &str, rows: usize, values: [T; 2]) -> Column
where
    Series: NamedFrom<Vec<T>, [T]>,
{
    let values: Vec<T> = values.into_iter().cycle().take(rows).collect();
    Series::new(name.into(), values).into_column()
}

/// Returns columns of a type with values that no sound program writes.
fn hostile(spec: &ColumnSpec, rows: usize) -> Vec<Column> {
    let name = spec.name;
    let mut columns = match spec.dtype {
        ColumnType::Bool => columns(name, rows, &[true, false]),
        ColumnType::I32 => columns(name, rows, &[i32::MIN, i32::MAX]),
        ColumnType::I64 => {
            let mut columns = columns(name, rows, &[i64::MIN, i64::MAX]);
            columns.push(turns(name, rows, [i64::MIN, i64::MAX]));
            columns
        }
        ColumnType::U32 => {
            let mut columns = columns(name, rows, &[u32::MAX, u32::MAX - 1, 1_000_000, 0]);
            // Row numbers in circles: through all rows, and between two of them.
            let next: Vec<u32> = (1..rows as u32).chain([0]).collect();
            columns.push(Series::new(name.into(), next).into_column());
            columns.push(turns(name, rows, [1, 0]));
            columns
        }
        ColumnType::U64 => {
            let mut columns = columns(name, rows, &[u64::MAX, 0]);
            columns.push(turns(name, rows, [u64::MAX, 0]));
            columns
        }
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

/// Columns that replace the sound ones in a table of this archive.
struct HostileCase<'a> {
    archive: &'a str,
    table: Table,
    frame: DataFrame,
    columns: Vec<Column>,
}

impl HostileCase<'_> {
    fn what(&self) -> String {
        let columns = self.columns.iter().map(|column| {
            let value: String = format!("{:?}", column.get(0)).chars().take(50).collect();
            format!("{} = {value}", column.name())
        });
        let columns: Vec<String> = columns.collect();
        format!("{} {}: {}", self.archive, self.table.name(), columns.join(", "))
    }
}

/// Asks about an archive with replaced columns; returns the problem with the answers, if any.
fn ask(shell: &Shell, questions: &[String], case: HostileCase<'_>) -> Option<String> {
    let what = case.what();
    let HostileCase { archive, table, mut frame, columns } = case;
    for column in columns {
        frame.with_column(column).unwrap();
    }
    let path = shell.path("bad.json7z");
    std::fs::copy(shell.path(archive), &path).unwrap();
    replace_table(&path, table, Ok(frame), &ContainerLimits::for_members_of(1 << 30)).unwrap();
    let mut arguments = vec!["--keep-going", "bad.json7z"];
    arguments.extend(questions.iter().flat_map(|question| ["-c", question]));
    let begin = Instant::now();
    let run = shell.run(&arguments);
    let is_bug = ["panicked", "is a bug in"].iter().any(|text| run.stderr.contains(text));
    if is_bug || !matches!(run.status, Some(0 | 1)) {
        return Some(format!("{what}: status {:?}, {}", run.status, run.stderr));
    }
    if begin.elapsed() > MAX_DURATION {
        return Some(format!("{what}: takes {:?}", begin.elapsed()));
    }
    let printed = [run.stdout, run.stderr].concat();
    let acts = |character| is_harmful(character) && character != '\t';
    let line = printed.split('\n').find(|line| line.contains(acts))?;
    Some(format!("{what}: controls the terminal: {line:.100?}"))
}

/// Builds a trace with the kinds of allocations that the sample lacks: blocks that grew, pages in parts, and resources
/// acquired by events. Each has a stack; some stay open, some are freed, some are freed twice.
fn allocations() -> TraceBuilder {
    let mut trace = TraceBuilder::new();
    trace.process(700, "app.exe");
    trace.process(800, "short.exe").ended(980 * MS);
    trace.module(700, r"C:\app\app.exe", 0x1_0000_0000, 0x10_0000);
    trace.object_type(16, "Event");
    let caller = (700, 701);
    for number in 1..20_u64 {
        let (ns, at) = (number as i64 * 50 * MS, number << 16);
        let stack = [0x1_0000_1000 + number % 3 * 16];
        let old_address = (number - 1) << 16;
        trace.create_handle(ns, caller, 0xFFFF_8100_0000_0000 + at, number as u32 * 4, 16);
        trace.stack(&[], &stack);
        trace.heap(
            ns,
            caller,
            1,
            HeapCall::ReAlloc { address: at, old_address, size: number, old_size: 0 },
        );
        trace.stack(&[], &stack);
        trace.heap(ns, (800, 801), at, HeapCall::Create).stack(&[], &stack);
        trace.heap(ns + 1, (800, 801), at, HeapCall::Alloc { address: at, size: 9 });
        trace.stack(&[], &stack);
        let mut range = RangeRecord { base: at, size: 0x4000, pid: 700, flags: MEM_RESERVE };
        trace.virtual_alloc(ns, (800, 801), range).stack(&[], &stack);
        range.flags = MEM_COMMIT;
        trace.virtual_alloc(ns + 1, caller, range).stack(&[], &stack);
        let part = RangeRecord { base: at + 0x1000, size: 0x1000, flags: MEM_DECOMMIT, ..range };
        trace.virtual_free(ns + 2, caller, part).stack(&[], &stack);
        for (ns, name) in
            [(ns, "AcquireResource"), (ns + 1, "ReleaseResource"), (ns + 2, "ReleaseResource")]
        {
            let provider = Guid::new(0x11111111_0000_0000_0000_000000000001);
            let stamp = Stamp::new(trace.options().raw(ns), 700, 701);
            let items = trace_logging(name, b"Handle\0\x0aSize\0\x09", "Contoso");
            let payload = ByteString::new().u64(number).u64(number).into_vec();
            let event =
                ManifestEvent { provider, stamp, items, payload, ..ManifestEvent::default() };
            trace.raw_event(ns, 0, event.encode());
        }
    }
    trace
}

/// Returns hostile values for each column of a table alone, and for all columns together.
fn cases<'a>(archive: &'a str, trace: &Trace, table: Table) -> Vec<HostileCase<'a>> {
    let frame = trace.frame(table).unwrap();
    if frame.height() == 0 {
        return Vec::new();
    }
    let values: Vec<Vec<Column>> =
        table.columns().iter().map(|spec| hostile(spec, frame.height())).collect();
    let alone = values.iter().flatten().map(|column| vec![column.clone()]);
    let most = values.iter().map(Vec::len).max().unwrap_or_default();
    let nth = |at: usize| values.iter().map(|own| own[at % own.len()].clone()).collect();
    let case = |columns| HostileCase { archive, table, frame: frame.clone(), columns };
    alone.chain((0..most).map(nth)).map(case).collect()
}

/// Returns the problems with answers about archives with hostile values in these tables.
fn problems(tables: impl Iterator<Item = Table>) -> Vec<String> {
    let shell = Shell::new();
    allocations().write(shell.path("memory.etl")).unwrap();
    for etl in ["leaky.etl", "memory.etl"] {
        let _ = shell.run(&["extract", etl, "-stacks", "all", "-symbols", "-o", "."]).ok();
    }
    let mut questions: Vec<String> = QUESTIONS.map(str::to_owned).into();
    questions.extend(shell.kinds().iter().flat_map(DumpKind::in_every_format));
    let of_allocations = OF_ALLOCATIONS.map(str::to_owned).into_iter().chain(questions.clone());
    let (of_allocations, all) = (of_allocations.collect::<Vec<String>>(), questions);
    let questions = |archive: &str| if archive == MEMORY { &of_allocations } else { &all };
    let archives = ["leaky.json7z", MEMORY];
    for archive in archives {
        // Sound archives answer each question, so any failure is due to the values.
        let mut arguments = vec![archive];
        arguments.extend(questions(archive).iter().flat_map(|question| ["-c", question]));
        let _ = shell.run(&arguments).ok();
    }
    let traces = archives.map(|name| (name, Trace::open(&shell.path(name)).unwrap()));
    let traces = &traces;
    let of_table = |table| traces.iter().flat_map(move |(name, trace)| cases(name, trace, table));
    let cases: Vec<HostileCase<'_>> = tables.flat_map(of_table).collect();
    let cases = cases.into_iter().step_by(one_of(32).max(MIN_STEP));
    cases.flat_map(|case| ask(&shell, questions(case.archive), case)).collect()
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
