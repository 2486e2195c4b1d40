//! Recording with `xperf` of the Windows Performance Toolkit.

use std::{borrow::Cow, path::Path};

use crate::{
    dot_net::{Begin, ProviderSession},
    options::{RecordOptions, Target},
};

/// The line between those that start a recording and those that end it.
pub const REPRODUCE: &str = "rem reproduce the leak, then";

/// Returns the command lines that start and end such a recording, for a Windows prompt.
///
/// xperf records handles of all types and ends only when asked to.
pub fn xperf_commands(options: &RecordOptions) -> Vec<String> {
    let joined = |names: Vec<&str>| names.join("+");
    let flags = joined(options.events.families().map(|family| family.xperf).collect());
    let stacks = joined(options.events.stacks().map(|event| event.xperf).collect());
    let (size, count) = (options.buffer_size.kib(), options.buffers.get());
    let start = format!(
        "xperf -on {flags} -stackwalk {stacks} -BufferSize {size} -MinBuffers {count} -MaxBuffers {count}"
    );
    let file = options.target.file();
    // A session's file lacks the identities of images; the merge adds them.
    let (raw, merged) = (quoted(&file.with_extension("kernel.etl")), quoted(file));
    let is_ring = matches!(options.target, Target::Ring(_));
    let sessions: Vec<_> =
        if options.dot_net { ProviderSession::dot_net(is_ring).collect() } else { Vec::new() };
    let begun = |begin| sessions.iter().filter(move |session| session.begin == begin);
    let on = |session: &&ProviderSession| provider_session(session, file);
    let mut lines = if is_ring {
        // learn, xperf's `start`: a trace in buffering mode is saved by -flush.
        vec![format!("{start} -Buffering")]
    } else {
        vec![format!("{start} -f {raw}")]
    };
    lines.extend(begun(Begin::WithRecording).map(on));
    lines.push(REPRODUCE.to_owned());
    if !sessions.is_empty() {
        lines.extend(begun(Begin::AtEnd).map(on));
        lines.push(format!("timeout /t {RUNDOWN_SECONDS}"));
    }
    lines.extend(sessions.iter().map(|session| format!("xperf -stop \"{}\"", session.logger)));
    if is_ring {
        lines.push(format!("xperf -flush \"NT Kernel Logger\" -f {raw}"));
    }
    lines.push("xperf -stop".to_owned());
    let further = sessions.iter().map(|session| session_file(session, file));
    let traces: Vec<String> = [raw].into_iter().chain(further).collect();
    lines.push(format!("xperf -merge {} {merged}", traces.join(" ")));
    lines
}

/// Maximum time to wait for a rundown; learn, "CLR ETW Providers", advises 30 to 60 seconds.
const RUNDOWN_SECONDS: u32 = 30;

/// Returns the line that starts the session of a provider.
fn provider_session(session: &ProviderSession, file: &Path) -> String {
    let (provider, size) = (&session.provider, session.buffer_kib);
    format!(
        "xperf -start \"{}\" -on {}:{:#x}:{} -f {} -BufferSize {size} -MinBuffers {} -MaxBuffers {}",
        session.logger,
        provider.guid,
        provider.keywords.value,
        provider.level,
        session_file(session, file),
        session.minimum_buffers,
        session.maximum_buffers,
    )
}

/// Returns the file of a session, beside that of the recording.
fn session_file(session: &ProviderSession, file: &Path) -> String {
    quoted(&file.with_extension(session.log_file))
}

/// Quotes a path for a Windows prompt.
pub fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    if text.contains([' ', '&', '(', ')', '^', ';', ',']) {
        format!("\"{text}\"")
    } else {
        Cow::into_owned(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        object_type::ObjectTypes,
        options::{BufferCount, BufferSize, Events},
    };

    fn commands(events: Events, target: Target) -> Vec<String> {
        xperf_commands(&RecordOptions {
            events,
            types: ObjectTypes::default(),
            dot_net: false,
            buffer_size: BufferSize::default(),
            buffers: BufferCount::default(),
            target,
            duration: None,
            stop_when: Vec::new(),
        })
    }

    #[test]
    fn a_file_is_written_and_merged() {
        let lines = commands(Events::default(), Target::File("C:\\my traces\\a.etl".into()));
        assert_eq!(
            lines,
            [
                "xperf -on PROC_THREAD+LOADER+OB_HANDLE -stackwalk HandleCreate+HandleClose+HandleDuplicate \
                 -BufferSize 1024 -MinBuffers 256 -MaxBuffers 256 -f \"C:\\my traces\\a.kernel.etl\"",
                "rem reproduce the leak, then",
                "xperf -stop",
                "xperf -merge \"C:\\my traces\\a.kernel.etl\" \"C:\\my traces\\a.etl\"",
            ]
        );
    }

    #[test]
    fn every_event_has_its_flag_and_its_stacks_and_a_ring_is_flushed() {
        let events = Events {
            references: true,
            mappings: true,
            virtual_alloc: true,
            drop_close_stacks: true,
        };
        let lines = commands(events, Target::Ring("a.etl".into()));
        assert_eq!(
            lines,
            [
                "xperf -on PROC_THREAD+LOADER+OB_HANDLE+OB_OBJECT+VAMAP+VIRT_ALLOC -stackwalk \
                 HandleCreate+HandleDuplicate+ObjectCreate+ObjectDelete+ObjectReference+ObjectDeReference\
                 +MapFile+UnMapFile+VirtualAlloc+VirtualFree \
                 -BufferSize 1024 -MinBuffers 256 -MaxBuffers 256 -Buffering",
                "rem reproduce the leak, then",
                "xperf -flush \"NT Kernel Logger\" -f a.kernel.etl",
                "xperf -stop",
                "xperf -merge a.kernel.etl a.etl",
            ]
        );
    }

    #[test]
    fn methods_of_dot_net_have_sessions_that_are_merged() {
        let lines = xperf_commands(&RecordOptions {
            events: Events::default(),
            types: ObjectTypes::default(),
            dot_net: true,
            buffer_size: BufferSize::default(),
            buffers: BufferCount::default(),
            target: Target::File("a.etl".into()),
            duration: None,
            stop_when: Vec::new(),
        });
        assert_eq!(
            lines[1..],
            [
                "xperf -start \"handlescope .NET\" -on e13c0d23-ccbc-4e12-931b-d9cc2eee27e4:0x18:5 \
                 -f a.dotnet.etl -BufferSize 1024 -MinBuffers 64 -MaxBuffers 64",
                "rem reproduce the leak, then",
                "xperf -start \"handlescope .NET rundown\" -on a669021c-c450-4609-a035-5af59af4df18:0x138:5 \
                 -f a.rundown.etl -BufferSize 1024 -MinBuffers 64 -MaxBuffers 64",
                "timeout /t 30",
                "xperf -stop \"handlescope .NET\"",
                "xperf -stop \"handlescope .NET rundown\"",
                "xperf -stop",
                "xperf -merge a.kernel.etl a.dotnet.etl a.rundown.etl a.etl",
            ]
        );
    }
}
