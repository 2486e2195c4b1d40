//! `file.ptr`: a file in a store that says where another file is instead of holding it.
//!
//! Its text is `PATH:` and a path, `MSG:` and a reason why there is no file, or a bare path.

use std::path::{Path, PathBuf};

use crate::server::install::FileForm;

/// Name of the file in a store.
pub const FILE_NAME: &str = "file.ptr";
/// Maximum size of the file; no path is that long.
pub const MAX_BYTES: u64 = 0x1_0000;
/// Number of characters of a server's message that are worth showing.
const MAX_MESSAGE: usize = 200;

/// Where a pointer came from, which decides where it may lead.
pub enum Source<'a> {
    /// A folder of the symbol path.
    Folder,
    /// A server. Its pointers may not lead to machines that the symbol path does not name, because opening a share
    /// sends the user's credentials there.
    Server { hosts: &'a [String] },
}

/// Reasons why a pointer leads to no file.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PointerError {
    #[error("file.ptr has the message: {0}")]
    Message(String),
    #[error("file.ptr has no path")]
    NoPath,
    #[error("file.ptr names {0}, a machine that is not on the symbol path")]
    ForeignHost(String),
    #[error("the target of file.ptr is outside its folder, which is not allowed here")]
    Outside,
    #[error("file.ptr names {0}, which cannot be reached")]
    Unreachable(String),
}

/// Returns the file that a pointer leads to.
pub fn follow(text: &[u8], source: &Source<'_>) -> Result<PathBuf, PointerError> {
    let text = String::from_utf8_lossy(text);
    let text = text.trim_start_matches('\u{feff}').trim();
    if let Some(message) = strip_tag(text, "MSG:") {
        let message: String = message.escape_debug().take(MAX_MESSAGE).collect();
        return Err(PointerError::Message(message));
    }
    let path = strip_tag(text, "PATH:").unwrap_or(text);
    let shown = || path.escape_debug().take(MAX_MESSAGE).collect::<String>();
    if path.is_empty() || path.contains(char::is_control) {
        return Err(PointerError::NoPath);
    }
    if let (Source::Server { hosts }, Some(host)) = (source, share_host(path))
        && !hosts.contains(&host)
    {
        return Err(PointerError::ForeignHost(shown()));
    }
    let file = Path::new(path);
    if is_device(path) || !file.is_absolute() {
        return Err(PointerError::Unreachable(shown()));
    }
    // A store may have been compressed after the pointer was written.
    let mut forms = [FileForm::Plain, FileForm::Cabinet].into_iter().filter_map(|form| {
        let name = form.name(file.file_name()?.to_str()?)?;
        Some(file.with_file_name(name)).filter(|file| file.is_file())
    });
    forms.next().ok_or_else(|| PointerError::Unreachable(shown()))
}

fn strip_tag<'a>(text: &'a str, tag: &str) -> Option<&'a str> {
    let (start, rest) = text.split_at_checked(tag.len())?;
    start.eq_ignore_ascii_case(tag).then(|| rest.trim())
}

/// Returns the machine of `\\machine\share` in lower case; `None` for other paths.
pub fn share_host(path: &str) -> Option<String> {
    let is_slash = |c| matches!(c, '/' | '\\');
    let mut rest = path.strip_prefix(is_slash)?.strip_prefix(is_slash)?;
    // `\\?\UNC\machine\share` is the long form.
    if let Some(long) = rest.strip_prefix(['?', '.']).and_then(|long| long.strip_prefix(is_slash)) {
        rest = strip_tag(long, "UNC").unwrap_or(long).trim_start_matches(is_slash);
    }
    let host = rest.split(is_slash).next()?;
    (!host.is_empty()).then(|| host.to_ascii_lowercase())
}

/// Whether the path is a Windows device name (`\\.\COM1`), which must not even be opened.
fn is_device(path: &str) -> bool {
    path.starts_with(r"\\.\") || path.starts_with("//./")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANYWHERE: Source<'_> = Source::Server { hosts: &[] };

    #[test]
    fn a_path_with_or_without_tag_is_followed() {
        let file = tempfile::NamedTempFile::new().expect("temporary file");
        let path = file.path().display();
        for text in [format!("PATH:{path}"), format!("path: {path}\r\n"), format!("\u{feff}{path}")]
        {
            assert_eq!(follow(text.as_bytes(), &ANYWHERE), Ok(file.path().to_owned()), "{text}");
        }
    }

    #[test]
    fn a_file_that_was_compressed_since_is_found() {
        let folder = tempfile::tempdir().expect("a folder");
        let [plain, packed] = ["a.pdb", "a.pd_"].map(|name| folder.path().join(name));
        let target = || follow(plain.to_string_lossy().as_bytes(), &Source::Folder).ok();
        assert_eq!(target(), None);
        std::fs::write(&packed, b"MSCF").expect("a file");
        assert_eq!(target(), Some(packed));
        std::fs::write(&plain, b"").expect("a file");
        assert_eq!(target(), Some(plain.clone()));
    }

    #[test]
    fn a_message_and_a_dead_end_are_reasons() {
        let reason = |text: &[u8]| follow(text, &Source::Folder).expect_err("no file").to_string();
        assert_eq!(
            reason(b"MSG: gone\x1b[2J for good"),
            r"file.ptr has the message: gone\u{1b}[2J for good"
        );
        for text in ["", "PATH:", "PATH:../a.pdb", "/does/not/exist", "PATH:/a\0b", "/dev/null"] {
            reason(text.as_bytes());
        }
        reason(&[0xff, 0xfe, 0]);
        assert!(reason(&[b'x'; 9999]).len() < 400);
    }

    #[test]
    fn a_server_leads_to_no_machine_that_the_path_does_not_name() {
        let text = br"PATH:\\Evil\share\a.pdb";
        let hosts = ["evil".to_owned()];
        let reason = |source| follow(text, &source).expect_err("no such share").to_string();
        assert!(reason(ANYWHERE).contains("is not on the symbol path"));
        assert!(reason(Source::Server { hosts: &hosts }).contains("cannot be reached"));
        assert!(reason(Source::Folder).contains("cannot be reached"));
    }

    #[test]
    fn the_machine_of_a_share_is_recognized_in_every_spelling() {
        for path in [r"\\Host\s\f", "//HOST/s", r"\\?\UNC\host\s", r"/\host\s", r"\\?\unc\HOST"] {
            assert_eq!(share_host(path).as_deref(), Some("host"), "{path}");
        }
        for path in ["/a/b", r"C:\a", "", r"\\", "host"] {
            assert_eq!(share_host(path), None, "{path}");
        }
    }
}
