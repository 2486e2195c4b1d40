//! Paths of images as the kernel writes them, and what Windows opens by them.

/// The name by which Windows opens the file of an image; `None` where that is not known.
///
/// Devices are opened below `\\?\GLOBALROOT`, whatever drive letters there are. `system_root` is the folder of Windows, as
/// in `C:\Windows`: images of the start have paths without a volume.
pub fn image_file_name(path: &str, system_root: &str) -> Option<String> {
    if let Some(path) = path.strip_prefix(r"\??\") {
        return Some(format!(r"\\?\{path}"));
    }
    let (first, rest) = path.strip_prefix('\\')?.split_once('\\')?;
    match first.to_ascii_lowercase().as_str() {
        "" => None,
        "device" => Some(format!(r"\\?\GLOBALROOT{path}")),
        "systemroot" => Some(format!(r"{system_root}\{rest}")),
        _ => Some(format!("{}{path}", system_root.get(..2)?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_path_of_the_kernel_has_a_name_that_opens_it() {
        for (path, expected) in [
            (
                r"\Device\HarddiskVolume3\Windows\System32\ntdll.dll",
                Some(r"\\?\GLOBALROOT\Device\HarddiskVolume3\Windows\System32\ntdll.dll"),
            ),
            (r"\SystemRoot\system32\ntoskrnl.exe", Some(r"C:\Windows\system32\ntoskrnl.exe")),
            (
                r"\Device\Mup\server\share\a.dll",
                Some(r"\\?\GLOBALROOT\Device\Mup\server\share\a.dll"),
            ),
            (r"\??\D:\drivers\a.sys", Some(r"\\?\D:\drivers\a.sys")),
            (r"\Windows\System32\smss.exe", Some(r"C:\Windows\System32\smss.exe")),
            (r"ntdll.dll", None),
            ("", None),
            (r"\SystemRoot", None),
            (r"\\server\a.dll", None),
        ] {
            assert_eq!(image_file_name(path, r"C:\Windows").as_deref(), expected, "{path}");
        }
    }
}
