//! Tests of the text of `.dump ObjectRef`.

use super::*;

#[test]
fn objects_stand_above_their_events_in_time_order() {
    insta::assert_snapshot!(text(&mixed(), "-ShowRef"), @r"
    2024-05-10 12:46:34    demo
    Id: 4 Object: 0xFFFF810000000030 \REGISTRY\X Lifetime: created before the trace  Type: Key Owner: app.exe(100), Handle Value: 0x44
    Id: 5 Object: 0xFFFF810000000040  Lifetime: created before the trace  Type: Key Handle Count: 2
    Id: 1 Object: 0xFFFF810000000000 \BaseNamedObjects\Signal Lifetime: never closed  Type: Event Create+Duplicate-Close: 1+2-2 = 1
    	2024-05-10 12:46:34.501000   100/7     HandleCreate    0xC0       app.exe Stack: 0
    	2024-05-10 12:46:34.502000   300/7     HandleDuplicate 0x80001DDC other.exe SourceProcess: app.exe(100) SourceHandle: 0xC0 Stack: None
    	2024-05-10 12:46:34.503000   100/7     HandleDuplicate 0xC0       app.exe Inherited by process child.exe(200) +- Stack: None
    	2024-05-10 12:46:34.504000   100/7     HandleClose     0xC0       app.exe Stack: None
    	2024-05-10 12:46:34.505000   200/7     HandleClose     0xC0       child.exe +-  Inherited from app.exe(100) Stack: None
    Id: 2 Object: 0xFFFF810000000010  Lifetime: 0.005000 s  Type: File Create+Duplicate-Close: 1+0-1 = 0
    	2024-05-10 12:46:34.510000   100/7     Object Create   app.exe ------------------------------- None
    	2024-05-10 12:46:34.511000   100/7     RefChange       app.exe 2 Stack: None
    	2024-05-10 12:46:34.512000   100/7     HandleCreate    0x10       app.exe Stack: None
    	2024-05-10 12:46:34.513000   100/7     RefChange       app.exe -2 Stack: None
    	2024-05-10 12:46:34.514000   100/7     HandleClose     0x10       app.exe Stack: None
    	2024-05-10 12:46:34.515000   100/7     Object Delete   app.exe ------------------------------- None
    Id: 3 MappingObject: 0xFFFF810000000020 Lifetime: 0.001000 s
    	2024-05-10 12:46:34.520000   100/7     Map app.exe 0x10000-0x110000 Size:     1,048,576 bytes, Offset: 65536 Stack: None
    	2024-05-10 12:46:34.521000   100/7     Unmap app.exe 0x10000 Stack: None
    Objects Created/Destroyed: 3/2 Diff: 1,  Handles Created/Closed/Duplicated: 2/3/2 Diff: 1,  RefChanges: 2 FileMap/Unmap: 1/1
    File Map/Unmap Count 1/1 - 0 outstanding
    File Map/Unmap Size  1,048,576/1,048,576 - 0 bytes outstanding
    ");
}

#[test]
fn reference_changes_are_shown_on_request_only() {
    let shown = text(&mixed(), "-MinMaxId 2 2");
    assert!(!shown.contains("RefChange "), "{shown}");
    assert!(shown.contains("RefChanges: 2 "), "{shown}");
}

#[test]
fn stacks_are_numbers_or_frames_on_lines_of_their_own() {
    insta::assert_snapshot!(text(&mixed(), "-Handle 0xC0 -MinMaxTime 0 1ms -ShowStack"), @r"
    2024-05-10 12:46:34    demo
    Id: 1 Object: 0xFFFF810000000000 \BaseNamedObjects\Signal Lifetime: never closed  Type: Event Create+Duplicate-Close: 1+0-0 = 1
    	2024-05-10 12:46:34.501000   100/7     HandleCreate    0xC0    app.exe Stack: 0
    		nt.exe!NtCreateEvent
    		app.exe+0x1A2B
    		<UnknownMethod> 0x1F4B0000123

    Objects Created/Destroyed: 1/0 Diff: 1,  Handles Created/Closed/Duplicated: 1/0/0 Diff: 1,  RefChanges: 0 FileMap/Unmap: 0/0
    ");
    insta::assert_snapshot!(
        text(&mixed(), "-Handle 0xC0 -MinMaxTime 0 1ms -ShowStack -ShowAddress"),
        @r"
        2024-05-10 12:46:34    demo
        Id: 1 Object: 0xFFFF810000000000 \BaseNamedObjects\Signal Lifetime: never closed  Type: Event Create+Duplicate-Close: 1+0-0 = 1
        	2024-05-10 12:46:34.501000   100/7     HandleCreate    0xC0    app.exe Stack: 0
        		nt.exe!NtCreateEvent+0x1F 0x7FF600009000
        		app.exe+0x1A2B 0x7FF601001A2B
        		<UnknownMethod> 0x1F4B0000123

        Objects Created/Destroyed: 1/0 Diff: 1,  Handles Created/Closed/Duplicated: 1/0/0 Diff: 1,  RefChanges: 0 FileMap/Unmap: 0/0
        "
    );
}

#[test]
fn tables_replace_objects_and_none_replaces_sums() {
    insta::assert_snapshot!(text(&mixed(), "-ShowTotal Total"), @r"
    2024-05-10 12:46:34    demo
    Handles not closed at the end of the trace, of 2 processes (rundown):
    Event                                                       :       1
    Key                                                         :       3
    =====================================================================
    Sum                                                         :       4
    Objects Created/Destroyed: 3/2 Diff: 1,  Handles Created/Closed/Duplicated: 2/3/2 Diff: 1,  RefChanges: 2 FileMap/Unmap: 1/1
    File Map/Unmap Count 1/1 - 0 outstanding
    File Map/Unmap Size  1,048,576/1,048,576 - 0 bytes outstanding
    ");
    insta::assert_snapshot!(text(&mixed(), "-ShowTotal Process -TopN 1"), @r"
    2024-05-10 12:46:34    demo
    Handles not closed at the end of the trace (rundown):
    app.exe(100)                                                :       2
    =====================================================================
    Sum                                                         :       2
    + 1 more, 2 handles
    Objects Created/Destroyed: 3/2 Diff: 1,  Handles Created/Closed/Duplicated: 2/3/2 Diff: 1,  RefChanges: 2 FileMap/Unmap: 1/1
    File Map/Unmap Count 1/1 - 0 outstanding
    File Map/Unmap Size  1,048,576/1,048,576 - 0 bytes outstanding
    ");
    insta::assert_snapshot!(text(&mixed(), "-ShowTotal None -MinMaxId 4 4"), @r"
    2024-05-10 12:46:34    demo
    Id: 4 Object: 0xFFFF810000000030 \REGISTRY\X Lifetime: created before the trace  Type: Key Owner: app.exe(100), Handle Value: 0x44
    ");
}

#[test]
fn several_traces_get_a_sum_over_all() {
    let (one, two) = (mixed(), mixed());
    let shown = printed(&[&one, &two], ".dump ObjectRef -Map 1", Screen::PLAIN);
    let counts: Vec<_> =
        shown.lines().filter(|line| line.starts_with("File Map/Unmap C")).collect();
    assert_eq!(counts.len(), 3);
    assert_eq!(counts[2], "File Map/Unmap Count 2/2 - 0 outstanding");
    for (show, summaries) in [("Total", 3), ("Process", 3), ("File", 3), ("None", 0)] {
        let line = format!(".dump ObjectRef -ShowTotal {show}");
        let shown = printed(&[&one, &two], &line, Screen::PLAIN);
        assert_eq!(shown.matches("Objects Created").count(), summaries, "{show}");
    }
}

#[test]
fn open_handles_of_several_traces_get_a_table_over_all() {
    let (one, two) = (mixed(), mixed());
    let shown = printed(&[&one, &two], ".dump ObjectRef -ShowTotal Total -TopN 1", Screen::PLAIN);
    let sums: Vec<_> = shown.lines().filter(|line| line.starts_with("Key ")).collect();
    assert_eq!(sums.len(), 3);
    assert!(sums[2].ends_with(":       6"), "{shown}");
    assert!(
        shown.contains(
            "\nAll 2 files\nHandles not closed at the end of the trace, of 4 processes (rundown):\n"
        ),
        "{shown}"
    );
}

#[test]
fn totals_of_files_replace_objects_without_a_table() {
    insta::assert_snapshot!(text(&mixed(), "-ShowTotal File -Map 0"), @r"
    2024-05-10 12:46:34    demo
    Objects Created/Destroyed: 2/1 Diff: 1,  Handles Created/Closed/Duplicated: 2/3/2 Diff: 1,  RefChanges: 2 FileMap/Unmap: 0/0
    ");
}

#[test]
fn tables_are_drawn_on_a_terminal() {
    let screen = Screen { width: Some(60), color: false };
    let shown = printed(&[&mixed()], ".dump ObjectRef -ShowTotal Process -Map 0", screen);
    insta::assert_snapshot!(shown, @r"
    2024-05-10 12:46:34    demo
    Handles not closed at the end of the trace (rundown):
    Process         Handles
    ────────────────────────
    other.exe(300)        2
    app.exe(100)          2
    Sum                   4
    Objects Created/Destroyed: 2/1 Diff: 1
    Handles Created/Closed/Duplicated: 2/3/2 Diff: 1
    RefChanges: 2 FileMap/Unmap: 0/0
    ");
}

#[test]
fn every_time_of_a_line_follows_its_format() {
    let options = "-MinMaxId 1 1 -TimeFmt s -TimeDigits 3 -ProcessFmt s";
    insta::assert_snapshot!(text(&mixed(), options), @r"
    2024-05-10 12:46:34    demo
    Id: 1 Object: 0xFFFF810000000000 \BaseNamedObjects\Signal Lifetime: never closed  Type: Event Create+Duplicate-Close: 1+2-2 = 1
    	0.001   100/7     HandleCreate    0xC0       app.exe Stack: 0
    	0.002   300/7     HandleDuplicate 0x80001DDC other.exe SourceProcess: app.exe(100) SourceHandle: 0xC0 Stack: None
    	0.003   100/7     HandleDuplicate 0xC0       app.exe Inherited by process child.exe(200) +0.000 - 0.009 0.00:00:00.008 Stack: None
    	0.004   100/7     HandleClose     0xC0       app.exe Stack: None
    	0.005   200/7     HandleClose     0xC0       child.exe +0.000 - 0.009 0.00:00:00.008  Inherited from app.exe(100) Stack: None
    Objects Created/Destroyed: 1/0 Diff: 1,  Handles Created/Closed/Duplicated: 1/2/2 Diff: 1,  RefChanges: 0 FileMap/Unmap: 0/0
    ");
    let utc = text(&mixed(), "-MinMaxId 3 3 -TimeFmt UTCTime -TimeDigits 0");
    assert!(utc.contains("\t10:46:34   100/7     Map "), "{utc}");
    assert!(utc.contains("Lifetime: 0 s\n"), "{utc}");
    let without = text(&mixed(), "-MinMaxId 1 1 -ProcessFmt None");
    assert!(without.contains("Inherited by process child.exe(200) Stack"), "{without}");
}

#[test]
fn sizes_may_go_without_separators() {
    let shown = text(&mixed(), "-Map 1 -NoDigitSep");
    assert!(shown.contains("Size:       1048576 bytes"), "{shown}");
    assert!(shown.contains("Size  1048576/1048576 - 0 bytes"), "{shown}");
}

#[test]
fn the_header_shows_the_whole_path_on_request() {
    let shown = text(&mixed(), "-Map 1 -ShowFullFileName");
    let header = shown.lines().next().expect("a header");
    let path = std::path::Path::new(header.get(23..).expect("a path"));
    assert!(path.is_absolute() && path.ends_with("demo.etl"), "{header}");
}

#[test]
fn lines_fit_the_terminal_unless_whole_ones_are_wanted() {
    let screen = Screen { width: Some(50), color: true };
    let line = ".dump ObjectRef -ShowStack -MinMaxId 1 1";
    let shown = printed(&[&mixed()], line, screen);
    assert!(shown.lines().all(|line| console::measure_text_width(line) <= 50), "{shown}");
    let plain = console::strip_ansi_codes(&shown);
    assert!(plain.contains("\n    nt.exe!NtCreateEvent\n    app.exe+0x1A2B\n"), "{plain}");
    let unclipped = printed(&[&mixed()], &format!("{line} -NoClip"), screen);
    let unclipped = console::strip_ansi_codes(&unclipped);
    assert!(unclipped.contains("HandleDuplicate") && !unclipped.contains('…'), "{unclipped}");
    assert!(unclipped.contains("\t\tnt.exe!NtCreateEvent\n"), "{unclipped}");
    let json = printed(&[&mixed()], &format!("{line} -json"), screen);
    assert!(!json.contains('…'));
}

#[test]
fn a_service_goes_by_its_better_name_unless_plain_names_are_wanted() {
    let mut fixture = Fixture::new();
    fixture.processes.name[OTHER as usize] = "svchost.exe".into();
    fixture.processes.command_line[OTHER as usize] =
        r"C:\Windows\system32\svchost.exe -k netsvcs -s TermService".into();
    fixture.event_object(vec![create(OTHER, 1, 4)]);
    fixture.object(NewObject { existing: vec![(OTHER, 8)], ..NewObject::default() });
    let saved = fixture.save();
    let pretty = text(&saved, "");
    let plain = text(&saved, "-PlainProcessNames");
    assert!(!pretty.contains("svchost.exe"), "{pretty}");
    assert_eq!(plain.matches("svchost.exe").count(), 2, "{plain}");
    let pretty = text(&saved, "-ShowTotal Process");
    assert!(!pretty.contains("svchost.exe(300)"), "{pretty}");
    let plain = text(&saved, "-ShowTotal Process -PlainProcessNames");
    assert!(plain.contains("svchost.exe(300)"), "{plain}");
}

#[test]
fn each_kind_of_text_has_its_color() {
    let screen = Screen { width: Some(200), color: true };
    let shown = printed(&[&mixed()], ".dump ObjectRef -MinMaxId 4 4", screen);
    insta::assert_snapshot!(shown.replace('\u{1b}', "^"), @r"
    ^[38;5;63m2024-05-10 12:46:34    demo^[0m
    Id: 4 Object: 0xFFFF810000000030 \REGISTRY\X Lifetime: created before the trace  Type: ^[38;5;29mKey^[0m Owner: ^[38;5;163mapp.exe(100)^[0m, Handle Value: 0x44
    ^[38;5;98mObjects Created/Destroyed: 0/0 Diff: 0,  Handles Created/Closed/Duplicated: 0/0/0 Diff: 0,  RefChanges: 0 FileMap/Unmap: 0/0^[0m
    ");
}

#[test]
fn names_cannot_break_lines_or_reach_the_terminal() {
    let mut fixture = Fixture::new();
    let events = vec![create(APP, 1, 4)];
    fixture.object(NewObject { name: "a\u{1b}[2J\nb", events, ..NewObject::default() });
    let shown = text(&fixture.save(), "");
    assert!(shown.contains(r"a\u{1b}[2J\nb Lifetime"), "{shown}");
}

#[test]
fn handles_that_the_loader_opens_at_process_start_are_counted_in_one_line() {
    let mut fixture = Fixture::new();
    let cache = fixture.stack(&["ntdll.dll!NtCreateEvent", "app.exe!Cache::Get"]);
    for number in 0..60 {
        let handle = 0x100 + 4 * number as u64;
        fixture.event_object(vec![create(APP, 100_000 * number, handle).leaked().on(cache)]);
    }
    let start = "ntdll.dll!LdrpInitializeProcess";
    for stack in [
        &["ntdll.dll!NtOpenKey", "ntdll.dll!LdrpInitializeTls", start][..],
        &["ntdll.dll!NtOpenSection", "ntdll.dll!LdrpFindKnownDll", start],
        &["ntdll.dll!NtCreateEvent", "app.exe!DllMain", start],
    ] {
        let stack = fixture.stack(stack);
        fixture.event_object(vec![create(APP, 10, 0x10).leaked().on(stack)]);
    }
    let saved = fixture.save();
    let text = printed(&[&saved], ".dump Why", Screen::PLAIN);
    let lines = "\n+ 1 more suspect with 1 handle: .dump Why -Which 4, .dump Why -All\n\
                 + 2 more suspects of handles opened at process start: .dump Why -All\n";
    assert!(text.ends_with(lines), "{text}");
    let all = printed(&[&saved], ".dump Why -All", Screen::PLAIN);
    assert!(all.contains("\n4  1 of 1 Event handle leaked") && !all.contains("more"), "{all}");
}
