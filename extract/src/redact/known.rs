//! Path components that are the same on every Windows machine. They stay in a redacted trace, because frames and paths
//! are hard to judge without them.

/// File name extensions that stay after a name is replaced.
const EXTENSIONS: &str = "cpl|dat|db|dll|drv|efi|etl|exe|ini|log|mui|nls|ocx|pdb|sys|tmp";

/// Folders, devices and object manager namespaces.
const FOLDERS: &str = "??|afd|basenamedobjects|device|driverstore|drivers|filerepository|global|\
    knowndlls|knowndlls32|machine|mup|namedpipe|program files|program files (x86)|programdata|\
    registry|rpc control|sessions|software|system32|systemroot|syswow64|user|users|windows|winsxs";

/// Programs and modules of Windows and of .NET, without their extensions.
const MODULES: &str = "advapi32|afd|audiodg|bcrypt|bcryptprimitives|cfgmgr32|clr|clrjit|cmd|combase|\
    conhost|coreclr|crypt32|csrss|csrsrv|ctfmon|dllhost|dwm|explorer|fltmgr|fontdrvhost|gdi32|\
    gdi32full|hal|idle|imm32|kernel32|kernelbase|lsass|lsm|memory compression|msvcp_win|msvcrt|ndis|\
    notepad|ntdll|ntfs|ntkrnlmp|ntkrnlpa|ntkrpamp|ntoskrnl|ole32|oleaut32|powershell|profapi|registry|\
    rpcrt4|rundll32|sechost|secure system|services|shcore|shell32|shlwapi|smss|spoolsv|sppsvc|svchost|\
    system|taskeng|taskhost|taskhostw|tcpip|ucrtbase|user32|win32k|win32kbase|win32kfull|win32u|\
    wininit|winlogon|wmiprvse|wow64|wow64cpu|wow64win|ws2_32";

/// Prefix of the names of kernel volumes, followed by a number.
const VOLUME: &str = "harddiskvolume";

/// Returns where the extension of a lower-case name starts, if the extension stays.
pub fn extension(name: &str) -> Option<usize> {
    let at = name.rfind('.')?;
    let behind = name.get(at + 1..)?;
    is_among(EXTENSIONS, behind).then_some(at)
}

fn is_among(list: &str, word: &str) -> bool {
    list.split('|').any(|known| known == word)
}

/// Whether a path component, in lower case, stays.
pub fn is_known(component: &str) -> bool {
    let stem = extension(component).and_then(|at| component.get(..at)).unwrap_or(component);
    let is_drive = matches!(component.as_bytes(), [b'a'..=b'z', b':']);
    let number = component.strip_prefix(VOLUME).filter(|number| !number.is_empty());
    is_drive
        || is_among(FOLDERS, component)
        || is_among(MODULES, stem)
        || number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_belong_to_windows_stay() {
        for name in ["ntdll.dll", "ntkrnlmp.pdb", "system", "c:", "harddiskvolume12", "system32"] {
            assert!(is_known(name), "{name}");
        }
        for name in
            ["leaky.exe", "harddiskvolume", "harddiskvolumex", "joe", "cc:", "", "ntdll.joe"]
        {
            assert!(!is_known(name), "{name}");
        }
    }

    #[test]
    fn an_extension_may_not_hold_a_name() {
        assert_eq!(extension("leaky.exe"), Some(5));
        assert_eq!(extension("joe.doe"), None);
        assert_eq!(extension("exe"), None);
    }
}
