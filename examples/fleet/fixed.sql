-- What did a release fix? Each build of a program is compared with the one before it. A row is a stack that leaks steadily in
-- the build before and is no suspect in the later one, though that was traced for long enough to show it.
--
-- process: Name of the executable.
-- kind: handle, view, heap, commit, reserve, resource, gdi or user.
-- type: Type of the handles; the kind again for allocations.
-- function?: The program's first function on the stack.
-- leaking_build: The last build that leaks.
-- fixed_build: The build that fixed it.
-- unreleased: Handles or allocations that the build before did not close or free.
-- per_minute: The same per minute in which processes of the program were traced.
-- machines: Machines on which it leaked in the build before; those without a name count as one.
-- expected: Number that the traces of the later build would have if nothing had changed.
-- minutes: Time in which these traces show the program.
-- dispersion: Handles per chance: how much more the traces of a build differ than by chance (quasi-Poisson), at least 1.
-- p_value: The probability that none of the chances is in the later build, if nothing changed; at most 5 %.
-- fixed_day: Day of the first trace of the later build.
-- stack: The stack; empty for what is opened without one.
WITH runs AS (
    SELECT process, build_order, trace, MIN(build) AS build, MIN(date) AS day,
        SUM(CAST(FLOOR(observed_s * 1.0e3 + 0.5) AS BIGINT)) AS ms
    FROM processes
    WHERE build_order IS NOT NULL AND observed_s > 0.001
    GROUP BY process, build_order, trace
),
totals AS (
    SELECT process, build_order, MIN(build) AS build, MIN(day) AS first_day, COUNT(*) AS traces, SUM(ms) AS ms
    FROM runs
    GROUP BY process, build_order
),
builds AS (
    SELECT *, ROW_NUMBER() OVER (PARTITION BY process ORDER BY build_order) AS place FROM totals
),
leaks AS (
    SELECT process, build_order, trace, kind, type, COALESCE(stack, '') AS stack, MIN(function) AS function,
        MIN(COALESCE(machine, '')) AS machine, MAX(CASE WHEN verdict = 'steady' THEN 1 ELSE 0 END) AS steady,
        SUM(unreleased) AS leaked
    FROM suspects
    GROUP BY process, build_order, trace, kind, type, COALESCE(stack, '')
),
-- What a build leaks, and the sum of its squares by time.
sums AS (
    SELECT process, place, kind, type, stack, MIN(function) AS function, COUNT(DISTINCT machine) AS machines,
        MAX(steady) AS steady, SUM(leaked) AS unreleased, SUM(leaked * 1.0e0 * leaked / runs.ms) AS squares
    FROM leaks
    JOIN runs USING (process, build_order, trace)
    JOIN builds USING (process, build_order)
    GROUP BY process, place, kind, type, stack
),
later AS (
    SELECT process, place - 1 AS place, build AS fixed_build, ms AS later_ms, first_day AS fixed_day FROM builds
),
still AS (
    SELECT process, place - 1 AS place, kind, type, stack, unreleased AS still_unreleased FROM sums
),
-- Chi-squared of the traces of the build before around its rate (Pearson), by its degrees of freedom.
varied AS (
    SELECT *, (squares * ms / unreleased - unreleased) / CASE WHEN traces > 1 THEN traces - 1 ELSE 1 END AS variation
    FROM sums
    JOIN builds USING (process, place)
    JOIN later USING (process, place)
    LEFT JOIN still USING (process, place, kind, type, stack)
    WHERE steady = 1 AND unreleased > 0 AND still_unreleased IS NULL
),
dispersed AS (
    SELECT *, CASE WHEN variation > 1 THEN variation ELSE 1.0e0 END AS dispersion FROM varied
),
tested AS (
    SELECT *, EXP(unreleased / dispersion * LN(ms * 1.0e0 / (ms + later_ms))) AS p_value FROM dispersed
)
SELECT process, kind, type, function, build AS leaking_build, fixed_build, unreleased,
    -- Engines differ in how they round a half, which nothing is after a billionth is added.
    ROUND(unreleased * 6.0e4 / ms + 1.0e-9, 3) AS per_minute,
    machines,
    ROUND(unreleased * 1.0e0 * later_ms / ms + 1.0e-9, 1) AS expected,
    ROUND(later_ms / 6.0e4 + 1.0e-9, 3) AS minutes,
    ROUND(dispersion + 1.0e-9, 3) AS dispersion,
    ROUND(p_value + 1.0e-9, 6) AS p_value,
    fixed_day,
    stack
FROM tested
WHERE p_value <= 0.05
ORDER BY process, place, unreleased DESC, kind, type, stack
