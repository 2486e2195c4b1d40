// What ntdll.cpp gives to kernelbase.cpp and kernel32.cpp. The arguments are left out: the stand-ins
// only give frames their names.
#pragma once

#ifndef NTDLL_API
#define NTDLL_API extern "C" __declspec(dllimport)
#endif

NTDLL_API long NtClose();
NTDLL_API long NtCreateEvent();
NTDLL_API long NtCreateFile();
NTDLL_API long NtCreateSection();
NTDLL_API long NtCreateThreadEx();
NTDLL_API long NtCreateUserProcess();
NTDLL_API long NtDuplicateObject();
NTDLL_API long NtOpenKeyEx();
NTDLL_API long NtTerminateProcess();
NTDLL_API long RtlExitUserProcess();
