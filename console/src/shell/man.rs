//! The manual page.

use std::io::{self, Write};

use clap::builder::StyledStr;
use clap::{Arg, Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, italic, roman};

use crate::cli::Cli;
use handlescope_commands::registry::REGISTRY;
use handlescope_session::grammar::{Arguments, GroupView};
use handlescope_session::settings::SettingKey;

/// Writes the page in roff: the program's options, then the console's commands and the options of every kind of
/// `.dump`.
///
/// # Errors
/// If `out` cannot be written.
pub fn man(out: &mut dyn Write) -> io::Result<()> {
    let program = Cli::program();
    let page = Man::new(Cli::command()).manual("handlescope").date(env!("HANDLESCOPE_DATE"));
    page.render_title(out)?;
    page.render_name_section(out)?;
    synopsis().to_writer(out)?;
    page.render_description_section(out)?;
    page.render_options_section(out)?;
    subcommands(&program).to_writer(out)?;
    for action in visible_commands(&program) {
        subcommand(action.clone()).to_writer(out)?;
    }
    commands().to_writer(out)?;
    for kind in REGISTRY.kinds() {
        let signature = kind.signature();
        let mut roff = Roff::new();
        roff.control("SH", [format!("OPTIONS OF DUMP {}", kind.name().to_uppercase()).as_str()]);
        roff.text([roman(format!("{}. {}", signature.summary, signature.details))]);
        kind.groups().iter().for_each(|group| options(&mut roff, group));
        roff.control("SS", ["Examples"]);
        for example in signature.examples {
            roff.control("TP", []);
            roff.text([roman(example.goal)]);
            roff.text([bold(example.line)]);
        }
        roff.to_writer(out)?;
    }
    let mut roff = Roff::new();
    roff.control("SH", ["EXAMPLES"]);
    examples(&mut roff, &program);
    roff.to_writer(out)?;
    page.render_version_section(out)
}

/// Returns the forms of a command line; clap_mangen would leave out the values of options.
fn synopsis() -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["SYNOPSIS"]);
    let program = Cli::command().get_name().to_owned();
    roff.text([
        bold(&program),
        roman(" ["),
        italic("OPTIONS"),
        roman("] ["),
        italic("FILE"),
        roman("]..."),
    ]);
    roff.control("br", []);
    roff.text([
        bold(&program),
        roman(" "),
        italic("SUBCOMMAND"),
        roman(" ["),
        italic("OPTIONS"),
        roman("]"),
    ]);
    roff
}

/// Returns the subcommands that a user calls.
fn visible_commands(program: &Command) -> impl Iterator<Item = &Command> {
    program.get_subcommands().filter(|action| !action.is_hide_set())
}

fn text(help: Option<&StyledStr>) -> String {
    help.map(ToString::to_string).unwrap_or_default()
}

/// Returns the list of subcommands; clap_mangen would refer to a page for each.
fn subcommands(program: &Command) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["SUBCOMMANDS"]);
    for action in visible_commands(program) {
        roff.control("TP", []);
        roff.text([bold(action.get_name())]);
        roff.text([roman(text(action.get_about()))]);
    }
    roff
}

/// Returns the section on a subcommand: usage, its own options, and examples.
fn subcommand(mut action: Command) -> Roff {
    let mut roff = Roff::new();
    let usage = action.render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ");
    roff.control("SH", [format!("HANDLESCOPE {}", action.get_name().to_uppercase()).as_str()]);
    roff.text([bold(usage)]);
    for paragraph in text(action.get_long_about().or(action.get_about())).split("\n\n") {
        roff.control("PP", []);
        roff.text([roman(paragraph)]);
    }
    only_here(&mut roff, &action);
    roff.control("SS", ["Examples"]);
    examples(&mut roff, &action);
    roff
}

/// Writes the options that only this subcommand has, under their headings.
fn only_here(roff: &mut Roff, action: &Command) {
    let is_shown = |option: &&Arg| {
        !option.is_global_set() && !option.is_hide_set() && option.get_id() != "help"
    };
    let mut options: Vec<&Arg> = action.get_arguments().filter(is_shown).collect();
    // In the order of the help: options without a heading first, then headings in order of appearance.
    let headings: Vec<_> = options.iter().map(|option| option.get_help_heading()).collect();
    options.sort_by_key(|option| {
        let heading = option.get_help_heading();
        (heading.is_some(), headings.iter().position(|other| *other == heading))
    });
    for group in options.chunk_by(|a, b| a.get_help_heading() == b.get_help_heading()) {
        let heading = group.first().and_then(|option| option.get_help_heading());
        roff.control("SS", [heading.unwrap_or("Options")]);
        for option in group {
            roff.control("TP", []);
            roff.text([bold(option.to_string())]);
            let help = text(option.get_long_help().or(option.get_help()));
            let takes_value = option.get_action().takes_values();
            let default = option.get_default_values().first().filter(|_| takes_value);
            let default = default.and_then(|value| value.to_str());
            let default = default.map(|value| format!(" [default: {value}]"));
            roff.text([roman(help + &default.unwrap_or_default())]);
        }
    }
}

/// Writes the text after the options: examples, line by line, and paragraphs.
fn examples(roff: &mut Roff, action: &Command) {
    let help = text(action.get_after_help());
    for paragraph in help.trim_start_matches("Examples:\n").split("\n\n") {
        let has_examples = paragraph.lines().any(|line| line.starts_with("  "));
        roff.control("PP", []);
        if has_examples {
            roff.control("nf", []);
        }
        roff.text([roman(paragraph)]);
        if has_examples {
            roff.control("fi", []);
        }
    }
}

fn commands() -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["COMMANDS OF THE CONSOLE"]);
    for command in REGISTRY.commands() {
        let signature = command.signature();
        roff.control("TP", []);
        roff.text([bold(signature.names.join(", ")), roman(" "), italic(signature.usage)]);
        roff.text([roman(format!("{}. {}", signature.summary, signature.details))]);
        roff.text(
            SettingKey::sources_of(signature.names).map(roman).into_iter().collect::<Vec<_>>(),
        );
        let groups = command.groups();
        if !groups.is_empty() {
            roff.control("RS", []);
            groups.iter().for_each(|group| entries(&mut roff, group));
            roff.control("RE", []);
        }
        if matches!(signature.arguments, Arguments::Setting) {
            roff.control("RS", []);
            for key in SettingKey::ALL {
                roff.control("TP", []);
                roff.text([bold(key.name())]);
                roff.text([roman(format!("Comes from {}.", key.sources()))]);
            }
            roff.control("RE", []);
        }
    }
    roff
}

fn options(roff: &mut Roff, group: &GroupView) {
    roff.control("SS", [group.title]);
    entries(roff, group);
}

fn entries(roff: &mut Roff, group: &GroupView) {
    for option in &group.options {
        let doc = option.doc();
        roff.control("TP", []);
        let placeholder = option.value().placeholder();
        roff.text([bold(doc.names.join(", ")), roman(" "), italic(placeholder)]);
        roff.text([roman(format!("{}. {}", doc.help, doc.details))]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_other_page_is_cited() {
        let mut page = Vec::new();
        man(&mut page).expect("a page");
        let page = String::from_utf8(page).expect("text").replace("\\-", "-");
        let cited = page.match_indices("(1)").map(|(at, _)| page.get(..at).unwrap_or_default());
        for name in cited.map(|before| before.rsplit([' ', '\n']).next().unwrap_or_default()) {
            assert_eq!(name, "handlescope");
        }
    }

    #[test]
    fn the_page_has_its_version_and_the_date_of_the_commit() {
        let mut page = Vec::new();
        man(&mut page).expect("a page");
        let page = String::from_utf8(page).expect("text").replace("\\-", "-");
        let title = page.lines().find(|line| line.starts_with(".TH")).expect("a title");
        for text in
            [env!("CARGO_PKG_VERSION"), env!("HANDLESCOPE_COMMIT"), env!("HANDLESCOPE_DATE")]
        {
            assert!(title.contains(text), "{text}: {title}");
        }
    }

    #[test]
    fn the_synopsis_has_both_forms_of_a_command_line() {
        let mut page = Vec::new();
        synopsis().to_writer(&mut page).expect("a section");
        let page = String::from_utf8(page).expect("text");
        let page = page.replace("\\fB", "").replace("\\fI", "").replace("\\fR", "");
        assert!(page.contains("handlescope [OPTIONS] [FILE]..."), "{page}");
        assert!(page.contains("handlescope SUBCOMMAND [OPTIONS]"), "{page}");
    }

    #[test]
    fn every_subcommand_has_a_section_with_its_usage_and_three_examples() {
        for action in visible_commands(&Cli::program()) {
            let name = action.get_name();
            let mut section = Vec::new();
            subcommand(action.clone()).to_writer(&mut section).expect("a section");
            let section = String::from_utf8(section).expect("text").replace("\\-", "-");
            let usage = section.lines().find(|line| line.starts_with("\\fBhandlescope "));
            assert!(usage.is_some_and(|usage| usage.contains(name)), "{name}: {section}");
            let examples = section.lines().filter(|line| line.starts_with("  handlescope "));
            assert!(examples.count() >= 3, "{name}: {section}");
        }
    }

    #[test]
    fn the_page_has_every_command_and_option() {
        let mut page = Vec::new();
        man(&mut page).expect("a page");
        let page = String::from_utf8(page).expect("text").replace("\\-", "-");
        for command in REGISTRY.commands() {
            assert!(page.contains(command.name()), "{}", command.name());
        }
        for action in Cli::command().get_subcommands().filter(|action| !action.is_hide_set()) {
            assert!(page.contains(&format!("\\fB{}\\fR", action.get_name())), "{action}");
        }
        for option in REGISTRY.kinds().flat_map(|kind| kind.options()) {
            assert!(page.contains(&option.doc().names.join(", ")), "{}", option.name());
        }
    }
}
