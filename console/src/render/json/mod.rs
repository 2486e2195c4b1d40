//! JSON as `docs/dump-json.md` promises it, streamed: no document is ever in memory as a whole.

mod call_stacks;
mod diff;
mod diff_allocations;
mod event_counts;
mod file;
mod groups;
mod lines;
mod modules;
mod object;
mod object_ref;
mod provider_events;
mod resources;
mod stack;
mod stats;
mod sums;
mod symbols;
mod why;

use std::fmt::Display;
use std::io::{self, BufWriter, Write};

use serde::{Serialize, Serializer};
use serde_json::ser::{PrettyFormatter, Serializer as JsonSerializer};

use super::table::Part;
use crate::terminal::Neutral;
use crate::values::JsonMode;

pub(super) use self::call_stacks::call_stacks;
pub(super) use self::diff::{diff_points, diff_traces};
pub(super) use self::diff_allocations::{diff_allocated, diff_allocations};
pub(super) use self::event_counts::event_counts;
pub(super) use self::file::{NoMatchJson, first_no_match};
pub(super) use self::groups::groups;
pub(super) use self::modules::modules;
pub(super) use self::object_ref::object_ref;
pub(super) use self::provider_events::provider_events;
pub(super) use self::resources::resources;
pub(super) use self::stats::{stats, stats_members};
pub(super) use self::symbols::{symbol_status, symbols};

pub(super) use self::why::why;

use self::lines::LineFormatter;

/// Writes one document and ends its last line.
pub(in crate::render) fn write(
    document: &impl Serialize,
    mode: JsonMode,
    out: &mut dyn Write,
) -> io::Result<()> {
    // The serializer writes each comma by itself.
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

/// Writes a document that has one list.
fn write_list<I: IntoIterator<Item: Serialize>>(
    name: &str,
    items: impl Fn() -> I,
    mode: JsonMode,
    out: &mut dyn Write,
) -> io::Result<()> {
    write(&Members(|| [(name, Array(&items))]), mode, out)
}

/// The rows that are left of some answers, each with its place in its answer.
fn rows<'a, A>(answers: &'a [A], parts: &'a [Part]) -> impl Iterator<Item = (&'a A, usize)> {
    let files = answers.iter().zip(parts);
    files.flat_map(|(answer, part)| part.own_rows().map(move |row| (answer, row)))
}

/// A number that may exceed 2^53, as text like `"0xC0"`.
#[derive(Debug, Clone, Copy)]
struct Hex(u64);

impl Serialize for Hex {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("0x{:X}", self.0))
    }
}

/// Anything as the text it displays.
struct Shown<T>(T);

impl<T: Display> Serialize for Shown<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// An array whose elements are made one by one while they are written.
pub(super) struct Array<F>(pub(super) F);

impl<F, I> Serialize for Array<F>
where
    F: Fn() -> I,
    I: IntoIterator<Item: Serialize>,
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((self.0)())
    }
}

/// An object whose members are made one by one while they are written.
struct Members<F>(F);

impl<F, I, K, V> Serialize for Members<F>
where
    F: Fn() -> I,
    I: IntoIterator<Item = (K, V)>,
    K: Serialize,
    V: Serialize,
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map((self.0)())
    }
}

/// Seconds as a float.
fn seconds(ns: i64) -> f64 {
    ns as f64 / 1e9
}
