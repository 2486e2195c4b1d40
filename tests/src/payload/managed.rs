//! Events of the .NET runtime and of its rundown: methods and modules.
//!
//! The layouts are the templates `MethodLoadUnloadVerbose` and `ModuleLoadUnload` in dotnet/runtime's `ClrEtwAll.man`.

use super::DebugId;
use crate::bytes::{ByteString, Guid, PointerSize};
use crate::header::{ManifestEvent, Stamp};

/// Microsoft-Windows-DotNETRuntime.
pub const CLR_PROVIDER: Guid = Guid::new(0xe13c0d23_ccbc_4e12_931b_d9cc2eee27e4);

/// Microsoft-Windows-DotNETRuntimeRundown.
const CLR_RUNDOWN_PROVIDER: Guid = Guid::new(0xa669021c_c450_4609_a035_5af59af4df18);

/// Kind of method event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MethodEvent {
    /// MethodLoadVerbose.
    Load,
    /// MethodUnloadVerbose.
    Unload,
    /// MethodDCEndVerbose.
    RundownEnd,
    /// MethodDCEndVerboseV2 of CLR 2.0.
    RundownEndV2,
}

/// A method of managed code.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MethodRecord {
    /// The runtime's id for the module.
    pub module_id: u64,
    /// First address of its code.
    pub address: u64,
    /// Size of its code, bytes.
    pub size: u32,
    /// Namespace and type.
    pub type_name: String,
    pub name: String,
    pub signature: String,
}

impl MethodRecord {
    /// Returns the bytes of the event.
    #[must_use]
    pub fn event(&self, event: MethodEvent, pointer: PointerSize, stamp: Stamp) -> Vec<u8> {
        let (provider, id) = match event {
            MethodEvent::Load => (CLR_PROVIDER, 143),
            MethodEvent::Unload => (CLR_PROVIDER, 144),
            MethodEvent::RundownEnd => (CLR_RUNDOWN_PROVIDER, 144),
            MethodEvent::RundownEndV2 => (CLR_PROVIDER, 140),
        };
        let payload = ByteString::new()
            .u64(self.address ^ 0x55) // the method's own id
            .u64(self.module_id)
            .u64(self.address)
            .u32(self.size)
            .u32(0x0600_0001) // token
            .u32(1) // flags
            .utf16z(&self.type_name)
            .utf16z(&self.name)
            .utf16z(&self.signature);
        // CLR 2.0 was the only runtime of its process, and had no instance number.
        let payload = if event == MethodEvent::RundownEndV2 { payload } else { payload.u16(9) };
        manifest(provider, id, pointer, stamp, payload)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ManagedModule {
    /// The runtime's id for the module.
    pub module_id: u64,
    /// Path of the assembly.
    pub path: String,
    /// Path of its native image; empty if there is none.
    pub native_path: String,
    /// PDB of the native image.
    pub native_pdb: DebugId,
}

impl ManagedModule {
    /// Returns the rundown event (ModuleDCEnd).
    #[must_use]
    pub fn rundown(&self, pointer: PointerSize, stamp: Stamp) -> Vec<u8> {
        let payload = ByteString::new()
            .u64(self.module_id)
            .u64(1) // assembly
            .u32(0) // flags
            .u32(0)
            .utf16z(&self.path)
            .utf16z(&self.native_path)
            .u16(9) // instance of the runtime
            .guid(Guid::new(0x1111_2222_3333_4444_5555_6666_7777_8888))
            .u32(1)
            .utf16z("managed.pdb")
            .guid(self.native_pdb.guid)
            .u32(self.native_pdb.age)
            .utf16z(&self.native_pdb.name);
        manifest(CLR_RUNDOWN_PROVIDER, 154, pointer, stamp, payload)
    }

    /// Returns the rundown event of CLR 2.0 (ModuleDCEndV2), which has no PDBs.
    #[must_use]
    pub fn rundown_v2(&self, pointer: PointerSize, stamp: Stamp) -> Vec<u8> {
        let payload = ByteString::new().u64(self.module_id).u64(1).u32(0).u32(0);
        let payload = payload.utf16z(&self.path).utf16z(&self.native_path);
        manifest(CLR_PROVIDER, 150, pointer, stamp, payload)
    }
}

fn manifest(
    provider: Guid,
    id: u16,
    pointer: PointerSize,
    stamp: Stamp,
    payload: ByteString,
) -> Vec<u8> {
    let payload = payload.into_vec();
    ManifestEvent { pointer, provider, id, version: 1, stamp, payload, ..Default::default() }
        .encode()
}
