-- What opened a handle or mapped a view. handles and leaks are made of it, so that leaks leaves rows out before columns are
-- computed.
--
-- file_index: Number of the file among those that are loaded.
-- id: Number of the object, as answers about objects show it.
-- type: Type of the object, as in Event.
-- name?: Name of the object.
-- kind: handle_create, handle_duplicate or map.
-- handle? [hex]: Handle value like 0xC0; null for a mapped view.
-- process?: Executable that owns the handle; the parent, if a child inherited it.
-- pid?: Its process id.
-- tid: Thread that opened it.
-- open_ns? [ns since session start]: When it was opened.
-- close_ns? [ns since session start]: When it was closed.
-- lifetime_ns? [ns]: How long it was open.
-- leaked: Whether nothing in the trace closes it.
-- class?: never_closed; closed_at_exit, when only the exit of its process closed it; else null.
-- closed_unseen?: What shows that it was closed though the trace lost the close: reused, not_in_rundown or process_ended; else null.
-- closed_after_ns? [ns since session start]: If it was closed unseen: it was still open then.
-- closed_before_ns? [ns since session start]: If it was closed unseen: it was closed then at the latest.
-- stack? [row of stacks]: Stack that opened it.
-- function?: The program's first function on it, as in leaky.exe!Cache::Get.
-- stack_text?: Its frames, a line for each.
-- close_stack? [row of stacks]: Stack that closed it.
-- close_process?: Executable that closed it.
-- source_process?: Executable it was duplicated from.
-- inherited_by?: Child that inherited it.
-- pointer [hex]: Kernel address of the object.
-- object [row of objects]: The object.
-- event [row of events]: The event that opened it.
-- process_row [row of processes]: The process.
SELECT
    file_index,
    objects_id(object) AS id,
    objects_type(object) AS type,
    names_name(objects_name(object)) AS name,
    kind_name AS kind,
    handle,
    processes_name(process) AS process,
    processes_pid(process) AS pid,
    tid,
    event_time(row) AS open_ns,
    event_time(closing_event) AS close_ns,
    event_time(closing_event) - event_time(row) AS lifetime_ns,
    leaked,
    CASE WHEN leaked THEN 'never_closed' WHEN closed_at_exit THEN 'closed_at_exit' END AS class,
    CASE closed_unseen
        WHEN 0 THEN 'reused'
        WHEN 1 THEN 'not_in_rundown'
        WHEN 2 THEN 'process_ended'
    END AS closed_unseen,
    closed_after_ns,
    closed_before_ns,
    stack,
    stacks_function(stack) AS function,
    stacks_text(stack) AS stack_text,
    events_stack(closing_event) AS close_stack,
    processes_name(COALESCE(events_caller_process(closing_event), events_process(closing_event)))
        AS close_process,
    processes_name(source_process) AS source_process,
    processes_name(inherited_by) AS inherited_by,
    objects_pointer(object) AS pointer,
    object,
    row AS event,
    process AS process_row,
    closed_at_exit
FROM events
WHERE kind = 0 OR kind = 1 OR kind = 7 -- handle_create, handle_duplicate, map
