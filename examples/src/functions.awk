# Lists the functions of one module and the calls in them: what a stack walk could meet there.
#
# Reads `llvm-pdbutil dump --symbols` of the PDB, then `llvm-objdump -dr --no-show-raw-insn` of the object file,
# with `llvm-undname`'s names in the file NAMES ("mangled<tab>demangled").
# Variables: MODULE, NAMES, TEXT (RVA of the code section, decimal).
# Writes: function <module> <name> <rva> <size>
#         call <module> <caller> <callee> <rva of the return address>
# A callee is "*" where it is called through a pointer that is not an import.

function hex(text,    value, i) {
    value = 0
    for (i = 1; i <= length(text); ++i)
        value = value * 16 + index("0123456789abcdef", substr(text, i, 1)) - 1
    return value
}

function emit_call(offset) {
    if (callee != "")
        printf "call %s %s %s 0x%x\n", MODULE, caller, callee, rva[caller] + offset
    callee = ""
}

BEGIN {
    while ((getline line < NAMES) > 0) {
        split(line, parts, "\t")
        plain[parts[1]] = parts[2]
    }
}

# llvm-pdbutil: the name stands on one line, place and size on the next.
/S_[GL]PROC32 / { split($0, quoted, "`"); name = quoted[2]; next }
name != "" && /code size = / {
    match($0, /addr = [0-9]+:[0-9]+/)
    split(substr($0, RSTART + 7, RLENGTH - 7), place, ":")
    size = $0
    sub(/.*code size = /, "", size)
    rva[name] = TEXT + place[2]
    printf "function %s %s 0x%x %d\n", MODULE, name, rva[name], size
    name = ""
    next
}

# llvm-objdump: a function starts.
/^[0-9a-f]+ <.*>:$/ {
    callee = ""
    split("", imported)
    caller = substr($2, 2, length($2) - 3)
    if (caller in plain)
        caller = plain[caller]
    next
}

# A relocation belongs to the instruction before it.
/IMAGE_REL_AMD64_REL32/ {
    target = $3
    sub(/^__imp_/, "", target)
    if (target in plain)
        target = plain[target]
    if (callee == "?")
        callee = target
    else if (loaded != "" && $3 ~ /^__imp_/)
        imported[loaded] = target
    next
}

# An instruction; its address is where the call before it returns to.
/^ +[0-9a-f]+: / {
    offset = $1
    sub(/:/, "", offset)
    emit_call(hex(offset))
    loaded = ""
    if ($2 == "syscall")
        callee = "syscall"
    else if ($2 == "callq" && $3 ~ /^\*%/) {
        register = substr($3, 2)
        callee = (register in imported) ? imported[register] : "*"
    } else if ($2 == "callq")
        callee = "?"
    else if ($2 == "movq" && $3 == "(%rip),")
        loaded = $4
}
