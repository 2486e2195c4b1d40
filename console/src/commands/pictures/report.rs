//! `.report`: one page about all that leaks.

use std::path::Path;

use super::{FILES, PictureArgs, PictureOptions};
use crate::{
    commands::{
        Command, CommandError, Context, DumpContext, Entered, Signature,
        context::answer,
        dump::why::{command, write_caveats},
        shared::groups,
    },
    grammar::{Arguments, GroupView, OptionGroup, ParseError, parse},
    paths::{has_extension, with_home},
    query::{self, WhyCriteria},
    render::{output::Target, report},
};

pub(crate) struct Report;

static OPTIONS: &[OptionGroup<PictureOptions>] =
    &[OptionGroup { title: groups::SCRIPTS, options: FILES }];

impl Command for Report {
    type Args = PictureArgs;
    const SIGNATURE: Signature = Signature {
        names: &[".report"],
        group: groups::QUERIES,
        usage: "FILE [OPTION…]",
        arguments: Arguments::Files,
        summary: "write a page for a browser about all that leaks",
        details: "NAME.html is one file, which needs no network: what .why says of each suspect with its stack \
                  and source lines, open handles over time, a flame graph, and tables that can be \
                  sorted and searched. It is light or dark as the browser is. What a trace calls its \
                  processes, functions and objects cannot act in it.",
        examples: &[".report leaks.html"],
    };

    fn groups() -> Vec<GroupView> {
        GroupView::all(OPTIONS)
    }

    fn parse(entered: &Entered<'_>) -> Result<PictureArgs, ParseError> {
        let (own, words) = parse::options_and_words(entered.name, entered.tokens, OPTIONS)?;
        let file = entered.at_most_one(&words, "one file, in quotes if its name has spaces")?;
        let file = file.ok_or_else(|| entered.missing("the file to write, NAME.html"))?;
        Ok(PictureArgs { file: Some(with_home(&file)), own, ..PictureArgs::default() })
    }

    fn run(args: PictureArgs, context: &mut Context<'_, '_>) -> Result<(), CommandError> {
        let file = args.file.unwrap_or_default();
        if !has_extension(&file, &["html", "htm"]) {
            return Err(CommandError::PictureName { path: file, endings: ".html" });
        }
        answer(&args.own.shared, context, |dump| draw(&file, dump))
    }
}

fn draw(path: &Path, dump: &mut DumpContext<'_, '_>) -> Result<(), CommandError> {
    dump.overwrite().replacing(path)?;
    let criteria = WhyCriteria::default();
    let answers = query::why(dump.sources, &criteria, dump.names, dump.cancel)?;
    write_caveats(&answers, dump.messages);
    let target = Target { path, option: Report::SIGNATURE.names[0], format: "HTML" };
    dump.write_file(target, |out| report::write(&answers, command, out))
}
