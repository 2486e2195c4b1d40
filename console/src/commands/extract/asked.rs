//! Whether the traces have what `-events` and `-resource` name.

use std::collections::BTreeSet;

use handlescope_extract::{EventChoice, ResourceMapping};
use handlescope_model::tables::{EventCount, EventCounts};
use handlescope_model::{ArchiveError, TableRows, Trace, Untrusted};

use crate::{commands::error::CommandError, suggest, terminal::Messages};

const EVENTS: &str = "-events";
const RESOURCE: &str = "-resource";

/// Names that a message lists at most.
const MOST_LISTED: usize = 8;

/// What was asked for, and what the traces have.
pub(super) struct Asked {
    wishes: Vec<Wish>,
    /// Providers of all traces.
    providers: BTreeSet<String>,
    /// Events of the providers that `-resource` names.
    events: BTreeSet<String>,
    traces: usize,
}

/// A part of `-events` or `-resource`.
struct Wish {
    option: &'static str,
    provider: String,
    /// Name or id; `None` for all events of the provider.
    event: Option<String>,
    has_provider: bool,
    is_there: bool,
}

impl Asked {
    pub(super) fn of(events: &EventChoice, resources: &[ResourceMapping]) -> Asked {
        let providers: &[String] = match events {
            EventChoice::Providers(providers) => providers,
            EventChoice::None | EventChoice::All => &[],
        };
        let wish = |option, provider: &String, event| Wish {
            option,
            provider: provider.clone(),
            event,
            has_provider: false,
            is_there: false,
        };
        let all = providers.iter().map(|provider| wish(EVENTS, provider, None));
        let some = resources
            .iter()
            .map(|mapping| wish(RESOURCE, &mapping.provider, Some(mapping.event.clone())));
        Asked {
            wishes: all.chain(some).collect(),
            providers: BTreeSet::new(),
            events: BTreeSet::new(),
            traces: 0,
        }
    }

    /// Looks at what an extracted trace has.
    ///
    /// # Errors
    /// When the extract cannot be read.
    pub(super) fn look_at(&mut self, trace: &Trace) -> Result<(), ArchiveError> {
        self.traces += 1;
        if self.wishes.is_empty() {
            return Ok(());
        }
        for EventCount { kind, provider, name, .. } in EventCounts::read(trace)?.rows() {
            let mut parts = kind.splitn(3, ':').skip(1);
            let (guid, id) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
            let (provider, name) = (provider.unwrap_or_default(), name.unwrap_or_default());
            for wish in &mut self.wishes {
                let choice = EventChoice::Providers(vec![wish.provider.clone()]);
                if wish.provider != "*" && !choice.means(&provider, guid) {
                    continue;
                }
                wish.has_provider = true;
                wish.is_there |= wish
                    .event
                    .as_ref()
                    .is_none_or(|event| event.eq_ignore_ascii_case(&name) || event == id);
                if wish.event.is_some() && !name.is_empty() {
                    self.events.insert(name.clone());
                }
            }
            if !provider.is_empty() {
                self.providers.insert(provider);
            }
        }
        Ok(())
    }

    /// Warns of what is in none of the traces, as a list may name more than each trace has; fails when that
    /// is all that an option names.
    pub(super) fn check(self, messages: &mut Messages<'_>) -> Result<(), CommandError> {
        if self.traces == 0 {
            return Ok(());
        }
        for option in [EVENTS, RESOURCE] {
            let of_option = || self.wishes.iter().filter(|wish| wish.option == option);
            let is_any_there = of_option().any(|wish| wish.is_there);
            for missing in of_option().filter(|wish| !wish.is_there) {
                let error = self.error(missing);
                if !is_any_there {
                    return Err(error);
                }
                messages.warning(error);
            }
        }
        Ok(())
    }

    fn error(&self, missing: &Wish) -> CommandError {
        let provider = Untrusted(&missing.provider);
        let (what, name, known) = match &missing.event {
            Some(event) if missing.has_provider => {
                (format!("event {} of {provider}", Untrusted(event)), event, &self.events)
            }
            _ => (format!("event of a provider {provider}"), &missing.provider, &self.providers),
        };
        CommandError::NotInTraces { option: missing.option, what, hint: hint(name, known) }
    }
}

/// The nearest name, else those that there are.
fn hint(name: &str, known: &BTreeSet<String>) -> String {
    if let Some(nearest) = suggest::nearest(name, known.iter().map(String::as_str)) {
        return suggest::did_you_mean(nearest);
    }
    let listed: Vec<&str> = known.iter().map(String::as_str).take(MOST_LISTED).collect();
    match (listed.len(), known.len()) {
        (0, _) => "; no name is known of any".to_owned(),
        (all, known) if all == known => format!("; there are {}", listed.join(", ")),
        (_, known) => format!("; among the {known} that there are: {}", listed.join(", ")),
    }
}
