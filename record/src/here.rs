//! The recorder of this system.

use crate::recorder::Recorder;

/// The recorder of this system: sessions of Windows, or one that says that this is not Windows.
pub fn recorder() -> &'static dyn Recorder {
    #[cfg(windows)]
    return &crate::session::Windows;
    #[cfg(not(windows))]
    return &elsewhere::Elsewhere;
}

#[cfg(not(windows))]
mod elsewhere {
    use std::env::consts::OS;

    use crate::{
        error::SessionError,
        plan::SessionPlan,
        recorder::{EventSink, Recorder, Running},
    };

    pub struct Elsewhere;

    impl Recorder for Elsewhere {
        fn start(&self, _: SessionPlan, _: EventSink) -> Result<Box<dyn Running>, SessionError> {
            Err(SessionError::NotWindows { system: OS })
        }
    }
}
