# handlescope completions fish > ~/.config/fish/completions/handlescope.fish
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
