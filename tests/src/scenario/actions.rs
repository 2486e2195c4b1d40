//! What threads do with handles, objects and file mappings.

use super::actors::Caller;
use super::builder::TraceBuilder;
use super::ledger::{HandleChangeKind, KERNEL_HANDLE, TAG_BITS};
use crate::header::Stamp;
use crate::payload::{
    DuplicateRecord, HandleEvent, HandleRecord, HeapCall, ManagedModule, MethodEvent, MethodRecord,
    ObjectEvent, RangeRecord, ReferenceEvent, ViewEvent, ViewRecord, reference,
};

/// Time between the close and the duplicate of a moved handle, in nanoseconds: one tick.
const MOVE: i64 = 100;

/// A duplicated handle, with its source and target; see [`DuplicateRecord`] for the fields.
pub type DuplicatedHandle = DuplicateRecord;

/// A mapped view; see [`ViewRecord`] for the fields.
pub type MappedView = ViewRecord;

/// Handle events. Times are in nanoseconds since the session start.
impl TraceBuilder {
    /// Lets a thread create a handle to an object.
    pub fn create_handle(
        &mut self,
        ns: i64,
        caller: impl Into<Caller>,
        object: u64,
        handle: u32,
        type_id: u16,
    ) -> &mut Self {
        let record = HandleRecord { object, handle, type_id, ..HandleRecord::default() };
        self.handle_event(ns, caller, HandleEvent::Create, &record)
    }

    /// Lets a thread close a handle; the event carries the object's name, which may be empty.
    pub fn close_handle(
        &mut self,
        ns: i64,
        caller: impl Into<Caller>,
        object: u64,
        handle: u32,
        type_id: u16,
        name: &str,
    ) -> &mut Self {
        let name = name.into();
        let record = HandleRecord { object, handle, type_id, name, ..HandleRecord::default() };
        self.handle_event(ns, caller, HandleEvent::Close, &record)
    }

    /// Adds a create or close with all its fields.
    pub fn handle_event(
        &mut self,
        ns: i64,
        caller: impl Into<Caller>,
        event: HandleEvent,
        record: &HandleRecord,
    ) -> &mut Self {
        let (caller, payload) = (caller.into(), record.payload(event, self.options.pointer));
        let change = match event {
            HandleEvent::Create => Some(HandleChangeKind::Create(record.clone())),
            HandleEvent::Close => Some(HandleChangeKind::Close(record.clone())),
            HandleEvent::RundownStart | HandleEvent::RundownEnd => None,
        };
        if let Some(change) = change {
            self.changed(ns, caller, change);
        }
        self.kernel_event(ns, caller, &payload)
    }

    /// Lets a thread duplicate a handle.
    pub fn duplicate_handle(
        &mut self,
        ns: i64,
        caller: impl Into<Caller>,
        duplicate: DuplicatedHandle,
    ) -> &mut Self {
        let (caller, payload) = (caller.into(), duplicate.payload(self.options.pointer));
        self.changed(ns, caller, HandleChangeKind::Duplicate(duplicate));
        self.kernel_event(ns, caller, &payload)
    }

    /// Lets a thread that creates a process give it a handle before it has a pid. An inherited handle keeps its value;
    /// a standard handle gets another one. The source is the parent, which need not be the thread's process.
    pub fn inherit_handle(
        &mut self,
        ns: i64,
        creator: impl Into<Caller>,
        duplicate: DuplicatedHandle,
    ) -> &mut Self {
        self.duplicate_handle(ns, creator, DuplicatedHandle { target_pid: 0, ..duplicate })
    }

    /// Lets a thread move a handle (`DUPLICATE_CLOSE_SOURCE`): it closes the source first, then opens the target. The
    /// close is logged by the caller, whichever process owns the source.
    pub fn move_handle(
        &mut self,
        ns: i64,
        caller: impl Into<Caller>,
        duplicate: DuplicatedHandle,
    ) -> &mut Self {
        let (caller, DuplicatedHandle { object, source_handle, type_id, .. }) =
            (caller.into(), duplicate);
        self.close_handle(ns, caller, object, source_handle, type_id, "");
        self.duplicate_handle(ns + MOVE, caller, duplicate)
    }

    /// Lets a driver open a handle in the table of System, in the context of any process; any process may close it.
    pub fn create_kernel_handle(
        &mut self,
        ns: i64,
        caller: impl Into<Caller>,
        object: u64,
        handle: u32,
        type_id: u16,
    ) -> &mut Self {
        self.create_handle(ns, caller, object, handle | KERNEL_HANDLE, type_id)
    }

    /// Lets a thread close a handle with its own bits in the low bits, as `RegCloseKey` does for keys of
    /// `HKEY_CLASSES_ROOT`.
    pub fn close_tagged(
        &mut self,
        ns: i64,
        caller: impl Into<Caller>,
        object: u64,
        handle: u32,
        type_id: u16,
        name: &str,
    ) -> &mut Self {
        self.close_handle(ns, caller, object, handle | TAG_BITS & 2, type_id, name)
    }

    /// Adds a handle to the rundown at the start.
    pub fn handle_rundown_start(
        &mut self,
        pid: u32,
        object: u64,
        handle: u32,
        type_id: u16,
        name: &str,
    ) -> &mut Self {
        let name = name.into();
        let record = HandleRecord { object, pid, handle, type_id, name };
        self.changed(i64::MIN, (pid, 0), HandleChangeKind::Before(record.clone()));
        self.handles_at_start.push(record);
        self
    }

    /// Adds a handle to the rundown at the end.
    pub fn handle_rundown_end(
        &mut self,
        pid: u32,
        object: u64,
        handle: u32,
        type_id: u16,
        name: &str,
    ) -> &mut Self {
        let name = name.into();
        self.handles_at_end.push(HandleRecord { object, pid, handle, type_id, name });
        self
    }
}

/// Object and mapping events. Times are in nanoseconds since the session start.
impl TraceBuilder {
    /// Lets a thread create an object.
    pub fn create_object(
        &mut self,
        ns: i64,
        caller: impl Into<Caller>,
        object: u64,
        type_id: u16,
    ) -> &mut Self {
        let payload = ObjectEvent::Create.payload(self.options.pointer, object, type_id);
        self.kernel_event(ns, caller, &payload)
    }

    /// Lets a thread delete an object.
    pub fn delete_object(
        &mut self,
        ns: i64,
        caller: impl Into<Caller>,
        object: u64,
        type_id: u16,
    ) -> &mut Self {
        let payload = ObjectEvent::Delete.payload(self.options.pointer, object, type_id);
        self.kernel_event(ns, caller, &payload)
    }

    /// Lets a thread add `count` references to an object; the pool tag has four letters.
    pub fn reference(
        &mut self,
        ns: i64,
        caller: impl Into<Caller>,
        object: u64,
        tag: &[u8; 4],
        count: u32,
    ) -> &mut Self {
        let event = ReferenceEvent::Reference;
        let payload = reference(event, self.options.pointer, object, *tag, count);
        self.kernel_event(ns, caller, &payload)
    }

    /// Lets a thread remove `count` references from an object; the pool tag has four letters.
    pub fn dereference(
        &mut self,
        ns: i64,
        caller: impl Into<Caller>,
        object: u64,
        tag: &[u8; 4],
        count: u32,
    ) -> &mut Self {
        let event = ReferenceEvent::Dereference;
        let payload = reference(event, self.options.pointer, object, *tag, count);
        self.kernel_event(ns, caller, &payload)
    }

    /// Lets a thread map a view of a file.
    pub fn map(&mut self, ns: i64, caller: impl Into<Caller>, view: MappedView) -> &mut Self {
        let (caller, payload) =
            (caller.into(), view.payload(ViewEvent::Map, 3, self.options.pointer));
        self.changed(ns, caller, HandleChangeKind::Map(view));
        self.kernel_event(ns, caller, &payload)
    }

    /// Lets a thread unmap a view of a file.
    pub fn unmap(&mut self, ns: i64, caller: impl Into<Caller>, view: MappedView) -> &mut Self {
        let (caller, payload) =
            (caller.into(), view.payload(ViewEvent::Unmap, 3, self.options.pointer));
        self.changed(ns, caller, HandleChangeKind::Unmap(view));
        self.kernel_event(ns, caller, &payload)
    }

    /// Adds a view to the rundown at the end.
    pub fn view_rundown_end(&mut self, view: MappedView) -> &mut Self {
        self.views_at_end.push(view);
        self
    }
}

/// Managed code. Times are in nanoseconds since the session start.
impl TraceBuilder {
    /// Lets the runtime of a process report a method.
    pub fn method(
        &mut self,
        ns: i64,
        caller: impl Into<Caller>,
        event: MethodEvent,
        method: &MethodRecord,
    ) -> &mut Self {
        let Caller { pid, tid, cpu } = caller.into();
        let stamp = Stamp::new(self.options.raw(ns), pid, tid);
        self.raw_event(ns, cpu, method.event(event, self.options.pointer, stamp))
    }

    /// Lets CLR 2.0 in a process report a module in its rundown at the end.
    pub fn managed_module_v2(
        &mut self,
        ns: i64,
        caller: impl Into<Caller>,
        module: &ManagedModule,
    ) -> &mut Self {
        let Caller { pid, tid, cpu } = caller.into();
        let stamp = Stamp::new(self.options.raw(ns), pid, tid);
        self.raw_event(ns, cpu, module.rundown_v2(self.options.pointer, stamp))
    }

    /// Lets the runtime of a process report a module in its rundown at the end.
    pub fn managed_module(
        &mut self,
        ns: i64,
        caller: impl Into<Caller>,
        module: &ManagedModule,
    ) -> &mut Self {
        let Caller { pid, tid, cpu } = caller.into();
        let stamp = Stamp::new(self.options.raw(ns), pid, tid);
        self.raw_event(ns, cpu, module.rundown(self.options.pointer, stamp))
    }
}

/// Memory events. Times are in nanoseconds since the session start.
impl TraceBuilder {
    /// Lets a thread call a heap; a stack may follow.
    pub fn heap(
        &mut self,
        ns: i64,
        caller: impl Into<Caller>,
        heap: u64,
        call: HeapCall,
    ) -> &mut Self {
        let payload = call.payload(heap, self.options.pointer);
        self.kernel_event(ns, caller, &payload)
    }

    /// Lets a thread reserve or commit memory; a stack may follow.
    pub fn virtual_alloc(
        &mut self,
        ns: i64,
        caller: impl Into<Caller>,
        range: RangeRecord,
    ) -> &mut Self {
        let payload = range.payload(false, self.options.pointer);
        self.kernel_event(ns, caller, &payload)
    }

    /// Lets a thread give memory back; a stack may follow.
    pub fn virtual_free(
        &mut self,
        ns: i64,
        caller: impl Into<Caller>,
        range: RangeRecord,
    ) -> &mut Self {
        let payload = range.payload(true, self.options.pointer);
        self.kernel_event(ns, caller, &payload)
    }
}
