#!/usr/bin/env bash
# What every package holds beside the program: licences, documents, completions, manual page, the sample.
#
# stage.sh PROGRAM FOLDER [RUNNER…]: copies PROGRAM into FOLDER and adds the rest. RUNNER runs a program of another
# system, such as wine.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
program=$1 folder=$2
shift 2

mkdir -p "$folder/completions" "$folder/man" "$folder/docs" "$folder/examples"
cp "$program" "$folder/"
own=$folder/$(basename "$program")
chmod 755 "$own"
cp "$root"/{README.md,CHANGELOG.md,LICENSE-APACHE,LICENSE-MIT} "$folder/"
cp "$root"/docs/*.md "$folder/docs/"
cp -r "$root/docs/images" "$folder/docs/"
for name in README.md leak-hunt.txt leaky.etl server.etl symbols; do
    cp -r "$root/examples/$name" "$folder/examples/"
done

write() {
    local file=$1
    shift
    "${RUN[@]}" "$own" "$@" >"$file"
    [ -s "$file" ] || { echo "error: $own $* printed nothing" >&2; exit 1; }
}
RUN=(env "$@")
write "$folder/completions/handlescope.bash" completions bash
write "$folder/completions/_handlescope" completions zsh
write "$folder/completions/handlescope.fish" completions fish
write "$folder/completions/_handlescope.ps1" completions powershell
write "$folder/man/handlescope.1" man

# Licences and notices of everything that is linked in.
if [ -n "${THIRD_PARTY:-}" ]; then
    cp "$THIRD_PARTY" "$folder/THIRD-PARTY.html"
fi
