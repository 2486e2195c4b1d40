//! Stacks: turns chains of calls into the return addresses that a stack walk finds.

use crate::functions::{FunctionTable, LinkedModule};

/// Load addresses and paths of the modules.
const PLACES: [(&str, u64, &str); 8] = [
    ("ntoskrnl.exe", 0xffff_f805_2a20_0000, r"\SystemRoot\system32\"),
    ("ntdll.dll", 0x7ffc_8c5d_0000, SYSTEM32),
    ("KernelBase.dll", 0x7ffc_89e3_0000, SYSTEM32),
    ("kernel32.dll", 0x7ffc_8b4a_0000, SYSTEM32),
    ("leaky.exe", 0x7ff7_d1c4_0000, r"\Device\HarddiskVolume3\Tools\"),
    ("server.exe", 0x7ff7_4e80_0000, r"\Device\HarddiskVolume3\Server\"),
    ("explorer.exe", 0x7ff6_a3f8_0000, r"\Device\HarddiskVolume3\Windows\"),
    ("fleet.exe", 0x7ff7_1ab0_0000, r"\Device\HarddiskVolume3\Fleet\"),
];
const SYSTEM32: &str = r"\Device\HarddiskVolume3\Windows\System32\";

/// The path from a Win32 function to the kernel function that logs the event. Each part lists functions, innermost
/// first.
#[derive(Debug, Clone, Copy)]
pub struct Service {
    kernel: &'static str,
    ntdll: &'static str,
    win32: &'static str,
}

const fn service(kernel: &'static str, ntdll: &'static str, win32: &'static str) -> Service {
    Service { kernel, ntdll, win32 }
}

pub const CREATE_EVENT: Service =
    service("ObpCreateHandle ObInsertObjectEx NtCreateEvent", "NtCreateEvent", "CreateEventW");
pub const CREATE_FILE: Service = service(
    "ObpCreateHandle ObOpenObjectByName IopCreateFile NtCreateFile",
    "NtCreateFile",
    "CreateFileInternal CreateFileW",
);
pub const CREATE_SECTION: Service = service(
    "ObpCreateHandle ObInsertObjectEx NtCreateSection",
    "NtCreateSection",
    "CreateFileMappingW",
);
pub const CREATE_THREAD: Service = service(
    "ObpCreateHandle ObInsertObjectEx PspInsertThread PspCreateThread NtCreateThreadEx",
    "NtCreateThreadEx",
    "CreateRemoteThreadEx CreateThread",
);
pub const OPEN_KEY: Service = service(
    "ObpCreateHandle ObOpenObjectByName CmOpenKey NtOpenKeyEx",
    "NtOpenKeyEx",
    "LocalBaseRegOpenKey RegOpenKeyExW",
);
pub const DUPLICATE: Service =
    service("ObDuplicateObject NtDuplicateObject", "NtDuplicateObject", "DuplicateHandle");
pub const CLOSE: Service = service(CLOSE_KERNEL, "NtClose", "CloseHandle");
pub const CLOSE_KEY: Service = service(CLOSE_KERNEL, "NtClose", "RegCloseKey");
/// The three events of a new process: what it inherits, its process handle, and its thread handle.
pub const INHERIT: Service = service(
    "ObDupHandleProcedure ExDupHandleTable ObInitProcess PspAllocateProcess NtCreateUserProcess",
    "NtCreateUserProcess",
    CREATE_PROCESS,
);
pub const NEW_PROCESS: Service = service(
    "ObpCreateHandle ObInsertObjectEx PspInsertProcess NtCreateUserProcess",
    "NtCreateUserProcess",
    CREATE_PROCESS,
);
pub const NEW_PROCESS_THREAD: Service = service(
    "ObpCreateHandle ObInsertObjectEx PspInsertThread NtCreateUserProcess",
    "NtCreateUserProcess",
    CREATE_PROCESS,
);
/// The exit of a process closes what it left open; its thread never returns to user mode.
pub const PROCESS_EXIT: &str = "ObCloseHandleTableEntry ExSweepHandleTable ObKillProcess \
    PspRundownSingleProcess PspExitThread NtTerminateProcess";

const CLOSE_KERNEL: &str = "ObCloseHandleTableEntry ObpCloseHandle NtClose";
const CREATE_PROCESS: &str = "CreateProcessInternalW CreateProcessW";

/// The frames of one event, innermost first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EventStack {
    /// Kernel addresses.
    pub kernel: Vec<u64>,
    /// User addresses; empty if the thread did not return to user mode.
    pub user: Vec<u64>,
}

/// Makes stacks from function names.
#[derive(Debug)]
pub struct Stacks {
    functions: FunctionTable,
}

impl Stacks {
    #[must_use]
    pub fn new(functions: FunctionTable) -> Self {
        Self { functions }
    }

    /// Returns a module with its base address and NT path.
    ///
    /// # Panics
    /// If `functions.txt` does not list the module.
    #[must_use]
    pub fn module(&self, file: &str) -> (&LinkedModule, u64, String) {
        let (base, folder) = place(file);
        let module = self.functions.module(file);
        let module = module.unwrap_or_else(|| panic!("functions.txt lacks the module {file}"));
        (module, base, format!("{folder}{file}"))
    }

    /// Returns the stack of a service called by these functions of `module`, innermost first. `name#2` is the second
    /// place in `name` that calls the next inner function.
    ///
    /// # Panics
    /// If `functions.txt` lacks one of the calls.
    #[must_use]
    pub fn called(&self, service: Service, module: &str, program: &str) -> EventStack {
        let user = chain("ntdll.dll", service.ntdll)
            .chain(chain("KernelBase.dll", service.win32))
            .chain(chain(module, program))
            .chain(chain("kernel32.dll", "BaseThreadInitThunk"))
            .chain(chain("ntdll.dll", "RtlUserThreadStart"));
        EventStack { kernel: self.kernel(service.kernel), user: self.addresses("syscall", user) }
    }

    /// Returns the kernel frames of a service.
    ///
    /// # Panics
    /// See [`Stacks::called`].
    #[must_use]
    pub fn kernel(&self, functions: &str) -> Vec<u64> {
        let frames =
            chain("ntoskrnl.exe", functions).chain(chain("ntoskrnl.exe", "KiSystemServiceCopyEnd"));
        self.addresses("EtwpTraceHandle", frames)
    }

    fn addresses<'a>(
        &self,
        innermost: &'a str,
        frames: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Vec<u64> {
        let mut callee = innermost;
        let mut addresses = Vec::new();
        for (module, frame) in frames {
            let (caller, nth) = frame.split_once('#').unwrap_or((frame, "1"));
            let nth = nth.parse::<usize>().expect("a number after #") - 1;
            let calls = &self.functions;
            let rva = calls
                .return_rva(module, caller, callee, nth)
                // System services and the first functions of a thread are called through pointers.
                .or_else(|| calls.return_rva(module, caller, "*", nth))
                .unwrap_or_else(|| panic!("functions.txt lacks {module}!{frame} calls {callee}"));
            addresses.push(place(module).0 + rva);
            callee = caller;
        }
        addresses
    }
}

fn chain<'a>(module: &'a str, functions: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
    functions.split_ascii_whitespace().map(move |function| (module, function))
}

fn place(module: &str) -> (u64, &'static str) {
    let place = PLACES.iter().find(|(file, _, _)| *file == module);
    place.map(|(_, base, folder)| (*base, *folder)).expect("every module has a place")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_holds_return_addresses_kernel_first() {
        let functions = FunctionTable::parse(include_str!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../examples/src/functions.txt"
        )));
        let stacks = Stacks::new(functions.unwrap());
        let stack = stacks.called(CLOSE, "leaky.exe", "leaky::App::Close#2 leaky::App::Run Main");
        assert_eq!((stack.kernel.len(), stack.user.len()), (4, 7));
        let base = place("leaky.exe").0;
        let first = stacks.called(CLOSE, "leaky.exe", "leaky::App::Close leaky::App::Run Main");
        assert!(first.user[2] < stack.user[2] && first.user[2] > base);
        assert_eq!(first.user[3..], stack.user[3..]);
    }
}
