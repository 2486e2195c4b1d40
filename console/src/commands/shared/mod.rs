//! Code that several commands share: options that are declared once, and the search for names of frames.

pub(crate) mod caveats;
pub(crate) mod choice;
pub(crate) mod names;
pub(crate) mod options;
pub(crate) mod symbols;

/// Lets options that several commands have fill fields of such arguments.
macro_rules! fields {
    ($args:ident { $($field:ident $(.$inner:ident)*: $type:ty),+ $(,)? }) => {
        $(impl AsMut<$type> for $args {
            fn as_mut(&mut self) -> &mut $type {
                &mut self.$field$(.$inner)*
            }
        })+
    };
}
pub(crate) use fields;

/// Headings of the list of commands, and of options that several kinds of `.dump` have.
pub(crate) mod groups {
    pub(crate) const FILES: &str = "Files";
    pub(crate) const QUERIES: &str = "Queries";
    pub(crate) const PRINTING: &str = "Output";
    pub(crate) const SESSION: &str = "Session";

    /// Options about order, number and form of what is printed.
    pub(crate) const DISPLAY: &str = "Output";

    /// Options about what a command may take.
    pub(crate) const LIMITS: &str = "Limits";

    /// Options that do nothing, so that command lines of ETWAnalyzer work.
    pub(crate) const WITHOUT_EFFECT: &str = "For ETWAnalyzer compatibility";

    /// Options for scripts.
    pub(crate) const SCRIPTS: &str = "Files and documents";
}
