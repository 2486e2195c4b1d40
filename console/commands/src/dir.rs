//! `.dir` and `.cd`: list folders, and change the current one.

use std::cmp::Reverse;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use std::{env, fs};

use handlescope_model::Untrusted;
use indicatif::HumanBytes;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::shared::groups;
use super::shared::options::recursive_option;
use super::{Command, CommandError, Context, EnteredLine, Signature};
use handlescope_session::grammar::value::SWITCH;
use handlescope_session::grammar::{
    Arguments, Example, Opt, OptionGroup, OptionSpec, ParseError, Token, to,
};
use handlescope_session::paths::{
    ExpandError, Pattern, Walk, folders_in, is_extract, is_plain_extract, missing, with_home,
};
use handlescope_session::terminal::{Screen, table};
use handlescope_session::trace::extraction::{
    Freshness, beside, freshness, in_cache, side_by_side,
};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DirArgs {
    /// A folder or pattern; `None` for the current folder.
    pub query: Option<String>,
    /// `-r`: include subfolders.
    pub recursive: bool,
    /// `-od`: sort by time.
    pub by_time: bool,
}

pub struct Dir;

impl Command for Dir {
    type Args = DirArgs;
    const SIGNATURE: Signature = Signature {
        names: &[".dir"],
        group: groups::FILES,
        usage: "[FOLDER|PATTERN]",
        arguments: Arguments::Files,
        summary: "list folders, traces and extracts on disk",
        details: "Shows which traces have an extract, so that they load at once. PATTERN is \
             written as for .load. The default is the current folder. Options may start with / \
             too.",
        examples: &Example::lines([".dir", ".dir -od examples", ".dir -r *leak*"]),
    };
    const OPTIONS: &'static [OptionGroup<DirArgs>] = OPTIONS;

    fn parse(entered: &EnteredLine<'_>) -> Result<DirArgs, ParseError> {
        let tokens: Vec<Token> = entered.tokens.iter().map(with_dash).collect();
        let (args, words) =
            EnteredLine { tokens: &tokens, ..*entered }.options_and_words(OPTIONS)?;
        let query = entered.at_most_one(&words, "one folder or pattern")?;
        Ok(DirArgs { query, ..args })
    }

    fn run(args: DirArgs, context: &mut Context<'_, '_>) -> Result<(), CommandError> {
        let Context { out, screen, .. } = context;
        let rows = rows(&args)?;
        if rows.is_empty() {
            writeln!(out, "No folders, traces or extracts found.")?;
            return Ok(());
        }
        Ok(write!(out, "{}", text(&rows, *screen))?)
    }
}

fn text(rows: &[DirRow], screen: Screen) -> String {
    let mut table = table::table(screen, &["Written", "Size", "State", "Name"]);
    for row in rows {
        let name = row.path.to_string_lossy();
        table.add_row([
            row.written.map_or_else(|| "unknown".to_owned(), local),
            row.size.map_or_else(|| "<DIR>".to_owned(), |size| HumanBytes(size).to_string()),
            row.state.to_owned(),
            Untrusted(&*name).to_string(),
        ]);
    }
    table::align_right(&mut table, &[1]);
    table::text(table)
}

static OPTIONS: &[OptionGroup<DirArgs>] = &[OptionGroup {
    title: "Options",
    options: &[
        recursive_option(
            "include subfolders",
            "Files in subfolders are listed with their paths.",
            "-r",
            &(SWITCH, |args, ()| args.recursive = true),
        ),
        Opt {
            names: &["-od"],
            help: "sort by time instead of name",
            details: "By time of last change, newest last.",
            example: "-od",
            take: to(&(SWITCH, |args, ()| args.by_time = true)),
        },
    ],
}];

/// Replaces the `/` of an option by `-`; Windows' own `dir` writes options with `/`. The name of an existing file is
/// not changed.
fn with_dash(token: &Token) -> Token {
    let mut options = OPTIONS.iter().flat_map(|group| group.options);
    let dashed = token.text.strip_prefix('/').map(|name| format!("-{name}")).filter(|name| {
        options.any(|option| option.is_named(name)) && !Path::new(&token.text).exists()
    });
    Token { text: dashed.unwrap_or_else(|| token.text.clone()), ..token.clone() }
}

/// A folder, trace or extract.
struct DirRow {
    path: PathBuf,
    written: Option<SystemTime>,
    /// Size in bytes; `None` for a folder.
    size: Option<u64>,
    state: &'static str,
}

impl DirRow {
    fn new(path: PathBuf) -> DirRow {
        let metadata = fs::metadata(&path).ok();
        let is_folder = path.is_dir();
        DirRow {
            written: metadata.as_ref().and_then(|metadata| metadata.modified().ok()),
            size: metadata.filter(|_| !is_folder).map(|metadata| metadata.len()),
            state: if is_folder { "" } else { state(&path) },
            path,
        }
    }
}

/// Returns the rows, folders first.
fn rows(args: &DirArgs) -> Result<Vec<DirRow>, ExpandError> {
    let (folder, pattern) = folder_and_pattern(args.query.as_deref())?;
    let mut problems = Vec::new();
    let mut walk =
        Walk { recursive: args.recursive, pattern: pattern.as_ref(), problems: &mut problems };
    let files = walk.files_in(&folder)?;
    let mut rows: Vec<DirRow> = folders_in(&folder)?
        .into_iter()
        .filter(|folder| pattern.as_ref().is_none_or(|pattern| pattern.matches(folder)))
        .chain(files)
        .map(DirRow::new)
        .collect();
    let by_time = |row: &DirRow| row.written.filter(|_| args.by_time);
    rows.sort_by_cached_key(|row| (Reverse(row.size.is_none()), by_time(row), sorted(&row.path)));
    Ok(rows)
}

/// Returns a sort key that ignores case, like Windows.
fn sorted(path: &Path) -> (OsString, OsString) {
    (path.as_os_str().to_ascii_lowercase(), path.as_os_str().to_owned())
}

/// Returns the folder to list, and the pattern for names of its files.
fn folder_and_pattern(query: Option<&str>) -> Result<(PathBuf, Option<Pattern>), ExpandError> {
    let Some(query) = query else { return Ok((PathBuf::new(), None)) };
    let path = with_home(query);
    if path.is_dir() {
        return Ok((path, None));
    }
    match Pattern::new(&path)? {
        Some((folder, pattern)) => Ok((folder, Some(pattern))),
        None if path.exists() => {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let folder = path.parent().unwrap_or(Path::new(""));
            Ok((folder.to_path_buf(), Some(Pattern::parse(&name)?)))
        }
        None => Err(missing(path)),
    }
}

/// Returns the state of a file from the view of `.load`.
fn state(path: &Path) -> &'static str {
    if is_extract(path) || is_plain_extract(path) {
        return "extract";
    }
    let mut state = "not extracted";
    for extract in [beside(path), side_by_side(path), in_cache(path)] {
        match freshness(path, &extract) {
            Freshness::UpToDate(_) => return "extracted",
            Freshness::Stale(_) => state = "extract outdated",
            Freshness::Missing | Freshness::Foreign => {}
        }
    }
    state
}

/// Formats a time in the zone of this machine.
fn local(time: SystemTime) -> String {
    Timestamp::try_from(time).map_or_else(
        |_| "unknown".to_owned(),
        |time| time.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string(),
    )
}

pub struct Cd;

impl Command for Cd {
    /// The new folder; `None` to show the current one.
    type Args = Option<String>;
    const SIGNATURE: Signature = Signature {
        names: &[".cd"],
        group: groups::FILES,
        usage: "[FOLDER]",
        arguments: Arguments::Folder,
        summary: "show or change the current folder",
        details: "~ is the home folder. Loaded traces stay loaded.",
        examples: &Example::lines([".cd", ".cd examples"]),
    };

    fn parse(entered: &EnteredLine<'_>) -> Result<Self::Args, ParseError> {
        let [folder] = entered.at_most("one folder, in quotes if it has spaces")?;
        Ok(folder.map(|word| word.text.clone()))
    }

    fn run(folder: Self::Args, context: &mut Context<'_, '_>) -> Result<(), CommandError> {
        let Some(folder) = folder else {
            let folder = env::current_dir()
                .map_err(|source| CommandError::Folder { folder: PathBuf::from("."), source })?;
            return Ok(writeln!(context.out, "{}", Untrusted(folder))?);
        };
        context.session.settle_paths();
        let folder = with_home(&folder);
        let changed = env::set_current_dir(&folder).and_then(|()| env::current_dir());
        let now = changed.map_err(|source| CommandError::Folder { folder, source })?;
        context.messages.note(format_args!("current folder is {}", Untrusted(now)));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn listed(args: &DirArgs) -> Vec<String> {
        let rows = rows(args).expect("a folder that can be listed");
        let name =
            |row: &DirRow| row.path.file_name().expect("a name").to_string_lossy().into_owned();
        rows.iter().map(name).collect()
    }

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("z")).expect("a folder");
        for (name, minutes) in [("a.etl", 3), ("B.etl", 2), ("c.json7z", 1), ("z/d.etl", 4)] {
            let file = fs::File::create(folder.path().join(name)).expect("a file");
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(minutes * 60);
            file.set_modified(time).expect("a time");
        }
        fs::write(folder.path().join("e.txt"), "").expect("a file");
        folder
    }

    #[test]
    fn folders_come_first_and_files_by_name_or_by_time() {
        let folder = folder();
        let query = Some(folder.path().to_string_lossy().into_owned());
        let by_name = DirArgs { query, ..DirArgs::default() };
        assert_eq!(listed(&by_name), ["z", "a.etl", "B.etl", "c.json7z"]);
        let by_time = DirArgs { by_time: true, ..by_name.clone() };
        assert_eq!(listed(&by_time), ["z", "c.json7z", "B.etl", "a.etl"]);
        let below = DirArgs { recursive: true, ..by_name };
        assert_eq!(listed(&below), ["z", "a.etl", "B.etl", "c.json7z", "d.etl"]);
    }

    #[test]
    fn a_pattern_or_a_name_lists_what_it_fits() {
        let folder = folder();
        let listed = |query: &str| {
            let query = Some(folder.path().join(query).to_string_lossy().into_owned());
            listed(&DirArgs { query, ..DirArgs::default() })
        };
        assert_eq!(listed("*.etl"), ["a.etl", "B.etl"]);
        assert_eq!(listed("a.etl"), ["a.etl"]);
        let wrong = folder.path().join("aa.etl").to_string_lossy().into_owned();
        assert!(rows(&DirArgs { query: Some(wrong), ..DirArgs::default() }).is_err());
    }

    #[test]
    fn a_line_says_when_how_large_and_whether_extracted() {
        let folder = folder();
        let query = Some(folder.path().to_string_lossy().into_owned());
        let rows = rows(&DirArgs { query, ..DirArgs::default() }).expect("a list");
        let text = text(&rows, Screen::PLAIN);
        let line = |name: &str| text.lines().find(|line| line.ends_with(name)).expect(name);
        assert!(line("z").contains("<DIR>"), "{text}");
        assert!(line("a.etl").contains("0 B  not extracted"), "{text}");
        assert!(line("c.json7z").contains("0 B  extract "), "{text}");
    }
}
