//! Actions of threads on heaps and virtual memory.

use super::builder::TraceBuilder;
use super::caller::Caller;
use crate::payload::{HeapCall, RangeRecord};

/// Events of memory. Times are nanoseconds since the session start.
impl TraceBuilder {
    /// A thread calls a heap; a stack may follow.
    pub fn heap(
        &mut self,
        ns: i64,
        caller: impl Into<Caller>,
        heap: u64,
        call: HeapCall,
    ) -> &mut Self {
        let payload = call.payload(heap, self.options.pointer);
        self.kernel_event(ns, caller, &payload)
    }

    /// A thread reserves or commits memory; a stack may follow.
    pub fn virtual_alloc(
        &mut self,
        ns: i64,
        caller: impl Into<Caller>,
        range: RangeRecord,
    ) -> &mut Self {
        let payload = range.payload(false, self.options.pointer);
        self.kernel_event(ns, caller, &payload)
    }

    /// A thread gives memory back; a stack may follow.
    pub fn virtual_free(
        &mut self,
        ns: i64,
        caller: impl Into<Caller>,
        range: RangeRecord,
    ) -> &mut Self {
        let payload = range.payload(true, self.options.pointer);
        self.kernel_event(ns, caller, &payload)
    }
}
