//! Modules of the system.

use std::sync::LazyLock;

use super::{Filter, FilterError};

/// The kernel and the libraries between it and a program.
const USUAL: &str = "ntoskrnl.exe;ntkrnl*.exe;ntdll.dll;KernelBase.dll;kernel32.dll;wow64*.dll";

/// The libraries between a program and what it allocates: those of C, C++ and COM, of GDI and USER, and of events.
const ALLOCATING: &str = "ucrtbase*.dll;msvcrt*.dll;msvcr1*.dll;vcruntime*.dll;msvcp*.dll;mfc1*.dll;combase.dll;\
                          ole32.dll;oleaut32.dll;rpcrt4.dll;win32k*.sys;win32u.dll;gdi32*.dll;user32.dll;\
                          sechost.dll;advapi32.dll";

/// Modules whose frames say little about the program under test: `.sys`.
#[derive(Debug, Clone)]
pub struct SystemModules(Option<Filter>);

impl Default for SystemModules {
    /// The kernel, ntdll, KernelBase, kernel32 and wow64.
    fn default() -> Self {
        Self::usual().clone()
    }
}

impl SystemModules {
    /// The kernel, ntdll, KernelBase, kernel32 and wow64.
    pub(crate) fn usual() -> &'static Self {
        static MODULES: LazyLock<SystemModules> =
            LazyLock::new(|| SystemModules(Filter::new(USUAL).ok()));
        &MODULES
    }

    /// The libraries that allocate for a program.
    pub fn allocating() -> Self {
        Self(Filter::new(ALLOCATING).ok())
    }

    /// Those whose file names pass a filter.
    ///
    /// # Errors
    /// When the filter is absurdly large.
    pub fn new(filter: &str) -> Result<Self, FilterError> {
        Filter::new(filter).map(|filter| Self(Some(filter)))
    }

    /// Whether a module is one of them. WinDbg names modules without extension, and the kernel `nt`.
    pub fn has(&self, module: &str) -> bool {
        let has = |name: &str| self.0.as_ref().is_some_and(|filter| filter.matches(name));
        let of_windbg = || match module {
            "nt" => has("ntoskrnl.exe"),
            _ => has(&format!("{module}.dll")) || has(&format!("{module}.exe")),
        };
        has(module) || (!module.contains('.') && of_windbg())
    }

    /// The filter as typed.
    pub fn text(&self) -> &str {
        self.0.as_ref().map_or("", Filter::text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_ones_stand_between_the_kernel_and_a_program() {
        let system = SystemModules::default();
        for module in [
            "ntoskrnl.exe",
            "NTDLL.DLL",
            "KernelBase.dll",
            "kernel32.dll",
            "wow64cpu.dll",
            "nt",
            "ntdll",
        ] {
            assert!(system.has(module), "{module}");
        }
        for module in ["leaky.exe", "user32.dll", "ntdll2.dll", "leaky", ""] {
            assert!(!system.has(module), "{module}");
        }
    }
}
