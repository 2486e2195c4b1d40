//! Starts and ends of processes, threads and modules.

use super::actors::Caller;
use super::builder::TraceBuilder;
use super::specs::{ModuleSpec, ProcessSpec};
use crate::header::{HeaderKind, Stamp};
use crate::payload::{
    ImageEvent, ImageRecord, ProcessEvent, ProcessRecord, ThreadEvent, ThreadRecord, image_id,
    no_debug_data, rsds,
};

impl TraceBuilder {
    /// Adds the events that come before others at the same time.
    pub fn add_starts(&mut self) {
        for process in self.processes.clone() {
            if let (Some(ns), false) = (process.started, process.unrecorded) {
                let caller = self.creating_thread(&process);
                self.add_process(ProcessEvent::Start, ns, caller, &process.record);
            }
        }
        for thread in self.threads.clone() {
            if let Some(ns) = thread.started {
                self.add_thread(ThreadEvent::Start, ns, (thread.pid, thread.tid), thread.creator);
            }
        }
        for module in self.modules.clone() {
            if let Some(ns) = self.load_time(&module) {
                self.add_image(ImageEvent::Load, ns, &module);
            }
        }
    }

    /// Adds the events that come after others at the same time.
    pub fn add_ends(&mut self) {
        for module in self.modules.clone() {
            if let Some(ns) = self.unload_time(&module) {
                self.add_image(ImageEvent::Unload, ns, &module);
            }
        }
        for thread in self.threads.clone() {
            if let Some(ns) = thread.ended {
                let ids = (thread.pid, thread.tid);
                self.add_thread(ThreadEvent::End, ns, ids, ids);
            }
        }
        for process in self.processes.clone() {
            if let (Some((ns, exit_status)), false) = (process.ended, process.unrecorded) {
                let caller = self.ending_thread(&process);
                let record = ProcessRecord { exit_status, ..process.record };
                self.add_process(ProcessEvent::End, ns, caller, &record);
            }
        }
    }

    /// Returns the time of the event that loads a module, if there is one.
    pub fn load_time(&self, module: &ModuleSpec) -> Option<i64> {
        let with_process = || self.process_of(module)?.started;
        let event = || module.loaded.or_else(with_process);
        (!module.rundown_only).then(event).flatten()
    }

    /// Returns the time of the event that unloads a module, if there is one.
    pub fn unload_time(&self, module: &ModuleSpec) -> Option<i64> {
        // The kernel unloads images once handles and views are gone.
        let with_process = || {
            let process = self.process_of(module)?;
            process.gone.or(process.ended.map(|(ns, _)| ns))
        };
        let event = || module.unloaded.or_else(with_process);
        (!module.rundown_only).then(event).flatten()
    }

    fn process_of(&self, module: &ModuleSpec) -> Option<&ProcessSpec> {
        self.processes.get(module.process?)
    }

    fn add_process(&mut self, event: ProcessEvent, ns: i64, caller: Caller, at: &ProcessRecord) {
        let payload = at.payload(event, self.config.process_version, self.options.pointer);
        self.add_kernel(HeaderKind::System, self.options.raw(ns), caller, &payload);
    }

    fn add_thread(
        &mut self,
        event: ThreadEvent,
        ns: i64,
        (pid, tid): (u32, u32),
        caller: (u32, u32),
    ) {
        let payload = self.thread_record(pid, tid).payload(event, self.options.pointer);
        let caller = Caller::new(caller.0, caller.1);
        self.add_kernel(HeaderKind::System, self.options.raw(ns), caller, &payload);
    }

    pub fn thread_record(&self, pid: u32, tid: u32) -> ThreadRecord {
        ThreadRecord { pid, tid, name: self.config.thread_names.then(String::new) }
    }

    fn add_image(&mut self, event: ImageEvent, ns: i64, module: &ModuleSpec) {
        let time = self.options.raw(ns);
        let payload = self.image_record(module).payload(
            event,
            self.config.image_version,
            self.options.pointer,
        );
        let caller = Caller::new(module.record.pid, 0);
        self.add_kernel(HeaderKind::System, time, caller, &payload);
        self.add_identity(time, module);
    }

    /// Returns the image record with an NT path.
    pub fn image_record(&self, module: &ModuleSpec) -> ImageRecord {
        let path = &module.record.path;
        let nt = self.config.prefixes.iter().find_map(|(nt, dos)| {
            let rest = path.strip_prefix(dos).filter(|_| !dos.is_empty())?;
            Some(format!("{nt}{rest}"))
        });
        ImageRecord { path: nt.unwrap_or_else(|| path.clone()), ..module.record.clone() }
    }

    /// Adds the events that a merge inserts after an image event, at the same time.
    pub fn add_identity(&mut self, time: i64, module: &ModuleSpec) {
        if !self.config.identities {
            return;
        }
        let ImageRecord { base, size, pid, timestamp, .. } = module.record;
        let ptr = self.options.pointer;
        let id = image_id(ptr, (base, size), pid, timestamp, &module.original_name);
        let debug = match &module.pdb {
            Some(pdb) => rsds(ptr, base, pid, pdb),
            None => no_debug_data(ptr, base, pid),
        };
        let stamp = Stamp::new(time, pid, u32::MAX);
        for payload in [id, debug] {
            self.add(time, 0, None, payload.event(ptr, stamp));
        }
    }
}
