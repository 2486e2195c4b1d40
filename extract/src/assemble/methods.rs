//! The methods table: managed methods that occur in stacks.

use std::collections::HashMap;

use handlescope_model::tables::{Method, Methods};
use handlescope_model::{MethodIdx, ModuleIdx, ProcessIdx};

use crate::etl::Clock;
use crate::lifecycle::ProcessIndex;
use crate::managed::{self, MethodRow};
use crate::stacks::{AddressSpaces, Mapping};

/// Where the code of methods is, for resolving addresses; the "module" is the row of the method.
///
/// `grace` is how long (ticks) a method is believed after its unload.
pub(super) fn mappings(
    methods: &managed::Methods,
    grace: i64,
) -> impl Iterator<Item = (u32, Mapping)> + '_ {
    (0..).zip(&methods.rows).map(move |(row, method)| {
        let mapping = Mapping {
            base: method.address,
            size: u64::from(method.size),
            module: row,
            from: method.load.unwrap_or(i64::MIN),
            to: method.unload.unwrap_or(i64::MAX),
            since: method.load.unwrap_or(i64::MIN),
            until: method.unload.map_or(i64::MAX, |unload| unload.saturating_add(grace)),
        };
        (method.pid, mapping)
    })
}

/// The table, and where each gathered method is in it.
#[derive(Default)]
pub(super) struct MethodTable {
    methods: Methods,
    rows: HashMap<u32, MethodIdx>,
}

/// What makes code in a native image the same method in every process.
type ImageCode = (u32, u64, u32, u32, u32);

impl MethodTable {
    /// The table of some of the gathered methods. Code in a native image is there once, although
    /// every process logs it.
    pub(super) fn new(
        gathered: &managed::Methods,
        used: impl Iterator<Item = u32>,
        spaces: &AddressSpaces,
        index: &ProcessIndex,
        clock: &Clock,
    ) -> Self {
        let mut table = Self::default();
        let mut images: HashMap<ImageCode, MethodIdx> = HashMap::new();
        for row in used {
            let Some(method) = gathered.rows.get(row as usize) else { continue };
            if table.rows.contains_key(&row) {
                continue;
            }
            let place = spaces.locate(method.pid, method.address, method.seen).place;
            let next = MethodIdx(table.methods.len() as u32);
            let known = match place {
                Some((image, rva)) => {
                    let code = (image, rva, method.size, method.type_name, method.name);
                    *images.entry(code).or_insert(next)
                }
                None => next,
            };
            table.rows.insert(row, known);
            if known == next {
                table.methods.push(cells(gathered, method, place, index, clock));
            }
        }
        table
    }

    /// Where a gathered method is.
    pub(super) fn row(&self, gathered: u32) -> Option<MethodIdx> {
        self.rows.get(&gathered).copied()
    }

    pub(super) fn into_table(self) -> Methods {
        self.methods
    }
}

fn cells(
    gathered: &managed::Methods,
    method: &MethodRow,
    place: Option<(u32, u64)>,
    index: &ProcessIndex,
    clock: &Clock,
) -> Method {
    let text = |id| gathered.names.text(id);
    let at_run_time = place.is_none();
    Method {
        module: gathered.module_name(method),
        type_name: text(method.type_name),
        name: text(method.name),
        signature: text(method.signature),
        image: place.map(|(image, _)| ModuleIdx(image)),
        rva: place.map(|(_, rva)| rva),
        process: index.find_any(method.pid, method.seen).filter(|_| at_run_time).map(ProcessIdx),
        address: Some(method.address).filter(|_| at_run_time),
        size: method.size,
        load_ns: clock.ns_of(method.load).filter(|_| at_run_time),
        unload_ns: clock.ns_of(method.unload).filter(|_| at_run_time),
    }
}
