//! The methods of a trace.

use std::collections::HashMap;

use handlescope_model::Table;

use super::clr::{
    METHOD_DC_END, METHOD_DC_START, METHOD_LOAD, METHOD_UNLOAD, MODULE_DC_END, MODULE_DC_START,
    MODULE_LOAD, MethodEvent, ModuleEvent,
};
use super::native_images::NativeImages;
use crate::etl::{Event, EventId};
use crate::payload::{Field, utf16_text};
use crate::raw::{Action, EventFamily, NameInterner, Shared};

/// A method whose code was in memory for some time; times are raw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MethodRow {
    pub pid: u32,
    /// First address of its code.
    pub address: u64,
    /// Size of its code, bytes.
    pub size: u32,
    /// The runtime's number of its module.
    pub module_id: u64,
    /// Namespace and type, in [`Methods::names`].
    pub type_name: u32,
    pub name: u32,
    pub signature: u32,
    /// When its code came; `None` when it was there before.
    pub load: Option<i64>,
    /// When its code went; `None` when it stayed.
    pub unload: Option<i64>,
    /// A time at which it was surely there.
    pub seen: i64,
}

/// Gathers methods and the modules they belong to.
#[derive(Default)]
pub struct Methods {
    /// Every method, one row for each time its code was in memory.
    pub rows: Vec<MethodRow>,
    pub names: NameInterner,
    pub native_images: NativeImages,
    /// Paths of modules by process and module number, in `names`.
    modules: HashMap<(u32, u64), u32>,
    /// Row of the method that is at an address now.
    live: HashMap<(u32, u64), u32>,
}

impl EventFamily for Methods {
    const EVENTS: &'static [(EventId, &'static str)] = &[
        (METHOD_LOAD, "MethodLoadVerbose"),
        (METHOD_UNLOAD, "MethodUnloadVerbose"),
        (METHOD_DC_START, "MethodDCStartVerbose"),
        (METHOD_DC_END, "MethodDCEndVerbose"),
        (MODULE_LOAD, "ModuleLoad"),
        (MODULE_DC_START, "ModuleDCStart"),
        (MODULE_DC_END, "ModuleDCEnd"),
    ];
    const TABLES: &'static [Table] = &[Table::Methods];

    fn fields(event: &Event<'_>) -> &'static [Field] {
        use Field::{Bytes, Utf16};
        match event.id {
            // Paths of assembly and native image, and for each of them the identity of its PDB.
            MODULE_LOAD | MODULE_DC_START | MODULE_DC_END => {
                &[Bytes(24), Utf16, Utf16, Bytes(22), Utf16, Bytes(20), Utf16]
            }
            _ => &[Bytes(36), Utf16, Utf16, Utf16],
        }
    }

    fn take(&mut self, event: &Event<'_>, _: &mut Shared) -> Option<()> {
        let pid = event.pid?;
        match ModuleEvent::decode(event) {
            Some(module) => self.module(&module, pid),
            None => self.event(&MethodEvent::decode(event)?, pid, event.time),
        }
        Some(())
    }
}

impl Methods {
    /// Takes a method event of a process.
    fn event(&mut self, method: &MethodEvent<'_>, pid: u32, time: i64) {
        let key = (pid, method.address);
        let live = self.live.get(&key).copied();
        let row = live.and_then(|row| self.rows.get(row as usize)).copied();
        let is_same = row.is_some_and(|row| self.is_same(&row, method));
        match method.action {
            Action::Rundown if is_same => {}
            Action::Begin => self.add(method, pid, time, Some(time)),
            Action::Rundown => self.add(method, pid, time, None),
            Action::End => {
                if !is_same {
                    self.add(method, pid, time, None);
                }
                self.end(key, time);
            }
        }
    }

    /// Takes a module event of a process.
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

    /// The file name of a method's module, as in `System.Core.dll`; `None` when no event names it.
    pub fn module_name(&self, row: &MethodRow) -> Option<String> {
        let path = self.names.text(*self.modules.get(&(row.pid, row.module_id))?);
        let name = path.rsplit(['\\', '/']).next().unwrap_or_default();
        (!name.is_empty()).then(|| name.to_owned())
    }

    /// Whether an event is about the method of a row rather than about one that took its place.
    fn is_same(&mut self, row: &MethodRow, method: &MethodEvent<'_>) -> bool {
        row.size == method.size
            && row.name == self.names.intern(method.name)
            && row.type_name == self.names.intern(method.type_name)
    }

    fn add(&mut self, method: &MethodEvent<'_>, pid: u32, time: i64, load: Option<i64>) {
        let key = (pid, method.address);
        // What was there before has gone, though no event said so.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn method(action: Action, address: u64, name: &[u8]) -> MethodEvent<'_> {
        let (type_name, signature) = (&b"T\0"[..], &b""[..]);
        MethodEvent { action, module_id: 9, address, size: 16, type_name, name, signature }
    }

    fn times(methods: &Methods) -> Vec<(u64, Option<i64>, Option<i64>)> {
        methods.rows.iter().map(|row| (row.address, row.load, row.unload)).collect()
    }

    #[test]
    fn a_rundown_adds_nothing_to_a_method_that_is_known() {
        let mut methods = Methods::default();
        methods.event(&method(Action::Begin, 0x100, b"a\0"), 7, 10);
        methods.event(&method(Action::Rundown, 0x100, b"a\0"), 7, 90);
        methods.event(&method(Action::Rundown, 0x200, b"b\0"), 7, 91);
        methods.event(&method(Action::Rundown, 0x100, b"a\0"), 8, 92);
        assert_eq!(
            times(&methods),
            [(0x100, Some(10), None), (0x200, None, None), (0x100, None, None)]
        );
    }

    #[test]
    fn an_address_that_is_used_again_is_another_method() {
        let mut methods = Methods::default();
        methods.event(&method(Action::Begin, 0x100, b"a\0"), 7, 10);
        methods.event(&method(Action::End, 0x100, b"a\0"), 7, 20);
        methods.event(&method(Action::Begin, 0x100, b"b\0"), 7, 30);
        methods.event(&method(Action::Begin, 0x100, b"c\0"), 7, 40);
        assert_eq!(
            times(&methods),
            [(0x100, Some(10), Some(20)), (0x100, Some(30), Some(40)), (0x100, Some(40), None)]
        );
    }

    #[test]
    fn an_unload_without_a_load_is_of_a_method_that_was_there_before() {
        let mut methods = Methods::default();
        methods.event(&method(Action::End, 0x100, b"a\0"), 7, 20);
        assert_eq!(times(&methods), [(0x100, None, Some(20))]);
    }

    #[test]
    fn a_module_is_known_by_its_file_name_in_its_own_process() {
        let mut methods = Methods::default();
        methods.event(&method(Action::Begin, 0x100, b"a\0"), 7, 10);
        methods.event(&method(Action::Begin, 0x100, b"a\0"), 8, 10);
        let path: Vec<u8> = r"C:\x\Leaky.dll".encode_utf16().flat_map(u16::to_le_bytes).collect();
        methods.module(&ModuleEvent { module_id: 9, path: &path, native: None }, 7);
        let names: Vec<_> = methods.rows.iter().map(|row| methods.module_name(row)).collect();
        assert_eq!(names, [Some("Leaky.dll".to_owned()), None]);
    }
}
