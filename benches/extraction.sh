#!/usr/bin/env bash
# Measures extraction and the first question asked of the extract, beside reading the same file.
#
#   benches/extraction.sh [HANDLE_EVENTS]        (default 5,000,000; needs GNU time)
#
# The trace is generated: every create, duplicate and close has a kernel and a user stack fragment. A second one has
# twice as many events of heap blocks, of which those of allocations have stacks, and nothing of handles.
# All figures of one run come from one machine in one state, so compare them with each other.
set -euo pipefail
cd "$(dirname "$0")/.."

events=${1:-5000000}
runs=3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cargo build --release --workspace --quiet
target/release/large-trace "$work/large.etl" --handle-events "$events" > "$work/counts.txt"
target/release/large-trace "$work/heap.etl" --handle-events 0 --heap-events $((2 * events)) > "$work/counts.txt"
bytes=$(stat -c %s "$work/large.etl")
heap_bytes=$(stat -c %s "$work/heap.etl")
printf 'trace: %s handle events with stacks, %s MB; %s events of blocks, %s MB\n' \
    "$events" $((bytes / 1000000)) $((2 * events)) $((heap_bytes / 1000000))

# Runs a command, prints wall time, throughput over the trace and peak memory.
measure() {
    local what=$1
    shift
    /usr/bin/time -f '%e %M' -o "$work/time" "$@" > "$work/out" 2> "$work/err" \
        || { cat "$work/err"; exit 1; }
    awk -v what="$what" -v bytes="$bytes" \
        '{ printf "%-42s %6.2f s  %6.0f MB/s  %5.0f MB peak\n", what, $1, bytes / 1e6 / $1, $2 / 1024 }' \
        "$work/time"
}

cat "$work/large.etl" > /dev/null
for run in $(seq $runs); do
    measure "cat ($run)" cat "$work/large.etl"
    measure "extract ($run)" target/release/handlescope extract -o "$work/extract" "$work/large.etl"
    bytes=$heap_bytes measure "extract blocks ($run)" \
        target/release/handlescope extract -o "$work/extract" "$work/heap.etl"
    bytes=$heap_bytes measure ".dump Resource -Leak ($run)" target/release/handlescope \
        "$work/extract/heap.json7z" -c '.dump Resource -Leak -TopN 5'
    bytes=$heap_bytes measure ".why of blocks ($run)" target/release/handlescope \
        "$work/extract/heap.json7z" -c '.why -TopN 5'
    measure ".save -etwanalyzer ($run)" target/release/handlescope \
        "$work/extract/large.json7z" -c ".save \"$work/large.json7z\" -etwanalyzer"
    measure ".load + -Leak -ShowTotal Process ($run)" target/release/handlescope \
        "$work/extract/large.json7z" -c '.dump ObjectRef -Leak -ShowTotal Process'
    measure ".load + -Leak -json ($run)" target/release/handlescope \
        "$work/extract/large.json7z" -c '.dump ObjectRef -Leak -json'
done
printf 'extract: %s MB\n' $(($(stat -c %s "$work/extract/large.json7z") / 1000000))
