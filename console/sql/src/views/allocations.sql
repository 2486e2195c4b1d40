-- Every allocation, or part of one that ended by itself, as acquisitions has them; several parts have the same part_of.
SELECT * FROM acquisitions WHERE allocator_row IS NOT NULL
