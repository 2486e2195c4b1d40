-- Values of the kept provider events: provider_events, event_fields and event_values joined.
--
-- file_index: Number of the file among the loaded ones.
-- time_ns [ns since session start]: When the event happened.
-- provider?: Provider of the event; null if nothing names it.
-- event?: Name of the event; null if nothing names it.
-- kind: The kind of the event, as in event_counts.
-- process?: Executable of its header.
-- pid?: Process id of its header.
-- tid?: Thread id of its header.
-- field: The name of the field.
-- item?: Number of the value in the array of its field, from 0; null outside of arrays.
-- signed?: The value, if it is a signed integer.
-- unsigned?: The value, if it is an unsigned integer, pointer, truth value or FILETIME.
-- float?: The value, if it is a floating point number.
-- text?: The value, if it is a text, GUID, security identifier or SYSTEMTIME.
-- bytes?: The value, if it is bytes.
-- stack? [row of stacks]: Stack of the event.
-- stack_text?: Its frames, a line for each.
-- event_row [row of provider_events]: The event, in provider_events.
-- process_row? [row of processes]: The process.
SELECT
    file_index,
    provider_events_time_ns(event) AS time_ns,
    event_counts_provider(provider_events_event(event)) AS provider,
    event_counts_name(provider_events_event(event)) AS event,
    event_counts_kind(provider_events_event(event)) AS kind,
    processes_name(provider_events_process(event)) AS process,
    provider_events_pid(event) AS pid,
    provider_events_tid(event) AS tid,
    event_fields_name(field) AS field,
    item,
    signed,
    unsigned,
    "float",
    text,
    bytes,
    provider_events_stack(event) AS stack,
    stacks_text(provider_events_stack(event)) AS stack_text,
    event AS event_row,
    provider_events_process(event) AS process_row
FROM event_values
