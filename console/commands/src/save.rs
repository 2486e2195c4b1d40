//! `.save`: saves a loaded trace as an archive for this program and for ETWAnalyzer. `.symbolize`: stores names in a
//! loaded extract.

use std::path::{Path, PathBuf};

use handlescope_model::Untrusted;
use handlescope_sources::SaveOptions;
use indicatif::HumanBytes;

use super::shared::groups;
use super::shared::names::{NameSearch, save_for_etwanalyzer, store_names, write_archive};
use super::shared::options::{etwanalyzer_option, files_option, force_option};
use super::{Command, CommandError, Context, EnteredLine, Signature};
use handlescope_session::filter::Filter;
use handlescope_session::grammar::value::{LOADED_FILES, SWITCH};
use handlescope_session::grammar::{Arguments, Example, OptionGroup, ParseError};
use handlescope_session::paths::{EXTRACT_EXTENSION, has_extension, with_home};
use handlescope_session::trace::extraction::{MadeFolders, prepare_folder};

#[derive(Debug, Clone, Default, PartialEq)]
pub struct SaveArgs {
    /// The archive.
    pub file: PathBuf,
    /// `-etwanalyzer`: also write what ETWAnalyzer reads.
    pub etwanalyzer: bool,
    /// `-Force`: replace a file that this program has not written.
    pub force: bool,
    /// `-fd`: only loaded files with matching paths; all filters must match.
    pub files: Vec<Filter>,
}

pub struct Save;

impl Command for Save {
    type Args = SaveArgs;
    const SIGNATURE: Signature = Signature {
        names: &[".save"],
        group: groups::QUERIES,
        usage: "FILE",
        arguments: Arguments::Files,
        summary: "write a loaded trace as an archive",
        details: "FILE is NAME.json7z. An archive saved by handlescope is replaced, any other \
             file only with -Force, and a loaded file never. The archive holds what the loaded \
             extract holds and loads at once on any machine. If several traces are loaded, choose \
             one with -fd.",
        examples: &Example::lines([".save leaky.json7z", ".save leaky.json7z -etwanalyzer"]),
    };
    const OPTIONS: &'static [OptionGroup<SaveArgs>] = &[OptionGroup {
        title: "Options",
        options: &[
            etwanalyzer_option(
                "The archive then opens in both programs. Frames have the names that .dump \
                 ObjectRef -ShowStack shows, and these are stored. The file time is set to the \
                 session's.",
                "leaky.json7z -etwanalyzer",
                &(SWITCH, |args, ()| args.etwanalyzer = true),
            ),
            force_option("leaky.json7z -Force", &(SWITCH, |args, ()| args.force = true)),
            files_option(&(LOADED_FILES, |args, filter| args.files.push(filter))),
        ],
    }];

    fn parse(entered: &EnteredLine<'_>) -> Result<SaveArgs, ParseError> {
        let (args, words) = entered.options_and_words(Self::OPTIONS)?;
        let file = entered.at_most_one(&words, "one file, in quotes if its name has spaces")?;
        let file = file.ok_or_else(|| entered.missing("the name of the archive, NAME.json7z"))?;
        Ok(SaveArgs { file: with_home(&file), ..args })
    }

    fn run(args: SaveArgs, context: &mut Context<'_, '_>) -> Result<(), CommandError> {
        let Context { session, cancel, out, messages, .. } = context;
        let selected = session.choose(&args.files, messages)?;
        let [(_, file)] = selected.as_slice() else {
            return Err(CommandError::SaveSeveral { files: selected.len() });
        };
        let (trace, output) = (&*file.trace, session.overwrite(args.force).replacing(&args.file)?);
        let _made = check_name(&args.file)?;
        let line = if args.etwanalyzer {
            let symbolizer = session.symbolizer();
            let search = NameSearch { frames: &file.frames, symbolizer, cancel };
            save_for_etwanalyzer(trace, output.path(), search, messages)?
        } else {
            let size =
                write_archive(trace, output.path(), SaveOptions::default(), cancel, messages)?;
            format!("{}: {}", Untrusted(&args.file), HumanBytes(size))
        };
        output.remember();
        writeln!(out, "{line}")?;
        session.warn_of_missing_symbols(messages);
        Ok(())
    }
}

/// Rejects names that are not an archive's, and creates the folder.
fn check_name(output: &Path) -> Result<MadeFolders, CommandError> {
    let path = || output.to_path_buf();
    if !has_extension(output, &[EXTRACT_EXTENSION]) {
        return Err(CommandError::SaveName { path: path() });
    }
    let instead = "choose another folder";
    let result = prepare_folder(output);
    result.map_err(|source| CommandError::Unwritten { path: path(), source, instead })
}

pub struct Symbolize;

impl Command for Symbolize {
    type Args = Vec<Filter>;
    const SIGNATURE: Signature = Signature {
        names: &[".symbolize"],
        group: groups::FILES,
        usage: "[OPTION…]",
        arguments: Arguments::Options,
        summary: "store the names of all frames in the loaded extracts",
        details: "For readers without symbols. Names are looked up on the symbol path; see \
             .sympath. Stored names are used where the symbol path has none, and replaced when \
             .symbolize finds better ones. The extract is rewritten and replaced when complete.",
        examples: &Example::lines([
            ".symbolize",
            ".symbolize -fd *leaky*",
            ".symbolize -fd examples/leaky.etl",
        ]),
    };
    const OPTIONS: &'static [OptionGroup<Vec<Filter>>] = &[OptionGroup {
        title: "Which files",
        options: &[files_option(&(LOADED_FILES, |files, filter| files.push(filter)))],
    }];

    fn run(files: Vec<Filter>, context: &mut Context<'_, '_>) -> Result<(), CommandError> {
        let Context { session, cancel, out, messages, .. } = context;
        let selected = session.choose(&files, messages)?;
        let indexes: Vec<usize> = selected.into_iter().map(|(index, _)| index).collect();
        for index in indexes {
            let Some(file) = session.files.get(index) else { continue };
            let symbolizer = session.symbolizer();
            let search = NameSearch { frames: &file.frames, symbolizer, cancel };
            let line = store_names(&file.trace, search, messages)?;
            writeln!(out, "{line}")?;
            session.warn_of_missing_symbols(messages);
            session.reload(index)?;
        }
        Ok(())
    }
}
