//! The terminal: its width and colours, messages, progress, tables, and text that cannot disturb it.

mod clean;
pub(crate) mod clip;
mod command_output;
mod margin;
mod messages;
mod pager;
mod progress;
mod screen;
pub mod table;
mod wrap;

pub(crate) use clean::Clean;
pub(crate) use command_output::CommandOutput;
pub use messages::Messages;
pub(crate) use pager::Paged;
pub(crate) use progress::{Progress, Spinner};
pub use screen::{ColorChoice, Screen};
pub(crate) use wrap::wrapped;
