//! `.report`: a single page that works offline, and in which no name from a trace is markup. A headless browser looks
//! at the page and at the other pictures.

use std::fs;
use std::process::{Command, Stdio};

use handlescope_model::is_harmful;
use handlescope_tests::binary::{Shell, sample_symbols};
use handlescope_tests::needs_chromium;
use handlescope_tests::scenario::TraceBuilder;
use serde_json::{Value, json};

/// Text that takes effect if a page treats it as markup, as a script or as the end of a script.
const HOSTILE: &str = "x<!--<img src=q onerror=owned()></script><script>document.documentElement.\
     setAttribute('owned',1)</script>\"'>]]>&lt;\u{2028}\u{202e}";

/// Writes the page about the sample.
fn sample() -> Shell {
    let shell = Shell::new();
    let symbols = sample_symbols();
    let symbols = symbols.to_str().unwrap();
    let run = shell.run(&["--symbol-path", symbols, "leaky.etl", "-c", ".report page.html"]).ok();
    assert!(run.stdout.contains("HTML export was successful. File is: "), "{}", run.stdout);
    shell
}

/// Writes a page and pictures about a leaking trace with hostile names.
fn hostile() -> Shell {
    const OBJECT: u64 = 0xffff_8100_0000_1000;
    let shell = Shell::new();
    let mut trace = TraceBuilder::new();
    trace.process(700, HOSTILE).command_line(HOSTILE);
    trace.module(700, &format!(r"C:\{HOSTILE}"), 0x40_0000, 0x2_0000);
    trace.object_type(16, HOSTILE);
    for at in 0..40_u32 {
        let (time, object) = (10_000_000 * i64::from(at + 1), OBJECT + 0x100 * u64::from(at));
        trace.create_handle(time, (700, 8), object, 4 * (at + 1), 16);
        trace.stack(&[], &[0x40_1000]);
    }
    trace.write(shell.path("hostile.etl")).unwrap();
    let write = ".report page.html\n.flame flame.svg\n.plot plot.svg\n";
    let run = shell.script(&["hostile.etl"], write).ok();
    assert_eq!(run.stdout.matches("export was successful").count(), 3, "{}", run.stdout);
    shell
}

/// Returns the data that the page's script reads.
fn data(shell: &Shell) -> Value {
    let page = fs::read_to_string(shell.path("page.html")).unwrap();
    let (_, data) = page.split_once("id=\"data\">").unwrap();
    serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap()
}

fn chromium(shell: &Shell, arguments: &[&str], file: &str) -> String {
    let profile = shell.path("profile");
    let mut command = Command::new("chromium");
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]);
    command.args(["--allow-file-access-from-files", "--virtual-time-budget=5000"]);
    command.arg(format!("--user-data-dir={}", profile.to_str().unwrap()));
    command.args(arguments).arg(format!("file://{}", shell.path(file).to_str().unwrap()));
    let output = command.stdin(Stdio::null()).output().expect("chromium starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the result of a script that inspects a page through its document `page`. The page is in a frame of another
/// page, because its policy allows only its own script.
fn look(shell: &Shell, file: &str, script: &str) -> Value {
    look_at(shell, file, 1300, script)
}

/// Like [`look`], with this width of the frame.
fn look_at(shell: &Shell, file: &str, width: u32, script: &str) -> Value {
    let harness = format!(
        "<!DOCTYPE html><iframe src='{file}' width={width} height=1000 style='border:0'></iframe><pre></pre><script>
         const frame = document.querySelector('iframe');
         frame.onload = () => {{
             const page = frame.contentDocument;
             const all = (what) => Array.from(page.querySelectorAll(what));
             const texts = (what) => all(what).map((element) => element.textContent);
             let found;
             try {{ found = (() => {{ {script} }})(); }} catch (error) {{ found = String(error); }}
             document.querySelector('pre').textContent = encodeURIComponent(JSON.stringify(found));
         }};
         </script>"
    );
    fs::write(shell.path("harness.html"), harness).unwrap();
    let dom = chromium(shell, &["--dump-dom"], "harness.html");
    let found = dom.split_once("<pre>").and_then(|(_, rest)| rest.split_once("</pre>"));
    let found = found.unwrap_or_else(|| panic!("{dom}")).0;
    serde_json::from_str(&decoded(found)).unwrap_or_else(|error| panic!("{error}: {dom}"))
}

/// Decodes `%XX` in a text.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let hex = |byte: u8| char::from(byte).to_digit(16).unwrap() as u8;
        match byte {
            b'%' => bytes.push(16 * hex(rest.next().unwrap()) + hex(rest.next().unwrap())),
            byte => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).unwrap()
}

#[test]
fn the_page_is_one_file_that_asks_for_nothing() {
    let shell = sample();
    let page = fs::read_to_string(shell.path("page.html")).unwrap();
    let policy = page.split("Content-Security-Policy\" content=\"").nth(1).unwrap();
    let policy = policy.split('"').next().unwrap();
    assert!(policy.starts_with("default-src 'none'; "), "{policy}");
    assert!(
        policy.contains("style-src 'sha256-") && policy.contains("script-src 'sha256-"),
        "{policy}"
    );
    assert!(
        !policy.contains("unsafe") && !policy.contains('*') && !policy.contains("http"),
        "{policy}"
    );
    for asks in [" src=", " href=\"http", "@import", "url(", "fetch(", "innerHTML", "eval("] {
        assert!(!page.contains(asks), "{asks}");
    }
    assert!(page.contains("prefers-color-scheme: dark"));
}

#[test]
fn the_page_has_the_suspects_of_why() {
    let shell = sample();
    let data = data(&shell);
    let file = &data["files"][0];
    let why = shell
        .run(&[
            "--symbol-path",
            sample_symbols().to_str().unwrap(),
            "leaky.etl",
            "-c",
            ".why -json",
        ])
        .ok();
    let why: Value = serde_json::from_str(&why.stdout).unwrap();
    let text = shell.run(&["leaky.etl", "-c", ".why"]).ok().stdout;
    let (own, expected) =
        (file["suspects"].as_array().unwrap(), why["suspects"].as_array().unwrap());
    assert!(!own.is_empty());
    assert_eq!(own.len(), expected.len());
    for (own, expected) in own.iter().zip(expected) {
        for member in ["rank", "evidence", "function", "command"] {
            assert_eq!(own[member], expected[member], "{member}");
        }
        let number = |member: &str| expected[member].as_u64().unwrap();
        let leaked = number("leaked") + number("closed_at_exit");
        assert_eq!(own["line"][1], json!(format!("{leaked} of {}", number("created"))));
        assert_eq!((&own["line"][4], &own["line"][5]), (&expected["type"], &expected["process"]));
        let [verdict, evidence] =
            ["verdict", "evidence"].map(|member| own[member].as_str().unwrap());
        assert!(text.contains(&format!("{verdict}: {evidence}")), "{verdict}: {evidence}\n{text}");
    }
    let lost: u64 =
        file["flame"].as_array().unwrap().iter().map(|own| own["count"].as_u64().unwrap()).sum();
    let totals = &why["files"][0]["totals"];
    let [leaked, at_exit] =
        ["leaked_handles", "closed_at_exit"].map(|member| totals[member].as_u64().unwrap());
    assert_eq!(lost, leaked + at_exit);
}

#[test]
fn a_page_without_its_script_has_the_headline_and_the_worst_suspects() {
    let shell = sample();
    let page = fs::read_to_string(shell.path("page.html")).unwrap();
    assert!(page.contains("<title>leaky - handlescope report</title>"), "{page}");
    let body = page.split_once("<body>").unwrap().1.split_once("<script").unwrap().0;
    let symbols = sample_symbols();
    let symbols = symbols.to_str().unwrap();
    let why = shell.run(&["--symbol-path", symbols, "leaky.etl", "-c", ".why"]).ok().stdout;
    let headline = why.lines().find(|line| line.contains("leaked by")).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    for text in [
        &format!("<p class=\"headline\"><b>{headline}</b></p>"),
        &format!(
            "Recorded 2026-02-10 10:30:00 for 2.10 s · Program: leaky.exe · Written by handlescope {version}<"
        ),
        "<h1>leaky</h1>",
        "leaky::<wbr>EventCache::<wbr>GetOrCreate</td>",
        "closed by leaky::<wbr>Session::<wbr>Close leaky.cpp:45: check the error paths</td>",
        "need the script of this page",
    ] {
        assert!(body.contains(text), "{text}: {body}");
    }
    let place = |title: &str| body.find(&format!("<th>{title}</th>")).expect(title);
    let titles = ["Rank", "Leaked", "Growth", "Type", "Process", "Function", "Cause"];
    assert!(titles.map(place).is_sorted(), "{body}");
    assert_eq!(body.matches("<tr><td").count(), 4, "{body}");
}

#[test]
fn the_markdown_of_a_suspect_is_that_of_why() {
    let shell = sample();
    let data = data(&shell);
    let suspects = data["files"][0]["suspects"].as_array().unwrap();
    let symbols = sample_symbols();
    let symbols = symbols.to_str().unwrap();
    for suspect in suspects {
        let rank = suspect["rank"].to_string();
        let words =
            ["why", "leaky.etl", "-Which", &rank, "--format", "markdown", "--symbol-path", symbols];
        let expected = shell.run(&words).ok().stdout;
        assert_eq!(suspect["markdown"].as_str().unwrap(), expected, "{rank}");
    }
}

#[test]
fn how_many_others_are_closed_is_no_cause_without_the_code_that_closes_them() {
    let shell = Shell::new();
    let mut trace = TraceBuilder::new();
    trace.process(700, "some.exe");
    trace.object_type(16, "Event");
    for at in 0..40_u32 {
        let (time, object) =
            (10_000_000 * i64::from(at + 1), 0xffff_8100_0000_1000 + 0x100 * u64::from(at));
        trace.create_handle(time, (700, 8), object, 4 * (at + 1), 16);
        trace.stack(&[], &[0x40_1000]);
        if at < 10 {
            trace.close_handle(time + 1_000, (700, 8), object, 4 * (at + 1), 16, "");
        }
    }
    trace.write(shell.path("some.etl")).unwrap();
    let _ = shell.run(&["some.etl", "-c", ".report page.html"]).ok();
    let data = data(&shell);
    let suspect = &data["files"][0]["suspects"][0];
    assert_eq!((&suspect["line"][7], &suspect["causes"]), (&json!(""), &json!([])), "{suspect}");
    let notes = suspect["notes"].as_array().unwrap();
    let note = json!("10 of 40 are closed (by unknown code)");
    assert!(notes.contains(&note), "{suspect}");
    let titles: Vec<&Value> =
        data["files"][0]["columns"].as_array().unwrap().iter().map(|own| &own["title"]).collect();
    assert!(titles.contains(&&json!("Function")) && !titles.contains(&&json!("Cause")));
}

#[needs_chromium]
#[test]
fn every_suspect_is_linked_to_its_stack_with_source_lines() {
    let shell = sample();
    let found = look(
        &shell,
        "page.html",
        "return {
             links: all('table')[0].querySelectorAll('a').length,
             dead: all('a').filter((a) => !page.querySelector(a.getAttribute('href'))).length,
             rows: all('table')[0].tBodies[0].rows.length,
             own: texts('#suspect-0-1 > .stack .own'),
             polygons: all('.timeline polygon').length,
             frames: texts('.flame rect title').slice(0, 2),
             title: page.title,
         };",
    );
    assert_eq!(found["rows"], json!(4), "{found}");
    assert_eq!((&found["links"], &found["dead"]), (&json!(8), &json!(0)), "{found}");
    assert_eq!(
        found["own"][0],
        json!("leaky.exe!leaky::EventCache::GetOrCreate  leaky.cpp:29"),
        "{found}"
    );
    assert_eq!(found["polygons"], json!(3), "{found}");
    assert_eq!(
        found["frames"],
        json!(["all (20 handles, 100.0 %)", "leaky.exe(7316) (19 handles, 95.0 %)"])
    );
    assert_eq!(found["title"], json!("leaky - handlescope report"));
}

#[needs_chromium]
#[test]
fn the_flame_graph_of_the_page_is_that_of_flame_and_its_axes_are_those_of_plot() {
    let shell = sample();
    let symbols = sample_symbols();
    let symbols = symbols.to_str().unwrap();
    let pictures = ".flame flame.svg\n.plot plot.svg\n";
    let _ = shell.script(&["--symbol-path", symbols, "leaky.etl"], pictures).ok();
    // Frames from bottom to top and left to right, with their colours.
    let frames = "const frames = all(PLACE).map((rect) => {
             const title = rect.parentNode.querySelector('title');
             const own = rect.querySelector('title') || title;
             return [-Number(rect.getAttribute('y')), parseFloat(rect.getAttribute('x')), own.textContent.split(' (')[0],
                     page.defaultView.getComputedStyle(rect).fill];
         });
         frames.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
         return frames.map(([, , name, fill]) => [name, fill]);";
    let own = look(&shell, "page.html", &frames.replace("PLACE", "'.flame rect'"));
    let flame = look(&shell, "flame.svg", &frames.replace("PLACE", "'#frames rect'"));
    assert!(own.as_array().unwrap().len() > 20, "{own}");
    assert_eq!(own, flame);
    let texts = |place: &str| format!("return texts('{place}').map((text) => text.trim());");
    let own = look(&shell, "page.html", &texts(".timeline svg > text"));
    let plot = look(&shell, "plot.svg", &texts("text"));
    let plot = plot.as_array().unwrap();
    let own = own.as_array().unwrap();
    for tick in ["0", "10", "70", "0.0 s", "0.5 s", "2.0 s"] {
        assert!(own.contains(&json!(tick)), "{own:?}");
    }
    assert!(own.iter().all(|tick| plot.contains(tick)), "{own:?} {plot:?}");
}

#[needs_chromium]
#[test]
fn a_click_copies_the_markdown_of_a_suspect() {
    let shell = sample();
    let expected = data(&shell)["files"][0]["suspects"][1]["markdown"].clone();
    let found = look(
        &shell,
        "page.html",
        "let copied = null;
         const clipboard = { writeText: (text) => { copied = text; return Promise.resolve(); } };
         Object.defineProperty(page.defaultView.navigator, 'clipboard', { value: clipboard });
         page.querySelector('#suspect-0-2 .copy').click();
         return { copied, headings: texts('.suspect h3') };",
    );
    assert_eq!(found["copied"], expected, "{found}");
    let headings = [
        "1. leaky::EventCache::GetOrCreate",
        "2. leaky::ThreadPool::StartWorker",
        "3. leaky::Session::Connect",
        "4. leaky::App::StartHelper",
    ];
    assert_eq!(found["headings"], json!(headings), "{found}");
}

#[needs_chromium]
#[test]
fn the_page_fits_a_phone_and_no_function_is_broken_inside_a_word() {
    let shell = sample();
    for width in [390, 1300] {
        let found = look_at(
            &shell,
            "page.html",
            width,
            "const narrow = page.querySelector('td.function');
             return {
                 width: page.documentElement.scrollWidth,
                 breaks: page.defaultView.getComputedStyle(narrow).overflowWrap,
                 pieces: Array.from(narrow.querySelector('a').childNodes).filter((node) => node.data).map((node) => node.data),
                 flame: page.querySelector('.flame svg').getBoundingClientRect().width,
                 letters: page.defaultView.getComputedStyle(page.querySelector('.flame text')).fontSize,
             };",
        );
        assert!(found["width"].as_u64().unwrap() <= u64::from(width), "{width}: {found}");
        assert!(found["flame"].as_f64().unwrap() <= f64::from(width), "{width}: {found}");
        assert_eq!(found["breaks"], json!("normal"), "{found}");
        assert_eq!(found["pieces"], json!(["leaky::", "EventCache::", "GetOrCreate"]), "{found}");
        assert_eq!(found["letters"], json!("12px"), "{found}");
    }
}

#[needs_chromium]
#[test]
fn the_search_finds_the_suspects_that_are_not_shown() {
    let shell = Shell::new();
    let mut trace = TraceBuilder::new();
    trace.process(700, "many.exe");
    trace.module(700, r"C:\many.exe", 0x40_0000, 0x10_0000);
    trace.object_type(16, "Event");
    let mut handle = 0_u32;
    for site in 0..60_u32 {
        for _ in 0..60 - site {
            handle += 1;
            let object = 0xffff_8100_0000_1000 + 0x100 * u64::from(handle);
            trace.create_handle(100_000 * i64::from(handle), (700, 8), object, 4 * handle, 16);
            trace.stack(&[], &[0x40_1000 + 0x1000 * u64::from(site)]);
        }
    }
    trace.write(shell.path("many.etl")).unwrap();
    let _ = shell.run(&["many.etl", "-c", ".report page.html"]).ok();
    let suspects = data(&shell)["files"][0]["suspects"].as_array().unwrap().clone();
    assert_eq!(suspects.len(), 60);
    let last = suspects[59]["function"].as_str().unwrap();
    let found = look(
        &shell,
        "page.html",
        &format!(
            "const table = all('.suspects table')[0];
             const found = {{ shown: table.tBodies[0].rows.length, details: all('.suspect').length, more: texts('.suspects .more') }};
             const search = all('.suspects input')[0];
             search.value = '{last}'; search.dispatchEvent(new Event('input'));
             found.found = Array.from(table.tBodies[0].rows, (row) => row.cells[0].textContent);
             page.location.hash = table.tBodies[0].rows[0].querySelector('a').getAttribute('href');
             page.defaultView.dispatchEvent(new Event('hashchange'));
             found.headings = texts('.suspect h3').slice(-2);
             return found;"
        ),
    );
    assert_eq!((&found["shown"], &found["more"]), (&json!(25), &json!(["Show all 60"])), "{found}");
    assert_eq!((&found["details"], &found["found"]), (&json!(12), &json!(["60"])), "{found}");
    let headings = found["headings"].as_array().unwrap();
    assert!(headings[0].as_str().unwrap().starts_with("12. "), "{found}");
    assert!(headings[1].as_str().unwrap().starts_with("60. "), "{found}");
}

#[needs_chromium]
#[test]
fn tables_are_sorted_by_a_click_and_searched_by_typing() {
    let shell = sample();
    let found = look(
        &shell,
        "page.html",
        "const rows = () => Array.from(all('table')[0].tBodies[0].rows, (row) => parseInt(row.cells[1].textContent));
         const click = (at) => all('table')[0].tHead.rows[0].cells[at].querySelector('button').click();
         const found = {};
         click(1); found.down = rows(); found.sorted = all('th[aria-sort]').map((th) => th.getAttribute('aria-sort'));
         click(1); found.up = rows();
         const search = all('input')[0];
         const type = (text) => { search.value = text; search.dispatchEvent(new Event('input')); };
         type('THREAD startworker'); found.searched = rows();
         type('nothing like this'); found.none = rows(); found.says = all('input')[0].nextSibling.textContent;
         const wide = () => texts('.flame rect title').length;
         found.before = wide();
         const main = all('.flame rect').find((rect) => rect.textContent.startsWith('[Thread]'));
         main.dispatchEvent(new Event('click')); found.zoomed = wide();
         all('.flame rect')[0].dispatchEvent(new Event('click')); found.after = wide();
         return found;",
    );
    assert_eq!(
        (&found["down"], &found["up"]),
        (&json!([8, 6, 5, 1]), &json!([1, 5, 6, 8])),
        "{found}"
    );
    assert_eq!(found["sorted"], json!(["descending"]), "{found}");
    assert_eq!((&found["searched"], &found["none"]), (&json!([6]), &json!([])), "{found}");
    assert_eq!(found["says"], json!(" 0 of 4 suspects"), "{found}");
    assert!(found["zoomed"].as_u64() < found["before"].as_u64(), "{found}");
    assert_eq!(found["after"], found["before"], "{found}");
}

#[needs_chromium]
#[test]
fn names_from_a_trace_are_text_in_a_browser() {
    let shell = hostile();
    for (file, scripts, is_seen) in
        [("page.html", 2, ".suspect p"), ("flame.svg", 1, "title"), ("plot.svg", 0, "text")]
    {
        let text = fs::read_to_string(shell.path(file)).unwrap();
        assert!(!text.contains(|c| is_harmful(c) && c != '\n'), "{file}");
        let found = look(
            &shell,
            file,
            &format!(
                "return {{
                     scripts: all('script').length, images: all('img').length,
                     owned: page.documentElement.hasAttribute('owned'),
                     seen: texts('{is_seen}').filter((text) => text.includes('<img src=q')).length > 0,
                 }};"
            ),
        );
        let expected = json!({ "scripts": scripts, "images": 0, "owned": false, "seen": true });
        assert_eq!(found, expected, "{file}");
    }
}

#[needs_chromium]
#[test]
fn the_policy_of_the_page_stops_scripts_that_are_not_its_own() {
    let added = "const script = page.createElement('script');
         script.textContent = 'document.documentElement.setAttribute(\"owned\", 1)';
         page.body.append(script);
         return page.documentElement.hasAttribute('owned');";
    assert_eq!(look(&sample(), "page.html", added), json!(false));
    let shell = Shell::new();
    fs::write(shell.path("page.html"), "<!DOCTYPE html><body>").unwrap();
    assert_eq!(look(&shell, "page.html", added), json!(true), "what the test itself stops");
}

#[needs_chromium]
#[test]
fn the_page_is_light_or_dark_as_the_browser_is() {
    let shell = sample();
    let mut pictures = Vec::new();
    for (name, scheme) in [("light.png", 1), ("dark.png", 0)] {
        let screenshot = format!("--screenshot={}", shell.path(name).to_str().unwrap());
        let scheme = format!("--blink-settings=preferredColorScheme={scheme}");
        chromium(&shell, &[&screenshot, &scheme, "--window-size=1300,2600"], "page.html");
        pictures.push(fs::read(shell.path(name)).unwrap());
    }
    // A page without text and pictures would be a few KB.
    assert!(pictures.iter().all(|picture| picture.len() > 100_000));
    assert_ne!(pictures[0], pictures[1]);
}

#[test]
fn a_page_is_written_for_every_trace_and_replaces_only_what_is_ours() {
    let shell = sample();
    fs::copy(shell.path("leaky.etl"), shell.path("other.etl")).unwrap();
    let run = shell.run(&["leaky.etl", "other.etl", "-c", ".report page.html"]);
    assert_eq!(run.status, Some(0), "{}", run.stderr);
    let page = fs::read_to_string(shell.path("page.html")).unwrap();
    assert!(page.contains("<title>leaky, other - handlescope report</title>"), "{page}");
    assert!(page.contains("<h1>leaky</h1>") && page.contains("<h1>other</h1>"), "{page}");
    fs::write(shell.path("page.html"), "mine").unwrap();
    let run = shell.run(&["leaky.etl", "-c", ".report page.html"]);
    assert!(run.stderr.contains("use -Force to replace it"), "{}", run.stderr);
    let run = shell.run(&["leaky.etl", "-c", ".report page.txt"]);
    assert!(run.stderr.contains("the extension selects the format; use .html"), "{}", run.stderr);
}

#[test]
fn the_command_line_writes_the_page_of_some_traces() {
    let symbols = sample_symbols();
    let symbols = symbols.to_str().unwrap();
    let expected = data(&sample());
    for words in [
        &["report", "leaky.etl", "page.html", "--symbol-path", symbols][..],
        &["--symbol-path", symbols, "report", "page.html", "-fd", "leaky.etl"],
    ] {
        let shell = Shell::new();
        let run = shell.run(words).ok();
        assert!(run.stdout.contains("HTML export was successful. File is: "), "{}", run.stdout);
        assert_eq!(data(&shell)["files"], expected["files"], "{words:?}");
    }
    let shell = Shell::new();
    fs::copy(shell.path("leaky.etl"), shell.path("other.etl")).unwrap();
    let line = ["report", "leaky.etl", "-Type", "Thread", "other.etl", "page.html"];
    assert_eq!(shell.run(&line).status, Some(0));
    let files = data(&shell)["files"].as_array().unwrap().clone();
    let types = |file: &Value| -> Vec<Value> {
        file["suspects"].as_array().unwrap().iter().map(|own| own["line"][4].clone()).collect()
    };
    assert_eq!(files.iter().map(types).collect::<Vec<_>>(), [["Thread"], ["Thread"]]);
    fs::write(shell.path("mine.html"), "mine").unwrap();
    for (words, message, status) in [
        (
            &["report", "leaky.etl"][..],
            "handlescope report needs NAME.html, the file to write, after the traces",
            2,
        ),
        (
            &["report", "page.html", "leaky.etl"],
            "handlescope report needs NAME.html, the file to write, after",
            2,
        ),
        (&["report"], "handlescope report needs NAME.html, the file", 2),
        (&["report", "missing.etl", "x.html"], "missing.etl", 1),
        (&["report", "leaky.etl", "mine.html"], "use -Force to replace it", 1),
    ] {
        let run = shell.run(words);
        assert!(run.stderr.contains(message), "{words:?}: {}", run.stderr);
        assert_eq!(run.status, Some(status), "{words:?}");
    }
    assert_eq!(shell.run(&["report", "leaky.etl", "mine.html", "-Force"]).status, Some(0));
}

#[test]
fn filters_choose_what_the_page_is_about_and_it_says_so() {
    let shell = sample();
    let all = data(&shell);
    let limited = |line: &str| {
        let page = fs::read_to_string(shell.path("page.html")).unwrap();
        page.contains(&format!("<p class=\"dim\">Limited to: {line}"))
    };
    assert!(!limited(""));
    let line = ".report page.html -pn leaky -ObjectName *Signal_4*";
    let run = shell.run(&["leaky.etl", "-c", line]).ok();
    assert!(run.stdout.contains("export was successful"), "{}", run.stdout);
    let some = data(&shell);
    assert!(limited(line));
    let lost = |data: &Value| {
        let suspects = data["files"][0]["suspects"].as_array().unwrap().clone();
        suspects.iter().map(|own| own["amount"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    let leaked = shell
        .run(&["leaky.etl", "-c", ".dump ObjectRef -pn leaky -ObjectName *Signal_4* -Leak -json"])
        .ok();
    let leaked: Value = serde_json::from_str(&leaked.stdout).unwrap();
    assert_eq!(lost(&some), [leaked["totals"]["leaked_handles"].as_u64().unwrap()]);
    assert_ne!(lost(&some), lost(&all));
    // The page needs the closes; without them it could say nothing about causes.
    let run = shell.run(&["leaky.etl", "-c", ".report page.html -Leak"]);
    assert!(run.stderr.contains("-Leak is an option of .dump ObjectRef"), "{}", run.stderr);
    let run = shell.run(&["leaky.etl", "-c", ".report page.html -Type Evnt"]).ok();
    assert_eq!(data(&shell)["files"][0]["suspects"], json!([]), "{}", run.stderr);
}

#[needs_chromium]
#[test]
fn the_page_says_in_a_browser_what_was_asked() {
    let shell = Shell::new();
    let line = ".report page.html -Type \"<b>Event;Event\"";
    assert_eq!(shell.run(&["leaky.etl", "-c", line]).status, Some(0));
    let found = look(&shell, "page.html", "return texts('main > p')[0];");
    assert_eq!(found, json!(format!("Limited to: {line}")));
}

#[test]
fn stacks_of_any_height_are_cut_in_the_page() {
    const OBJECT: u64 = 0xffff_8100_0000_1000;
    let shell = Shell::new();
    let mut trace = TraceBuilder::new();
    trace.process(700, "deep.exe");
    trace.object_type(16, "Event");
    let addresses: Vec<u64> = (0..3_000).map(|at| 0x7000_0000 + at).collect();
    trace.create_handle(1_000_000, (700, 8), OBJECT, 4, 16);
    trace.stack(&[], &addresses);
    trace.write(shell.path("deep.etl")).unwrap();
    let run = shell.run(&["deep.etl", "-c", ".report page.html"]);
    assert_eq!(run.status, Some(0), "{}", run.stderr);
    let data = data(&shell);
    let frames = data["files"][0]["flame"][0]["frames"].as_array().unwrap();
    // The process and the type are frames, too.
    assert_eq!(frames.len(), 201, "{data}");
    let last = usize::try_from(frames[200].as_u64().unwrap()).unwrap();
    assert_eq!(data["frames"][last]["name"], json!("… 2802 more frames"));
}

#[test]
fn a_trace_without_handle_events_has_no_verdict() {
    let shell = Shell::new();
    let mut trace = TraceBuilder::new();
    trace.process(700, "quiet.exe");
    trace.write(shell.path("quiet.etl")).unwrap();
    let run = shell.run(&["quiet.etl", "-c", ".report page.html"]);
    assert_eq!(run.status, Some(0), "{}", run.stderr);
    let file = &data(&shell)["files"][0];
    assert_eq!((&file["has_handles"], &file["suspects"]), (&json!(false), &json!([])), "{file}");
    let page = fs::read_to_string(shell.path("page.html")).unwrap();
    assert!(page.contains("<p class=\"caveat\">no handle events"), "{page}");
    assert!(page.contains("<b>Unknown whether anything leaks"), "{page}");
}
