//! The modules of the process, and where addresses lie in them.

use handlescope_extract::etl::{Diagnostics, WarningKind};
use handlescope_extract::intern::Interner;
use handlescope_model::tables::{Frame, Frames, Module, ModuleLoad, ModuleLoads, Modules};
use handlescope_model::{ModuleIdx, ProcessIdx};
use minidump_common::format::{
    CV_INFO_PDB70, CvSignature, MINIDUMP_MODULE, MINIDUMP_STREAM_TYPE, MINIDUMP_UNLOADED_MODULE,
    VS_FFI_SIGNATURE, VS_FIXEDFILEINFO,
};

use super::container::{DumpStream, Minidump, TextReader};

/// Modules that are read. A process has some hundred.
const MAX_MODULES: u32 = 1 << 14;

/// Unloaded modules that are read: Windows keeps the last 64 of a process.
const MAX_UNLOADED: u32 = 128;

/// Bytes of the paths of modules in all.
const MAX_PATH_BYTES: usize = 16 << 20;

/// Bytes of a CodeView record: a path and some numbers.
const MAX_CODE_VIEW: u32 = 4 << 10;

/// Bytes of MINIDUMP_MODULE, which the format packs to 4 bytes.
const MODULE_BYTES: usize = 108;

/// The modules of a process, and frames in them.
pub struct ModuleSpace {
    pub modules: Modules,
    pub loads: ModuleLoads,
    pub frames: Frames,
    /// First address, end and row of each loaded module, ascending.
    loaded: Vec<(u64, u64, u32)>,
    /// First address, end and row of each unloaded module, in no order.
    unloaded: Vec<(u64, u64, u32)>,
    /// Module and offset of each frame, or the address.
    known: Interner<u64>,
    /// The bits of an address.
    mask: u64,
    pid: u32,
}

impl ModuleSpace {
    /// Reads the modules of a process, which is row 0 of the processes.
    pub fn new(dump: &Minidump<'_>, mask: u64, pid: u32, findings: &mut Diagnostics) -> Self {
        let mut space = Self {
            modules: Modules::default(),
            loads: ModuleLoads::default(),
            frames: Frames::default(),
            loaded: Vec::new(),
            unloaded: Vec::new(),
            known: Interner::default(),
            mask,
            pid,
        };
        let mut texts = TextReader::new(dump, MAX_PATH_BYTES);
        space.add_loaded(dump, &mut texts, findings);
        space.add_unloaded(dump, &mut texts, findings);
        space
    }

    fn add_loaded(
        &mut self,
        dump: &Minidump<'_>,
        texts: &mut TextReader<'_>,
        findings: &mut Diagnostics,
    ) {
        let stream = dump.stream(MINIDUMP_STREAM_TYPE::ModuleListStream, findings);
        let list = stream.and_then(|stream| Some((stream, stream.list(MODULE_BYTES)?)));
        let Some((stream, (start, count))) = list else { return };
        for entry in stream.entries(start, MODULE_BYTES, count.min(MAX_MODULES), findings) {
            match module(dump, texts, &entry, findings) {
                Some((base, size, module)) => {
                    let row = self.add(base, module);
                    let base = base & self.mask;
                    self.loaded.push((base, base.saturating_add(size), row));
                }
                None => findings.count(WarningKind::BadDumpModule, Some(entry.offset)),
            }
        }
        findings.add(
            WarningKind::BadDumpModule,
            count.saturating_sub(MAX_MODULES).into(),
            Some(stream.offset),
        );
        self.loaded.sort_unstable();
    }

    fn add_unloaded(
        &mut self,
        dump: &Minidump<'_>,
        texts: &mut TextReader<'_>,
        findings: &mut Diagnostics,
    ) {
        let stream = dump.stream(MINIDUMP_STREAM_TYPE::UnloadedModuleListStream, findings);
        let head = stream.and_then(|stream| Some((stream, stream.read::<[u32; 3]>(0)?)));
        let Some((stream, [start, size, count])) = head else { return };
        if (size as usize) < size_of::<MINIDUMP_UNLOADED_MODULE>() {
            findings.count(WarningKind::BadDumpModule, Some(stream.offset));
            return;
        }
        let beyond = count.saturating_sub(MAX_UNLOADED);
        findings.add(WarningKind::BadDumpModule, beyond.into(), Some(stream.offset));
        let count = count.min(MAX_UNLOADED);
        for entry in stream.entries(start as usize, size as usize, count, findings) {
            let raw = entry.read::<MINIDUMP_UNLOADED_MODULE>(0);
            let known = raw.and_then(|raw| Some((texts.text(raw.module_name_rva)?, raw)));
            let Some((path, raw)) = known else {
                findings.count(WarningKind::BadDumpModule, Some(entry.offset));
                continue;
            };
            let row = self.modules.len() as u32;
            self.modules.push(Module {
                name: file_name(&path),
                path,
                size: raw.size_of_image.into(),
                timestamp: Some(raw.time_date_stamp),
                checksum: raw.checksum,
                ..Module::default()
            });
            let base = raw.base_of_image & self.mask;
            self.unloaded.push((base, base.saturating_add(raw.size_of_image.into()), row));
        }
    }

    fn add(&mut self, base: u64, module: Module) -> u32 {
        let row = self.modules.len() as u32;
        self.modules.push(module);
        self.loads.push(ModuleLoad {
            module: ModuleIdx(row),
            pid: self.pid,
            process: Some(ProcessIdx(0)),
            base: Some(base & self.mask),
            load_ns: None,
            unload_ns: None,
        });
        row
    }

    /// The row of the frame of an address.
    pub fn frame(&mut self, address: u64) -> u32 {
        let address = address & self.mask;
        let place = self.place(address);
        let row = self.known.intern(&match place {
            Some((module, rva)) => [u64::from(module), rva],
            None => [u64::MAX, address],
        });
        if row as usize == self.frames.len() {
            self.frames.push(match place {
                Some((module, rva)) => {
                    Frame { module: Some(ModuleIdx(module)), rva: Some(rva), ..Frame::default() }
                }
                None => Frame { address: Some(address), ..Frame::default() },
            });
        }
        row
    }

    /// The module of an address and the offset in it. Of unloaded modules that lay there at different times, none.
    fn place(&self, address: u64) -> Option<(u32, u64)> {
        let below = self.loaded.partition_point(|(base, ..)| *base <= address);
        let loaded = self.loaded.get(..below)?.last().filter(|(_, end, _)| address < *end);
        if let Some((base, _, row)) = loaded {
            return Some((*row, address - base));
        }
        let mut modules =
            self.unloaded.iter().filter(|(base, end, _)| (*base..*end).contains(&address));
        let (base, _, row) = modules.next()?;
        modules.next().is_none().then_some((*row, address - base))
    }
}

/// A module with its first address and its size.
fn module(
    dump: &Minidump<'_>,
    texts: &mut TextReader<'_>,
    entry: &DumpStream<'_>,
    findings: &mut Diagnostics,
) -> Option<(u64, u64, Module)> {
    let raw: MINIDUMP_MODULE = dump.read(usize::try_from(entry.offset).ok()?)?;
    let path = texts.text(raw.module_name_rva)?;
    let location = raw.cv_record;
    let code_view = match location.data_size {
        0 => None,
        _ => {
            let code_view = code_view(dump, location.rva, location.data_size);
            if code_view.is_none() {
                findings.count(WarningKind::BadDumpModule, Some(entry.offset));
            }
            code_view.flatten()
        }
    };
    let name = code_view.as_ref().map(|pdb| {
        let name = pdb.pdb_file_name.split(|byte| *byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(name).into_owned()
    });
    let module = Module {
        name: file_name(&path),
        path,
        size: raw.size_of_image.into(),
        timestamp: Some(raw.time_date_stamp),
        checksum: raw.checksum,
        pdb_name: name,
        pdb_guid: code_view.as_ref().map(|pdb| pdb.signature.to_string()),
        pdb_age: code_view.as_ref().map(|pdb| pdb.age),
        file_version: version(&raw.version_info),
        ..Module::default()
    };
    Some((raw.base_of_image, raw.size_of_image.into(), module))
}

/// The identity of a PDB; nothing in a record of another kind, `None` where the record cannot be read.
fn code_view(dump: &Minidump<'_>, rva: u32, size: u32) -> Option<Option<CV_INFO_PDB70>> {
    let record = dump.slice(rva.into(), size.min(MAX_CODE_VIEW).into())?;
    let record = DumpStream { bytes: record, offset: rva.into() };
    if record.read::<u32>(0)? != CvSignature::Pdb70 as u32 {
        return Some(None);
    }
    record.read(0).map(Some)
}

fn version(info: &VS_FIXEDFILEINFO) -> Option<String> {
    let [high, low] = [info.file_version_hi, info.file_version_lo];
    let text = format!("{}.{}.{}.{}", high >> 16, high & 0xFFFF, low >> 16, low & 0xFFFF);
    (info.signature == VS_FFI_SIGNATURE).then_some(text)
}

/// The last part of a path of Windows.
pub fn file_name(path: &str) -> String {
    path.rsplit(['\\', '/']).next().unwrap_or_default().to_owned()
}
