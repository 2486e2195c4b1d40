//! Errors of polars, without what only its developers need.

use std::fmt::{self, Display, Formatter};
use std::io;

use polars::prelude::PolarsError;

use super::Reason;

/// Why polars failed: an error of a file as [`Reason`] has it, any other without the plan of the query.
#[derive(Debug, Clone, Copy)]
pub struct PolarsReason<'a>(pub &'a PolarsError);

impl Display for PolarsReason<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match innermost(self.0) {
            PolarsError::IO { error, msg: None } => Reason(error).fmt(f),
            _ => Reason(&io::Error::other(without_plan(&self.0.to_string()))).fmt(f),
        }
    }
}

/// The error without what polars was about when it happened.
#[must_use]
pub fn innermost(mut error: &PolarsError) -> &PolarsError {
    while let PolarsError::Context { error: inner, .. }
    | PolarsError::ExprContext { error: inner, .. } = error
    {
        error = inner;
    }
    error
}

/// A message without the plan that polars adds, which names nothing that the query names.
#[must_use]
pub fn without_plan(message: &str) -> &str {
    message.split("\n\nResolved plan").next().unwrap_or(message)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn errors_of_files_have_plain_words_and_no_number() {
        let full = Arc::new(io::Error::from_raw_os_error(28));
        let inner = PolarsError::IO { error: full, msg: None };
        let error = PolarsError::Context { error: Box::new(inner), msg: "parquet".into() };
        assert_eq!(PolarsReason(&error).to_string(), "the disk is full");
        let quoted = PolarsError::ComputeError("no place (os error 28)\n\nResolved plan: x".into());
        assert_eq!(PolarsReason(&quoted).to_string(), "no place");
    }
}
