//! The container: buffers, decompression, event framing, clocks and time order.
//!
//! This module does not interpret payloads. The bytes go through
//! [`EtlFile`] → [`BufferIndex`] → decoded buffers → [`EventReader`] → events in time order.

mod buffer;
mod clock;
mod decode;
mod decoded;
mod diagnostics;
mod event;
mod file;
mod gather;
mod hand_out;
mod index;
mod losses;
mod lz77;
mod merge;
mod reader;
mod repeated;
mod spares;
mod stack_parts;

pub use buffer::{BUFFER_HEADER_SIZE, BufferHeader, BufferTimes, IndexedBuffer, Times};
pub use clock::{Clock, ClockKind};
pub use decode::Selector;
pub use decode::load;
pub use diagnostics::{Diagnostics, WarningKind, finding_nouns, is_loss, is_loss_of_provider};
pub use event::{Event, EventId, FrameError, Guid};
pub use event::{Framed, frame, is_end};
pub use file::{EtlFile, ScanError};
pub use gather::{Batch, Gatherer, Sink};
pub use index::{BufferIndex, Session, SkippedRange};
pub use losses::{EventLoss, LossSpan, ReadBuffer, SessionClaims, losses};
pub use lz77::{Lz77Error, decompress};
pub use reader::EventReader;
pub use reader::MAX_DECODERS;
pub use repeated::MAX_REPEATED;
pub use spares::Spare;
pub use stack_parts::{StackPart, StackParts};
