#!/usr/bin/env bash
# Measures each class of query over a large extract: totals, filters, listings, grouping and .why, in one run.
#
#   benches/groups.sh [EVENTS]        (default 10000000 handle events; needs GNU time, 4 GB of disk)
#
# Each is a process of its own, which loads the columns it needs. "again" is what the same query takes in a
# process that has them: of eight in one process less one, a seventh.
set -euo pipefail
cd "$(dirname "$0")/.."

events=${1:-10000000}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cargo build --release --workspace --quiet
target/release/large-trace "$work/large.etl" --handle-events "$events" > /dev/null
target/release/handlescope extract "$work/large.etl" -o "$work"
rm "$work/large.etl"

# Runs a query so many times in a process, three times over; prints the best wall time, its user time and its
# peak memory.
best() {
    local query=() times=$2
    while ((times-- > 0)); do query+=(-c "$1"); done
    for _ in 1 2 3; do
        /usr/bin/time -f '%e %U %M' -o "$work/time" \
            target/release/handlescope "$work/large.json7z" "${query[@]}" > /dev/null 2> "$work/err" \
            || { cat "$work/err"; exit 1; }
        cat "$work/time"
    done | sort -n | head -n 1
}

measure() {
    local once eight
    once=$(best "$1" 1)
    eight=$(best "$1" 8)
    awk -v what="$1" -v once="$once" -v eight="$eight" 'BEGIN {
        split(once, one); split(eight, all)
        printf "%-70s %6.2f s  %6.2f s user  %5.0f MB peak  again %5.2f s\n",
            what, one[1], one[2], one[3] / 1024, (all[1] - one[1]) / 7 }'
}

measure '.dump ObjectRef -ShowTotal Process'
measure '.dump ObjectRef -Leak -ShowTotal Process'
measure '.dump ObjectRef -Leak -TopN 10'
measure '.dump ObjectRef -Leak -json'
measure '.dump ObjectRef -pn app3* -ShowTotal Process'
measure '.dump ObjectRef -StackFilter *app12.exe+0x1* -ShowTotal Process'
measure '.dump ObjectRef -GroupBy process,type -TopN 10'
measure '.dump ObjectRef -GroupBy process,type,createstack -TopN 10'
measure '.why -TopN 10'
