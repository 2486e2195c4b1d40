//! Merges a trace, which adds identities of images, facts about the system and NGEN PDBs, on Windows.
#![allow(unsafe_code, reason = "the functions of Windows take pointers")]

use std::{
    env, fs,
    iter::once,
    mem,
    os::windows::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use windows::{
    Win32::{
        Foundation::{FreeLibrary, HMODULE},
        System::LibraryLoader::{
            GetProcAddress, LOAD_LIBRARY_SEARCH_DEFAULT_DIRS, LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR,
            LoadLibraryExW,
        },
    },
    core::{PCWSTR, s},
};

use crate::error::MergeError;
use crate::recorder::FurtherTraces;

/// Part of the Windows Performance Toolkit (learn, `CreateMergedTraceFile`).
const LIBRARY: &str = "KernelTraceControl.dll";

/// Folder of the Windows ADK and SDK installation, below Program Files.
const TOOLKIT: &str = r"Windows Kits\10\Windows Performance Toolkit";

/// `EVENT_TRACE_MERGE_EXTENDED_DATA_DEFAULT`: everything that a merge can add (learn, `Custom Injection of System
/// Information`).
const EVERYTHING: u32 = 0x000F_FFFF;

/// learn, `CreateMergedTraceFile`. Parameters: the merged file, the files and their number, what to add.
type CreateMergedTraceFile = unsafe extern "system" fn(PCWSTR, *const PCWSTR, u32, u32) -> u32;

/// Merges a trace with further ones and adds data that the session does not write. If that fails, the trace is
/// unchanged.
pub fn merged(trace: &Path, further: &FurtherTraces) -> Result<(), MergeError> {
    let library = load().ok_or(MergeError::NoLibrary { library: LIBRARY })?;
    let merged = trace.with_extension("merged.etl");
    let traces = once(trace).chain(further.files().iter().map(PathBuf::as_path));
    let result = merge(library, traces, &merged);
    // SAFETY: it was loaded by `load` and is no longer used.
    let _ = unsafe { FreeLibrary(library) };
    let done = result.and_then(|()| Ok(fs::rename(&merged, trace)?));
    if done.is_err() {
        let _ = fs::remove_file(&merged);
    }
    done
}

fn merge<'a>(
    library: HMODULE,
    traces: impl Iterator<Item = &'a Path>,
    merged: &Path,
) -> Result<(), MergeError> {
    // SAFETY: the library is loaded and the name ends with 0.
    let function = unsafe { GetProcAddress(library, s!("CreateMergedTraceFile")) };
    let function = function.ok_or(MergeError::NoFunction { library: LIBRARY })?;
    // SAFETY: this is the documented declaration of the function with this name.
    let create: CreateMergedTraceFile = unsafe { mem::transmute(function) };
    let merged = wide(merged);
    let names: Vec<Vec<u16>> = traces.map(wide).collect();
    let traces: Vec<PCWSTR> = names.iter().map(|name| PCWSTR(name.as_ptr())).collect();
    let (first, count) = (traces.as_ptr(), traces.len() as u32);
    // SAFETY: the names end with 0, `count` is the number of traces, and all outlive the call.
    match unsafe { create(PCWSTR(merged.as_ptr()), first, count, EVERYTHING) } {
        0 => Ok(()),
        code => Err(MergeError::Failed { code }),
    }
}

/// Loads the library from this program's folder, the system's folder or the toolkit's folder, but never from the
/// current folder.
fn load() -> Option<HMODULE> {
    let installed = ["ProgramFiles(x86)", "ProgramFiles"]
        .into_iter()
        .filter_map(env::var_os)
        .map(|folder| Path::new(&folder).join(TOOLKIT).join(LIBRARY));
    let near = [Path::new(LIBRARY).to_path_buf()];
    near.into_iter().chain(installed).find_map(|path| {
        let flags = if path.is_absolute() {
            LOAD_LIBRARY_SEARCH_DEFAULT_DIRS | LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR
        } else {
            LOAD_LIBRARY_SEARCH_DEFAULT_DIRS
        };
        let path = wide(&path);
        // SAFETY: the name ends with 0 and outlives the call.
        unsafe { LoadLibraryExW(PCWSTR(path.as_ptr()), None, flags) }.ok()
    })
}

fn wide(path: &Path) -> Vec<u16> {
    path.as_os_str().encode_wide().chain([0]).collect()
}
