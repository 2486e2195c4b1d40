//! Files that are plainly no archive and no trace.

use std::io::{self, Read};

/// Bytes at the start of a file that are looked at.
const START: u64 = 512;

/// What a file is, as in `is a text file`, when it is empty or has nothing but text at its start.
///
/// # Errors
/// When it cannot be read.
pub(super) fn plain_file(file: impl Read) -> io::Result<Option<&'static str>> {
    let mut start = Vec::new();
    file.take(START).read_to_end(&mut start)?;
    Ok(plain_content(&start))
}

/// The same for the start of a file.
pub fn plain_content(start: &[u8]) -> Option<&'static str> {
    let length = start.len().min(START as usize);
    match start.get(..length) {
        None | Some([]) => Some("is empty (0 bytes)"),
        Some(start) if is_text(start) => Some("is a text file"),
        Some(_) => None,
    }
}

/// UTF-16 with its mark, or UTF-8 without control characters but those of lines. The last character may be
/// cut.
fn is_text(start: &[u8]) -> bool {
    if start.starts_with(b"\xFF\xFE") || start.starts_with(b"\xFE\xFF") {
        return true;
    }
    let text = match std::str::from_utf8(start) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            let whole = start.get(..error.valid_up_to()).unwrap_or_default();
            std::str::from_utf8(whole).unwrap_or_default()
        }
        Err(_) => return false,
    };
    !text.is_empty() && !text.chars().any(|c| c.is_control() && !"\t\r\n\x0C".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_text_in_any_encoding_and_nothing_else_is() {
        assert_eq!(plain_content(b""), Some("is empty (0 bytes)"));
        let long = "ä".repeat(300);
        for text in [&b"a,b\r\n1,2\r\n"[..], b"\xFF\xFEa\0", b"\xEF\xBB\xBF{}", long.as_bytes()] {
            assert_eq!(plain_content(text), Some("is a text file"), "{text:?}");
            assert!(plain_file(text).is_ok_and(|what| what.is_some()));
        }
        assert_eq!(plain_content(&[0x58, 0x61, 0xC3]), Some("is a text file"), "cut");
        for binary in [&b"7z\xBC\xAF\x27\x1C"[..], b"PK\x03\x04", b"\0\0\x01", b"\x80abc", b"\xC3"]
        {
            assert_eq!(plain_content(binary), None, "{binary:?}");
        }
    }
}
