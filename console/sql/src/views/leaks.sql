-- The rows of handles that nothing in the trace closes. Those that only the exit of their process closed have a class of
-- their own in handles.
SELECT * EXCLUDE (closed_at_exit) FROM _opened WHERE leaked
