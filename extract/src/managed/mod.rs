//! The event family of managed code: methods of the .NET runtime, by process, address and time.
//!
//! The runtime has an event for every method it compiles or finds compiled, and a rundown at the end
//! of a session of those that are there. Addresses in code that was compiled at run time lie in no
//! image; only these events name them.

mod clr;
mod methods;
mod native_images;

pub(crate) use clr::PROVIDERS;
pub use methods::{MethodRow, Methods};
pub use native_images::NativeImages;
