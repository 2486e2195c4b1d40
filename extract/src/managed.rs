//! Event family of managed code: methods of the .NET runtime by process, address and time.
//!
//! The runtime has an event for every method it compiles or finds compiled, and at the end of a session a rundown of
//! those that exist. Code compiled at run time is in no image, so only these events name its addresses. Only merged
//! traces have identity records for every image; for native images (NGEN), the runtime's own module events also
//! identify their PDBs.
//!
//! Layouts are from the manifests in dotnet/runtime (`ClrEtwAll.man`): MethodLoadUnloadVerbose and
//! MethodDCStart/EndVerbose (templates `MethodLoadUnloadVerbose*`), ModuleLoadUnload and ModuleDCStart/End (templates
//! `ModuleLoadUnload*`). CLR 2.0 logs its rundown with its own ids (`*V2`), in the layout of the first versions of
//! these events. Addresses in them have 64 bits even in 32-bit processes.

use std::collections::HashMap;

use handlescope_model::Table;
use uuid::uuid;

use crate::etl::{Event, EventId, Guid};
use crate::kernel::{ImagePath, Images};
use crate::payload::{Field, Payload, utf16_bytes, utf16_text};
use crate::raw::{EventFamily, LifeEvent, NameInterner, PassState};
use crate::stacks::RUNTIME;

/// Microsoft-Windows-DotNETRuntimeRundown.
const RUNDOWN: Guid = Guid::from_uuid(uuid!("a669021c-c450-4609-a035-5af59af4df18"));

/// The providers by name.
pub const PROVIDERS: [(&str, Guid); 2] = [
    ("Microsoft-Windows-DotNETRuntime", RUNTIME),
    ("Microsoft-Windows-DotNETRuntimeRundown", RUNDOWN),
];

const METHOD_LOAD: EventId = EventId::Manifest { guid: RUNTIME, id: 143 };
const METHOD_UNLOAD: EventId = EventId::Manifest { guid: RUNTIME, id: 144 };
const METHOD_DC_START: EventId = EventId::Manifest { guid: RUNDOWN, id: 143 };
const METHOD_DC_END: EventId = EventId::Manifest { guid: RUNDOWN, id: 144 };
/// CLR 2.0 has no separate provider for rundowns.
const METHOD_DC_START_V2: EventId = EventId::Manifest { guid: RUNTIME, id: 139 };
const METHOD_DC_END_V2: EventId = EventId::Manifest { guid: RUNTIME, id: 140 };
const MODULE_LOAD: EventId = EventId::Manifest { guid: RUNTIME, id: 152 };
const MODULE_DC_START: EventId = EventId::Manifest { guid: RUNDOWN, id: 153 };
const MODULE_DC_END: EventId = EventId::Manifest { guid: RUNDOWN, id: 154 };
const MODULE_DC_START_V2: EventId = EventId::Manifest { guid: RUNTIME, id: 149 };
const MODULE_DC_END_V2: EventId = EventId::Manifest { guid: RUNTIME, id: 150 };

/// Events of modules.
const MODULES: [EventId; 5] =
    [MODULE_LOAD, MODULE_DC_START, MODULE_DC_END, MODULE_DC_START_V2, MODULE_DC_END_V2];

/// Method with its name; texts are UTF-16 bytes from the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MethodEvent<'a> {
    pub action: LifeEvent,
    /// Runtime's number of its module, unique in the process.
    pub module_id: u64,
    /// Start address of its code.
    pub address: u64,
    /// Size of its code in bytes.
    pub size: u32,
    /// Namespace and type, such as `System.String`.
    pub type_name: &'a [u8],
    /// Name, such as `Concat`.
    pub name: &'a [u8],
    /// Signature, such as `class System.String  (class System.String,class System.String)`.
    pub signature: &'a [u8],
}

impl<'a> MethodEvent<'a> {
    /// Decodes a method event; `None` for other events and short payloads.
    pub fn decode(event: &Event<'a>) -> Option<Self> {
        let action = match event.id {
            METHOD_LOAD => LifeEvent::Begin,
            METHOD_UNLOAD => LifeEvent::End,
            METHOD_DC_START | METHOD_DC_END | METHOD_DC_START_V2 | METHOD_DC_END_V2 => {
                LifeEvent::Rundown
            }
            _ => return None,
        };
        let mut p = Payload::from_event(event);
        let _method_id = p.u64()?;
        let module_id = p.u64()?;
        let address = p.u64()?;
        let size = p.u32()?;
        let (_token, _flags) = (p.u32()?, p.u32()?);
        let (type_name, name, signature) = (text(&mut p), text(&mut p), text(&mut p));
        Some(Self { action, module_id, address, size, type_name, name, signature })
    }
}

/// Managed module with its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModuleEvent<'a> {
    /// Runtime's number of the module, unique in the process.
    pub module_id: u64,
    /// Path of the assembly (IL), as UTF-16 bytes from the file.
    pub path: &'a [u8],
    /// Native image with its code, if there is one and the runtime logs its PDB.
    pub native: Option<NativeImage<'a>>,
}

/// Image of precompiled code, as created by NGEN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NativeImage<'a> {
    /// Path of the image, with a drive.
    pub path: &'a [u8],
    /// GUID of its PDB.
    pub guid: Guid,
    /// Age of its PDB.
    pub age: u32,
    /// Path of its PDB where it was built.
    pub pdb_path: &'a [u8],
}

impl<'a> ModuleEvent<'a> {
    /// Decodes a module event; `None` for other events and short payloads.
    pub fn decode(event: &Event<'a>) -> Option<Self> {
        if !MODULES.contains(&event.id) {
            return None;
        }
        let mut p = Payload::from_event(event);
        let (module_id, _assembly_id) = (p.u64()?, p.u64()?);
        let (_flags, _reserved) = (p.u32()?, p.u32()?);
        let path = text(&mut p);
        Some(Self { module_id, path, native: native_image(p) })
    }
}

/// Decodes the fields after the assembly's path; only version 2 of the events has PDBs.
fn native_image<'a>(mut p: Payload<'a>) -> Option<NativeImage<'a>> {
    let path = text(&mut p);
    let _runtime = p.u16()?;
    let (_managed_guid, _managed_age) = (p.guid()?, p.u32()?);
    let _managed_pdb_path = text(&mut p);
    let image = NativeImage { path, guid: p.guid()?, age: p.u32()?, pdb_path: text(&mut p) };
    // Most modules have no native image, and only zeros here.
    (!path.is_empty() && image.guid != Guid([0; 16]) && !image.pdb_path.is_empty()).then_some(image)
}

/// Reads a text without its terminator, which the last text may lack.
fn text<'a>(p: &mut Payload<'a>) -> &'a [u8] {
    let text = utf16_bytes(p.rest());
    let _ = p.skip(text.len() + 2);
    text
}

/// Method with code that was in memory for some time; times are raw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MethodRow {
    pub pid: u32,
    /// Start address of its code.
    pub address: u64,
    /// Size of its code in bytes.
    pub size: u32,
    /// Runtime's number of its module.
    pub module_id: u64,
    /// Namespace and type, in [`Methods::names`].
    pub type_name: u32,
    pub name: u32,
    pub signature: u32,
    /// Load time of its code; `None` if it was loaded before the trace.
    pub load: Option<i64>,
    /// Unload time of its code; `None` if it stayed loaded.
    pub unload: Option<i64>,
    /// Time at which it certainly existed.
    pub seen: i64,
}

/// Collects methods and the modules they belong to.
#[derive(Default)]
pub struct Methods {
    /// All methods, one row for each time a method's code was in memory.
    pub rows: Vec<MethodRow>,
    pub names: NameInterner,
    pub native_images: NativeImages,
    /// Paths of modules in `names`, by process and module number.
    modules: HashMap<(u32, u64), u32>,
    /// Row of the method currently at an address.
    live: HashMap<(u32, u64), u32>,
}

impl EventFamily for Methods {
    const EVENTS: &'static [(EventId, &'static str)] = &[
        (METHOD_LOAD, "MethodLoadVerbose"),
        (METHOD_UNLOAD, "MethodUnloadVerbose"),
        (METHOD_DC_START, "MethodDCStartVerbose"),
        (METHOD_DC_END, "MethodDCEndVerbose"),
        (METHOD_DC_START_V2, "MethodDCStartVerboseV2"),
        (METHOD_DC_END_V2, "MethodDCEndVerboseV2"),
        (MODULE_LOAD, "ModuleLoad"),
        (MODULE_DC_START, "ModuleDCStart"),
        (MODULE_DC_END, "ModuleDCEnd"),
        (MODULE_DC_START_V2, "ModuleDCStartV2"),
        (MODULE_DC_END_V2, "ModuleDCEndV2"),
    ];
    const TABLES: &'static [Table] = &[Table::Methods];

    fn fields(event: &Event<'_>) -> &'static [Field] {
        use Field::{Bytes, Utf16};
        match event.id {
            // Paths of assembly and native image, and for each the identity of its PDB.
            id if MODULES.contains(&id) => {
                &[Bytes(24), Utf16, Utf16, Bytes(22), Utf16, Bytes(20), Utf16]
            }
            _ => &[Bytes(36), Utf16, Utf16, Utf16],
        }
    }

    fn take(&mut self, event: &Event<'_>, _: &mut PassState) -> Option<()> {
        let pid = event.pid?;
        match ModuleEvent::decode(event) {
            Some(module) => self.module(&module, pid),
            None => self.event(&MethodEvent::decode(event)?, pid, event.time),
        }
        Some(())
    }
}

impl Methods {
    /// Handles a method event of a process.
    fn event(&mut self, method: &MethodEvent<'_>, pid: u32, time: i64) {
        let key = (pid, method.address);
        let live = self.live.get(&key).copied();
        let row = live.and_then(|row| self.rows.get(row as usize)).copied();
        let is_same = row.is_some_and(|row| self.is_same(&row, method));
        match method.action {
            LifeEvent::Rundown if is_same => {}
            LifeEvent::Begin => self.add(method, pid, time, Some(time)),
            LifeEvent::Rundown => self.add(method, pid, time, None),
            LifeEvent::End => {
                if !is_same {
                    self.add(method, pid, time, None);
                }
                self.end(key, time);
            }
        }
    }

    /// Handles a module event of a process.
    fn module(&mut self, module: &ModuleEvent<'_>, pid: u32) {
        let path = self.names.intern(module.path);
        self.modules.insert((pid, module.module_id), path);
        if let Some(image) = &module.native {
            let path = utf16_text(image.path);
            let pdb_path = utf16_text(image.pdb_path);
            let name = pdb_path.rsplit(['\\', '/']).next().unwrap_or_default();
            self.native_images.add(pid, &path, (image.guid, image.age, name.to_owned()));
        }
    }

    /// Returns the file name of a method's module, such as `System.Core.dll`; `None` if no event names it.
    pub fn module_name(&self, row: &MethodRow) -> Option<String> {
        let path = self.names.text(*self.modules.get(&(row.pid, row.module_id))?);
        let name = path.rsplit(['\\', '/']).next().unwrap_or_default();
        (!name.is_empty()).then(|| name.to_owned())
    }

    /// Whether an event is about a row's method rather than one that replaced it.
    fn is_same(&mut self, row: &MethodRow, method: &MethodEvent<'_>) -> bool {
        row.size == method.size
            && row.name == self.names.intern(method.name)
            && row.type_name == self.names.intern(method.type_name)
    }

    fn add(&mut self, method: &MethodEvent<'_>, pid: u32, time: i64, load: Option<i64>) {
        let key = (pid, method.address);
        // Whatever was there before is gone, even without an event.
        self.end(key, time);
        self.live.insert(key, self.rows.len() as u32);
        self.rows.push(MethodRow {
            pid,
            address: method.address,
            size: method.size,
            module_id: method.module_id,
            type_name: self.names.intern(method.type_name),
            name: self.names.intern(method.name),
            signature: self.names.intern(method.signature),
            load,
            unload: None,
            seen: time,
        });
    }

    fn end(&mut self, key: (u32, u64), time: i64) {
        let row = self.live.remove(&key).and_then(|row| self.rows.get_mut(row as usize));
        if let Some(row) = row {
            row.unload = Some(time);
        }
    }
}

/// GUID, age and file name of a PDB.
type ManagedPdb = (Guid, u32, String);

/// PDBs of native images, by process and path on the volume: the kernel writes `\Device\HarddiskVolume3\Windows` where
/// the runtime writes `C:\Windows`.
#[derive(Debug, Default)]
pub struct NativeImages(HashMap<(u32, String), ManagedPdb>);

impl NativeImages {
    /// Adds what the runtime said in a process; `path` has a drive.
    pub fn add(&mut self, pid: u32, path: &str, pdb: ManagedPdb) {
        self.0.insert((pid, ImagePath::parse(path).rest), pdb);
    }

    /// Gives the identities to images without one.
    pub fn identify(&self, images: &mut Images) {
        if self.0.is_empty() {
            return;
        }
        let paths: Vec<String> =
            images.paths.iter().map(|path| ImagePath::parse(path).rest).collect();
        for row in images.rows.iter_mut().filter(|row| row.file.pdb.is_none()) {
            let Some(path) = paths.get(row.path as usize) else { continue };
            row.file.pdb = self.0.get(&(row.pid, path.clone())).cloned();
        }
    }
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
            (METHOD_LOAD, LifeEvent::Begin),
            (METHOD_UNLOAD, LifeEvent::End),
            (METHOD_DC_START, LifeEvent::Rundown),
            (METHOD_DC_END, LifeEvent::Rundown),
            (METHOD_DC_START_V2, LifeEvent::Rundown),
            (METHOD_DC_END_V2, LifeEvent::Rundown),
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
    fn a_module_has_the_pdb_of_its_native_image_if_any() {
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
            let image = module.native?;
            let texts = [image.path, image.pdb_path].map(crate::payload::utf16_text);
            Some((image.guid, image.age, texts))
        };
        let whole = payload(r"C:\n\Leaky.ni.dll", pdb, "Leaky.ni.pdb");
        let texts = [r"C:\n\Leaky.ni.dll", "Leaky.ni.pdb"].map(str::to_owned);
        assert_eq!(native(&whole), Some((pdb, 5, texts)));
        assert_eq!(native(&payload("", pdb, "Leaky.ni.pdb")), None);
        assert_eq!(native(&payload(r"C:\n\Leaky.ni.dll", Guid([0; 16]), "")), None);
        // Before version 2, nothing follows the paths.
        assert_eq!(native(&whole[..whole.len() - 80]), None);
    }

    #[test]
    fn a_method_is_not_a_module() {
        assert_eq!(ModuleEvent::decode(&event(METHOD_LOAD, &method_payload())), None);
    }

    fn method(action: LifeEvent, address: u64, name: &[u8]) -> MethodEvent<'_> {
        let (type_name, signature) = (&b"T\0"[..], &b""[..]);
        MethodEvent { action, module_id: 9, address, size: 16, type_name, name, signature }
    }

    fn times(methods: &Methods) -> Vec<(u64, Option<i64>, Option<i64>)> {
        methods.rows.iter().map(|row| (row.address, row.load, row.unload)).collect()
    }

    #[test]
    fn a_rundown_adds_nothing_to_a_method_that_is_known() {
        let mut methods = Methods::default();
        methods.event(&method(LifeEvent::Begin, 0x100, b"a\0"), 7, 10);
        methods.event(&method(LifeEvent::Rundown, 0x100, b"a\0"), 7, 90);
        methods.event(&method(LifeEvent::Rundown, 0x200, b"b\0"), 7, 91);
        methods.event(&method(LifeEvent::Rundown, 0x100, b"a\0"), 8, 92);
        assert_eq!(
            times(&methods),
            [(0x100, Some(10), None), (0x200, None, None), (0x100, None, None)]
        );
    }

    #[test]
    fn an_address_that_is_used_again_is_another_method() {
        let mut methods = Methods::default();
        methods.event(&method(LifeEvent::Begin, 0x100, b"a\0"), 7, 10);
        methods.event(&method(LifeEvent::End, 0x100, b"a\0"), 7, 20);
        methods.event(&method(LifeEvent::Begin, 0x100, b"b\0"), 7, 30);
        methods.event(&method(LifeEvent::Begin, 0x100, b"c\0"), 7, 40);
        assert_eq!(
            times(&methods),
            [(0x100, Some(10), Some(20)), (0x100, Some(30), Some(40)), (0x100, Some(40), None)]
        );
    }

    #[test]
    fn an_unload_without_a_load_is_of_a_method_that_was_there_before() {
        let mut methods = Methods::default();
        methods.event(&method(LifeEvent::End, 0x100, b"a\0"), 7, 20);
        assert_eq!(times(&methods), [(0x100, None, Some(20))]);
    }

    #[test]
    fn a_module_is_known_by_its_file_name_within_its_process() {
        let mut methods = Methods::default();
        methods.event(&method(LifeEvent::Begin, 0x100, b"a\0"), 7, 10);
        methods.event(&method(LifeEvent::Begin, 0x100, b"a\0"), 8, 10);
        let path: Vec<u8> = r"C:\x\Leaky.dll".encode_utf16().flat_map(u16::to_le_bytes).collect();
        methods.module(&ModuleEvent { module_id: 9, path: &path, native: None }, 7);
        let names: Vec<_> = methods.rows.iter().map(|row| methods.module_name(row)).collect();
        assert_eq!(names, [Some("Leaky.dll".to_owned()), None]);
    }
}

#[cfg(test)]
mod native_images_tests {
    use super::*;
    use crate::kernel::ImagePayload;

    fn utf16(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_le_bytes).collect()
    }

    #[test]
    fn an_image_of_the_process_without_a_pdb_gets_it() {
        let pdb = |age| (Guid([1; 16]), age, "Leaky.ni.pdb".to_owned());
        let mut native = NativeImages::default();
        native.add(7, r"C:\x\Leaky.ni.dll", pdb(1));
        let mut images = Images::default();
        let path = utf16(r"\Device\HarddiskVolume3\x\leaky.ni.dll");
        for (pid, base) in [(7, 0x1000), (7, 0x2000), (8, 0x1000)] {
            let image = ImagePayload {
                action: LifeEvent::Begin,
                base,
                size: 0x100,
                pid,
                checksum: 1,
                timestamp: 0,
                path: &path,
            };
            images.event(&image, 1);
        }
        images.rows[1].file.pdb = Some(pdb(2));
        native.identify(&mut images);
        let ages: Vec<_> =
            images.rows.iter().map(|row| row.file.pdb.as_ref().map(|pdb| pdb.1)).collect();
        assert_eq!(ages, [Some(1), Some(2), None]);
    }
}
