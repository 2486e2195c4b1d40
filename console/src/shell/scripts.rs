//! One small script for each shell: it asks the program itself for candidates.
//!
//! clap_complete writes scripts that know everything themselves, but it knows only options with two
//! dashes, and nothing of the values in a trace.

use crate::cli::Shell;

/// The script, to be run when the shell starts.
///
/// `handlescope complete -- WORDS` prints a line for each candidate of the last word: the value, a
/// tab and what it is. Where it prints nothing, the shell offers files.
pub fn script(shell: Shell) -> &'static str {
    match shell {
        Shell::Bash => BASH,
        Shell::Zsh => ZSH,
        Shell::Fish => FISH,
        Shell::PowerShell => POWERSHELL,
    }
}

const BASH: &str = r#"# handlescope completions bash > /etc/bash_completion.d/handlescope
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
"#;

const ZSH: &str = r#"#compdef handlescope
# handlescope completions zsh > "${fpath[1]}/_handlescope"
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
"#;

const FISH: &str = r"# handlescope completions fish > ~/.config/fish/completions/handlescope.fish
function __handlescope_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l found (handlescope complete -- $words[2..-1] 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\n' $found
        # A word in the place of a subcommand may be a folder of traces, too.
        test (count $words) -eq 2; and __fish_complete_directories (commandline -ct)
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c handlescope -f -a '(__handlescope_complete)'
";

const POWERSHELL: &str = r#"# handlescope completions powershell >> $PROFILE
Register-ArgumentCompleter -Native -CommandName handlescope -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $words = @($commandAst.CommandElements | Select-Object -Skip 1 |
        Where-Object { $_.Extent.EndOffset -lt $cursorPosition } | ForEach-Object { "$_" })
    & handlescope complete '--' @words "$wordToComplete" 2>$null | ForEach-Object {
        $value, $rest = $_ -split "`t", 2
        $text = if ($value -match '[\s;!*]') { "'$value'" } else { $value }
        $about = if ($rest) { $rest } else { $value }
        [System.Management.Automation.CompletionResult]::new($text, $value, 'ParameterValue', $about)
    }
}
"#;
