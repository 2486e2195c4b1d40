//! Where programs of Windows keep symbols that they downloaded.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

/// The caches of this machine's debuggers and profilers, to be searched after the places of the symbol path and
/// before any server; none but on Windows.
pub(in crate::symbols) fn usual_caches() -> Vec<PathBuf> {
    if cfg!(windows) { caches_of(|name| env::var_os(name)) } else { Vec::new() }
}

/// WinDbg's home (learn, `!homedir`: symbols lie in its `sym`) is in `DBGHELP_HOMEDIR`, else `%ProgramData%\Dbg`. WPA
/// uses `C:\Symbols`, Visual Studio `SymbolCache` in the folder for temporary files; these two and `%ProgramData%\Dbg`
/// are what the programs were seen to use, no document says so.
fn caches_of(variable: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let folder = |name: &str, rest: &str| {
        let mut text = variable(name).filter(|value| !value.is_empty())?;
        text.push(rest);
        Some(PathBuf::from(text))
    };
    let all = [
        folder("DBGHELP_HOMEDIR", r"\sym"),
        folder("ProgramData", r"\Dbg\sym"),
        folder("SystemDrive", r"\Symbols"),
        folder("LOCALAPPDATA", r"\Temp\SymbolCache"),
    ];
    all.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windbgs_caches_come_before_those_of_wpa_and_visual_studio() {
        let variable = |name: &str| match name {
            "ProgramData" => Some(r"C:\ProgramData".into()),
            "SystemDrive" => Some("C:".into()),
            "LOCALAPPDATA" => Some(r"C:\Users\me\AppData\Local".into()),
            "DBGHELP_HOMEDIR" => Some(r"D:\dbg".into()),
            _ => None,
        };
        let texts: Vec<String> =
            caches_of(variable).iter().map(|path| path.to_string_lossy().into_owned()).collect();
        assert_eq!(
            texts,
            [
                r"D:\dbg\sym",
                r"C:\ProgramData\Dbg\sym",
                r"C:\Symbols",
                r"C:\Users\me\AppData\Local\Temp\SymbolCache",
            ]
        );
        let drive_only = |name: &str| (name == "SystemDrive").then(|| "E:".into());
        assert_eq!(caches_of(drive_only), [PathBuf::from(r"E:\Symbols")]);
        assert!(caches_of(|_| Some(OsString::new())).is_empty());
    }
}
