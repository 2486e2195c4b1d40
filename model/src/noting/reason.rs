//! What the operating system says of a file, in plain words.

use std::fmt::{self, Display, Formatter};
use std::io::{self, ErrorKind};

use super::is_full;

/// What `tempfile` writes in front of the name of a temporary file, which means nothing to users.
const AT_PATH: &str = " at path \"";

/// What the standard library writes after a message of the operating system.
const CODE: &str = " (os error ";

/// Why a file could not be opened, read or written: plain words for what is common, the words of the operating
/// system without its number for all else.
///
/// What a program itself said of a file stays as it is.
#[derive(Debug, Clone, Copy)]
pub struct Reason<'a>(pub &'a io::Error);

impl Display for Reason<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Reason(error) = *self;
        if error.get_ref().is_none() {
            return match words(error) {
                Some(words) => f.write_str(words),
                None => f.write_str(without_code(&error.to_string())),
            };
        }
        let text = error.to_string();
        match text.split_once(AT_PATH) {
            Some((said, _)) => f.write_str(words(error).unwrap_or_else(|| without_code(said))),
            None => write_without_codes(&text, f),
        }
    }
}

/// What can be done about a file that cannot be written, in front of what else may help.
pub fn remedy(error: &io::Error) -> &'static str {
    match error {
        error if is_full(error) => "free some space, or ",
        error if is_busy(error) => "close what has it open, or ",
        _ => "",
    }
}

/// Whether another program keeps a file for itself.
fn is_busy(error: &io::Error) -> bool {
    // ERROR_SHARING_VIOLATION, ERROR_LOCK_VIOLATION and ERROR_USER_MAPPED_FILE.
    let is_locked = cfg!(windows) && matches!(error.raw_os_error(), Some(32 | 33 | 1224));
    is_locked || matches!(error.kind(), ErrorKind::ExecutableFileBusy | ErrorKind::ResourceBusy)
}

fn words(error: &io::Error) -> Option<&'static str> {
    Some(match error.kind() {
        _ if is_busy(error) => "another program has it open",
        ErrorKind::NotFound => "file or folder not found",
        ErrorKind::PermissionDenied => "no permission",
        ErrorKind::StorageFull => "the disk is full",
        ErrorKind::QuotaExceeded => "there is no space left in the quota of the user",
        ErrorKind::FileTooLarge => "it would be larger than a file may be there",
        ErrorKind::ReadOnlyFilesystem => "the disk is read-only",
        ErrorKind::IsADirectory => "it is a folder",
        ErrorKind::NotADirectory => "a part of the path is not a folder",
        ErrorKind::AlreadyExists => "it exists already",
        ErrorKind::InvalidFilename => "the name is too long, or cannot be the name of a file",
        ErrorKind::UnexpectedEof => "it ends too early",
        _ => return None,
    })
}

/// A message of the operating system without its number, which stands at the end.
fn without_code(text: &str) -> &str {
    text.split_once(CODE).map_or(text, |(said, _)| said)
}

/// A message of a program, which may quote one of the operating system.
fn write_without_codes(text: &str, f: &mut Formatter<'_>) -> fmt::Result {
    let mut rest = text;
    while let Some((said, behind)) = rest.split_once(CODE) {
        f.write_str(said)?;
        rest = behind.split_once(')').map_or("", |(_, rest)| rest);
    }
    f.write_str(rest)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn said(error: &io::Error) -> String {
        Reason(error).to_string()
    }

    #[test]
    fn what_is_common_has_plain_words_and_never_a_number() {
        for (kind, expected) in [
            (ErrorKind::NotFound, "file or folder not found"),
            (ErrorKind::PermissionDenied, "no permission"),
            (ErrorKind::StorageFull, "the disk is full"),
            (ErrorKind::IsADirectory, "it is a folder"),
            (ErrorKind::ResourceBusy, "another program has it open"),
        ] {
            assert_eq!(said(&kind.into()), expected);
        }
        let folder = tempfile::tempdir().expect("a folder");
        let missing = fs::File::open(folder.path().join("none")).expect_err("no file");
        assert_eq!(said(&missing), "file or folder not found");
        for code in 1..=150 {
            let text = said(&io::Error::from_raw_os_error(code));
            assert!(!text.contains("os error") && !text.is_empty(), "{code}: {text}");
        }
    }

    #[test]
    fn the_name_of_a_temporary_file_is_not_shown() {
        let folder = tempfile::tempdir().expect("a folder");
        let error = tempfile::tempfile_in(folder.path().join("none")).expect_err("no folder");
        assert_eq!(said(&error), "file or folder not found");
        let odd = io::Error::other(r#"Odd thing (os error 7) at path "/tmp/.tmpAbc""#);
        assert_eq!(said(&odd), "Odd thing");
    }

    #[test]
    fn what_a_program_says_of_a_file_stays() {
        let own = io::Error::new(ErrorKind::NotFound, "folder not found");
        assert_eq!(said(&own), "folder not found");
        let quoted =
            io::Error::other("no temporary file: Odd thing (os error 7), so it is given up");
        assert_eq!(said(&quoted), "no temporary file: Odd thing, so it is given up");
    }

    #[test]
    fn only_what_is_in_use_is_to_be_closed() {
        assert_eq!(remedy(&ErrorKind::StorageFull.into()), "free some space, or ");
        assert_eq!(remedy(&ErrorKind::ExecutableFileBusy.into()), "close what has it open, or ");
        assert_eq!(remedy(&ErrorKind::PermissionDenied.into()), "");
    }
}
