//! Settings of a scenario that a test chooses.

use super::builder::TraceBuilder;
use super::config::StackMode;
use crate::header::HeaderKind;

/// Settings for the events added after them.
impl TraceBuilder {
    /// Sets the header of handle, object and mapping events. Default: [`HeaderKind::Compact`].
    pub fn header_kind(&mut self, kind: HeaderKind) -> &mut Self {
        self.config.header = kind;
        self
    }

    /// Sets how stacks are written. Default: [`StackMode::Fragments`].
    pub fn stack_mode(&mut self, mode: StackMode) -> &mut Self {
        self.config.stack_mode = mode;
        self
    }

    /// Sets the time from an event to the user part of its stack, in nanoseconds. Default: 5000.
    pub fn user_stack_delay(&mut self, ns: i64) -> &mut Self {
        self.config.user_stack_delay = ns;
        self
    }
}

/// Settings for the whole file.
impl TraceBuilder {
    /// Sets the kernel frames of closes at process exit, if events have stacks. Default: some addresses.
    pub fn sweep_stack(&mut self, kernel: &[u64]) -> &mut Self {
        self.config.sweep_stack = kernel.to_vec();
        self
    }

    /// Sets the number of stack keys before old ones are evicted and reused. Default: 1024.
    pub fn stack_key_slots(&mut self, slots: usize) -> &mut Self {
        self.config.key_slots = slots;
        self
    }

    /// Sets whether to log a context switch whenever another thread logs on a processor. Default: no.
    pub fn context_switches(&mut self, on: bool) -> &mut Self {
        self.config.context_switches = on;
        self
    }

    /// Sets whether to add image identities and system facts as a merge does. Default: yes.
    pub fn merge_events(&mut self, on: bool) -> &mut Self {
        self.config.identities = on;
        self
    }

    /// Sets which rundowns to write. Default: only the one at the end. Handles added by
    /// [`TraceBuilder::handle_rundown_start`] are always in the start rundown.
    pub fn rundowns(&mut self, start: bool, end: bool) -> &mut Self {
        self.config.start_rundown = start;
        self.config.end_rundown = end;
        self
    }

    /// Sets the versions of process (0 to 5) and image events (2 or 3). Default: 4 and 3.
    pub fn event_versions(&mut self, process: u8, image: u8) -> &mut Self {
        self.config.process_version = process;
        self.config.image_version = image;
        self
    }

    /// Sets whether thread events end with a thread name. Default: yes.
    pub fn thread_names(&mut self, on: bool) -> &mut Self {
        self.config.thread_names = on;
        self
    }

    /// Sets the start of the rundown at the end. Default: 1 ms after the last event.
    pub fn end(&mut self, ns: i64) -> &mut Self {
        self.config.end = Some(ns);
        self
    }

    /// Adds unrelated events of all header kinds, spread over the session.
    pub fn noise(&mut self, count: usize, seed: u64) -> &mut Self {
        self.config.noise = (count, seed);
        self
    }

    /// Sets the build string and product name of the system.
    pub fn system(&mut self, build_string: &str, product: &str) -> &mut Self {
        self.config.build_string = build_string.into();
        self.config.product = product.into();
        self
    }

    /// Sets the computer name. Default: no event has it.
    pub fn computer(&mut self, name: &str) -> &mut Self {
        self.config.computer = Some(name.into());
        self
    }

    /// Adds a line to the map from NT to DOS path prefixes.
    pub fn path_prefix(&mut self, nt: &str, dos: &str) -> &mut Self {
        self.config.prefixes.push((nt.into(), dos.into()));
        self
    }
}
