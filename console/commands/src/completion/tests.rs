//! Tests of the suggestions at every position.

use super::*;
use crate::registry::REGISTRY;
use handlescope_session::values::{FORMATS, FormatSpec};

fn offered(head: &str) -> Vec<String> {
    let loaded = vec!["/t/leaky.etl".into(), "/t/my trace.etl".into()];
    let snapshots = vec!["warm".into(), "after login".into()];
    let known = CompletionValues { loaded, snapshots, ..CompletionValues::default() };
    complete(head, &known).into_iter().map(|suggestion| suggestion.value).collect()
}

#[test]
fn commands_are_offered_first_and_a_forgotten_dot_is_added() {
    assert_eq!(offered("").len(), REGISTRY.commands().count());
    assert_eq!(offered(".l"), [".load", ".load+", ".list"]);
    assert_eq!(offered(".DU"), [".dump"]);
    assert_eq!(offered("du"), [".dump"]);
    assert_eq!(offered(".ex"), [".extract", ".export", ".exit"]);
    assert_eq!(offered(".nonsense "), Vec::<String>::new());
    assert_eq!(offered(".quit "), Vec::<String>::new());
}

/// Returns suggestions with the aliases `.leaks` and `.of`.
fn with_aliases(head: &str) -> Vec<Suggestion> {
    let mut known = CompletionValues::default();
    for (name, line) in [("leaks", ".dump ObjectRef -Leak"), ("of", ".leaks -ShowTotal")] {
        known.aliases.define(name, line, |_| false).expect("an alias");
    }
    complete(head, &known)
}

#[test]
fn an_alias_is_offered_as_commands_are_and_completed_as_what_it_stands_for() {
    let values = |head: &str| -> Vec<String> {
        with_aliases(head).into_iter().map(|suggestion| suggestion.value).collect()
    };
    assert_eq!(values(".lea"), [".leaks"]);
    assert_eq!(values("lea"), [".leaks"]);
    assert_eq!(values(".leaks -LeakA"), ["-LeakAtExit"]);
    assert_eq!(values(".of p"), ["Process"]);
    assert_eq!(values(".help lea"), ["leaks"]);
    assert_eq!(values(".alias -Remove l"), ["leaks"]);
    assert_eq!(values(".alias x = .dump Obj"), ["ObjectRef"]);
    assert_eq!(values(".alias x=.le"), Vec::<String>::new(), "still the name");
    for (head, start) in [("  .leaks -Typ", 9), (".alias x = .dump Obj", 17)] {
        let [suggestion] = &with_aliases(head)[..] else { panic!("{head}") };
        assert_eq!(suggestion.span, Span::new(start, head.len()), "{head}");
    }
}

#[test]
fn settings_and_their_values_are_offered() {
    assert_eq!(offered(".config t"), ["time-format", "time-digits"]);
    assert_eq!(offered(".config color "), ["auto", "always", "never", "usual"]);
    assert_eq!(offered(".config nonsense "), Vec::<String>::new());
}

/// Returns the words that can follow `.dump`.
fn kinds() -> Vec<&'static str> {
    REGISTRY.kinds().map(|kind| kind.name()).collect()
}

#[test]
fn kinds_come_after_dump_and_options_after_the_kind() {
    assert_eq!(offered(".dump "), kinds());
    assert_eq!(offered(".dump obj"), ["ObjectRef"]);
    assert_eq!(
        offered(".dump ObjectRef -show"),
        [
            "-ShowStack",
            "-ShowAddress",
            "-ShowLine",
            "-ShowTotal",
            "-ShowTime",
            "-ShowRef",
            "-ShowTarget",
            "-ShowFullFileName"
        ]
    );
    assert_eq!(offered(".dump ObjectRef -pn"), ["-pn"]);
    let formats = FORMATS.map(FormatSpec::option_name);
    let rows = ["-Properties", "-TopN", "-SortBy", "-Columns", "-filedir"];
    assert_eq!(offered(".dump Stats -"), [&rows, &formats[..], &["-csvraw", "-Force"]].concat());
    assert_eq!(offered(".dump -Lea"), ["-Leak", "-LeakAtExit"]);
    assert_eq!(offered(".dump -json"), ["-json", "-json-pretty"]);
    assert_eq!(offered(".dump -Leak "), kinds());
}

#[test]
fn words_of_a_list_are_offered_behind_each_comma_once() {
    assert_eq!(offered(".dump ObjectRef -GroupBy p"), ["process"]);
    assert_eq!(offered(".dump ObjectRef -GroupBy process,ty"), ["process,type"]);
    assert!(offered(".dump ObjectRef -GroupBy process,p").is_empty());
}

#[test]
fn columns_are_offered_behind_sort_by() {
    let objects = ["id", "type", "name", "lifetime", "created", "events"];
    assert_eq!(offered(".dump ObjectRef -SortBy "), objects);
    assert_eq!(offered(".dump Process -SortBy PI"), ["pid"]);
    for kind in REGISTRY.kinds() {
        let columns = offered(&format!(".dump {} -TopN 1 -SortBy ", kind.name()));
        assert!(!columns.is_empty(), "{}", kind.name());
    }
}

#[test]
fn columns_are_offered_behind_each_comma_once() {
    assert_eq!(
        offered(".dump Resource -Columns kind,alloc"),
        ["kind,allocator", "kind,allocs", "kind,alloc_bytes", "kind,allocated_by"]
    );
    assert_eq!(offered(".dump ObjectRef -Columns share,s"), ["share,sample_ids"]);
    assert_eq!(offered(".dump Process -Columns al"), ["all"]);
    for kind in REGISTRY.kinds() {
        let columns = offered(&format!(".dump {} -Columns ", kind.name()));
        assert!(columns.len() > 1 && columns.ends_with(&["all".to_owned()]), "{}", kind.name());
    }
}

#[test]
fn options_of_commands_are_offered_and_their_values() {
    assert_eq!(offered(".extract a.etl -noo"), ["-NoOverwrite"]);
    assert_eq!(offered(".converttime "), ["-time", "-filedir"]);
    assert_eq!(offered(".converttime -time "), Vec::<String>::new());
    assert_eq!(offered(".converttime -fd "), ["leaky.etl", "\"my trace.etl\""]);
}

#[test]
fn an_option_is_offered_once_and_found_by_a_part_of_its_name() {
    let offers = offered(".dump ObjectRef -ss -");
    assert!(!offers.iter().any(|name| name == "-ShowStack"));
    assert_eq!(
        offered(".dump ObjectRef -stack"),
        ["-StackFilter", "-StackFrom"],
        "a name that starts so goes first"
    );
    assert_eq!(offered(".dump ObjectRef -estack"), ["-CreateStack"]);
}

#[test]
fn values_are_offered_where_they_are_due_and_options_where_they_may_be() {
    let values_or_options = offered(".dump ObjectRef -ShowTotal ");
    assert!(
        values_or_options
            .starts_with(&["Total", "Process", "File", "Method", "None"].map(String::from))
    );
    assert!(values_or_options.contains(&"-Leak".to_owned()), "the value may be left out");
    assert_eq!(offered(".dump ObjectRef -ShowTotal p"), ["Process"]);
    assert_eq!(offered(".dump ObjectRef -pn "), Vec::<String>::new());
    assert_eq!(offered(".dump -pn "), Vec::<String>::new());
    assert!(offered(".dump ObjectRef -TopN 5 ").contains(&"-Leak".to_owned()));
    assert!(offered(".dump ObjectRef -TopN 5 2 -le").contains(&"-Leak".to_owned()));
}

#[test]
fn options_of_commands_are_offered_and_folders_where_only_they_are_meant() {
    assert_eq!(offered(".load -"), ["-recursive", "-All", "--max-size", "-filedir"]);
    assert_eq!(offered(".dir -r -"), ["-od"]);
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("a.etl"), "").expect("a file");
    std::fs::create_dir(folder.path().join("b")).expect("a folder");
    let below = format!("{}{}", folder.path().display(), std::path::MAIN_SEPARATOR);
    assert_eq!(offered(&format!(".load {below}")).len(), 2);
    let b = format!("{below}b{}", std::path::MAIN_SEPARATOR);
    assert_eq!(offered(&format!(".cd {below}")), [b]);
}

#[test]
fn options_without_effect_are_offered_only_when_nothing_else_fits() {
    assert!(!offered(".dump ObjectRef -").contains(&"-nocolor".to_owned()));
    assert_eq!(offered(".dump ObjectRef -nocol"), ["-nocolor"]);
}

#[test]
fn behind_an_arrow_folders_and_tables_are_offered() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("rows.csv"), "").expect("a file");
    let start = folder.path().join("ro").display().to_string();
    for line in [".dump Process >", ".list >>"] {
        assert_eq!(offered(&format!("{line} {start}")), [format!("{start}ws.csv")], "{line}");
    }
}

#[cfg(unix)]
#[test]
fn behind_a_bar_programs_are_offered_and_behind_a_program_files() {
    let usual = offered(".why | ");
    assert!(usual.contains(&"sort".to_owned()) && usual.len() < 10, "{usual:?}");
    assert!(offered(".sql SELECT pid FROM processes | sor").contains(&"sort".to_owned()));
    assert_eq!(offered(".why | sort ./nothing-is-called-so"), [""; 0]);
    assert_eq!(offered(".dump ObjectRef -ObjectName a|b -Lea"), ["-Leak", "-LeakAtExit"]);
}

#[test]
fn help_offers_topics() {
    assert_eq!(offered(".help ob"), ["ObjectRef"]);
    assert_eq!(offered(".help fi"), ["filters"]);
    assert_eq!(offered(".help .d"), [".dir", ".diff", ".dump"]);
    assert_eq!(offered(".help .dump st"), ["Stack", "Stats"]);
    assert_eq!(offered(".help ObjectRef -le"), ["-Leak", "-LeakAtExit"]);
    assert_eq!(offered(".help -le"), ["-Leak", "-LeakAtExit"]);
}

#[test]
fn paths_with_spaces_are_quoted() {
    assert_eq!(offered(".unload "), ["/t/leaky.etl", "\"/t/my trace.etl\""]);
    assert_eq!(offered(".unload \"/t/my t"), ["\"/t/my trace.etl\""]);
}

#[test]
fn a_suggestion_replaces_the_word_and_no_more() {
    let first = complete(".dump obj", &CompletionValues::default()).remove(0);
    assert_eq!((first.span.start, first.span.end), (6, 9));
    assert!(first.append_whitespace);
}

#[test]
fn names_of_snapshots_are_offered_where_a_point_may_stand() {
    assert_eq!(offered(".diff w"), ["warm"]);
    assert_eq!(offered(".diff warm a"), ["\"after login\""]);
    assert_eq!(offered(".diff -pn leaky A"), ["\"after login\""]);
    assert_eq!(offered(".diff warm end w"), Vec::<String>::new());
    assert_eq!(offered(".diff -To w"), ["warm"]);
    assert_eq!(offered(".dump Diff -From w"), ["warm"]);
    assert_eq!(offered(".snapshot w"), ["warm"]);
    assert_eq!(offered(".snapshot new w"), Vec::<String>::new());
    assert!(offered(".diff ").contains(&"-From".to_owned()));
}

#[test]
fn kinds_of_allocations_are_offered_wherever_they_choose() {
    for command in [".dump Resource", ".flame a.svg", ".plot", ".diff", ".dump Diff"] {
        let filter = |typed: &str| offered(&format!("{command} -Kind {typed}"));
        assert_eq!(filter("re"), ["reserve", "resource"], "{command}");
        assert_eq!(filter("heap;!g"), ["heap;!gdi"], "{command}");
    }
    assert_eq!(offered(".dump Resource -GroupBy kind,cr"), ["kind,createstack"]);
    assert_eq!(offered(".dump Resource -SortBy lea"), ["leaked", "leaked_bytes"]);
    assert_eq!(offered(".dump Resource -SortBy co"), ["count"]);
    assert_eq!(offered(".dump Resource -ShowTotal A"), ["Allocator"]);
}
