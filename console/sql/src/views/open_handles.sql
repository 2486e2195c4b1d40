-- Handles open at the end of the trace, as the rundown or a dump lists them; columns as in acquisitions.
SELECT * FROM acquisitions WHERE in_rundown
