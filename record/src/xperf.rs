//! The same recording with `xperf` of the Windows Performance Toolkit.

use std::{borrow::Cow, path::Path};

use crate::options::{RecordOptions, Target};

/// The command lines that start and end such a recording, for a prompt of Windows.
///
/// xperf records handles of all types, and ends when it is told to.
pub fn xperf_commands(options: &RecordOptions) -> Vec<String> {
    let joined = |names: Vec<&str>| names.join("+");
    let flags = joined(options.events.families().map(|family| family.xperf).collect());
    let stacks = joined(options.events.stacks().map(|event| event.xperf).collect());
    let (size, count) = (options.buffer_size.kib(), options.buffers.get());
    let start = format!(
        "xperf -on {flags} -stackwalk {stacks} -BufferSize {size} -MinBuffers {count} -MaxBuffers {count}"
    );
    let file = options.target.file();
    // What a session writes lacks the identities of images, which the merge adds.
    let (raw, merged) = (quoted(&file.with_extension("kernel.etl")), quoted(file));
    let merge = format!("xperf -merge {raw} {merged}");
    if matches!(options.target, Target::Ring(_)) {
        // learn, xperf's `start`: a trace in buffering mode is saved by -flush.
        let flush = format!("xperf -flush \"NT Kernel Logger\" -f {raw}");
        return vec![format!("{start} -Buffering"), flush, "xperf -stop".to_owned(), merge];
    }
    vec![format!("{start} -f {raw}"), "xperf -stop".to_owned(), merge]
}

/// A path for a prompt of Windows.
pub fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    match text.contains([' ', '&', '(', ')', '^', ';', ',']) {
        true => format!("\"{text}\""),
        false => Cow::into_owned(text),
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
                 -BufferSize 1024 -MinBuffers 128 -MaxBuffers 128 -f \"C:\\my traces\\a.kernel.etl\"",
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
                 -BufferSize 1024 -MinBuffers 128 -MaxBuffers 128 -Buffering",
                "xperf -flush \"NT Kernel Logger\" -f a.kernel.etl",
                "xperf -stop",
                "xperf -merge a.kernel.etl a.etl",
            ]
        );
    }
}
