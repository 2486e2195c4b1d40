#!/usr/bin/env python3
"""Compares extraction with hashing and compressing the same file, and with other readers, in one run.

    benches/compare.py [--runs 3] [--small]

Generates traces with `large-trace`, then takes turns: `sha1sum`, `zstd -1`, and this program on 1, 2 and 4 processors
(as far as there are so many). Prints wall time, its ratio to `sha1sum`, CPU time, peak memory and the archive's size,
each the median of the runs. Readers in Python (etl-parser, dissect.etl) count the events of a trace of 20,000 handle
events, where they are installed, beside this program, which extracts them. Linux only; needs about 10 GB in the folder for
temporary files.
"""

import argparse
import importlib.util
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RELEASE = ROOT / "target" / "release"

# Name, and arguments of large-trace: the traces of docs/performance.md.
TRACES = {
    "2 M, 5,000 stacks": ["--handle-events", "2000000", "--distinct-stacks", "5000"],
    "2 M, compressed": ["--handle-events", "2000000", "--distinct-stacks", "5000", "--compressed"],
    "5 M": ["--handle-events", "5000000"],
    "10 M": ["--handle-events", "10000000"],
    "5 M, 384,000 stacks": ["--handle-events", "5000000", "--distinct-stacks", "384000"],
    "14 M other events": ["--handle-events", "1000", "--other-events", "14000000"],
}

READERS = {
    "etl": "from etl.etl import IEtlFileObserver, build_from_stream\n"
    "class Count(IEtlFileObserver):\n"
    "    n = 0\n"
    "    def on_system_trace(self, event): self.n += 1\n"
    "    on_perfinfo_trace = on_trace_record = on_event_record = on_win_trace = on_system_trace\n"
    "count = Count()\n"
    "build_from_stream(open(FILE, 'rb').read()).parse(count)\n"
    "print(count.n)\n",
    "dissect.etl": "from dissect.etl import ETL\nprint(sum(1 for _ in ETL(open(FILE, 'rb'))))\n",
}


def measure(command, processors=None):
    """Wall seconds, CPU seconds and peak megabytes of a process; None when it fails."""
    limit = (lambda: os.sched_setaffinity(0, processors)) if processors else None
    begin = os.times().elapsed
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=limit
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        return None
    wall = os.times().elapsed - begin
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def rows(trace, folder, runs):
    """Each program with the medians of its runs; the programs take turns, so that all see the same machine."""
    available = sorted(os.sched_getaffinity(0))
    programs = {"sha1sum": (["sha1sum", trace], None)}
    if shutil.which("zstd"):
        programs["zstd -1"] = (["zstd", "-1", "-q", "-f", "-o", folder / "packed", trace], None)
    for count in (1, 2, 4):
        if count <= len(available):
            command = [RELEASE / "handlescope", "extract", "-outdir", folder, trace]
            programs[f"handlescope, {count} processors"] = (command, set(available[:count]))
    seen = {name: [] for name in programs}
    for _ in range(runs):
        for name, (command, processors) in programs.items():
            seen[name].append(measure(command, processors))
    for name, figures in seen.items():
        figures = [figure for figure in figures if figure]
        yield name, [statistics.median(column) for column in zip(*figures)] if figures else None


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--runs", type=int, default=3, help="runs of each program (default 3)")
    options.add_argument("--small", action="store_true", help="only the traces of 2 million events")
    options = options.parse_args()
    build = ["cargo", "build", "--release", "--workspace", "--bins", "--quiet"]
    subprocess.run(build, cwd=ROOT, check=True)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        for title, arguments in TRACES.items():
            if options.small and not title.startswith("2 M"):
                continue
            trace = folder / "trace.etl"
            subprocess.run(
                [RELEASE / "large-trace", trace, *arguments], check=True, stdout=subprocess.DEVNULL
            )
            print(f"\n{title}: {trace.stat().st_size / 1e6:,.0f} MB")
            hashing = None
            for name, figures in rows(trace, folder, options.runs):
                if not figures:
                    print(f"  {name:26} failed")
                    continue
                wall, cpu, memory = figures
                hashing = hashing or wall
                print(
                    f"  {name:26} {wall:7.2f} s  {wall / hashing:5.2f} x sha1sum"
                    f"  {cpu:7.2f} s CPU  {memory:6,.0f} MB"
                )
            print(f"  archive {(folder / 'trace.json7z').stat().st_size / 1e6:,.1f} MB")
        readers(folder)


def readers(folder):
    """Prints how fast readers in Python count the events of a small trace, and this program extracts it."""
    trace = folder / "small.etl"
    arguments = ["--handle-events", "20000", "--distinct-stacks", "500"]
    subprocess.run([RELEASE / "large-trace", trace, *arguments], check=True, stdout=subprocess.DEVNULL)
    size = trace.stat().st_size / 1e6
    print(f"\n20,000: {size:.1f} MB")
    programs = {"handlescope": [RELEASE / "handlescope", "extract", "-outdir", folder, trace]}
    for module, program in READERS.items():
        if importlib.util.find_spec(module.split(".")[0]) is None:
            print(f"  {module}: not installed")
        else:
            programs[module] = [sys.executable, "-c", f"FILE = {str(trace)!r}\n{program}"]
    for name, command in programs.items():
        figures = measure(command)
        print(f"  {name:26} " + (f"{size / figures[0]:.1f} MB/s" if figures else "cannot read it"))


if __name__ == "__main__":
    main()
