//! Answers as pictures.

mod flame;
mod folded;
mod measure;
mod plot_svg;
mod plot_text;
mod speedscope;
mod timeline;

pub use self::flame::FlameGraph;
pub use self::flame::folded_leaks;
pub use self::folded::Weight;
pub use self::folded::{Folded, FrameTable, PictureFrame, folded};
pub use self::measure::Measure;
pub use self::plot_svg::write_svg as write_plot_svg;
pub use self::plot_text::{columns, write_text as write_plot_text};
pub use self::timeline::Timeline;
