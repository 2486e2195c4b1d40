//! The layout between compact and pretty: one line for each member of the document, for each element of its arrays, and
//! for each stack. `grep` then finds whole objects.

use std::io::{self, Write};

use serde_json::ser::Formatter;

/// The member of the document whose own members get a line each.
const STACKS: &str = "stacks";

/// Breaks lines down to the second level.
#[derive(Debug, Default)]
pub struct LineFormatter {
    /// Number of open arrays and objects.
    depth: usize,
    /// Whether the array or object that ends now has any content.
    has_value: bool,
    /// Whether a name is being written at the first level.
    in_name: bool,
    /// The name at the first level.
    name: String,
}

impl LineFormatter {
    /// Whether the elements of the open array, or the members of the open object, get their own lines.
    fn breaks(&self, is_array: bool) -> bool {
        match self.depth {
            1 => !is_array,
            2 => is_array || self.name == STACKS,
            _ => false,
        }
    }

    fn separate<W: ?Sized + Write>(
        &self,
        out: &mut W,
        first: bool,
        is_array: bool,
    ) -> io::Result<()> {
        match (first, self.breaks(is_array)) {
            // The first member follows on the same line, so that the first line says what the document is.
            (true, true) if self.depth == 1 => Ok(()),
            (true, true) => out.write_all(b"\n"),
            (true, false) => Ok(()),
            (false, true) => out.write_all(b",\n"),
            (false, false) => out.write_all(b","),
        }
    }
}

impl Formatter for LineFormatter {
    fn begin_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.depth += 1;
        self.has_value = false;
        out.write_all(b"[")
    }

    fn end_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        let last: &[u8] = if self.has_value && self.breaks(true) { b"\n]" } else { b"]" };
        self.depth -= 1;
        out.write_all(last)
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.separate(out, first, true)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.has_value = true;
        Ok(())
    }

    fn begin_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.depth += 1;
        self.has_value = false;
        out.write_all(b"{")
    }

    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        let breaks = self.has_value && self.depth > 1 && self.breaks(false);
        let last: &[u8] = if breaks { b"\n}" } else { b"}" };
        self.depth -= 1;
        out.write_all(last)
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.separate(out, first, false)?;
        if self.depth == 1 {
            self.in_name = true;
            self.name.clear();
        }
        Ok(())
    }

    fn end_object_key<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.in_name = false;
        Ok(())
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.has_value = true;
        Ok(())
    }

    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        out: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        if self.in_name {
            self.name.push_str(fragment);
        }
        out.write_all(fragment.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use serde::Serialize;
    use serde_json::{Serializer, json};

    use super::*;

    #[test]
    fn every_element_of_a_top_level_array_and_every_stack_has_its_line() {
        let document = json!({
            "command": "x",
            "empty": [],
            "objects": [{"id": 1, "events": [1, 2]}, {"id": 2}],
            "stacks": {"7": [{"a": 1}], "8": []},
            "totals": {"a": 1, "b": 2},
        });
        let mut text = Vec::new();
        let mut serializer = Serializer::with_formatter(&mut text, LineFormatter::default());
        document.serialize(&mut serializer).expect("serializable");
        let text = String::from_utf8(text).expect("text");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).expect("valid"), document);
        insta::assert_snapshot!(text, @r#"
        {"command":"x",
        "empty":[],
        "objects":[
        {"events":[1,2],"id":1},
        {"id":2}
        ],
        "stacks":{
        "7":[{"a":1}],
        "8":[]
        },
        "totals":{"a":1,"b":2}}
        "#);
    }
}
