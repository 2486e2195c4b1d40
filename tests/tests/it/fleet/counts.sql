-- Handles, views and allocations of each program and type, and bytes of allocations.
SELECT
    source,
    process,
    kind,
    type,
    COUNT(*) AS acquired,
    SUM(CASE WHEN is_leaked THEN 1 ELSE 0 END) AS leaked,
    SUM(CASE WHEN ended = 'closed_at_exit' OR ended = 'at_exit' THEN 1 ELSE 0 END) AS at_exit,
    SUM(CASE WHEN kind = 'handle' OR kind = 'view' THEN 0 ELSE COALESCE(bytes, 0) END) AS bytes
FROM acquisitions
JOIN traces ON acquisitions.trace = traces.trace
GROUP BY source, process, kind, type
ORDER BY source, process, kind, type
