//! Managed code: methods of the .NET runtime, by process, address and time.
//!
//! The runtime tells of every method it compiles or finds compiled, and a rundown at the end of a
//! session of those that are there. Addresses in code that was compiled at run time lie in no
//! image; only these events name them.

mod clr;
mod methods;

pub use clr::{CLR_PROVIDER, CLR_RUNDOWN_PROVIDER, MethodAction, MethodEvent, ModuleEvent, wanted};
pub use methods::{MethodRow, Methods};
