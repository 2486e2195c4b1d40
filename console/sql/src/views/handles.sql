-- Handles opened and views mapped in the trace, as in acquisitions.
SELECT * FROM acquisitions WHERE object IS NOT NULL AND in_trace
