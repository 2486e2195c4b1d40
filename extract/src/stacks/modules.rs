//! Maps addresses to modules by process, address and time.

use std::collections::HashMap;

/// Module mapped at an address for some time; times are raw.
#[derive(Debug, Clone, Copy)]
pub struct Mapping {
    pub base: u64,
    /// Size, bytes.
    pub size: u64,
    /// Row of the modules table.
    pub module: u32,
    /// Load time; the smallest number if it was loaded before the trace. Ranges are intersected for each address, so
    /// open ends are numbers instead of `Option`s.
    pub from: i64,
    /// Unload time; the largest number if it was not unloaded.
    pub to: i64,
    /// Time from which on it explains addresses that no loaded module explains: an image is mapped before its load is
    /// logged.
    pub since: i64,
    /// Time from which on it explains no address any more. An exiting process unmaps its modules before it closes its
    /// handles, and a stack may still go through unloaded code.
    pub until: i64,
}

/// Location of an address, and the time range in which it is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimedLocation {
    /// Module and offset from its base; `None` outside of all modules.
    pub location: Option<(u32, u64)>,
    /// Whether the module was loaded at the time, rather than shortly before or after.
    pub is_live: bool,
    /// First raw time for which the answer holds.
    pub from: i64,
    /// First raw time for which it no longer holds.
    pub to: i64,
}

/// Mappings of every process.
pub struct AddressSpaces {
    spaces: HashMap<u32, Space>,
    pointer_size: usize,
}

#[derive(Default)]
struct Space {
    /// Sorted by base.
    mappings: Vec<Mapping>,
    largest: u64,
}

impl AddressSpaces {
    /// Creates address spaces from (pid, mapping) pairs. Pid 0 is the kernel, which every process sees.
    ///
    /// `pointer_size` is the recording system's pointer size in bytes.
    pub fn new(mappings: impl IntoIterator<Item = (u32, Mapping)>, pointer_size: usize) -> Self {
        let mut spaces: HashMap<u32, Space> = HashMap::new();
        for (pid, mapping) in mappings {
            let space = spaces.entry(pid).or_default();
            space.largest = space.largest.max(mapping.size);
            space.mappings.push(mapping);
        }
        for space in spaces.values_mut() {
            space.mappings.sort_by_key(|m| (m.base, m.from));
        }
        Self { spaces, pointer_size }
    }

    /// Whether an address belongs to the kernel, which is the case if its top bit is set.
    pub fn is_kernel(&self, address: u64) -> bool {
        address >> (self.pointer_size * 8 - 1) & 1 == 1
    }

    /// Locates an address of a process at a time.
    pub fn locate(&self, pid: u32, address: u64, time: i64) -> TimedLocation {
        let pid = if self.is_kernel(address) { 0 } else { pid };
        let mut located =
            TimedLocation { location: None, is_live: false, from: i64::MIN, to: i64::MAX };
        let Some(space) = self.spaces.get(&pid) else { return located };
        let mut newest: Option<(bool, i64, &Mapping)> = None;
        for mapping in space.covering(address) {
            for boundary in [mapping.since, mapping.from, mapping.to, mapping.until] {
                if boundary <= time {
                    located.from = located.from.max(boundary);
                } else {
                    located.to = located.to.min(boundary);
                }
            }
            if holds(mapping.since, mapping.until, time) {
                let is_live = holds(mapping.from, mapping.to, time);
                if newest.is_none_or(|(live, from, _)| (is_live, mapping.from) >= (live, from)) {
                    newest = Some((is_live, mapping.from, mapping));
                }
            }
        }
        located.is_live = newest.is_some_and(|(is_live, ..)| is_live);
        located.location = newest.map(|(_, _, mapping)| (mapping.module, address - mapping.base));
        located
    }
}

/// Whether a time is in a range, excluding its end. The largest number means no end.
fn holds(from: i64, to: i64, time: i64) -> bool {
    from <= time && (time < to || to == i64::MAX)
}

impl Space {
    /// Returns the mappings that contain an address at any time.
    fn covering(&self, address: u64) -> impl Iterator<Item = &Mapping> {
        let after = self.mappings.partition_point(|m| m.base <= address);
        self.mappings[..after]
            .iter()
            .rev()
            .take_while(move |m| address - m.base < self.largest)
            .filter(move |m| address - m.base < m.size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A mapping that explains addresses from 5 ticks before its load to 20 after its unload.
    fn mapping(base: u64, module: u32, from: i64, to: i64) -> Mapping {
        let (since, until) = (from.saturating_sub(5), to.saturating_add(20));
        Mapping { base, size: 0x1000, module, from, to, since, until }
    }

    fn spaces() -> AddressSpaces {
        AddressSpaces::new(
            [
                (0, mapping(0xFFFF_8000_0000_0000, 9, i64::MIN, i64::MAX)),
                (7, mapping(0x1000, 1, i64::MIN, 100)),
                (7, mapping(0x1000, 2, 200, i64::MAX)),
                (7, mapping(0x8000, 3, 150, i64::MAX)),
            ],
            8,
        )
    }

    #[test]
    fn a_module_reloaded_elsewhere_is_located_by_time() {
        let spaces = spaces();
        assert_eq!(spaces.locate(7, 0x1010, 50).location, Some((1, 0x10)));
        assert_eq!(spaces.locate(7, 0x1010, 250).location, Some((2, 0x10)));
        assert_eq!(spaces.locate(7, 0x1010, 150).location, None);
        assert_eq!(spaces.locate(7, 0x8000, 144).location, None);
    }

    #[test]
    fn just_after_its_unload_a_module_still_explains_an_address() {
        let spaces = spaces();
        assert_eq!(spaces.locate(7, 0x1010, 119).location, Some((1, 0x10)));
        assert_eq!(spaces.locate(7, 0x1010, 120).location, None);
    }

    #[test]
    fn just_before_its_load_a_module_explains_addresses_of_no_module() {
        let spaces = spaces();
        assert_eq!(spaces.locate(7, 0x8000, 145).location, Some((3, 0)));
        let both = [mapping(0x1000, 1, 0, 100), mapping(0x1000, 2, 101, 200)].map(|m| (7, m));
        let spaces = AddressSpaces::new(both, 8);
        assert_eq!(spaces.locate(7, 0x1000, 99).location, Some((1, 0)));
        assert_eq!(spaces.locate(7, 0x1000, 101).location, Some((2, 0)));
    }

    #[test]
    fn kernel_addresses_belong_to_every_process() {
        let located = spaces().locate(1234, 0xFFFF_8000_0000_0020, 5);
        assert_eq!(
            (located.location, located.from, located.to),
            (Some((9, 0x20)), i64::MIN, i64::MAX)
        );
    }

    #[test]
    fn an_answer_says_how_long_it_holds() {
        let located = spaces().locate(7, 0x1010, 150);
        assert_eq!((located.from, located.to), (120, 195));
        let located = spaces().locate(7, 0x5000, 150);
        assert_eq!((located.from, located.to), (i64::MIN, i64::MAX));
    }
}
