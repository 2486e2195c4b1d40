//! Which events a mapping can be for.

use super::index::FAMILIES;
use crate::etl::EventId;
use crate::mapping::{MappingError, ResourceMapping};
use crate::raw::kernel_classes;

/// The provider of events that have a hook instead of one.
pub(crate) const KERNEL: &str = "Windows Kernel";

/// Looks whether mappings are for events that can be mapped.
///
/// # Errors
/// For the first that names a provider of kernel events, which have no schema and a family of their own.
pub fn check_mappings(mappings: &[ResourceMapping]) -> Result<(), MappingError> {
    let classic = |id: &EventId| match id {
        EventId::Classic { guid, .. } => Some(*guid),
        _ => None,
    };
    let taken = FAMILIES.iter().flat_map(|family| family.events);
    let guids = taken.filter_map(|(id, _)| classic(id)).chain(kernel_classes());
    let guids: Vec<String> = guids.map(|guid| guid.to_string()).collect();
    let is_of_kernel = |mapping: &&ResourceMapping| {
        mapping.names_provider(KERNEL, "")
            || guids.iter().any(|guid| mapping.names_provider("", guid))
    };
    match mappings.iter().find(is_of_kernel) {
        None => Ok(()),
        Some(ResourceMapping { provider, event, .. }) => {
            Err(MappingError::OfKernel { event: format!("{provider}/{event}") })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_events_are_refused_by_name_and_guid_and_others_are_not() {
        let checked = |provider: &str| {
            let words = format!("Contoso/1 acquire; {provider}/MyEvent release");
            let list = words.split(';').map(|words| {
                let (event, action) = words.trim().rsplit_once(' ').unwrap();
                format!("[[resource]]\nevent = '{event}'\naction = '{action}'\n")
            });
            let mappings = ResourceMapping::of_list(&list.collect::<String>()).unwrap();
            check_mappings(&mappings).map_err(|error| error.to_string())
        };
        for provider in [
            "windows kernel",
            "3d6fa8d0-fe05-11d0-9dda-00c04fd7ba7c",
            "{89497F50-EFFE-4440-8CF2-CE6B1CDCACA7}",
        ] {
            let error = checked(provider).unwrap_err();
            assert!(error.starts_with(&format!("{provider}/MyEvent: ")), "{error}");
        }
        for provider in
            ["*", "Contoso", "e13c0d23-ccbc-4e12-931b-d9cc2eee27e4", "Microsoft-Windows-Win32k"]
        {
            assert_eq!(checked(provider), Ok(()), "{provider}");
        }
    }
}
