//! Options under the headings of the help.

use super::option::{Opt, OptionSpec};

/// Options that serve one purpose.
pub struct OptionGroup<A: 'static> {
    /// The purpose, as heading in the help.
    pub title: &'static str,
    pub options: &'static [Opt<A>],
}

/// An [`OptionGroup`] whose arguments are of no interest.
pub struct GroupView {
    /// The purpose, as heading in the help.
    pub title: &'static str,
    pub options: Vec<&'static dyn OptionSpec>,
}

impl GroupView {
    /// Groups of options without their arguments.
    pub(crate) fn all<A: Default>(groups: &'static [OptionGroup<A>]) -> Vec<GroupView> {
        let view = |group: &'static OptionGroup<A>| GroupView {
            title: group.title,
            options: group.options.iter().map(|option| option as _).collect(),
        };
        groups.iter().map(view).collect()
    }

    /// Groups with those that are shared, without options whose name an own one has.
    pub(crate) fn with_shared(mut own: Vec<GroupView>, shared: Vec<GroupView>) -> Vec<GroupView> {
        for GroupView { title, mut options } in shared {
            let all = || own.iter().flat_map(|group| &group.options);
            options.retain(|option| {
                !option.doc().names.iter().any(|name| all().any(|own| own.is_named(name)))
            });
            match own.iter_mut().find(|group| group.title == title) {
                Some(group) => group.options.splice(0..0, options).for_each(drop),
                None => own.push(GroupView { title, options }),
            }
        }
        own.retain(|group| !group.options.is_empty());
        own
    }
}
