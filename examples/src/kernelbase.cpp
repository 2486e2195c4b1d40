// Stand-in for KernelBase.dll: the Win32 functions of win32.h, without their work. Never run it.

#define KERNELBASE_API extern "C" __declspec(dllexport) __attribute__((noinline))
#include "ntdll.h"
#include "win32.h"

static volatile long state;

// A stand-in has no handles to give; the value only keeps callers from being optimised away.
static HANDLE AsHandle(long status) { return reinterpret_cast<HANDLE>(static_cast<long long>(status) + state); }

BOOL CloseHandle(HANDLE) { return NtClose() + state; }
HANDLE CreateEventW(SECURITY_ATTRIBUTES *, BOOL, BOOL, const wchar_t *) { return AsHandle(NtCreateEvent()); }

KERNELBASE_API HANDLE CreateFileInternal() { return AsHandle(NtCreateFile()); }
HANDLE CreateFileW(const wchar_t *, DWORD, DWORD, SECURITY_ATTRIBUTES *, DWORD, DWORD, HANDLE) {
    state += 1;
    return AsHandle(CreateFileInternal() != nullptr);
}
HANDLE CreateFileMappingW(HANDLE, SECURITY_ATTRIBUTES *, DWORD, DWORD, DWORD, const wchar_t *) {
    return AsHandle(NtCreateSection());
}

KERNELBASE_API BOOL CreateProcessInternalW() { return NtCreateUserProcess() + state; }
BOOL CreateProcessW(const wchar_t *, wchar_t *, SECURITY_ATTRIBUTES *, SECURITY_ATTRIBUTES *, BOOL, DWORD, void *,
                    const wchar_t *, STARTUPINFOW *, PROCESS_INFORMATION *) {
    return CreateProcessInternalW() + state;
}

KERNELBASE_API HANDLE CreateRemoteThreadEx() { return AsHandle(NtCreateThreadEx()); }
HANDLE CreateThread(SECURITY_ATTRIBUTES *, unsigned long long, ThreadMain, void *, DWORD, DWORD *) {
    return AsHandle(CreateRemoteThreadEx() != nullptr);
}

BOOL DuplicateHandle(HANDLE, HANDLE, HANDLE, HANDLE *, DWORD, BOOL, DWORD) { return NtDuplicateObject() + state; }

long RegCloseKey(HKEY) { return NtClose() + state; }
KERNELBASE_API long LocalBaseRegOpenKey() { return NtOpenKeyEx() + state; }
long RegOpenKeyExW(HKEY, const wchar_t *, DWORD, DWORD, HKEY *) { return LocalBaseRegOpenKey() + state; }

// These make no handle events; leaky.exe only has to find them.
const wchar_t *GetCommandLineW() { return nullptr; }
HANDLE GetCurrentProcess() { return AsHandle(-1); }
HANDLE GetStdHandle(DWORD) { return AsHandle(0); }
BOOL SetEvent(HANDLE) { return state; }
void Sleep(DWORD) { state += 1; }
DWORD WaitForSingleObject(HANDLE, DWORD) { return state; }
BOOL WriteFile(HANDLE, const void *, DWORD, DWORD *, void *) { return state; }
