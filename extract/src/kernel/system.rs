//! Facts about the recording system, from classic events of KernelTraceControl that the merge of a trace inserts, and
//! from the kernel's own configuration events. Also records of lost events and buffers (MOF class RT_LostEvent).

use std::collections::BTreeMap;

use handlescope_model::Table;
use uuid::uuid;

use crate::etl::{Event, EventId, Guid, WarningKind};
use crate::payload::{Field, Payload};
use crate::raw::{EventFamily, PassState};

/// System facts, inserted by the merge of a trace.
pub const FACTS_GUID: Guid = Guid::from_uuid(uuid!("9b79ee91-b5fd-41c0-a243-4248e266e9d0"));

const CPU: EventId = EventId::Hook(0x0b0a);
const BUILD: EventId = EventId::Classic { guid: FACTS_GUID, opcode: 32 };
const VOLUME: EventId = EventId::Classic { guid: FACTS_GUID, opcode: 35 };

/// Properties of the recording system.
#[derive(Clone, Default)]
pub struct System {
    /// Build of Windows, as in 7601.17640.amd64fre.win7sp1_gdr.110622-1506.
    pub build: Option<String>,
    /// Product name, such as Windows 8 Pro.
    pub product: Option<String>,
    /// Name of the computer.
    pub computer: Option<String>,
    pub memory_mb: Option<u32>,
    /// Path prefixes as the kernel writes them, with what programs write instead: `\Device\HarddiskVolume3\` is `C:\`.
    pub volumes: BTreeMap<String, String>,
}

impl EventFamily for System {
    const EVENTS: &'static [(EventId, &'static str)] =
        &[(CPU, "SystemConfigCPU"), (BUILD, "BuildInfo"), (VOLUME, "VolumeMapping")];
    const TABLES: &'static [Table] = &[Table::Trace, Table::Volumes];

    fn fields(event: &Event<'_>) -> &'static [Field] {
        match event.id {
            CPU => &[Field::Bytes(20), Field::Utf16],
            BUILD => &[Field::Bytes(8), Field::Public, Field::Public],
            _ => &[Field::Utf16, Field::Utf16],
        }
    }

    fn take(&mut self, event: &Event<'_>, _: &mut PassState) -> Option<()> {
        match event.id {
            CPU => {
                self.computer = computer_name(event).or(self.computer.take());
                self.memory_mb = memory_size(event).or(self.memory_mb);
            }
            BUILD => {
                let mut p = Payload::from_event(event);
                p.u64()?;
                (self.build, self.product) = (Some(p.utf16()), Some(p.utf16()));
            }
            VOLUME => {
                let mut p = Payload::from_event(event);
                self.volumes.insert(p.utf16(), p.utf16());
            }
            _ => return None,
        }
        Some(())
    }
}

/// Reads the computer's name (MOF class SystemConfig_CPU), the event's first text after clock, processors, memory, page
/// size and allocation granularity; `None` if empty.
fn computer_name(event: &Event<'_>) -> Option<String> {
    let mut p = Payload::from_event(event);
    p.skip(5 * 4)?;
    Some(p.utf16()).filter(|name| !name.is_empty())
}

/// Reads the computer's memory in MB from the same event.
fn memory_size(event: &Event<'_>) -> Option<u32> {
    let mut p = Payload::from_event(event);
    p.skip(2 * 4)?;
    p.u32().filter(|size| *size > 0)
}

const PROVIDER: Guid = Guid::from_uuid(uuid!("6a399ae0-4bc6-4de9-870b-3657f8947e7e"));
const LOST_EVENT: EventId = EventId::Classic { guid: PROVIDER, opcode: 32 };
const LOST_BUFFER: EventId = EventId::Classic { guid: PROVIDER, opcode: 33 };
const LOST_FILE: EventId = EventId::Classic { guid: PROVIDER, opcode: 34 };

/// Loss records, which say that events before them are missing.
#[derive(Default)]
pub struct Losses {
    /// Raw time of the last record, and the number of records.
    pub last: Option<i64>,
    pub count: u64,
}

impl EventFamily for Losses {
    const EVENTS: &'static [(EventId, &'static str)] =
        &[(LOST_EVENT, "LostEvent"), (LOST_BUFFER, "LostEvent"), (LOST_FILE, "LostEvent")];
    const TABLES: &'static [Table] = &[Table::Warnings];

    fn fields(_: &Event<'_>) -> &'static [Field] {
        &[]
    }

    fn take(&mut self, event: &Event<'_>, shared: &mut PassState) -> Option<()> {
        self.last = self.last.max(Some(event.time));
        self.count += 1;
        shared.diagnostics.count(WarningKind::LossRecord, Some(event.offset));
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_computer_has_a_name() {
        let mut payload = vec![0; 20];
        payload[9] = 0x40;
        payload.extend(b"L\0A\0B\0\0\0");
        payload.extend([0; 504]);
        let event = Event { id: CPU, version: 3, payload: &payload, ..Event::default() };
        assert_eq!(computer_name(&event).as_deref(), Some("LAB"));
        assert_eq!(memory_size(&event), Some(16384));
        assert_eq!(memory_size(&Event { payload: &[0; 532], ..event }), None);
        assert_eq!(computer_name(&Event { payload: &payload[..19], ..event }), None);
        assert_eq!(computer_name(&Event { payload: &[0; 532], ..event }), None);
    }
}
