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
use prost::Message;

use self::format::{Label, Profile, Sample, ValueType};
use self::places::Places;
use super::flame::line;
use super::folded::stack_frames;
use super::group::{GroupAmounts, PictureGroup, Weight, allocation_groups, handle_groups};
use handlescope_query::{
    Amount, FileAnswer, ResourcesAnswer, TraceAnswer, WhyAnswer, session_start_us,
};
use handlescope_session::paths::stem;

/// The amounts of a group: opened or allocated and, of these, never closed or freed.
type SampleAmounts = [Amount; 2];

/// What a process leaks on a stack that belongs to a suspect.
#[derive(Debug, Clone)]
struct SuspectPart {
    process: String,
    type_name: String,
    allocator: String,
    id: String,
}

/// Ids of the suspects of some traces, by the trace and the functions of a stack.
#[derive(Default)]
pub struct SuspectIds(HashMap<(usize, String), Vec<SuspectPart>>);

impl SuspectIds {
    /// Takes the suspects of answers of `.why` that leave out the same frames as the profile.
    pub fn from_answers(answers: &[WhyAnswer<'_>]) -> Self {
        let mut ids: HashMap<_, Vec<SuspectPart>> = HashMap::new();
        for WhyAnswer { file, suspects, .. } in answers {
            for suspect in suspects {
                for stack in &suspect.equal_stacks {
                    let parts = ids.entry((file.about().index, functions(file, *stack)));
                    parts.or_default().extend(suspect.processes.iter().map(|process| {
                        SuspectPart {
                            process: process.process.clone(),
                            type_name: suspect.type_name.clone(),
                            allocator: suspect.allocator.clone().unwrap_or_default(),
                            id: suspect.id.text().to_owned(),
                        }
                    }));
                }
            }
        }
        Self(ids)
    }

    /// The parts on a stack, the worst suspect first.
    fn on_stack<'a>(
        &self,
        answer: &impl TraceAnswer<'a>,
        stack: Option<StackIdx>,
    ) -> &[SuspectPart] {
        let key = (answer.about().index, functions(answer, stack));
        self.0.get(&key).map_or(&[], Vec::as_slice)
    }
}

impl SuspectPart {
    fn is_of(&self, group: &PictureGroup<'_>) -> bool {
        // Suspects leave out allocators that say no more than the kind.
        self.process == group.process
            && self.type_name == group.type_name
            && (self.allocator.is_empty() || self.allocator == group.allocator)
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
    samples: Vec<(Sample, SampleAmounts)>,
    suspects: &'s SuspectIds,
    /// The stacks of the last trace: groups of several processes have the same.
    stacks: HashMap<Option<StackIdx>, StackOfTrace<'s>>,
    /// Whether samples name their traces.
    has_traces: bool,
    /// Start of the earliest trace, nanoseconds since 1970.
    start_ns: Option<i64>,
    /// Lengths of all traces.
    length_ns: i64,
}

/// Places of a stack, innermost first, and the suspects that leak on it.
type StackOfTrace<'s> = (Vec<u64>, &'s [SuspectPart]);

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
            builder.add_trace(file, handle_groups(file, weight));
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
            builder.add_trace(answer, allocation_groups(answer, answer.shown_groups()));
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
            stacks: HashMap::new(),
            has_traces: traces > 1,
            start_ns: None,
            length_ns: 0,
        }
    }

    /// Adds the groups of a trace.
    fn add_trace<'a, 'g>(
        &mut self,
        answer: &impl TraceAnswer<'a>,
        groups: impl Iterator<Item = GroupAmounts<'g>>,
    ) {
        self.stacks.clear();
        let info = &answer.about().info;
        let start_ns = session_start_us(info).map(|start| start.saturating_mul(1000));
        self.start_ns = self.start_ns.into_iter().chain(start_ns).min();
        let length_ns =
            info.recorded_ns().map_or(0, |times| times.end().saturating_sub(*times.start()));
        self.length_ns = self.length_ns.saturating_add(length_ns);
        groups.for_each(|(group, amounts)| self.add(answer, &group, amounts));
    }

    fn add<'a>(
        &mut self,
        answer: &impl TraceAnswer<'a>,
        group: &PictureGroup<'_>,
        amounts: SampleAmounts,
    ) {
        if amounts.iter().all(|amount| amount.count == 0) {
            return;
        }
        let (places, suspects) = (&mut self.places, self.suspects);
        let stack = self.stacks.entry(group.stack).or_insert_with(|| {
            (places.stack(answer, group.stack), suspects.on_stack(answer, group.stack))
        });
        let (location_id, suspects) = (stack.0.clone(), stack.1);
        let suspect = suspects.iter().find(|part| part.is_of(group));
        let trace =
            self.has_traces.then(|| stem(answer.about().path).to_string_lossy().into_owned());
        let label = [
            ("process", Some(&*group.process)),
            ("type", Some(group.type_name)),
            ("allocator", Some(group.allocator)),
            ("suspect", suspect.map(|part| part.id.as_str())),
            ("trace", trace.as_deref()),
        ]
        .into_iter()
        .filter_map(|(key, value)| Some((key, value?)))
        .filter(|(_, value)| !value.is_empty())
        .map(|(key, value)| Label { key: self.places.text(key), str: self.places.text(value) })
        .collect();
        self.samples.push((Sample { location_id, value: Vec::new(), label }, amounts));
    }

    /// Makes the profile: with bytes where anything has some.
    fn finish(mut self, by_count: bool) -> PprofProfile {
        let mut amounts = self.samples.iter().flat_map(|(_, amounts)| amounts);
        let has_bytes = amounts.any(|amount| amount.bytes != 0);
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
            .flat_map(|what| units.iter().map(move |(of, unit)| (format!("{what}_{of}"), *unit)))
            .map(|(name, unit)| value_type(&name, unit))
            .collect();
        let shown = if has_bytes && !by_count { "inuse_space" } else { "inuse_objects" };
        let period_type =
            if has_bytes { value_type("space", "bytes") } else { value_type("objects", "count") };
        let default_sample_type = self.places.text(shown);
        let comment = vec![self.places.text(concat!("handlescope ", env!("CARGO_PKG_VERSION")))];
        let sample = self.samples.into_iter().map(|(sample, amounts)| {
            let values = amounts.into_iter().flat_map(|Amount { count, bytes }| {
                let count = i64::try_from(count).unwrap_or(i64::MAX);
                // Sums of bytes may be negative if events say so.
                [Some(count), has_bytes.then_some(bytes.max(0))]
            });
            Sample { value: values.flatten().collect(), ..sample }
        });
        let sample = sample.collect();
        PprofProfile {
            profile: Profile {
                sample_type,
                sample,
                time_nanos: self.start_ns.unwrap_or_default(),
                duration_nanos: self.length_ns,
                period_type: Some(period_type),
                period: 1,
                comment,
                default_sample_type,
                ..self.places.into_profile()
            },
        }
    }
}
