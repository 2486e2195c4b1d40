#!/usr/bin/env bash
# Runs examples/leaky-program under Wine for a second. Every function has to do what it did when tests/fixtures was
# written: calls of each kind, of objects of each type. A file to keep the truth may be named.
#
# wine-leaky.sh [TRUTH.ndjson]: needs Debian's wine64 and mingw-w64, and the target x86_64-pc-windows-gnu.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
kept=${1:+$(realpath -m "$1")}
cd "$root"
target=x86_64-pc-windows-gnu
built=$(cargo build -p leaky-program --target "$target" --message-format=json |
    sed -n 's/.*"executable":"\([^"]*\.exe\)".*/\1/p')
. "$root/tests/wine-setup.sh"
cp "$built" "$work/bin/leaky-program.exe"
cd "$work/bin"
timeout -s KILL 120 "$wine" ./leaky-program.exe truth.ndjson 1 </dev/null

# Function, call, and the type or kind.
calls() {
    sed -E 's/.*"function":"([a-z_]*)","call":"([a-z]*)"/\1 \2 /; s/ [^ ]*"(object_type|kind)":"([A-Za-z]*)".*/ \2/; s/ [,}].*//' "$1" |
        sort -u
}
diff <(calls "$root/tests/fixtures/leaky-program.ndjson") <(calls truth.ndjson)
[ -z "$kept" ] || cp truth.ndjson "$kept"
echo "leaky-program did what it is to do: $(wc -l <truth.ndjson) calls"
