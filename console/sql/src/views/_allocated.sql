-- What was allocated. allocations and resource_leaks are made of it, so that resource_leaks leaves rows out before columns
-- are computed.
--
-- file_index: Number of the file among those that are loaded.
-- kind: heap, commit, reserve, resource, gdi or user.
-- allocator: The heap in hex, VirtualAlloc, what the event names, or the type of the handle.
-- provider?: The provider of the events; null for the kernel and heaps.
-- process?: Executable that owns it.
-- pid?: Its process id.
-- allocated_by?: Executable that allocated it, where that is not the owner.
-- key [hex]: Address or handle like 0xC0.
-- size [bytes]: Its bytes; those of the part where an allocation ended in parts.
-- time_ns [ns since session start]: When it was allocated.
-- tid?: Thread that allocated it.
-- end: What became of it, as in open, freed or at_exit.
-- end_ns? [ns since session start]: When it ended.
-- at_exit: Whether only the end of its process freed it.
-- stack? [row of stacks]: Stack that allocated it.
-- function?: The program's first function on it, as in leaky.exe!Cache::Get.
-- stack_text?: Its frames, a line for each.
-- end_stack? [row of stacks]: Stack that freed it.
-- part_of? [row of resources]: The first part of the same allocation; null for this one.
-- resource [row of resources]: The allocation.
-- allocator_row [row of allocators]: Where it was allocated.
-- process_row? [row of processes]: The process.
SELECT
    file_index,
    allocators_kind_name(allocator) AS kind,
    allocators_name(allocator) AS allocator,
    allocators_provider(allocator) AS provider,
    processes_name(allocators_process(allocator)) AS process,
    allocators_pid(allocator) AS pid,
    processes_name(caller) AS allocated_by,
    key,
    size,
    time_ns,
    tid,
    end_name AS "end",
    end_time_ns AS end_ns,
    "end" = 5 AS at_exit,
    stack,
    stacks_function(stack) AS function,
    stacks_text(stack) AS stack_text,
    end_stack,
    part_of,
    row AS resource,
    allocator AS allocator_row,
    allocators_process(allocator) AS process_row,
    "end" AS end_code
FROM resources
