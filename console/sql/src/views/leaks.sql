-- Handles, views and allocations opened in the trace and never released, as in acquisitions. There at_exit marks those that only
-- the end of their process released.
SELECT * FROM acquisitions WHERE leaked
