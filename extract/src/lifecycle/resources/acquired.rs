//! Follows resources that provider events acquire and release, and GDI and USER handles.
//!
//! The handle of an acquired resource is meaningful only within its process, provider and allocator. It may be acquired
//! several times; a release then ends the last acquisition. A GDI or USER handle is unique in its session. It belongs
//! to the process its events name, or to none if it is public, and its owner and value may change while it is open.

use handlescope_model::tables::{ResourceEnd, ResourceKind, ResourceMissKind};
use hashbrown::HashMap;

use super::columns::{AllocationColumns, AllocationOwner, AllocatorRow, AtRow, OwnerFinder};
use super::exits::ExitSweeps;
use crate::collect::Collector;
use crate::described::{DescribedProvider, GuiChange, GuiClass, GuiRow, PUBLIC, ResourceRow};
use crate::etl::Clock;
use crate::lifecycle::attribution::NONE;
use crate::lifecycle::kinds::AcquiredChange;
use crate::raw::UNKNOWN_ID;

/// Acquired resources.
#[derive(Default)]
pub struct AcquiredResources {
    /// Allocator rows by owner, provider number and name number.
    allocators: HashMap<(AllocationOwner, u32, u32), u32>,
    /// Latest allocation by allocator and handle.
    latest: HashMap<(u32, u64), u32>,
    /// Previous allocation of a handle that was acquired again.
    before: HashMap<u32, u32>,
}

impl AcquiredResources {
    /// Handles an event of `owner` that acquires or releases a resource, or cannot be followed.
    pub fn event(
        &mut self,
        collected: &Collector,
        change: AcquiredChange,
        owner: AllocationOwner,
        mut at: AtRow<'_>,
    ) {
        let row = collected.shared.timeline.row[at.row] as usize;
        let Some(event) = collected.described.resources.get(row) else { return };
        let ResourceRow { handle, size, .. } = *event;
        let allocator = self.allocator(collected, event, owner, at.columns);
        match change {
            AcquiredChange::Acquire => {
                let allocation = at.open(allocator, handle, size);
                if let Some(before) = self.latest.insert((allocator, handle), allocation) {
                    self.before.insert(allocation, before);
                }
            }
            AcquiredChange::Release => self.release(allocator, event, &mut at),
            AcquiredChange::Ignored => {
                at.miss(ResourceMissKind::Ignored, allocator, handle, size);
            }
        }
    }

    fn release(&mut self, allocator: u32, event: &ResourceRow, at: &mut AtRow<'_>) {
        let key = (allocator, event.handle);
        let Some(allocation) = self.latest.remove(&key) else {
            at.miss(ResourceMissKind::OrphanFree, allocator, event.handle, event.size);
            return;
        };
        if let Some(before) = self.before.remove(&allocation) {
            self.latest.insert(key, before);
        }
        at.end(allocation, ResourceEnd::Freed);
    }

    fn allocator(
        &mut self,
        collected: &Collector,
        event: &ResourceRow,
        owner: AllocationOwner,
        columns: &mut AllocationColumns,
    ) -> u32 {
        let described = &collected.described;
        *self.allocators.entry((owner, event.provider, event.allocator)).or_insert_with(|| {
            let provider = described.providers.get(event.provider as usize);
            columns.add_allocator(AllocatorRow {
                kind: ResourceKind::Resource,
                name: described.allocators.text(event.allocator),
                provider: provider.map(DescribedProvider::title),
                owner,
                created: NONE,
                destroyed: NONE,
            })
        })
    }
}

/// Provider of the GDI and USER events.
const WIN32K: &str = "Microsoft-Windows-Win32k";

/// Open GDI and USER handles.
#[derive(Default)]
pub struct GuiHandles {
    /// Allocator rows by owner, class and type number.
    allocators: HashMap<(AllocationOwner, GuiClass, u32), u32>,
    /// Allocations by session, class and value.
    open: HashMap<(u32, GuiClass, u32), u32>,
    sweeps: ExitSweeps,
}

impl GuiHandles {
    /// Handles an event of a GDI or USER handle.
    pub fn event(
        &mut self,
        collected: &Collector,
        change: GuiChange,
        finder: &mut OwnerFinder<'_>,
        mut at: AtRow<'_>,
    ) {
        let timeline = &collected.shared.timeline;
        let row = timeline.row[at.row] as usize;
        let Some(event) = collected.described.handles.get(row) else { return };
        let (caller_pid, time) = (timeline.pid[at.row], timeline.time[at.row]);
        let owner = match event.owner_pid {
            PUBLIC => AllocationOwner::Pid(PUBLIC),
            pid => finder.find(pid, time),
        };
        let allocator = self.allocator(owner, event, at.columns);
        let mut miss = |kind| at.miss(kind, allocator, event.previous.into(), 0);
        match change {
            GuiChange::Create if event.handle == 0 => miss(ResourceMissKind::Ignored),
            GuiChange::Create => {
                let allocation = at.open(allocator, event.handle.into(), 0);
                self.put(event, allocation, &mut at);
                self.sweeps.opened(owner.process(), true);
                if caller_pid != event.owner_pid
                    && caller_pid != UNKNOWN_ID
                    && let Some(caller) = finder.find(caller_pid, time).process()
                {
                    at.columns.origin_mut(allocation).caller = caller;
                }
            }
            GuiChange::Destroy => match self.open.remove(&key(event, event.handle)) {
                Some(allocation) => {
                    let process = owner_of(allocation, &at);
                    at.end(allocation, ResourceEnd::Freed);
                    self.sweeps.destroyed(process, allocation, collected, at.row);
                }
                None => miss(ResourceMissKind::OrphanFree),
            },
            GuiChange::Owner => match self.open.get(&key(event, event.handle)) {
                Some(allocation) => {
                    let process = owner_of(*allocation, &at);
                    self.sweeps.given(process);
                    self.sweeps.opened(owner.process(), false);
                    at.columns.move_to(*allocation, allocator);
                    // The only process known for a public handle is the one that created it.
                    if event.owner_pid == PUBLIC
                        && let Some(process) = process
                    {
                        at.columns.origin_mut(*allocation).caller = process;
                    }
                }
                None => miss(ResourceMissKind::Ignored),
            },
            // The handle continues under its new value.
            GuiChange::Transform => match self.open.remove(&key(event, event.previous)) {
                Some(allocation) => {
                    at.columns.key[allocation as usize] = event.handle.into();
                    self.put(event, allocation, &mut at);
                }
                None => miss(ResourceMissKind::Ignored),
            },
        }
    }

    /// Ends the handles that process ends destroyed together with their processes.
    pub fn finish(self, collected: &Collector, clock: &Clock, columns: &mut AllocationColumns) {
        self.sweeps.finish(collected, clock, columns);
    }

    /// Gives a value to a handle. If another handle already has the value, its destruction was lost.
    fn put(&mut self, event: &GuiRow, allocation: u32, at: &mut AtRow<'_>) {
        if let Some(old) = self.open.insert(key(event, event.handle), allocation) {
            self.sweeps.given(owner_of(old, at));
            at.end(old, ResourceEnd::Replaced);
        }
    }

    fn allocator(
        &mut self,
        owner: AllocationOwner,
        event: &GuiRow,
        columns: &mut AllocationColumns,
    ) -> u32 {
        let GuiRow { class, type_id, .. } = *event;
        *self.allocators.entry((owner, class, type_id)).or_insert_with(|| {
            let (kind, name) = match class {
                GuiClass::Gdi => (ResourceKind::Gdi, gdi_type(type_id)),
                GuiClass::User => (ResourceKind::User, user_type(type_id)),
            };
            columns.add_allocator(AllocatorRow {
                kind,
                name: name.map_or_else(|| type_id.to_string(), str::to_owned),
                provider: Some(WIN32K.to_owned()),
                owner,
                created: NONE,
                destroyed: NONE,
            })
        })
    }
}

fn key(event: &GuiRow, value: u32) -> (u32, GuiClass, u32) {
    (event.session, event.class, value)
}

/// Returns the row of the process that owns a handle.
fn owner_of(allocation: u32, at: &AtRow<'_>) -> Option<u32> {
    let allocator = at.columns.allocator[allocation as usize];
    at.columns.allocators[allocator as usize].owner.process()
}

/// Returns the name of a GDI type (`ntgdi.h` of phnt).
fn gdi_type(number: u32) -> Option<&'static str> {
    Some(match number {
        1 => "device context",
        4 => "region",
        5 => "bitmap",
        8 => "palette",
        10 => "font",
        16 => "brush",
        21 => "metafile",
        28 => "driver object",
        _ => return None,
    })
}

/// Returns the name of a USER type (HANDLEENTRY in the ReactOS wiki).
fn user_type(number: u32) -> Option<&'static str> {
    Some(match number {
        1 => "window",
        2 => "menu",
        3 => "cursor or icon",
        4 => "window position",
        5 => "hook",
        6 => "clipboard data",
        7 => "call proc",
        8 => "accelerator table",
        9..=11 => "DDE",
        12 => "monitor",
        13 => "keyboard layout",
        14 => "keyboard file",
        15 => "WinEvent hook",
        16 => "timer",
        17 => "input context",
        18 => "HID data",
        19 => "device info",
        20 => "touch",
        21 => "gesture",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_have_the_names_of_their_numbers_and_unknown_types_have_none() {
        let named = |name: fn(u32) -> Option<&'static str>| -> Vec<(u32, &str)> {
            (0..=32).filter_map(|number| Some((number, name(number)?))).collect()
        };
        let gdi = [
            (1, "device context"),
            (4, "region"),
            (5, "bitmap"),
            (8, "palette"),
            (10, "font"),
            (16, "brush"),
            (21, "metafile"),
            (28, "driver object"),
        ];
        let user = [
            (1, "window"),
            (2, "menu"),
            (3, "cursor or icon"),
            (4, "window position"),
            (5, "hook"),
            (6, "clipboard data"),
            (7, "call proc"),
            (8, "accelerator table"),
            (9, "DDE"),
            (10, "DDE"),
            (11, "DDE"),
            (12, "monitor"),
            (13, "keyboard layout"),
            (14, "keyboard file"),
            (15, "WinEvent hook"),
            (16, "timer"),
            (17, "input context"),
            (18, "HID data"),
            (19, "device info"),
            (20, "touch"),
            (21, "gesture"),
        ];
        assert_eq!(named(gdi_type), gdi);
        assert_eq!(named(user_type), user);
    }
}
