//! Findings of `.why` and `.diff` in formats of other tools: JUnit for CI, SARIF for code scanning, annotations for
//! GitHub, and Markdown for a ticket.

use std::fmt::Write as _;
use std::io::{self, Write};

use crate::text::source_place;
use handlescope_model::{StackIdx, Untrusted};
use handlescope_query::{NamedFrames, TrimmedStacks};
use handlescope_session::values::{CountedNoun, FindingFormat};
use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};
use serde_json::{Value, json};

/// Name of the program in reports.
const TOOL: &str = "handlescope";

/// Something that leaks, or leaks more than before.
#[derive(Debug, Clone, Default)]
pub struct LeakFinding {
    /// Kind of finding, one word: the verdict on the growth, or the state of a comparison.
    pub rule: &'static str,
    /// Program, as in `leaky.exe`.
    pub program: String,
    /// One line: `8 of 56 Event handles leaked by leaky.exe(7316)`.
    pub title: String,
    /// The function of the program that opens them.
    pub function: Option<String>,
    /// Path of its source file, and the line.
    pub place: Option<(String, Option<u32>)>,
    /// Sentences about growth and causes.
    pub sentences: Vec<String>,
    /// The frames of the stack, one per line.
    pub frames: Vec<String>,
    /// The command that shows more.
    pub command: Option<String>,
    /// The id that stays the same in other traces with the same functions.
    pub id: Option<String>,
    /// Whether it fails the gate.
    pub is_failure: bool,
}

impl LeakFinding {
    /// Sets function, source and frames from a stack.
    pub fn at(mut self, frames: Option<&NamedFrames<'_>>, stack: Option<StackIdx>) -> Self {
        let Some((frames, stack)) = frames.zip(stack) else { return self };
        if let Some(frame) = TrimmedStacks::representative_view(None, frames, stack) {
            self.function = Some(frame.to_string());
            let name = frame.name;
            self.place = name.and_then(|name| Some((name.file.as_deref()?.to_owned(), name.line)));
        }
        self.frames = frames.stack(stack).map(|frame| frame.to_string()).collect();
        self
    }

    /// Returns the text about the finding, line by line.
    fn lines(&self) -> Vec<String> {
        let function = self.function.iter().map(|function| format!("opened by {function}"));
        let rest = self.sentences.iter().chain(&self.command).cloned();
        function.chain(rest).map(|line| Untrusted(&line).to_string()).collect()
    }

    fn level(&self) -> &'static str {
        if self.is_failure { "error" } else { "warning" }
    }

    fn title(&self) -> String {
        Untrusted(&self.title).to_string()
    }
}

/// The findings of a trace, or of a comparison.
#[derive(Debug, Clone, Default)]
pub struct Findings {
    /// What was asked: the trace, or both traces.
    pub about: String,
    /// Sentences above the findings.
    pub headline: Vec<String>,
    pub list: Vec<LeakFinding>,
}

/// Writes findings.
///
/// # Errors
/// When `out` cannot be written.
pub fn write_findings(
    findings: &[Findings],
    format: FindingFormat,
    out: &mut dyn Write,
) -> io::Result<()> {
    match format {
        FindingFormat::JUnit => junit(findings, out),
        FindingFormat::Sarif => {
            serde_json::to_writer_pretty(&mut *out, &sarif(findings))?;
            writeln!(out)
        }
        FindingFormat::GitHub => {
            let mut list = findings.iter().flat_map(|findings| &findings.list);
            list.try_for_each(|finding| writeln!(out, "{}", annotation(finding)))
        }
        FindingFormat::Markdown => out.write_all(markdown(findings).as_bytes()),
    }
}

/// Writes JUnit XML: a suite for each trace, a case for each finding.
fn junit(findings: &[Findings], out: &mut dyn Write) -> io::Result<()> {
    let mut writer = Writer::new_with_indent(out, b' ', 2);
    writer.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    // Servers treat a suite without tests as an error.
    let tests = |of: &[Findings]| -> String {
        of.iter().map(|findings| findings.list.len().max(1)).sum::<usize>().to_string()
    };
    let failures = |of: &[Findings]| {
        of.iter()
            .flat_map(|findings| &findings.list)
            .filter(|finding| finding.is_failure)
            .count()
            .to_string()
    };
    writer
        .create_element("testsuites")
        .with_attributes([
            ("name", TOOL),
            ("tests", tests(findings).as_str()),
            ("failures", failures(findings).as_str()),
        ])
        .write_inner_content(|writer| {
            for of in findings {
                let one = std::slice::from_ref(of);
                let suite = writer.create_element("testsuite").with_attributes([
                    ("name", harmless(&of.about).as_str()),
                    ("tests", tests(one).as_str()),
                    ("failures", failures(one).as_str()),
                ]);
                suite.write_inner_content(|writer| {
                    if of.list.is_empty() {
                        let case = writer.create_element("testcase");
                        let case = case.with_attributes([("classname", TOOL), ("name", "no leak")]);
                        case.write_empty()?;
                    }
                    of.list.iter().try_for_each(|finding| test_case(writer, finding))
                })?;
            }
            Ok(())
        })?;
    writeln!(writer.into_inner())
}

fn test_case(writer: &mut Writer<&mut dyn Write>, finding: &LeakFinding) -> io::Result<()> {
    let name = match &finding.function {
        Some(function) => format!("{} ({function})", finding.title),
        None => finding.title.clone(),
    };
    let (name, program) = (harmless(&name), harmless(&finding.program));
    let mut case = writer
        .create_element("testcase")
        .with_attributes([("classname", program.as_str()), ("name", name.as_str())]);
    if let Some((file, line)) = &finding.place {
        case = case.with_attribute(("file", harmless(file).as_str()));
        if let Some(line) = line {
            case = case.with_attribute(("line", line.to_string().as_str()));
        }
    }
    let text: Vec<String> = finding.lines().into_iter().chain(finding.frames.clone()).collect();
    let text = harmless(&text.join("\n"));
    let title = harmless(&finding.title);
    case.write_inner_content(|writer| {
        let element = if finding.is_failure {
            writer
                .create_element("failure")
                .with_attributes([("message", title.as_str()), ("type", finding.rule)])
        } else {
            writer.create_element("system-out")
        };
        element.write_text_content(BytesText::new(&text)).map(drop)
    })
    .map(drop)
}

/// Replaces characters that XML does not allow; names in a trace may contain control characters.
fn harmless(text: &str) -> String {
    let is_allowed = |letter: char| {
        letter == '\n' || !(letter.is_control() || matches!(letter, '\u{fffe}' | '\u{ffff}'))
    };
    text.chars().map(|letter| if is_allowed(letter) { letter } else { '?' }).collect()
}

/// Returns SARIF 2.1.0 (OASIS, "Static Analysis Results Interchange Format") with one run.
fn sarif(findings: &[Findings]) -> Value {
    let list = || findings.iter().flat_map(|findings| &findings.list);
    let mut rules: Vec<&str> = list().map(|finding| finding.rule).collect();
    rules.sort_unstable();
    rules.dedup();
    let described = rules.iter().map(|rule| {
        json!({
            "id": rule_id(rule),
            "shortDescription": { "text": format!("Handles or allocations leak: {rule}") },
        })
    });
    let results = list().map(|finding| {
        let mut text = vec![finding.title()];
        text.extend(finding.lines());
        let mut result = json!({
            "ruleId": rule_id(finding.rule),
            "level": finding.level(),
            "message": { "text": text.join("\n") },
        });
        let mut location = json!({});
        if let Some((file, line)) = &finding.place {
            let mut place = json!({ "artifactLocation": { "uri": uri(file) } });
            if let Some(line) = line {
                place["region"] = json!({ "startLine": line });
            }
            location["physicalLocation"] = place;
        }
        if let Some(function) = &finding.function {
            location["logicalLocations"] =
                json!([{ "fullyQualifiedName": function, "kind": "function" }]);
        }
        result["locations"] = json!([location]);
        if let Some(id) = &finding.id {
            result["partialFingerprints"] = json!({ "suspect/v1": id });
        }
        result
    });
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": TOOL,
                "version": env!("CARGO_PKG_VERSION"),
                "rules": described.collect::<Vec<Value>>(),
            } },
            "results": results.collect::<Vec<Value>>(),
        }],
    })
}

fn rule_id(rule: &str) -> String {
    format!("leak/{rule}")
}

/// Converts a path to the URI that SARIF expects: relative paths stay relative, `C:\a b.cpp` becomes
/// `file:///C:/a%20b.cpp`.
fn uri(path: &str) -> String {
    let path = path.replace('\\', "/");
    let mut uri = match path.as_bytes() {
        [b'/', b'/', ..] => "file:".to_owned(),
        [b'/', ..] => "file://".to_owned(),
        [drive, b':', ..] if drive.is_ascii_alphabetic() => "file:///".to_owned(),
        _ => String::new(),
    };
    let has_drive = uri == "file:///";
    for (index, byte) in path.bytes().enumerate() {
        let is_plain = byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
        if is_plain || (has_drive && index == 1) {
            uri.push(char::from(byte));
        } else {
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri
}

/// Formats a GitHub annotation ("Workflow commands for GitHub Actions").
fn annotation(finding: &LeakFinding) -> String {
    let text = |text: &str| text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    let value = |value: &str| text(value).replace(':', "%3A").replace(',', "%2C");
    let mut properties = Vec::new();
    if let Some((file, line)) = &finding.place {
        properties.push(format!("file={}", value(&file.replace('\\', "/"))));
        properties.extend(line.map(|line| format!("line={line}")));
    }
    properties.push(format!("title={}", value(&finding.title())));
    let lines = text(&finding.lines().join("\n"));
    format!("::{} {}::{lines}", finding.level(), properties.join(","))
}

/// Formats findings as Markdown that GitHub, GitLab, Azure DevOps and Jira's importers can read.
pub fn markdown(findings: &[Findings]) -> String {
    let mut text = String::new();
    for Findings { about, headline, list } in findings {
        let _ = writeln!(text, "## {}\n", escaped(about));
        for line in headline {
            let _ = writeln!(text, "**{}**\n", escaped(line));
        }
        for finding in list {
            let _ = writeln!(text, "### {}\n", escaped(&finding.title()));
            if let Some(function) = &finding.function {
                let place = finding.place.as_ref().map(|(file, line)| source_place(file, *line));
                let place = place.map(|place| format!(" in {}", code(&place)));
                let _ = writeln!(text, "- {}{}", code(function), place.unwrap_or_default());
            }
            for sentence in &finding.sentences {
                let _ = writeln!(text, "- {}", escaped(sentence));
            }
            if let Some(command) = &finding.command {
                let _ = writeln!(text, "- {}", code(command));
            }
            if !finding.frames.is_empty() {
                let count = CountedNoun(finding.frames.len() as u64, "frame");
                let _ = writeln!(text, "\n<details><summary>{count}</summary>\n\n```");
                for frame in &finding.frames {
                    let _ = writeln!(text, "{}", Untrusted(&frame.replace("```", "'''")));
                }
                let _ = writeln!(text, "```\n</details>");
            }
            text.push('\n');
        }
    }
    text
}

/// Escapes all markup in a text.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in Untrusted(text).to_string().chars() {
        match letter {
            '<' => escaped.push_str("&lt;"),
            '&' => escaped.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '|' => escaped.extend(['\\', letter]),
            _ => escaped.push(letter),
        }
    }
    escaped
}

/// Formats a text as code.
fn code(text: &str) -> String {
    format!("`{}`", Untrusted(&text.replace('`', "'")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings() -> Vec<Findings> {
        let finding = LeakFinding {
            rule: "steady",
            program: "leaky.exe".to_owned(),
            title: "8 of 56 Event handles leaked by leaky.exe(7316)".to_owned(),
            function: Some("leaky.exe!Cache<int>::Get".to_owned()),
            place: Some((r"C:\my src\leaky.cpp".to_owned(), Some(29))),
            sentences: vec!["Steady leak: 100 % of *all*".to_owned()],
            frames: vec!["leaky.exe!Cache<int>::Get".to_owned()],
            command: Some(".dump ObjectRef -Suspect 33434dfa4c".to_owned()),
            id: Some("33434dfa4c".to_owned()),
            is_failure: true,
        };
        let passing = LeakFinding {
            is_failure: false,
            place: None,
            title: "\u{1b}[2J]]>".to_owned(),
            ..finding.clone()
        };
        vec![Findings {
            about: "a & b.etl".to_owned(),
            headline: vec!["16 handles leaked".to_owned()],
            list: vec![finding, passing],
        }]
    }

    fn written(format: FindingFormat) -> String {
        let mut out = Vec::new();
        write_findings(&findings(), format, &mut out).expect("written");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn junit_has_a_case_for_each_finding_and_a_failure_for_each_that_fails() {
        insta::assert_snapshot!(written(FindingFormat::JUnit));
    }

    #[test]
    fn sarif_has_files_as_uris_and_lines() {
        insta::assert_snapshot!(written(FindingFormat::Sarif));
        assert_eq!(uri("src/a.cpp"), "src/a.cpp");
        assert_eq!(uri("/home/a.cpp"), "file:///home/a.cpp");
        assert_eq!(uri(r"\\server\x.cpp"), "file://server/x.cpp");
    }

    #[test]
    fn annotations_of_github_are_one_line_each() {
        insta::assert_snapshot!(written(FindingFormat::GitHub));
    }

    #[test]
    fn no_name_is_markup_in_markdown() {
        insta::assert_snapshot!(written(FindingFormat::Markdown));
    }
}
