//! `.dump ObjectRef -GroupBy -json`: the groups of the innermost level, one after the other.

use std::io::{self, Write};

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::file::FileJson;
use super::sums::TotalsJson;
use super::{Array, Members};
use crate::query::{Figure, GroupKey, Groups, GroupsLeftOut, NodeIdx, ObjectRefAnswer};
use crate::render::style::ObjectRefStyle;
use crate::values::JsonMode;

pub(in crate::render) fn groups(
    answer: &ObjectRefAnswer<'_>,
    style: &ObjectRefStyle<'_>,
    mode: JsonMode,
    out: &mut dyn Write,
) -> io::Result<()> {
    super::write(&Document { files: FileJson::of_all(answer), answer, style }, mode, out)
}

struct Document<'a> {
    answer: &'a ObjectRefAnswer<'a>,
    files: Vec<FileJson<'a>>,
    style: &'a ObjectRefStyle<'a>,
}

impl Serialize for Document<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let by = &self.style.criteria.groups.by;
        let buckets = self.style.criteria.groups.buckets;
        let groups = || self.files.iter().flat_map(|file| GroupJson::of_file(file, buckets));
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("kind", "ObjectRefGroups")?;
        map.serialize_entry("command", &self.style.text)?;
        map.serialize_entry("files", &Array(|| self.files.iter().map(FileJson::header)))?;
        map.serialize_entry("group_by", &Array(|| by.iter().map(|column| column.word())))?;
        map.serialize_entry("groups", &Array(groups))?;
        map.serialize_entry("left_out", &self.left_out())?;
        map.serialize_entry("stacks", &Members(|| self.files.iter().flat_map(FileJson::stacks)))?;
        map.serialize_entry("totals", &TotalsJson(self.answer.totals()))?;
        map.serialize_entry("caveats", &Array(|| self.files.iter().flat_map(FileJson::caveats)))?;
        if let Some(no_match) = self.files.iter().find_map(FileJson::no_match) {
            map.serialize_entry("no_match", &no_match)?;
        }
        map.end()
    }
}

#[derive(Default, Serialize)]
struct LeftOut {
    groups: usize,
    handles: u64,
}

impl Document<'_> {
    /// What `-TopN` and `-MinCount` leave out on all levels.
    fn left_out(&self) -> LeftOut {
        let mut sum = LeftOut::default();
        for groups in self.files.iter().filter_map(|file| file.answer.groups.as_ref()) {
            let parents = std::iter::once(None).chain(groups.tree.shown().map(Some));
            for GroupsLeftOut { groups, handles } in parents.map(|at| groups.tree.left_out(at)) {
                sum.groups += groups;
                sum.handles += handles;
            }
        }
        sum
    }
}

struct GroupJson<'a> {
    file: &'a FileJson<'a>,
    groups: &'a Groups,
    node: NodeIdx,
    buckets: Option<usize>,
}

impl<'a> GroupJson<'a> {
    fn of_file(file: &'a FileJson<'a>, buckets: Option<usize>) -> impl Iterator<Item = Self> {
        let groups = file.answer.groups.iter();
        groups.flat_map(move |groups| {
            groups.tree.leaves().map(move |node| Self { file, groups, node, buckets })
        })
    }

    /// What the handles of the group have in common, by column.
    fn keys(&self) -> impl Iterator<Item = (&'static str, KeyJson<'_>)> {
        let nodes = self.groups.path(self.node);
        self.groups.by.iter().zip(nodes).map(|(column, node)| {
            let key = match self.groups.key(node) {
                GroupKey::Text(text) => KeyJson::Text(text),
                GroupKey::Number(number) => KeyJson::Number(number.into()),
                GroupKey::Stack(stack) => KeyJson::Number(self.file.stack(stack)),
                GroupKey::None => KeyJson::None,
            };
            (column.word(), key)
        })
    }
}

#[derive(Serialize)]
#[serde(untagged)]
enum KeyJson<'a> {
    Text(&'a str),
    Number(u64),
    None,
}

impl Serialize for GroupJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let figures = self.groups.tree.figures(self.node);
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("file", &self.file.index)?;
        map.serialize_entry("keys", &Members(|| self.keys()))?;
        for (figure, name, _) in Figure::ALL {
            map.serialize_entry(name, &figures.get(figure))?;
        }
        map.serialize_entry("share", &self.groups.share(self.node))?;
        map.serialize_entry("sample_ids", &Array(|| figures.sample_ids()))?;
        if let Some(buckets) = self.buckets {
            map.serialize_entry("outstanding", &self.groups.outstanding(self.node, buckets))?;
            let growth = self.groups.growth(self.node);
            map.serialize_entry("verdict", &growth.map(|growth| growth.verdict.word()))?;
            let rate = growth.and_then(|growth| growth.evidence.rate);
            map.serialize_entry("rate_per_minute", &rate.map(|rate| rate.per_minute))?;
        }
        map.end()
    }
}
