//! `.redact` and `handlescope redact`: a copy of a trace without names, for a bug report.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

use handlescope_extract::{RedactError, redact};
use handlescope_model::Untrusted;
use indicatif::HumanBytes;

use super::shared::groups;
use super::shared::options::{force_option, max_size_option};
use super::{Command, CommandError, Context, EnteredLine, Signature};
use handlescope_session::grammar::value::{FILE, SIZE, SWITCH};
use handlescope_session::grammar::{Arguments, Example, Opt, OptionGroup, ParseError, to};
use handlescope_session::paths::{is_same_file, stem, with_home, write_whole};
use handlescope_session::trace::extraction;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RedactArgs {
    /// The trace.
    pub input: PathBuf,
    /// `-o`: the copy, instead of `NAME.redacted.etl` next to the trace.
    pub output: Option<PathBuf>,
    /// `-Force`: replace a file that this program has not written.
    pub force: bool,
    /// `-MaxSize`: maximum size of a trace unpacked from an archive, in bytes.
    pub max_size: Option<u64>,
}

pub struct Redact;

impl Command for Redact {
    type Args = RedactArgs;
    const SIGNATURE: Signature = Signature {
        names: &[".redact"],
        group: groups::FILES,
        usage: "FILE",
        arguments: Arguments::Files,
        summary: "copy a trace without names, for a bug report",
        details: "Writes FILE.redacted.etl with the same events, times, objects, handles and \
             stacks as FILE. Names of programs, files, objects and methods, command lines, users \
             and the computer are replaced by letters, equal names by equal letters. Names that \
             are part of Windows stay (ntdll.dll, System32, object types, the build), and so do \
             GUIDs of PDBs and providers, addresses, ids and times. All other event data is \
             overwritten with zeros, so that the copy compresses well.",
        examples: &Example::lines([
            ".redact examples/leaky.etl",
            ".redact examples/leaky.etl -o report.etl",
            ".redact examples/leaky.etl -o report.etl -Force",
        ]),
    };
    const OPTIONS: &'static [OptionGroup<RedactArgs>] = &[OptionGroup {
        title: "Options",
        options: &[
            Opt {
                names: &["-o", "-Output"],
                help: "the name of the copy",
                details: "The file appears when it is complete.",
                example: "examples/leaky.etl -o report.etl",
                take: to(&(FILE, |args, file| args.output = Some(file))),
            },
            force_option("examples/leaky.etl -Force", &(SWITCH, |args, ()| args.force = true)),
            max_size_option(
                "examples/leaky.etl -MaxSize 100GB",
                &(SIZE, |args, bytes| args.max_size = Some(bytes)),
            ),
        ],
    }];

    fn parse(entered: &EnteredLine<'_>) -> Result<RedactArgs, ParseError> {
        let (args, words) = entered.options_and_words(Self::OPTIONS)?;
        let file = entered.at_most_one(&words, "one trace, in quotes if its name has spaces")?;
        let file = file.ok_or_else(|| entered.missing("a trace, NAME.etl"))?;
        Ok(RedactArgs { input: with_home(&file), ..args })
    }

    fn run(args: RedactArgs, context: &mut Context<'_, '_>) -> Result<(), CommandError> {
        let Context { session, cancel, out, messages, .. } = context;
        let RedactArgs { input, output, force, max_size } = args;
        let output = output.unwrap_or_else(|| {
            let name: OsString = [stem(&input), ".redacted.etl".into()].into_iter().collect();
            input.with_file_name(name)
        });
        if is_same_file(&input, &output) {
            return Err(CommandError::RedactInPlace { path: output });
        }
        let mut overwrite = session.overwrite(force);
        overwrite.protect(&input);
        let file = overwrite.replacing(&output)?;
        let limits = extraction::options(max_size).limits;
        let progress = messages.progress(&input);
        let result =
            write_whole(&file, cancel, |out| redact(&input, &limits, out, &progress, cancel));
        result.map_err(|error| match error {
            RedactError::Trace(source) => cancel.or(CommandError::Redact(source)),
            RedactError::Write(source) => {
                let (path, instead) = (output.clone(), "name another file with -o");
                cancel.or(CommandError::Unwritten { path, source, instead })
            }
        })?;
        drop(progress);
        let size = fs::metadata(file.path()).map_or(0, |data| data.len());
        writeln!(out, "{}: {}, without names", Untrusted(&output), HumanBytes(size))?;
        Ok(())
    }
}
