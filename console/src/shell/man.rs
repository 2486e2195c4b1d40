//! The manual page.

use std::io::{self, Write};

use clap::CommandFactory;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, italic, roman};

use crate::cli::Cli;
use crate::grammar::{Arguments, GroupView};
use crate::registry::REGISTRY;
use crate::settings::Key;

/// Writes the page in roff: the program's options, then the commands of the console and the options
/// of every kind of `.dump`.
///
/// # Errors
/// When `out` cannot be written.
pub fn man(out: &mut dyn Write) -> io::Result<()> {
    let page = Man::new(Cli::command()).manual("handlescope").date(env!("HANDLESCOPE_DATE"));
    page.render_title(out)?;
    page.render_name_section(out)?;
    synopsis().to_writer(out)?;
    page.render_description_section(out)?;
    page.render_options_section(out)?;
    subcommands().to_writer(out)?;
    commands().to_writer(out)?;
    for kind in REGISTRY.kinds {
        let signature = kind.signature();
        let mut roff = Roff::new();
        roff.control("SH", [format!("OPTIONS OF DUMP {}", signature.name.to_uppercase()).as_str()]);
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
    page.render_extra_section(out)?;
    page.render_version_section(out)
}

/// The forms of a command line, as clap_mangen leaves out the values of options.
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

/// Section on subcommands. clap_mangen would refer to a page for each.
fn subcommands() -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["SUBCOMMANDS"]);
    let program = Cli::command();
    for action in program.get_subcommands().filter(|action| !action.is_hide_set()) {
        let about = action.get_long_about().or(action.get_about());
        let about = about.map(ToString::to_string).unwrap_or_default();
        roff.control("TP", []);
        roff.text([bold(action.get_name())]);
        roff.text([roman(about.replace("\n\n", " "))]);
    }
    roff
}

fn commands() -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["COMMANDS OF THE CONSOLE"]);
    for command in REGISTRY.commands {
        let signature = command.signature();
        roff.control("TP", []);
        roff.text([bold(signature.names.join(", ")), roman(" "), italic(signature.usage)]);
        roff.text([roman(format!("{}. {}", signature.summary, signature.details))]);
        roff.text(Key::sources_of(signature.names).map(roman).into_iter().collect::<Vec<_>>());
        let groups = command.groups();
        if !groups.is_empty() {
            roff.control("RS", []);
            groups.iter().for_each(|group| entries(&mut roff, group));
            roff.control("RE", []);
        }
        if matches!(signature.arguments, Arguments::Setting) {
            roff.control("RS", []);
            for key in Key::ALL {
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
    fn the_page_has_every_command_and_option() {
        let mut page = Vec::new();
        man(&mut page).expect("a page");
        let page = String::from_utf8(page).expect("text").replace("\\-", "-");
        for command in REGISTRY.commands {
            assert!(page.contains(command.name()), "{}", command.name());
        }
        for action in Cli::command().get_subcommands().filter(|action| !action.is_hide_set()) {
            assert!(page.contains(&format!("\\fB{}\\fR", action.get_name())), "{action}");
        }
        for option in REGISTRY.kinds.iter().flat_map(|kind| kind.options()) {
            assert!(page.contains(&option.doc().names.join(", ")), "{}", option.name());
        }
    }
}
