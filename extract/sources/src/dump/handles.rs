//! The handles that were open: MINIDUMP_HANDLE_DATA_STREAM, whose descriptors have 32 bytes, or 40 with object information.

use std::collections::{HashMap, HashSet};

use handlescope_extract::etl::{Diagnostics, WarningKind};
use handlescope_model::{Cancel, Cancelled, NameIdx, TypeId};
use minidump_common::format::{
    MINIDUMP_HANDLE_DESCRIPTOR, MINIDUMP_HANDLE_DESCRIPTOR_2, MINIDUMP_STREAM_TYPE,
};

use super::container::{DumpStream, Minidump, TextReader};
use super::information;
use super::process::ProcessFacts;
use crate::operations::{ListedHandle, OpenHandleList, OpenList};

/// Handles that a process of Windows can have.
const MAX_HANDLES: u32 = 1 << 24;

/// Bytes of the names of types and objects in all.
const MAX_NAME_BYTES: usize = 256 << 20;

/// Entries after which a request to stop is looked for.
const ENTRIES_PER_CHECK: u32 = 1 << 12;

/// Open handles with their types and names.
#[derive(Default)]
pub struct DescriptorList {
    pub open: OpenHandleList,
    /// Whether the dump has all entries that the list should have.
    pub is_complete: bool,
}

impl DescriptorList {
    /// The handle values, if these are all.
    pub fn values(&self) -> Option<HashSet<u64>> {
        self.is_complete.then(|| self.open.handles.iter().map(|handle| handle.handle).collect())
    }

    pub fn list(&self) -> OpenList<'_> {
        OpenList { handles: &self.open.handles, is_complete: self.is_complete }
    }

    /// Reads the handles of a process, which is row 0 of the processes; `None` for a dump without them.
    pub fn new(
        dump: &Minidump<'_>,
        facts: &ProcessFacts,
        cancel: &Cancel,
        findings: &mut Diagnostics,
    ) -> Result<Option<Self>, Cancelled> {
        let Some(stream) = dump.stream(MINIDUMP_STREAM_TYPE::HandleDataStream, findings) else {
            return Ok(None);
        };
        let least = size_of::<MINIDUMP_HANDLE_DESCRIPTOR>();
        let head = stream.read::<[u32; 3]>(0).filter(|[_, size, _]| *size as usize >= least);
        let Some([start, size, count]) = head else {
            findings.count(WarningKind::BadDumpEntry, Some(stream.offset));
            return Ok(Some(Self::default()));
        };
        let beyond = count.saturating_sub(MAX_HANDLES);
        findings.add(WarningKind::MissingEntries, beyond.into(), Some(stream.offset));
        let mut reading = DescriptorReader::new(dump, facts);
        let most = count.min(MAX_HANDLES);
        let entries = stream.entries(start as usize, size as usize, most, findings);
        let mut present = 0;
        for (index, entry) in (0..).zip(entries) {
            if index % ENTRIES_PER_CHECK == 0 {
                cancel.check()?;
            }
            reading.add(&entry, findings);
            present = index + 1;
        }
        Ok(Some(Self { open: reading.open, is_complete: present == count }))
    }
}

/// Descriptors being read.
struct DescriptorReader<'d> {
    dump: &'d Minidump<'d>,
    mask: u64,
    /// Smallest handle value: file descriptors of other systems than Windows start with 0.
    least: u64,
    known: HashSet<u64>,
    open: OpenHandleList,
    /// Type ids by place of the name.
    type_ids: HashMap<u32, TypeId>,
    /// Names by place; those without text have none.
    names_at: HashMap<u32, Option<NameIdx>>,
    texts: TextReader<'d>,
}

impl<'d> DescriptorReader<'d> {
    fn new(dump: &'d Minidump<'d>, facts: &ProcessFacts) -> Self {
        Self {
            dump,
            mask: facts.mask(),
            least: u64::from(facts.other_system.is_none()),
            known: HashSet::new(),
            open: OpenHandleList::default(),
            type_ids: HashMap::new(),
            names_at: HashMap::new(),
            texts: TextReader::new(dump, MAX_NAME_BYTES),
        }
    }

    /// Adds the handle of a descriptor. In Windows a value of 0 is no handle, and one value is one handle.
    fn add(&mut self, entry: &DumpStream<'_>, findings: &mut Diagnostics) {
        let raw: Option<MINIDUMP_HANDLE_DESCRIPTOR> = self.dump.read(entry.offset as usize);
        let Some(raw) = raw.filter(|raw| raw.handle & self.mask >= self.least) else {
            findings.count(WarningKind::BadDumpEntry, Some(entry.offset));
            return;
        };
        let handle = raw.handle & self.mask;
        if !self.known.insert(handle) {
            findings.count(WarningKind::BadDumpEntry, Some(entry.offset));
            return;
        }
        let type_id = self.type_id(raw.type_name_rva, entry.offset, findings);
        let name = self.name(raw.object_name_rva, entry.offset, findings);
        let information = self.information(entry, findings);
        let name = name.or_else(|| Some(self.open.name(&information?)));
        self.open.handles.push(ListedHandle {
            handle,
            process: 0,
            type_id,
            name,
            granted_access: Some(raw.granted_access),
            attributes: Some(raw.attributes),
            handle_count: Some(raw.handle_count),
            pointer_count: Some(raw.pointer_count),
            ..ListedHandle::default()
        });
    }

    /// Returns what the object information of a descriptor names, and counts damage in it.
    fn information(&self, entry: &DumpStream<'_>, findings: &mut Diagnostics) -> Option<String> {
        if entry.bytes.len() < size_of::<MINIDUMP_HANDLE_DESCRIPTOR_2>() {
            return None;
        }
        let descriptor: MINIDUMP_HANDLE_DESCRIPTOR_2 = self.dump.read(entry.offset as usize)?;
        let (text, is_sound) = information::of(self.dump, descriptor.object_info_rva);
        findings.add(WarningKind::BadObjectInformation, (!is_sound).into(), Some(entry.offset));
        text
    }

    fn type_id(&mut self, rva: u32, offset: u64, findings: &mut Diagnostics) -> TypeId {
        if rva == 0 {
            return TypeId(0);
        }
        if let Some(id) = self.type_ids.get(&rva) {
            return *id;
        }
        let text = self.texts.text(rva).filter(|text| !text.is_empty());
        let id = text.and_then(|text| self.open.type_id(&text)).unwrap_or_else(|| {
            findings.count(WarningKind::BadDumpName, Some(offset));
            TypeId(0)
        });
        self.type_ids.insert(rva, id);
        id
    }

    fn name(&mut self, rva: u32, offset: u64, findings: &mut Diagnostics) -> Option<NameIdx> {
        if rva == 0 {
            return None;
        }
        if let Some(name) = self.names_at.get(&rva) {
            return *name;
        }
        let text = self.texts.text(rva);
        if text.is_none() {
            findings.count(WarningKind::BadDumpName, Some(offset));
        }
        let text = text.filter(|text| !text.is_empty());
        let name = text.map(|text| self.open.name(&text));
        self.names_at.insert(rva, name);
        name
    }
}
