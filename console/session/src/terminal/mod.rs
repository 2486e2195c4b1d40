//! The terminal: its width and colours, messages, progress, tables, and text that cannot disturb it.

/// Passes methods of a trait on to the first field, which implements it, too.
#[macro_export]
macro_rules! delegate {
    ($(fn $name:ident(&mut $self:ident $(, $arg:ident: $type:ty)* $(,)?) $(-> $result:ty)?;)+) => {
        $(fn $name(&mut $self $(, $arg: $type)*) $(-> $result)? { $self.0.$name($($arg),*) })+
    };
    ($(fn $name:ident(&$self:ident $(, $arg:ident: $type:ty)* $(,)?) $(-> $result:ty)?;)+) => {
        $(fn $name(&$self $(, $arg: $type)*) $(-> $result)? { $self.0.$name($($arg),*) })+
    };
}

pub mod clip;
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
pub mod theme;
mod wrap;

pub use command_output::CommandOutput;
pub use full_screen::{FullScreen, Pressed};
pub use messages::{Messages, print_usage, report_panics};
pub use neutral::{Neutral, neutral, same_length};
pub use pager::{Paged, refuses_pager};
pub use progress::{Activity, Progress, Spinner};
pub use screen::refuses_color;
pub use screen::{ColorChoice, Screen};
pub use theme::Role;
pub use wrap::wrapped;
