//! Reads the events of a session in real time, on Windows.
#![allow(unsafe_code, reason = "the functions of Windows take pointers")]

use std::{ffi::c_void, slice, thread, thread::JoinHandle};

use windows::{
    Win32::System::{
        Diagnostics::Etw::{
            CloseTrace, EVENT_HEADER_FLAG_32_BIT_HEADER, EVENT_HEADER_FLAG_CLASSIC_HEADER,
            EVENT_HEADER_FLAG_PROCESSOR_INDEX, EVENT_RECORD, EVENT_TRACE_LOGFILEW, OpenTraceW,
            PROCESS_TRACE_MODE_EVENT_RECORD, PROCESS_TRACE_MODE_RAW_TIMESTAMP,
            PROCESS_TRACE_MODE_REAL_TIME, PROCESSTRACE_HANDLE, ProcessTrace, TRACE_LOGFILE_HEADER,
        },
        Performance::{QueryPerformanceCounter, QueryPerformanceFrequency},
        SystemInformation::GetSystemTimePreciseAsFileTime,
        Time::TIME_ZONE_INFORMATION,
    },
    core::{GUID, PWSTR},
};

use crate::{
    error::SessionError,
    header::{Header, add_item, counter_at},
    recorder::{EventSink, SessionEvent, SessionHeader},
};

/// The context of the callback.
struct Receiver {
    sink: EventSink,
    /// The extended items of an event; the buffer is reused.
    items: Vec<u8>,
}

/// A thread that delivers the events of a session.
pub struct Consumer {
    handle: PROCESSTRACE_HANDLE,
    thread: Option<JoinHandle<()>>,
    receiver: *mut Receiver,
    pub header: SessionHeader,
}

impl Consumer {
    /// Reads the events of the session with this name until the session ends. The name must end with 0.
    pub fn start(logger: &mut [u16], sink: EventSink) -> Result<Consumer, SessionError> {
        let receiver = Box::into_raw(Box::new(Receiver { sink, items: Vec::new() }));
        let mut log = EVENT_TRACE_LOGFILEW {
            LoggerName: PWSTR(logger.as_mut_ptr()),
            Context: receiver.cast(),
            ..EVENT_TRACE_LOGFILEW::default()
        };
        // Raw time stamps, because those in the payloads of stacks are raw, too.
        log.Anonymous1.ProcessTraceMode = PROCESS_TRACE_MODE_REAL_TIME
            | PROCESS_TRACE_MODE_EVENT_RECORD
            | PROCESS_TRACE_MODE_RAW_TIMESTAMP;
        log.Anonymous2.EventRecordCallback = Some(on_event);
        // SAFETY: `log` and the name it points to outlive the call; the receiver lives until the thread has ended.
        let handle = unsafe { OpenTraceW(&raw mut log) };
        if handle.Value == u64::MAX {
            // SAFETY: nothing else uses the receiver.
            drop(unsafe { Box::from_raw(receiver) });
            let error = windows::core::Error::from_thread();
            return Err(SessionError::Failed {
                call: "OpenTraceW",
                code: error.code().0.cast_unsigned(),
            });
        }
        let header = header(&log.LogfileHeader);
        let thread = thread::spawn(move || {
            // SAFETY: the call takes a handle by value; a closed handle ends the call.
            let _ = unsafe { ProcessTrace(&[handle], None, None) };
        });
        Ok(Consumer { handle, thread: Some(thread), receiver, header })
    }
}

impl Consumer {
    /// Waits for the last event of a stopped session.
    pub fn wait(&mut self) {
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Consumer {
    /// Ends the thread even if the session continues: after `CloseTrace`, no more events arrive (learn, `CloseTrace`).
    fn drop(&mut self) {
        // SAFETY: the handle was opened by `start` and is closed once.
        let _ = unsafe { CloseTrace(self.handle) };
        self.wait();
        // SAFETY: the thread that used the receiver has ended.
        drop(unsafe { Box::from_raw(self.receiver) });
    }
}

/// Returns the header of the session; missing fields are read from the system.
fn header(log: &TRACE_LOGFILE_HEADER) -> SessionHeader {
    let (mut counter, mut frequency) = (0, log.PerfFreq);
    // SAFETY: the functions fill the integers they are given, and have not failed on any system since Windows XP
    // (learn).
    let now = unsafe {
        let _ = QueryPerformanceCounter(&raw mut counter);
        if frequency == 0 {
            let _ = QueryPerformanceFrequency(&raw mut frequency);
        }
        GetSystemTimePreciseAsFileTime()
    };
    let now = i64::from(now.dwHighDateTime) << 32 | i64::from(now.dwLowDateTime);
    let start_time = if log.StartTime == 0 { now } else { log.StartTime };
    // SAFETY: all members of both unions are plain integers.
    let (version, cpu_mhz) =
        unsafe { (log.Anonymous1.Version, log.Anonymous2.Anonymous.CpuSpeedInMHz) };
    let header = Header {
        buffer_size: log.BufferSize,
        version,
        provider_version: log.ProviderVersion,
        processors: log.NumberOfProcessors,
        timer_resolution: log.TimerResolution,
        log_file_mode: log.LogFileMode,
        cpu_mhz,
        time_zone: time_zone(&log.TimeZone),
        boot_time: log.BootTime,
        frequency,
        start_time,
    };
    let base = counter_at(start_time, (counter, now), frequency);
    SessionHeader { bytes: header.bytes(), base }
}

fn time_zone(zone: &TIME_ZONE_INFORMATION) -> Vec<u8> {
    let mut bytes = zone.Bias.to_le_bytes().to_vec();
    for (name, date, bias) in [
        (zone.StandardName, zone.StandardDate, zone.StandardBias),
        (zone.DaylightName, zone.DaylightDate, zone.DaylightBias),
    ] {
        let date = [
            date.wYear,
            date.wMonth,
            date.wDayOfWeek,
            date.wDay,
            date.wHour,
            date.wMinute,
            date.wSecond,
            date.wMilliseconds,
        ];
        bytes.extend(name.iter().chain(&date).flat_map(|unit| unit.to_le_bytes()));
        bytes.extend(bias.to_le_bytes());
    }
    bytes
}

/// Returns the bytes of a GUID as in memory.
fn bytes_of(guid: &GUID) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..4].copy_from_slice(&guid.data1.to_le_bytes());
    bytes[4..6].copy_from_slice(&guid.data2.to_le_bytes());
    bytes[6..8].copy_from_slice(&guid.data3.to_le_bytes());
    bytes[8..].copy_from_slice(&guid.data4);
    bytes
}

/// Returns the bytes at a pointer from Windows, which is null if there are none.
///
/// # Safety
/// This many bytes must be valid while the result is used.
unsafe fn bytes_at<'a>(pointer: *const c_void, size: u16) -> &'a [u8] {
    if pointer.is_null() {
        return &[];
    }
    // SAFETY: guaranteed by the caller.
    unsafe { slice::from_raw_parts(pointer.cast(), size.into()) }
}

/// Hands an event to the sink.
///
/// # Safety
/// Only ProcessTrace may call this, one call at a time, with a record that is valid until it returns.
unsafe extern "system" fn on_event(record: *mut EVENT_RECORD) {
    // SAFETY: see above; UserContext is the Context set by `start`, which nothing else uses meanwhile.
    let (record, receiver) = unsafe {
        let record = &*record;
        (record, &mut *record.UserContext.cast::<Receiver>())
    };
    let header = &record.EventHeader;
    let has = |flag: u32| u32::from(header.Flags) & flag != 0;
    receiver.items.clear();
    for number in 0..record.ExtendedDataCount {
        // SAFETY: there are ExtendedDataCount items, each with DataSize bytes at DataPtr.
        unsafe {
            let item = &*record.ExtendedData.add(number.into());
            let data = bytes_at(item.DataPtr as *const c_void, item.DataSize);
            let follows = number + 1 < record.ExtendedDataCount;
            add_item(&mut receiver.items, item.ExtType, follows, data);
        }
    }
    // SAFETY: both members of the union are plain integers; UserData has UserDataLength bytes.
    let (processor, payload) = unsafe {
        let context = &record.BufferContext.Anonymous;
        let processor = if has(EVENT_HEADER_FLAG_PROCESSOR_INDEX) {
            context.ProcessorIndex
        } else {
            context.Anonymous.ProcessorNumber.into()
        };
        (processor, bytes_at(record.UserData, record.UserDataLength))
    };
    (receiver.sink)(&SessionEvent {
        provider: bytes_of(&header.ProviderId),
        is_classic: has(EVENT_HEADER_FLAG_CLASSIC_HEADER),
        id: header.EventDescriptor.Id,
        opcode: header.EventDescriptor.Opcode,
        version: header.EventDescriptor.Version,
        process_id: header.ProcessId,
        thread_id: header.ThreadId,
        processor,
        time: header.TimeStamp,
        pointer_size: if has(EVENT_HEADER_FLAG_32_BIT_HEADER) { 4 } else { 8 },
        payload,
        extended: &receiver.items,
    });
}
