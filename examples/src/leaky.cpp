// leaky.exe: a small program that loses handles in three ways, each marked LEAK below.
// Everything else it opens it also closes, and then it sleeps: what is open by then is lost.

#include "win32.h"

namespace leaky {

constexpr unsigned kPairs = 3;           // pairs of workers; the two of a pair walk the same events
constexpr unsigned kEventsPerPair = 16;
constexpr unsigned kSessionsPerWorker = 4;

/// Named events, each created when it is first asked for.
class EventCache {
public:
    HANDLE GetOrCreate(unsigned id);
    void Clear();

private:
    HANDLE events_[kPairs * kEventsPerPair];
};

/// LEAK 1, an unguarded get-or-create: two threads that find the slot empty at the same time both
/// create the event. The second store overwrites the first, whose handle is then lost.
HANDLE EventCache::GetOrCreate(unsigned id) {
    if (events_[id] == nullptr) {
        wchar_t name[] = L"Local\\Leaky_Signal_00";
        name[19] = static_cast<wchar_t>(L'0' + id / 10);
        name[20] = static_cast<wchar_t>(L'0' + id % 10);
        events_[id] = CreateEventW(nullptr, TRUE, FALSE, name);
    }
    return events_[id];
}

void EventCache::Clear() {
    for (HANDLE &event : events_) {
        CloseHandle(event);
        event = nullptr;
    }
}

/// A conversation with a server that refuses every fifth one.
class Session {
public:
    bool Connect(unsigned id);
    void Close() { CloseHandle(ready_); }

private:
    bool Handshake(unsigned id) { return id % 5 != 3; }
    HANDLE ready_;
};

/// LEAK 2, an error path: a refused session returns without closing its event.
bool Session::Connect(unsigned id) {
    ready_ = CreateEventW(nullptr, FALSE, FALSE, nullptr);
    if (!Handshake(id)) {
        return false;
    }
    WaitForSingleObject(ready_, 10);
    return true;
}

struct Worker {
    unsigned id;
    EventCache *cache;
    long *running;
    void Run();
};

void Worker::Run() {
    for (unsigned i = 0; i < kEventsPerPair; ++i) {
        SetEvent(cache->GetOrCreate(id / 2 * kEventsPerPair + i));
    }
    for (unsigned i = 0; i < kSessionsPerWorker; ++i) {
        Session session;
        if (session.Connect(id * kSessionsPerWorker + i)) {
            session.Close();
        }
    }
}

class ThreadPool {
public:
    bool StartWorker(Worker *worker);

private:
    static DWORD WorkerMain(void *worker);
};

/// LEAK 3: the thread runs and ends, but its handle is dropped unclosed.
bool ThreadPool::StartWorker(Worker *worker) {
    __atomic_fetch_add(worker->running, 1, __ATOMIC_SEQ_CST);
    return CreateThread(nullptr, 0, WorkerMain, worker, 0, nullptr) != nullptr;
}

DWORD ThreadPool::WorkerMain(void *argument) {
    Worker *worker = static_cast<Worker *>(argument);
    worker->Run();
    __atomic_fetch_sub(worker->running, 1, __ATOMIC_SEQ_CST);
    return 0;
}

class App {
public:
    void Run();
    void RunHelper();

private:
    void Open();
    void ReadConfig();
    void StartHelper();
    void RunWorkers();
    void Close();

    HANDLE log_, state_, stop_;
    EventCache cache_;
    ThreadPool pool_;
    Worker workers_[2 * kPairs];
    long running_;
};

void App::Open() {
    SECURITY_ATTRIBUTES inheritable = {sizeof(inheritable), nullptr, TRUE};
    log_ = CreateFileW(L"leaky.log", GENERIC_WRITE, FILE_SHARE_READ, &inheritable, CREATE_ALWAYS, 0, nullptr);
    state_ = CreateFileMappingW(nullptr, nullptr, PAGE_READWRITE, 0, 4096, L"Local\\Leaky_State");
    stop_ = CreateEventW(nullptr, TRUE, FALSE, L"Local\\Leaky_Stop");
}

void App::ReadConfig() {
    const HKEY currentUser = reinterpret_cast<HKEY>(0xFFFFFFFF80000001);
    HKEY key;
    if (RegOpenKeyExW(currentUser, L"Software\\Leaky", 0, KEY_READ, &key) == 0) {
        RegCloseKey(key);
    }
}

/// The helper inherits the log, and is given a handle of the stop event that lives as long as it does.
void App::StartHelper() {
    static STARTUPINFOW startup = {sizeof(startup)};
    startup.flags = STARTF_USESTDHANDLES;
    startup.output = log_;
    wchar_t commandLine[] = L"leaky.exe --helper";
    PROCESS_INFORMATION helper;
    if (CreateProcessW(nullptr, commandLine, nullptr, nullptr, TRUE, 0, nullptr, nullptr, &startup, &helper)) {
        HANDLE given;
        DuplicateHandle(GetCurrentProcess(), stop_, helper.process, &given, 0, FALSE, DUPLICATE_SAME_ACCESS);
        WaitForSingleObject(helper.process, INFINITE);
        CloseHandle(helper.thread);
        CloseHandle(helper.process);
    }
}

void App::RunWorkers() {
    for (unsigned pair = 0; pair < kPairs; ++pair) {
        for (unsigned id = 2 * pair; id < 2 * pair + 2; ++id) {
            workers_[id] = {id, &cache_, &running_};
            pool_.StartWorker(&workers_[id]);
        }
        while (__atomic_load_n(&running_, __ATOMIC_SEQ_CST) != 0) {
            Sleep(1);
        }
    }
}

void App::Close() {
    cache_.Clear();
    CloseHandle(stop_);
    CloseHandle(state_);
    CloseHandle(log_);
}

void App::Run() {
    Open();
    ReadConfig();
    StartHelper();
    RunWorkers();
    Close();
    Sleep(INFINITE);
}

void App::RunHelper() {
    DWORD written;
    WriteFile(GetStdHandle(STD_OUTPUT_HANDLE), "helper\r\n", 8, &written, nullptr);
    ReadConfig();
}

App app;

bool HasArgument(const wchar_t *line) {
    while (*line != 0 && *line != L'-') {
        ++line;
    }
    return *line == L'-';
}

} // namespace leaky

extern "C" DWORD Main() {
    if (leaky::HasArgument(GetCommandLineW())) {
        leaky::app.RunHelper();
        ExitProcess(0);
    }
    leaky::app.Run();
    return 0;
}
