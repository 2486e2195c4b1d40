-- The rows of allocations that nothing in the trace frees, or only the end of their process: see at_exit.
SELECT * EXCLUDE (end_code) FROM _allocated
WHERE end_code = 0 OR end_code = 5 -- open, at_exit
