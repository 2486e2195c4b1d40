#!/usr/bin/env bash
# Measures grouping and .why over a large extract, beside .dump ObjectRef -Leak, in one run.
#
#   benches/groups.sh [EVENTS]        (default 10000000 handle events; needs GNU time, 4 GB of disk)
#
# Each is a process of its own, which loads the columns it needs; "load" is what a query takes that reads
# the same columns and prints sums only.
set -euo pipefail
cd "$(dirname "$0")/.."

events=${1:-10000000}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cargo build --release --workspace --quiet
target/release/large-trace "$work/large.etl" --handle-events "$events" > /dev/null
target/release/handlescope extract "$work/large.etl" -o "$work"
rm "$work/large.etl"

# Runs a query three times, and prints the best wall time, its user time and its peak memory.
measure() {
    for _ in 1 2 3; do
        /usr/bin/time -f '%e %U %M' -o "$work/time" \
            target/release/handlescope "$work/large.json7z" -c "$1" > /dev/null 2> "$work/err" \
            || { cat "$work/err"; exit 1; }
        cat "$work/time"
    done | sort -n | head -n 1 | awk -v what="$1" \
        '{ printf "%-70s %6.2f s  %6.2f s user  %5.0f MB peak\n", what, $1, $2, $3 / 1024 }'
}

measure '.dump ObjectRef -ShowTotal Process'
measure '.dump ObjectRef -Leak -ShowTotal Process'
measure '.dump ObjectRef -Leak -TopN 10'
measure '.dump ObjectRef -GroupBy process,type -TopN 10'
measure '.dump ObjectRef -GroupBy process,type,createstack -TopN 10'
measure '.why -TopN 10'
