//! What handlescope answers about a trace.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Deserializer, Value};

/// Handlescope's answers about a trace.
#[derive(Debug, Clone, Default)]
pub struct Observation {
    /// The row of the trace itself.
    pub trace: Value,
    /// Rows of the view `handles`, which also has mapped views.
    pub handles: Vec<Value>,
    /// Rows of the view `allocations`.
    pub allocations: Vec<Value>,
    /// Suspects of `.why`.
    pub suspects: Vec<Value>,
}

/// Asks a program about a trace.
///
/// # Errors
/// The error that the program prints.
pub fn observe(program: &Path, trace: &Path, symbols: Option<&str>) -> Result<Observation, String> {
    let ask = |command: &str| {
        let mut run = Command::new(program);
        run.arg(trace).args(["-c", command]).stdin(Stdio::null());
        if let Some(symbols) = symbols {
            run.args(["--symbol-path", symbols]);
        }
        let run = run.output().map_err(|error| format!("{}: {error}", program.display()))?;
        if !run.status.success() {
            return Err(String::from_utf8_lossy(&run.stderr).into_owned());
        }
        let documents = Deserializer::from_slice(&run.stdout).into_iter::<Value>();
        documents.collect::<Result<Vec<_>, _>>().map_err(|error| format!("{command}: {error}"))
    };
    let trace = ask(".sql SELECT * FROM trace -ndjson")?;
    let handles = ask(".sql SELECT * FROM handles -ndjson")?;
    let allocations = ask(".sql SELECT * FROM allocations -ndjson")?;
    let why = ask(".why -json")?;
    let suspects = why
        .iter()
        .flat_map(|document| document["suspects"].as_array().cloned().unwrap_or_default());
    Ok(Observation {
        trace: trace.into_iter().next().unwrap_or_default(),
        handles,
        allocations,
        suspects: suspects.collect(),
    })
}

/// Parses a number that may be hex text.
pub fn number(value: &Value) -> Option<u64> {
    match value {
        Value::String(text) => u64::from_str_radix(text.strip_prefix("0x")?, 16).ok(),
        value => value.as_u64(),
    }
}
