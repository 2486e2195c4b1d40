#!/usr/bin/env bash
# Runs examples/leaky-program under Wine for a second, and prints how often each function did what, for the test that
# compares it with what the program is to do.
#
# wine-leaky.sh TRUTH.ndjson: needs Debian's wine64 and mingw-w64, and the target x86_64-pc-windows-gnu.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
truth=$(realpath -m "$1")
cd "$root"
target=x86_64-pc-windows-gnu
built=$(cargo build -p leaky-program --target "$target" --message-format=json |
    sed -n 's/.*"executable":"\([^"]*\.exe\)".*/\1/p')
. "$root/tests/wine-setup.sh"
cp "$built" "$work/bin/leaky-program.exe"
cd "$work/bin"
timeout -s KILL 120 "$wine" ./leaky-program.exe truth.ndjson 1 </dev/null
cp truth.ndjson "$truth"
