-- On which machines does a process leak more than 5 handles or allocations a minute? A row is a program on a machine with one
-- of its builds. Its rate is that of all steadily leaking stacks together. Change the number in the last WHERE.
--
-- machine?: Name of the computer; null if unknown.
-- process: Name of the executable.
-- kind: handle, view, heap, commit, reserve, resource, gdi or user.
-- build?: Build of the executable; null if unknown.
-- worst_per_minute: Rate in the trace where it is highest.
-- mean_per_minute: Mean rate of the traces in which it leaks steadily.
-- traces: Traces in which it leaks steadily.
-- most_stacks: Stacks on which it leaks steadily, in the trace with most of them.
-- last_day: Day of the last of these traces.
WITH rates AS (
    SELECT
        machine,
        process,
        kind,
        build,
        trace,
        MAX(date) AS day,
        COUNT(*) AS stacks,
        -- Sums of whole numbers are the same in any order.
        SUM(CAST(FLOOR(rate_per_minute * 1.0e6 + 0.5) AS BIGINT)) AS millionths
    FROM suspects
    WHERE verdict = 'steady' AND rate_per_minute IS NOT NULL
    GROUP BY machine, process, kind, build, trace
),
machines AS (
    SELECT
        machine,
        process,
        kind,
        build,
        -- Engines differ in how they round a half, which nothing is after a billionth is added.
        ROUND(MAX(millionths) / 1.0e6 + 1.0e-9, 3) AS worst_per_minute,
        ROUND(SUM(millionths) / 1.0e6 / COUNT(*) + 1.0e-9, 3) AS mean_per_minute,
        COUNT(*) AS traces,
        MAX(stacks) AS most_stacks,
        MAX(day) AS last_day
    FROM rates
    GROUP BY machine, process, kind, build
)
SELECT machine, process, kind, build, worst_per_minute, mean_per_minute, traces, most_stacks, last_day
FROM machines
WHERE worst_per_minute > 5
ORDER BY worst_per_minute DESC, COALESCE(machine, ''), process, kind, COALESCE(build, '')
