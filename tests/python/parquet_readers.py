"""Filters text columns of Parquet files with pyarrow, pandas and DuckDB, or with Spark, and compares the numbers of rows.

Usage: parquet_readers.py arrow|spark FILE...
Prints the number of filters that were compared.
"""

import sys

import pyarrow
import pyarrow.compute
import pyarrow.parquet


def columns(path):
    """The text columns of a file, each with a value of it and the number of rows that have the value."""
    # Not as a data set: names of folders would be columns.
    table = pyarrow.parquet.ParquetFile(path).read()
    for field in table.schema:
        assert "view" not in str(field.type), f"{path}: {field}"
        if not (pyarrow.types.is_string(field.type) or pyarrow.types.is_large_string(field.type)):
            continue
        assert pyarrow.types.is_string(field.type), f"{path}: {field}"
        counts = pyarrow.compute.value_counts(table[field.name].drop_null()).to_pylist()
        if counts:
            yield field.name, counts[0]["values"], counts[0]["counts"]


def by_arrow(path, name, value):
    import duckdb
    import pandas

    filters = [(name, "==", value)]
    yield "pyarrow", pyarrow.parquet.read_table(path, filters=filters, partitioning=None).num_rows
    yield "pandas", len(pandas.read_parquet(path, filters=filters, partitioning=None))
    query = f'SELECT count(*) FROM read_parquet(?, hive_partitioning = false) WHERE "{name}" = ?'
    yield "DuckDB", duckdb.execute(query, [path, value]).fetchone()[0]


def by_spark():
    from pyspark.sql import SparkSession, functions

    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()

    def filtered(path, name, value):
        rows = spark.read.parquet("file://" + path)
        yield "Spark", rows.where(functions.col(f"`{name}`") == value).count()

    return filtered


def main(engine, paths):
    filtered = by_arrow if engine == "arrow" else by_spark()
    # Spark takes a part of a second for each.
    most = None if engine == "arrow" else 2
    compared = 0
    for path in paths:
        for name, value, expected in list(columns(path))[:most]:
            for reader, rows in filtered(path, name, value):
                assert rows == expected, f"{reader}: {path}: {name} = {value!r}: {rows}, not {expected}"
                compared += 1
    print(compared)


main(sys.argv[1], sys.argv[2:])
