//! Where symbols come from, as entered.

use std::path::PathBuf;

use handlescope_extract::symbols::{ServerChoice, SymbolPath, SymbolSources, SymbolSourcesError};

use super::{Command, Entered, ParseError, parse};
use crate::{filter::Filter, registry};

/// What was said about symbols, in the words of a command line or of `.sympath`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SymbolArgs {
    /// A whole symbol path.
    pub path: Option<String>,
    /// `-symServer`: whom to ask for what is in no folder.
    pub servers: Vec<ServerChoice>,
    /// `-symCache`: the folder for downloaded symbols.
    pub cache: Option<PathBuf>,
    /// `-symFolder`: a folder with symbols.
    pub folder: Option<PathBuf>,
}

/// What was typed behind `.sympath`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SymbolPathArgs {
    /// Where symbols are to be looked for.
    pub symbols: SymbolArgs,
    /// `-retry`: look again for what was not found.
    pub retry: bool,
}

/// What was typed behind `.symbolize`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SymbolizeArgs {
    /// `-fd`: only loaded files with such a path; all of the filters must match.
    pub files: Vec<Filter>,
}

impl SymbolArgs {
    /// The symbol path that was asked for; `None` when nothing was said.
    ///
    /// A cache alone says where to keep symbols and not whom to ask for them, so that the path of
    /// the environment counts behind it.
    ///
    /// # Errors
    /// When a folder cannot be written in a symbol path, or the environment has none.
    pub fn symbol_path(&self) -> Result<Option<SymbolPath>, SymbolSourcesError> {
        if *self == SymbolArgs::default() {
            return Ok(None);
        }
        let mut servers = self.servers.clone();
        servers.extend(self.path.clone().map(ServerChoice::Path));
        if servers.is_empty() && self.folder.is_none() {
            let path = SymbolPath::from_environment().map(|path| path.to_string());
            servers.extend(path.map(ServerChoice::Path));
        }
        let folders = self.folder.iter().cloned().collect();
        SymbolSources { servers, cache: self.cache.clone(), folders }.symbol_path().map(Some)
    }
}

/// `.sympath`: a path has blanks and semicolons, so everything behind the command belongs to it,
/// except for options in front.
pub(crate) fn symbol_path(entered: &Entered<'_>) -> Result<Command, ParseError> {
    let (mut args, words): (SymbolPathArgs, _) = match entered.tokens {
        [first, ..] if first.is_switch() => {
            parse::options_and_words(entered.name, entered.tokens, registry::SYMBOL_PATH)?
        }
        tokens => (SymbolPathArgs::default(), tokens.iter().collect()),
    };
    args.symbols.path = match words.as_slice() {
        [] => None,
        [path] => Some(path.text.clone()),
        [first, ..] => entered.line.get(first.span.start..).map(str::to_owned),
    };
    Ok(Command::SymbolPath(args))
}

/// `.symbolize`
pub(crate) fn symbolize(entered: &Entered<'_>) -> Result<Command, ParseError> {
    parse::options(entered.name, entered.tokens, registry::SYMBOLIZE).map(Command::Symbolize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_becomes_a_symbol_path() {
        let path = |server: Option<&str>, folder: Option<&str>, cache: Option<&str>| {
            let servers = server.map(|server| ServerChoice::parse_list(server).expect(server));
            let args = SymbolArgs {
                servers: servers.unwrap_or_default(),
                folder: folder.map(PathBuf::from),
                cache: cache.map(PathBuf::from),
                ..SymbolArgs::default()
            };
            let path = args.symbol_path().expect("a path");
            path.map(|path| path.to_string()).unwrap_or_default()
        };
        let microsoft = "https://msdl.microsoft.com/download/symbols";
        assert_eq!(path(Some("ms"), None, Some("c")), format!("cache*c;srv*c*{microsoft}"));
        assert_eq!(path(Some("MS"), Some("f"), None), format!("f;srv**{microsoft}"));
        assert_eq!(path(Some("srv*x*y"), None, None), "srv*x*y");
        assert_eq!(path(None, Some("f"), Some("c")), "f;cache*c");
        assert_eq!(path(None, None, None), "");
    }

    #[test]
    fn a_path_may_stand_behind_options() {
        let line = ".sympath -symCache c -symFolder f srv*https://x;/my symbols";
        let Ok(Some(Command::SymbolPath(args))) = Command::parse(line) else { panic!("{line}") };
        let path = args.symbols.symbol_path().expect("a path").expect("a path");
        assert_eq!(path.to_string(), "f;cache*c;srv*https://x;/my symbols");
    }
}
