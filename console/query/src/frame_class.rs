//! How much a frame says about leaking code: the one rule by which `.why`, groups, pictures and the page choose the
//! function of a stack.
//!
//! A handle is opened by the kernel for a library of Windows, often on behalf of the C runtime, and only then of the
//! program. The function of a stack is the innermost one of the program, or else of the next class.

use handlescope_symbols::ModuleIdentity;

use handlescope_session::filter::SystemModules;

/// Classes of frames, the most informative first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FrameClass {
    /// Code of the program, or of a library that is not part of Windows.
    Program,
    /// A library or program of Windows.
    Windows,
    /// The C or C++ runtime, as a library of its own or linked into a module of the program.
    Runtime,
    /// A system call in one of the modules listed by `.sys`.
    SystemCall,
    /// Another function in these modules.
    System,
    /// An address outside all modules.
    Unknown,
}

/// Windows libraries between a program and what it acquires (COM and RPC, GDI and USER, services and events), for
/// traces without module paths.
const WINDOWS: [&str; 10] = [
    "combase.dll",
    "ole32.dll",
    "oleaut32.dll",
    "rpcrt4.dll",
    "win32k*",
    "win32u.dll",
    "gdi32*.dll",
    "user32.dll",
    "sechost.dll",
    "advapi32.dll",
];

/// Folders of Windows' own modules, in lower case, below the volume. Other folders in `\Windows` also contain modules
/// of programs: `assembly` has native images of .NET code, `System32\DriverStore` has device drivers.
const WINDOWS_FOLDERS: [&str; 4] =
    [r"\windows\system32\", r"\windows\syswow64\", r"\windows\winsxs\", r"\systemroot\"];
const DRIVER_STORE: &str = r"\driverstore\";

/// Runtime libraries. For C and C++: the Universal CRT with vcruntime and msvcp, the older `msvcr*`, ConcRT, OpenMP and
/// MFC (listed in Microsoft, "C runtime (CRT) and C++ standard library (STL) .lib files"), and those of MinGW. Also the
/// libraries that run .NET code.
const RUNTIMES: [&str; 14] = [
    "ucrtbase*.dll",
    "msvcr*.dll",
    "vcruntime*.dll",
    "msvcp*.dll",
    "concrt*.dll",
    "vcomp*.dll",
    "vccorlib*.dll",
    "mfc*.dll",
    "libstdc++*.dll",
    "libgcc*.dll",
    "libwinpthread*.dll",
    "clr.dll",
    "coreclr.dll",
    "mscorwks.dll",
];

/// Runtime functions that are part of the program itself, either because it is linked statically (`/MT`) or because the
/// linker always adds them. From `ucrt/startup/thread.cpp`, `vcruntime/exe_common.inl`, `dll_dllmain.cpp`, `ucrt/heap`,
/// `ucrt/stdio` and `ucrt/lowio` in the sources that come with the Windows SDK and Visual C++.
const RUNTIME_FUNCTIONS: [&str; 55] = [
    // Threads.
    "_beginthread",
    "_beginthreadex",
    "_threadstart",
    "_threadstartex",
    "_callthreadstart",
    "_callthreadstartex",
    "thread_start",
    "invoke_thread_procedure",
    // Start of a program or library.
    "invoke_main",
    "__scrt_common_main",
    "__scrt_common_main_seh",
    "__tmainCRTStartup",
    "mainCRTStartup",
    "wmainCRTStartup",
    "WinMainCRTStartup",
    "wWinMainCRTStartup",
    "_DllMainCRTStartup",
    "__DllMainCRTStartup",
    "dllmain_dispatch",
    "dllmain_raw",
    "dllmain_crt_dispatch",
    "dllmain_crt_process_attach",
    "_initterm",
    "_initterm_e",
    // Memory.
    "malloc",
    "calloc",
    "realloc",
    "_recalloc",
    "_expand",
    "_malloc_base",
    "_calloc_base",
    "_realloc_base",
    "_recalloc_base",
    "_malloc_dbg",
    "_calloc_dbg",
    "_realloc_dbg",
    "_aligned_malloc",
    "_aligned_realloc",
    "_strdup",
    "_wcsdup",
    // Files.
    "fopen",
    "fopen_s",
    "_fsopen",
    "_wfopen",
    "_wfopen_s",
    "_wfsopen",
    "common_fsopen",
    "_openfile",
    "_open",
    "_wopen",
    "_sopen_s",
    "_wsopen_s",
    "_sopen_nolock",
    "_wsopen_nolock",
    "common_sopen_dispatch",
];

/// Prefixes of C++ runtime functions: the allocating operators and the standard library.
const RUNTIME_PREFIXES: [&str; 4] = ["operator new", "std::", "__scrt_", "__acrt_"];

/// The function that runs at the start of each process before its own code. User mode begins in the loader's
/// `LdrInitializeThunk`, and `LdrpInitializeProcess` opens what every process has (Yosifovich et al., "Windows
/// Internals", 7th edition, part 1, chapter 3, "Image loader").
pub const PROCESS_START: &str = "LdrpInitializeProcess";

impl FrameClass {
    /// Returns the class of frames in a module, as far as it does not depend on their functions.
    pub fn from_module(module: &ModuleIdentity, system: &SystemModules) -> Self {
        if system.has(&module.name) {
            Self::System
        } else if is_named(&RUNTIMES, module) {
            Self::Runtime
        } else if system.is_usual() && (is_named(&WINDOWS, module) || is_in_windows(module)) {
            Self::Windows
        } else {
            Self::Program
        }
    }
}

/// Whether a module has one of these names, which are in lower case with at most one `*`. Debugger text names modules
/// without extension. A filter would compile regular expressions in each process, a fifth of a small answer.
fn is_named(names: &[&str], module: &ModuleIdentity) -> bool {
    let name = module.name.to_ascii_lowercase();
    let file = if name.contains('.') { name.clone() } else { format!("{name}.dll") };
    names.iter().any(|pattern| match pattern.split_once('*') {
        Some((start, end)) => [&name, &file]
            .iter()
            .any(|name| name.strip_prefix(start).is_some_and(|rest| rest.ends_with(end))),
        None => file == *pattern,
    })
}

fn is_in_windows(module: &ModuleIdentity) -> bool {
    let path = module.path.to_ascii_lowercase();
    // A program of Windows such as explorer.exe is directly in the Windows folder.
    let is_in_root =
        || path.rsplit_once('\\').is_some_and(|(folder, _)| folder.ends_with(r"\windows"));
    let is_below = WINDOWS_FOLDERS.iter().any(|folder| path.contains(folder));
    (is_below && !path.contains(DRIVER_STORE)) || is_in_root()
}

/// Whether a function belongs to the runtime, by its name without template and call arguments.
pub fn is_runtime(function: &str) -> bool {
    let name = function.split(['<', '(']).next().unwrap_or_default();
    RUNTIME_FUNCTIONS.contains(&name)
        || RUNTIME_PREFIXES.iter().any(|prefix| function.starts_with(prefix))
}

/// Whether a function is a system call: `NtCreateEvent`, `ZwClose`.
pub fn is_system_call(function: &str) -> bool {
    let name = ["Nt", "Zw"].iter().find_map(|prefix| function.strip_prefix(prefix));
    name.is_some_and(|name| name.starts_with(|first: char| first.is_ascii_uppercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(name: &str, path: &str, system: &SystemModules) -> FrameClass {
        let (name, path) = (name.to_owned(), path.to_owned());
        let module = ModuleIdentity { name, path, size: 0, timestamp: None, pdb: None };
        FrameClass::from_module(&module, system)
    }

    #[test]
    fn modules_are_of_windows_by_their_folder_and_of_the_runtime_by_their_name() {
        use FrameClass::{Program, Runtime, System, Windows};
        let usual = SystemModules::default();
        for (path, expected) in [
            (r"C:\Windows\System32\ntdll.dll", System),
            (r"\SystemRoot\system32\ntoskrnl.exe", System),
            (r"\Device\HarddiskVolume3\Windows\System32\shell32.dll", Windows),
            (r"C:\WINDOWS\WinSxS\amd64_comctl32\comctl32.dll", Windows),
            (r"C:\Windows\explorer.exe", Windows),
            (r"C:\Windows\System32\ucrtbase.dll", Runtime),
            (r"C:\Program Files\Tool\MSVCP140.dll", Runtime),
            (r"C:\Program Files\Tool\Tool.exe", Program),
            (r"C:\Windows\System32\DriverStore\FileRepository\gpu\gpu.dll", Program),
            (r"C:\Windows\assembly\NativeImages_v4.0.30319_64\App\App.ni.dll", Program),
        ] {
            let name = path.rsplit('\\').next().unwrap();
            assert_eq!(class(name, path, &usual), expected, "{path}");
        }
        // Debugger text has no paths, and names without extension.
        assert_eq!(class("combase", "", &usual), Windows);
        assert_eq!(class("ucrtbase", "", &usual), Runtime);
        assert_eq!(class("nt", "", &usual), System);
        let chosen = SystemModules::new("ntdll.dll").unwrap();
        let shell = r"C:\Windows\System32\shell32.dll";
        assert_eq!(class("shell32.dll", shell, &chosen), Program, "the list was chosen");
    }

    #[test]
    fn functions_of_the_runtime_and_system_calls_are_known_by_their_names() {
        for function in [
            "_beginthreadex",
            "thread_start<unsigned int (__cdecl*)(void *),1>",
            "__scrt_common_main_seh",
            "invoke_main",
            "operator new(unsigned __int64)",
            "std::_Default_allocate_traits::_Allocate",
            "malloc",
        ] {
            assert!(is_runtime(function), "{function}");
        }
        for function in ["main", "Poco::ThreadImpl::startImpl", "stdlib::Open", "thread_started"] {
            assert!(!is_runtime(function), "{function}");
        }
        assert!(is_system_call("NtCreateEvent") && is_system_call("ZwClose"));
        assert!(!is_system_call("Ntfs") && !is_system_call("ObpCreateHandle"));
    }
}
