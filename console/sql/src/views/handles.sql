-- Every handle that was opened and every view that was mapped, as acquisitions has them.
SELECT * FROM acquisitions WHERE object IS NOT NULL AND in_trace
