//! Profiles for pprof and what reads its format: Grafana Pyroscope, Parca, speedscope.
//!
//! A sample is a group of one process, type and stack. Its stack has functions only; process, type and suspect are labels.

mod format;
mod places;

use std::collections::HashMap;
use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use handlescope_model::StackIdx;
use handlescope_model::tables::TraceInfo;
use prost::Message;

use self::format::{Label, Profile, Sample, ValueType};
use self::places::{Lists, Places};
use super::folded::{UNKNOWN, Weight, stack_frames};
use super::line;
use handlescope_query::{
    FileAnswer, GroupColumn, GroupKey, ResourcesAnswer, TraceAnswer, WhyAnswer, session_start_us,
};
use handlescope_session::paths::stem;

/// Numbers of a group, opened or allocated and, of these, never closed or freed.
#[derive(Debug, Clone, Copy, Default)]
struct Amounts {
    count: [u64; 2],
    /// Bytes of allocations.
    bytes: [i64; 2],
}

/// A group as the labels of its sample name it.
struct Group<'g> {
    process: &'g str,
    /// Type of the objects, or kind of the allocations.
    type_name: &'g str,
    /// The allocator; empty for handles.
    allocator: &'g str,
    stack: Option<StackIdx>,
}

/// Trace, process, type, allocator and functions of the stack.
type SuspectKey = (usize, String, String, String, String);

/// Ids of the suspects of some traces.
#[derive(Default)]
pub struct SuspectIds(HashMap<SuspectKey, String>);

impl SuspectIds {
    /// Takes the suspects of answers of `.why` that leave out the same frames as the profile.
    pub fn from_answers(answers: &[WhyAnswer<'_>]) -> Self {
        let mut ids = HashMap::new();
        for WhyAnswer { file, suspects, .. } in answers {
            for suspect in suspects {
                let stacks: Vec<String> =
                    suspect.equal_stacks.iter().map(|stack| functions(file, *stack)).collect();
                for process in &suspect.processes {
                    for stack in &stacks {
                        let key = (
                            file.about().index,
                            process.process.clone(),
                            suspect.type_name.clone(),
                            suspect.allocator.clone().unwrap_or_default(),
                            stack.clone(),
                        );
                        ids.entry(key).or_insert_with(|| suspect.id.text().to_owned());
                    }
                }
            }
        }
        Self(ids)
    }

    fn get<'a>(&self, answer: &impl TraceAnswer<'a>, group: &Group<'_>) -> Option<&str> {
        let stack = functions(answer, group.stack);
        // Suspects leave out allocators that say no more than the kind.
        let mut ids = [group.allocator, ""].into_iter().filter_map(|allocator| {
            let texts = [group.process, group.type_name, allocator].map(str::to_owned);
            let [process, type_name, allocator] = texts;
            self.0.get(&(answer.about().index, process, type_name, allocator, stack.clone()))
        });
        ids.next().map(String::as_str)
    }
}

fn functions<'a>(answer: &impl TraceAnswer<'a>, stack: Option<StackIdx>) -> String {
    line(&stack_frames(answer, stack))
}

/// What some traces opened or allocated, and what of it they never closed or freed.
pub struct PprofProfile {
    profile: Profile,
}

/// A profile to which samples are added.
struct ProfileBuilder<'s> {
    places: Places,
    samples: Vec<(Sample, Amounts)>,
    suspects: &'s SuspectIds,
    /// Whether samples name their traces.
    has_traces: bool,
    /// Start of the earliest trace, nanoseconds since 1970.
    start_ns: Option<i64>,
    /// Lengths of all traces.
    length_ns: i64,
}

impl PprofProfile {
    /// Takes the handles of traces that were asked for groups by process, create stack and type: those opened and, of
    /// these, those of the weight.
    pub fn from_handles(
        files: &[FileAnswer<'_>],
        weight: Weight,
        suspects: &SuspectIds,
    ) -> PprofProfile {
        let mut builder = ProfileBuilder::new(suspects, files.len());
        for file in files {
            builder.add_trace(&file.about.info);
            let Some(groups) = &file.groups else { continue };
            for leaf in groups.tree.leaves() {
                let stats = groups.tree.stats(leaf);
                let (mut process, mut type_name, mut stack) = (UNKNOWN, UNKNOWN, None);
                for (column, node) in groups.by.iter().zip(groups.path(leaf)) {
                    match (column, groups.key(node)) {
                        (GroupColumn::Process, GroupKey::Text(text)) => process = text,
                        (GroupColumn::Type, GroupKey::Text(text)) => type_name = text,
                        (_, GroupKey::Stack(key)) => stack = Some(key),
                        _ => {}
                    }
                }
                let group = Group { process, type_name, allocator: "", stack };
                let count = [stats.opened().into(), weight(&stats).into()];
                builder.add(file, &group, Amounts { count, ..Amounts::default() });
            }
        }
        builder.finish(false)
    }

    /// Takes allocations that were asked for groups by process, create stack, kind and allocator. The first shown value is
    /// their bytes, or their number if that is asked for or nothing has bytes.
    pub fn from_allocations(
        answers: &[ResourcesAnswer<'_>],
        by_count: bool,
        suspects: &SuspectIds,
    ) -> PprofProfile {
        let mut builder = ProfileBuilder::new(suspects, answers.len());
        for answer in answers {
            builder.add_trace(&answer.about.info);
            for group in answer.groups.iter().flat_map(|groups| &groups.rows) {
                let process = answer.process(group).map(|process| process.shown_label(false));
                let stats = &group.stats;
                let amounts = Amounts {
                    count: [stats.allocs, stats.unreleased()],
                    bytes: [stats.alloc_bytes, stats.unreleased_bytes()],
                };
                let group = Group {
                    process: process.as_deref().unwrap_or(UNKNOWN),
                    type_name: answer.kind(group).unwrap_or(UNKNOWN),
                    allocator: answer.allocator(group).unwrap_or_default(),
                    stack: group.create_stack(),
                };
                builder.add(answer, &group, amounts);
            }
        }
        builder.finish(by_count)
    }

    /// Whether nothing was opened or allocated.
    pub fn is_empty(&self) -> bool {
        self.profile.sample.is_empty()
    }

    /// Writes the profile, compressed with gzip; equal profiles are equal bytes.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut gzip = GzEncoder::new(out, Compression::default());
        gzip.write_all(&self.profile.encode_to_vec())?;
        gzip.finish().map(drop)
    }
}

impl<'s> ProfileBuilder<'s> {
    fn new(suspects: &'s SuspectIds, traces: usize) -> Self {
        Self {
            places: Places::default(),
            samples: Vec::new(),
            suspects,
            has_traces: traces > 1,
            start_ns: None,
            length_ns: 0,
        }
    }

    fn add_trace(&mut self, info: &TraceInfo) {
        let start_ns = session_start_us(info).map(|start| start.saturating_mul(1000));
        self.start_ns = self.start_ns.into_iter().chain(start_ns).min();
        let length_ns = info.recorded_ns().map_or(0, |times| times.end() - times.start());
        self.length_ns = self.length_ns.saturating_add(length_ns);
    }

    fn add<'a>(&mut self, answer: &impl TraceAnswer<'a>, group: &Group<'_>, amounts: Amounts) {
        if amounts.count == [0, 0] {
            return;
        }
        let location_id = self.places.stack(answer, group.stack);
        let trace =
            self.has_traces.then(|| stem(answer.about().path).to_string_lossy().into_owned());
        let labels = [
            ("process", Some(group.process)),
            ("type", Some(group.type_name)),
            ("allocator", Some(group.allocator)),
            ("suspect", self.suspects.get(answer, group)),
            ("trace", trace.as_deref()),
        ];
        let labels = labels.into_iter().filter_map(|(key, value)| Some((key, value?)));
        let label = labels
            .filter(|(_, value)| !value.is_empty())
            .map(|(key, value)| Label { key: self.places.text(key), str: self.places.text(value) })
            .collect();
        self.samples.push((Sample { location_id, value: Vec::new(), label }, amounts));
    }

    /// Makes the profile: with bytes where anything has some.
    fn finish(mut self, by_count: bool) -> PprofProfile {
        let has_bytes = self.samples.iter().any(|(_, amounts)| amounts.bytes != [0, 0]);
        let units: &[(&str, &str)] = if has_bytes {
            &[("objects", "count"), ("space", "bytes")]
        } else {
            &[("objects", "count")]
        };
        let mut value_type = |name: &str, unit: &str| ValueType {
            r#type: self.places.text(name),
            unit: self.places.text(unit),
        };
        let sample_type = ["alloc", "inuse"]
            .iter()
            .flat_map(|what| units.iter().map(move |(of, unit)| (format!("{what}_{of}"), *unit)));
        let sample_type = sample_type.map(|(name, unit)| value_type(&name, unit)).collect();
        let shown = if has_bytes && !by_count { "inuse_space" } else { "inuse_objects" };
        let period_type =
            if has_bytes { value_type("space", "bytes") } else { value_type("objects", "count") };
        let default_sample_type = self.places.text(shown);
        let comment = vec![self.places.text(concat!("handlescope ", env!("CARGO_PKG_VERSION")))];
        let sample = self.samples.into_iter().map(|(sample, amounts)| {
            let values = amounts.count.into_iter().zip(amounts.bytes).flat_map(|(count, bytes)| {
                let count = i64::try_from(count).unwrap_or(i64::MAX);
                // Sums of bytes may be negative if events say so.
                [Some(count), has_bytes.then_some(bytes.max(0))]
            });
            Sample { value: values.flatten().collect(), ..sample }
        });
        let sample = sample.collect();
        let Lists { texts, mappings, functions, locations } = self.places.into_lists();
        PprofProfile {
            profile: Profile {
                sample_type,
                sample,
                mapping: mappings,
                location: locations,
                function: functions,
                string_table: texts,
                time_nanos: self.start_ns.unwrap_or_default(),
                duration_nanos: self.length_ns,
                period_type: Some(period_type),
                period: 1,
                comment,
                default_sample_type,
            },
        }
    }
}
