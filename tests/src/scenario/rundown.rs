//! Rundowns at the start and at the end of a trace.

use std::collections::{BTreeMap, BTreeSet};

use super::builder::TraceBuilder;
use crate::header::Stamp;
use crate::payload::{
    HandleEvent, ImageEvent, ImageRecord, KernelPayload, ProcessEvent, ThreadEvent, ViewEvent,
    build_string, computer, end_of_rundown, file_version, group_masks, path_prefix,
    system_directories, type_rundown, volume_device,
};

/// One of the two rundowns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RundownSide {
    Start,
    End,
}

impl TraceBuilder {
    /// Adds the rundowns; the one at the end starts at `end` (nanoseconds).
    pub fn add_rundowns(&mut self, end: i64) {
        let start = self.options.base_raw();
        let masks = group_masks([7, 0, 0x1_0000, 0, 0, 0, 0, 0]);
        self.add_rundown(start, &masks);
        let mut time = start;
        self.list_handles(RundownSide::Start, &mut time);
        if self.config.start_rundown {
            self.list_types(RundownSide::Start, &mut time);
            self.list_system(RundownSide::Start, &mut time);
        }
        let mut time = self.options.raw(end);
        self.list_handles(RundownSide::End, &mut time);
        if self.config.end_rundown {
            self.list_types(RundownSide::End, &mut time);
            self.list_system(RundownSide::End, &mut time);
            self.next_rundown(&mut time, &end_of_rundown());
        }
        if self.config.identities {
            self.add_file_versions(time);
            self.add_system_facts(time);
        }
    }

    fn list_handles(&mut self, side: RundownSide, time: &mut i64) {
        let ptr = self.options.pointer;
        let (handles, event) = match side {
            RundownSide::Start => (self.handles_at_start.clone(), HandleEvent::RundownStart),
            RundownSide::End => (self.handles_at_end.clone(), HandleEvent::RundownEnd),
        };
        for handle in handles {
            self.next_rundown(time, &handle.payload(event, ptr));
        }
        if side == RundownSide::End {
            for view in self.views_at_end.clone() {
                self.next_rundown(time, &view.payload(ViewEvent::RundownEnd, 3, ptr));
            }
        }
    }

    fn list_types(&mut self, side: RundownSide, time: &mut i64) {
        for (id, name) in self.types.clone() {
            self.next_rundown(time, &type_rundown(side == RundownSide::End, id, &name));
        }
    }

    fn list_system(&mut self, side: RundownSide, time: &mut i64) {
        self.list_processes(side, time);
        self.list_zombies(side, time);
        self.list_threads(side, time);
        self.list_images(side, time);
    }

    fn list_processes(&mut self, side: RundownSide, time: &mut i64) {
        let event = match side {
            RundownSide::Start => ProcessEvent::RundownStart,
            RundownSide::End => ProcessEvent::RundownEnd,
        };
        for process in self.processes.clone() {
            let listed = match side {
                RundownSide::Start => process.started.is_none(),
                RundownSide::End => process.ended.is_none(),
            };
            if listed && !process.unrecorded {
                let version = self.config.process_version;
                let payload = process.record.payload(event, version, self.options.pointer);
                self.next_rundown(time, &payload);
            }
        }
    }

    fn list_zombies(&mut self, side: RundownSide, time: &mut i64) {
        let zombies = match side {
            RundownSide::Start => &self.freed_zombies,
            RundownSide::End => &self.zombies,
        };
        for zombie in zombies.clone() {
            let payload = zombie.payload(ProcessEvent::Defunct, 5, self.options.pointer);
            self.next_rundown(time, &payload);
        }
    }

    fn list_threads(&mut self, side: RundownSide, time: &mut i64) {
        let event = match side {
            RundownSide::Start => ThreadEvent::RundownStart,
            RundownSide::End => ThreadEvent::RundownEnd,
        };
        for (pid, tid) in self.listed_threads(side) {
            let payload = self.thread_record(pid, tid).payload(event, self.options.pointer);
            self.next_rundown(time, &payload);
        }
    }

    /// Returns declared threads, and threads that logged events, of the processes listed on this side.
    fn listed_threads(&self, side: RundownSide) -> BTreeSet<(u32, u32)> {
        let declared: BTreeMap<(u32, u32), bool> = self
            .threads
            .iter()
            .map(|thread| {
                let bound = if side == RundownSide::Start { thread.started } else { thread.ended };
                ((thread.pid, thread.tid), bound.is_none())
            })
            .collect();
        let alive = |pid: u32| {
            self.processes.iter().any(|process| {
                let bound = match side {
                    RundownSide::Start => process.started,
                    RundownSide::End => process.ended.map(|(ns, _)| ns),
                };
                process.record.pid == pid && bound.is_none()
            })
        };
        let all: BTreeMap<_, _> = self
            .callers
            .iter()
            .copied()
            .filter(|(pid, _)| alive(*pid))
            .map(|thread| (thread, true))
            .chain(declared)
            .collect();
        all.into_iter().filter(|(_, listed)| *listed).map(|(thread, _)| thread).collect()
    }

    fn list_images(&mut self, side: RundownSide, time: &mut i64) {
        let event = match side {
            RundownSide::Start => ImageEvent::RundownStart,
            RundownSide::End => ImageEvent::RundownEnd,
        };
        for module in self.modules.clone() {
            let bound = match side {
                RundownSide::Start => self.load_time(&module),
                RundownSide::End => self.unload_time(&module),
            };
            if bound.is_some() {
                continue;
            }
            // Rundowns have the time stamp of kernel images only.
            let timestamp = if module.record.pid == 0 { module.record.timestamp } else { 0 };
            let record = ImageRecord { timestamp, ..self.image_record(&module) };
            let version = self.config.image_version;
            let payload = record.payload(event, version, self.options.pointer);
            self.next_rundown(time, &payload);
            self.add_identity(*time, &module);
        }
    }

    fn add_file_versions(&mut self, time: i64) {
        let mut written = BTreeSet::new();
        for module in self.modules.clone() {
            let Some(version) = &module.file_version else { continue };
            if written.insert(module.record.path.clone()) {
                let (size, timestamp) = (module.record.size as u32, module.record.timestamp);
                let payload = file_version(size, timestamp, &module.original_name, version);
                self.add_merged(time, &payload);
            }
        }
    }

    fn add_system_facts(&mut self, time: i64) {
        if let Some(name) = self.config.computer.clone() {
            self.add_rundown(time, &computer(&name, self.options.cpus, 16_384));
        }
        self.add_merged(time, &build_string(&self.config.build_string, &self.config.product));
        self.add_merged(time, &system_directories(r"C:\Windows\system32", r"C:\Windows"));
        self.add_merged(time, &volume_device(r"\Device\HarddiskVolume3\"));
        for (nt, dos) in self.config.prefixes.clone() {
            self.add_merged(time, &path_prefix(&nt, &dos));
        }
    }

    fn add_merged(&mut self, time: i64, payload: &crate::payload::ClassicPayload) {
        let bytes = payload.event(self.options.pointer, Stamp::new(time, 0, 0));
        self.add(time, 0, None, bytes);
    }

    /// Adds a rundown event one tick after the previous one.
    fn next_rundown(&mut self, time: &mut i64, event: &KernelPayload) {
        *time += 1;
        self.add_rundown(*time, event);
    }
}
