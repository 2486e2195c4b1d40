#!/usr/bin/env bash
# Measures the conversion of an ETWAnalyzer extract and the first question asked of it.
#
#   benches/import.sh [MEGABYTES]        (default 1000; needs GNU time, and 7z for the archive)
#
# MEGABYTES is the size of the generated handle part; an object takes about 280 bytes of it.
set -euo pipefail
cd "$(dirname "$0")/.."

megabytes=${1:-1000}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cargo build --release --workspace --quiet
target/release/large-extract "$work/large.json" --megabytes "$megabytes"
export XDG_CACHE_HOME="$work/cache"

# Runs a command, prints wall time, throughput over the handle part and peak memory.
measure() {
    local what=$1
    shift
    /usr/bin/time -f '%e %M' -o "$work/time" "$@" > "$work/out" 2> "$work/err" \
        || { cat "$work/err"; exit 1; }
    awk -v what="$what" -v size="$megabytes" \
        '{ printf "%-42s %6.2f s  %6.0f MB/s  %5.0f MB peak\n", what, $1, size / $1, $2 / 1024 }' \
        "$work/time"
}

measure "convert .json" target/release/handlescope "$work/large.json" -c .list
measure "-Leak -ShowTotal Process" target/release/handlescope "$work/large.json" \
    -c '.dump ObjectRef -Leak -ShowTotal Process'
if command -v 7z > /dev/null; then
    (cd "$work" && 7z a -bd -mx=5 large.7z large*.json > /dev/null && rm large*.json)
    mv "$work/large.7z" "$work/large.json7z"
    measure "convert .json7z" target/release/handlescope "$work/large.json7z" -c .list
fi
