//! Writes the truth. Each line is written at once, so that several processes can share the file.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

use leaky_program::truth::{AllocationKind, CallEffect, TruthLine};
use windows::Win32::Foundation::HANDLE;
use windows::Win32::System::Threading::{GetCurrentProcessId, GetCurrentThreadId};

/// The file with the truth.
pub struct Truth {
    file: Mutex<File>,
}

impl Truth {
    pub fn append_to(path: &Path) -> io::Result<Self> {
        let file = File::options().append(true).create(true).open(path)?;
        Ok(Self { file: Mutex::new(file) })
    }

    fn write(&self, function: &str, call: CallEffect) -> io::Result<()> {
        // SAFETY: both only return a number.
        let (pid, tid) = unsafe { (GetCurrentProcessId(), GetCurrentThreadId()) };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let at_us = u64::try_from(now.as_micros()).unwrap_or(u64::MAX);
        let line = TruthLine { at_us, pid, tid, function: function.to_owned(), call };
        let mut text = serde_json::to_string(&line)?;
        text.push('\n');
        let mut file = self.file.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        file.write_all(text.as_bytes())
    }

    pub fn started(&self) -> io::Result<()> {
        let path = std::env::current_exe()?;
        let process = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        self.write("main", CallEffect::Started { process })
    }

    pub fn opened(
        &self,
        function: &str,
        handle: HANDLE,
        object_type: &str,
        name: Option<&str>,
    ) -> io::Result<()> {
        let (object_type, name) = (object_type.to_owned(), name.map(str::to_owned));
        self.write(function, CallEffect::Opened { handle: value(handle), object_type, name })
    }

    pub fn duplicated(
        &self,
        function: &str,
        into: u32,
        handle: HANDLE,
        object_type: &str,
        name: Option<&str>,
    ) -> io::Result<()> {
        let (object_type, name) = (object_type.to_owned(), name.map(str::to_owned));
        self.write(
            function,
            CallEffect::Duplicated { into, handle: value(handle), object_type, name },
        )
    }

    pub fn inherited(
        &self,
        function: &str,
        by: u32,
        handle: HANDLE,
        object_type: &str,
        name: Option<&str>,
    ) -> io::Result<()> {
        let (object_type, name) = (object_type.to_owned(), name.map(str::to_owned));
        self.write(function, CallEffect::Inherited { by, handle: value(handle), object_type, name })
    }

    pub fn closed(&self, function: &str, handle: HANDLE) -> io::Result<()> {
        self.write(function, CallEffect::Closed { handle: value(handle) })
    }

    pub fn mapped(&self, function: &str, address: usize, size: usize) -> io::Result<()> {
        self.write(function, CallEffect::Mapped { address: address as u64, size: size as u64 })
    }

    pub fn unmapped(&self, function: &str, address: usize) -> io::Result<()> {
        self.write(function, CallEffect::Unmapped { address: address as u64 })
    }

    pub fn allocated(
        &self,
        function: &str,
        kind: AllocationKind,
        key: usize,
        size: usize,
    ) -> io::Result<()> {
        self.write(function, CallEffect::Allocated { kind, key: key as u64, size: size as u64 })
    }

    pub fn freed(&self, function: &str, kind: AllocationKind, key: usize) -> io::Result<()> {
        self.write(function, CallEffect::Freed { kind, key: key as u64 })
    }

    pub fn exits(&self) -> io::Result<()> {
        self.write("main", CallEffect::Exits)
    }

    pub fn waits(&self) -> io::Result<()> {
        self.write("main", CallEffect::Waits)
    }
}

fn value(handle: HANDLE) -> u64 {
    handle.0 as usize as u64
}
