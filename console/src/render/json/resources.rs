//! `.dump Resource -json`.

use std::io::{self, Write};

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use handlescope_model::StackIdx;
use handlescope_model::tables::ResourceEnd;

use super::file::AllocationsFile;
use super::{Array, Members};
use crate::query::{
    ResourceColumn, ResourceCriteria, ResourceGroup, ResourceGroups, ResourcesAnswer,
};
use crate::render::style::RESOURCE_FIGURES;
use crate::render::table::Part;
use crate::values::JsonMode;

pub(in crate::render) fn resources(
    answers: &[ResourcesAnswer<'_>],
    criteria: &ResourceCriteria,
    command: &str,
    parts: &[Part],
    mode: JsonMode,
    out: &mut dyn Write,
) -> io::Result<()> {
    super::write(&Document { files: File::of(answers, parts), criteria, command }, mode, out)
}

struct Document<'a> {
    files: Vec<File<'a>>,
    criteria: &'a ResourceCriteria,
    command: &'a str,
}

/// The answer for a trace.
#[derive(Clone, Copy)]
struct File<'a> {
    file: AllocationsFile<'a>,
    /// What `-TopN` and `-SortBy` leave of the groups that a table shows.
    part: &'a Part,
}

impl<'a> File<'a> {
    fn of(answers: &'a [ResourcesAnswer<'a>], parts: &'a [Part]) -> Vec<Self> {
        let files = AllocationsFile::of(answers.iter()).into_iter();
        files.zip(parts).map(|(file, part)| Self { file, part }).collect()
    }

    /// Some of the groups: in the order of the table if it shows these.
    fn groups(
        self,
        groups: Option<&'a ResourceGroups>,
        criteria: &ResourceCriteria,
    ) -> impl Iterator<Item = GroupJson<'a>> + use<'a> {
        let shown = self.file.answer.shown(criteria);
        let is_shown = shown.zip(groups).is_some_and(|(one, other)| std::ptr::eq(one, other));
        let ordered = is_shown.then(|| self.part.own_rows()).into_iter().flatten();
        let all = (!is_shown).then_some(groups).flatten();
        let rows = move |row: usize| groups.and_then(|groups| groups.rows.get(row));
        let ordered = ordered.filter_map(rows);
        let groups = ordered.chain(all.into_iter().flat_map(|groups| &groups.rows));
        groups.map(move |group| GroupJson { file: self.file, group })
    }
}

impl Serialize for Document<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { files, criteria, command } = self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("command", command)?;
        if let Some(by) = &criteria.by {
            map.serialize_entry("kind", "ResourceGroups")?;
            map.serialize_entry("group_by", &Array(|| by.iter().map(|own| own.word())))?;
            let groups = || self.groups(|answer| answer.groups.as_ref());
            let keyed = || groups().map(|group| KeyedJson { group, by });
            map.serialize_entry("groups", &Array(keyed))?;
        } else {
            map.serialize_entry("kind", "Resource")?;
            let totals = || self.groups(|answer| answer.totals.as_ref());
            map.serialize_entry("totals", &Array(|| totals().map(TotalJson)))?;
            map.serialize_entry("outstanding", &Array(|| self.lost(ResourceEnd::Open)))?;
            map.serialize_entry("at_exit", &Array(|| self.lost(ResourceEnd::AtExit)))?;
        }
        if criteria.stacks.show {
            let stacks = || files.iter().flat_map(|own| own.file.stacks());
            map.serialize_entry("stacks", &Members(stacks))?;
        }
        let caveats = || files.iter().flat_map(|own| own.file.caveats());
        map.serialize_entry("caveats", &Array(caveats))?;
        if let Some(no_match) = files.iter().find_map(|own| own.file.no_match()) {
            map.serialize_entry("no_match", &no_match)?;
        }
        map.end()
    }
}

impl<'a> Document<'a> {
    /// Groups of all traces.
    fn groups(
        &self,
        of: fn(&'a ResourcesAnswer<'a>) -> Option<&'a ResourceGroups>,
    ) -> impl Iterator<Item = GroupJson<'a>> {
        let criteria = self.criteria;
        self.files.iter().flat_map(move |file| file.groups(of(file.file.answer), criteria))
    }

    /// What ended so, by its stacks.
    fn lost(&self, end: ResourceEnd) -> impl Iterator<Item = LostJson<'a>> {
        let lost = self.groups(|answer| answer.lost.as_ref());
        lost.filter(move |group| group.group.end() == Some(end)).map(LostJson)
    }
}

struct GroupJson<'a> {
    file: AllocationsFile<'a>,
    group: &'a ResourceGroup,
}

impl GroupJson<'_> {
    fn stack(&self, stack: Option<StackIdx>) -> Option<u64> {
        stack.map(|stack| self.file.stack(stack))
    }

    fn caller(&self) -> Option<String> {
        Some(self.file.answer.caller(self.group)?.shown_label(true))
    }

    /// File, kind, allocator and process.
    fn write_owner<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        let Self { file, group } = self;
        let process = file.answer.process(group);
        map.serialize_entry("file", &file.answer.index)?;
        map.serialize_entry("kind", &file.answer.kind(group))?;
        map.serialize_entry("allocator", &file.answer.allocator(group))?;
        map.serialize_entry("process", &process.as_ref().map(|own| own.shown_label(true)))?;
        self.write_process(map)
    }

    /// What distinguishes the owner from others of its name.
    fn write_process<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        let process = self.file.answer.process(self.group);
        map.serialize_entry("pid", &process.as_ref().map(|own| own.pid))?;
        map.serialize_entry("process_start_ns", &process.and_then(|own| own.start_ns))
    }

    /// All that is counted.
    fn write_figures<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        let figures = &self.group.figures;
        for ((name, _, count), bytes) in RESOURCE_FIGURES {
            map.serialize_entry(name, &count(figures))?;
            if let Some((name, _, bytes)) = bytes {
                map.serialize_entry(name, &bytes(figures))?;
            }
        }
        if let Some(over_time) = &self.group.over_time {
            map.serialize_entry("over_time", over_time)?;
        }
        Ok(())
    }

    fn write_key<M: SerializeMap>(
        &self,
        column: ResourceColumn,
        map: &mut M,
    ) -> Result<(), M::Error> {
        let Self { file, group } = self;
        let name = column.word();
        match column {
            ResourceColumn::Kind => map.serialize_entry(name, &file.answer.kind(group)),
            ResourceColumn::Allocator => map.serialize_entry(name, &file.answer.allocator(group)),
            ResourceColumn::Process => {
                let process = file.answer.process(group);
                map.serialize_entry(name, &process.map(|own| own.shown_label(true)))
            }
            ResourceColumn::Caller => map.serialize_entry(name, &self.caller()),
            ResourceColumn::CreateStack => {
                map.serialize_entry(name, &self.stack(group.create_stack()))
            }
            ResourceColumn::FreeStack => map.serialize_entry(name, &self.stack(group.free_stack())),
            ResourceColumn::Thread => map.serialize_entry(name, &group.tid()),
            ResourceColumn::End => map.serialize_entry(name, &group.end().map(ResourceEnd::name)),
            ResourceColumn::Size => map.serialize_entry(name, &group.size()),
        }
    }
}

struct TotalJson<'a>(GroupJson<'a>);

impl Serialize for TotalJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        self.0.write_owner(&mut map)?;
        self.0.write_figures(&mut map)?;
        map.end()
    }
}

struct LostJson<'a>(GroupJson<'a>);

impl Serialize for LostJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let figures = &self.0.group.figures;
        let mut map = serializer.serialize_map(None)?;
        self.0.write_owner(&mut map)?;
        map.serialize_entry("stack", &self.0.stack(self.0.group.create_stack()))?;
        map.serialize_entry("by", &self.0.caller())?;
        map.serialize_entry("count", &figures.lost())?;
        map.serialize_entry("bytes", &figures.lost_bytes())?;
        map.serialize_entry("first_ns", &figures.first_ns)?;
        map.serialize_entry("last_ns", &figures.last_ns)?;
        if let Some(over_time) = &self.0.group.over_time {
            map.serialize_entry("over_time", over_time)?;
        }
        map.end()
    }
}

struct KeyedJson<'a> {
    group: GroupJson<'a>,
    by: &'a [ResourceColumn],
}

impl Serialize for KeyedJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("file", &self.group.file.answer.index)?;
        map.serialize_entry("keys", &KeysJson(self))?;
        if self.by.contains(&ResourceColumn::Process) {
            self.group.write_process(&mut map)?;
        }
        self.group.write_figures(&mut map)?;
        map.serialize_entry("first_ns", &self.group.group.figures.first_ns)?;
        map.serialize_entry("last_ns", &self.group.group.figures.last_ns)?;
        map.end()
    }
}

/// What the allocations of a group have in common.
struct KeysJson<'a>(&'a KeyedJson<'a>);

impl Serialize for KeysJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let KeyedJson { group, by } = self.0;
        let mut map = serializer.serialize_map(Some(by.len()))?;
        for column in *by {
            group.write_key(*column, &mut map)?;
        }
        map.end()
    }
}
