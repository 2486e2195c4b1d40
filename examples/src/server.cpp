// server.exe: a server that leaks for as long as it runs, in two ways, each marked LEAK below.

#include "win32.h"

namespace server {

constexpr unsigned kSessions = 40;

/// A client that is served.
class Connection {
public:
    void Accept();
    void Serve(unsigned id);

private:
    HANDLE closed_;
};

/// LEAK 1: each connection has an event, and nothing ever closes one.
void Connection::Accept() {
    closed_ = CreateEventW(nullptr, TRUE, FALSE, nullptr);
}

/// The log, opened for each request.
class RequestLog {
public:
    static void Append(unsigned id);
};

void RequestLog::Append(unsigned id) {
    HANDLE file = CreateFileW(L"requests.log", GENERIC_WRITE, FILE_SHARE_READ, nullptr, CREATE_ALWAYS, 0, nullptr);
    DWORD written;
    WriteFile(file, &id, sizeof(id), &written, nullptr);
    CloseHandle(file);
}

void Connection::Serve(unsigned id) {
    RequestLog::Append(id);
    SetEvent(closed_);
}

/// A named event for each session, made when it is first asked for.
class SessionCache {
public:
    HANDLE GetOrCreate(unsigned id);
    void Expire(unsigned id);

private:
    HANDLE sessions_[kSessions];
};

/// LEAK 2, an unguarded get-or-create: of two threads that find no event both make one, and one handle is lost.
HANDLE SessionCache::GetOrCreate(unsigned id) {
    if (sessions_[id] == nullptr) {
        wchar_t name[] = L"Local\\Server_Session_00";
        name[21] = static_cast<wchar_t>(L'0' + id / 10);
        name[22] = static_cast<wchar_t>(L'0' + id % 10);
        sessions_[id] = CreateEventW(nullptr, TRUE, FALSE, name);
    }
    return sessions_[id];
}

void SessionCache::Expire(unsigned id) {
    CloseHandle(sessions_[id]);
    sessions_[id] = nullptr;
}

SessionCache cache;

class Worker {
public:
    static DWORD Main(void *worker);
    void Run(unsigned id);
};

void Worker::Run(unsigned id) {
    SetEvent(cache.GetOrCreate(id % kSessions));
}

DWORD Worker::Main(void *worker) {
    for (unsigned id = 0;; ++id) {
        static_cast<Worker *>(worker)->Run(id);
        Sleep(1000);
    }
}

class Listener {
public:
    void Run();

private:
    Connection connection_;
    Worker workers_[2];
};

void Listener::Run() {
    for (Worker &worker : workers_) {
        CloseHandle(CreateThread(nullptr, 0, Worker::Main, &worker, 0, nullptr));
    }
    for (unsigned id = 0;; ++id) {
        connection_.Accept();
        connection_.Serve(id);
        cache.Expire(id % kSessions);
        Sleep(2000);
    }
}

Listener listener;

} // namespace server

extern "C" DWORD Main() {
    server::listener.Run();
    return 0;
}
