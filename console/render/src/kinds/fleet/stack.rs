//! Stacks of a dataset; their frames are lines of text.

use crate::text::call_name;
use handlescope_fleet::CallSite;
use handlescope_session::filter::SystemModules;

/// Number of program frames in a line about a stack.
const FRAMES: usize = 3;

/// Returns all lines of a stack, or the program's calls in one line.
pub fn frames(site: &CallSite, all_frames: bool, system: &SystemModules) -> Vec<String> {
    if all_frames { lines(site.stack_text.as_deref()) } else { vec![calls(site, system)] }
}

/// Returns the program's innermost calls in one line, innermost first, as in `Cache::Get  ← Worker::Run  ← main`.
fn calls(site: &CallSite, system: &SystemModules) -> String {
    let (function, text) = (site.function.as_deref(), site.stack_text.as_deref());
    let lines = text.into_iter().flat_map(str::lines).filter(|line| {
        // A frame outside all modules has only an address.
        line.split_once('!').is_some_and(|(module, _)| !system.has(module))
    });
    let from_function = lines.skip_while(|line| Some(*line) != function).take(FRAMES);
    let frames: Vec<&str> = from_function.collect();
    let frames = if frames.is_empty() { Vec::from_iter(function) } else { frames };
    let mut callee = (None, None);
    let calls = frames.into_iter().map(|frame| {
        let parts = frame.split_once('!');
        let (module, function) =
            parts.map_or((None, frame), |(module, function)| (Some(module), function));
        let call = call_name((module, function), callee, &site.process);
        callee = (module, Some(function));
        call
    });
    let calls = calls.collect::<Vec<_>>().join("  ← ");
    if calls.is_empty() { "no create stack".to_owned() } else { calls }
}

/// Returns the lines of a stack, or says that there is none.
pub fn lines(text: Option<&str>) -> Vec<String> {
    match text {
        Some(text) => text.lines().map(str::to_owned).collect(),
        None => vec!["no create stack".to_owned()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_begin_with_the_function_and_leave_out_the_system_and_known_modules() {
        let text = "ntoskrnl.exe!NtCreateEvent\nKernelBase.dll!CreateEventW\napp.exe!Cache::Get\n\
                    lib.dll!Pool::Run\nlib.dll!Pool::Main\nkernel32.dll!BaseThreadInitThunk";
        let system = SystemModules::default();
        let calls = |function: Option<&str>, text: Option<&str>| {
            let text_of = |text: Option<&str>| text.map(str::to_owned);
            let site = CallSite {
                process: "app.exe".to_owned(),
                function: text_of(function),
                stack_text: text_of(text),
                ..CallSite::default()
            };
            calls(&site, &system)
        };
        let shown = calls(Some("app.exe!Cache::Get"), Some(text));
        assert_eq!(shown, "Cache::Get  ← lib.dll!Pool::Run  ← Pool::Main");
        let text = "app.exe!ns::Cache::Get\napp.exe!ns::Worker::Run";
        let shown = calls(Some("app.exe!ns::Cache::Get"), Some(text));
        assert_eq!(shown, "ns::Cache::Get  ← Worker::Run");
        assert_eq!(calls(Some("app.exe+0x12"), None), "app.exe+0x12");
        assert_eq!(calls(None, None), "no create stack");
    }
}
