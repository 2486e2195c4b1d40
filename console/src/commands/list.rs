//! `.list`

use handlescope_model::tables::TraceInfo;

use super::{Command, CommandError, Context, Signature, shared::groups};
use crate::{
    grammar::Arguments, paths::shown, query::trace_info, render::time::Clock, terminal::table,
};
use handlescope_model::Untrusted;

/// What stands where the trace does not say.
const UNKNOWN: &str = "unknown";

pub(crate) struct List;

impl Command for List {
    type Args = ();
    const SIGNATURE: Signature = Signature {
        names: &[".list"],
        group: groups::FILES,
        usage: "",
        arguments: Arguments::None,
        summary: "list the loaded traces",
        details: "The number is the file index of the JSON output.",
        examples: &[".list"],
    };

    fn run((): (), context: &mut Context<'_, '_>) -> Result<(), CommandError> {
        if context.session.files.is_empty() {
            writeln!(context.out, "No traces are loaded.")?;
            return Ok(());
        }
        let header = ["#", "File", "Recorded", "Seconds", "Machine", "Windows", "Events", "Lost"];
        let mut table = table::table(context.screen, &header);
        for (index, file) in context.session.files.iter().enumerate() {
            let info = trace_info(&file.trace)?;
            let machine = info.computer.as_deref().unwrap_or(UNKNOWN);
            let windows = match info.has_clock() || !info.os_version.is_empty() {
                true => format!("{} ({})", info.os_version, info.os_build),
                false => UNKNOWN.to_owned(),
            };
            table.add_row([
                index.to_string(),
                Untrusted(shown(&file.path)).to_string(),
                Clock::session_start(&info),
                seconds(&info),
                Untrusted(machine).to_string(),
                Untrusted(&windows).to_string(),
                info.events_total.to_string(),
                if info.has_clock() { info.events_lost.to_string() } else { UNKNOWN.to_owned() },
            ]);
        }
        table::align_right(&mut table, &[0, 3, 6, 7]);
        write!(context.out, "{}", table::text(table))?;
        Ok(())
    }
}

/// How long the session lasted, if it was closed.
fn seconds(info: &TraceInfo) -> String {
    let end = info.session_end_filetime.filter(|end| *end >= info.session_start_filetime);
    end.map_or_else(
        || UNKNOWN.to_owned(),
        |end| format!("{:.1}", end.saturating_sub(info.session_start_filetime) as f64 / 1e7),
    )
}
