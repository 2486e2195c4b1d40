// Stand-in for the Windows kernel: it does nothing, but its functions have the names and the calls
// that a handle event's stack shows, so that the kernel frames of the sample resolve. Never run it.

#define KERNEL extern "C" __attribute__((noinline))

static volatile long state; // keeps the calls below from being optimised away

using Service = long (*)();

KERNEL long EtwpTraceHandle() { return ++state; }

// Creating: every handle is born in ObpCreateHandle.
KERNEL long ObpCreateHandle() { return EtwpTraceHandle() + state; }
KERNEL long ObInsertObjectEx() { return ObpCreateHandle() + state; }
KERNEL long ObOpenObjectByName() { return ObpCreateHandle() + state; }
KERNEL long PspInsertProcess() { return ObInsertObjectEx() + state; }
KERNEL long PspInsertThread() { return ObInsertObjectEx() + state; }
KERNEL long PspCreateThread() { return PspInsertThread() + state; }
KERNEL long CmOpenKey() { return ObOpenObjectByName() + state; }
KERNEL long IopCreateFile() { return ObOpenObjectByName() + state; }

// Duplicating: on request, and for a child that inherits handles.
KERNEL long ObDuplicateObject() { return EtwpTraceHandle() + state; }
KERNEL long ObDupHandleProcedure() { return EtwpTraceHandle() + state; }
KERNEL long ExDupHandleTable() { return ObDupHandleProcedure() + state; }
KERNEL long ObInitProcess() { return ExDupHandleTable() + state; }
KERNEL long PspAllocateProcess() { return ObInitProcess() + state; }

// Closing: one by one, and the whole table of a process that ends.
KERNEL long ObCloseHandleTableEntry() { return EtwpTraceHandle() + state; }
KERNEL long ObpCloseHandle() { return ObCloseHandleTableEntry() + state; }
KERNEL long ExSweepHandleTable() { return ObCloseHandleTableEntry() + state; }
KERNEL long ObKillProcess() { return ExSweepHandleTable() + state; }
KERNEL long PspRundownSingleProcess() { return ObKillProcess() + state; }
KERNEL long PspExitThread() { return PspRundownSingleProcess() + state; }

// System services.
KERNEL long NtClose() { return ObpCloseHandle() + state; }
KERNEL long NtCreateEvent() { return ObInsertObjectEx() + state; }
KERNEL long NtCreateFile() { return IopCreateFile() + state; }
KERNEL long NtCreateSection() { return ObInsertObjectEx() + state; }
KERNEL long NtCreateThreadEx() { return PspCreateThread() + state; }
KERNEL long NtCreateUserProcess() { return PspAllocateProcess() + PspInsertProcess() + PspInsertThread() + state; }
KERNEL long NtDuplicateObject() { return ObDuplicateObject() + state; }
KERNEL long NtOpenKeyEx() { return CmOpenKey() + state; }
KERNEL long NtTerminateProcess() { return PspExitThread() + state; }

static const volatile Service KiServiceTable[] = {
    NtClose,          NtCreateEvent,       NtCreateFile,      NtCreateSection, NtCreateThreadEx,
    NtCreateUserProcess, NtDuplicateObject, NtOpenKeyEx,       NtTerminateProcess,
};

/// Where every system call enters the kernel's C code.
KERNEL long KiSystemServiceCopyEnd(unsigned number) { return KiServiceTable[number]() + state; }

KERNEL long KiSystemStartup() { return KiSystemServiceCopyEnd(0); }
