//! GDI and USER handles (Microsoft-Windows-Win32k; from the manifest of Windows 10 build 18990).

use uuid::uuid;

use crate::etl::{EventId, Guid};
use crate::metadata::{DecodedEvent, Schema};
use crate::payload::Payload;

/// Microsoft-Windows-Win32k of Windows 10 and later.
const WIN32K: Guid = Guid::from_uuid(uuid!("8c416c79-d49b-4f01-a467-e56d3aa8234c"));

const USER_TASK: &str = "UserHandleOperation";
const GDI_TASK: &str = "GdiHandleOperation";

const fn event(id: u16) -> EventId {
    EventId::Manifest { guid: WIN32K, id }
}

/// Events with their names from the manifest.
pub const EVENTS: [(EventId, &str); 7] = [
    (event(452), "UserHandleOperation/CreateHandle"),
    (event(453), "UserHandleOperation/DestroyHandle"),
    (event(454), "UserHandleOperation/UpdateHandleOwner"),
    (event(455), "GdiHandleOperation/CreateHandle"),
    (event(456), "GdiHandleOperation/DestroyHandle"),
    (event(457), "GdiHandleOperation/UpdateHandleOwner"),
    (event(458), "GdiHandleOperation/TransformHandle"),
];

/// Subsystem that a handle belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GuiClass {
    User,
    Gdi,
}

/// Change to a handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuiChange {
    Create,
    Destroy,
    /// The handle gets a new owner.
    Owner,
    /// The handle gets a new value.
    Transform,
}

impl GuiChange {
    const OPCODES: [(&'static str, Self); 4] = [
        ("CreateHandle", Self::Create),
        ("DestroyHandle", Self::Destroy),
        ("UpdateHandleOwner", Self::Owner),
        ("TransformHandle", Self::Transform),
    ];
}

/// Event of a handle. Values have 32 bits: the kernel and 32-bit processes extend the same value sometimes with zeros
/// and sometimes with its sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GuiRow {
    pub handle: u32,
    /// Previous value of the handle; differs from [`Self::handle`] only after [`GuiChange::Transform`].
    pub previous: u32,
    pub class: GuiClass,
    /// Number of the type; the manifest does not name types.
    pub type_id: u32,
    /// Session; handles of different sessions are unrelated.
    pub session: u32,
    /// Process that owns the handle from now on, or [`PUBLIC`].
    pub owner_pid: u32,
}

/// Owner of a public handle, which every process may use and none owns.
pub const PUBLIC: u32 = 0;

/// Returns the change and class of the events of a schema; `None` for other providers and tasks.
pub fn by_names(schema: &Schema) -> Option<(GuiChange, GuiClass)> {
    if schema.guid != WIN32K {
        return None;
    }
    let class = match &*schema.task {
        USER_TASK => GuiClass::User,
        GDI_TASK => GuiClass::Gdi,
        _ => return None,
    };
    let opcode = GuiChange::OPCODES.iter().find(|(name, _)| *name == &*schema.opcode);
    opcode.map(|(_, change)| (*change, class))
}

/// Returns the change and class of an event without a schema, by id; `None` for any other event.
pub fn by_id(id: EventId) -> Option<(GuiChange, GuiClass)> {
    let EventId::Manifest { guid: WIN32K, id } = id else { return None };
    Some(match id {
        452 => (GuiChange::Create, GuiClass::User),
        453 => (GuiChange::Destroy, GuiClass::User),
        454 => (GuiChange::Owner, GuiClass::User),
        455 => (GuiChange::Create, GuiClass::Gdi),
        456 => (GuiChange::Destroy, GuiClass::Gdi),
        457 => (GuiChange::Owner, GuiClass::Gdi),
        458 => (GuiChange::Transform, GuiClass::Gdi),
        _ => return None,
    })
}

impl GuiRow {
    /// Reads the fields of a described event; `None` if one is missing.
    pub fn described(
        change: GuiChange,
        class: GuiClass,
        decoded: &DecodedEvent<'_>,
    ) -> Option<Self> {
        let number = |name: &str| decoded.value(name)?.bits();
        let small = |name: &str| u32::try_from(number(name)?).ok();
        let (previous, handle) = match change {
            GuiChange::Transform => (number("PreviousHandleValue")?, number("NewHandleValue")?),
            _ => (number("HandleValue")?, number("HandleValue")?),
        };
        Some(Self {
            handle: handle as u32,
            previous: previous as u32,
            class,
            type_id: small("HandleType")?,
            session: small("SessionId")?,
            owner_pid: small("OwnerProcessId")?,
        })
    }

    /// Reads the fields of an event without description; `None` if its payload is too short.
    pub fn by_layout(change: GuiChange, class: GuiClass, mut p: Payload<'_>) -> Option<Self> {
        let previous = p.pointer()?;
        let handle = if change == GuiChange::Transform { p.pointer()? } else { previous };
        let (handle, previous) = (handle as u32, previous as u32);
        let (type_id, session, owner_pid) = (p.u32()?, p.u32()?, p.u32()?);
        Some(Self { handle, previous, class, type_id, session, owner_pid })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_has_the_task_and_opcode_of_its_name() {
        for (id, name) in EVENTS {
            let (change, class) = by_id(id).unwrap();
            let task = if class == GuiClass::User { USER_TASK } else { GDI_TASK };
            let opcode = GuiChange::OPCODES.iter().find(|(_, known)| *known == change).unwrap().0;
            assert_eq!(name, format!("{task}/{opcode}"));
        }
        assert_eq!(by_id(event(459)), None);
    }

    #[test]
    fn payloads_have_20_and_28_bytes() {
        let payload: Vec<u8> = (1..=28).collect();
        let row =
            |change, payload| GuiRow::by_layout(change, GuiClass::Gdi, Payload::new(payload, 8));
        let created = row(GuiChange::Create, &payload[..20]).unwrap();
        assert_eq!(created.handle, 0x0403_0201);
        assert_eq!((created.handle, created.owner_pid), (created.previous, 0x1413_1211));
        assert_eq!(row(GuiChange::Create, &payload[..19]), None);
        let moved = row(GuiChange::Transform, &payload).unwrap();
        assert_eq!((moved.previous, moved.owner_pid), (0x0403_0201, 0x1C1B_1A19));
        assert_eq!(moved.handle, 0x0C0B_0A09);
        assert_eq!(row(GuiChange::Transform, &payload[..27]), None);
    }
}
