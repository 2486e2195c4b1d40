#!/usr/bin/env bash
# Manifests of winget and Homebrew, filled in for packages that were made.
#
# fill.sh OUT HOMEPAGE [SOURCE.tar.gz]: writes OUT/winget/*.yaml if OUT has the package for Windows, and
# OUT/handlescope.rb if SOURCE, the archive of the tag as it is downloaded, is given.
set -euo pipefail
source "$(dirname "$0")/version.sh"
out=$1 homepage=$2 source_archive=${3:-}

fill() {
    sed -e "s|@VERSION@|$version|g" -e "s|@HOMEPAGE@|$homepage|g" \
        -e "s|@WINDOWS_SHA256@|${windows:-}|g" -e "s|@SOURCE_SHA256@|${source_sum:-}|g" "$1" >"$2"
    if grep -n '@[A-Z_0-9]*@' "$2"; then
        echo "error: $2 is not filled in" >&2
        exit 1
    fi
}

zip=$out/handlescope-$version-x86_64-windows.zip
if [ -e "$zip" ]; then
    windows=$(sha256sum "$zip" | cut -d' ' -f1 | tr a-f A-F)
    mkdir -p "$out/winget"
    for template in "$root"/dist/winget/*.in; do
        fill "$template" "$out/winget/$(basename "$template" .in)"
    done
fi
if [ -n "$source_archive" ]; then
    source_sum=$(sha256sum "$source_archive" | cut -d' ' -f1)
    fill "$root/dist/homebrew.rb.in" "$out/handlescope.rb"
fi
