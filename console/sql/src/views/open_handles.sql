-- Every handle that is open at the end of the trace, as the rundown or a dump lists them and acquisitions has them.
SELECT * FROM acquisitions WHERE in_rundown
