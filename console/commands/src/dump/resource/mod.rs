//! `.dump Resource`. Its arguments are in their own file.

mod options;

pub use self::options::ResourceArgs;

use self::options::OPTIONS;
use crate::shared::write_caveats;
use crate::{Command, CommandError, DumpContext, SharedArgs, Signature, Tabular};
use handlescope_query::{self as query, AcquisitionCriteria};
use handlescope_render::{self as render, OutputOptions};
use handlescope_session::grammar::{Example, OptionGroup, ParseError};

pub struct Resource;

impl Command for Resource {
    type Args = ResourceArgs;
    const SIGNATURE: Signature = Signature {
        names: &["Resource"],
        summary: "allocations: heap blocks, virtual memory and other acquired resources",
        details: "Counts allocations and frees by kind, allocator and process, leaks first. With \
             -Leak, lists leaked allocations by their stacks. Allocations from before the trace \
             are not included; their frees are orphan frees. See docs/resources.md.",
        examples: EXAMPLES,
        ..Signature::KIND
    };
    const OPTIONS: &'static [OptionGroup<ResourceArgs>] = OPTIONS;

    const TABLE: Option<Tabular> = Some(Tabular::new(|| {
        let names =
            |criteria: AcquisitionCriteria| render::resource_columns(&criteria, true).names();
        let mut columns = names(AcquisitionCriteria::default());
        let unreleased =
            names(AcquisitionCriteria { leak: true, ..AcquisitionCriteria::default() });
        columns.extend(
            unreleased.into_iter().filter(|name| !columns.contains(name)).collect::<Vec<_>>(),
        );
        columns
    }));

    fn check(args: &ResourceArgs, _: &SharedArgs) -> Result<(), ParseError> {
        if args.total.is_some() && args.criteria.groups.by.is_some() {
            let (option, other) = ("-ShowTotal", "-GroupBy");
            return Err(ParseError::Conflict { option, other, reason: "both count; choose one" });
        }
        Ok(())
    }

    fn answer(args: &ResourceArgs, dump: &mut DumpContext<'_, '_>) -> Result<(), CommandError> {
        let output = &dump.shared.output;
        let mut criteria = args.criteria.clone().narrowed_to_leaks_of_suspect();
        criteria.with_totals_and_leaks = output.is_document();
        if let Some(total) = args.total {
            criteria.groups.by = Some(total.to_vec());
        }
        let trims = &criteria.groups.trims;
        if let Some(criterion) = trims.criterion().filter(|_| !criteria.has_stacks_of_allocations())
        {
            let option = render::option(criterion);
            dump.messages.note(format_args!(
                "note: {option} has no effect without -Leak, -LeakAtExit or -GroupBy with a stack"
            ));
        }
        if let Some(option) = criteria.stacks.option_without_stacks() {
            dump.messages.note(format_args!("note: {option} has no effect without -ShowStack"));
        }
        dump.note_stacks_beside_columns(criteria.stacks);
        let mut answers = query::resources(dump.sources, &criteria, dump.names, dump.cancel)?;
        for answer in &answers {
            write_caveats(answer, dump.session, dump.messages);
        }
        let display = dump.display_as(&args.display);
        let mut output =
            OutputOptions { sort_by: column(&criteria, args.sort_by.as_deref()), ..output.clone() };
        // A document has no sums over all groups, but it has all stacks of the groups it shows. So drop the other
        // groups first.
        let is_cut_first =
            output.is_document() && criteria.groups.by.is_some() && output.sort_by.is_none();
        if let Some(top) = output.top.take_if(|_| is_cut_first) {
            let groups = answers.iter_mut().filter_map(|answer| answer.groups.as_mut());
            groups.for_each(|groups| groups.cut(top));
        }
        let command = &dump.shared.text;
        let table = render::resources(&answers, &criteria, command, output.format(), &display)?;
        table.write(&output, &display, &dump.overwrite(), dump.cancel, dump.out)?;
        Ok(())
    }
}

/// Returns the column that `-SortBy` means: `count` and `bytes` are those of unfreed allocations.
fn column(criteria: &AcquisitionCriteria, word: Option<&str>) -> Option<String> {
    let word = word?;
    let is_unreleased = criteria.lists_leaked_allocations();
    let names = [("count", "leaked"), ("bytes", "leaked_bytes")];
    let alias = names.iter().find(|(name, _)| word.eq_ignore_ascii_case(name));
    let column = alias.filter(|_| !is_unreleased).map_or(word, |(_, column)| *column);
    Some(column.to_owned())
}

/// Questions, with the command lines that answer them.
static EXAMPLES: &[Example] = &[
    Example { goal: "allocations, and how many are left", line: ".dump Resource" },
    Example {
        goal: "leaked memory, and the code that allocated it",
        line: ".dump Resource -Leak -ShowStack -TopN 10",
    },
    Example { goal: "the heaps of one program", line: ".dump Resource -Kind heap -pn leaky" },
    Example {
        goal: "allocations by the code that made them, the most frequent first",
        line: ".dump Resource -GroupBy kind,createstack -SortBy allocs -TopN 10",
    },
];
