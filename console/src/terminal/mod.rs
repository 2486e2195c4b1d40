//! The terminal: its width and colours, messages, progress, tables, and text that cannot disturb it.

/// Passes methods of a trait on to the first field, which implements it, too.
macro_rules! delegate {
    ($(fn $name:ident(&mut $self:ident $(, $arg:ident: $type:ty)* $(,)?) $(-> $result:ty)?;)+) => {
        $(fn $name(&mut $self $(, $arg: $type)*) $(-> $result)? { $self.0.$name($($arg),*) })+
    };
    ($(fn $name:ident(&$self:ident $(, $arg:ident: $type:ty)* $(,)?) $(-> $result:ty)?;)+) => {
        $(fn $name(&$self $(, $arg: $type)*) $(-> $result)? { $self.0.$name($($arg),*) })+
    };
}
pub(crate) use delegate;

pub(crate) mod clip;
mod command_output;
mod full_screen;
mod margin;
mod messages;
mod neutral;
mod pager;
mod progress;
mod screen;
pub mod standard;
pub mod table;
pub(crate) mod theme;
mod wrap;

pub(crate) use command_output::CommandOutput;
pub(crate) use full_screen::{FullScreen, Pressed};
pub use messages::{Messages, print_usage, report_panics};
pub(crate) use neutral::{Neutral, neutral, same_length};
pub(crate) use pager::{Paged, refuses_pager};
pub(crate) use progress::{Activity, Progress, Spinner};
pub(crate) use screen::refuses_color;
pub use screen::{ColorChoice, Screen};
pub(crate) use theme::Role;
pub(crate) use wrap::wrapped;
