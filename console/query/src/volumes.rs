//! Drive letters: rewrites kernel paths as programs write them.

use std::borrow::Cow;
use std::collections::HashMap;

use handlescope_model::{ArchiveError, TableRows, Trace, tables};

use handlescope_session::filter::Filter;

/// The volumes of a trace. Prefixes are in lower case, because file systems ignore case.
#[derive(Debug, Default)]
pub struct Volumes {
    by_prefix: HashMap<String, String>,
    /// Length of the longest prefix in bytes.
    longest: usize,
}

impl Volumes {
    pub fn load(trace: &Trace) -> Result<Self, ArchiveError> {
        let volumes = tables::Volumes::read(trace)?;
        let longest = volumes.nt_prefix.iter().map(String::len).max().unwrap_or_default();
        let prefixes = volumes.nt_prefix.iter().map(|prefix| prefix.to_ascii_lowercase());
        Ok(Self { by_prefix: prefixes.zip(volumes.dos_prefix).collect(), longest })
    }

    /// Returns `C:\Windows\a.dll` for `\Device\HarddiskVolume3\Windows\a.dll`; other paths stay as they are.
    pub fn shown<'p>(&self, path: &'p str) -> Cow<'p, str> {
        if self.by_prefix.is_empty() || !path.starts_with('\\') {
            return path.into();
        }
        let start = path.get(..path.floor_char_boundary(self.longest)).unwrap_or(path);
        let start = start.to_ascii_lowercase();
        start
            .rmatch_indices('\\')
            .map(|(index, _)| start.split_at(index + 1).0)
            .find_map(|prefix| Some((prefix, self.by_prefix.get(prefix)?)))
            .map_or(path.into(), |(prefix, dos)| (dos.clone() + &path[prefix.len()..]).into())
    }

    /// Whether a filter lets a path pass in either form.
    pub fn matches(&self, filter: &Filter, path: &str) -> bool {
        match self.shown(path) {
            Cow::Borrowed(path) => filter.matches(path),
            Cow::Owned(shown_path) => filter.matches_lines(path.lines().chain(shown_path.lines())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn volumes() -> Volumes {
        let prefixes = [
            (r"\device\harddiskvolume3\", r"C:\"),
            (r"\device\harddiskvolume3\mounted\", r"E:\"),
            (r"\systemroot\", r"C:\Windows\"),
            (r"\??\", ""),
        ];
        let by_prefix = prefixes.map(|(nt, dos)| (nt.to_owned(), dos.to_owned()));
        Volumes { by_prefix: by_prefix.into(), longest: 32 }
    }

    #[test]
    fn the_longest_prefix_gives_the_drive_and_other_names_stay() {
        for (path, shown) in [
            (r"\Device\HarddiskVolume3\Tools\leaky.exe", r"C:\Tools\leaky.exe"),
            (r"\Device\HarddiskVolume3\Mounted\a.txt", r"E:\a.txt"),
            (r"\SYSTEMROOT\System32\ä.sys", r"C:\Windows\System32\ä.sys"),
            (r"\??\D:\a", r"D:\a"),
            (r"\Device\HarddiskVolume33\a", r"\Device\HarddiskVolume33\a"),
            (r"\Device\HarddiskVolume3", r"\Device\HarddiskVolume3"),
            (r"\äääääääääääääääääääääääääää\a", r"\äääääääääääääääääääääääääää\a"),
            (r"C:\a", r"C:\a"),
            ("", ""),
        ] {
            assert_eq!(volumes().shown(path), shown);
            assert_eq!(Volumes::default().shown(path), path);
        }
    }

    #[test]
    fn a_filter_means_a_path_in_either_way_to_write_it() {
        let path = r"\Device\HarddiskVolume3\Tools\leaky.exe";
        for (filter, expected) in [
            (r"C:\Tools\*", true),
            (r"\Device\*", true),
            (r"!C:\*", false),
            (r"!\Device\*", false),
            (r"D:\*", false),
            (r"!D:\*", true),
        ] {
            let filter = Filter::new(filter).expect("a filter");
            assert_eq!(volumes().matches(&filter, path), expected, "{}", filter.text());
        }
    }
}
