//! Finds out why allocations leak, as far as their events prove it.

mod causes;
mod commits;

use std::collections::HashSet;

use handlescope_model::rules::backed_by;
use handlescope_model::tables::ResourceKind;

pub use self::causes::SiteCauses;
use self::causes::{ExaminedSite, RESERVE_WITHOUT_COMMIT};
use super::causes::{causes_of_handles, words};
use super::suspect::{LeakingGroup, Suspect};

/// Returns the causes of leaked allocations with their help texts, except causes that handles also have.
pub fn causes_of_allocations() -> Vec<(&'static str, &'static str)> {
    let mut words = [words(&ExaminedSite::CAUSES), words(&LeakingGroup::CAUSES_OF_HEAPS)].concat();
    words.retain(|(word, _)| {
        causes_of_handles().iter().all(|(word_of_handles, _)| word_of_handles != word)
    });
    words
}

/// Removes and returns reservations whose stack also commits pages: the commits say as much and more. Reservations in
/// which nothing is ever committed stay.
pub fn remove_backed(suspects: &mut Vec<Suspect>) -> Vec<Suspect> {
    let kind = |suspect: &Suspect| {
        ResourceKind::ALL.into_iter().find(|kind| kind.name() == suspect.type_name)
    };
    let sites = |kind, suspect: &Suspect| -> Vec<_> {
        let Suspect { pid, process, equal_stacks, .. } = suspect;
        equal_stacks.iter().map(|stack| (kind, *pid, process.clone(), *stack)).collect()
    };
    let backing: HashSet<ResourceKind> =
        ResourceKind::ALL.into_iter().filter_map(backed_by).collect();
    let backing: HashSet<_> = suspects
        .iter()
        .filter_map(|suspect| Some((kind(suspect).filter(|it| backing.contains(it))?, suspect)))
        .flat_map(|(kind, suspect)| sites(kind, suspect))
        .collect();
    let is_backed = |suspect: &mut Suspect| {
        let backed = kind(suspect).and_then(backed_by);
        backed.is_some_and(|backed| sites(backed, suspect).iter().all(|it| backing.contains(it)))
            && suspect.diagnoses.iter().all(|diagnosis| diagnosis.cause != RESERVE_WITHOUT_COMMIT)
    };
    suspects.extract_if(.., is_backed).collect()
}

#[cfg(test)]
mod tests;
