//! Names of event kinds, for people who read the event counts.

use super::{IMAGE_ID_GUID, LOST_EVENT_GUID, SYSTEM_FACTS_GUID, hook};
use crate::etl::EventId;

/// The name of an event kind; `None` for kinds this program does not know.
pub fn event_name(id: &EventId) -> Option<&'static str> {
    match id {
        EventId::Hook(hook) => hook_name(*hook),
        EventId::Classic { guid, opcode } if *guid == IMAGE_ID_GUID => match opcode {
            0 => Some("ImageID"),
            32 => Some("DbgID_None"),
            36 => Some("DbgID_RSDS"),
            37 => Some("DbgID_ILRSDS"),
            64 => Some("FileVersion"),
            _ => None,
        },
        EventId::Classic { guid, opcode } if *guid == SYSTEM_FACTS_GUID => match opcode {
            32 => Some("BuildInfo"),
            33 => Some("SystemPaths"),
            34 => Some("SystemVolume"),
            35 => Some("VolumeMapping"),
            _ => None,
        },
        EventId::Classic { guid, .. } if *guid == LOST_EVENT_GUID => Some("LostEvent"),
        EventId::Message => Some("TraceMessage"),
        EventId::Classic { .. } | EventId::Manifest { .. } => None,
    }
}

fn hook_name(hook: u16) -> Option<&'static str> {
    Some(match hook {
        hook::TRACE_HEADER => "LogfileHeader",
        0x0005 => "GroupMasks",
        0x0008 => "RundownComplete",
        hook::PROCESS_START => "ProcessStart",
        hook::PROCESS_END => "ProcessEnd",
        hook::PROCESS_DC_START => "ProcessDCStart",
        hook::PROCESS_DC_END => "ProcessDCEnd",
        hook::IMAGE_LOAD => "ImageLoad",
        0x030b => "ProcessTerminate",
        0x0327 => "ProcessDefunct",
        hook::FILE_MAP => "MapFile",
        hook::FILE_UNMAP => "UnmapFile",
        0x0427 => "MapFileDCStart",
        0x0428 => "MapFileDCEnd",
        hook::THREAD_START => "ThreadStart",
        hook::THREAD_END => "ThreadEnd",
        hook::THREAD_DC_START => "ThreadDCStart",
        hook::THREAD_DC_END => "ThreadDCEnd",
        0x0524 => "ContextSwitch",
        hook::SYSTEM_CPU => "SystemConfigCPU",
        0x0f2e => "ProfileSample",
        hook::CREATE_HANDLE => "CreateHandle",
        hook::CLOSE_HANDLE => "CloseHandle",
        hook::DUPLICATE_HANDLE => "DuplicateHandle",
        hook::TYPE_DC_START => "TypeDCStart",
        hook::TYPE_DC_END => "TypeDCEnd",
        hook::HANDLE_DC_START => "HandleDCStart",
        hook::HANDLE_DC_END => "HandleDCEnd",
        hook::CREATE_OBJECT => "CreateObject",
        hook::DELETE_OBJECT => "DeleteObject",
        hook::REFERENCE_OBJECT => "ReferenceObject",
        hook::DEREFERENCE_OBJECT => "DereferenceObject",
        hook::IMAGE_UNLOAD => "ImageUnload",
        hook::IMAGE_DC_START => "ImageDCStart",
        hook::IMAGE_DC_END => "ImageDCEnd",
        0x1421 => "KernelBase",
        0x1422 => "HypercallPage",
        hook::STACK_WALK => "StackWalk",
        hook::STACK_KEY_CREATE => "StackKeyCreate",
        hook::STACK_KEY_DELETE => "StackKeyDelete",
        hook::STACK_KEY_RUNDOWN => "StackKeyRundown",
        hook::STACK_KEY_KERNEL => "StackKeyKernel",
        hook::STACK_KEY_USER => "StackKeyUser",
        _ => return None,
    })
}
