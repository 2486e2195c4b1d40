//! The settings: what the session, the command line, the environment and the configuration file say, and what counts.

mod aliases;
mod display;
mod file;
mod key;
mod layers;

pub use aliases::Expanded;
pub use aliases::{AliasError, Aliases};
pub use display::{Display, DisplayArgs, StackDisplayArgs};
pub use file::Entry;
pub use file::{ConfigError, ConfigFile};
pub use key::{Choices, Key};
pub use layers::{Settings, Source, settled};
