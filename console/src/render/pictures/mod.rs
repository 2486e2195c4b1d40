//! Answers as pictures.

mod flame;
mod folded;
mod measure;
mod plot_svg;
mod plot_text;
mod speedscope;
mod timeline;

pub(crate) use self::flame::FlameGraph;
pub(super) use self::flame::folded_leaks;
pub(crate) use self::folded::Weight;
pub(super) use self::folded::{Folded, FrameTable, PictureFrame, folded};
pub(crate) use self::measure::Measure;
pub(crate) use self::plot_svg::write_svg as write_plot_svg;
pub(crate) use self::plot_text::{columns, write_text as write_plot_text};
pub(crate) use self::timeline::Timeline;
