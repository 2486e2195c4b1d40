//! Lists of open handles: output of `handle.exe`, System Informer and `!handle`.

use std::fmt::Write as _;
use std::fs;

use handlescope_tests::binary::Shell;
use handlescope_tests::data::faults;
use handlescope_tests::needs_data;
use serde_json::Value;

const BANNER: &str = "\nNthandle v5.0 - Handle viewer\nCopyright (C) 1997-2022 Mark Russinovich\n\
                      Sysinternals - www.sysinternals.com\n\n";

/// Returns `handle.exe -a` output for two processes, one of them with this many temporary files.
fn all(files: usize) -> String {
    let rule = "-".repeat(78);
    let mut text = format!(
        "{BANNER}{rule}\nSystem pid: 4 \\<unable to open process>\n    8: Process       System(4)\n{rule}\n\
         server.exe pid: 4711 DEMO\\user\n    4: Event         \n    8: Key           HKLM\\SOFTWARE\\Demo\n"
    );
    for file in 0..files {
        writeln!(text, "{:5X}: File  (RW-)   C:\\spool\\{file}.tmp", 0x100 + file * 4).unwrap();
    }
    text
}

/// Returns the rows of an SQL query on a file.
fn sql(shell: &Shell, file: &str, question: &str) -> Vec<String> {
    let run = shell.run(&[file, "-c", &format!(".sql {question} -csv")]).ok();
    run.stdout.lines().skip(1).map(str::to_owned).collect()
}

const COUNTS: &str = "SELECT process, type, COUNT(*) AS n FROM open_handles GROUP BY process, type \
                      ORDER BY process, type";

#[test]
fn a_list_counts_by_process_and_type_and_has_names() {
    let shell = Shell::new();
    let utf16: Vec<u8> = std::iter::once(0xFEFF)
        .chain(all(3).replace('\n', "\r\n").encode_utf16())
        .flat_map(u16::to_le_bytes)
        .collect();
    let with_mark = format!("\u{FEFF}{}", all(3));
    for (name, content) in [
        ("plain.txt", all(3).into_bytes()),
        ("powershell.txt", utf16),
        ("mark.log", with_mark.into_bytes()),
    ] {
        fs::write(shell.path(name), content).unwrap();
        let expected =
            ["System,Process,1", "server.exe,Event,1", "server.exe,File,3", "server.exe,Key,1"];
        assert_eq!(sql(&shell, name, COUNTS), expected, "{name}");
        let names = "SELECT key, name FROM open_handles WHERE type = 'Key'";
        assert_eq!(sql(&shell, name, names), [r"0x8,HKLM\SOFTWARE\Demo"]);
    }
    let run = shell.run(&["why", "plain.txt"]);
    assert!(run.stderr.contains("it is a list of 6 open handles"), "{run:?}");
    assert_eq!(run.stderr.matches("it is a list of").count(), 1, "{run:?}");
    assert!(run.stdout.contains("6 handles are open"), "{run:?}");
    let run = shell.run(&["plain.txt", "-c", ".dump ObjectRef -ShowTotal Process"]).ok();
    assert!(run.stdout.contains("server.exe(4711)"), "{run:?}");
}

#[test]
fn a_difference_of_two_lists_says_what_grew() {
    let shell = Shell::new();
    fs::write(shell.path("before.txt"), all(2)).unwrap();
    fs::write(shell.path("after.txt"), all(60)).unwrap();
    let run = shell.run(&["diff", "before.txt", "after.txt"]);
    assert!(
        run.stdout.contains(r"worse: server.exe File C:\spool\#.tmp: 2 open before, 60 after"),
        "{run:?}"
    );
    let summary = |files: u32| {
        format!(
            "{BANNER}Handle type summary:\n  Event           : 7\n  File            : {files}\nTotal handles: {}\n",
            files + 7
        )
    };
    fs::write(shell.path("before.txt"), summary(2)).unwrap();
    fs::write(shell.path("after.txt"), summary(60)).unwrap();
    let run = shell.run(&["diff", "before.txt", "after.txt"]);
    assert!(run.stdout.contains("File: 2 open before, 60 after"), "{run:?}");
}

#[test]
fn counts_have_neither_values_nor_names() {
    let shell = Shell::new();
    let text = format!(
        "C:\\> handle.exe -s -p 77\n{BANNER}Handle type summary:\n  Event           : 1\nTotal handles: 1\n"
    );
    fs::write(shell.path("a.txt"), text).unwrap();
    let run = shell.run(&["a.txt", "-c", ".dump ObjectRef -json"]).ok();
    let answer: Value = serde_json::from_str(&run.stdout).unwrap();
    let object = &answer["objects"][0];
    assert_eq!(object["type"], "Event");
    assert_eq!(object["name"], Value::Null);
    assert_eq!(object["existing_handles"][0]["pid"], 77);
    assert_eq!(object["existing_handles"][0]["handle"], Value::Null);
    let run = shell.run(&["a.txt", "-c", ".dump ObjectRef"]).ok();
    assert!(run.stdout.contains("Handle Value: unknown"), "{run:?}");
    assert!(run.stderr.contains("1 open handle without values and names"), "{run:?}");
}

#[test]
fn tables_of_both_tools_are_lists() {
    let shell = Shell::new();
    let plain = "Process,PID,User,Handle,Type,Share Flags,Name\r\na.exe,7,ME\\u,0x00000004,File,RW-,C:\\a, b \r\n";
    let quoted = "\u{FEFF}\"Process\",\"Type\",\"Name\",\"Handle\"\r\n\"a.exe (7)\",\"File\",\"C:\\a, b\",\"0x4\"\r\n";
    for text in [plain, quoted] {
        fs::write(shell.path("a.csv"), text).unwrap();
        let rows = sql(&shell, "a.csv", "SELECT process, pid, key, type, name FROM open_handles");
        assert_eq!(rows, [r#"a.exe,7,0x4,File,"C:\a, b""#], "{text}");
    }
}

#[test]
fn what_is_not_understood_is_told_with_its_line() {
    let shell = Shell::new();
    fs::write(shell.path("a.txt"), format!("{BANNER}No matching handles found.\n")).unwrap();
    let run = shell.run(&["a.txt"]);
    let expected =
        "its output of handle.exe cannot be read, first in line 6: No matching handles found.";
    assert!(run.stderr.contains(expected), "{run:?}");
    assert_eq!(run.status, Some(1));
}

const HANDLE: &str = "0:001> !handle 0 f\nHandle 34\n  Type         \tEvent\n  HandleCount  \t2\n  Name         \t\\BaseNamedObjects\\Go\n\
                      Handle 38\n  Type         \tFile\n  Name         \t<none>\n2 Handles\nType           \tCount\nEvent          \t1\nFile           \t1\n";

#[test]
fn handles_of_a_debugger_alone_are_a_list() {
    let shell = Shell::new();
    let program = "0:001> |\n.  0\tid: 17e8\tcreate\tname: C:\\demo\\a.exe\n";
    fs::write(shell.path("a.log"), format!("{program}{HANDLE}")).unwrap();
    let question =
        "SELECT process, pid, key, type, name, handle_count FROM open_handles ORDER BY key";
    let expected = [r"a.exe,6120,0x34,Event,\BaseNamedObjects\Go,2", "a.exe,6120,0x38,File,,"];
    assert_eq!(sql(&shell, "a.log", question), expected);
}

#[test]
fn handles_of_a_debugger_name_those_of_its_trace() {
    let entry = |handle: &str, operation: &str| {
        format!(
            "--------------------------------------\nHandle = 0x{handle} - {operation}\n\
             Thread ID = 0x000017ec, Process ID = 0x000017e8\n\n0x77ca2e4c: a!{operation}+0x0000000c\n"
        )
    };
    let trace = [entry("3c", "OPEN"), entry("34", "OPEN")].concat();
    let trace = format!(
        "0:001> !htrace\n{trace}--------------------------------------\nDumped 0x2 stack traces.\n"
    );
    let shell = Shell::new();
    let question = "SELECT key, type, name, leaked, in_rundown FROM acquisitions ORDER BY key";
    let expected = [
        r"0x34,Event,\BaseNamedObjects\Go,true,true",
        "0x38,File,,false,true",
        "0x3C,UnknownType,,false,false",
    ];
    for text in [format!("{trace}{HANDLE}"), format!("{HANDLE}{trace}")] {
        fs::write(shell.path("a.log"), &text).unwrap();
        assert_eq!(sql(&shell, "a.log", question), expected, "{text}");
    }
}

#[needs_data]
#[test]
fn published_logs_have_their_types_processes_and_functions() {
    let shell = Shell::new();
    for name in ["htrace-with-handle.log", "htrace-other-process.log", "htrace.html"] {
        fs::copy(faults().join(name), shell.path(name)).unwrap();
    }
    let run = shell.run(&["why", "htrace-with-handle.log"]);
    assert!(run.stdout.contains("1 of 1 ALPC Port handle leaked   process 0x1234"), "{run:?}");
    assert!(run.stdout.contains("Handle: 0xA44"), "{run:?}");
    let names = sql(&shell, "htrace-with-handle.log", "SELECT key, name FROM open_handles");
    assert_eq!(names, [r"0xA44,\RPC Control\demo"]);
    let run = shell.run(&["why", "htrace-other-process.log"]);
    assert!(run.stdout.contains("1 of 1 handle leaked   process 0x64"), "{run:?}");
    assert_eq!(run.stderr.matches("it is text of !htrace").count(), 1, "{run:?}");
    let run = shell.run(&["why", "htrace.html"]);
    assert!(run.stdout.contains("2 handles leaked"), "{run:?}");
    assert!(run.stdout.contains("DemoLeaks!LeakFile\n"), "{run:?}");
    assert!(!run.stdout.contains("&#43;") && !run.stdout.contains("<br>"), "{run:?}");
}
