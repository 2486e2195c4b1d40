//! `.dump Events -ShowFields`: the single provider events that an extract keeps, with their fields.

use std::collections::{BTreeSet, HashMap};
use std::fmt;

use handlescope_model::tables::{
    EventCounts, EventField, EventFields, EventValues, ProviderEvents,
};
use handlescope_model::{
    Blobs, EventFieldIdx, Numbers, ProcessIdx, StackIdx, TableRows, Texts, Trace,
};

use serde::{Serialize, Serializer};

use super::context::Source;
use super::criterion::{Criterion, Survivors};
use super::error::QueryError;
use super::event_counts::{CountedEvent, CountedEvents, EventsAnswer, names};
use super::frame_names::{FrameNames, Frames};
use super::frame_view::ModuleBases;
use super::info::check_clock;
use super::list_answer::{ListAnswer, explained};
use super::no_match::{Candidates, ListSubject, NoMatch};
use super::tables::{ProcessInfo, ProcessList, SelectedProcesses};
use crate::criteria::EventCriteria;
use handlescope_session::cancel::{Cancel, Poll};
use handlescope_session::filter::Filter;
use handlescope_session::values::TopN;

/// What `.dump Events` with single events says about one trace.
pub type ProviderEventsAnswer<'a> = ListAnswer<'a, ProviderEventList<'a>>;

/// Single events of one trace.
pub struct ProviderEventList<'a> {
    /// The requested events among those that passed, in time order.
    pub rows: Vec<SingleEvent>,
    /// Number of events that passed.
    pub passed: usize,
    /// Number of events that the extract keeps.
    pub kept: usize,
    /// Description of each kind of event.
    pub kinds: Vec<CountedEvent>,
    pub frames: Frames<'a>,
    pub bases: ModuleBases,
    processes: ProcessList,
}

pub struct SingleEvent {
    pub time_ns: i64,
    /// Row of its process, if known.
    pub process: Option<ProcessIdx>,
    /// Process id from its header.
    pub pid: Option<u32>,
    /// Thread id from its header.
    pub tid: Option<u32>,
    /// Index in [`ProviderEventList::kinds`].
    pub kind: usize,
    /// The stack that it carries.
    pub stack: Option<StackIdx>,
    /// Whether its payload ends before its last field.
    pub is_short: bool,
    /// Fields of the event, if requested.
    pub fields: Vec<NamedField>,
}

pub struct NamedField {
    pub name: String,
    /// Values of the field: exactly one unless it is an array.
    pub values: Vec<FieldValue>,
    /// Whether the field is an array.
    pub is_list: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub enum FieldValue {
    Signed(i64),
    Unsigned(u64),
    /// A pointer or mask.
    Hex(u64),
    Bool(bool),
    /// A floating point number.
    Float(f64),
    Text(String),
    Bytes(Vec<u8>),
}

impl<'a> ProviderEventList<'a> {
    /// Returns the process of an event; only the id is set if the process is unknown.
    pub fn process(&self, event: &SingleEvent) -> ProcessInfo {
        self.processes.known_or_pid(event.process, event.pid.unwrap_or_default())
    }

    fn new(
        source: &Source<'a>,
        args: &EventCriteria,
        names: &'a dyn FrameNames,
        cancel: &'a Cancel,
    ) -> Result<(Self, Survivors), QueryError> {
        let trace = source.trace;
        let kept = SingleEvents::load(trace)?;
        let (selected, survivors) = kept.rows(source, args, cancel)?;
        let passed = selected.len();
        let TopN { take, skip } = args.top.unwrap_or(TopN { take: passed, skip: 0 });
        let values = args.fields.then(|| FieldValues::new(trace)).transpose()?;
        let mut poll = Poll::new(cancel);
        let mut rows = Vec::new();
        for row in selected.into_iter().skip(skip).take(take) {
            poll.round()?;
            rows.push(kept.event(row, values.as_ref()));
        }
        let frames = Frames::load(trace, names, source.frames, source.system, cancel)?;
        if args.stacks.show {
            frames.resolve(rows.iter().filter_map(|event| event.stack))?;
        }
        let list = Self {
            rows,
            passed,
            kept: kept.events.len(),
            kinds: kept.kinds,
            frames,
            bases: ModuleBases::load(trace)?,
            processes: kept.processes,
        };
        Ok((list, survivors))
    }
}

/// Answers `.dump Events` with single events, one answer for each trace.
///
/// # Errors
/// If an archive is damaged or `cancel` asks to stop.
pub fn provider_events<'a>(
    sources: &[Source<'a>],
    args: &EventCriteria,
    names: &'a dyn FrameNames,
    cancel: &'a Cancel,
) -> Result<Vec<ProviderEventsAnswer<'a>>, QueryError> {
    let list = |source: &Source<'a>| ProviderEventList::new(source, args, names, cancel);
    explained(sources, list, no_event(args, cancel))
}

/// Explains why no single event of a trace passes.
fn no_event(
    args: &EventCriteria,
    cancel: &Cancel,
) -> impl Fn(&Source<'_>, &Survivors) -> Result<Option<NoMatch>, QueryError> {
    |source, survivors| {
        let events = SingleEvents::load(source.trace)?;
        let names = |passed: &_, criterion, value: &_| {
            let (rows, _) = events.rows(source, passed, cancel)?;
            Ok(Candidates::new(value, events.names(&rows, criterion)))
        };
        NoMatch::new(ListSubject::Event, args, survivors, names, |criteria| {
            Ok(!events.rows(source, criteria, cancel)?.0.is_empty())
        })
    }
}

/// Answers `.dump Events` with counts of single events, one answer for each trace.
///
/// # Errors
/// Fails like [`provider_events`].
pub fn single_event_counts<'a>(
    sources: &[Source<'a>],
    args: &EventCriteria,
    cancel: &Cancel,
) -> Result<Vec<EventsAnswer<'a>>, QueryError> {
    let list = |source: &Source<'a>| {
        let kept = SingleEvents::load(source.trace)?;
        let (rows, survivors) = kept.rows(source, args, cancel)?;
        let SingleEvents { events, mut kinds, .. } = kept;
        for kind in &mut kinds {
            kind.counted.count = 0;
            (kind.counted.first_ns, kind.counted.last_ns) = (None, None);
        }
        for row in rows {
            let Some(kind) = kinds.get_mut(events.event[row].row()) else { continue };
            let time = Some(events.time_ns[row]);
            kind.counted.count += 1;
            kind.counted.first_ns = kind.counted.first_ns.or(time);
            kind.counted.last_ns = time;
        }
        kinds.retain(|kind| kind.counted.count > 0);
        Ok((CountedEvents::new(kinds, events.len() as u64, true), survivors))
    };
    explained(sources, list, no_event(args, cancel))
}

/// The single events of an extract.
struct SingleEvents {
    events: ProviderEvents,
    kinds: Vec<CountedEvent>,
    processes: ProcessList,
}

impl SingleEvents {
    fn load(trace: &Trace) -> Result<Self, QueryError> {
        Ok(Self {
            events: ProviderEvents::read(trace)?,
            kinds: EventCounts::read(trace)?.rows().map(CountedEvent::new).collect(),
            processes: ProcessList::load(trace)?,
        })
    }

    /// Returns the rows that pass, ascending, and how many each criterion leaves.
    fn rows(
        &self,
        source: &Source<'_>,
        args: &EventCriteria,
        cancel: &Cancel,
    ) -> Result<(Vec<usize>, Survivors), QueryError> {
        check_clock(source.trace, source.path, args)?;
        cancel.check()?;
        let Self { events, kinds, processes } = self;
        // Events of unknown kinds are left out.
        let kind = |row: usize| events.event[row].row();
        let mut rows: Vec<usize> =
            (0..events.len()).filter(|row| kind(*row) < kinds.len()).collect();
        let mut survivors = Survivors::new(rows.len());
        let verdicts = |filter: &Option<Filter>, passes: fn(&CountedEvent, &Filter) -> bool| {
            let filter = filter.as_ref();
            filter.map(|filter| kinds.iter().map(|kind| passes(kind, filter)).collect::<Vec<_>>())
        };
        let providers = verdicts(&args.provider, CountedEvent::is_of_provider);
        survivors
            .keep(Criterion::Provider, &providers, &mut rows, |passes, row| passes[kind(*row)]);
        let events_by_kind = verdicts(&args.event, CountedEvent::matches);
        survivors
            .keep(Criterion::Event, &events_by_kind, &mut rows, |passes, row| passes[kind(*row)]);
        for (criterion, part) in args.processes.parts() {
            let selected = SelectedProcesses::new(processes, part);
            survivors.keep(criterion, &Some(selected), &mut rows, |selected, row| {
                selected.has(events.process[*row], events.pid[*row].unwrap_or_default())
            });
        }
        let time = args.time.map(|range| range.nanoseconds());
        survivors.keep(Criterion::MinMaxTime, &time, &mut rows, |time, row| {
            time.contains(&events.time_ns[*row])
        });
        Ok((rows, survivors))
    }

    /// Returns the names of some rows that a criterion looks at.
    fn names(&self, rows: &[usize], criterion: Criterion) -> BTreeSet<String> {
        let Self { events, kinds, processes } = self;
        if criterion == Criterion::Process {
            let owners: BTreeSet<ProcessIdx> =
                rows.iter().filter_map(|row| events.process[*row]).collect();
            return owners
                .into_iter()
                .map(|row| processes.get(row))
                .map(|owner| owner.shown_name(false).to_owned())
                .collect();
        }
        let kinds_of_rows: BTreeSet<usize> =
            rows.iter().map(|row| events.event[*row].row()).collect();
        names(kinds_of_rows.into_iter().filter_map(|kind| kinds.get(kind)), criterion)
    }

    fn event(&self, row: usize, values: Option<&FieldValues>) -> SingleEvent {
        let events = &self.events;
        let first = events.first_value[row].row();
        let count = events.value_count[row].0 as usize;
        SingleEvent {
            time_ns: events.time_ns[row],
            process: events.process[row],
            pid: events.pid[row],
            tid: events.tid[row],
            kind: events.event[row].row(),
            stack: events.stack[row],
            is_short: events.is_short[row],
            fields: values.map(|values| values.fields(first, count)).unwrap_or_default(),
        }
    }
}

/// The columns of field values.
struct FieldValues {
    fields: Vec<EventField>,
    field: Numbers<EventFieldIdx>,
    item: Numbers<u32>,
    signed: Numbers<i64>,
    unsigned: Numbers<u64>,
    float: Numbers<f64>,
    text: Texts,
    bytes: Blobs,
}

impl FieldValues {
    fn new(trace: &Trace) -> Result<Self, QueryError> {
        Ok(Self {
            fields: EventFields::read(trace)?.rows().collect(),
            field: trace.values(EventValues::field)?,
            item: trace.values(EventValues::item)?,
            signed: trace.values(EventValues::signed)?,
            unsigned: trace.values(EventValues::unsigned)?,
            float: trace.values(EventValues::float)?,
            text: trace.values(EventValues::text)?,
            bytes: trace.values(EventValues::bytes)?,
        })
    }

    /// Returns the fields that a range of values belongs to, in order of their first values.
    fn fields(&self, first: usize, count: usize) -> Vec<NamedField> {
        let mut fields: Vec<(usize, NamedField)> = Vec::new();
        let mut indexes = HashMap::new();
        for row in first..first.saturating_add(count).min(self.field.len()) {
            let Some(number) = self.field.get(row).map(EventFieldIdx::row) else { continue };
            let Some(field) = self.fields.get(number) else { continue };
            let index = *indexes.entry(number).or_insert_with(|| {
                let is_list = self.item.get(row).is_some();
                let (name, values) = (field.name.clone(), Vec::new());
                fields.push((number, NamedField { name, values, is_list }));
                fields.len() - 1
            });
            if let Some((_, named)) = fields.get_mut(index) {
                named.values.extend(self.value(row, &field.kind));
            }
        }
        fields.into_iter().map(|(_, field)| field).collect()
    }

    fn value(&self, row: usize, kind: &str) -> Option<FieldValue> {
        let signed = self.signed.get(row).map(FieldValue::Signed);
        let unsigned = self.unsigned.get(row).map(|number| match kind {
            "hex" => FieldValue::Hex(number),
            "bool" => FieldValue::Bool(number != 0),
            _ => FieldValue::Unsigned(number),
        });
        let text = self.text.get(row).map(|text| FieldValue::Text(text.to_owned()));
        let bytes = self.bytes.get(row).map(|bytes| FieldValue::Bytes(bytes.to_vec()));
        let float = self.float.get(row).map(FieldValue::Float);
        signed.or(unsigned).or(text).or(bytes).or(float)
    }
}

impl fmt::Display for FieldValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Signed(number) => number.fmt(f),
            Self::Unsigned(number) => number.fmt(f),
            Self::Hex(number) => write!(f, "0x{number:X}"),
            Self::Bool(is_true) => is_true.fmt(f),
            Self::Float(number) => number.fmt(f),
            Self::Text(text) => f.write_str(text),
            Self::Bytes(bytes) => bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}")),
        }
    }
}

impl Serialize for NamedField {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.values.first().filter(|_| !self.is_list) {
            Some(value) => value.serialize(serializer),
            None => self.values.serialize(serializer),
        }
    }
}

impl Serialize for FieldValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Signed(number) => serializer.serialize_i64(*number),
            Self::Unsigned(number) => serializer.serialize_u64(*number),
            Self::Bool(is_true) => serializer.serialize_bool(*is_true),
            Self::Float(number) => serializer.serialize_f64(*number),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Hex(_) | Self::Bytes(_) => serializer.collect_str(self),
        }
    }
}
