#!/usr/bin/env bash
# Packages for Linux: a tarball and a .deb, with SHA-256 sums.
#
# linux.sh OUT [PROGRAM]: builds the release unless PROGRAM is given, and writes the packages into OUT. C++ is not
# linked in, libgcc statically; what is left are glibc's libraries, and the .deb asks for their version. It is compressed by
# DEB_COMPRESSION, xz if that is not set.
set -euo pipefail
source "$(dirname "$0")/version.sh"
out=$1 program=${2:-}
mkdir -p "$out"
out=$(cd "$out" && pwd)

if [ -z "$program" ]; then
    (cd "$root" && RUSTFLAGS="${RUSTFLAGS:-} -C link-arg=-static-libgcc" cargo build --release --locked -p handlescope)
    program=${CARGO_TARGET_DIR:-$root/target}/release/handlescope
fi
machine=$(uname -m)
name=handlescope-$version-$machine-linux
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022
"$root/dist/stage.sh" "$program" "$work/$name"

tar -C "$work" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -cf - "$name" |
    gzip -9n >"$out/$name.tar.gz"

# The oldest glibc that has every function the program calls.
glibc=$(objdump -T "$work/$name/handlescope" | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -1 | cut -d_ -f2)
foreign=$(objdump -p "$work/$name/handlescope" | sed -n 's/^ *NEEDED *//p' |
    grep -Ev '^(libc|libm|libpthread|libdl|librt|libgcc_s|ld-linux-[a-z0-9-]+)\.so\.[0-9]+$' || true)
[ -z "$foreign" ] || { echo "error: the program needs libraries that no package asks for: $foreign" >&2; exit 1; }
architecture=$(dpkg --print-architecture)
deb=$work/deb
share=$deb/usr/share
mkdir -p "$deb/DEBIAN" "$deb/usr/bin" "$share/doc/handlescope" "$share/man/man1" \
    "$share/bash-completion/completions" "$share/zsh/vendor-completions" "$share/fish/vendor_completions.d"
cp "$work/$name/handlescope" "$deb/usr/bin/"
cp "$work/$name/completions/handlescope.bash" "$share/bash-completion/completions/handlescope"
cp "$work/$name/completions/_handlescope" "$share/zsh/vendor-completions/"
cp "$work/$name/completions/handlescope.fish" "$share/fish/vendor_completions.d/"
gzip -9n <"$work/$name/man/handlescope.1" >"$share/man/man1/handlescope.1.gz"
cp -r "$work/$name"/{README.md,docs,examples} "$share/doc/handlescope/"
gzip -9n <"$work/$name/CHANGELOG.md" >"$share/doc/handlescope/changelog.gz"
if [ -e "$work/$name/THIRD-PARTY.html" ]; then
    cp "$work/$name/THIRD-PARTY.html" "$share/doc/handlescope/"
fi
{
    echo "handlescope is licensed under the MIT licence or the Apache licence 2.0, at your option."
    echo "The latter is in /usr/share/common-licenses/Apache-2.0."
    echo
    cat "$root/LICENSE-MIT"
} >"$share/doc/handlescope/copyright"
cat >"$deb/DEBIAN/control" <<CONTROL
Package: handlescope
Version: $version
Section: devel
Priority: optional
Architecture: $architecture
Maintainer: The handlescope developers
Depends: libc6 (>= $glibc), libgcc-s1
Installed-Size: $(du -sk --apparent-size "$deb/usr" | cut -f1)
Description: finds leaked Windows kernel handles in ETW traces
 Reads .etl files natively, follows every handle from its creation to its close,
 and says which code leaks them: groups, growth, causes, stacks with names from
 PDBs, pictures and reports.
CONTROL
find "$deb" -newermt "@$SOURCE_DATE_EPOCH" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
dpkg-deb --root-owner-group "-Z${DEB_COMPRESSION:-xz}" --build "$deb" "$out/handlescope_${version}_$architecture.deb" >/dev/null

checksums "$out"
cat "$out/SHA256SUMS"
