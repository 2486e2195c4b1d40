//! Tables of modules, of module loads, and of the managed methods that occur in stacks.

use std::collections::HashMap;

use handlescope_model::tables::{Method, Methods, Module, ModuleLoad, ModuleLoads, Modules};
use handlescope_model::{MethodIdx, ModuleIdx, ProcessIdx};

use super::files::{File, ImageFiles};
use crate::collect::Collector;
use crate::etl::Clock;
use crate::kernel::{ImagePaths, ImageRow, Images};
use crate::lifecycle::ProcessIndex;
use crate::managed::{self, MethodRow};
use crate::stacks::{AddressSpaces, Mapping};

/// Code may run this long before the event that says where it is, and after the one that says it is gone.
pub const LOAD_GRACE_NS: i64 = 2_000_000;

/// Tables of modules and module loads, and the module of each image row.
pub struct ModuleTables {
    modules: Modules,
    loads: ModuleLoads,
    module_of_image: Vec<u32>,
}

impl ModuleTables {
    /// Finds the distinct files among the images.
    pub fn new(images: &Images, paths: &ImagePaths, index: &ProcessIndex, clock: &Clock) -> Self {
        let ImageFiles { rows, of_image } = ImageFiles::new(images, paths);
        let mut tables = Self {
            modules: rows.iter().map(|file| module(images, file)).collect(),
            loads: ModuleLoads::default(),
            module_of_image: of_image,
        };
        for (at, image) in images.rows.iter().enumerate() {
            let module = tables.module_of_image[at];
            tables.complete(module as usize, images, image);
            tables.loads.push(ModuleLoad {
                module: ModuleIdx(module),
                pid: image.pid,
                process: index.find_any(image.pid, moment(image)).map(ProcessIdx),
                base: Some(image.base),
                load_ns: clock.ns_of(image.load),
                unload_ns: clock.ns_of(image.unload),
            });
        }
        tables
    }

    /// Returns the address ranges of modules, for resolving addresses.
    ///
    /// An image also explains addresses from `grace` ticks before its load, and addresses in the sweep after the end of
    /// its process.
    pub fn mappings<'a>(
        &'a self,
        collected: &'a Collector,
        index: &'a ProcessIndex,
        grace: i64,
    ) -> impl Iterator<Item = (u32, Mapping)> + 'a {
        let end_of = move |image: &ImageRow| {
            let process = index.find_any(image.pid, moment(image)).filter(|_| image.pid != 0)?;
            collected.processes.rows.get(process as usize)?.end
        };
        collected.images.rows.iter().zip(&self.module_of_image).map(move |(image, module)| {
            let mapping = Mapping {
                base: image.base,
                // An image is at most 4 GiB large (SizeOfImage has 32 bits).
                size: image.size.min(1 << 32),
                module: *module,
                from: image.load.unwrap_or(i64::MIN),
                to: image.unload.unwrap_or(i64::MAX),
                since: image.load.map_or(i64::MIN, |load| load.saturating_sub(grace)),
                until: end_of(image).map_or(i64::MAX, |end| {
                    index
                        .next_start(image.pid, end)
                        .map_or(i64::MAX, |start| start.saturating_sub(1))
                }),
            };
            (image.pid, mapping)
        })
    }

    /// Returns the executable path of each process: the first image with the process's name.
    pub fn process_images(
        &self,
        collected: &Collector,
        index: &ProcessIndex,
    ) -> HashMap<u32, String> {
        let mut paths = HashMap::new();
        for (image, module) in collected.images.rows.iter().zip(&self.module_of_image) {
            let Some(process) = index.find_any(image.pid, moment(image)) else { continue };
            let Some(row) = collected.processes.rows.get(process as usize) else { continue };
            let file = &self.modules.name[*module as usize];
            if file.eq_ignore_ascii_case(&row.process.name) {
                let path = &self.modules.path[*module as usize];
                paths.entry(process).or_insert_with(|| path.clone());
            }
        }
        paths
    }

    pub fn into_tables(self) -> (Modules, ModuleLoads) {
        (self.modules, self.loads)
    }

    /// Adds properties that only some images of a file have.
    fn complete(&mut self, module: usize, images: &Images, image: &ImageRow) {
        if image.timestamp != 0 {
            self.modules.timestamp[module].get_or_insert(image.timestamp);
        }
        if let Some(name) = &image.file.original_name {
            self.modules.original_name[module].get_or_insert_with(|| name.clone());
        }
        let Some(version) = image.file.version_key.and_then(|key| images.versions.get(&key)) else {
            return;
        };
        fill(&mut self.modules.file_version[module], &version.file_version);
        fill(&mut self.modules.product_name[module], &version.product_name);
        fill(&mut self.modules.description[module], &version.description);
        fill(&mut self.modules.company[module], &version.company);
    }
}

/// Fills in a text of a version resource if none is known yet; files without the resource have empty texts.
fn fill(cell: &mut Option<String>, text: &str) {
    if !text.is_empty() {
        cell.get_or_insert_with(|| text.to_owned());
    }
}

/// Returns a time at which the image was certainly mapped.
fn moment(image: &ImageRow) -> i64 {
    image.load.or(image.unload).unwrap_or(i64::MIN)
}

fn module(images: &Images, file: &File<'_>) -> Module {
    let path = images.paths.get(file.path as usize).cloned().unwrap_or_default();
    let name = path.rsplit(['\\', '/']).next().unwrap_or_default().to_owned();
    Module {
        name,
        path,
        size: file.size,
        checksum: file.checksum,
        pdb_name: file.pdb.map(|(_, _, name)| name.to_owned()),
        pdb_guid: file.pdb.map(|(guid, _, _)| guid.to_string()),
        pdb_age: file.pdb.map(|(_, age, _)| age),
        // `complete` fills these in from all images of the file.
        timestamp: None,
        file_version: None,
        original_name: None,
        product_name: None,
        description: None,
        company: None,
    }
}

/// Returns the address ranges of methods' code, for resolving addresses; the "module" is the row of the method.
///
/// A method also explains addresses `grace` ticks after its unload.
pub fn mappings(
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

/// Methods table, with the table row of each gathered method.
#[derive(Default)]
pub struct MethodTable {
    methods: Methods,
    rows: HashMap<u32, MethodIdx>,
}

/// Identity of code in a native image, equal in all processes.
type ImageCode = (u32, u64, u32, u32, u32);

impl MethodTable {
    /// Creates the table from the gathered methods that are `used`. Code in a native image gets one row, although every
    /// process logs it.
    pub fn new(
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
            let location = spaces.locate(method.pid, method.address, method.seen).location;
            let next = MethodIdx(table.methods.len() as u32);
            let known = match location {
                Some((image, rva)) => {
                    let code = (image, rva, method.size, method.type_name, method.name);
                    *images.entry(code).or_insert(next)
                }
                None => next,
            };
            table.rows.insert(row, known);
            if known == next {
                table.methods.push(cells(gathered, method, location, index, clock));
            }
        }
        table
    }

    /// Returns the table, and the table row of each gathered method.
    pub fn into_parts(self) -> (Methods, HashMap<u32, MethodIdx>) {
        (self.methods, self.rows)
    }
}

fn cells(
    gathered: &managed::Methods,
    method: &MethodRow,
    location: Option<(u32, u64)>,
    index: &ProcessIndex,
    clock: &Clock,
) -> Method {
    let text = |id| gathered.names.text(id);
    let at_run_time = location.is_none();
    Method {
        module: gathered.module_name(method),
        type_name: text(method.type_name),
        name: text(method.name),
        signature: text(method.signature),
        image: location.map(|(image, _)| ModuleIdx(image)),
        rva: location.map(|(_, rva)| rva),
        process: index.find_any(method.pid, method.seen).filter(|_| at_run_time).map(ProcessIdx),
        address: Some(method.address).filter(|_| at_run_time),
        size: method.size,
        load_ns: clock.ns_of(method.load).filter(|_| at_run_time),
        unload_ns: clock.ns_of(method.unload).filter(|_| at_run_time),
    }
}
