-- Handles, views and allocations opened in the trace and never released, as in acquisitions. Those released only by the end of their
-- process have at_exit there.
SELECT * FROM acquisitions WHERE leaked
