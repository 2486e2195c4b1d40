//! `.dump ObjectRef -GroupBy` for files: a row for each group of the innermost level.

use std::io;

use super::index;
use crate::{
    query::{
        Figure, FileAnswer, GroupColumn, GroupCriteria, GroupKey, Groups, NodeIdx, ObjectRefAnswer,
    },
    render::{
        table::{Columns, Part, Table},
        text::StackStyle,
    },
    settings::StackDisplayArgs,
};

/// A group of a file.
struct Row<'a> {
    file: &'a FileAnswer<'a>,
    groups: &'a Groups,
    node: NodeIdx,
    stacks: &'a StackStyle<'a>,
}

/// The groups of the innermost level with what they have in common, their figures and, for a stack, its
/// lines.
///
/// # Errors
/// None that a caller could do anything about.
pub(super) fn groups<'a>(
    answer: &ObjectRefAnswer<'_>,
    criteria: &GroupCriteria,
) -> io::Result<Table<'a>> {
    let shown = StackDisplayArgs { show: true, ..StackDisplayArgs::default() };
    let styles: Vec<StackStyle<'_>> =
        answer.files.iter().map(|file| StackStyle::of(file, shown)).collect();
    let rows: Vec<Row<'_>> =
        answer.files.iter().zip(&styles).flat_map(|(file, stacks)| of_file(file, stacks)).collect();
    let mut columns = Columns::of(&rows);
    columns.add("file", |row| index(row.file.index()));
    for (level, column) in criteria.by.iter().enumerate() {
        match column {
            GroupColumn::CreateStack | GroupColumn::CloseStack => {
                columns.add(column.word(), |row| row.stack(level));
            }
            GroupColumn::Thread => {
                columns.add(column.word(), |row| row.number(level));
            }
            _ => {
                columns.add(column.word(), |row| row.text(level));
            }
        }
    }
    for (figure, name, title) in Figure::ALL {
        columns.add(name, |row| row.groups.tree.figures(row.node).get(figure)).title(title);
    }
    columns.add("share", |row| row.groups.share(row.node)).title("Share");
    columns.add_list("sample_ids", |row| row.sample_ids()).title("Ids");
    if let Some(buckets) = criteria.buckets {
        let open = |row: &Row<'_>| row.groups.outstanding(row.node, buckets).unwrap_or_default();
        columns.add_list("outstanding", open).title("Numbers");
        let verdict = |row: &Row<'_>| row.groups.growth(row.node).map(|own| own.verdict.word());
        columns.add("verdict", verdict).title("Growth");
        columns.add("rate_per_minute", |row| {
            Some(row.groups.growth(row.node)?.evidence.rate?.per_minute)
        });
    }
    let parts = answer.files.iter().map(|file| {
        let leaves = file.groups.as_ref().map_or(0, |groups| groups.tree.leaves().count());
        Part::of(file.path(), leaves)
    });
    Table::new("groups", columns, parts)
}

fn of_file<'a>(
    file: &'a FileAnswer<'a>,
    stacks: &'a StackStyle<'a>,
) -> impl Iterator<Item = Row<'a>> {
    let rows = move |groups: &'a Groups| {
        groups.tree.leaves().map(move |node| Row { file, groups, node, stacks })
    };
    file.groups.iter().flat_map(rows)
}

impl Row<'_> {
    fn key(&self, level: usize) -> GroupKey<'_> {
        let node = self.groups.path(self.node).nth(level);
        node.map_or(GroupKey::None, |node| self.groups.key(node))
    }

    fn text(&self, level: usize) -> Option<String> {
        match self.key(level) {
            GroupKey::Text(text) => Some(text.to_owned()),
            _ => None,
        }
    }

    fn number(&self, level: usize) -> Option<u32> {
        match self.key(level) {
            GroupKey::Number(number) => Some(number),
            _ => None,
        }
    }

    /// The lines of a stack.
    fn stack(&self, level: usize) -> Option<String> {
        let GroupKey::Stack(stack) = self.key(level) else { return None };
        let lines = self.stacks.trimmed_lines(stack, self.groups.stacks.as_ref())?;
        Some(lines.collect::<Vec<_>>().join("\n"))
    }

    fn sample_ids(&self) -> Vec<u32> {
        let ids = self.groups.tree.figures(self.node);
        ids.sample_ids().filter_map(|id| u32::try_from(id).ok()).collect()
    }
}
