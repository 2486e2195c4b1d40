//! Reads ETWAnalyzer's extracts (`.json7z`, or `.json` with its companions) into the tables of a trace, and writes
//! them.
//!
//! Both directions share the names of members and some fixed texts. Data that the format has no place for is written as
//! additional members (`records`), which ETWAnalyzer ignores.

mod read;
mod record;
mod records;
mod write;

pub use self::read::{ImportError, ImportLimits, import, import_sources};
pub use self::write::{SaveError, SaveOptions, is_for_etwanalyzer, save};

/// A part of an extract that we read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExtractMember {
    /// Machine, session and processes.
    Main,
    /// Modules and their PDBs.
    Modules,
    /// The texts of the stacks.
    HandleStacks,
    /// Objects and their events.
    Handle,
}

impl ExtractMember {
    pub const ALL: [Self; 4] = [Self::Main, Self::Modules, Self::HandleStacks, Self::Handle];

    /// Suffix after the base name, without the extension.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Main => "",
            Self::Modules => "_Derived_Modules",
            Self::HandleStacks => "_Derived_HandleStacks",
            Self::Handle => "_Derived_Handle",
        }
    }

    /// Returns the name of the part in an archive or folder.
    pub fn name(self, base: &str) -> String {
        format!("{base}{}.json", self.suffix())
    }
}

/// Infix in the names of all derived parts.
pub const DERIVED: &str = "_Derived_";

/// Finds a part among the names of all members of an archive called `base`.
///
/// The exact name wins. If the archive was renamed, a derived part is found by its suffix, and the main part by the
/// prefix the derived parts share.
pub fn find<'a>(member: ExtractMember, base: &str, names: &[&'a str]) -> Option<&'a str> {
    let exact = member.name(base);
    let mut names = names.iter().copied();
    if let Some(name) = names.clone().find(|name| *name == exact) {
        return Some(name);
    }
    if member != ExtractMember::Main {
        return names.find(|name| stem(name).ends_with(member.suffix()));
    }
    let derived = names.clone().find_map(|name| {
        let (base, _) = name.split_once(DERIVED)?;
        let (_, extension) = name.rsplit_once('.').unwrap_or((name, "json"));
        Some(format!("{base}.{extension}"))
    });
    match derived {
        Some(main) => names.find(|name| *name == main),
        None => names.find(|name| has_json_extension(name)),
    }
}

fn stem(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

fn has_json_extension(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, extension)| extension.eq_ignore_ascii_case("json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exact_name_wins() {
        let names = ["x_Derived_Handle.json", "a_Derived_Handle.json", "x.json", "a.json"];
        assert_eq!(find(ExtractMember::Handle, "a", &names), Some("a_Derived_Handle.json"));
        assert_eq!(find(ExtractMember::Main, "a", &names), Some("a.json"));
    }

    #[test]
    fn a_renamed_archive_is_known_by_the_endings() {
        let names = [
            "readme.json",
            "old_Derived_HandleStacks.json",
            "old_Derived_Handle.json",
            "old.json",
            "old_Derived_FileIO.json",
        ];
        assert_eq!(find(ExtractMember::Handle, "new", &names), Some("old_Derived_Handle.json"));
        assert_eq!(
            find(ExtractMember::HandleStacks, "new", &names),
            Some("old_Derived_HandleStacks.json")
        );
        assert_eq!(find(ExtractMember::Main, "new", &names), Some("old.json"));
        assert_eq!(find(ExtractMember::Modules, "new", &names), None);
    }

    #[test]
    fn an_archive_with_a_single_part_has_a_main_part() {
        assert_eq!(find(ExtractMember::Main, "new", &["notes.txt", "old.json"]), Some("old.json"));
        assert_eq!(find(ExtractMember::Main, "new", &["old_Derived_Handle.json"]), None);
        assert_eq!(find(ExtractMember::Main, "new", &[]), None);
    }
}
