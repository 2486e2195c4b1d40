//! Process events (MOF class Process_TypeGroup1).

use super::{Payload, hook};
use crate::etl::{Event, EventId};

/// What happened to a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessAction {
    /// It started.
    Start,
    /// It ended.
    End,
    /// It is there, says a rundown.
    Rundown,
}

/// A process event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// What happened.
    pub action: ProcessAction,
    /// Unique process key; 0 where the version has none.
    pub key: u64,
    /// Process id.
    pub pid: u32,
    /// Process id of the parent.
    pub parent_pid: u32,
    /// Windows session; all ones mean none.
    pub session_id: u32,
    /// Exit status.
    pub exit_status: i32,
    /// Security identifier, where present.
    pub sid: Option<String>,
    /// Image file name without path.
    pub name: String,
    /// Command line; empty where the version has none.
    pub command_line: String,
}

impl Process {
    /// The action of a hook id, if it is one of a process event.
    pub fn action(hook: u16) -> Option<ProcessAction> {
        match hook {
            hook::PROCESS_START => Some(ProcessAction::Start),
            hook::PROCESS_END => Some(ProcessAction::End),
            hook::PROCESS_DC_START | hook::PROCESS_DC_END => Some(ProcessAction::Rundown),
            _ => None,
        }
    }

    /// Decodes versions 0 to 5 of the event.
    pub fn decode(event: &Event<'_>) -> Option<Self> {
        let EventId::Hook(hook) = event.id else { return None };
        let action = Self::action(hook)?;
        let mut p = Payload::new(event.payload, event.pointer_size);
        if event.version == 0 {
            let (pid, parent_pid) = (p.pointer()? as u32, p.pointer()? as u32);
            let sid = sid(&mut p)?;
            let name = p.ansi().into_owned();
            return Some(Self {
                action,
                key: 0,
                pid,
                parent_pid,
                session_id: u32::MAX,
                exit_status: 0,
                sid,
                name,
                command_line: String::new(),
            });
        }
        // Version 1 starts with the page directory base where later ones have the key.
        let first = p.pointer()?;
        let key = if event.version >= 2 { first } else { 0 };
        let (pid, parent_pid, session_id) = (p.u32()?, p.u32()?, p.u32()?);
        let exit_status = p.u32()? as i32;
        if event.version >= 3 {
            p.pointer()?;
        }
        if event.version >= 4 {
            p.u32()?;
        }
        let sid = sid(&mut p)?;
        let name = p.ansi().into_owned();
        let command_line = if event.version >= 2 { p.utf16() } else { String::new() };
        Some(Self {
            action,
            key,
            pid,
            parent_pid,
            session_id,
            exit_status,
            sid,
            name,
            command_line,
        })
    }
}

/// A TOKEN_USER: four zero bytes, or pointer and attributes (16 bytes, 8 on 32-bit systems)
/// before a binary SID.
fn sid(p: &mut Payload<'_>) -> Option<Option<String>> {
    let mut ahead = *p;
    let is_null = ahead.u32()? == 0;
    // A kernel pointer may have 32 zero bits at its low end; text behind a null never looks like
    // the high end of one.
    let is_pointer = p.pointer_size() == 8 && ahead.u32().is_some_and(|high| high >= 0xFFFF_0000);
    if is_null && !is_pointer {
        p.skip(4)?;
        return Some(None);
    }
    p.skip(2 * p.pointer_size())?;
    let (revision, count) = (p.u8()?, p.u8()?);
    let authority = p.bytes(6)?.iter().fold(0u64, |sum, b| sum << 8 | u64::from(*b));
    let mut text = format!("S-{revision}-{authority}");
    for _ in 0..count {
        text.push_str(&format!("-{}", p.u32()?));
    }
    Some(Some(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::test_event;

    fn event<'a>(version: u8, payload: &'a [u8], pointer_size: usize) -> Event<'a> {
        test_event(hook::PROCESS_START, version, payload, pointer_size)
    }

    fn body(with_flags: bool, sid: &[u8]) -> Vec<u8> {
        let mut bytes = 0xFFFF_8000_0000_1000u64.to_le_bytes().to_vec();
        for field in [77u32, 4, 1, 0x103] {
            bytes.extend(field.to_le_bytes());
        }
        bytes.extend([0; 8]);
        if with_flags {
            bytes.extend([0; 4]);
        }
        bytes.extend(sid);
        bytes.extend(b"app.exe\0a\0b\0\0\0");
        bytes
    }

    #[test]
    fn versions_3_and_4_differ_in_the_flags() {
        for (version, with_flags) in [(3, false), (4, true), (5, true)] {
            let bytes = body(with_flags, &[0; 4]);
            let process = Process::decode(&event(version, &bytes, 8)).unwrap();
            assert_eq!((process.pid, process.parent_pid, process.session_id), (77, 4, 1));
            assert_eq!((process.name.as_str(), process.command_line.as_str()), ("app.exe", "ab"));
            assert_eq!(process.sid, None);
        }
    }

    #[test]
    fn a_sid_reads_as_text() {
        let mut sid = vec![1; 16];
        sid.extend([1, 2, 0, 0, 0, 0, 0, 5]);
        sid.extend(21u32.to_le_bytes());
        sid.extend(1000u32.to_le_bytes());
        let bytes = body(true, &sid);
        let process = Process::decode(&event(4, &bytes, 8)).unwrap();
        assert_eq!(process.sid.as_deref(), Some("S-1-5-21-1000"));
        assert_eq!(process.name, "app.exe");
    }

    #[test]
    fn a_cut_payload_is_no_process() {
        let bytes = body(true, &[0; 4]);
        for end in 0..36 {
            assert_eq!(Process::decode(&event(4, &bytes[..end], 8)), None, "{end}");
        }
    }
}
