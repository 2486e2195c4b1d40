// Stand-in for kernel32.dll: the second function of every thread, and the end of a process. Never run it.

#define KERNEL32_API extern "C" __declspec(dllexport) __attribute__((noinline))
#include "ntdll.h"
#include "win32.h"

KERNEL32_API DWORD BaseThreadInitThunk(ThreadMain main, void *argument) {
    ExitProcess(main(argument));
}

void ExitProcess(DWORD) {
    RtlExitUserProcess();
    for (;;) {
    }
}
