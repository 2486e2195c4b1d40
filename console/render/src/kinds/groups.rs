//! `.dump ObjectRef -GroupBy` for documents and files: a row for each group of the innermost level.

use std::{io, rc::Rc};

use super::index;
use crate::{
    ObjectRefStyle,
    json::Document,
    table::{AnswerTable, Columns, FileRows, MemberMeaning},
    text::StackStyle,
    traces::{OfTraces, StackOffset, totals_columns, traces},
};
use handlescope_query::{
    Domain, FileAnswer, GroupColumn, GroupCriteria, GroupKey, GroupStats, GroupTree, Groups,
    GroupsLeftOut, Growth, KeyKind, NodeIdx, ObjectRefAnswer, Stat,
};
use handlescope_session::settings::StackDisplayArgs;

/// A group of a file.
pub struct GroupRow<'a> {
    file: &'a FileAnswer<'a>,
    groups: &'a Groups,
    node: NodeIdx,
    /// Growth of the group, with `-ShowTime`.
    growth: Option<Growth>,
    numbers: StackOffset,
    stacks: Rc<StackStyle<'a>>,
}

/// Declares the columns of a group; a document has the shared values of its handles in one member.
fn group_columns<'a>(criteria: &GroupCriteria, is_document: bool) -> Columns<'a, GroupRow<'a>> {
    let mut columns = Columns::<GroupRow<'a>>::default();
    columns.add("file", "index", |row| index(row.file.about.index));
    columns
        .nest(
            "keys",
            "object",
            "for each column, the value shared by the handles of the group; null for \
             nothing (no name, no stack, not closed)",
            GroupRow::keys,
        )
        .inner(key_members(Domain::Handles));
    for column in criteria.by.iter().flatten().copied().filter(|_| !is_document) {
        let (name, help) = (column.word(), column.help(Domain::Handles));
        if column.kind() == KeyKind::Number {
            columns.add(name, help, move |row| row.number(column)).rows_only()
        } else {
            columns.add(name, help, move |row| row.text(column)).rows_only()
        };
    }
    add_stats(&mut columns, |row| row.groups.tree.stats(row.node));
    columns
        .add(
            "share",
            "share of this group, 0 to 1, in the leaked handles of all groups; if nothing \
             leaked, in their handles",
            |row| row.groups.share(row.node),
        )
        .title("Share");
    columns.add("sample_ids", "ids of up to three objects", GroupRow::sample_ids).title("Ids");
    if let Some(buckets) = criteria.buckets {
        const OPEN: &str =
            "only with `-ShowTime`: handles open at the end of each part of the trace";
        let open = move |row: &GroupRow<'a>| row.groups.outstanding(row.node, buckets);
        columns.nest("outstanding", "array?", OPEN, open);
        if !is_document {
            columns
                .add("outstanding", OPEN, move |row| open(row).unwrap_or_default())
                .title("Numbers")
                .rows_only();
        }
        columns
            .add(
                "verdict",
                "only with `-ShowTime`: `steady`, `burst`, `once`, `balanced` or `short`, see \
                 [growth.md](growth.md)",
                |row| Some(row.growth.as_ref()?.verdict.word()),
            )
            .title("Growth");
        let rate = |row: &GroupRow<'a>| Some(row.growth.as_ref()?.evidence.rate?.per_minute);
        columns.add("rate_per_minute", "only with `-ShowTime`: the rate of a steady leak", rate);
    }
    columns
}

/// Returns the members of a group in a document, including all that options add.
pub fn group_members() -> Vec<MemberMeaning> {
    let criteria = GroupCriteria { buckets: Some(1), ..GroupCriteria::default() };
    group_columns(&criteria, true).members()
}

/// Describes the value of each column of groups.
pub fn key_members(domain: Domain) -> Vec<MemberMeaning> {
    let meaning = |column: &GroupColumn| match (column, domain) {
        (column, _) if column.kind() == KeyKind::Stack => {
            "number of a stack: one of those with equal functions"
        }
        (GroupColumn::Thread, Domain::Handles) => "thread id",
        (_, Domain::Handles) => "text",
        (GroupColumn::Thread, Domain::Allocations) => "id of the thread that allocated",
        (GroupColumn::End, _) => {
            "`\"open\"`, `\"freed\"`, `\"reallocated\"`, `\"replaced\"`, `\"destroyed\"`, \
             `\"at_exit\"` or `\"empty\"` (everything in it was already allocated)"
        }
        (GroupColumn::Size, _) => column.help(domain),
        (_, Domain::Allocations) => "as in `totals` and `leaked`",
    };
    let columns = GroupColumn::of(domain);
    columns.iter().map(|column| MemberMeaning::new(column.word(), meaning(column))).collect()
}

/// Adds the statistics of a group.
pub fn add_stats<'a, R>(
    columns: &mut Columns<'a, R>,
    stats: impl Fn(&R) -> GroupStats + Copy + 'a,
) {
    for (stat, name, title, meaning) in Stat::ALL {
        let value = move |row: &R| stats(row).get(stat);
        if stat.is_time() {
            columns.add(name, meaning, value).title(title)
        } else {
            columns.add(name, meaning, move |row| value(row).unwrap_or_default()).title(title)
        };
    }
}

/// Returns the groups of the innermost level with their shared values, their statistics and, for a stack, its lines.
///
/// # Errors
/// None that a caller could do anything about.
pub fn groups<'a>(
    answer: &'a ObjectRefAnswer<'a>,
    style: &ObjectRefStyle<'a>,
    is_document: bool,
) -> io::Result<AnswerTable<'a>> {
    let criteria = &style.criteria.groups;
    let has_times = criteria.buckets.is_some();
    let traces = traces(&answer.files);
    let rows = answer.files.iter().zip(traces.iter()).flat_map(|(file, trace)| {
        let (numbers, stacks) =
            (trace.numbers, Rc::new(StackStyle::for_groups(file, StackDisplayArgs::default())));
        file.groups
            .iter()
            .flat_map(|groups| groups.tree.leaves().map(move |node| (groups, node)))
            .map(move |(groups, node)| {
                let growth = has_times.then(|| groups.growth(node)).flatten();
                GroupRow { file, groups, node, growth, numbers, stacks: Rc::clone(&stacks) }
            })
    });
    let file_rows = answer.files.iter().map(|file| {
        let leaves = file.groups.as_ref().map_or(0, |groups| groups.tree.leaves().count());
        FileRows::new(file.about.path, leaves)
    });
    let about = (answer, style.text, criteria.clone());
    let columns = group_columns(criteria, is_document);
    let table = AnswerTable::new(columns, rows.collect(), file_rows)?;
    Ok(table.within(group_document(), OfTraces { traces, rest: about }))
}

/// An answer, its command, and the criteria of its groups.
type GroupsHead<'a> = OfTraces<'a, (&'a ObjectRefAnswer<'a>, &'a str, GroupCriteria)>;

/// Declares the document of `.dump ObjectRef -GroupBy`.
pub fn group_document<'a>() -> Columns<'a, GroupsHead<'a>> {
    const AS_IN_OBJECT_REF: &str = "as in `.dump ObjectRef`";
    let mut document = Columns::<GroupsHead<'a>>::default();
    document.kind("`\"ObjectRefGroups\"`", "ObjectRefGroups");
    document.member("command", AS_IN_OBJECT_REF, |of| of.rest.1).for_programs();
    document.files(AS_IN_OBJECT_REF);
    document
        .member("group_by", "the columns as typed, at most `-Depth` of them", |of| {
            of.rest.2.by.iter().flatten().map(|column| column.word()).collect::<Vec<_>>()
        })
        .for_programs();
    document.rows("groups", "the groups, see below");
    document
        .part_if(
            "left_out",
            "what `-TopN`, `-MinCount` and `-Rows` omit",
            left_out_columns(),
            |of| Some(left_out(of.rest.0, &of.rest.2)),
        )
        .for_programs();
    document.stacks(
        "the stacks used as keys, without the frames removed by `-FoldStack` and `-StackFrom`, as \
         in `.dump ObjectRef`",
        |_| true,
    );
    document.member("totals", AS_IN_OBJECT_REF, |of| totals_columns().part(of.rest.0.totals()));
    document.caveats(AS_IN_OBJECT_REF, AS_IN_OBJECT_REF);
    document
}

/// The groups that options leave out, and the number of rows that `-Rows` does.
type Omissions = (GroupsLeftOut, Option<usize>);

/// Declares the columns for what options leave out.
fn left_out_columns<'a>() -> Columns<'a, Omissions> {
    const OMITTED: &str = "number of omitted groups, and of the handles and views in them";
    let mut columns = Columns::<Omissions>::default();
    columns.member("groups", OMITTED, |(sum, _)| sum.groups);
    columns.member("handles", OMITTED, |(sum, _)| sum.handles);
    columns.member_if(
        "rows",
        "only with `-Rows`: groups of the last column that it omits",
        |(_, rows)| *rows,
    );
    columns
}

/// Counts what `-TopN`, `-MinCount` and `-Rows` leave out on all levels.
fn left_out(answer: &ObjectRefAnswer<'_>, criteria: &GroupCriteria) -> Omissions {
    let trees = || answer.files.iter().filter_map(|file| Some(&file.groups.as_ref()?.tree));
    let rows = criteria.rows.map(|_| trees().map(GroupTree::rows_left_out).sum());
    let mut sum = GroupsLeftOut::default();
    for tree in trees() {
        let parents = std::iter::once(None).chain(tree.shown().map(Some));
        for GroupsLeftOut { groups, handles } in parents.map(|parent| tree.left_out(parent)) {
            sum.groups += groups;
            sum.handles += handles;
        }
    }
    (sum, rows)
}

impl<'a> GroupRow<'a> {
    /// Returns the values that the handles of the group share, by column.
    fn keys(&self) -> Document<'a> {
        let groups = self.groups;
        Document::from_keys(&groups.by, self.numbers, |column| groups.key_in(self.node, column))
    }
}

impl GroupRow<'_> {
    /// Returns the text of a value, or the lines of a stack.
    fn text(&self, column: GroupColumn) -> Option<String> {
        match self.groups.key_in(self.node, column) {
            GroupKey::Text(text) => Some(text.to_owned()),
            GroupKey::Stack(stack) => self.stacks.text(Some(stack)),
            _ => None,
        }
    }

    fn number(&self, column: GroupColumn) -> Option<u32> {
        u32::try_from(self.groups.key_in(self.node, column).number()?).ok()
    }

    fn sample_ids(&self) -> Vec<u32> {
        let ids = self.groups.tree.stats(self.node);
        ids.sample_ids().filter_map(|id| u32::try_from(id).ok()).collect()
    }
}
