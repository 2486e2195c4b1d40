#!/usr/bin/env bash
# Rebuilds the sample from its sources: bin/, symbols/, src/functions.txt, leaky.etl and server.etl.
# Needs clang++, lld-link, llvm-objdump, llvm-pdbutil, llvm-readobj and llvm-undname
# (Debian and Ubuntu: the packages clang, lld and llvm), and cargo. Installs nothing.
#
# The same version of LLVM gives the same bytes; another one gives other GUIDs and addresses, and a
# trace that has them.
set -euo pipefail

for tool in clang++ lld-link llvm-objdump llvm-pdbutil llvm-readobj llvm-undname cargo; do
    command -v "$tool" >/dev/null || {
        echo "rebuild.sh: $tool is missing; install the packages clang, lld and llvm, and Rust" >&2
        exit 1
    }
done

examples=$(cd "$(dirname "$0")" && pwd)
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
cp "$examples"/src/*.cpp "$examples"/src/*.h "$build"
cd "$build"

# No option below may bring a path of this machine into the object file, and every function must keep its
# own frame: no inlining, no tail calls.
compile=(
    clang++ -no-canonical-prefixes --target=x86_64-pc-windows-msvc -std=c++17 -Wall -Wextra -Wno-missing-field-initializers
    -O1 -g -gcodeview -ffreestanding -nostdinc -resource-dir=. -fdebug-compilation-dir=. -fcoverage-compilation-dir=.
    -fno-ident -fno-exceptions -fno-rtti -fno-threadsafe-statics -fno-stack-protector -mno-stack-arg-probe
    -funwind-tables -ffunction-sections -fno-inline -fno-optimize-sibling-calls -fno-unroll-loops
)
link=(
    lld-link /nologo /nodefaultlib /debug /Brepro /opt:noref,noicf "/pdbaltpath:%_PDB%" /pdbsourcepath:.
)

# module NAME.cpp OUTPUT PDB LINK-OPTION...
module() {
    local source=$1 output=$2 pdb=$3
    shift 3
    "${compile[@]}" -c "$source.cpp" -o "$source.obj"
    "${link[@]}" "/out:$output" "/pdb:$pdb" "$source.obj" "$@"
    describe "$source" "$output" "$pdb" >>functions.txt
    install -D -m 644 "$output" "$examples/bin/$output"
    install -D -m 644 "$pdb" "$examples/symbols/$pdb/$guid$age/$pdb"
}

# Writes what the trace generator has to know of a module, and sets its `guid` and `age`.
describe() {
    local source=$1 output=$2 pdb=$3 headers
    headers=$(llvm-readobj --file-headers --sections --coff-debug-directory "$output")
    field() { sed -n "s/^ *$1: *//p" <<<"$headers" | head -n 1; }
    # The sixteen bytes as they lie in the file; the first three groups of a GUID are little-endian.
    read -ra byte <<<"$(field PDBGUID | tr -d '()')"
    guid=$(printf %s "${byte[@]:3:1}" "${byte[@]:2:1}" "${byte[@]:1:1}" "${byte[@]:0:1}" \
        "${byte[@]:5:1}" "${byte[@]:4:1}" "${byte[@]:7:1}" "${byte[@]:6:1}" "${byte[@]:8:8}")
    age=$(printf '%X' "$(field PDBAge)")
    printf 'module %s %s %s %s 0x%x %s\n' "$output" "$pdb" "$guid" "$age" "$(field SizeOfImage)" \
        "$(field TimeDateStamp | sed 's/.*(\(.*\))/\1/')"
    llvm-objdump -dr --no-show-raw-insn "$source.obj" >"$source.asm"
    sed -n 's/^[0-9a-f]* <\(?.*\)>:$/\1/p' "$source.asm" | while read -r mangled; do
        printf '%s\t' "$mangled"
        llvm-undname --no-access-specifier --no-calling-convention --no-member-type --no-return-type "$mangled" |
            sed -n '2s/(.*//p'
    done >"$source.names"
    llvm-pdbutil dump --symbols "$pdb" |
        awk -v MODULE="$output" -v NAMES="$source.names" -v TEXT=$(($(field VirtualAddress))) -f "$examples/src/functions.awk" - "$source.asm"
}

rm -rf "$examples/bin" "$examples/symbols"
cat >functions.txt <<'EOF'
# Made by rebuild.sh from the PDBs and object files: the addresses that the stacks of leaky.etl are made of.
# module <file> <PDB> <GUID> <age> <size> <time stamp>
# function <module> <name> <RVA> <size>
# call <module> <caller> <callee> <RVA of the return address>
EOF
module ntoskrnl ntoskrnl.exe ntkrnlmp.pdb /subsystem:native /entry:KiSystemStartup
module ntdll ntdll.dll ntdll.pdb /dll /noentry /implib:ntdll.lib
module kernelbase KernelBase.dll kernelbase.pdb /dll /noentry /implib:kernelbase.lib ntdll.lib
module kernel32 kernel32.dll kernel32.pdb /dll /noentry /implib:kernel32.lib ntdll.lib
module leaky leaky.exe leaky.pdb /subsystem:console /entry:Main kernelbase.lib kernel32.lib
module explorer explorer.exe explorer.pdb /subsystem:windows /entry:WinMain kernelbase.lib
module server server.exe server.pdb /subsystem:console /entry:Main kernelbase.lib kernel32.lib
install -m 644 functions.txt "$examples/src/functions.txt"

cd "$examples/.."
cargo run --quiet --release -p handlescope-tests --bin sample-trace -- \
    examples/src/functions.txt examples/leaky.etl examples/server.etl
