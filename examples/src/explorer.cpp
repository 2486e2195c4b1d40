// Stand-in for explorer.exe: a well-behaved neighbour that closes what it opens. Never run it.

#include "win32.h"

namespace shell {

class Settings {
public:
    bool Read() {
        HKEY key;
        if (RegOpenKeyExW(nullptr, L"Software\\Shell", 0, KEY_READ, &key) != 0) {
            return false;
        }
        RegCloseKey(key);
        return true;
    }
};

class Launcher {
public:
    bool Start(wchar_t *commandLine) {
        static STARTUPINFOW startup = {sizeof(startup)};
        PROCESS_INFORMATION started;
        if (!CreateProcessW(nullptr, commandLine, nullptr, nullptr, FALSE, 0, nullptr, nullptr, &startup, &started)) {
            return false;
        }
        CloseHandle(started.thread);
        CloseHandle(started.process);
        return true;
    }
};

class Taskbar {
public:
    void OnTimer() {
        HANDLE redraw = CreateEventW(nullptr, FALSE, FALSE, nullptr);
        settings_.Read();
        WaitForSingleObject(redraw, 10);
        CloseHandle(redraw);
        CloseHandle(old_);
    }
    void OnClick() { launcher_.Start(commandLine_); }

private:
    Settings settings_;
    Launcher launcher_;
    HANDLE old_;
    wchar_t commandLine_[16];
};

Taskbar taskbar;

} // namespace shell

extern "C" DWORD WinMain() {
    for (;;) {
        shell::taskbar.OnTimer();
        shell::taskbar.OnClick();
    }
}
