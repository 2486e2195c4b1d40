//! Reason for an empty answer where handles are chosen by their owner.

use super::no_match::NoMatch;
use super::object_ref::FileAnswer;
use super::tables::ProcessInfo;
use handlescope_session::filter::ProcessFilter;

/// Explains why nothing matches when no handle is of a process that is meant.
pub fn note_owners(files: &mut [FileAnswer<'_>], filter: &ProcessFilter, is_plain: bool) {
    if files.iter().any(|file| owners(file).any(|owner| owner.matches(filter, is_plain))) {
        return;
    }
    for file in files {
        let names = owners(file).map(|process| process.shown_name(is_plain).to_owned()).collect();
        let objects = file.selection.objects().len();
        file.about.no_match =
            file.about.no_match.take().or_else(|| NoMatch::of_owners(filter, objects, names));
    }
}

/// Owners of the handles that were opened in a trace.
fn owners<'f>(file: &'f FileAnswer<'_>) -> impl Iterator<Item = &'f ProcessInfo> {
    let groups = file.groups.iter().filter_map(|groups| Some((groups, groups.timed.as_ref()?)));
    groups.flat_map(move |(groups, timed)| {
        let handles = groups.tree.leaves().map(|leaf| timed.handles(&groups.tree, leaf));
        let opened = handles.filter(|handles| !handles.is_empty());
        opened.map(|handles| file.file.processes.known_or_invalid(timed.owner(&handles)))
    })
}
