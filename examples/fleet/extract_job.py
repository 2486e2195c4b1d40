"""Adds traces to a dataset on the executors of a Spark cluster, then answers questions over it.

    spark-submit --py-files questions.py extract_job.py DATASET --traces LIST -- --symbol-path /mnt/symbols
    spark-submit --py-files questions.py extract_job.py DATASET --traces LIST --sql *.sql

LIST has the path of a trace on each line. Dataset, traces and symbols are on a file system that all executors have. Each trace
is a task. Spark repeats those of an executor that is lost; adding a trace again changes nothing. A trace that cannot be added
is counted, and the job goes on. Exit status: 0 if all were added, 1 if some were not, 2 if Spark gave up.
"""

import argparse
import collections
import pathlib
import subprocess
import sys
import threading

from pyspark.sql import SparkSession

import questions


def add(trace, program, dataset, options):
    """Runs on an executor: the trace, and why it could not be added."""
    try:
        command = [program, "dataset", "add", dataset, trace, *options]
        run = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
    except OSError as error:
        return trace, str(error)
    if run.returncode == 0:
        return trace, None
    lines = run.stderr.strip().splitlines() or [f"exit status {run.returncode}"]
    # The last line counts the traces that could not be added, where the program got that far.
    return trace, next((line for line in lines if line.startswith("error: ")), lines[-1])


def add_all(context, traces, program, dataset, options):
    """Adds the traces, and shows progress; a list of each trace and why it could not be added."""
    done = threading.Event()

    def show_progress():
        tracker = context.statusTracker()
        while not done.wait(5):
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            completed = sum(stage.numCompletedTasks for stage in stages if stage)
            print(f"{completed} of {len(traces)} traces", file=sys.stderr, flush=True)

    threading.Thread(target=show_progress, daemon=True).start()
    try:
        tasks = context.parallelize(traces, max(len(traces), 1))
        return tasks.map(lambda trace: add(trace, program, dataset, options)).collect()
    finally:
        done.set()


def main():
    usage = "%(prog)s DATASET --traces LIST [OPTION...] [-- OPTION-OF-DATASET-ADD...]"
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], usage=usage)
    parser.add_argument("dataset", help="folder of the dataset")
    parser.add_argument("--traces", type=pathlib.Path, required=True, help="file with the path of a trace on each line")
    parser.add_argument("--program", default="handlescope", help="the program on the executors")
    parser.add_argument("--sql", nargs="+", type=pathlib.Path, default=[], help="files with a query each")
    parser.add_argument("--json", action="store_true", help="print a JSON document for each question")
    parser.add_argument("--max-failures", default="8", help="times that the task of a trace may lose its executor")
    arguments = sys.argv[1:]
    end = arguments.index("--") if "--" in arguments else len(arguments)
    options, of_add = parser.parse_args(arguments[:end]), arguments[end + 1 :]

    traces = [line for line in options.traces.read_text().splitlines() if line.strip()]
    session = SparkSession.builder.appName("handlescope dataset add")
    spark = session.config("spark.task.maxFailures", options.max_failures).getOrCreate()
    try:
        outcomes = add_all(spark.sparkContext, traces, options.program, options.dataset, of_add)
    except Exception as error:
        print(f"Spark gave up: {error}", file=sys.stderr)
        return 2
    reasons = collections.Counter()
    # Reasons that differ in the trace only count together.
    for trace, reason in outcomes:
        if reason is not None:
            print(f"{trace}: {reason}", file=sys.stderr)
            reasons[reason.replace(trace, "TRACE")] += 1
    failed = sum(reasons.values())
    print(f"{len(outcomes) - failed} of {len(outcomes)} traces are in {options.dataset}", file=sys.stderr)
    for reason, count in reasons.most_common():
        print(f"{count} failed: {reason}", file=sys.stderr)

    if options.sql:
        questions.spark_views(spark, options.dataset)
    for file in options.sql:
        questions.show(file.stem, *questions.spark_answer(spark, file.read_text()), options.json)
    spark.stop()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
