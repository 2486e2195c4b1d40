#!/usr/bin/env bash
# Measures the naming of stack frames: 100,000 distinct ones in large generated PDBs, first without
# symcaches (cold), then with those of the first run (warm).
#
#   benches/symbols.sh [FRAMES] [FOLDER]       (default 100,000; needs clang++ and lld-link)
#   benches/symbols.sh --large                 (one PDB of 2 GB, of which 1 and 30 frames are named; needs 6 GB)
#
# Modules and PDBs are made from generated C++ in a temporary folder, or in FOLDER, where a second
# run finds them again. Each module is linked from the same object files, but has a PDB of its own.
set -euo pipefail
cd "$(dirname "$0")/.."

large=
if [ "${1:-}" = --large ]; then
    large=1
    shift
fi
frames=${1:-100000}
modules=6
objects=48
classes=500

for tool in clang++ lld-link; do
    command -v "$tool" > /dev/null || { echo "symbols.sh: $tool is missing" >&2; exit 1; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
binaries=${2:-$work/binaries}

# A class per function: templates, an inlined call within an inlined call, parameters, C linkage.
source_of() {
    awk -v part="$1" -v classes="$classes" 'BEGIN {
        print "typedef unsigned u32;"
        if (part == 0) print "extern \"C\" int _fltused = 0;"
        printf "namespace part%d {\n", part
        print "template<class T, int N> struct Box { T v; __attribute__((always_inline)) T get(T a) {"
        print "    return a * N + v; } };"
        for (i = 0; i < classes; i++) {
            printf "struct Node%d { u32 a, b; Box<u32, %d> box; int m%d; Node%d *next;\n", i, i % 50, i, i
            print "    __attribute__((always_inline)) u32 mix(u32 x) {"
            print "        return box.get(x) ^ a; }"
            printf "    u32 Method%d(u32 x, const char *s, Node%d *other); };\n", i, i
            printf "u32 Node%d::Method%d(u32 x, const char *s, Node%d *other) {\n", i, i, i
            print "    u32 r = 0;\n    for (u32 k = 0; k < x; k++) {\n        r += mix(k);"
            print "        if (r & 1)\n            r ^= other->mix(r);\n        r += s[k & 7];\n    }"
            print "    return r;\n}"
            printf "extern \"C\" u32 free%d_%d(Node%d *n, u32 x) {\n", part, i, i
            printf "    u32 t = n->Method%d(x, \"abcdefgh\", n);\n    return t + n->mix(t);\n}\n", i
        }
        print "}"
    }'
}

compile() {
    clang++ ${optimize:-} --target=x86_64-pc-windows-msvc -std=c++17 -g -gcodeview -ffreestanding \
        -fno-exceptions -c "$1" -o "${1%.cpp}.obj"
}
export -f compile

# Object files of 1,900 namespaces from one: they differ in a part of the names of the same length.
make_large() {
    mkdir -p "$binaries"
    source_of 0 | sed 's/part0/part0000/g; s/free0_/freepart0000_/g' > "$work/part0000.cpp"
    sed -i 's/^extern "C" int _fltused.*//' "$work/part0000.cpp"
    optimize=-O1 compile "$work/part0000.cpp"
    for part in $(seq -f %04g 1 1900); do
        sed "s/part0000/part$part/g" "$work/part0000.obj" > "$work/part$part.obj"
    done
    echo 'extern "C" int _fltused = 0;' > "$work/float.cpp"
    compile "$work/float.cpp"
    ls "$work"/*.obj > "$work/objects"
    lld-link /nologo /nodefaultlib /debug /dll /noentry /opt:noref,noicf \
        "/out:$binaries/large.dll" "/pdb:$binaries/large.pdb" "@$work/objects"
}

if [ -n "$large" ]; then
    make_large
    cargo build --release --quiet -p handlescope -p handlescope-symbols --example resolve-frames
    du -m "$binaries/large.pdb"
    time sha1sum "$binaries/large.pdb"
    for run in 1 1 30 30; do
        target/release/examples/resolve-frames "$binaries" "$work/symcaches" $run
    done
    exit
fi

if ! [ -d "$binaries" ]; then
    mkdir -p "$binaries"
    for part in $(seq 0 $((objects - 1))); do source_of "$part" > "$work/part$part.cpp"; done
    printf '%s\0' "$work"/part*.cpp | xargs -0 -n 1 -P "$(nproc)" bash -c 'compile "$0"'
    for module in $(seq 1 $modules); do
        lld-link /nologo /nodefaultlib /debug /dll /noentry /opt:noref,noicf \
            "/out:$binaries/module$module.dll" "/pdb:$binaries/module$module.pdb" "$work"/part*.obj
    done
fi
du -cm "$binaries"/*.pdb | awk -v modules="$modules" 'END { printf "pdbs: %d, %s MB\n", modules, $1 }'

cargo build --release --quiet -p handlescope -p handlescope-symbols --example resolve-frames
for run in 1 2 3; do
    rm -rf "$work/symcaches"
    for state in cold warm; do
        printf '%s (%s): ' "$state" "$run"
        target/release/examples/resolve-frames "$binaries" "$work/symcaches" "$frames"
    done
done
du -sm "$work/symcaches" | awk '{ printf "symcaches: %s MB\n", $1 }'
