#!/usr/bin/env python3
"""Counts the instructions of extraction and of queries, and compares them with the figures in instructions.json.

    benches/instructions.py [--update] [--program target/debug/handlescope]

Counts with callgrind (valgrind), on the sample and on a trace that `large-trace` generates, so that the figures do not
depend on the speed of the machine or on what else runs on it. They are those of the test profile, which CI builds. Fails
where a case needs more than 10 % more instructions than its figure; `--update` writes the figures instead. Without
valgrind it says so and succeeds. Linux only.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FIGURES = Path(__file__).with_suffix(".json")

# Allowed growth. Seeds of hash tables and the order of threads change the counts by less than 1 %.
TOLERANCE = 1.10

TRACE = ["--handle-events", "20000", "--distinct-stacks", "500", "--processes", "4", "--cpus", "2"]

QUERIES = {
    "total by process": ".dump ObjectRef -Leak -ShowTotal Process",
    "filter by frame": ".dump ObjectRef -StackFilter *Create* -ShowTotal Total",
    "why": ".why",
}


def count(command):
    """Instructions of a process."""
    tool = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    run = subprocess.run(tool + command, capture_output=True, text=True, errors="replace")
    counted = re.search(r"Collected : (\d+)", run.stderr)
    if run.returncode != 0 or counted is None:
        sys.exit(f"{' '.join(command)}: exit status {run.returncode}\n{run.stderr}")
    return int(counted[1])


def cases(program, large_trace, folder):
    """Each case and its instructions."""
    generated = folder / "generated.etl"
    subprocess.run([large_trace, generated, *TRACE], check=True, stdout=subprocess.DEVNULL)
    traces = {"sample": ROOT / "examples" / "leaky.etl", "generated": generated}
    for name, trace in traces.items():
        yield f"{name}: extract", count([program, "extract", "-o", str(folder), str(trace)])
        archive = str(folder / trace.with_suffix(".json7z").name)
        for query, command in QUERIES.items():
            yield f"{name}: {query}", count([program, archive, "-c", command])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--update", action="store_true", help="write the figures")
    parser.add_argument("--program", default=ROOT / "target" / "debug" / "handlescope", type=Path)
    options = parser.parse_args()
    if shutil.which("valgrind") is None:
        print("valgrind is not installed: instructions are not counted")
        return 0
    figures = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    large_trace = options.program.with_name("large-trace")
    counted, grown = {}, []
    print(f"{'million instructions':<32}{'figure':>10}{'now':>10}{'ratio':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for case, now in cases(str(options.program), str(large_trace), Path(folder)):
            counted[case] = now
            figure = figures.get(case)
            if figure is None:
                print(f"{case:<32}{'-':>10}{now / 1e6:>10.1f}{'-':>8}", flush=True)
                continue
            ratio = now / figure
            print(f"{case:<32}{figure / 1e6:>10.1f}{now / 1e6:>10.1f}{ratio:>8.3f}", flush=True)
            if ratio > TOLERANCE:
                grown.append(case)
    if options.update:
        FIGURES.write_text(json.dumps(counted, indent=2) + "\n")
        return 0
    missing = counted.keys() ^ figures.keys()
    if missing:
        print(f"no figure, or no such case: {', '.join(sorted(missing))}; --update writes the figures")
    for case in grown:
        print(f"{case} needs more than {TOLERANCE - 1:.0%} more instructions than its figure")
    return 1 if grown or missing else 0


if __name__ == "__main__":
    sys.exit(main())
