-- Since which build does a stack leak? A row is a stack that leaks in some trace. Builds are compared as versions: 4.9 is
-- before 4.10. Stacks that leak steadily on most machines come first.
--
-- process: Name of the executable.
-- kind: handle, view, heap, commit, reserve, resource, gdi or user.
-- type: Type of the handles; the kind again for allocations.
-- function?: The program's first function on the stack.
-- first_seen_build?: First build that opens or allocates anything on the stack; null if no build is known.
-- first_seen_day?: First day of a trace in which it does.
-- first_leaking_build?: First build that leaks on it.
-- first_leaking_day: First day of a trace in which it leaks.
-- first_steady_build?: First build that leaks on it steadily; null if none does.
-- first_steady_day?: First day of a trace in which it leaks steadily.
-- last_steady_build?: Last build that leaks on it steadily.
-- steady_machines: Machines on which it leaks steadily; those without a name count as one.
-- steady_traces: Traces in which it leaks steadily.
-- stack: The stack.
WITH builds AS (
    SELECT process, build_order, MIN(build) AS build FROM processes WHERE build IS NOT NULL GROUP BY process, build_order
),
seen AS (
    SELECT process, kind, type, stack, MIN(build_order) AS first_seen, MIN(date) AS first_seen_day
    FROM groups
    WHERE stack IS NOT NULL
    GROUP BY process, kind, type, stack
),
leaking AS (
    SELECT
        process,
        kind,
        type,
        stack,
        MIN(function) AS function,
        MIN(build_order) AS first_leaking,
        MIN(date) AS first_leaking_day,
        MIN(CASE WHEN verdict = 'steady' THEN build_order END) AS first_steady,
        MAX(CASE WHEN verdict = 'steady' THEN build_order END) AS last_steady,
        MIN(CASE WHEN verdict = 'steady' THEN date END) AS first_steady_day,
        COUNT(DISTINCT CASE WHEN verdict = 'steady' THEN COALESCE(machine, '') END) AS steady_machines,
        COUNT(DISTINCT CASE WHEN verdict = 'steady' THEN trace END) AS steady_traces
    FROM suspects
    WHERE stack IS NOT NULL
    GROUP BY process, kind, type, stack
)
SELECT
    leaking.process AS process,
    leaking.kind AS kind,
    leaking.type AS type,
    leaking.function AS function,
    seen_in.build AS first_seen_build,
    seen.first_seen_day AS first_seen_day,
    leaking_in.build AS first_leaking_build,
    leaking.first_leaking_day AS first_leaking_day,
    steady_in.build AS first_steady_build,
    leaking.first_steady_day AS first_steady_day,
    last_in.build AS last_steady_build,
    leaking.steady_machines AS steady_machines,
    leaking.steady_traces AS steady_traces,
    leaking.stack AS stack
FROM leaking
LEFT JOIN seen
    ON leaking.process = seen.process AND leaking.kind = seen.kind AND leaking.type = seen.type AND leaking.stack = seen.stack
LEFT JOIN builds AS seen_in ON seen.process = seen_in.process AND seen.first_seen = seen_in.build_order
LEFT JOIN builds AS leaking_in ON leaking.process = leaking_in.process AND leaking.first_leaking = leaking_in.build_order
LEFT JOIN builds AS steady_in ON leaking.process = steady_in.process AND leaking.first_steady = steady_in.build_order
LEFT JOIN builds AS last_in ON leaking.process = last_in.process AND leaking.last_steady = last_in.build_order
ORDER BY steady_machines DESC, steady_traces DESC, process, kind, type, stack
