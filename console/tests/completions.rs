//! Completion in a real shell: the script that the program prints, in the shell it is for.

use std::process::Command;

/// What a shell offers for the last of some words; `None` where the shell is not installed.
fn offered_by_bash(words: &[&str]) -> Option<Vec<String>> {
    let program = env!("CARGO_BIN_EXE_handlescope");
    let folder = std::path::Path::new(program).parent().unwrap();
    let script = "source <(handlescope completions bash)\n\
                  COMP_WORDS=(handlescope \"$@\")\n\
                  COMP_CWORD=$#\n\
                  _handlescope\n\
                  printf '%s\\n' \"${COMPREPLY[@]}\"\n";
    let path = std::env::join_paths(
        std::iter::once(folder.to_owned())
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())),
    );
    let output = Command::new("bash")
        .args(["-c", script, "bash"])
        .args(words)
        .env("PATH", path.unwrap())
        .output();
    let Ok(output) = output else {
        eprintln!("skipped: no bash");
        return None;
    };
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(text.lines().map(str::to_owned).filter(|line| !line.is_empty()).collect())
}

#[test]
#[cfg(unix)]
fn bash_offers_subcommands_kinds_options_and_their_values() {
    for (words, expected) in [
        (&["ext"][..], &["extract"][..]),
        (&["dump", "obj"], &["ObjectRef"]),
        (&["-dump", "ObjectRef", "-Lea"], &["-Leak"]),
        (&["dump", "ObjectRef", "-ShowTotal", "P"], &["Process"]),
        (&["--color", "n"], &["never"]),
    ] {
        let Some(offered) = offered_by_bash(words) else { return };
        assert_eq!(offered, expected, "{words:?}");
    }
}
