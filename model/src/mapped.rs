//! Survives changes to files that are mapped into memory.
//!
//! A program that reads a mapped page gets the signal SIGBUS, and ends, if the file no longer has that page or its
//! device cannot read it. Here such a page is replaced by zeros. Readers of mapped files ask afterwards whether that
//! happened; if so, what they read means nothing. On Windows a mapped file cannot be truncated.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Number of pages lost so far.
static LOST: AtomicU64 = AtomicU64::new(0);

/// Whether a loss has not been reported yet.
static IS_UNREPORTED: AtomicBool = AtomicBool::new(false);

/// Makes the program survive the loss of mapped pages from now on. Call it once, at the start.
pub fn survive_lost_pages() {
    #[cfg(unix)]
    unix::survive();
}

/// Detects whether pages are lost while something is done.
#[derive(Debug, Clone, Copy)]
pub struct PageWatch {
    before: u64,
}

impl PageWatch {
    /// Starts watching.
    #[must_use]
    pub fn start() -> Self {
        Self { before: LOST.load(Ordering::SeqCst) }
    }

    /// Whether a page of any mapping was lost since the start. The caller reports it.
    #[must_use]
    pub fn has_lost(self) -> bool {
        let has_lost = LOST.load(Ordering::SeqCst) != self.before;
        if has_lost {
            take_loss();
        }
        has_lost
    }
}

/// Whether a page was lost since the last call, so that each loss is reported once.
pub fn take_loss() -> bool {
    IS_UNREPORTED.swap(false, Ordering::SeqCst)
}

#[cfg(unix)]
#[allow(unsafe_code, reason = "signal handlers are unsafe")]
mod unix {
    use std::ptr;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use libc::{c_int, c_void, siginfo_t};

    use super::{IS_UNREPORTED, LOST};

    /// Codes for a page that the file does not have and for one that the device cannot read; other codes mean broken
    /// memory. POSIX, `<signal.h>`.
    const LOST_PAGE: [c_int; 2] = [2, 3];

    /// Bytes of a page.
    static PAGE: AtomicUsize = AtomicUsize::new(4096);

    pub fn survive() {
        // SAFETY: the call takes and returns a number.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        if let Ok(page) = usize::try_from(page) {
            PAGE.store(page, Ordering::SeqCst);
        }
        let handler: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) = on_fault;
        // SAFETY: the struct has only numeric fields. The handler has the signature that SA_SIGINFO asks for, and does
        // only what a handler may.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handler as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigemptyset(&raw mut action.sa_mask);
            // If this fails, the signal ends the program as before.
            let _ = libc::sigaction(libc::SIGBUS, &raw const action, ptr::null_mut());
        }
    }

    /// Maps a page of zeros in place of the lost one; the access is then retried.
    extern "C" fn on_fault(_: c_int, info: *mut siginfo_t, _: *mut c_void) {
        // SAFETY: the system gives the handler a valid record.
        let (code, address) = unsafe { ((*info).si_code, (*info).si_addr() as usize) };
        if LOST_PAGE.contains(&code) && replace(address) {
            LOST.fetch_add(1, Ordering::SeqCst);
            IS_UNREPORTED.store(true, Ordering::SeqCst);
            return;
        }
        // The retried access faults again and ends the program.
        // SAFETY: the call has no other effect.
        unsafe { libc::signal(libc::SIGBUS, libc::SIG_DFL) };
    }

    fn replace(address: usize) -> bool {
        let page = PAGE.load(Ordering::SeqCst);
        let start = (address / page * page) as *mut c_void;
        // SAFETY: the page is mapped, because it was accessed, and the file has nothing for it. `errno` belongs to the
        // interrupted code and is restored.
        unsafe {
            let errno = errno();
            let before = *errno;
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let flags = libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_FIXED;
            let mapped = libc::mmap(start, page, access, flags, -1, 0);
            *errno = before;
            mapped != libc::MAP_FAILED
        }
    }

    #[cfg(target_os = "linux")]
    unsafe fn errno() -> *mut c_int {
        // SAFETY: the call has no effect.
        unsafe { libc::__errno_location() }
    }

    #[cfg(not(target_os = "linux"))]
    unsafe fn errno() -> *mut c_int {
        // SAFETY: the call has no effect.
        unsafe { libc::__error() }
    }
}

#[cfg(all(test, unix))]
#[allow(unsafe_code, reason = "a mapping of a file is unsafe")]
mod tests {
    use std::io::Write;

    use memmap2::Mmap;

    use super::*;

    #[test]
    fn pages_of_a_file_that_is_cut_become_zeros_and_are_reported_once() {
        survive_lost_pages();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[7; 3 << 16]).unwrap();
        // SAFETY: the test is about truncating the mapped file.
        let map = unsafe { Mmap::map(&file) }.unwrap();
        let watch = PageWatch::start();
        assert_eq!((map[0], map[(3 << 16) - 1]), (7, 7));
        assert!(!watch.has_lost());
        file.set_len(1 << 16).unwrap();
        let read: Vec<u8> = map.iter().step_by(1 << 12).copied().collect();
        assert_eq!((read[0], read[15], read[16], read[47]), (7, 7, 0, 0));
        assert!(take_loss() && !take_loss(), "each loss is reported once");
        assert!(watch.has_lost() && !PageWatch::start().has_lost());
    }
}
