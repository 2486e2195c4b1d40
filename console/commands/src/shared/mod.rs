//! Code that several commands share: options that are declared once, and the search for names of frames.

pub mod caveats;
pub mod choice;
pub mod names;
pub mod options;
pub mod symbols;

/// Arguments with a part that options of several commands fill.
pub trait Has<T> {
    fn part(&mut self) -> &mut T;
}

/// Lets options that several commands have fill fields of such arguments.
macro_rules! fields {
    ($args:ident { $($field:ident $(.$inner:ident)*: $type:ty),+ $(,)? }) => {
        $(impl $crate::shared::Has<$type> for $args {
            fn part(&mut self) -> &mut $type {
                &mut self.$field$(.$inner)*
            }
        })+
    };
}
pub(crate) use fields;

/// Headings of the list of commands, and of options that several kinds of `.dump` have.
pub mod groups {
    pub const FILES: &str = "Files";
    pub const QUERIES: &str = "Queries";
    pub const PRINTING: &str = "Output";
    pub const SESSION: &str = "Session";

    /// Options about order, number and form of what is printed.
    pub const DISPLAY: &str = "Output";

    /// Options about what a command may take.
    pub const LIMITS: &str = "Limits";

    /// Options that do nothing, so that command lines of ETWAnalyzer work.
    pub const WITHOUT_EFFECT: &str = "For ETWAnalyzer compatibility";

    /// Options for scripts.
    pub const SCRIPTS: &str = "Files and documents";
}
