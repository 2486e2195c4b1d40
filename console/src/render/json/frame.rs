//! `.sql -json`.

use std::io::{self, Write};

use polars::prelude::DataFrame;
use serde::Serialize;

use super::Array;
use crate::render::rows::Row;
use crate::values::JsonMode;

pub(in crate::render) fn frame(
    frame: &DataFrame,
    command: &str,
    mode: JsonMode,
    out: &mut impl Write,
) -> io::Result<()> {
    #[derive(Serialize)]
    struct Document<'a, T> {
        command: &'a str,
        columns: Vec<&'a str>,
        rows: T,
    }
    let columns = frame.columns().iter().map(|column| column.name().as_str()).collect();
    let rows = Array(|| (0..frame.height()).map(|row| Row { frame, row }));
    super::write(&Document { command, columns, rows }, mode, out)
}
