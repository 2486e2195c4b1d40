-- Handles, mapped views and allocations, one row each. The other views select rows of it.
--
-- file_index: Number of the file among the loaded ones.
-- row: Number of the acquisition.
-- kind: handle, view, heap, commit, reserve, resource, gdi or user.
-- type: Type of the object, as in Event; for an allocation the kind.
-- name?: Name of the object.
-- allocator?: For an allocation: the heap in hex, VirtualAlloc, what the event names, or the type of the handle.
-- provider?: The provider of the events of an allocation; null for the kernel and heaps.
-- process?: Executable that owns it: the target of a duplicate, the child that inherited it.
-- pid?: Its process id.
-- key [hex]: Handle value like 0xC0, or the first address of a view or allocation.
-- size? [bytes]: Size of a view or allocation, or of the part of one that ended by itself.
-- origin: create, duplicate, inherit, map, allocate, reallocate; before, if it was open when the trace began.
-- opened_ns? [ns since session start]: When it was opened.
-- opened_tid?: Thread that opened it.
-- opened_by?: Executable that opened it, if not the owner; for duplicates always.
-- function?: The program's first function on the stack that opened it, as in leaky.exe!Cache::Get.
-- stack_text?: The frames of that stack, a line for each.
-- end: open; closed; at_exit, if only the end of its process released it; reused, not_in_rundown or process_ended, if it was closed but the trace lost the close; for an allocation also freed, reallocated, replaced, destroyed or empty.
-- ended_ns? [ns since session start]: When it ended; the latest possible time if the trace lost the close.
-- ended_tid?: Thread that ended it.
-- ended_by?: Executable that ended it, if not the owner.
-- ended_function?: The program's first function on the stack that ended it.
-- ended_after_ns? [ns since session start]: Time at which it was still open, if the trace lost its close.
-- lifetime_ns? [ns]: How long it was open.
-- in_trace: Whether the trace has its opening.
-- leaked: Whether the trace has its opening, and nothing released it.
-- at_exit: Whether its program opened it, and only the end of the process released it.
-- in_rundown?: Whether the rundown at the end lists it; null in a trace without one.
-- in_start_rundown?: Whether the rundown at the start lists it; null for what was not open then.
-- source_process?: Executable it was duplicated from, or the parent that it was inherited from.
-- source_key? [hex]: Handle value in that process.
-- granted_access? [hex]: Rights that were granted, like 0x1F0003; null unless a dump lists the handle.
-- handle_count?: Number of handles to the object; null unless a dump lists it.
-- pointer_count?: Number of references to the object; null unless a dump lists it.
-- part_of? [row of acquisitions]: The first part of the same allocation; null for this one.
-- id?: Number of the object, as answers about objects show it.
-- pointer? [hex]: Kernel address of the object.
-- opened_stack? [row of stacks]: Stack that opened it.
-- ended_stack? [row of stacks]: Stack that ended it.
-- object? [row of objects]: The object.
-- allocator_row? [row of allocators]: The allocator.
-- process_row? [row of processes]: The process.
SELECT
    file_index,
    row,
    kind_name AS kind,
    COALESCE(objects_type(object), kind_name) AS type,
    names_name(objects_name(object)) AS name,
    allocators_name(allocator) AS allocator,
    allocators_provider(allocator) AS provider,
    processes_name(process) AS process,
    COALESCE(processes_pid(process), allocators_pid(allocator)) AS pid,
    key,
    size,
    origin_name AS origin,
    opened_ns,
    opened_tid,
    processes_name(opened_by) AS opened_by,
    stacks_function(opened_stack) AS function,
    stacks_text(opened_stack) AS stack_text,
    end_name AS "end",
    ended_ns,
    ended_tid,
    processes_name(ended_by) AS ended_by,
    stacks_function(ended_stack) AS ended_function,
    ended_after_ns,
    ended_ns - opened_ns AS lifetime_ns,
    in_trace,
    leaked,
    at_exit,
    in_rundown,
    in_start_rundown,
    processes_name(source_process) AS source_process,
    source_key,
    granted_access,
    objects_handle_count(object) AS handle_count,
    objects_pointer_count(object) AS pointer_count,
    part_of,
    objects_id(object) AS id,
    objects_pointer(object) AS pointer,
    opened_stack,
    ended_stack,
    object,
    allocator AS allocator_row,
    process AS process_row
FROM _acquisitions
