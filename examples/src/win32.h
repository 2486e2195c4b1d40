// The few Win32 declarations that the sample needs, with the prototypes of the Windows SDK, so that
// it builds without one. kernelbase.cpp and kernel32.cpp define them, leaky.cpp imports them.
#pragma once

#ifndef KERNELBASE_API
#define KERNELBASE_API extern "C" __declspec(dllimport)
#endif
#ifndef KERNEL32_API
#define KERNEL32_API extern "C" __declspec(dllimport)
#endif

using HANDLE = void *;
using HKEY = void *;
using BOOL = int;
using DWORD = unsigned long;
using ThreadMain = DWORD (*)(void *);

constexpr BOOL FALSE = 0, TRUE = 1;
constexpr DWORD GENERIC_WRITE = 0x40000000, FILE_SHARE_READ = 1, CREATE_ALWAYS = 2;
constexpr DWORD KEY_READ = 0x20019, PAGE_READWRITE = 4;
constexpr DWORD STARTF_USESTDHANDLES = 0x100, STD_OUTPUT_HANDLE = 0xFFFFFFF5;
constexpr DWORD DUPLICATE_SAME_ACCESS = 2, INFINITE = 0xFFFFFFFF;

struct SECURITY_ATTRIBUTES {
    DWORD size;
    void *descriptor;
    BOOL inherit;
};

struct STARTUPINFOW {
    DWORD size;
    wchar_t *reserved, *desktop, *title;
    DWORD x, y, width, height, columns, rows, fill, flags;
    unsigned short show, reservedSize;
    unsigned char *reservedBytes;
    HANDLE input, output, error;
};

struct PROCESS_INFORMATION {
    HANDLE process, thread;
    DWORD processId, threadId;
};

KERNELBASE_API BOOL CloseHandle(HANDLE handle);
KERNELBASE_API HANDLE CreateEventW(SECURITY_ATTRIBUTES *security, BOOL manual, BOOL set, const wchar_t *name);
KERNELBASE_API HANDLE CreateFileW(const wchar_t *name, DWORD access, DWORD share, SECURITY_ATTRIBUTES *security,
                                  DWORD disposition, DWORD flags, HANDLE templateFile);
KERNELBASE_API HANDLE CreateFileMappingW(HANDLE file, SECURITY_ATTRIBUTES *security, DWORD protect, DWORD sizeHigh,
                                         DWORD sizeLow, const wchar_t *name);
KERNELBASE_API BOOL CreateProcessW(const wchar_t *application, wchar_t *commandLine, SECURITY_ATTRIBUTES *process,
                                   SECURITY_ATTRIBUTES *thread, BOOL inherit, DWORD flags, void *environment,
                                   const wchar_t *directory, STARTUPINFOW *startup, PROCESS_INFORMATION *started);
KERNELBASE_API HANDLE CreateThread(SECURITY_ATTRIBUTES *security, unsigned long long stack, ThreadMain main,
                                   void *argument, DWORD flags, DWORD *threadId);
KERNELBASE_API BOOL DuplicateHandle(HANDLE sourceProcess, HANDLE source, HANDLE targetProcess, HANDLE *target,
                                    DWORD access, BOOL inherit, DWORD options);
KERNELBASE_API const wchar_t *GetCommandLineW();
KERNELBASE_API HANDLE GetCurrentProcess();
KERNELBASE_API HANDLE GetStdHandle(DWORD which);
KERNELBASE_API long RegCloseKey(HKEY key);
KERNELBASE_API long RegOpenKeyExW(HKEY root, const wchar_t *name, DWORD options, DWORD access, HKEY *key);
KERNELBASE_API BOOL SetEvent(HANDLE event);
KERNELBASE_API void Sleep(DWORD milliseconds);
KERNELBASE_API DWORD WaitForSingleObject(HANDLE handle, DWORD milliseconds);
KERNELBASE_API BOOL WriteFile(HANDLE file, const void *bytes, DWORD size, DWORD *written, void *overlapped);

KERNEL32_API __attribute__((noreturn)) void ExitProcess(DWORD code);
