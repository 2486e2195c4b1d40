# To be sourced: a Wine of its own. Sets `wine`, the program, and `work`, a folder that goes in the end; programs run from
# $work/bin. Needs Debian's wine64 and mingw-w64.
wine=$(command -v wine64 || echo /usr/lib/wine/wine64)
wineserver=$(command -v wineserver || echo /usr/lib/wine/wineserver64)
work=$(mktemp -d)
cleanup() {
    "$wineserver" -k 2>/dev/null || true
    rm -rf "$work"
}
trap cleanup EXIT
export WINEPREFIX=$work/prefix WINEDEBUG=-all WINEDLLOVERRIDES='mscoree,mshtml='

# A new prefix is complete before the first program is tried: once in dozens of runs a program that had Wine make one
# found no kernel32.dll in it (c0000135). Such a prefix is thrown away.
for attempt in 1 2 3; do
    timeout -s KILL 120 "$wine" wineboot --init </dev/null && timeout -s KILL 60 "$wineserver" -w &&
        timeout -s KILL 60 "$wine" cmd /c exit </dev/null && break
    "$wineserver" -k || true
    rm -rf "$WINEPREFIX"
    [ "$attempt" -lt 3 ] || { echo "Wine cannot make a prefix"; exit 1; }
done

# Rust's std takes random numbers from ProcessPrng of bcryptprimitives.dll, which Wine 8 does not have; without it the
# program exits with status 53 and no word.
mkdir "$work/bin"
cat >"$work/prng.c" <<'C'
#include <windows.h>
#include <ntsecapi.h>
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T size) {
    return RtlGenRandom(data, (ULONG)size);
}
C
x86_64-w64-mingw32-gcc -shared -O1 -o "$work/bin/bcryptprimitives.dll" "$work/prng.c" -ladvapi32
