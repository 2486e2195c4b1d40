-- Every handle that is open at the end of the trace, as the rundown lists them.
--
-- file_index: Number of the file among those that are loaded.
-- id: Number of the object, as answers about objects show it.
-- type: Type of the object, as in Event.
-- name?: Name of the object.
-- handle [hex]: Handle value like 0xC0.
-- process?: Executable that owns the handle.
-- pid?: Its process id.
-- granted_access? [hex]: Rights that were granted, like 0x1F0003; null unless a dump lists the handle.
-- handle_count?: Number of handles to the object; null unless a dump lists it.
-- pointer_count?: Number of references to the object; null unless a dump lists it.
-- pointer [hex]: Kernel address of the object.
-- object [row of objects]: The object.
-- process_row [row of processes]: The process.
SELECT
    file_index,
    objects_id(object) AS id,
    objects_type(object) AS type,
    names_name(objects_name(object)) AS name,
    handle,
    processes_name(process) AS process,
    processes_pid(process) AS pid,
    granted_access,
    handle_count,
    pointer_count,
    objects_pointer(object) AS pointer,
    object,
    process AS process_row
FROM existing_handles
