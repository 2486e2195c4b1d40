-- Allocations, or their parts that ended separately, as in acquisitions; parts of one allocation have the same part_of.
SELECT * FROM acquisitions WHERE allocator_row IS NOT NULL
