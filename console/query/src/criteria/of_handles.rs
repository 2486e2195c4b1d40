//! Derives criteria for allocations from options for handles.

use super::groups::GroupCriteria;
use super::lists::WhyCriteria;
use super::objects::ObjectCriteria;
use super::resources::{ResourceCriteria, ResourceOptions};
use crate::criterion::Criterion;

impl ResourceCriteria {
    /// Derives criteria for allocations from options for handles; types become kinds. `None` if an option is about
    /// something that only objects have.
    pub fn from_handles(handles: &ObjectCriteria) -> Option<Self> {
        let ObjectCriteria { stacks, plain_process_names, with_identities, .. } = *handles;
        let supported = ObjectCriteria {
            creator: handles.creator.clone(),
            object_type: handles.object_type.clone(),
            time: handles.time,
            create_stack: handles.create_stack.clone(),
            destroy_stack: handles.destroy_stack.clone(),
            suspect: handles.suspect.clone(),
            leak: handles.leak,
            leak_at_exit: handles.leak_at_exit,
            sums_suspect: handles.sums_suspect,
            groups: GroupCriteria {
                trims: handles.groups.trims.clone(),
                ..GroupCriteria::default()
            },
            stacks,
            plain_process_names,
            with_identities,
            ..ObjectCriteria::default()
        };
        (supported == *handles).then(|| Self {
            kind: supported.object_type,
            owners: supported.creator,
            time: supported.time,
            create_stack: supported.create_stack,
            free_stack: supported.destroy_stack,
            suspect: supported.suspect,
            leak: supported.leak,
            leak_at_exit: supported.leak_at_exit,
            trims: supported.groups.trims,
            options: ResourceOptions { kind: Criterion::Type, free_stack: Criterion::DestroyStack },
            ..Self::default()
        })
    }
}

impl ResourceCriteria {
    /// Returns the criteria for commands that select kinds by `-Kind` rather than by type.
    pub fn with_kind_option(mut self) -> Self {
        self.options.kind = ResourceOptions::default().kind;
        self
    }
}

impl WhyCriteria {
    /// Returns the criteria that select allocations, if any are meant.
    pub fn allocations(&self) -> Option<ResourceCriteria> {
        let criteria = ResourceCriteria::from_handles(&self.handles)?;
        let owners = if self.owners.is_empty() { criteria.owners } else { self.owners.clone() };
        Some(ResourceCriteria { owners, ..criteria })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use handlescope_session::settings::StackDisplayArgs;

    #[test]
    fn how_processes_and_stacks_are_printed_says_nothing_about_which_allocations_are_meant() {
        let leaks = ObjectCriteria { leak: true, ..ObjectCriteria::default() };
        let printed = ObjectCriteria {
            stacks: StackDisplayArgs { show: true, address: true, line: true },
            plain_process_names: true,
            with_identities: true,
            ..leaks.clone()
        };
        let criteria = ResourceCriteria::from_handles(&printed);
        assert!(criteria.is_some() && criteria == ResourceCriteria::from_handles(&leaks));
        let of_objects = ObjectCriteria { overlapped: true, ..leaks };
        assert_eq!(ResourceCriteria::from_handles(&of_objects), None);
    }
}
