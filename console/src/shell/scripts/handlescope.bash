# handlescope completions bash >> ~/.bash_completion
_handlescope() {
    local word value rest
    local -a words=()
    COMPREPLY=()
    for word in "${COMP_WORDS[@]:1:COMP_CWORD}"; do
        # Bash hands over words as they are typed, and those that it completed have backslashes.
        IFS= read word <<< "$word"
        words+=("$word")
    done
    while IFS=$'\t' read -r value rest; do
        COMPREPLY+=("$(printf '%q' "$value")")
        # More is to come behind a level of names; Bash 3 has no compopt.
        [[ $value == *\\ ]] && compopt -o nospace 2>/dev/null
    done < <("${COMP_WORDS[0]}" complete -- "${words[@]}" 2>/dev/null)
    # A word in the place of a subcommand may be a folder of traces, too.
    if (( COMP_CWORD == 1 && ${#COMPREPLY[@]} )); then
        while IFS= read -r value; do
            COMPREPLY+=("$(printf '%q/' "$value")")
        done < <(compgen -d -- "${COMP_WORDS[1]}")
    fi
}
complete -o bashdefault -o default -F _handlescope handlescope
