"""Leaked handles in SQL, from tables that `.export` wrote.

    handlescope examples/leaky.etl -c ".export tables"
    pip install duckdb
    python examples/leaks.py tables            # how many by process and type
    python examples/leaks.py tables --handles  # every one, a JSON object a line

Function names are in the tables if they were stored before: `.symbolize` in front of `.export`.
"""

import argparse
import json
import pathlib

import duckdb

HANDLES = """
    SELECT e.object + 1 AS id, coalesce(n.name, '') AS object_name, t.name AS type,
           p.name AS process, p.pid, format('0x{:X}', e.handle) AS handle, e.time_ns,
           e.stack
    FROM events e
    JOIN objects o ON o.row = e.object
    JOIN processes p ON p.row = e.process
    LEFT JOIN object_types t ON t.type_id = o.type_id
    LEFT JOIN names n ON n.row = o.name
    -- 0 is a create, 1 a duplicate
    WHERE e.leaked AND e.kind IN (0, 1)
"""

BY_PROCESS = f"""
    SELECT process, pid, type, count(*) AS leaked
    FROM ({HANDLES}) GROUP BY ALL ORDER BY leaked DESC, process, pid, type
"""


def opened(folder: pathlib.Path) -> duckdb.DuckDBPyConnection:
    """A view for each table; `row` is what other tables point to."""
    database = duckdb.connect()
    for file in sorted(folder.glob("*.parquet")):
        path = str(file).replace("'", "''")
        database.sql(
            f"CREATE VIEW {file.stem} AS "
            f"SELECT file_row_number AS row, * FROM read_parquet('{path}', file_row_number = true)"
        )
    return database


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path, help="where .export wrote the tables")
    parser.add_argument("--handles", action="store_true", help="list every handle")
    options = parser.parse_args()
    database = opened(options.folder)
    if options.handles:
        found = database.execute(f"{HANDLES} ORDER BY id, time_ns")
        columns = [column[0] for column in found.description]
        for row in found.fetchall():
            print(json.dumps(dict(zip(columns, row))))
    else:
        print(database.sql(BY_PROCESS))


if __name__ == "__main__":
    main()
