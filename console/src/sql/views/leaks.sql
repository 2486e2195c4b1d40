-- The rows of handles that nothing in the trace closes, or only the exit of their process: see class.
SELECT * EXCLUDE (closed_at_exit) FROM _opened WHERE leaked OR closed_at_exit
