-- Every handle that was opened and every view that was mapped.
SELECT * EXCLUDE (closed_at_exit) FROM _opened
