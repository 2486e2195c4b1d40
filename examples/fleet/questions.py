"""Answers the questions of SQL files over a dataset of `handlescope dataset`, with DuckDB or Spark.

    pip install duckdb                                 # or pyspark, which needs Java
    python questions.py DATASET leaking_stacks.sql     # a table, its columns separated by tabs
    python questions.py DATASET *.sql --engine spark --json
"""

import argparse
import functools
import json
import pathlib

TABLES = ("traces", "processes", "modules", "stacks", "acquisitions", "groups", "growth", "suspects")


# A trace is complete once `traces` has it: that table comes last. Days that `dataset compact` merged are in `merged`, with
# the column `trace`.
def duckdb_views(dataset):
    """A database with a view of the complete traces in each table; no rows are read yet."""
    import duckdb

    database = duckdb.connect()
    database.execute("SET TimeZone = 'UTC'")
    for table in TABLES:
        parts = []
        for pattern, types in (
            (f"{table}/date=*/trace=*/*.parquet", "{'date': DATE, 'trace': VARCHAR}"),
            (f"merged/{table}/date=*/part-*.parquet", "{'date': DATE}"),
        ):
            files = f"{dataset}/{pattern}".replace("'", "''")
            if not database.execute(f"SELECT 1 FROM glob('{files}') LIMIT 1").fetchone():
                continue
            # Without types, an id of digits would be a number. Files of later versions have more columns.
            options = f"union_by_name = true, hive_partitioning = true, hive_types = {types}"
            parts.append(f"SELECT * FROM read_parquet('{files}', {options})")
        complete = "" if table == "traces" else "WHERE trace IN (SELECT trace FROM traces)"
        rows = " UNION ALL BY NAME ".join(parts)
        database.execute(f"CREATE VIEW {table} AS SELECT * FROM ({rows}) {complete}")
    return database


def spark_views(spark, dataset):
    """Registers a view of the complete traces in each table; no rows are read yet."""
    from pyspark.sql.functions import col

    # Without this, an id of digits would be a number.
    spark.conf.set("spark.sql.sources.partitionColumnTypeInference.enabled", "false")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    for table in TABLES:
        parts = [read(spark, folder) for folder in (f"{dataset}/{table}", f"{dataset}/merged/{table}")]
        parts = [part for part in parts if part is not None]
        rows = functools.reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), parts)
        if table == "traces":
            complete = rows.select("trace")
        else:
            rows = rows.join(complete, "trace", "left_semi")
        rows.withColumn("date", col("date").cast("date")).createOrReplaceTempView(table)


def read(spark, folder):
    """Rows of the Parquet files in a folder; None where there is none."""
    from pyspark.sql.utils import AnalysisException

    try:
        return spark.read.parquet(folder)
    except AnalysisException:
        return None


def duckdb_answer(database, query):
    """Names of the columns, and the rows."""
    answer = database.execute(query)
    return [column[0] for column in answer.description], answer.fetchall()


def spark_answer(spark, query):
    """Names of the columns, and the rows."""
    answer = spark.sql(query)
    return answer.columns, [tuple(row) for row in answer.collect()]


def show(name, columns, rows, as_json):
    """Prints an answer: a JSON document on a line, or its rows."""
    if as_json:
        print(json.dumps({"question": name, "columns": columns, "rows": rows}, default=str), flush=True)
        return
    print(f"-- {name}")
    for row in (columns, *rows):
        print("\t".join("" if value is None else str(value) for value in row))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dataset", help="folder of the dataset")
    parser.add_argument("sql", nargs="+", type=pathlib.Path, help="files with a query each")
    parser.add_argument("--engine", choices=("duckdb", "spark"), default="duckdb")
    parser.add_argument("--json", action="store_true", help="print a JSON document for each question")
    options = parser.parse_args()
    if options.engine == "duckdb":
        engine, answer = duckdb_views(options.dataset), duckdb_answer
    else:
        from pyspark.sql import SparkSession

        engine, answer = SparkSession.builder.getOrCreate(), spark_answer
        spark_views(engine, options.dataset)
    for file in options.sql:
        show(file.stem, *answer(engine, file.read_text()), options.json)


if __name__ == "__main__":
    main()
