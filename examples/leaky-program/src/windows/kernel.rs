//! Handles of kernel objects.

use std::sync::{Arc, Barrier};
use std::time::Duration;
use std::{io, thread};

use windows::Win32::Foundation::{CloseHandle, ERROR_SUCCESS, HANDLE, INVALID_HANDLE_VALUE};
use windows::Win32::Security::TOKEN_QUERY;
use windows::Win32::Storage::FileSystem::{
    CREATE_ALWAYS, CreateFileW, FILE_FLAG_DELETE_ON_CLOSE, FILE_GENERIC_READ, FILE_GENERIC_WRITE,
    FILE_SHARE_READ,
};
use windows::Win32::System::Memory::{
    CreateFileMappingW, FILE_MAP_READ, MEMORY_MAPPED_VIEW_ADDRESS, MapViewOfFile, PAGE_READWRITE,
    UnmapViewOfFile,
};
use windows::Win32::System::Registry::{
    HKEY, HKEY_CURRENT_USER, KEY_READ, RegCloseKey, RegOpenKeyExW,
};
use windows::Win32::System::Threading::{
    CreateEventW, CreateThread, GetCurrentProcess, OpenProcessToken, THREAD_CREATION_FLAGS,
    WaitForSingleObject,
};
use windows::core::{HSTRING, PCWSTR, w};

use super::RoundResult;
use super::truth::Truth;

/// Size of a section and of its view, bytes.
const SECTION_BYTES: u32 = 0x1_0000;

/// Runs one round: an event leaks in every round, a file in every fourth, a key in every fifth, and so on.
pub fn round(truth: &Truth, round: u32) -> RoundResult {
    leak_events(truth, round)?;
    close_events(truth)?;
    close_files_unless_it_fails(truth, round)?;
    close_keys_unless_it_fails(truth, round)?;
    if round.is_multiple_of(3) {
        leak_threads(truth)?;
        map_sections(truth, round)?;
        query_tokens(truth, round)?;
    }
    Ok(())
}

/// Opens a named event and forgets it: a steady leak.
#[inline(never)]
fn leak_events(truth: &Truth, round: u32) -> RoundResult {
    let name = format!("LeakyProgram_Event_{round}");
    // SAFETY: the name lives until the call returns.
    let event =
        unsafe { CreateEventW(None, true, false, &HSTRING::from(format!("Local\\{name}"))) }?;
    truth.opened("leak_events", event, "Event", Some(&name))?;
    Ok(())
}

/// Opens an event and closes it.
#[inline(never)]
fn close_events(truth: &Truth) -> RoundResult {
    // SAFETY: there is no name to keep alive.
    let event = unsafe { CreateEventW(None, true, false, PCWSTR::null()) }?;
    truth.opened("close_events", event, "Event", None)?;
    close(truth, "close_events", event)
}

/// Opens a file and closes it, except on the error path of every fourth round.
#[inline(never)]
fn close_files_unless_it_fails(truth: &Truth, round: u32) -> RoundResult {
    let name = format!("leaky-program-{}-{round}.tmp", std::process::id());
    let path = HSTRING::from(std::env::temp_dir().join(&name).as_os_str());
    let access = FILE_GENERIC_READ | FILE_GENERIC_WRITE;
    // SAFETY: the path lives until the call returns.
    let file = unsafe {
        CreateFileW(
            &path,
            access.0,
            FILE_SHARE_READ,
            None,
            CREATE_ALWAYS,
            FILE_FLAG_DELETE_ON_CLOSE,
            None,
        )
    }?;
    truth.opened("close_files_unless_it_fails", file, "File", Some(&name))?;
    if round % 4 == 3 {
        return Ok(());
    }
    close(truth, "close_files_unless_it_fails", file)
}

/// Opens a registry key and closes it, except in every fifth round.
#[inline(never)]
fn close_keys_unless_it_fails(truth: &Truth, round: u32) -> RoundResult {
    let mut key = HKEY::default();
    // SAFETY: `key` outlives the call.
    let status =
        unsafe { RegOpenKeyExW(HKEY_CURRENT_USER, w!("Software"), None, KEY_READ, &raw mut key) };
    if status != ERROR_SUCCESS {
        return Err(io::Error::from_raw_os_error(status.0.cast_signed()).into());
    }
    let handle = HANDLE(key.0);
    truth.opened("close_keys_unless_it_fails", handle, "Key", Some("Software"))?;
    if round % 5 != 4 {
        // SAFETY: the key was opened above.
        let _ = unsafe { RegCloseKey(key) };
        truth.closed("close_keys_unless_it_fails", handle)?;
    }
    Ok(())
}

/// Starts a thread and forgets its handle.
#[inline(never)]
fn leak_threads(truth: &Truth) -> RoundResult {
    unsafe extern "system" fn nothing(_: *mut std::ffi::c_void) -> u32 {
        0
    }
    // SAFETY: the thread function ignores its argument.
    let thread =
        unsafe { CreateThread(None, 0, Some(nothing), None, THREAD_CREATION_FLAGS(0), None) }?;
    truth.opened("leak_threads", thread, "Thread", None)?;
    Ok(())
}

/// Maps a view of a section and closes the section; every second view stays mapped.
#[inline(never)]
fn map_sections(truth: &Truth, round: u32) -> RoundResult {
    let name = format!("LeakyProgram_Section_{round}");
    // SAFETY: the name lives until the call returns, and there is no file handle.
    let section = unsafe {
        CreateFileMappingW(
            INVALID_HANDLE_VALUE,
            None,
            PAGE_READWRITE,
            0,
            SECTION_BYTES,
            &HSTRING::from(format!("Local\\{name}")),
        )
    }?;
    truth.opened("map_sections", section, "Section", Some(&name))?;
    // SAFETY: the section is as large as the view.
    let view = unsafe { MapViewOfFile(section, FILE_MAP_READ, 0, 0, SECTION_BYTES as usize) };
    let address = view.Value as usize;
    truth.mapped("map_sections", address, SECTION_BYTES as usize)?;
    close(truth, "map_sections", section)?;
    if round.is_multiple_of(2) {
        // SAFETY: nothing reads the view.
        unsafe { UnmapViewOfFile(MEMORY_MAPPED_VIEW_ADDRESS { Value: view.Value }) }?;
        truth.unmapped("map_sections", address)?;
    }
    Ok(())
}

/// Opens the token of the process; every second one stays open.
#[inline(never)]
fn query_tokens(truth: &Truth, round: u32) -> RoundResult {
    let mut token = HANDLE::default();
    // SAFETY: `token` outlives the call.
    unsafe { OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &raw mut token) }?;
    truth.opened("query_tokens", token, "Token", None)?;
    if round.is_multiple_of(2) { close(truth, "query_tokens", token) } else { Ok(()) }
}

/// Two threads open an event with the same name at once and only one closes its handle: get-or-create without a lock.
#[inline(never)]
pub fn race(truth: &Truth) -> RoundResult {
    for turn in 0..4 {
        let barrier = Arc::new(Barrier::new(2));
        thread::scope(|scope| {
            let threads = [false, true].map(|closes| {
                let barrier = Arc::clone(&barrier);
                scope.spawn(move || {
                    barrier.wait();
                    get_or_create_event(truth, turn, closes).map_err(|error| error.to_string())
                })
            });
            threads.into_iter().try_for_each(|thread| {
                thread.join().unwrap_or_else(|_| Err("a thread panicked".to_owned()))
            })
        })?;
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

#[inline(never)]
fn get_or_create_event(truth: &Truth, turn: u32, closes: bool) -> RoundResult {
    let name = format!("LeakyProgram_Raced_{turn}");
    // SAFETY: the name lives until the call returns.
    let event =
        unsafe { CreateEventW(None, true, false, &HSTRING::from(format!("Local\\{name}"))) }?;
    truth.opened("get_or_create_event", event, "Event", Some(&name))?;
    // SAFETY: the handle is the event's.
    unsafe { WaitForSingleObject(event, 1) };
    if closes { close(truth, "get_or_create_event", event) } else { Ok(()) }
}

/// Closes a handle and logs the close for `function`.
fn close(truth: &Truth, function: &str, handle: HANDLE) -> RoundResult {
    // SAFETY: the handle was opened by the caller and is not used again.
    unsafe { CloseHandle(handle) }?;
    truth.closed(function, handle)?;
    Ok(())
}
