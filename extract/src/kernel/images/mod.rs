//! Images: where files are mapped, and which files they are.

mod gathered;
mod identity;
mod image;

pub use gathered::{ImageRow, Images};
pub use identity::{FileVersion, IDENTITY_GUID};
pub(crate) use image::Image;
