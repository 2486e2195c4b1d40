//! The line editor: its prompt, keys, menu, history and hints, and whether Enter ends the input.

use std::borrow::Cow;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use handlescope_model::guard::lock;
use handlescope_model::{Reason, Untrusted};
use reedline::{
    Color, ColumnarMenu, Completer, DefaultHinter, Editor, Emacs, FileBackedHistory, Hinter,
    History, HistoryItem, HistoryItemId, HistorySessionId, InputMode, KeyCode, KeyModifiers, Menu,
    MenuBuilder, MenuEvent, MenuSettings, Painter, Prompt, PromptEditMode, PromptHistorySearch,
    PromptHistorySearchStatus, Reedline, ReedlineEvent, ReedlineMenu, Result, SearchQuery,
    Suggestion, ValidationResult, Validator, default_emacs_keybindings,
};

use super::highlighter::CommandHighlighter;
use handlescope_commands::Registry;
use handlescope_commands::completion::{CommandCompleter, SharedCompletionValues};
use handlescope_commands::dump::DumpWords;
use handlescope_commands::registry::registry;
use handlescope_commands::script::is_waiting;
use handlescope_session::delegate;
use handlescope_session::grammar::{Arguments, parse, split};
use handlescope_session::paths::shown;
use handlescope_session::terminal::{ColorChoice, Messages, Role, Screen, neutral};
use handlescope_session::trace::Session;

const MENU: &str = "completion";

/// Creates a line editor with everything the console offers.
pub fn editor(
    known: SharedCompletionValues,
    color: ColorChoice,
    messages: &mut Messages<'_>,
) -> Reedline {
    let mut keys = default_emacs_keybindings();
    let complete = vec![ReedlineEvent::Menu(MENU.into()), ReedlineEvent::MenuNext];
    keys.add_binding(KeyModifiers::NONE, KeyCode::Tab, ReedlineEvent::UntilFound(complete));
    keys.add_binding(KeyModifiers::SHIFT, KeyCode::BackTab, ReedlineEvent::MenuPrevious);
    let is_colored = Screen::stderr(color).color;
    let dim = if is_colored { Role::Hint } else { Role::Plain }.style();
    let menu = ColumnarMenu::default()
        .with_name(MENU)
        .with_marker("> ")
        // A table after the cursor decides which columns to offer before it.
        .with_input_mode(InputMode::FullBuffer)
        .with_columns(4)
        .with_text_style(Role::Plain.style())
        .with_selected_text_style(Role::Heading.style().reverse())
        .with_selected_match_text_style(Role::Heading.style().reverse().underline())
        .with_description_text_style(dim);
    let mut editor = Reedline::create()
        .with_completer(Box::new(CommandCompleter::new(Arc::clone(&known))))
        .with_quick_completions(true)
        .with_partial_completions(true)
        .with_menu(ReedlineMenu::EngineCompleter(Box::new(QuietMenu(menu))))
        .with_validator(Box::new(QueryValidator))
        .use_bracketed_paste(true)
        .with_highlighter(Box::new(CommandHighlighter::new(Arc::clone(&known))))
        .with_edit_mode(Box::new(Emacs::new(keys)))
        .with_ansi_colors(is_colored);
    // Without colours, a hint would look like typed text.
    if is_colored {
        editor = editor.with_hinter(Box::new(CommandHinter::new(known)));
    }
    match LineHistory::open() {
        Some(Ok(history)) => editor = editor.with_history(Box::new(history)),
        Some(Err(error)) => {
            messages.note(format_args!("the history cannot be saved: {}", Reason(&error.into())));
        }
        None => {}
    }
    editor
}

/// A menu that closes if there is nothing to choose from; reedline's own menu says so in capitals.
pub struct QuietMenu(pub ColumnarMenu);

impl Menu for QuietMenu {
    fn update_working_details(
        &mut self,
        editor: &mut Editor,
        completer: &mut dyn Completer,
        painter: &Painter,
    ) {
        self.0.update_working_details(editor, completer, painter);
        if self.0.get_values().is_empty() {
            self.0.menu_event(MenuEvent::Deactivate);
        }
    }

    delegate! {
        fn settings(&self) -> &MenuSettings;
        fn is_active(&self) -> bool;
        fn can_quick_complete(&self) -> bool;
        fn replace_in_buffer(&self, editor: &mut Editor);
        fn menu_required_lines(&self, terminal_columns: u16) -> u16;
        fn menu_string(&self, available_lines: u16, use_ansi_coloring: bool) -> String;
        fn min_rows(&self) -> u16;
        fn get_values(&self) -> &[Suggestion];
    }

    delegate! {
        fn set_active(&mut self, active: bool);
        fn clear_input(&mut self);
        fn menu_event(&mut self, event: MenuEvent);
        fn can_partially_complete(
            &mut self,
            values_updated: bool,
            editor: &mut Editor,
            completer: &mut dyn Completer,
        ) -> bool;
        fn update_values(&mut self, editor: &mut Editor, completer: &mut dyn Completer);
        fn reset_position(&mut self);
    }
}

/// Maximum number of remembered lines.
const LINES: usize = 10_000;

/// A history in a file that several consoles share. A repeated line counts once, an empty one not at all, and spaces
/// around a line are dropped.
pub struct LineHistory(FileBackedHistory);

impl LineHistory {
    /// Opens the history in the platform's folder for program data; `None` if there is no such folder.
    pub fn open() -> Option<Result<LineHistory>> {
        let file: PathBuf = dirs::data_local_dir()?.join("handlescope").join("history.txt");
        Some(FileBackedHistory::with_file(LINES, file).map(LineHistory))
    }
}

impl History for LineHistory {
    fn save(&mut self, item: HistoryItem) -> Result<HistoryItem> {
        let command_line = item.command_line.trim().to_owned();
        // The file ignores empty lines.
        self.0.save(HistoryItem { command_line, ..item })
    }

    delegate! {
        fn load(&self, id: HistoryItemId) -> Result<HistoryItem>;
        fn count(&self, query: SearchQuery) -> Result<i64>;
        fn search(&self, query: SearchQuery) -> Result<Vec<HistoryItem>>;
        fn session(&self) -> Option<HistorySessionId>;
    }

    delegate! {
        fn update(
            &mut self,
            id: HistoryItemId,
            updater: &dyn Fn(HistoryItem) -> HistoryItem,
        ) -> Result<()>;
        fn clear(&mut self) -> Result<()>;
        fn delete(&mut self, id: HistoryItemId) -> Result<()>;
        fn sync(&mut self) -> io::Result<()>;
    }
}

/// Lets a query continue over several lines until it is complete; every other command has one line.
pub struct QueryValidator;

impl Validator for QueryValidator {
    fn validate(&self, text: &str) -> ValidationResult {
        if is_waiting(text) { ValidationResult::Incomplete } else { ValidationResult::Complete }
    }
}

/// Maximum number of characters shown of a file name.
const MAX_LENGTH: usize = 30;

/// A prompt that shows what is loaded: `leaky.etl> `, or `leaky.etl +2> ` for several files.
pub struct FilePrompt {
    title: String,
}

impl FilePrompt {
    pub fn new(session: &Session) -> FilePrompt {
        let paths = session.files.iter().map(|file| &file.path).chain(&session.dataset);
        let names =
            paths.map(|path| Untrusted(shown(path).file_name().unwrap_or_default()).to_string());
        FilePrompt { title: title(&names.collect::<Vec<_>>()) }
    }
}

fn title(names: &[String]) -> String {
    match names {
        [] => "handlescope".to_owned(),
        [name] => shortened(name),
        [first, rest @ ..] => format!("{} +{}", shortened(first), rest.len()),
    }
}

/// Shortens a long name in the middle.
fn shortened(name: &str) -> String {
    let length = name.chars().count();
    if length <= MAX_LENGTH {
        return name.to_owned();
    }
    let half = (MAX_LENGTH - 1) / 2;
    let (start, end) = (name.chars().take(half), name.chars().skip(length - half));
    start.chain(['…']).chain(end).collect()
}

impl Prompt for FilePrompt {
    fn get_prompt_color(&self) -> Color {
        Role::Name.color()
    }

    fn get_indicator_color(&self) -> Color {
        Role::Name.color()
    }

    fn render_prompt_left(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.title)
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_indicator(&self, _: PromptEditMode) -> Cow<'_, str> {
        Cow::Borrowed("> ")
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        Cow::Borrowed("  ")
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        let failing = match search.status {
            PromptHistorySearchStatus::Passing => "",
            PromptHistorySearchStatus::Failing => "no ",
        };
        Cow::Owned(format!(" ({failing}match for '{}') ", Untrusted(search.term)))
    }
}

/// Hints from the history, or from the registry if the history has none.
pub struct CommandHinter {
    history: DefaultHinter,
    known: SharedCompletionValues,
}

impl CommandHinter {
    /// Creates hints; an alias gets the hints of its command line.
    pub fn new(known: SharedCompletionValues) -> CommandHinter {
        CommandHinter { history: DefaultHinter::default().with_style(Role::Hint.style()), known }
    }
}

impl Hinter for CommandHinter {
    fn handle(
        &mut self,
        line: &str,
        pos: usize,
        history: &dyn History,
        use_ansi_coloring: bool,
        cwd: &str,
    ) -> String {
        let hint = neutral(&self.history.handle(line, pos, history, use_ansi_coloring, cwd));
        if !hint.is_empty() || pos < line.len() {
            return hint;
        }
        let known = lock(&self.known);
        let line = known.aliases.expand(line).unwrap_or(Cow::Borrowed(line)).into_owned();
        placeholder(&line, registry(known.over_dataset))
            .map_or_else(String::new, |text| Role::Hint.style().paint(text).to_string())
    }

    // Only a line from the history can be accepted, not a placeholder.
    fn complete_hint(&self) -> String {
        self.history.complete_hint()
    }

    fn next_hint_token(&self) -> String {
        self.history.next_hint_token()
    }
}

/// Returns the placeholder for the value of the command or option at the end of a line, if a space follows it. On a new
/// line of a query, returns a hint on how to end the query.
fn placeholder(line: &str, registry: Registry) -> Option<String> {
    if line.strip_suffix('\n').is_some_and(is_waiting) {
        return Some("; or an empty line ends the query".to_owned());
    }
    if !line.ends_with(' ') {
        return None;
    }
    let tokens = split(line);
    let (first, arguments) = tokens.split_first()?;
    let command = registry.command(&first.text)?;
    if arguments.is_empty() {
        return Some(command.signature().usage.to_owned()).filter(|usage| !usage.is_empty());
    }
    if !matches!(command.signature().arguments, Arguments::Kind) {
        return None;
    }
    let words = DumpWords::new(arguments, registry);
    parse::incomplete_option(&words.options(registry), &words.option_tokens)
        .map(|option| option.value().placeholder().into_owned())
}

#[cfg(test)]
mod tests {
    use reedline::SearchDirection;

    use super::*;

    #[test]
    fn lines_are_kept_trimmed_and_once_and_blank_ones_not_at_all() {
        let mut history = LineHistory(FileBackedHistory::new(10).expect("a history"));
        for line in [" .list ", ".list", "", "  ", ".list", ".quit"] {
            history.save(HistoryItem::from_command_line(line)).expect("saved");
        }
        let items = history.search(SearchQuery::everything(SearchDirection::Forward, None));
        let lines: Vec<String> =
            items.expect("all lines").into_iter().map(|item| item.command_line).collect();
        assert_eq!(lines, [".list", ".quit"]);
    }

    #[test]
    fn the_prompt_names_what_is_loaded() {
        let of = |names: &[&str]| title(&names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>());
        assert_eq!(of(&[]), "handlescope");
        assert_eq!(of(&["leaky.etl"]), "leaky.etl");
        assert_eq!(of(&["leaky.etl", "a", "b"]), "leaky.etl +2");
        let long = of(&["a-very-long-name-of-a-trace-2026-07-20.etl"]);
        assert_eq!(long, "a-very-long-na…2026-07-20.etl");
    }

    #[test]
    fn an_option_without_its_value_says_what_it_wants() {
        for (line, expected) in [
            (".dump ObjectRef -MinMaxTime ", Some("SECONDS [MAX]")),
            (".dump ObjectRef -pn ", Some("PROCESSES")),
            (".dump -pn ", Some("PROCESSES")),
            (".dump ObjectRef -pn", None),
            (".dump ObjectRef -MinMaxTime 1 ", None),
            (".dump ObjectRef -Leak ", None),
            (".dump ObjectRef -nonsense ", None),
            (".sympath ", Some("[OPTION…] [PATH]")),
            (".load a.etl ", None),
            (".dump ", Some("KIND [OPTION…]")),
            (".sql SELECT name\n", Some("; or an empty line ends the query")),
            (".sql SELECT 1\n", None),
            (".sql SELECT 1;\n", None),
            (".quit ", None),
            ("", None),
        ] {
            assert_eq!(placeholder(line, registry(false)).as_deref(), expected, "{line}");
        }
    }
}
