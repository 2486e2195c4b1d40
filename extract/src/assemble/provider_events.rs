//! Tables of provider events, their fields and values.

use handlescope_model::tables::{
    EventField, EventFields, EventValue, EventValues, ProviderEvent, ProviderEvents,
};
use handlescope_model::{
    ArchiveWriter, Bytes, Cancel, EventCountIdx, EventFieldIdx, EventValueIdx, Poll, ProcessIdx,
    ProviderEventIdx, ROW_GROUP_ROWS, RowCount, StackIdx, Table,
};
use hashbrown::HashSet;
use rustc_hash::FxHashMap;

use crate::collect::{KeptEvent, KeptEvents};
use crate::error::ExtractError;
use crate::etl::{Clock, EventId};
use crate::lifecycle::ProcessIndex;
use crate::metadata::{
    DecodedEvent, Decoder, FieldKind, FieldPlan, Fields, Node, SchemaId, SchemaSource, Value,
    ValueForm, sid_text,
};
use crate::stacks::StackResolver;

/// Maximum number of values in all: row numbers have 32 bits.
const MAX_VALUES: usize = u32::MAX as usize - (1 << 20);

/// Longest member name, in bytes, with the names of its structures as prefix. Longer names get no prefix.
const MAX_PATH: usize = 256;

/// Rows of the event counts table by kind and, for TraceLogging, name.
pub type EventRows = FxHashMap<(EventId, Option<String>), EventCountIdx>;

/// Inputs for the tables of provider events.
pub struct ProviderEventTables<'a, 'r> {
    pub kept: &'a KeptEvents,
    pub decoder: &'a mut Decoder,
    pub rows: &'a EventRows,
    pub index: &'a ProcessIndex,
    pub clock: &'a Clock,
    /// Raw time and thread of events with carried stacks that are already in other tables.
    pub carried: &'a HashSet<(i64, u32)>,
    pub resolver: &'a mut StackResolver<'r>,
}

/// Table rows made so far.
#[derive(Default)]
struct Made {
    events: ProviderEvents,
    fields: EventFields,
    /// Row of each schema's first field.
    first_fields: FxHashMap<SchemaId, u32>,
    values: usize,
    /// Number of values of each field in the current event.
    items: FxHashMap<usize, u32>,
    left_out: u64,
    stacks: u64,
}

/// Counts of provider events.
pub struct LeftOutAndStacks {
    /// Events left out because there were too many.
    pub left_out: u64,
    /// Stacks that no other table has.
    pub stacks: u64,
}

impl ProviderEventTables<'_, '_> {
    /// Writes the tables, unless cancelled.
    pub fn write(
        mut self,
        writer: &mut ArchiveWriter,
        cancel: &Cancel,
    ) -> Result<LeftOutAndStacks, ExtractError> {
        let mut made = Made { left_out: self.kept.left_out, ..Made::default() };
        let (mut at, mut poll) = (0, Poll::new(cancel));
        let written = writer.table_in_parts(Table::EventValues, || {
            let mut batch = EventValues::default();
            while at < self.kept.len() && batch.len() < ROW_GROUP_ROWS && poll.round().is_ok() {
                self.event(at, &mut made, &mut batch);
                at += 1;
            }
            (!batch.is_empty()).then(|| batch.into_frame())
        });
        cancel.check()?;
        written?;
        writer.table(Table::EventFields, made.fields.into_frame())?;
        writer.table(Table::ProviderEvents, made.events.into_frame())?;
        Ok(LeftOutAndStacks { left_out: made.left_out, stacks: made.stacks })
    }

    fn event(&mut self, at: usize, made: &mut Made, values: &mut EventValues) {
        let Some(event) = self.kept.get(at) else { return };
        let Some(decoded) = self.kept.decode(at, self.decoder) else { return };
        let is_trace_logging = decoded.schema.source == SchemaSource::TraceLogging;
        let name = is_trace_logging.then(|| decoded.schema.task.to_string());
        let Some(row) = self.rows.get(&(event.id, name)).copied() else { return };
        if made.values >= MAX_VALUES {
            made.left_out += 1;
            return;
        }
        let first_field = made.first_field(&decoded, row);
        let before = values.len();
        made.items.clear();
        for node in decoded.fields() {
            made.node(node, first_field, false, values);
        }
        let count = values.len() - before;
        let first_value = EventValueIdx::from_row(made.values);
        made.values += count;
        let KeptEvent { time, pid, tid, stack, .. } = *event;
        let pid_of_stack = KeptEvents::stack_pid(event);
        let stack = self.resolver.stack(stack, &[], pid_of_stack, time);
        made.stacks += u64::from(
            stack.is_some() && tid.is_none_or(|tid| !self.carried.contains(&(time, tid))),
        );
        made.events.push(ProviderEvent {
            time_ns: self.clock.ns(time),
            process: pid.and_then(|pid| self.index.find(pid, time)).map(ProcessIdx),
            pid,
            tid,
            event: row,
            stack: stack.map(StackIdx),
            first_value,
            value_count: RowCount::new(count as u32),
            is_short: decoded.is_short() || decoded.is_bad(),
            rest: decoded.rest() as u32,
        });
    }
}

impl Made {
    /// Returns the row of a schema's first field. Its fields are in consecutive rows.
    fn first_field(&mut self, decoded: &DecodedEvent<'_>, event: EventCountIdx) -> u32 {
        let Self { first_fields, fields, .. } = self;
        *first_fields.entry(decoded.id).or_insert_with(|| {
            let first = fields.len() as u32;
            let schema = &decoded.schema.fields;
            for (plan, name) in schema.plans().iter().zip(names(schema)) {
                let kind = kind(plan).to_owned();
                let map = plan.map.as_deref().map(str::to_owned);
                fields.push(EventField { event, name, kind, map });
            }
            first
        })
    }

    fn node(&mut self, node: Node<'_>, first: u32, is_item: bool, values: &mut EventValues) {
        let Some(value) = node.value() else {
            let is_item = is_item || node.is_array();
            for child in node.children() {
                self.node(child, first, is_item, values);
            }
            return;
        };
        let number = self.items.entry(node.field_number()).or_default();
        let item = is_item.then_some(*number);
        *number += 1;
        let event = ProviderEventIdx::from_row(self.events.len());
        let field = EventFieldIdx(first + node.field_number() as u32);
        let ColumnValue { signed, unsigned, float, text, bytes } = ColumnValue::new(value);
        values.push(EventValue { event, field, item, signed, unsigned, float, text, bytes });
    }
}

/// Returns the names of all fields, prefixed with the names of their structures.
fn names(fields: &Fields) -> Vec<String> {
    let mut names: Vec<String> = fields.plans().iter().map(|plan| plan.name.to_string()).collect();
    // Members follow their structure, so its name is complete by then.
    for (at, plan) in fields.plans().iter().enumerate() {
        if let FieldKind::Structure { first, members } = plan.kind {
            let prefix = names.get(at).cloned().unwrap_or_default();
            for name in names.iter_mut().skip(first.into()).take(members.into()) {
                if prefix.len() + name.len() < MAX_PATH {
                    *name = format!("{prefix}.{name}");
                }
            }
        }
    }
    names
}

fn kind(plan: &FieldPlan) -> &'static str {
    match plan.kind {
        FieldKind::Structure { .. } => "structure",
        FieldKind::Value(form, _) => match form {
            ValueForm::Signed => "signed",
            ValueForm::Unsigned => "unsigned",
            ValueForm::Hex => "hex",
            ValueForm::Bool => "bool",
            ValueForm::Float => "float",
            ValueForm::Utf16 | ValueForm::Ansi => "text",
            ValueForm::Binary => "binary",
            ValueForm::Guid => "guid",
            ValueForm::FileTime => "filetime",
            ValueForm::SystemTime => "systemtime",
            ValueForm::Sid => "sid",
        },
    }
}

/// Value in the column of its type.
#[derive(Default)]
struct ColumnValue {
    signed: Option<i64>,
    unsigned: Option<u64>,
    float: Option<f64>,
    text: Option<String>,
    bytes: Option<Bytes>,
}

impl ColumnValue {
    fn new(value: Value<'_>) -> ColumnValue {
        let empty = ColumnValue::default();
        let text = |text: String| ColumnValue { text: Some(text), ..ColumnValue::default() };
        match value {
            Value::Signed(number) => ColumnValue { signed: Some(number), ..empty },
            Value::Unsigned(number) | Value::Hex(number) | Value::FileTime(number) => {
                ColumnValue { unsigned: Some(number), ..empty }
            }
            Value::Bool(is_true) => ColumnValue { unsigned: Some(is_true.into()), ..empty },
            Value::F32(number) => ColumnValue { float: Some(number.into()), ..empty },
            Value::F64(number) => ColumnValue { float: Some(number), ..empty },
            Value::Utf16(_) | Value::Ansi(_) => text(value.text().unwrap_or_default().into_owned()),
            Value::Binary(bytes) => ColumnValue { bytes: Some(Bytes(bytes.to_vec())), ..empty },
            Value::Sid(bytes) => text(sid_text(bytes)),
            Value::Guid(_) | Value::SystemTime(_) => text(value.to_string()),
        }
    }
}
