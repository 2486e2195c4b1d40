-- Which stacks leak, on how many machines, and how fast? A row is a suspect of `.why` over the fleet: what one program opens
-- or allocates of one type on one stack. The stacks that leak steadily on most machines come first.
--
-- process: Name of the executable.
-- kind: handle, view, heap, commit, reserve, resource, gdi or user.
-- type: Type of the handles; the kind again for allocations.
-- function?: The program's first function on the stack.
-- steady_machines: Machines on which it leaks steadily in a trace; those without a name count as one.
-- machines: Machines on which it leaks at all.
-- machines_seen?: Machines that ran the program; null if no process has its name.
-- traces: Traces in which it leaks.
-- unreleased: Handles or allocations that the program did not close or free.
-- unreleased_bytes?: Their bytes; null for handles.
-- minutes: Time in which its processes were traced, in traces where it leaks.
-- per_minute?: Rate while it leaks: unreleased per minute; null if no time is known.
-- first_day: Day of the first trace in which it leaks.
-- last_day: Day of the last such trace.
-- stack?: The stack; null for what is opened without one.
WITH seen AS (
    SELECT process, COUNT(DISTINCT COALESCE(machine, '')) AS machines_seen FROM processes GROUP BY process
),
leaking AS (
    SELECT
        process,
        kind,
        type,
        stack,
        MIN(function) AS function,
        COUNT(DISTINCT CASE WHEN verdict = 'steady' THEN COALESCE(machine, '') END) AS steady_machines,
        COUNT(DISTINCT COALESCE(machine, '')) AS machines,
        COUNT(DISTINCT trace) AS traces,
        SUM(unreleased) AS unreleased,
        SUM(bytes_unreleased) AS unreleased_bytes,
        -- Sums of whole numbers are the same in any order.
        SUM(CAST(FLOOR(observed_s * 1.0e3 + 0.5) AS BIGINT)) AS observed_ms,
        MIN(date) AS first_day,
        MAX(date) AS last_day
    FROM suspects
    GROUP BY process, kind, type, stack
)
SELECT
    leaking.process AS process,
    kind,
    type,
    function,
    steady_machines,
    machines,
    machines_seen,
    traces,
    unreleased,
    unreleased_bytes,
    -- Engines differ in how they round a half, which nothing is after a billionth is added.
    ROUND(observed_ms / 6.0e4 + 1.0e-9, 3) AS minutes,
    CASE WHEN observed_ms > 0 THEN ROUND(unreleased * 6.0e4 / observed_ms + 1.0e-9, 3) END AS per_minute,
    first_day,
    last_day,
    stack
FROM leaking
LEFT JOIN seen ON leaking.process = seen.process
ORDER BY steady_machines DESC, machines DESC, unreleased DESC, process, kind, type, COALESCE(stack, '')
