#!/usr/bin/env bash
# What of the program for Windows runs on Linux, under Wine: its answers are those of the program of this system.
#
# wine.sh HANDLESCOPE.EXE [HANDLESCOPE]: needs Debian's wine64 and mingw-w64; takes about a minute. Recording is not
# tried: Wine has no kernel sessions.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
program=$(realpath "$1")
own=$(realpath "${2:-$root/target/debug/handlescope}")

. "$root/tests/wine-setup.sh"
mkdir "$work/own"
cp "$program" "$work/bin/handlescope.exe"

failed=0
tried=0
windows() { (cd "$work/win" && timeout -s KILL 120 "$wine" "$work/bin/handlescope.exe" "$@"); }
here() { (cd "$work/own" && timeout -s KILL 120 "$own" "$@"); }
mkdir "$work/win"
for folder in win own; do
    cp "$root/examples/leaky.etl" "$work/$folder/"
    cp -r "$root/examples/symbols" "$work/$folder/"
    cp "$root/examples/leaky.etl" "$work/$folder/grüße 漢字.etl"
done

# One answer of both programs; Windows ends lines with two characters where a file is asked for, and has its own
# separator of folders.
same() {
    local name=$1
    shift
    tried=$((tried + 1))
    local expected found status=0
    expected=$(here "$@" 2>/dev/null </dev/null) || true
    found=$(windows "$@" 2>"$work/err" </dev/null | tr -d '\r') || status=$?
    if [ "$expected" = "$found" ] && [ -n "$found" ]; then
        echo "same     $name"
    else
        echo "DIFFERS  $name (status $status)"
        diff <(printf '%s\n' "$expected") <(printf '%s\n' "$found") | head -10 || true
        head -3 "$work/err"
        failed=$((failed + 1))
    fi
}

same 'the main job' why leaky.etl --symbol-path symbols
same 'leaks with stacks' leaky.etl --symbol-path symbols -c '.dump ObjectRef -Leak -ShowStack'
same 'leaks as JSON' leaky.etl --symbol-path symbols -c '.dump ObjectRef -Leak -ShowStack -json'
same 'groups' leaky.etl --symbol-path symbols -c '.dump ObjectRef -GroupBy process,type,createstack -TopN 5'
same 'a process' leaky.etl -c '.dump ObjectRef -pn leaky.exe -ShowTotal Total'
same 'processes' leaky.etl -c '.dump Process'
same 'SQL' leaky.etl -c '.sql SELECT type, COUNT(*) AS n FROM objects GROUP BY type ORDER BY n DESC, type'
same 'CSV' leaky.etl -c '.dump ObjectRef -Leak -csv'
same 'a name in Unicode' 'grüße 漢字.etl' -c '.dump ObjectRef -Leak -ShowTotal Total'
same 'tables' schema --markdown
same 'a profile for WPR' wprp
same 'a session as data' record --dry-run

# Scripts on standard input, with ends of lines as Windows writes them.
tried=$((tried + 1))
script='.load leaky.etl\n.dump ObjectRef -Leak -ShowTotal Total\n'
expected=$(printf "$script" | here 2>/dev/null)
found=$(printf "${script//\\n/\\r\\n}" | windows 2>/dev/null | tr -d '\r')
[ "$expected" = "$found" ] && [ -n "$found" ] && echo "same     a script with CRLF" ||
    { echo "DIFFERS  a script with CRLF"; failed=$((failed + 1)); }

# Paths of Windows: drive letters, folders deeper than 260 characters, shares.
says() {
    local name=$1 text=$2
    shift 2
    tried=$((tried + 1))
    # What says no ends with another status, which is not asked about here.
    if grep -qF -- "$text" <<<"$(windows "$@" </dev/null 2>&1 | tr -d '\r' || true)"; then
        echo "works    $name"
    else
        echo "FAILS    $name"
        windows "$@" </dev/null 2>&1 | head -5 || true
        failed=$((failed + 1))
    fi
}
total='Leaked handles and views: 19'
drive="Z:${work//\//\\}\\win"
says 'a path with a drive' "$total" "$drive\\leaky.etl" -c '.dump ObjectRef -Leak -ShowTotal Total'
says '.cd to a drive' "$total" -c ".cd $drive" -c '.load leaky.etl' -c '.dump ObjectRef -Leak -ShowTotal Total'
deep=$work/win
for part in 1 2 3 4 5 6; do deep=$deep/$(printf 'd%.0s' {1..60})$part; done
mkdir -p "$deep"
cp "$root/examples/leaky.etl" "$deep/"
long="Z:${deep//\//\\}"
says 'a path of more than 260 characters' "$total" "$long\\leaky.etl" -c '.dump ObjectRef -Leak -ShowTotal Total'
says 'a share that is not there' 'error' '\\nowhere.invalid\share\leaky.etl'
says '.export' 'objects' leaky.etl -c '.export tables -parquet' -c '.sql SELECT COUNT(*) AS objects FROM objects'
[ -n "$(ls -A "$work/win/tables" 2>/dev/null)" ] || { echo "FAILS    .export writes no files"; failed=$((failed + 1)); }
says 'a report' 'page.html' report leaky.etl page.html --symbol-path symbols
says 'the null device' "$total" leaky.etl -c '.dump Process > nul' -c '.dump ObjectRef -Leak -ShowTotal Total'
says 'a device' 'con: is not a regular file' leaky.etl -c '.dump Process > con'
says 'a drive that is not there' 'there is no drive Q:' leaky.etl -c '.dump Process > q:b.txt'
says 'a \ in front of a closing "' 'leave that \ out' "$drive\\My Traces\"" -c .list
says 'recording needs rights that Wine has not' 'wpr' record trace.etl --duration 1

# Two consoles on one trace: the extract that the first has loaded cannot be replaced when the trace is another one.
tried=$((tried + 1))
mkfifo "$work/lines"
windows <"$work/lines" >"$work/first" 2>&1 &
exec 3>"$work/lines"
printf '.load leaky.etl\n.dump ObjectRef -Leak -ShowTotal Total\n' >&3
for _ in {1..60}; do grep -qF "$total" "$work/first" && break || sleep 1; done
touch "$work/win/leaky.etl"
second=$(windows leaky.etl -c '.dump ObjectRef -Leak -ShowTotal Total' </dev/null 2>&1) || second+=" status $?"
printf '.dump ObjectRef -Leak -ShowTotal Total\n' >&3
exec 3>&-
wait
if [[ $second == *'cannot be replaced ('*'another program has it open); extracting for this session only'*"$total"* && $second != *status* ]] &&
    [ "$(grep -cF "$total" "$work/first")" -eq 2 ]; then
    echo "works    an extract that another console has loaded"
else
    echo "FAILS    an extract that another console has loaded"
    printf '%s\n' "$second" | head -5
    head -5 "$work/first"
    failed=$((failed + 1))
fi

echo "$((tried - failed)) of $tried"
[ "$failed" -eq 0 ]
