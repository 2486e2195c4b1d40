//! Handles of GDI and USER.
//!
//! A handle is unique in its session. It belongs to the process that its events name, and may be given to another one
//! and get another value while it is open.

use handlescope_model::tables::{ResourceEnd, ResourceKind, ResourceMissKind};
use hashbrown::HashMap;

use super::columns::{AllocationColumns, AllocatorRow};
use super::owners::{Owner, OwnerFinder};
use crate::collect::Collector;
use crate::described::{GuiClass, GuiRow};
use crate::lifecycle::attribution::NONE;
use crate::lifecycle::kinds::GuiHandleChange;
use crate::raw::UNKNOWN_ID;

/// The provider of the events.
const WIN32K: &str = "Microsoft-Windows-Win32k";

/// Open handles.
#[derive(Default)]
pub(super) struct GuiHandles {
    /// Rows of the allocators by owner, class and number of the type.
    allocators: HashMap<(Owner, GuiClass, u32), u32>,
    /// Allocations by session, class and value.
    open: HashMap<(u32, GuiClass, u64), u32>,
}

impl GuiHandles {
    /// Takes an event of a handle.
    pub(super) fn event(
        &mut self,
        collected: &Collector,
        (row, change): (usize, GuiHandleChange),
        finder: &mut OwnerFinder<'_>,
        columns: &mut AllocationColumns,
    ) {
        let timeline = &collected.shared.timeline;
        let Some(event) = collected.described.handles.get(timeline.row[row] as usize) else {
            return;
        };
        let (caller_pid, time) = (timeline.pid[row], timeline.time[row]);
        let owner = finder.find(event.owner_pid, time);
        let allocator = self.allocator(owner, event, columns);
        match change {
            GuiHandleChange::Create => {
                if self.create(allocator, event, row, columns)
                    && caller_pid != event.owner_pid
                    && caller_pid != UNKNOWN_ID
                    && let Some(caller) = finder.find(caller_pid, time).process()
                {
                    columns.origin_mut(columns.len() as u32 - 1).caller = caller;
                }
            }
            GuiHandleChange::Destroy => match self.open.remove(&key(event, event.handle)) {
                Some(allocation) => columns.end(allocation, ResourceEnd::Freed, row),
                None => miss(ResourceMissKind::OrphanFree, allocator, event, row, columns),
            },
            GuiHandleChange::Owner => match self.open.get(&key(event, event.handle)) {
                Some(allocation) => columns.move_to(*allocation, allocator),
                None => miss(ResourceMissKind::Ignored, allocator, event, row, columns),
            },
            GuiHandleChange::Transform => self.transform(allocator, event, row, columns),
        }
    }

    /// Opens a handle; returns whether there is one.
    fn create(
        &mut self,
        allocator: u32,
        event: &GuiRow,
        row: usize,
        columns: &mut AllocationColumns,
    ) -> bool {
        if event.handle == 0 {
            miss(ResourceMissKind::Ignored, allocator, event, row, columns);
            return false;
        }
        let allocation = columns.open(allocator, event.handle, 0, row);
        self.put(event, allocation, row, columns);
        true
    }

    /// Goes on with a handle under its new value.
    fn transform(
        &mut self,
        allocator: u32,
        event: &GuiRow,
        row: usize,
        columns: &mut AllocationColumns,
    ) {
        let Some(allocation) = self.open.remove(&key(event, event.previous)) else {
            miss(ResourceMissKind::Ignored, allocator, event, row, columns);
            return;
        };
        columns.key[allocation as usize] = event.handle;
        self.put(event, allocation, row, columns);
    }

    /// Gives a value to a handle. The one that had it was destroyed, which was lost.
    fn put(
        &mut self,
        event: &GuiRow,
        allocation: u32,
        row: usize,
        columns: &mut AllocationColumns,
    ) {
        if let Some(old) = self.open.insert(key(event, event.handle), allocation) {
            columns.end(old, ResourceEnd::Replaced, row);
        }
    }

    fn allocator(&mut self, owner: Owner, event: &GuiRow, columns: &mut AllocationColumns) -> u32 {
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

fn key(event: &GuiRow, value: u64) -> (u32, GuiClass, u64) {
    (event.session, event.class, value)
}

fn miss(
    what: ResourceMissKind,
    allocator: u32,
    event: &GuiRow,
    row: usize,
    columns: &mut AllocationColumns,
) {
    columns.miss(what, allocator, event.previous, 0, row);
}

/// What a type of GDI is called (`ntgdi.h` of phnt).
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

/// What a type of USER is called (HANDLEENTRY in the wiki of ReactOS).
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
    fn types_have_the_names_of_their_numbers_and_others_none() {
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
