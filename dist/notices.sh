#!/usr/bin/env bash
# What is in the program: an SBOM (CycloneDX) and the licences of all crates, with cargo-cyclonedx and cargo-about.
#
# notices.sh OUT: writes handlescope-VERSION.cdx.json and THIRD-PARTY.html into OUT; a package made with
# THIRD_PARTY=OUT/THIRD-PARTY.html holds the latter.
set -euo pipefail
source "$(dirname "$0")/version.sh"
out=$1
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$root"

for tool in cargo-cyclonedx cargo-about; do
    # The program of cargo-about is behind a feature; cargo-cyclonedx has none of that name.
    command -v "$tool" >/dev/null || cargo install --locked "$tool" $([ "$tool" = cargo-about ] && echo --features=cli)
done
file=handlescope-$version.cdx
cargo cyclonedx --manifest-path console/Cargo.toml --format json --spec-version 1.5 --override-filename "$file"
mv "console/$file.json" "$out/"
# One is written for each member of the workspace.
find . -name "$file.json" -not -path './target/*' -delete
# Crates of systems that this one does not build for are in the graph, too.
cargo fetch --locked
# Offline: from the sources of the crates only, so that the answer is always the same.
cargo about generate --offline --config dist/about.toml --manifest-path console/Cargo.toml --fail \
    --output-file "$out/THIRD-PARTY.html" dist/about.hbs
