#!/usr/bin/env bash
# The tests of record/ as a program for Windows, under Wine, and what its calls of Windows are called with: Wine has no
# sessions, but notes that it was asked for one.
#
# wine-record.sh: needs Debian's wine64 and mingw-w64, and the target x86_64-pc-windows-gnu; takes about a minute.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
target=x86_64-pc-windows-gnu
built=$(cargo test -p handlescope-record --target "$target" --no-run --message-format=json |
    sed -n 's/.*"executable":"\([^"]*\.exe\)".*/\1/p')
. "$root/tests/wine-setup.sh"
cp "$built" "$work/bin/record.exe"
cd "$work/bin"
status=0
WINEDEBUG=-all,fixme+eventlog timeout -s KILL 300 "$wine" ./record.exe --include-ignored >"$work/out" 2>"$work/err" || status=$?
tr -d '\r' <"$work/out"
[ "$status" -eq 0 ] || { echo "status $status"; tail -5 "$work/err"; exit 1; }

asked() {
    grep -qE -- "$1" "$work/err" || { echo "no call of Windows was $1"; cat "$work/err"; exit 1; }
}
# Provider, that it is switched on, level, keywords; hexadecimal.
asked 'EnableTraceEx2 \(cafe4242, \{e13c0d23-ccbc-4e12-931b-d9cc2eee27e4\}, 1, 5, 18,'
asked 'EnableTraceEx2 \(cafe4242, \{a669021c-c450-4609-a035-5af59af4df18\}, 1, 5, 138,'
# Three events with stacks, of 24 bytes each; and that what was started is stopped where this is refused.
asked 'StartTraceW \([0-9A-F]+, L"NT Kernel Logger",'
asked 'TraceSetInformation cafe4242 3 [0-9A-F]+ 72: stub'
asked 'ControlTraceW \(cafe4242, \(null\), [0-9A-F]+, 1\)'
echo "Windows is asked for what is planned"
