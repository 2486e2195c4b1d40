//! JSON as promised in `docs/dump-json.md`. It is streamed: no document is ever in memory as a whole.

mod document;
mod lines;

use std::io::{self, BufWriter, Write};

use serde::{Serialize, Serializer};
use serde_json::ser::{PrettyFormatter, Serializer as JsonSerializer};

pub use self::document::Document;
use self::lines::LineFormatter;
use handlescope_session::terminal::Neutral;
use handlescope_session::values::JsonMode;

/// Writes one document and ends its last line.
pub fn write(document: &impl Serialize, mode: JsonMode, out: &mut dyn Write) -> io::Result<()> {
    // The serializer writes every comma separately.
    let mut out = BufWriter::new(Neutral::json(out));
    match mode {
        JsonMode::Pretty => {
            let formatter = PrettyFormatter::new();
            document.serialize(&mut JsonSerializer::with_formatter(&mut out, formatter))
        }
        JsonMode::Lines => {
            let formatter = LineFormatter::default();
            document.serialize(&mut JsonSerializer::with_formatter(&mut out, formatter))
        }
    }?;
    writeln!(out)?;
    out.flush()
}

/// A number that may exceed 2^53, as text like `"0xC0"`.
#[derive(Debug, Clone, Copy)]
pub struct Hex(pub u64);

impl Serialize for Hex {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("0x{:X}", self.0))
    }
}

/// An array that produces its elements while they are written.
pub struct Array<F>(pub F);

impl<F, I> Serialize for Array<F>
where
    F: Fn() -> I,
    I: IntoIterator<Item: Serialize>,
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((self.0)())
    }
}
