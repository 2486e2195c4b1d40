//! The child process: it inherits a handle, gets a duplicate, opens some itself, and exits without closing any.

use std::env;
use std::io::Read;
use std::os::windows::io::AsRawHandle;
use std::process::{Child, Command, Stdio};

use windows::Win32::Foundation::{
    DUPLICATE_SAME_ACCESS, DuplicateHandle, HANDLE, HANDLE_FLAG_INHERIT, SetHandleInformation,
};
use windows::Win32::System::Threading::{
    CreateEventW, CreateMutexW, CreateSemaphoreW, GetCurrentProcess,
};
use windows::core::{HSTRING, PCWSTR};

use super::RoundResult;
use super::truth::Truth;

/// Argument that makes a process the child.
pub const SWITCH: &str = "--child";

/// How many semaphores, and how many mutexes, the child opens.
const OPENED: u32 = 5;

/// Starts the child, which inherits one event and gets a duplicate of another.
pub fn start(truth: &Truth, file: &str) -> Result<Child, Box<dyn std::error::Error>> {
    let inherited = inheritable_event(truth)?;
    let mut command = Command::new(env::current_exe()?);
    command.args([file, SWITCH]).stdin(Stdio::piped());
    let child = command.spawn()?;
    let name = Some("LeakyProgram_Inherited");
    truth.inherited("inheritable_event", child.id(), inherited, "Event", name)?;
    duplicate_into(truth, &child)?;
    Ok(child)
}

/// Lets the child run to its end.
pub fn wait(mut child: Child) -> RoundResult {
    drop(child.stdin.take());
    child.wait()?;
    Ok(())
}

#[inline(never)]
fn inheritable_event(truth: &Truth) -> Result<HANDLE, Box<dyn std::error::Error>> {
    let name = "LeakyProgram_Inherited";
    // SAFETY: the name lives until the call returns.
    let event =
        unsafe { CreateEventW(None, true, false, &HSTRING::from(format!("Local\\{name}"))) }?;
    truth.opened("inheritable_event", event, "Event", Some(name))?;
    // SAFETY: the handle was opened above.
    unsafe { SetHandleInformation(event, HANDLE_FLAG_INHERIT.0, HANDLE_FLAG_INHERIT) }?;
    Ok(event)
}

#[inline(never)]
fn duplicate_into(truth: &Truth, child: &Child) -> RoundResult {
    let name = "LeakyProgram_Duplicated";
    let mut duplicate = HANDLE::default();
    // SAFETY: the handles are valid (an event and two processes), and `duplicate` outlives the call.
    let event = unsafe {
        let event = CreateEventW(None, true, false, &HSTRING::from(format!("Local\\{name}")))?;
        let process = GetCurrentProcess();
        let target = HANDLE(child.as_raw_handle());
        DuplicateHandle(
            process,
            event,
            target,
            &raw mut duplicate,
            0,
            false,
            DUPLICATE_SAME_ACCESS,
        )?;
        event
    };
    truth.opened("duplicate_into", event, "Event", Some(name))?;
    truth.duplicated("duplicate_into", child.id(), duplicate, "Event", Some(name))?;
    Ok(())
}

/// Runs the child: opens handles and, when the parent lets it, exits without closing them.
pub fn run(truth: &Truth) -> RoundResult {
    truth.started()?;
    for _ in 0..OPENED {
        forget_mutexes(truth)?;
        forget_semaphores(truth)?;
    }
    std::io::stdin().read_to_end(&mut Vec::new())?;
    truth.exits()?;
    Ok(())
}

#[inline(never)]
fn forget_mutexes(truth: &Truth) -> RoundResult {
    // SAFETY: there is no name to keep alive.
    let mutex = unsafe { CreateMutexW(None, false, PCWSTR::null()) }?;
    truth.opened("forget_mutexes", mutex, "Mutant", None)?;
    Ok(())
}

#[inline(never)]
fn forget_semaphores(truth: &Truth) -> RoundResult {
    // SAFETY: there is no name to keep alive.
    let semaphore = unsafe { CreateSemaphoreW(None, 0, 1, PCWSTR::null()) }?;
    truth.opened("forget_semaphores", semaphore, "Semaphore", None)?;
    Ok(())
}
