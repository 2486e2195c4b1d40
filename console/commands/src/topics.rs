//! Topics that `.help` explains besides commands, kinds and options.

use handlescope_query as query;

/// A page of `.help` in two columns.
pub struct TopicSpec {
    pub name: &'static str,
    /// One-line summary.
    pub summary: &'static str,
    /// Terms with their explanations.
    rows: &'static [(&'static str, &'static str)],
    /// Causes of leaks that the topic also explains.
    causes: fn() -> Vec<(&'static str, &'static str)>,
}

impl TopicSpec {
    /// Returns the terms with their explanations, causes last.
    pub fn rows(&self) -> Vec<(&'static str, &'static str)> {
        [self.rows, &(self.causes)()].concat()
    }

    /// Returns the words that it explains, without signs and phrases.
    pub fn terms(&self) -> impl Iterator<Item = &'static str> {
        self.rows()
            .into_iter()
            .flat_map(|(label, _)| label.split(", "))
            .filter(|label| label.chars().all(|c| c.is_ascii_lowercase() || c == '_'))
    }

    /// Finds a word, ignoring case.
    pub fn term(&self, name: &str) -> Option<&'static str> {
        self.terms().find(|term| term.eq_ignore_ascii_case(name))
    }
}

/// All topics, in the order of the help.
pub static TOPICS: &[TopicSpec] = &[
    TopicSpec {
        name: "filters",
        summary: "how filters, processes, ranges and addresses are written",
        rows: &[
            ("a;b", "a or b; Event;Thread"),
            ("!c", "excludes c, whatever else matches: *;!svchost"),
            ("* and ?", "any characters, or none; exactly one character"),
            ("case", "is ignored: EVENT is event"),
            ("whole text", "a filter must match the whole text: *signal*, not signal"),
            ("\"a b\"", "quotes keep words with spaces together"),
            ("PROCESSES", "names, with or without .exe, or pids: leaky;!7400"),
            ("stacks", "each line module!function is compared; after !, no line may match"),
            ("MIN [MAX]", "both ends included; without MAX the range is open"),
            ("times", "seconds since session start, or with a unit: 1.5, 2500ms, 10us, 5ns"),
            ("sizes", "bytes, or with a unit: 64KiB = 65536, 64KB = 64000, also MB, MiB, GB, GiB"),
            ("addresses", "start with 0x, and so do handle values: -Handle 0xC0;0xC4"),
        ],
        causes: Vec::new,
    },
    TopicSpec {
        name: "output",
        summary: "where answers go: files and programs",
        rows: &[
            ("> FILE", "into a file; -Force replaces one that handlescope did not write"),
            ("> FILE.csv", "a table in this format; also .json, .ndjson and .parquet"),
            (">> FILE", "appended to the file; not .json or .parquet"),
            ("| PROGRAM", "into a program: .why | grep heap, .dump Process | sort"),
            (
                "exit status",
                "of PROGRAM other than 0 is an error; ending early, as head does, is not",
            ),
            (
                "in scripts",
                "| PROGRAM needs --pipes; quotes keep a | in a value: -ObjectName \"a | b\"",
            ),
            (
                "in a query",
                "| and || are operators; | PROGRAM follows a complete query, ; or an option",
            ),
        ],
        causes: Vec::new,
    },
    TopicSpec {
        name: "growth",
        summary: "words for how a group of handles grows",
        rows: &[
            ("leaked", "never closed; those closed only by process exit are counted separately"),
            ("kept", "not closed by its program, and older than most closed handles became"),
            ("steady", "kept handles, opened at one rate to the end of trace or process: a leak"),
            ("burst", "kept handles, opened within a very short time, none before or after"),
            ("once", "kept handles, opened at the start: a cache, a warm-up, a thread pool"),
            ("balanced", "usually closed; handles open at the end of trace or process are young"),
            ("short", "too few handles, or too short a time, to judge growth"),
        ],
        causes: Vec::new,
    },
    TopicSpec {
        name: "causes",
        summary: "causes of leaks in .why",
        rows: &[],
        causes: query::causes_of_handles,
    },
    TopicSpec {
        name: "allocations",
        summary: "kinds of allocations, and causes of their leaks in .why",
        rows: &[
            ("heap", "blocks of heaps; their allocator is the heap"),
            (
                "commit, reserve",
                "pages from VirtualAlloc, committed and reserved; parts may be freed alone",
            ),
            ("resource", "what events of a provider acquire and release"),
            ("gdi, user", "handles of GDI and USER; their allocator is their type"),
            ("private heap", "heaps created on one stack, reported as one suspect"),
            ("to record them", "see docs/recording.md; heaps need a separate session"),
        ],
        causes: query::causes_of_allocations,
    },
    TopicSpec {
        name: "etwanalyzer",
        summary: "what is different from ETWAnalyzer",
        rows: &[
            ("same", "commands, options, filters and the shape of the output"),
            ("ids", "are the same in every query and session; each file counts from 1"),
            ("filters", "an exact frame matches too: -CreateStack ntdll.dll!NtCreateEvent"),
            (
                "-StackFilter",
                "drops objects without remaining events, and does not affect later \
                 queries",
            ),
            (
                "-Leak",
                "a duplicate belongs to the process that got it; closes in child processes \
                 count",
            ),
            ("now work", "-CmdLine, -NewProcess and -TimeDigits; KiB is 1024 bytes"),
            ("stacks", "are resolved when shown: set .sympath, no new extraction needed"),
            ("errors", "name the option with its help line, and do not end the session"),
            ("CSV", "has the same columns, quoted instead of altered, independent of locale"),
            ("new", "-json, -ShowAddress, .dump Stats with lost and unreadable events"),
            ("more", "docs/etwanalyzer.md has every difference"),
        ],
        causes: Vec::new,
    },
];

#[cfg(test)]
mod tests {
    use handlescope_model::tables::ResourceKind;

    use super::TOPICS;

    #[test]
    fn every_kind_of_allocations_has_its_words() {
        let topic = TOPICS.iter().find(|topic| topic.name == "allocations").expect("the topic");
        let described = topic.rows.iter().flat_map(|(names, _)| names.split(", "));
        let described: Vec<&str> = described.take(ResourceKind::ALL.len()).collect();
        assert_eq!(described, ResourceKind::ALL.map(ResourceKind::name));
    }
}
