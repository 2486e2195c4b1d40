//! Tests of lines and their meanings.

use super::{
    REGISTRY,
    tests::{args, error, meaning, shared},
};
use crate::{
    dump::{object_ref::ObjectRefArgs, process::ProcessArgs, resource::ResourceArgs},
    shared::symbols::SymbolArgs,
    sympath::SymbolPathArgs,
};
use handlescope_query::{AcquisitionCriteria, CountBy, Criterion, MapMode, ProcessCriteria};
use handlescope_render as render;
use handlescope_session::filter::{Filter, ProcessFilter};
use handlescope_session::settings::StackDisplayArgs;
use handlescope_session::trace::LoadArgs;
use handlescope_session::values::{
    CountRange, CsvText, Format, JsonMode, SuspectId, TimeRange, TopN,
};
use std::collections::BTreeSet;

fn object_ref(options: &str) -> AcquisitionCriteria {
    args::<ObjectRefArgs>(&format!(".dump ObjectRef {options}")).criteria
}

fn filter(text: &str) -> Option<Filter> {
    Some(Filter::new(text).expect("a filter"))
}

fn processes(text: &str) -> Option<ProcessFilter> {
    Some(ProcessFilter::new(text).expect("a filter"))
}

#[test]
fn empty_lines_and_comments_are_no_commands() {
    for line in ["", "  \t", "# .dump ObjectRef", "  #x"] {
        assert!(REGISTRY.parse(line).is_ok_and(|command| command.is_none()), "{line}");
    }
}

#[test]
fn commands_go_by_all_their_names_in_any_case() {
    assert_eq!(
        args::<LoadArgs>(".LOAD a.etl \"b c.etl\""),
        LoadArgs::replacing(vec!["a.etl".into(), "b c.etl".into()])
    );
    args::<()>(" .list ");
    assert_eq!(args::<Vec<String>>(".unload"), Vec::<String>::new());
    for line in [".quit", ".q", ".EXIT", "q"] {
        args::<()>(line);
    }
    for line in [".help", "help", "?", ".?"] {
        assert_eq!(meaning(line), meaning(".help"));
    }
    let help = "Some(Invocation { call: help on ObjectRef, destination: Usual })";
    assert_eq!(meaning(".help .dump objectref"), help);
}

#[test]
fn a_symbol_path_takes_the_rest_of_the_line() {
    for (line, expected) in [
        (".sympath", None),
        (".sympath C:\\a;srv*b*https://x", Some("C:\\a;srv*b*https://x")),
        (".sympath C:\\my symbols;cache*C:\\c ", Some("C:\\my symbols;cache*C:\\c")),
        (".sympath \"C:\\my symbols\"", Some("C:\\my symbols")),
    ] {
        let symbols = SymbolArgs { path: expected.map(str::to_owned), ..SymbolArgs::default() };
        let args = SymbolPathArgs { symbols, retry: false };
        assert_eq!(super::tests::args::<SymbolPathArgs>(line), args, "{line}");
    }
}

#[test]
fn every_option_of_object_ref_fills_its_field() {
    let none = AcquisitionCriteria::default;
    let stacks = |show, address| StackDisplayArgs { show, address, line: false };
    let by_name = |name| AcquisitionCriteria {
        creator: ProcessCriteria { name: processes(name), ..ProcessCriteria::default() },
        ..none()
    };
    for (options, expected) in [
        ("", none()),
        ("-pn a", by_name("a")),
        ("-PROCESSNAME a;!4", by_name("a;!4")),
        ("-RelatedProcess a", AcquisitionCriteria { related_process: processes("a"), ..none() }),
        ("-ObjectName \"*a b*\"", AcquisitionCriteria { object_name: filter("*a b*"), ..none() }),
        ("-type !Event", AcquisitionCriteria { object_type: filter("!Event"), ..none() }),
        ("-Handle 0xC0", AcquisitionCriteria { handle: filter("0xC0"), ..none() }),
        ("-Object *6290", AcquisitionCriteria { object: filter("*6290"), ..none() }),
        ("-leak", AcquisitionCriteria { leak: true, ..none() }),
        ("-Suspect 3F2a", AcquisitionCriteria { suspect: SuspectId::new("3f2a").ok(), ..none() }),
        ("-ss", AcquisitionCriteria { stacks: stacks(true, false), ..none() }),
        ("-ShowStack", AcquisitionCriteria { stacks: stacks(true, false), ..none() }),
        ("-CreateStack *a*", AcquisitionCriteria { create_stack: filter("*a*"), ..none() }),
        ("-DestroyStack *a*", AcquisitionCriteria { destroy_stack: filter("*a*"), ..none() }),
        ("-StackFilter *a*", AcquisitionCriteria { stack_filter: filter("*a*"), ..none() }),
        ("-sf *a*", AcquisitionCriteria { stack_filter: filter("*a*"), ..none() }),
        (
            "-MinMaxTime -1 2.5",
            AcquisitionCriteria {
                time: Some(TimeRange { min_ns: -1_000_000_000, max_ns: 2_500_000_000 }),
                ..none()
            },
        ),
        (
            "-MinMaxDuration 9999",
            AcquisitionCriteria {
                duration: Some(TimeRange { min_ns: 9_999_000_000_000, max_ns: i64::MAX }),
                ..none()
            },
        ),
        (
            "-MinMaxId 5",
            AcquisitionCriteria { ids: Some(CountRange { min: 5, max: u64::MAX }), ..none() },
        ),
        ("-Map 0", AcquisitionCriteria { map: Some(MapMode::Objects), ..none() }),
        ("-Map 1", AcquisitionCriteria { map: Some(MapMode::Mappings), ..none() }),
        ("-PtrInMap 0x2A", AcquisitionCriteria { ptr_in_map: Some(42), ..none() }),
        ("-ViewBase 0x2A*", AcquisitionCriteria { view_base: filter("0x2A*"), ..none() }),
        (
            "-MinMaxMapSize 4KiB 1MB",
            AcquisitionCriteria {
                map_size: Some(CountRange { min: 4096, max: 1_000_000 }),
                ..none()
            },
        ),
        ("-MultiProcess", AcquisitionCriteria { multi_process: true, ..none() }),
        ("-Overlapped", AcquisitionCriteria { overlapped: true, ..none() }),
        ("-Inherit", AcquisitionCriteria { inherit: true, ..none() }),
        ("-ShowRef", AcquisitionCriteria { show_ref: true, ..none() }),
        ("-ShowTarget", AcquisitionCriteria { show_target: true, ..none() }),
        ("-ShowTotal total", AcquisitionCriteria { count_by: Some(CountBy::Type), ..none() }),
        ("-ShowTotal", AcquisitionCriteria { count_by: Some(CountBy::Type), ..none() }),
        ("-ShowTotal Process", AcquisitionCriteria { count_by: Some(CountBy::Process), ..none() }),
        ("-ShowTotal None", AcquisitionCriteria { without_totals: true, ..none() }),
        ("-TopN 5", AcquisitionCriteria { top: Some(TopN { take: 5, skip: 0 }), ..none() }),
        ("-TopN 5 2", AcquisitionCriteria { top: Some(TopN { take: 5, skip: 2 }), ..none() }),
        ("-ShowAddress", AcquisitionCriteria { stacks: stacks(false, true), ..none() }),
    ] {
        assert_eq!(object_ref(options), expected, "{options}");
    }
    for (options, mode) in [("-json", JsonMode::Lines), ("-json-pretty", JsonMode::Pretty)] {
        assert_eq!(
            shared(&format!(".dump ObjectRef {options}")).output.format(),
            Format::Json(mode)
        );
    }
}

#[test]
fn options_combine_and_the_last_of_two_counts() {
    let args = object_ref("-TopN 5 -ShowTotal Total -Leak -TopN 3 -pn -5");
    assert_eq!(args.top, Some(TopN { take: 3, skip: 0 }));
    assert_eq!(args.count_by, Some(CountBy::Type));
    assert!(args.leak);
    assert_eq!(args.creator.name, processes("-5"));
}

#[test]
fn a_criterion_is_named_after_the_option_that_gives_it() {
    let mut named = BTreeSet::new();
    for kind in ["ObjectRef", "Resource"] {
        for option in REGISTRY.kind(kind).expect("a kind").options() {
            let example = option.doc().example;
            let criteria = match kind {
                "ObjectRef" => object_ref(example),
                _ => args::<ResourceArgs>(&format!(".dump Resource {example}")).criteria,
            };
            for criterion in Criterion::all_of(&criteria) {
                let name = render::option(criterion);
                assert!(example.split(' ').any(|word| word == name), "{name} in {example}");
                named.extend(option.is_named(name).then_some(name));
            }
        }
    }
    assert_eq!(named.len(), Criterion::option_count(), "every criterion has an option");
}

#[test]
fn an_answer_goes_into_one_file() {
    for kind in ["ObjectRef", "Process"] {
        for option in ["-csv a.csv", "-parquet a.parquet"] {
            let name = option.split(' ').next().unwrap_or_default();
            let text = error(&format!(".dump {kind} {option} > b"));
            assert!(text.contains(&format!("{name} and > FILE cannot be combined")), "{text}");
        }
        let text = error(&format!(".dump {kind} -csv -ndjson"));
        assert!(text.contains("choose one"), "{text}");
    }
}

#[test]
fn the_extension_of_a_file_chooses_the_format_unless_an_option_does() {
    let json = Format::Json(JsonMode::Lines);
    let csv = Format::Csv(CsvText::Harmless);
    for command in [".dump Process", ".dump ObjectRef", ".why", ".diff 0.5s", ".sql SELECT 1"] {
        for (end, format) in [
            ("> a.csv", csv),
            (">> a.csv", csv),
            ("-csvraw > A.CSV", Format::Csv(CsvText::Raw)),
            ("> a.json", json),
            ("-json-pretty > a.json -Force", Format::Json(JsonMode::Pretty)),
            ("> \"b c/a.ndjson\"", Format::NdJson),
            ("> a.parquet", Format::Parquet),
            ("> a.txt", Format::Text),
            ("-csv > a.txt", csv),
            ("-ndjson > ./a", Format::NdJson),
        ] {
            let line = format!("{command} {end}");
            assert_eq!(shared(&line).output.format(), format, "{line}");
        }
    }
}

#[test]
fn a_file_that_is_named_as_another_format_is_refused() {
    for (line, reason) in [
        (".why -json > a.csv", "-json writes JSON, but a.csv is a name for CSV; name it a.json"),
        (".sql SELECT 1 -csv >> b/a.parquet", "is a name for Parquet; name it b/a.csv"),
        (".dump Process -csv a.json", "-csv writes CSV, but a.json is a name for JSON"),
        (".dump ObjectRef -parquet a.csv", "-parquet writes Parquet, but a.csv"),
        (".why >> a.parquet", "a Parquet file holds one answer; use > or >> a.ndjson"),
        (".diff >> a.json", "a JSON file holds one answer; use > or >> a.ndjson"),
        (".list > a.parquet", "but a.parquet is a name for Parquet; name it a.txt"),
        (".dump ObjectRef -ShowTotal > a.csv", "> FILE.csv and -ShowTotal cannot be combined"),
        (".why -Format junit > a.json", "-Format and > FILE.json cannot be combined"),
        (".why -Format sarif -json > a.json", "-Format and -json cannot be combined"),
        (".diff -flame a.svg > a.csv", "-flame and > FILE.csv cannot be combined"),
    ] {
        let text = error(line);
        assert!(text.contains(reason), "{line}: {text}");
    }
    REGISTRY.parse(".why -Format sarif > a.json").expect("SARIF is JSON");
}

#[test]
fn the_kind_may_stand_anywhere_and_the_line_is_kept() {
    for line in [
        ".dump ObjectRef -Leak -pn Process",
        ".DUMP -leak OBJECTREF -pn Process",
        ".dump -Leak -pn Process ObjectRef",
    ] {
        let args = args::<ObjectRefArgs>(line).criteria;
        assert!(args.leak && args.creator.name == processes("Process"), "{line}");
        assert_eq!(shared(line).text, line);
    }
    let line = " .dump process -pn a -json ";
    assert_eq!(shared(line).text, ".dump process -pn a -json");
    assert_eq!(shared(line).output.format(), Format::Json(JsonMode::Lines));
    assert_eq!(args::<ProcessArgs>(line).criteria.processes.name, processes("a"));
}

#[test]
fn an_unknown_option_names_itself_the_nearest_and_what_that_does() {
    assert_eq!(
        error(".dump ObjectRef -Laek"),
        "unknown option -Laek, did you mean -Leak?\n  -Leak  only handles that were opened and never closed"
    );
    assert_eq!(
        error(".dump ObjectRef -Foo"),
        "unknown option -Foo; .help ObjectRef lists the options"
    );
    assert_eq!(
        error(".dump Process -Leak"),
        "-Leak is an option of .dump ObjectRef, .dump Resource, .plot and .flame, not of .dump Process"
    );
    assert_eq!(
        error(".dump ObjectRef Leak"),
        "unexpected 'Leak', did you mean -Leak?\n  -Leak  only handles that were opened and never closed"
    );
}

#[test]
fn a_bad_value_names_its_option_and_what_that_takes() {
    assert_eq!(
        error(".dump ObjectRef -ShowTotal Totl"),
        "-ShowTotal: 'Totl' is not one of Total, Process, File, Method, None, did you mean Total?\n  \
         -ShowTotal [Total|…]  count open or leaked handles: Total (the default), Process, File, Method or None"
    );
    assert_eq!(
        error(".dump ObjectRef -MinMaxTime 0,5"),
        "-MinMaxTime: '0,5' is not a number (write 0.5 with a point, without separators)\n  \
         -MinMaxTime SECONDS [MAX]  only events in this time range, since session start"
    );
    assert_eq!(
        error(".dump ObjectRef -handle -Leak"),
        "-handle needs a value\n  -Handle FILTER  only events of this handle value; no mappings"
    );
    assert_eq!(
        error(".why -RaceWindow -5"),
        "-RaceWindow: '-5' is negative; write 0 or more, as in 500us\n  \
         -RaceWindow SECONDS  maximum time between two opens of a race"
    );
    assert!(
        error(".dump ObjectRef -TopN abc").starts_with("-TopN: 'abc' is not a whole number; write")
    );
    for line in [".dump ObjectRef -Type Thread;;!", ".why -pn !", ".dump Process -pn a;!;b"] {
        assert!(error(line).contains("has a ! without a name; write what to exclude"), "{line}");
    }
    // An empty part between two ; is ignored, as in ETWAnalyzer, and some objects have no name.
    for line in [".dump ObjectRef -Type Thread;;!Event;", ".dump ObjectRef -ObjectName !"] {
        assert!(REGISTRY.parse(line).is_ok(), "{line}");
    }
    // An optional maximum is a number, so other words are left alone.
    assert!(REGISTRY.parse(".dump -MinMaxTime 1 ObjectRef").is_ok());
    assert!(
        error(".dump ObjectRef -MinMaxTime 1 2x")
            .starts_with("-MinMaxTime: '2x' is not a valid time")
    );
}

#[test]
fn an_option_of_other_commands_is_answered_with_these() {
    for (line, expected) in [
        (
            ".why -Leak",
            "-Leak is an option of .dump ObjectRef, .dump Resource, .plot and .flame, not of .why",
        ),
        (".dump ObjectRef -MinLeaked 3", "-MinLeaked is an option of .why, not of .dump ObjectRef"),
        (".dump -RaceWindow 1ms Process", "-RaceWindow is an option of .why, not of .dump Process"),
        (
            ".dump Module -ShowStack",
            "-ShowStack is an option of .dump ObjectRef, .dump Resource, .dump Stack and 2 more, \
             not of .dump Module",
        ),
    ] {
        assert_eq!(error(line), expected);
    }
    let without_effect = error(".dump Process -ShowUsr");
    assert!(!without_effect.contains("-ShowUser"), "{without_effect}");
}

#[test]
fn an_unknown_command_or_kind_names_the_nearest() {
    let kinds: Vec<_> = REGISTRY.kinds().map(|kind| kind.name()).collect();
    let kinds = kinds.join(", ");
    for (line, expected) in [
        (".lod x", "unknown command .lod, did you mean .load?"),
        ("dumb ObjectRef", "unknown command dumb, did you mean .dump?"),
        ("ObjectRef", "unknown command ObjectRef, did you mean .dump ObjectRef?"),
        ("select pid FROM leaks", "unknown command select, did you mean .sql select?"),
        (".dump Process >", "> needs a file name"),
        (".list >>", ">> needs a file name"),
        ("xyzzy", "unknown command xyzzy; .help lists them"),
        (".dump", ".dump needs a kind, as in .dump ObjectRef; the kinds are KINDS"),
        (".dump -pn Process", ".dump needs a kind, as in .dump ObjectRef; the kinds are KINDS"),
        (".dump -Leak", ".dump needs a kind, as in .dump ObjectRef -Leak; the kinds are KINDS"),
        (".dump Object", ".dump has no kind 'Object', did you mean ObjectRef? The kinds are KINDS"),
        (
            ".dump VirtualAlloc",
            ".dump has no kind 'VirtualAlloc'; .dump Resource lists allocations, including \
             VirtualAlloc; the kinds are KINDS",
        ),
        (
            ".dump cpu",
            ".dump has no kind 'cpu'; CPU is not about handles; use ETWAnalyzer or Windows \
             Performance Analyzer; the kinds are KINDS",
        ),
        (
            ".dump leak",
            ".dump has no kind 'leak', did you mean .dump ObjectRef -Leak? The kinds are KINDS",
        ),
        (".why |", "| needs a program, as in | sort"),
        (".why > a.txt | sort", "> FILE and | PROGRAM cannot be combined: choose one"),
        (".dump Process -csv a.csv | sort", "-csv and | PROGRAM cannot be combined: choose one"),
        (".load", ".load needs at least one file, folder or pattern; .unload empties the session"),
        (".quit now", ".quit takes no argument; unexpected 'now'"),
    ] {
        assert_eq!(error(line), expected.replace("KINDS", &kinds));
    }
}

#[test]
fn help_behind_a_command_is_its_page() {
    for (line, topic) in [
        (".load -help", ".load"),
        (".load a.etl -HELP", ".load"),
        (".dump ObjectRef -Leak -help", "ObjectRef"),
        (".dump -help", ".dump"),
        (".sql -help", ".sql"),
        (".clip -help", ".clip"),
    ] {
        let command = REGISTRY.parse(line).expect("a page").expect("a command");
        let page = REGISTRY.parse(&format!(".help {topic}")).expect("a page").expect("a command");
        assert_eq!(format!("{command:?}"), format!("{page:?}"), "{line}");
    }
}
