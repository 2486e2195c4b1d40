//! Lines of the input, kept in memory only up to the size of a message.

use std::{io, mem};

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// The longest message that is read.
pub const MAX_BYTES: usize = 16 << 20;

/// Bytes kept of the outline of a longer message.
const MAX_OUTLINE: usize = 4 << 10;

/// A line without its end.
#[derive(Debug, PartialEq, Eq)]
pub enum InputLine {
    Whole(Vec<u8>),
    /// The outline of one that is too long.
    TooLong(Vec<u8>),
}

/// Input that is read line by line.
pub struct InputLines<R> {
    input: BufReader<R>,
    begun: Vec<u8>,
    /// The outline that takes the place of `begun` once the line is too long.
    outline: Option<Outline>,
}

impl<R: AsyncRead + Unpin> InputLines<R> {
    pub fn new(input: R) -> Self {
        Self { input: BufReader::new(input), begun: Vec::new(), outline: None }
    }

    /// The next line; `None` at the end. A call that is dropped loses nothing: the next one goes on with its line.
    ///
    /// # Errors
    /// When the input cannot be read.
    pub async fn next(&mut self) -> io::Result<Option<InputLine>> {
        loop {
            let ahead = self.input.fill_buf().await?;
            let end = ahead.iter().position(|byte| *byte == b'\n');
            let text = end.map_or(ahead, |end| &ahead[..end]);
            let is_end = end.is_some() || ahead.is_empty();
            match &mut self.outline {
                Some(outline) => outline.add(text),
                None if self.begun.len() + text.len() > MAX_BYTES => {
                    let outline = self.outline.insert(Outline::default());
                    outline.add(&mem::take(&mut self.begun));
                    outline.add(text);
                }
                None => self.begun.extend_from_slice(text),
            }
            let is_last = ahead.is_empty() && self.begun.is_empty() && self.outline.is_none();
            let taken = text.len() + usize::from(end.is_some());
            self.input.consume(taken);
            if is_last {
                return Ok(None);
            }
            if is_end {
                let whole = mem::take(&mut self.begun);
                let outline = self.outline.take().map(|outline| InputLine::TooLong(outline.kept));
                return Ok(Some(outline.unwrap_or(InputLine::Whole(whole))));
            }
        }
    }
}

/// The outer members of an object in JSON, without the content of nested objects and arrays; the id
/// may come last.
#[derive(Debug, Default)]
struct Outline {
    depth: usize,
    is_text: bool,
    is_escaped: bool,
    kept: Vec<u8>,
}

impl Outline {
    fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            let outer = self.depth;
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' if self.is_text => self.is_escaped = true,
                b'"' => self.is_text = !self.is_text,
                b'{' | b'[' if !self.is_text => self.depth += 1,
                b'}' | b']' if !self.is_text => self.depth = outer.saturating_sub(1),
                _ => {}
            }
            if outer.min(self.depth) < 2 && self.kept.len() < MAX_OUTLINE {
                self.kept.push(byte);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::runtime::Builder;

    use super::*;

    fn lines_of(input: &[u8]) -> Vec<InputLine> {
        let runtime = Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let mut lines = InputLines::new(input);
            let mut all = Vec::new();
            while let Some(line) = lines.next().await.expect("it can be read") {
                all.push(line);
            }
            all
        })
    }

    #[test]
    fn every_line_is_read_also_the_last_one_without_an_end() {
        let lines = ["one", "", "two"].map(|line| InputLine::Whole(line.into()));
        assert_eq!(lines_of(b"one\n\ntwo"), lines);
        assert_eq!(lines_of(b"one\n\ntwo\n"), lines);
        assert_eq!(lines_of(b""), []);
    }

    #[test]
    fn a_line_that_is_too_long_is_left_with_its_outer_members() {
        let inner = "x\\\"}".repeat(MAX_BYTES / 4);
        let long = format!(r#"{{"method":"a","params":{{"b":[["{inner}"]]}},"id":7}}"#);
        let outline = br#"{"method":"a","params":{},"id":7}"#;
        let most = "x".repeat(MAX_BYTES);
        let lines = [
            InputLine::TooLong(outline.into()),
            InputLine::Whole(most.clone().into()),
            InputLine::TooLong("x".repeat(MAX_OUTLINE).into()),
        ];
        assert!(lines_of(format!("{long}\n{most}\n{most}x\n").as_bytes()) == lines);
    }
}
