-- Every allocation, or part of one that ended by itself; several parts have the same part_of.
SELECT * EXCLUDE (end_code) FROM _allocated
