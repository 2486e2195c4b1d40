//! What may help where a query has no answer.

use crate::sql::SqlError;

/// What may help against an error, behind its message.
pub(in crate::commands) fn advice(error: &SqlError) -> &'static str {
    match error {
        SqlError::Query { .. } => "; .help sql lists the tables and has examples",
        SqlError::TooManyRows => {
            "; choose some with -fd; .help sql lists the tables and has examples"
        }
        SqlError::TooMuchMemory { .. } => ", or raise the limit with -MaxMemory",
        SqlError::JoinTooLarge { .. }
        | SqlError::View(_)
        | SqlError::Archive(_)
        | SqlError::Cancelled(_) => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::CommandError;

    #[test]
    fn an_error_is_followed_by_what_may_help() {
        for (error, expected) in [
            (
                SqlError::Query { reason: "no table 'x'".to_owned() },
                "no table 'x'; .help sql lists the tables and has examples",
            ),
            (
                SqlError::TooManyRows,
                "too many rows in all files together; choose some with -fd; .help sql lists the tables and \
                 has examples",
            ),
            (
                SqlError::TooMuchMemory { most: 2048 },
                "the query takes more than 2.00 KiB of memory; leave rows and columns out before joins and \
                 ORDER BY, or raise the limit with -MaxMemory",
            ),
        ] {
            assert_eq!(CommandError::from(error).to_string(), expected);
        }
    }
}
