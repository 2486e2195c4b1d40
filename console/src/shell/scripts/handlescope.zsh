#compdef handlescope
# handlescope completions zsh > ~/.zfunc/_handlescope
_handlescope() {
    local -a values descriptions
    local value rest
    while IFS=$'\t' read -r value rest; do
        values+=("$value")
        descriptions+=("$value -- $rest")
    done < <("${words[1]}" complete -- "${(@)words[2,$CURRENT]}" 2>/dev/null)
    if (( ${#values} )); then
        compadd -U -l -d descriptions -a values
        # A word in the place of a subcommand may be a folder of traces, too.
        (( CURRENT == 2 )) && _files -/
    else
        _files
    fi
}
if [ "$funcstack[1]" = "_handlescope" ]; then
    _handlescope "$@"
else
    compdef _handlescope handlescope
fi
