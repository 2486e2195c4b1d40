"""Runs the queries of a file with handlescope and with DuckDB, and prints what became of each, a line of JSON each.

    python sql_queries.py trace HANDLESCOPE TRACE QUERIES
    python sql_queries.py dataset HANDLESCOPE DATASET QUERIES

Equal, refused (handlescope says why it has no answer), or different.
"""

import datetime
import decimal
import json
import math
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

import duckdb

# Tables of a trace that queries name, and for a dataset what it has in their place.
TRACE_TABLES = ("handles", "leaks", "events", "objects", "processes", "stacks")
DATASET_TABLES = ("traces", "processes", "modules", "stacks", "acquisitions", "groups", "growth", "suspects")
IN_DATASETS = {
    "handles": "acquisitions",
    "name": "object_name",
    "id": "object",
    "leaked": "is_leaked",
    "opened_ns": "opened_s",
    "opened_tid": "tid",
    "opened_stack": "stack",
    "key": "handle",
    "ended_ns": "closed_s",
    "image_path": "path",
    "row": "stack",
    "depth": "frames",
}
TYPES = {
    "text": "VARCHAR",
    "bool": "BOOLEAN",
    # Queries calculate with signed numbers of 64 bits.
    "u32": "BIGINT",
    "u64": "UBIGINT",
    "i32": "INTEGER",
    "i64": "BIGINT",
    "list of u32": "BIGINT[]",
}
# Functions that only handlescope has, and names that it has for others.
MACROS = (
    "CREATE MACRO number(address) AS CAST(address AS UBIGINT)",
    "CREATE MACRO regexp_like(value, pattern) AS regexp_matches(value, pattern)",
    "CREATE MACRO div(a, b) AS a // b",
)
UNITS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}


def queries(path, kind):
    """Queries of a file that are for traces or datasets, or for both."""
    section = None
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("-- # "):
            section = line.removeprefix("-- # ")
        elif line and not line.startswith("--") and section in ("both", kind):
            yield in_dataset(line) if (section, kind) == ("both", "dataset") else line


def in_dataset(query):
    """The query with names of a dataset; texts in quotes stay."""
    parts = re.split(r"('[^']*')", query)
    words = [re.sub(r"\w+", lambda word: IN_DATASETS.get(word[0], word[0]), part) for part in parts[::2]]
    parts[::2] = words
    return "".join(parts)


def run(program, target, commands):
    """Answers of the console by command, and reasons why a command has none."""
    script = "".join(f"{command}\n" for command in commands)
    arguments = [program, target, "--keep-going"]
    ended = subprocess.run(arguments, input=script, capture_output=True, text=True, encoding="utf-8", check=False)
    answers, decoder, rest = {}, json.JSONDecoder(), ended.stdout.strip()
    while rest:
        answer, end = decoder.raw_decode(rest)
        answers[answer["command"]] = answer
        rest = rest[end:].strip()
    reasons = {}
    # A message may have several lines, which is a mistake of its own.
    for message in re.split(r"^error: line ", ended.stderr, flags=re.MULTILINE)[1:]:
        number, reason = message.split(": ", 1)
        command = commands[int(number) - 1]
        reason = reason.split("\nwarning: ")[0]
        reasons[command] = reason.removeprefix(f"{command}: ").strip()
    return answers, reasons


def trace_database(program, trace):
    """DuckDB with the tables and views of a trace, in the types that they have in queries."""
    database = duckdb.connect()
    with tempfile.TemporaryDirectory() as folder:
        for table in TRACE_TABLES:
            described, _ = run(program, trace, [f".sql DESCRIBE {table} -json"])
            (described,) = described.values()
            columns = {row["column"]: TYPES[row["type"]] for row in described["rows"]}
            rows = pathlib.Path(folder, f"{table}.ndjson")
            selected = [program, trace, "-c", f".sql SELECT * FROM {table} -ndjson"]
            rows.write_bytes(subprocess.run(selected, capture_output=True, check=True).stdout)
            read = f"read_json('{rows.as_posix()}', format = 'newline_delimited', columns = {columns})"
            database.execute(f"CREATE TABLE {table} AS SELECT * FROM {read}")
    return database


def dataset_database(dataset):
    """DuckDB with the tables of a dataset, which it reads itself."""
    database = duckdb.connect()
    database.execute("SET TimeZone = 'UTC'")
    for table in DATASET_TABLES:
        options = "hive_partitioning = true, hive_types = {'date': DATE, 'trace': VARCHAR}"
        files = f"read_parquet('{dataset}/{table}/*/*/*.parquet', {options})"
        database.execute(f"CREATE TABLE {table} AS SELECT * FROM {files}")
    return database


def plain(value):
    """A value of DuckDB in the form that it has in a document of the console."""
    if isinstance(value, decimal.Decimal):
        return float(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=None).isoformat(" ")
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if isinstance(value, (datetime.date, datetime.time)):
        return str(value)
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value


def plain_text(value):
    """A text of the console, where it is a time as DuckDB's in `plain`."""
    if isinstance(value, str) and re.fullmatch(r"-?(\d+(d|h|m|s|ms|µs|ns) ?)+", value):
        parts = re.findall(r"(\d+)([a-zµ]+)", value)
        seconds = sum(int(number) * UNITS[unit] for number, unit in parts)
        return -seconds if value.startswith("-") else seconds
    if isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?( UTC)?", value):
        return datetime.datetime.fromisoformat(value.removesuffix(" UTC")).isoformat(" ")
    return value


def is_equal(ours, theirs):
    """Whether two values are equal but for rounding."""
    if isinstance(ours, bool) or isinstance(theirs, bool):
        return ours is theirs
    if isinstance(ours, (int, float)) and isinstance(theirs, (int, float)):
        if isinstance(ours, int) and isinstance(theirs, int):
            return ours == theirs
        digits = 1e-7 if abs(theirs) < 1e38 and is_single(theirs) else 1e-9
        return math.isclose(ours, theirs, rel_tol=digits, abs_tol=1e-12)
    if isinstance(ours, str) and isinstance(theirs, str):
        # A date is the time when it begins.
        return ours.removesuffix(" 00:00:00") == theirs.removesuffix(" 00:00:00")
    return ours == theirs


def is_single(value):
    """Whether a number is one of 32 bits, of which handlescope prints the digits that it has."""
    return struct.unpack("f", struct.pack("f", value))[0] == value


def key(row):
    """Sorts rows by their values, whatever these are; rounding changes no order that matters."""
    return [f"{value:.6e}" if isinstance(value, (int, float)) else str(value) for value in row]


def compared(query, answer, database):
    """What DuckDB answers differently, or nothing."""
    try:
        rows = [[plain(value) for value in row] for row in database.execute(query).fetchall()]
    except duckdb.Error as error:
        return f"DuckDB has no answer: {error}".splitlines()[0]
    ours = [[plain_text(value) for value in row.values()] for row in answer["rows"]]
    if "ORDER BY" not in re.sub(r"\([^()]*(\([^()]*\)[^()]*)*\)", "", query):
        rows, ours = sorted(rows, key=key), sorted(ours, key=key)
    if len(rows) != len(ours):
        return f"{len(ours)} rows, DuckDB has {len(rows)}"
    for row, expected in zip(ours, rows):
        if len(row) != len(expected) or not all(map(is_equal, row, expected)):
            return f"{row}, DuckDB has {expected}"
    return None


def main():
    kind, program, target, path = sys.argv[1:]
    database = dataset_database(target) if kind == "dataset" else trace_database(program, target)
    for macro in MACROS:
        database.execute(macro)
    asked = {f".sql {query} -json": query for query in queries(pathlib.Path(path), kind)}
    answers, reasons = run(program, target, list(asked))
    for command, query in asked.items():
        if command in answers:
            difference = compared(query, answers[command], database)
            result = {"result": "equal"} if difference is None else {"result": "different", "reason": difference}
        else:
            result = {"result": "refused", "reason": reasons.get(command, "")}
        print(json.dumps({"query": query, **result}, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main()
