//! `.sql -json`.

use std::io::{self, Write};

use polars::prelude::DataFrame;
use serde::Serialize;

use super::Array;
use crate::command::{JsonMode, SqlArgs};
use crate::render::rows::Row;

pub(in crate::render) fn frame(
    frame: &DataFrame,
    args: &SqlArgs,
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
    super::write(&Document { command: &args.text, columns, rows }, mode, out)
}
