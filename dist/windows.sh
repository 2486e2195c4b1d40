#!/usr/bin/env bash
# The package for Windows, made on Linux: a .zip, with SHA-256 sums.
#
# windows.sh OUT [PROGRAM.EXE]: builds the release for x86_64-pc-windows-gnu unless PROGRAM is given; needs rustup and
# Debian's mingw-w64. Completions and the manual page are printed by the program of this system (HANDLESCOPE, else one
# that is built), which prints the same.
set -euo pipefail
source "$(dirname "$0")/version.sh"
out=$1 program=${2:-}
mkdir -p "$out"
out=$(cd "$out" && pwd)
target=x86_64-pc-windows-gnu

cd "$root"
if [ -z "$program" ]; then
    rustup target add "$target"
    # Without these three, the program would need DLLs of mingw beside it.
    RUSTFLAGS="${RUSTFLAGS:-} -C target-feature=+crt-static -C link-arg=-static" \
        cargo build --release --locked -p handlescope --target "$target"
    program=${CARGO_TARGET_DIR:-$root/target}/$target/release/handlescope.exe
fi
foreign=$(x86_64-w64-mingw32-objdump -p "$program" | sed -n 's/^\s*DLL Name: //p' | grep -iE '^lib(stdc|gcc|winpthread)' || true)
[ -z "$foreign" ] || { echo "error: the program needs DLLs that Windows has not: $foreign" >&2; exit 1; }
own=${HANDLESCOPE:-}
if [ -z "$own" ]; then
    cargo build --release --locked -p handlescope
    own=${CARGO_TARGET_DIR:-$root/target}/release/handlescope
fi

name=handlescope-$version-x86_64-windows
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$root/dist/stage.sh" "$own" "$work/$name"
rm "$work/$name/handlescope"
cp "$program" "$work/$name/handlescope.exe"
find "$work/$name" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
rm -f "$out/$name.zip"
(cd "$work" && find "$name" | sort | TZ=UTC zip -9qX "$out/$name.zip" -@)

checksums "$out"
cat "$out/SHA256SUMS"
