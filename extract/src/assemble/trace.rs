//! Tables of the trace, of event counts and of losses.

use handlescope_model::tables::{
    EventCount, EventCounts, Loss, LossKind, Losses, StackEvent, StackEvents, TraceInfo,
    TraceInfos, UtcOffsets, Volume, Volumes,
};
use handlescope_model::{Cancel, Cancelled, EventCountIdx, Poll, ProcessIdx, StackIdx};

use super::provider_events::EventRows;
use crate::collect::{Collector, EventCounter, EventKindCount, KERNEL, event_name};
use crate::etl::{Clock, EventId, EventLoss, LossSpan};
use crate::lifecycle::{Attribution, ProcessIndex};
use crate::metadata::Decoder;
use crate::payload::TraceHeader;
use crate::recording::Recording;
use crate::stacks::{AddressSpaces, StackResolver, StackTable};

/// Statistics of the kept stacks.
pub struct StackStats {
    pub stacks_total: u64,
    pub frames_in_modules: u64,
}

/// Returns the event counts and their rows. Names come from the trace's metadata or else from the kernel's event
/// families.
pub fn event_counts(
    counter: &EventCounter,
    decoder: &Decoder,
    clock: &Clock,
) -> (EventCounts, EventRows) {
    let names = decoder.names();
    let mut rows = EventRows::default();
    let mut table = EventCounts::default();
    for EventKindCount { id, name, tally } in counter.kinds() {
        rows.insert((id, name.clone()), EventCountIdx::from_row(table.len()));
        let described = names.of(id);
        let described_name = described.map(|schema| schema.name());
        let provider = match id {
            EventId::Hook(_) => Some(KERNEL),
            EventId::Manifest { guid, .. } => names.provider(guid).or(counter.provider(guid)),
            _ => described.map(|schema| &*schema.provider),
        };
        table.push(EventCount {
            kind: id.to_string(),
            provider: provider.filter(|name| !name.is_empty()).map(str::to_owned),
            name: name.or(described_name).or_else(|| event_name(id).map(str::to_owned)),
            count: tally.count,
            first_ns: Some(clock.ns(tally.first)),
            last_ns: Some(clock.ns(tally.last)),
        });
    }
    (table, rows)
}

/// Returns the end of the trace: the last event, or the end of the session if that is later.
pub fn end_ns(recording: &Recording, counter: &EventCounter) -> i64 {
    let header = &recording.header;
    let session = match header.end_time {
        0 => 0,
        end => end.saturating_sub(header.start_time).saturating_mul(100),
    };
    let last = counter.kinds().into_iter().map(|counted| counted.tally.last).max();
    session.max(last.map_or(0, |last| recording.clock.ns(last)))
}

pub fn volumes(collected: &Collector) -> Volumes {
    let volume =
        |(nt, dos): (&String, &String)| Volume { nt_prefix: nt.clone(), dos_prefix: dos.clone() };
    collected.system.volumes.iter().map(volume).collect()
}

/// Returns the offsets of local time from UTC around the session.
fn utc_offsets(header: &TraceHeader) -> String {
    UtcOffsets::text(&header.time_zone.offsets(header.start_time, header.end_time))
}

pub fn info(
    recording: &Recording,
    collected: &Collector,
    counter: &EventCounter,
    attribution: &Attribution,
    stats: &StackStats,
) -> TraceInfos {
    let header = &recording.header;
    let system = &collected.system;
    let known_time = |time: i64| Some(time).filter(|time| *time > 0);
    let mut table = TraceInfos::default();
    table.push(TraceInfo {
        computer: system.computer.clone(),
        memory_mb: system.memory_mb,
        os_version: format!("{}.{}", header.version[0], header.version[1]),
        os_build: header.os_build,
        os_build_string: system.build.clone(),
        product: system.product.clone(),
        clock: recording.clock.kind.name().to_owned(),
        perf_freq: header.perf_freq,
        cpu_count: header.cpu_count,
        cpu_mhz: Some(header.cpu_mhz).filter(|mhz| *mhz > 0),
        pointer_size: header.pointer_size,
        buffer_size: header.buffer_size,
        log_file_version: Some(format!("{}.{}", header.version[2], header.version[3])),
        timer_resolution: Some(header.timer_resolution),
        maximum_file_size: Some(header.maximum_file_size),
        log_file_mode: header.log_file_mode,
        session_start_raw: recording.clock.base,
        session_start_filetime: header.start_time,
        session_end_filetime: known_time(header.end_time),
        recorded_from_ns: recording.recorded.map(|time| time.from_ns),
        recorded_to_ns: recording.recorded.map(|time| time.to_ns),
        boot_filetime: known_time(header.boot_time),
        tz_bias_minutes: header.time_zone.bias,
        utc_offset_minutes: header.time_zone.offset_at(header.start_time),
        utc_offsets: Some(utc_offsets(header)),
        buffers: recording.buffers_found,
        events_total: counter.total(),
        events_lost: u64::from(header.events_lost),
        buffers_lost: u64::from(header.buffers_lost),
        stack_fragments: counter.stack_parts(),
        stacks_total: stats.stacks_total,
        frames_in_modules: stats.frames_in_modules,
        attributed_header: attribution.header,
        attributed_stack: attribution.stack,
        attributed_before_exit: attribution.before_exit,
        attributed_system: attribution.system,
        attributed_dropped: attribution.dropped,
        ..recording.identity.trace_info(&recording.source, &recording.source_name)
    });
    table
}

/// Returns the losses shown by the buffers of the file and by loss records.
pub fn losses(recording: &Recording, collected: &Collector) -> Vec<EventLoss> {
    let records = &collected.losses;
    let recorded = records.last.map(|last| {
        let span = Some(LossSpan { from: None, to: Some(last) });
        EventLoss::new(LossKind::LossRecord, span, Some(records.count), None)
    });
    recording.losses.iter().copied().chain(recorded).collect()
}

/// Returns the rows of the table of losses; the trace ends at `end_ns`.
pub fn loss_table(losses: &[EventLoss], clock: &Clock, end_ns: i64) -> Losses {
    let mut rows: Vec<Loss> = losses
        .iter()
        .map(|loss| Loss {
            what: loss.kind.code(),
            from_ns: loss.span.map(|span| clock.ns_of(span.from).unwrap_or(0)),
            to_ns: loss.span.map(|span| clock.ns_of(span.to).unwrap_or(end_ns)),
            count: loss.count,
        })
        .collect();
    rows.sort_by_key(|loss| (loss.from_ns, loss.to_ns, loss.what));
    rows.into_iter().collect()
}

/// Returns every stack of the trace in time order if all were kept, unless cancelled.
pub fn stack_events(
    collected: &Collector,
    spaces: &AddressSpaces,
    methods: &AddressSpaces,
    index: &ProcessIndex,
    clock: &Clock,
    stacks: &mut StackTable,
    cancel: &Cancel,
) -> Result<StackEvents, Cancelled> {
    let mut table = StackEvents::default();
    let Some(all) = &collected.stacks.all else { return Ok(table) };
    let mut poll = Poll::new(cancel);
    let mut resolver = StackResolver::new(all.fragments(), spaces, methods, stacks, 1);
    let mut rows: Vec<_> = all.stacks().iter().collect();
    rows.sort_by_key(|stack| stack.event_time);
    for stack in rows {
        poll.round()?;
        let (parts, more) = stack.parts();
        let resolved = resolver.stack(parts, more, stack.pid, stack.event_time);
        table.push(StackEvent {
            time_ns: clock.ns(stack.event_time),
            process: index.find(stack.pid, stack.event_time).map(ProcessIdx),
            pid: stack.pid,
            tid: stack.tid,
            stack: resolved.map(StackIdx),
        });
    }
    Ok(table)
}
