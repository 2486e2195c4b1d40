//! Carries out a plan on Windows. All unsafe code is here, in `consumer` and in `merge`.
//!
//! No test runs this code. It is compiled for Windows, and the data that it passes on is tested everywhere.
#![allow(unsafe_code, reason = "the functions of Windows take pointers")]

use std::{ffi::c_void, mem, os::windows::ffi::OsStrExt, path::Path};

use windows::{
    Win32::{
        Foundation::{CloseHandle, HANDLE, LUID},
        Security::{
            AdjustTokenPrivileges, LUID_AND_ATTRIBUTES, LookupPrivilegeValueW,
            SE_PRIVILEGE_ENABLED, SE_SYSTEM_PROFILE_NAME, TOKEN_ADJUST_PRIVILEGES,
            TOKEN_PRIVILEGES,
        },
        System::{
            Diagnostics::Etw::{
                CLASSIC_EVENT_ID, CONTROLTRACE_HANDLE, ControlTraceW, EVENT_TRACE_CONTROL,
                EVENT_TRACE_CONTROL_FLUSH, EVENT_TRACE_CONTROL_QUERY, EVENT_TRACE_CONTROL_STOP,
                EVENT_TRACE_FLAG, EVENT_TRACE_PROPERTIES, StartTraceW, TRACE_QUERY_INFO_CLASS,
                TraceSetInformation, TraceStackTracingInfo, TraceSystemTraceEnableFlagsInfo,
                WNODE_FLAG_TRACED_GUID,
            },
            Threading::{GetCurrentProcess, OpenProcessToken},
        },
    },
    core::{GUID, PCWSTR},
};

use crate::{
    consumer::Consumer,
    error::SessionError,
    merge::merged,
    plan::SessionPlan,
    providers::Providers,
    recorder::{EventSink, Recorder, RecordingEnd, Running, SessionHeader, SessionStats},
};

/// learn, `EVENT_TRACE_PROPERTIES`: the maximum length of both names.
const NAME_CHARS: usize = 1024;

/// `SystemPerformanceTraceInformation` (ntwmi.h, etwcontroller).
const PERFORMANCE_TRACE: u32 = 31;

#[link(name = "ntdll")]
unsafe extern "system" {
    /// Undocumented; the declaration is from phnt, `ntexapi.h`.
    fn NtSetSystemInformation(class: u32, information: *const c_void, bytes: u32) -> i32;
}

/// Starts sessions on Windows.
pub struct Windows;

/// A recording session. It ends when dropped.
struct TracingSession {
    handle: CONTROLTRACE_HANDLE,
    plan: SessionPlan,
    is_running: bool,
    consumer: Option<Consumer>,
    providers: Option<Providers>,
}

/// The properties of a session, followed by room for its names.
#[repr(C)]
struct Properties {
    properties: EVENT_TRACE_PROPERTIES,
    logger: [u16; NAME_CHARS],
    file: [u16; NAME_CHARS],
}

impl Properties {
    /// Builds the properties. `file` is `None` if none is written, and for a ring until it is flushed.
    fn new(plan: &SessionPlan, file: Option<&Path>) -> Box<Properties> {
        let mut block = Box::new(Properties {
            properties: EVENT_TRACE_PROPERTIES::default(),
            logger: [0; NAME_CHARS],
            file: [0; NAME_CHARS],
        });
        let properties = &mut block.properties;
        properties.Wnode.BufferSize = mem::size_of::<Properties>() as u32;
        properties.Wnode.Guid = GUID::from_u128(plan.logger_guid.0);
        properties.Wnode.ClientContext = plan.clock;
        properties.Wnode.Flags = WNODE_FLAG_TRACED_GUID;
        properties.BufferSize = plan.buffer_kib;
        properties.MinimumBuffers = plan.minimum_buffers;
        properties.MaximumBuffers = plan.maximum_buffers;
        properties.LogFileMode = plan.log_file_mode.value;
        properties.FlushTimer = plan.flush_seconds;
        properties.EnableFlags = EVENT_TRACE_FLAG(plan.enable_flags.value);
        properties.LoggerNameOffset = mem::offset_of!(Properties, logger) as u32;
        if let Some(file) = file {
            properties.LogFileNameOffset = mem::offset_of!(Properties, file) as u32;
            // The last character stays 0 and terminates the name.
            let name = file.as_os_str().encode_wide().take(NAME_CHARS - 1);
            block.file.iter_mut().zip(name).for_each(|(target, unit)| *target = unit);
        }
        block
    }

    fn stats(&self) -> SessionStats {
        let properties = &self.properties;
        SessionStats {
            buffers_written: properties.BuffersWritten,
            events_lost: properties.EventsLost,
            buffers_lost: properties.LogBuffersLost + properties.RealTimeBuffersLost,
        }
    }

    /// Returns a pointer to the whole struct, because the names that follow the properties belong to them.
    fn pointer(&mut self) -> *mut EVENT_TRACE_PROPERTIES {
        (&raw mut *self).cast()
    }
}

impl Recorder for Windows {
    fn start(
        &self,
        plan: SessionPlan,
        events: EventSink,
    ) -> Result<Box<dyn Running>, SessionError> {
        TracingSession::start(plan, events).map(|session| Box::new(session) as Box<dyn Running>)
    }
}

impl Running for TracingSession {
    fn header(&self) -> Option<&SessionHeader> {
        self.consumer.as_ref().map(|consumer| &consumer.header)
    }

    fn stats(&self) -> Result<SessionStats, SessionError> {
        self.control(EVENT_TRACE_CONTROL_QUERY).map(|properties| properties.stats())
    }

    /// Ends the other sessions first, so that their events are within this session's time. A ring is written before it
    /// stops.
    fn stop(mut self: Box<Self>) -> Result<RecordingEnd, SessionError> {
        let further = self.providers.take().map(Providers::finish).unwrap_or_default();
        if self.plan.is_ring() {
            self.control(EVENT_TRACE_CONTROL_FLUSH)?;
        }
        let stats = self.control(EVENT_TRACE_CONTROL_STOP)?.stats();
        self.is_running = false;
        if let Some(mut consumer) = self.consumer.take() {
            consumer.wait();
        }
        let result = self.plan.log_file.as_deref().map(|trace| merged(trace, &further));
        Ok(RecordingEnd { stats, unmerged: result.and_then(Result::err), further })
    }
}

impl TracingSession {
    /// Starts the session. If Windows refuses, nothing is left of it.
    fn start(plan: SessionPlan, events: EventSink) -> Result<TracingSession, SessionError> {
        let mut name = wide(plan.logger);
        let file = plan.log_file.as_deref().filter(|_| !plan.is_ring());
        let mut properties = Properties::new(&plan, file);
        let mut handle = CONTROLTRACE_HANDLE::default();
        // SAFETY: `name` ends with 0; `properties` is as large as its Wnode.BufferSize says, and its offsets are within
        // it. All three outlive the call, which keeps none of them.
        let code =
            unsafe { StartTraceW(&raw mut handle, PCWSTR(name.as_ptr()), properties.pointer()) };
        SessionError::check("StartTraceW", code.0)?;
        // From here on, an error drops the session.
        let mut session =
            TracingSession { handle, plan, is_running: true, consumer: None, providers: None };
        let stacks: Vec<CLASSIC_EVENT_ID> = session
            .plan
            .stack_events
            .iter()
            .map(|event| {
                let class = GUID::from_u128(event.class.0);
                CLASSIC_EVENT_ID { EventGuid: class, Type: event.opcode, Reserved: [0; 7] }
            })
            .collect();
        session.set(TraceStackTracingInfo, &stacks)?;
        // Before the events are enabled, so that none of another type comes.
        session.filter()?;
        if !session.plan.is_ring() {
            session.consumer = Some(Consumer::start(&mut name, events)?);
        }
        session.set(TraceSystemTraceEnableFlagsInfo, &session.plan.group_mask.masks)?;
        session.providers = Providers::start(&session.plan.provider_sessions)?;
        Ok(session)
    }

    fn control(&self, control: EVENT_TRACE_CONTROL) -> Result<Box<Properties>, SessionError> {
        let mut properties = Properties::new(&self.plan, self.plan.log_file.as_deref());
        // SAFETY: as for StartTraceW; a handle is given instead of a name.
        let code =
            unsafe { ControlTraceW(self.handle, PCWSTR::null(), properties.pointer(), control) };
        SessionError::check("ControlTraceW", code.0).map(|()| properties)
    }

    /// Sets a list of values.
    fn set<T: Copy>(&self, class: TRACE_QUERY_INFO_CLASS, items: &[T]) -> Result<(), SessionError> {
        let bytes = mem::size_of_val(items) as u32;
        // SAFETY: `items` has `bytes` bytes and outlives the call, which only reads it. Its type is what `class` asks
        // for: see `start`.
        let code = unsafe { TraceSetInformation(self.handle, class, items.as_ptr().cast(), bytes) };
        SessionError::check("TraceSetInformation", code.0)
    }

    /// Limits the events to the plan's object types, if it has any.
    fn filter(&self) -> Result<(), SessionError> {
        if self.plan.object_types.is_empty() {
            return Ok(());
        }
        allow_profiling()?;
        let request = self.plan.object_types.request(self.handle.Value);
        let bytes = mem::size_of_val(&*request) as u32;
        // SAFETY: `request` has `bytes` bytes and outlives the call, which only reads it. Its layout is that of this
        // class.
        let status =
            unsafe { NtSetSystemInformation(PERFORMANCE_TRACE, request.as_ptr().cast(), bytes) };
        match status {
            0.. => Ok(()),
            _ => Err(failed("NtSetSystemInformation", status)),
        }
    }
}

impl Drop for TracingSession {
    fn drop(&mut self) {
        // The session would outlive the program; an error here cannot be reported.
        if self.is_running {
            let _ = self.control(EVENT_TRACE_CONTROL_STOP);
        }
    }
}

/// Enables the privilege that the kernel requires for a filter. Administrators have it, but disabled.
fn allow_profiling() -> Result<(), SessionError> {
    let mut token = HANDLE::default();
    // SAFETY: the pseudo handle of the process need not be closed; `token` outlives the call that fills it.
    unsafe { OpenProcessToken(GetCurrentProcess(), TOKEN_ADJUST_PRIVILEGES, &raw mut token) }
        .map_err(|error| failed("OpenProcessToken", error.code().0))?;
    let mut luid = LUID::default();
    // SAFETY: the name is a constant that ends with 0; `luid` outlives the call that fills it.
    let lookup =
        unsafe { LookupPrivilegeValueW(PCWSTR::null(), SE_SYSTEM_PROFILE_NAME, &raw mut luid) };
    let set = lookup.and_then(|()| {
        let privilege = LUID_AND_ATTRIBUTES { Luid: luid, Attributes: SE_PRIVILEGE_ENABLED };
        let privileges = TOKEN_PRIVILEGES { PrivilegeCount: 1, Privileges: [privilege] };
        // SAFETY: `token` is open; `privileges` has as many entries as it says and outlives the call, which only reads
        // it.
        unsafe { AdjustTokenPrivileges(token, false, Some(&raw const privileges), 0, None, None) }
    });
    // SAFETY: the token is open, ours, and not used after this.
    let _ = unsafe { CloseHandle(token) };
    // If the user lacks the privilege altogether, the call that needs it reports that.
    set.map_err(|error| failed("AdjustTokenPrivileges", error.code().0))
}

fn failed(call: &'static str, code: i32) -> SessionError {
    SessionError::Failed { call, code: code.cast_unsigned() }
}

/// Returns UTF-16 that ends with 0.
fn wide(text: &str) -> Vec<u16> {
    text.encode_utf16().chain([0]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{BufferCount, BufferSize, Events, RecordOptions, Target};

    /// Wine logs how its stubs are called, and tests/wine-record.sh compares that with the plan.
    #[test]
    #[ignore = "starts a session; for Wine, which refuses it"]
    fn a_session_that_is_refused_is_an_error() {
        let options = RecordOptions {
            events: Events::default(),
            types: crate::ObjectTypes::default(),
            dot_net: false,
            buffer_size: BufferSize::default(),
            buffers: BufferCount::default(),
            target: Target::RealTime,
            duration: None,
            stop_when: Vec::new(),
        };
        let started = Windows.start(SessionPlan::new(&options), Box::new(|_| {}));
        assert!(started.is_err());
    }
}
