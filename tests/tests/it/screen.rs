//! Answers on screens of several widths, long answers, and answers redirected into files.

use std::fs;

use handlescope_tests::allocations;
use handlescope_tests::binary::{Shell, handlescope, sample_symbols};
use handlescope_tests::terminal::{ScreenView, Terminal};
use vt100::{Cell, Color};

const PROMPT: &str = "leaky.etl> ";

/// Narrow, usual and wide.
const WIDTHS: [u16; 3] = [80, 100, 140];

/// The colour of less important text.
const GREY: Color = Color::Idx(243);

/// Every kind of event, and objects with long names.
const OBJECTS: &str = ".dump ObjectRef -ShowRef";

/// Starts the program on the sample with a pager, and waits for the first prompt.
fn open(shell: &Shell, columns: u16, pager: &str) -> Terminal {
    let mut command = handlescope(&shell.path(""));
    command.arg("--symbol-path").arg(sample_symbols()).arg("leaky.etl").env("PAGER", pager);
    let terminal = Terminal::start(command, columns, 24);
    terminal.wait_for_line(PROMPT);
    terminal
}

/// Returns the lines of an answer on a screen of this width.
fn on_screen(shell: &Shell, columns: u16, command: &str) -> Vec<String> {
    let terminal = open(shell, columns, "");
    terminal.run(PROMPT, command);
    answer(&terminal, command)
}

/// Returns the lines between the command and the next prompt.
fn answer(terminal: &Terminal, command: &str) -> Vec<String> {
    terminal
        .transcript()
        .into_iter()
        .skip_while(|line| *line != format!("{PROMPT}{command}"))
        .skip(1)
        .take_while(|line| !line.starts_with(PROMPT.trim_end()))
        .collect()
}

/// Returns the words of an answer, with the date counted only once.
fn words<'a>(lines: &'a [String], date: &str) -> Vec<&'a str> {
    let (header, rest) = lines.split_first().expect("a header");
    let words = rest.iter().flat_map(|line| line.split_whitespace()).filter(|word| *word != date);
    // The summary has commas if it is on one line.
    header.split_whitespace().chain(words).map(|word| word.trim_end_matches(',')).collect()
}

fn in_pipe(shell: &Shell, command: &str) -> Vec<String> {
    let symbols = sample_symbols();
    let ran = shell.run(&["--symbol-path", symbols.to_str().unwrap(), "leaky.etl", "-c", command]);
    ran.ok().stdout.lines().map(str::to_owned).collect()
}

#[test]
fn at_every_width_no_fact_is_lost_and_only_names_of_objects_shrink() {
    let shell = Shell::new();
    let piped = in_pipe(&shell, OBJECTS);
    let whole = words(&piped, "2026-02-10");
    for columns in WIDTHS {
        let screen = on_screen(&shell, columns, OBJECTS);
        assert!(screen.iter().any(|line| line.starts_with("Id: ")), "{screen:#?}");
        let shown = words(&screen, "2026-02-10");
        assert_eq!(shown.len(), whole.len(), "{columns}: {screen:#?}");
        for (shown, whole) in shown.iter().zip(&whole) {
            let is_shortened = |(start, end): (&str, &str)| {
                start.starts_with('\\') && whole.starts_with(start) && whole.ends_with(end)
            };
            let is_same = shown == whole || shown.split_once('…').is_some_and(is_shortened);
            assert!(is_same, "{columns}: {shown} is not {whole}");
        }
    }
}

#[test]
fn on_a_narrow_screen_sums_and_titles_go_on_in_the_next_line() {
    let shell = Shell::new();
    let last_words = |lines: &[String]| {
        lines
            .iter()
            .skip_while(|line| !line.starts_with("Objects Created"))
            .flat_map(|line| line.split_whitespace())
            .map(|word| word.trim_end_matches(',').to_owned())
            .collect()
    };
    for command in [".dump ObjectRef -Leak", ".dump ObjectRef -ShowTotal Total"] {
        let screen = on_screen(&shell, 50, command);
        let sums: Vec<String> = last_words(&screen);
        assert_eq!(sums, last_words(&in_pipe(&shell, command)), "{screen:#?}");
        assert!(sums.len() > 10 && screen.iter().all(|line| line.chars().count() <= 50));
    }
    let totals = on_screen(&shell, 50, ".dump ObjectRef -ShowTotal Total");
    let title: Vec<&str> = totals.iter().flat_map(|line| line.split_whitespace()).collect();
    assert!(title.join(" ").contains("Handles not closed at the end of the trace"), "{totals:#?}");
    // Columns that do not fit next to each other get their own lines.
    let files = on_screen(&shell, 50, ".list");
    for value in ["File leaky.etl", "Seconds 2.1", "Windows 10.0 (26100)", "Events 738", "Lost 0"] {
        let is_shown = |line: &String| line.split_whitespace().eq(value.split(' '));
        assert!(files.iter().any(is_shown), "{value}: {files:#?}");
    }
}

#[test]
fn the_line_about_an_extraction_is_broken_between_words() {
    let shell = Shell::new();
    let lines: Vec<_> = on_screen(&shell, 60, ".extract leaky.etl")
        .into_iter()
        .skip_while(|line| line.starts_with([' ', 'w']))
        .collect();
    let [first, rest @ ..] = &lines[..] else { panic!("{lines:#?}") };
    assert!(first.contains("leaky.json7z: ") && !rest.is_empty(), "{lines:#?}");
    assert!(rest.iter().all(|line| line.starts_with("  ")), "{lines:#?}");
    let words: Vec<&str> = lines.iter().flat_map(|line| line.split_whitespace()).collect();
    let [counts @ .., _seconds, "s,", _rate, _unit] = &words[..] else { panic!("{lines:#?}") };
    let whole = in_pipe(&shell, ".extract leaky.etl");
    assert!(whole[0].starts_with(&counts.join(" ")), "{lines:#?} {whole:#?}");
}

#[test]
fn groups_leave_columns_out_of_a_narrow_screen_in_the_order_that_the_help_states() {
    let shell = Shell::new();
    let help = in_pipe(&shell, ".help ObjectRef -Columns").join(" ");
    let order = help.split_once("names them: ").and_then(|(_, rest)| rest.split_once(", in this"));
    let order: Vec<&str> = order.expect("an order").0.split(", ").collect();
    let command = ".dump ObjectRef -GroupBy process,type";
    let header = &in_pipe(&shell, command)[1];
    let order: Vec<&str> = order.into_iter().filter(|title| header.contains(title)).collect();
    let mut counts = Vec::new();
    for columns in [60, 80, 100, 120, 200] {
        let screen = on_screen(&shell, columns, command);
        assert!(screen[1].contains("Leaked") && screen[2].starts_with('─'), "{screen:#?}");
        let start = format!("Not shown at {columns} columns: ");
        let line = screen.iter().position(|line| line.starts_with(&start));
        let line = line.map_or(String::new(), |at| screen[at..at + 2].join(""));
        let left_out =
            line.strip_prefix(&start).and_then(|rest| rest.split_once(" (-Columns all)"));
        let left_out = left_out.map_or("", |(names, _)| names).replace(",  ", ", ");
        counts.push(left_out.split(", ").filter(|name| !name.is_empty()).count());
        let expected = order[..counts[counts.len() - 1]].join(", ");
        assert_eq!(left_out, expected, "{columns}: {screen:#?}");
    }
    assert!(counts[0] > counts[1] && counts[1] > 3 && counts.is_sorted_by(|a, b| a >= b));
    assert_eq!(counts.last(), Some(&0), "a wide screen has all columns");
    let all = on_screen(&shell, 80, &format!("{command} -Columns all"));
    let words: Vec<&str> = all.iter().flat_map(|line| line.split_whitespace()).collect();
    assert!(order.iter().all(|title| words.join(" ").contains(title)), "{all:#?}");
}

#[test]
fn processes_modules_and_symbols_are_a_line_each_at_80_columns_and_have_the_rest_with_columns() {
    let shell = Shell::new();
    for (kind, left_out) in [
        ("Process", "Session, Parent, Exit code, End"),
        ("Module", "Pdb, Size, Base"),
        ("Symbols", "Pdb"),
    ] {
        let screen = on_screen(&shell, 80, &format!(".dump {kind}"));
        let line = format!("Not shown at 80 columns: {left_out} (-Columns all)");
        assert!(screen.contains(&line), "{screen:#?}");
        // Trace, titles, the line below them, six rows, the hidden columns, the number of rows. The folder of symbols
        // may be long.
        assert!(screen.len() == 11 || kind == "Symbols", "{screen:#?}");
        assert!(!screen.iter().any(|line| line.starts_with("row ")), "{screen:#?}");
    }
    // The date is shown once at the top, and a long command line is cut in the middle.
    let processes = on_screen(&shell, 80, ".dump Process");
    let has = |text: &str| processes.iter().filter(|line| line.contains(text)).count();
    assert_eq!((has("2026-02-10"), has("10:30:00.300000")), (1, 1), "{processes:#?}");
    let cut = has("…") == 1 && has(r"Directory=\Windows") == 1;
    assert!(cut, "{processes:#?}");
    let whole = on_screen(&shell, 80, ".dump Process -NoClip -TimeFmt s");
    assert!(!whole.iter().any(|line| line.contains('…')), "{whole:#?}");
    // Columns that a table does not show by default, and columns that had no room.
    for (command, header) in [
        (".dump Process -Columns pid,session,sid,image_path", "Pid Session sid image_path"),
        (".dump Module -Columns name,pdb", "Name Pdb"),
        (".dump Module -Columns name,company,timestamp", "Name company timestamp"),
        (".dump Symbols -Columns module,status,pdb_guid", "Name status pdb_guid"),
    ] {
        let screen = on_screen(&shell, 80, command);
        assert_eq!(screen[1].split_whitespace().collect::<Vec<_>>().join(" "), header);
        assert!(screen[2].starts_with('─'), "{screen:#?}");
    }
}

#[test]
fn frames_of_groups_have_the_whole_line_and_go_on_indented() {
    let shell = Shell::new();
    let command = ".dump ObjectRef -Leak -pn leaky -GroupBy type,createstack -ShowStack";
    let terminal = open(&shell, 80, "");
    terminal.run(PROMPT, command);
    let frames = |lines: &[String]| -> Vec<String> {
        let is_frame = |line: &&String| line.starts_with("    ") && line.contains(".dll!");
        lines.iter().filter(is_frame).cloned().collect()
    };
    let lines = answer(&terminal, command);
    assert!(lines.iter().any(|line| line == "    leaky.exe!leaky::EventCache::GetOrCreate"));
    assert!(frames(&lines).len() > 10, "{lines:#?}");
    let style = |text| cell(&terminal, text, |cell| (cell.fgcolor(), cell.bold()));
    assert_eq!(style("    ntdll.dll!RtlUserThreadStart").0, Color::Default, "the indentation");
    assert_eq!(style("ntdll.dll!RtlUserThreadStart"), (GREY, false));
    assert_eq!(style("leaky.exe!Main"), (Color::Default, true));
    let symbols = sample_symbols();
    let arguments = ["--symbol-path", symbols.to_str().unwrap(), "leaky.etl", "-c", command];
    let mut terminal = Terminal::start(shell.command(&arguments), 40, 200);
    let _ = terminal.wait_for_exit();
    let narrow = terminal.transcript();
    let at = narrow.iter().position(|line| line == "    leaky.exe!leaky::EventCache::");
    let at = at.unwrap_or_else(|| panic!("{narrow:#?}"));
    assert_eq!(narrow[at + 1], "      GetOrCreate");
}

#[test]
fn the_cause_of_a_leak_has_a_colour_and_its_growth_has_none() {
    let shell = Shell::new();
    let terminal = open(&shell, 80, "");
    terminal.run(PROMPT, ".why -TopN 1");
    for (text, color) in [
        ("Balanced: 48 of 56", Color::Default),
        ("Race: two threads", Color::Idx(130)),
        // A style continues on the next line.
        ("and only one handle was closed", Color::Idx(130)),
        (".dump ObjectRef -Suspect", GREY),
    ] {
        assert_eq!(cell(&terminal, text, Cell::fgcolor), color, "{text}");
    }
}

#[test]
fn a_style_goes_on_in_the_next_line_of_a_pager() {
    let shell = Shell::new();
    let terminal = open(&shell, 80, "cat -v");
    terminal.run(PROMPT, ".why -All");
    let lines = answer(&terminal, ".why -All");
    let next = lines.iter().find(|line| line.contains("and only one handle was closed"));
    let next = next.unwrap_or_else(|| panic!("{lines:#?}"));
    assert!(next.starts_with("^[[38;5;130m"), "{next}");
}

#[test]
fn groups_of_allocations_leave_columns_out_of_a_narrow_screen() {
    let shell = Shell::new();
    allocations::trace().write(shell.path("heap.etl")).unwrap();
    let on_screen = |columns: u16, line: &str| {
        let mut terminal = Terminal::start(shell.command(&["heap.etl", "-c", line]), columns, 200);
        let _ = terminal.wait_for_exit();
        terminal.transcript()
    };
    for (line, left_out) in [
        (".dump Resource", "First, Last, Orphan frees, Frees, Allocs, Allocated"),
        (".dump Resource -GroupBy end,kind", "First, Last"),
        (".dump Resource -Leak -LeakAtExit", "First, Last, Stack"),
    ] {
        let screen = on_screen(80, line);
        let start = format!("Not shown at 80 columns: {left_out}");
        assert!(screen.iter().any(|line| line.starts_with(&start)), "{screen:#?}");
        let has_end = screen.iter().any(|line| line.split("  ").any(|cell| cell.trim() == "End"));
        assert_eq!(has_end, line.contains("-GroupBy end"), "{screen:#?}");
    }
}

#[test]
fn a_name_shrinks_no_further_than_it_has_to() {
    let shell = Shell::new();
    let name = r"\Sessions\1\BaseNamedObjects\Leaky_Signal_41";
    let command = ".dump ObjectRef -pn leaky -ObjectName *Signal_41";
    for (columns, lines) in [(80, 2), (100, 2), (140, 1), (200, 1)] {
        let screen = on_screen(&shell, columns, command);
        let at = screen.iter().position(|line| line.starts_with("Id: ")).expect("an object");
        let has_name = screen[at].contains(name) || screen[at].contains("Signal_41");
        assert!(has_name, "{screen:#?}");
        let goes_on = screen[at + 1].starts_with("    ");
        assert_eq!(1 + usize::from(goes_on), lines, "{columns}: {screen:#?}");
    }
}

#[test]
fn columns_of_events_stand_below_each_other_and_the_date_stands_above() {
    let shell = Shell::new();
    let screen = on_screen(&shell, 140, ".dump ObjectRef -Type Event");
    assert!(screen[0].starts_with("2026-02-10 10:30:00"), "{screen:#?}");
    let is_event = |line: &&String| {
        line.strip_prefix("  ")
            .is_some_and(|rest| rest.starts_with(|char: char| char.is_ascii_digit()))
    };
    let events = || screen.iter().filter(is_event).filter(|line| line.contains("Handle"));
    let first = events().next().and_then(|line| line.find("Handle"));
    assert!(events().count() > 10);
    for line in events() {
        assert_eq!(line.find("Handle"), first, "{line}");
        assert!(!line.contains("2026-02-10"), "{line}");
    }
}

/// Applies `look` to the cells of this text in the last line on the screen that has it.
fn cell<T>(terminal: &Terminal, text: &str, look: impl Fn(&Cell) -> T) -> T {
    terminal.view(|view: &ScreenView<'_>| {
        let row = view.lines().collect::<Vec<_>>().iter().rposition(|line| line.contains(text));
        let row = row.unwrap_or_else(|| panic!("no {text} in\n{view}"));
        let at = view.lines().nth(row).and_then(|line| line.find(text)).expect("it is there");
        look(view.cells(u16::try_from(row).expect("a row")).nth(at).expect("a cell"))
    })
}

#[test]
fn frames_stand_on_indented_lines_those_of_the_system_dim_and_those_of_programs_bold() {
    let shell = Shell::new();
    for columns in WIDTHS {
        let terminal = open(&shell, columns, "");
        let command = ".dump ObjectRef -pn leaky -Leak -ObjectName *Signal_41 -ShowStack";
        terminal.run(PROMPT, command);
        let lines = answer(&terminal, command);
        let event = lines.iter().position(|line| line.contains("Stack: ")).expect("an event");
        let blank = lines[event..].iter().position(String::is_empty).expect("a blank line");
        let frames = &lines[event + 1..event + blank];
        assert_eq!(frames.len(), 11, "{lines:#?}");
        assert!(frames.iter().all(|line| line.starts_with("    ") && line.contains('!')));
        let style = |text| cell(&terminal, text, |cell| (cell.fgcolor(), cell.bold()));
        assert_eq!(style("ntdll.dll!NtCreateEvent"), (GREY, false));
        assert_eq!(style("leaky.exe!leaky::EventCache::GetOrCreate"), (Color::Default, true));
    }
}

#[test]
fn the_list_of_system_modules_decides_what_is_dim_and_which_frame_is_the_innermost_one() {
    let shell = Shell::new();
    let innermost = |system: &[&str]| {
        let symbols = sample_symbols();
        let mut arguments = vec!["--symbol-path", symbols.to_str().unwrap(), "leaky.etl"];
        arguments.extend(system.iter().flat_map(|command| ["-c", command]));
        arguments.extend(["-c", ".dump Stack -StackFilter *GetOrCreate* -TopN 1"]);
        let ran = shell.run(&arguments).ok();
        ran.stdout.lines().nth(2).expect("a row").to_owned()
    };
    let usual = innermost(&[]);
    assert!(usual.ends_with("leaky.exe!leaky::EventCache::GetOrCreate"), "{usual}");
    let kernel = innermost(&[".sys ntoskrnl.exe"]);
    assert!(kernel.contains("ntdll.dll!Nt"), "{kernel}");
    let all = innermost(&[".sys *"]);
    assert!(all.contains("ntoskrnl.exe!"), "{all}");
    assert_eq!(innermost(&[".sys *", ".sys usual"]), usual);
    let said = shell.run(&["-c", ".sys ntdll.dll;user32.dll", "-c", ".sys"]).ok().stderr;
    assert_eq!(said, "system modules: ntdll.dll;user32.dll\n".repeat(2));
}

#[test]
fn closes_are_bright() {
    let shell = Shell::new();
    let terminal = open(&shell, 80, "");
    terminal.run(PROMPT, ".dump ObjectRef -MinMaxId 2 2");
    assert_eq!(cell(&terminal, "HandleClose", Cell::fgcolor), Color::Idx(131));
}

#[test]
fn a_long_answer_goes_through_the_pager_unless_it_is_switched_off() {
    const SHORT: &str = ".dump ObjectRef -MinMaxId 1 2";
    const LONG: &str = ".dump ObjectRef -MinMaxId 1 50";
    let shell = Shell::new();
    let terminal = open(&shell, 100, "sed s/Id:/ID:/");
    for command in [SHORT, OBJECTS, ".pager 0", LONG] {
        terminal.run(PROMPT, command);
    }
    for (command, is_paged) in [(SHORT, false), (OBJECTS, true), (LONG, false)] {
        let lines = answer(&terminal, command);
        let objects = |id: &str| lines.iter().filter(|line| line.starts_with(id)).count();
        let (paged, other) = (objects("ID: "), objects("Id: "));
        assert_eq!((paged > 0, other > 0), (is_paged, !is_paged), "{command}: {lines:#?}");
    }
}

#[test]
fn a_pager_knows_that_the_text_is_utf_8_and_is_not_for_a_terminal_that_understands_only_text() {
    let shell = Shell::new();
    let open = |pager: &str, terminal: &str| {
        let mut command = handlescope(&shell.path(""));
        command.arg("leaky.etl").env_remove("LESSCHARSET");
        command.env("PAGER", pager).env("LC_ALL", "C").env("TERM", terminal);
        let terminal = Terminal::start(command, 100, 24);
        terminal.run(PROMPT, OBJECTS);
        answer(&terminal, OBJECTS)
    };
    assert_eq!(open("printenv LESSCHARSET", "xterm"), ["utf-8"]);
    let lines = open("printenv LESSCHARSET", "dumb");
    assert!(lines.iter().any(|line| line.starts_with("Id: ")), "{lines:#?}");
}

#[test]
fn on_a_narrow_screen_what_stats_say_of_the_machine_goes_on_in_the_next_line() {
    const BUILD: &str = "(26100.4652.amd64fre.ge_release.240331-1435)";
    let shell = Shell::new();
    let screen = on_screen(&shell, 80, ".dump Stats");
    let at = screen.iter().position(|line| line.starts_with("Windows ")).expect("Windows");
    assert!(screen[at + 1].starts_with(&format!("    {BUILD}")), "{screen:#?}");
    assert!(!screen.iter().any(|line| line.contains('…')), "{screen:#?}");
}

#[test]
fn deep_groups_are_indented_further_than_the_figures_of_those_above() {
    let shell = Shell::new();
    let command = ".dump ObjectRef -pn leaky -GroupBy Process,Type,Name -Columns all";
    let screen = on_screen(&shell, 80, command);
    let indent = |text: &str| {
        let at = screen.iter().position(|line| line.trim_start().starts_with(text));
        let at = at.unwrap_or_else(|| panic!("no {text} in {screen:#?}"));
        let of = |line: &str| line.chars().take_while(|char| char.is_whitespace()).count();
        (of(&screen[at]), of(&screen[at + 1]))
    };
    assert_eq!(indent("leaky.exe(7316)"), (0, 4));
    assert_eq!(indent("Event"), (2, 6));
    assert_eq!(indent("no name"), (4, 8));
}

#[test]
fn a_pager_that_is_left_early_is_no_failure() {
    let shell = Shell::new();
    let terminal = open(&shell, 100, "head -n 2");
    for command in [".sql SELECT * FROM events;", ".list"] {
        terminal.run(PROMPT, command);
    }
    assert!(answer(&terminal, ".list").iter().any(|line| line.contains("leaky")));
}

#[test]
fn any_answer_goes_into_a_file_or_behind_what_it_holds() {
    let shell = Shell::new();
    let whole = |command: &str| shell.run(&["leaky.etl", "-c", command]).ok().stdout;
    for command in
        [".list", ".help", ".dump Process -csv", ".sql SELECT 1 AS one", ".schema events"]
    {
        let _ = fs::remove_file(shell.path("out.txt"));
        let redirected = |arrow: &str| whole(&format!("{command} {arrow} ./out.txt"));
        let text = || fs::read_to_string(shell.path("out.txt")).expect("a file");
        assert_eq!(redirected(">>"), "");
        assert_eq!(text(), whole(command), "{command}");
        assert_eq!(redirected(">>"), "");
        assert_eq!(text(), whole(command).repeat(2), "{command}");
        assert_eq!(redirected(">"), "");
        assert_eq!(text(), whole(command), "{command}");
    }
}

#[test]
fn a_command_that_fails_leaves_the_file_as_it_was() {
    let shell = Shell::new();
    fs::write(shell.path("out.txt"), "before").expect("a file");
    for arrow in [">", ">>"] {
        let line = format!(".sql SELECT nonsense FROM events {arrow} out.txt");
        let failed = shell.run(&["leaky.etl", "-c", &line]);
        assert_eq!(failed.status, Some(1), "{failed:?}");
        assert_eq!(fs::read_to_string(shell.path("out.txt")).unwrap(), "before");
    }
    let line = ".list > none/out.txt";
    let failed = shell.run(&["leaky.etl", "-c", line]);
    assert_eq!(failed.status, Some(1));
    assert!(failed.stderr.contains("out.txt: cannot be written: folder not found"), "{failed:?}");
    assert!(failed.stderr.contains("name another file with >"), "{failed:?}");
}
