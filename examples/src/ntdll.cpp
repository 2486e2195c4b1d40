// Stand-in for ntdll.dll: the system call stubs and the first function of a thread. Never run it.

#define NTDLL_API extern "C" __declspec(dllexport) __attribute__((noinline))
#include "ntdll.h"

using ThreadInit = long (*)(void *);

static volatile long state;
static volatile ThreadInit threadInit; // kernel32's BaseThreadInitThunk, as the loader finds it

#define SYSTEM_CALL(name, number)                                                                  \
    long name() {                                                                                  \
        long status;                                                                               \
        asm volatile("syscall" : "=a"(status) : "a"(number) : "rcx", "r11", "memory");             \
        return status;                                                                             \
    }

// The numbers are indices into the table of our ntoskrnl.cpp, not those of Windows.
SYSTEM_CALL(NtClose, 0)
SYSTEM_CALL(NtCreateEvent, 1)
SYSTEM_CALL(NtCreateFile, 2)
SYSTEM_CALL(NtCreateSection, 3)
SYSTEM_CALL(NtCreateThreadEx, 4)
SYSTEM_CALL(NtCreateUserProcess, 5)
SYSTEM_CALL(NtDuplicateObject, 6)
SYSTEM_CALL(NtOpenKeyEx, 7)
SYSTEM_CALL(NtTerminateProcess, 8)

long RtlExitUserProcess() { return NtTerminateProcess() + state; }

NTDLL_API long RtlUserThreadStart(void *main) { return threadInit(main) + state; }
