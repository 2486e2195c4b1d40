-- What was opened in the trace and nothing released, as acquisitions has it: handles, views and allocations. What only the end
-- of its process released is at_exit in acquisitions.
SELECT * FROM acquisitions WHERE leaked
