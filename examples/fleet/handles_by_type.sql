-- How many handles does a machine have open, of each type and on each day? A row is a type on a day, with the quantiles over
-- the machines that were traced. They count what was opened in a trace and is still open at its end, in all processes; a
-- machine with several traces on a day counts with the trace in which most are open. A quantile is the number of a machine
-- (nearest rank): half of the machines have at most the median.
--
-- date: The day.
-- kind: handle, view, heap, commit, reserve, resource, gdi or user.
-- type: Type of the handles; the kind again for allocations.
-- machines: Machines on which any were opened.
-- total: Number on all these machines.
-- least: Smallest number on a machine.
-- median: Nearest-rank quantile of 50 %.
-- p90: The same for 90 %.
-- most: Largest number on a machine.
-- most_machine: The machine with the largest number, or the last of these by name; empty if its name is unknown.
WITH ends AS (
    SELECT trace, MAX(step) AS step FROM growth GROUP BY trace
),
traces_open AS (
    SELECT growth.date AS date, COALESCE(machine, '') AS machine, kind, type, growth.trace AS trace, SUM(open) AS open
    FROM growth
    JOIN ends ON growth.trace = ends.trace AND growth.step = ends.step
    GROUP BY growth.date, COALESCE(machine, ''), kind, type, growth.trace
),
machines_open AS (
    SELECT date, kind, type, machine, MAX(open) AS open FROM traces_open GROUP BY date, kind, type, machine
),
ranked AS (
    SELECT
        date,
        kind,
        type,
        machine,
        open,
        ROW_NUMBER() OVER (PARTITION BY date, kind, type ORDER BY open, machine) AS place,
        COUNT(*) OVER (PARTITION BY date, kind, type) AS machines
    FROM machines_open
)
SELECT
    date,
    kind,
    type,
    MAX(machines) AS machines,
    SUM(open) AS total,
    MIN(open) AS least,
    MIN(CASE WHEN place * 2 >= machines THEN open END) AS median,
    MIN(CASE WHEN place * 10 >= machines * 9 THEN open END) AS p90,
    MAX(open) AS most,
    MAX(CASE WHEN place = machines THEN machine END) AS most_machine
FROM ranked
GROUP BY date, kind, type
ORDER BY date, kind, type
