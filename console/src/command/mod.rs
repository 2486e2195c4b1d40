//! Commands as entered: plain values, one file per family.

mod object_ref;
mod tables;
mod values;

pub use object_ref::{JsonMode, MapMode, ObjectRefArgs, ShowTotal};
pub use tables::{ModuleArgs, ProcessArgs, StatsArgs};
pub use values::{CountRange, SecondsRange, TopN};

/// A `.dump`, by what it dumps.
#[derive(Debug, Clone, PartialEq)]
pub enum Dump {
    /// `.dump ObjectRef`
    ObjectRef(Box<ObjectRefArgs>),
    /// `.dump Process`
    Process(ProcessArgs),
    /// `.dump Module`
    Module(ModuleArgs),
    /// `.dump Stats`
    Stats(StatsArgs),
}
