-- Which build made a leak worse? Each build of a program is compared with the one before it, by the test of `.diff`. A row is a
-- stack that leaks more in the later build than chance explains, and at least 1.5 times as much.
--
-- process: Name of the executable.
-- kind: handle, view, heap, commit, reserve, resource, gdi or user.
-- type: Type of the handles; the kind again for allocations.
-- function?: The program's first function on the stack.
-- build_before: The build before.
-- build: The build that made it worse.
-- steady: 1 if it leaks steadily in any trace: leaks by time are compared. 0 if not: leaks by process are compared.
-- unreleased_before: Handles or allocations of suspects that the build before did not close or free.
-- unreleased: The same for the later build.
-- per_minute_before: The same per minute in which processes of the program were traced.
-- per_minute: The same for the later build.
-- dispersion: Handles per chance, from how traces of a build differ (quasi-Poisson), at least 1; 1 if builds have one trace.
-- p_value: The probability of so many chances or more in the later build, if nothing changed.
-- level: Largest p value in this answer: 5 % by the number of stacks that could be significant (Tarone).
-- stack: The stack; empty for what is opened without one.
WITH runs AS (
    SELECT process, build_order, trace, MIN(build) AS build, COUNT(*) AS processes,
        SUM(CAST(FLOOR(observed_s * 1.0e3 + 0.5) AS BIGINT)) AS ms
    FROM processes
    WHERE build_order IS NOT NULL AND observed_s > 0.001
    GROUP BY process, build_order, trace
),
totals AS (
    SELECT process, build_order, MIN(build) AS build, COUNT(*) AS traces, SUM(processes) AS processes, SUM(ms) AS ms
    FROM runs
    GROUP BY process, build_order
),
builds AS (
    SELECT *, ROW_NUMBER() OVER (PARTITION BY process ORDER BY build_order) AS place FROM totals
),
leaks AS (
    SELECT process, build_order, trace, kind, type, COALESCE(stack, '') AS stack, MIN(function) AS function,
        MAX(CASE WHEN verdict = 'steady' THEN 1 ELSE 0 END) AS steady, SUM(unreleased) AS leaked
    FROM suspects
    GROUP BY process, build_order, trace, kind, type, COALESCE(stack, '')
),
known AS (
    SELECT *, MAX(steady) OVER (PARTITION BY process, kind, type, stack) AS ever_steady FROM leaks
),
-- What a build leaks, and the sum of its squares by time or processes.
sums AS (
    SELECT process, build_order, kind, type, stack, MIN(function) AS function, MAX(ever_steady) AS steady,
        SUM(leaked) AS leaked, SUM(leaked * 1.0e0 * leaked / CASE WHEN ever_steady = 1 THEN ms ELSE processes END) AS squares
    FROM known
    JOIN runs USING (process, build_order, trace)
    GROUP BY process, build_order, kind, type, stack
),
-- Each build counts as itself, and as the one before the next.
sides AS (SELECT 0 AS side UNION ALL SELECT 1 AS side),
compared AS (
    SELECT process, place + side AS place, kind, type, stack, MIN(function) AS function, MAX(steady) AS steady,
        SUM(leaked * (1 - side)) AS leaked, SUM(leaked * side) AS leaked_before, SUM(squares * (1 - side)) AS squares,
        SUM(squares * side) AS squares_before
    FROM sums
    JOIN builds USING (process, build_order)
    CROSS JOIN sides
    GROUP BY process, place + side, kind, type, stack
),
exposed AS (
    SELECT *, CASE WHEN steady = 1 THEN ms ELSE processes END * 1.0e0 AS exposure,
        CASE WHEN steady = 1 THEN ms_before ELSE processes_before END * 1.0e0 AS exposure_before
    FROM compared
    JOIN builds USING (process, place)
    JOIN (
        SELECT process, place + 1 AS place, build AS build_before, traces AS traces_before, ms AS ms_before,
            processes AS processes_before
        FROM builds
    ) AS earlier USING (process, place)
),
-- Chi-squared of the traces of each build around its own rate (Pearson), and its degrees of freedom.
varied AS (
    SELECT *, exposure / (exposure + exposure_before) AS share,
        CASE WHEN leaked > 0 THEN squares * exposure / leaked - leaked ELSE 0.0e0 END
            + CASE WHEN leaked_before > 0 THEN squares_before * exposure_before / leaked_before - leaked_before ELSE 0.0e0 END
            AS chi_squared,
        CASE WHEN leaked > 0 THEN traces - 1 ELSE 0 END + CASE WHEN leaked_before > 0 THEN traces_before - 1 ELSE 0 END
            AS freedom
    FROM exposed
),
dispersed AS (
    SELECT *, CASE WHEN chi_squared > freedom AND freedom > 0 THEN chi_squared / freedom ELSE 1.0e0 END AS dispersion
    FROM varied
),
-- The logarithm of the smallest p value that so many chances may have.
chances AS (
    SELECT *, leaked / dispersion AS more, leaked_before / dispersion AS less,
        (leaked + leaked_before) / dispersion * LN(share) AS least
    FROM dispersed
),
ranked AS (
    SELECT *, ROW_NUMBER() OVER (PARTITION BY process, place ORDER BY least, kind, type, stack) AS test FROM chances
),
levels AS (
    SELECT process, place, 5.0e-2 / MIN(test) AS level
    FROM ranked
    LEFT JOIN (SELECT process, place, test - 1 AS test, least AS next_least FROM ranked) AS following
        USING (process, place, test)
    WHERE next_least IS NULL OR next_least > LN(5.0e-2 / test)
    GROUP BY process, place
),
increased AS (SELECT * FROM ranked WHERE leaked > 0 AND more * (1 - share) >= 1.5 * less * share),
-- ln n! of the chances, by Stirling's series for n + 8.
arguments AS (
    SELECT process, place, test, more + less AS n, 1 AS sign FROM increased
    UNION ALL SELECT process, place, test, more AS n, -1 AS sign FROM increased
    UNION ALL SELECT process, place, test, less AS n, -1 AS sign FROM increased
),
binomials AS (
    SELECT process, place, test, SUM(sign * ((n + 8.5) * LN(n + 9) - n - 9 + 0.9189385332046727
        + 1 / (12 * (n + 9)) - 1 / (360 * POWER(n + 9, 3)) + 1 / (1260 * POWER(n + 9, 5))
        - LN((n + 1) * (n + 2) * (n + 3) * (n + 4)) - LN((n + 5) * (n + 6) * (n + 7) * (n + 8)))) AS binomial
    FROM arguments
    GROUP BY process, place, test
),
digits AS (
    SELECT 0 AS d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4
    UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9
),
numbers AS (
    SELECT a.d + 10 * b.d + 100 * c.d + 1 AS k FROM digits AS a CROSS JOIN digits AS b CROSS JOIN digits AS c
),
-- The binomial distribution of chances with fractions is the incomplete beta function: terms of its series, which fall.
terms AS (
    SELECT process, place, test, k,
        SUM(LN(share * (more + less + k) / (more + k))) OVER (
            PARTITION BY process, place, test ORDER BY k ROWS UNBOUNDED PRECEDING
        ) AS term
    FROM increased
    CROSS JOIN numbers
),
series AS (
    SELECT process, place, test, SUM(EXP(term)) AS total, EXP(MIN(term)) AS last FROM terms GROUP BY process, place, test
),
tested AS (
    SELECT *, share * (more + less + 1001) / (more + 1001) AS ratio
    FROM increased
    JOIN binomials USING (process, place, test)
    JOIN series USING (process, place, test)
    JOIN levels USING (process, place)
),
probable AS (
    SELECT *, EXP(binomial + more * LN(share) + (less + 1) * LN(1 - share)) * (1 + total + last * ratio / (1 - ratio))
        AS p_value
    FROM tested
)
SELECT process, kind, type, function, build_before, build, steady, leaked_before AS unreleased_before, leaked AS unreleased,
    -- Engines differ in how they round a half, which nothing is after a billionth is added.
    ROUND(leaked_before * 6.0e4 / ms_before + 1.0e-9, 3) AS per_minute_before,
    ROUND(leaked * 6.0e4 / ms + 1.0e-9, 3) AS per_minute,
    ROUND(dispersion + 1.0e-9, 3) AS dispersion,
    ROUND(p_value + 1.0e-9, 6) AS p_value,
    ROUND(level + 1.0e-9, 6) AS level,
    stack
FROM probable
WHERE p_value <= level
ORDER BY process, place, unreleased DESC, kind, type, stack
