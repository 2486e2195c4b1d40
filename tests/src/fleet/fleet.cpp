// The program of the fleet. Only the names and places of its functions matter: a build with more padding has them
// elsewhere. Each function calls the next through a pointer, so that none is inlined or a tail call.
using Code = void (*)(volatile int *);

#define STEP(name, number)                                                                                             \
    __attribute__((noinline)) void name(volatile int *state, Code next) {                                              \
        *state = number;                                                                                               \
        next(state);                                                                                                   \
        *state = -number;                                                                                              \
    }

__attribute__((noinline)) void padding(volatile int *state) {
    __asm__ volatile(".fill %c0, 1, 0x90" : : "i"(PADDING));
    *state = 1;
}

namespace fleet {
struct Worker {
    static void Poll(volatile int *, Code);
    static void Run(volatile int *, Code);
};
struct Cache {
    static void Open(volatile int *, Code);
    static void Evict(volatile int *, Code);
};
struct Index {
    static void Load(volatile int *, Code);
    static void Unload(volatile int *, Code);
};
struct Log {
    static void Rotate(volatile int *, Code);
};
struct Settings {
    static void Read(volatile int *, Code);
};
struct Pool {
    static void Fill(volatile int *, Code);
};
struct Session {
    static void Begin(volatile int *, Code);
};
STEP(Worker::Poll, 1)
STEP(Worker::Run, 2)
STEP(Cache::Open, 3)
STEP(Cache::Evict, 4)
STEP(Index::Load, 5)
STEP(Index::Unload, 6)
STEP(Log::Rotate, 7)
STEP(Settings::Read, 8)
STEP(Pool::Fill, 9)
STEP(Session::Begin, 10)
} // namespace fleet

extern "C" STEP(Main, 11)
