//! The settings: what the session, the command line, the environment and the configuration file say, and what counts.

mod aliases;
mod choices;
mod display;
mod file;
mod key;
mod layers;

pub(crate) use aliases::Expanded;
pub use aliases::{AliasError, Aliases};
pub use choices::Choices;
pub(crate) use choices::modules;
pub use display::{Display, DisplayArgs, StackDisplayArgs};
pub(crate) use file::Entry;
pub use file::{ConfigError, ConfigFile};
pub use key::Key;
pub use layers::{Change, Setting, Settings, Source, settled};
