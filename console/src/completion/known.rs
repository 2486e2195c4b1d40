//! What completion knows about the session.

use std::sync::{Arc, Mutex};

use crate::{settings::Aliases, trace::TraceValues};

/// What completion knows about the session, kept up to date between two commands.
#[derive(Debug, Default)]
pub struct Known {
    /// Paths of the loaded traces.
    pub loaded: Vec<String>,
    /// Names of their snapshots, each once.
    pub snapshots: Vec<String>,
    /// The aliases of the session.
    pub aliases: Aliases,
    /// What the loaded traces offer.
    pub values: Vec<Arc<TraceValues>>,
}

/// [`Known`], shared with the line editor.
pub type SharedKnown = Arc<Mutex<Known>>;
