//! Payloads of the .NET runtime's provider and of its rundown provider.
//!
//! Layouts are those of the manifests in dotnet/runtime (`ClrEtwAll.man`): MethodLoadUnloadVerbose
//! and MethodDCStart/EndVerbose (templates `MethodLoadUnloadVerbose*`), ModuleLoadUnload and
//! ModuleDCStart/End (templates `ModuleLoadUnload*`). Addresses have 64 bits in them also when the
//! process has 32.

use crate::etl::{Event, EventId, Guid};
use crate::payload::{Payload, utf16_bytes};
use crate::raw::Action;

/// Microsoft-Windows-DotNETRuntime.
const RUNTIME: Guid =
    Guid::new(0xe13c_0d23, 0xccbc, 0x4e12, [0x93, 0x1b, 0xd9, 0xcc, 0x2e, 0xee, 0x27, 0xe4]);

/// Microsoft-Windows-DotNETRuntimeRundown.
const RUNDOWN: Guid =
    Guid::new(0xa669_021c, 0xc450, 0x4609, [0xa0, 0x35, 0x5a, 0xf5, 0x9a, 0xf4, 0xdf, 0x18]);

/// The providers by name.
pub(crate) const PROVIDERS: [(&str, Guid); 2] = [
    ("Microsoft-Windows-DotNETRuntime", RUNTIME),
    ("Microsoft-Windows-DotNETRuntimeRundown", RUNDOWN),
];

pub(super) const METHOD_LOAD: EventId = EventId::Manifest { guid: RUNTIME, id: 143 };
pub(super) const METHOD_UNLOAD: EventId = EventId::Manifest { guid: RUNTIME, id: 144 };
pub(super) const METHOD_DC_START: EventId = EventId::Manifest { guid: RUNDOWN, id: 143 };
pub(super) const METHOD_DC_END: EventId = EventId::Manifest { guid: RUNDOWN, id: 144 };
pub(super) const MODULE_LOAD: EventId = EventId::Manifest { guid: RUNTIME, id: 152 };
pub(super) const MODULE_DC_START: EventId = EventId::Manifest { guid: RUNDOWN, id: 153 };
pub(super) const MODULE_DC_END: EventId = EventId::Manifest { guid: RUNDOWN, id: 154 };

/// A method with its name; texts are UTF-16 as they stand in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MethodEvent<'a> {
    pub(crate) action: Action,
    /// The runtime's number of its module, unique in the process.
    pub(crate) module_id: u64,
    /// First address of its code.
    pub(crate) address: u64,
    /// Size of its code, bytes.
    pub(crate) size: u32,
    /// Namespace and type, as in `System.String`.
    pub(crate) type_name: &'a [u8],
    /// Name, as in `Concat`.
    pub(crate) name: &'a [u8],
    /// Signature, as in `class System.String  (class System.String,class System.String)`.
    pub(crate) signature: &'a [u8],
}

impl<'a> MethodEvent<'a> {
    /// Decodes an event; `None` when it is another one, or too short.
    pub(crate) fn decode(event: &Event<'a>) -> Option<Self> {
        let action = match event.id {
            METHOD_LOAD => Action::Begin,
            METHOD_UNLOAD => Action::End,
            METHOD_DC_START | METHOD_DC_END => Action::Rundown,
            _ => return None,
        };
        let mut p = Payload::of(event);
        let _method_id = p.u64()?;
        let module_id = p.u64()?;
        let address = p.u64()?;
        let size = p.u32()?;
        let (_token, _flags) = (p.u32()?, p.u32()?);
        let (type_name, name, signature) = (text(&mut p), text(&mut p), text(&mut p));
        Some(Self { action, module_id, address, size, type_name, name, signature })
    }
}

/// A managed module with its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ModuleEvent<'a> {
    /// The runtime's number of the module, unique in the process.
    pub(crate) module_id: u64,
    /// Path of the assembly (IL), UTF-16 as it stands in the file.
    pub(crate) path: &'a [u8],
    /// The native image with its code, where there is one and the runtime logs which PDB it has.
    pub(crate) native: Option<NativeImage<'a>>,
}

/// An image of code that was compiled before, as NGEN makes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NativeImage<'a> {
    /// Path of the image, with a drive.
    pub(crate) path: &'a [u8],
    /// GUID of its PDB.
    pub(crate) guid: Guid,
    /// Age of its PDB.
    pub(crate) age: u32,
    /// Path of its PDB where that was made.
    pub(crate) pdb_path: &'a [u8],
}

impl<'a> ModuleEvent<'a> {
    /// Decodes an event; `None` when it is another one, or too short.
    pub(crate) fn decode(event: &Event<'a>) -> Option<Self> {
        if !matches!(event.id, MODULE_LOAD | MODULE_DC_START | MODULE_DC_END) {
            return None;
        }
        let mut p = Payload::of(event);
        let (module_id, _assembly_id) = (p.u64()?, p.u64()?);
        let (_flags, _reserved) = (p.u32()?, p.u32()?);
        let path = text(&mut p);
        Some(Self { module_id, path, native: native_image(p) })
    }
}

/// What follows the path of the assembly; only version 2 of the events has PDBs.
fn native_image<'a>(mut p: Payload<'a>) -> Option<NativeImage<'a>> {
    let path = text(&mut p);
    let _runtime = p.u16()?;
    let (_managed_guid, _managed_age) = (p.guid()?, p.u32()?);
    let _managed_pdb_path = text(&mut p);
    let image = NativeImage { path, guid: p.guid()?, age: p.u32()?, pdb_path: text(&mut p) };
    // Most modules have no native image, and then nothing but zeros here.
    (!path.is_empty() && image.guid != Guid([0; 16]) && !image.pdb_path.is_empty()).then_some(image)
}

/// A text, without its terminator, which the last one may lack.
fn text<'a>(p: &mut Payload<'a>) -> &'a [u8] {
    let text = utf16_bytes(p.rest());
    let _ = p.skip(text.len() + 2);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(id: EventId, payload: &[u8]) -> Event<'_> {
        Event { id, version: 1, payload, ..Event::default() }
    }

    fn utf16(text: &str) -> Vec<u8> {
        text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect()
    }

    fn method_payload() -> Vec<u8> {
        let mut payload = Vec::new();
        for number in [1_u64, 2, 0x7FF8_0000_1000] {
            payload.extend(number.to_le_bytes());
        }
        for number in [0x40_u32, 0x0600_0001, 0] {
            payload.extend(number.to_le_bytes());
        }
        for text in ["Leaky.Cache", "Get", "void  ()"] {
            payload.extend(utf16(text));
        }
        payload.extend([7, 0]);
        payload
    }

    #[test]
    fn a_method_has_its_address_and_its_three_texts() {
        let payload = method_payload();
        for (id, action) in [
            (METHOD_LOAD, Action::Begin),
            (METHOD_UNLOAD, Action::End),
            (METHOD_DC_START, Action::Rundown),
            (METHOD_DC_END, Action::Rundown),
        ] {
            let event = event(id, &payload);
            let method = MethodEvent::decode(&event).expect("a method");
            assert_eq!((method.action, method.module_id), (action, 2));
            assert_eq!((method.address, method.size), (0x7FF8_0000_1000, 0x40));
            let texts = [method.type_name, method.name, method.signature];
            assert_eq!(texts.map(crate::payload::utf16_text), ["Leaky.Cache", "Get", "void  ()"]);
        }
    }

    #[test]
    fn every_cut_payload_is_refused_or_loses_only_text() {
        let payload = method_payload();
        for length in 0..payload.len() {
            let event = event(METHOD_LOAD, &payload[..length]);
            assert_eq!(MethodEvent::decode(&event).is_some(), length >= 36, "{length}");
        }
    }

    #[test]
    fn a_module_has_the_pdb_of_its_native_image_if_it_has_one() {
        let pdb = Guid::new(1, 2, 3, [4; 8]);
        let payload = |native: &str, guid: Guid, pdb_path: &str| {
            let mut payload = Vec::new();
            payload.extend([9_u64, 8].into_iter().flat_map(u64::to_le_bytes));
            payload.extend([0; 8]);
            payload.extend(utf16(r"C:\x\Leaky.dll"));
            payload.extend(utf16(native));
            payload.extend([7, 0]);
            payload.extend([0xAA; 16]);
            payload.extend(1_u32.to_le_bytes());
            payload.extend(utf16("Leaky.pdb"));
            payload.extend(guid.0);
            payload.extend(5_u32.to_le_bytes());
            payload.extend(utf16(pdb_path));
            payload
        };
        let native = |payload: &[u8]| {
            let event = event(MODULE_DC_END, payload);
            let module = ModuleEvent::decode(&event).expect("a module");
            assert_eq!((module.module_id, module.path.len()), (9, 28));
            let texts = |image: NativeImage<'_>| {
                [image.path, image.pdb_path].map(crate::payload::utf16_text)
            };
            module.native.map(|image| (image.guid, image.age, texts(image)))
        };
        let whole = payload(r"C:\n\Leaky.ni.dll", pdb, "Leaky.ni.pdb");
        let texts = [r"C:\n\Leaky.ni.dll", "Leaky.ni.pdb"].map(str::to_owned);
        assert_eq!(native(&whole), Some((pdb, 5, texts)));
        assert_eq!(native(&payload("", pdb, "Leaky.ni.pdb")), None);
        assert_eq!(native(&payload(r"C:\n\Leaky.ni.dll", Guid([0; 16]), "")), None);
        // Before version 2 nothing follows the paths.
        assert_eq!(native(&whole[..whole.len() - 80]), None);
    }

    #[test]
    fn a_method_is_not_a_module() {
        assert_eq!(ModuleEvent::decode(&event(METHOD_LOAD, &method_payload())), None);
    }
}
