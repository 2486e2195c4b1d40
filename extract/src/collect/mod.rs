//! Events → raw columns: the one pass over the file.
//!
//! [`Collector`] dispatches each event to the collection of its family. Raw means: times are
//! ticks, processes are pids, stacks are fragments. What depends on the whole trace, such as a
//! process that only the rundown at the end names, is resolved afterwards from these columns.

mod counter;
mod handle_events;
mod images;
mod interner;
mod native_images;
mod processes;

pub use counter::{EventCounter, KernelSelector};
pub use handle_events::{DuplicateDetail, HandleEvents, RawKind, RawRow, UNKNOWN_ID, ViewDetail};
pub use images::{ImageFile, ImageRow, Images};
pub use interner::NameInterner;
pub use native_images::NativeImages;
pub use processes::{ProcessRow, Processes};

use std::collections::{BTreeMap, HashSet};

use crate::etl::{Diagnostics, Event, EventId, WarningKind};
use crate::kernel::{
    DuplicateHandle, FileMap, FileVersion, HandleEvent, HandleRundown, IMAGE_ID_GUID, Image,
    ImageId, LOST_EVENT_GUID, ObjectChange, Process, Rsds, SYSTEM_FACTS_GUID, StackKeyFrames,
    StackKeyRef, StackWalk, SystemBuild, Thread, TypeName, computer_name, hook, memory_size,
    utf16_text,
};
use crate::managed::{MethodEvent, Methods, ModuleEvent, wanted};
use crate::stacks::StackSink;

/// A handle of the rundown at the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawStartHandle {
    /// Kernel address of the object.
    pub object: u64,
    /// Process id.
    pub pid: u32,
    /// Handle value.
    pub handle: u32,
    /// Type id.
    pub type_id: u16,
    /// Name, 0 for none.
    pub name: u32,
    /// Raw time.
    pub time: i64,
}

/// Everything that one pass over a trace gathers.
///
/// `S` takes the stacks: [`crate::stacks::EventStacks`] keeps those of handle events,
/// [`crate::stacks::AllStacks`] every one.
pub struct Collector<S> {
    /// Process lifetimes.
    pub processes: Processes,
    /// Images and their identities.
    pub images: Images,
    /// Distinct threads, as (pid, tid).
    pub threads: HashSet<(u32, u32)>,
    /// Type names by type id.
    pub types: BTreeMap<u16, String>,
    /// Object names.
    pub names: NameInterner,
    /// Handle, object, reference, map and end rundown events in time order.
    pub events: HandleEvents,
    /// Handles open at the start.
    pub start_handles: Vec<RawStartHandle>,
    /// Methods of managed code.
    pub methods: Methods,
    /// Their native images.
    pub native_images: NativeImages,
    /// Windows build of the recording system.
    pub build: Option<SystemBuild>,
    /// Name of the recording computer.
    pub computer: Option<String>,
    /// Its memory, MB.
    pub memory_mb: Option<u32>,
    /// Stacks.
    pub stacks: S,
    /// What went wrong.
    pub diagnostics: Diagnostics,
}

impl<S: StackSink> Collector<S> {
    /// An empty collection.
    pub fn new(stacks: S) -> Self {
        Self {
            processes: Processes::default(),
            images: Images::default(),
            threads: HashSet::new(),
            types: BTreeMap::new(),
            names: NameInterner::default(),
            events: HandleEvents::default(),
            start_handles: Vec::new(),
            methods: Methods::default(),
            native_images: NativeImages::default(),
            build: None,
            computer: None,
            memory_mb: None,
            stacks,
            diagnostics: Diagnostics::default(),
        }
    }

    /// Takes one event; events must come in time order.
    pub fn event(&mut self, event: &Event<'_>) {
        let known = match event.id {
            EventId::Hook(hook) => self.hook(hook, event),
            EventId::Classic { guid, opcode } if guid == IMAGE_ID_GUID => {
                self.identity(opcode, event)
            }
            EventId::Classic { guid, opcode: SystemBuild::OPCODE } if guid == SYSTEM_FACTS_GUID => {
                SystemBuild::decode(event).map(|build| self.build = Some(build))
            }
            EventId::Classic { guid, .. } if guid == LOST_EVENT_GUID => {
                self.diagnostics.count(WarningKind::LossRecord, Some(event.offset));
                Some(())
            }
            EventId::Manifest { .. } if wanted(event.id) => self.managed(event),
            _ => Some(()),
        };
        if known.is_none() {
            self.diagnostics.count(WarningKind::ShortPayload, Some(event.offset));
        }
    }

    /// Takes the end of the trace.
    pub fn finish(&mut self) {
        self.stacks.finish(&mut self.events, &mut self.diagnostics);
        self.images.finish(&mut self.diagnostics);
        self.native_images.identify(&mut self.images);
    }

    /// `None` when the payload is too short.
    fn hook(&mut self, hook: u16, event: &Event<'_>) -> Option<()> {
        match hook {
            hook::STACK_WALK => {
                let walk = StackWalk::decode(event)?;
                self.stacks.walk(&walk, event, &mut self.events);
            }
            hook::STACK_KEY_KERNEL | hook::STACK_KEY_USER => {
                let reference = StackKeyRef::decode(event)?;
                let is_kernel = hook == hook::STACK_KEY_KERNEL;
                self.stacks.key_reference(&reference, is_kernel, event, &mut self.events);
            }
            hook::STACK_KEY_DELETE | hook::STACK_KEY_RUNDOWN => {
                self.stacks.key_frames(&StackKeyFrames::decode(event)?, event);
            }
            hook::PROCESS_START..=hook::PROCESS_DC_END => {
                self.processes.event(Process::decode(event)?, event.time);
            }
            hook::THREAD_START..=hook::THREAD_DC_END => {
                let thread = Thread::decode(event)?;
                self.threads.insert((thread.pid, thread.tid));
            }
            hook::IMAGE_LOAD | hook::IMAGE_UNLOAD..=hook::IMAGE_DC_END => {
                self.images.event(&Image::decode(event)?, event.time);
            }
            hook::TYPE_DC_START | hook::TYPE_DC_END => {
                let name = TypeName::decode(event)?;
                self.types.insert(name.type_id, name.name);
            }
            hook::SYSTEM_CPU => {
                self.computer = computer_name(event).or(self.computer.take());
                self.memory_mb = memory_size(event).or(self.memory_mb);
            }
            _ => return self.object_hook(hook, event),
        }
        Some(())
    }

    fn object_hook(&mut self, hook: u16, event: &Event<'_>) -> Option<()> {
        let row = match hook {
            hook::CREATE_HANDLE | hook::CLOSE_HANDLE => {
                let handle = HandleEvent::decode(event)?;
                let kind =
                    if hook == hook::CREATE_HANDLE { RawKind::Create } else { RawKind::Close };
                RawRow {
                    object: handle.object,
                    value: handle.handle,
                    type_id: handle.type_id,
                    name: self.names.intern(handle.name),
                    ..RawRow::of(kind, event)
                }
            }
            hook::DUPLICATE_HANDLE => {
                let duplicate = DuplicateHandle::decode(event)?;
                self.events.push_duplicate_detail(DuplicateDetail {
                    source_handle: duplicate.source_handle,
                    target_pid: duplicate.target_pid,
                    source_pid: duplicate.source_pid,
                });
                RawRow {
                    object: duplicate.object,
                    value: duplicate.target_handle,
                    type_id: duplicate.type_id,
                    ..RawRow::of(RawKind::Duplicate, event)
                }
            }
            hook::HANDLE_DC_START => {
                let handle = HandleRundown::decode(event)?;
                self.start_handles.push(RawStartHandle {
                    object: handle.object,
                    pid: handle.pid,
                    handle: handle.handle,
                    type_id: handle.type_id,
                    name: self.names.intern(handle.name),
                    time: event.time,
                });
                return Some(());
            }
            hook::HANDLE_DC_END => {
                let handle = HandleRundown::decode(event)?;
                RawRow {
                    object: handle.object,
                    value: handle.handle,
                    type_id: handle.type_id,
                    name: self.names.intern(handle.name),
                    pid: handle.pid,
                    ..RawRow::of(RawKind::Rundown, event)
                }
            }
            hook::CREATE_OBJECT | hook::DELETE_OBJECT => {
                let object = ObjectChange::decode_lifetime(event)?;
                let kind = if hook == hook::CREATE_OBJECT {
                    RawKind::ObjectCreate
                } else {
                    RawKind::ObjectDelete
                };
                RawRow { object: object.object, type_id: object.type_id, ..RawRow::of(kind, event) }
            }
            hook::REFERENCE_OBJECT | hook::DEREFERENCE_OBJECT => {
                let object = ObjectChange::decode_reference(event)?;
                let kind = if hook == hook::REFERENCE_OBJECT {
                    RawKind::Reference
                } else {
                    RawKind::Dereference
                };
                RawRow { object: object.object, value: object.count, ..RawRow::of(kind, event) }
            }
            hook::FILE_MAP | hook::FILE_UNMAP => {
                let view = FileMap::decode(event)?;
                let kind = if hook == hook::FILE_MAP { RawKind::Map } else { RawKind::Unmap };
                self.events.push_view_detail(ViewDetail {
                    size: view.size,
                    byte_offset: view.byte_offset,
                    file: view.file,
                    pid: view.pid,
                });
                RawRow { object: view.base, ..RawRow::of(kind, event) }
            }
            _ => return Some(()),
        };
        self.events.push(row);
        Some(())
    }

    fn managed(&mut self, event: &Event<'_>) -> Option<()> {
        let pid = event.pid?;
        if let Some(module) = ModuleEvent::decode(event) {
            self.methods.module(&module, pid);
            if let Some(image) = &module.native {
                let path = utf16_text(image.path);
                let pdb_path = utf16_text(image.pdb_path);
                let name = pdb_path.rsplit(['\\', '/']).next().unwrap_or_default();
                self.native_images.add(pid, &path, (image.guid, image.age, name.to_owned()));
            }
            return Some(());
        }
        self.methods.event(&MethodEvent::decode(event)?, pid, event.time);
        Some(())
    }

    fn identity(&mut self, opcode: u8, event: &Event<'_>) -> Option<()> {
        match opcode {
            ImageId::OPCODE => self.images.image_id(ImageId::decode(event)?, event.time),
            Rsds::OPCODE => self.images.rsds(Rsds::decode(event)?, event.time),
            FileVersion::OPCODE => self.images.file_version(FileVersion::decode(event)?),
            _ => {}
        }
        Some(())
    }
}
