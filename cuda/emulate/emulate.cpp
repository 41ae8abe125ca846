// The threads of a block: fibers that hand on at barriers, or threads of the operating system.
#include "emulate.h"

namespace emulate {

thread_local Thread *current = nullptr;

static void *exchange[WARPS][LANES];

void **lanes() { return exchange[current->index.x / LANES]; }

#ifdef EMULATE_THREADS

static pthread_barrier_t of_block, of_warp[WARPS];

void wait_for_block() { pthread_barrier_wait(&of_block); }
void wait_for_warp() { pthread_barrier_wait(&of_warp[current->index.x / LANES]); }

void run_block(const std::function<void()> &kernel, std::vector<Thread> &threads) {
    pthread_barrier_init(&of_block, nullptr, THREADS_A_BLOCK);
    for (auto &barrier : of_warp) pthread_barrier_init(&barrier, nullptr, LANES);
    std::vector<std::thread> running;
    for (auto &thread : threads) {
        running.emplace_back([&kernel, &thread] {
            current = &thread;
            kernel();
        });
    }
    for (auto &thread : running) thread.join();
    pthread_barrier_destroy(&of_block);
    for (auto &barrier : of_warp) pthread_barrier_destroy(&barrier);
}

#else

const size_t STACK = 128 << 10;

// Fibers are switched by swapping the stack pointer; callee-saved registers lie on the stack.
extern "C" void emulate_switch(void **save, void *to);
asm(R"(
.text
.globl emulate_switch
emulate_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
)");

struct Fiber {
    std::unique_ptr<char[]> stack;
    void *pointer;
    bool done;
    // Which barrier it waits at: none, the warp's or the block's.
    int waits;
};

static Fiber fibers[THREADS_A_BLOCK];
static void *scheduler;
static const std::function<void()> *body;
static unsigned running;

static void hand_on(int waits) {
    fibers[running].waits = waits;
    emulate_switch(&fibers[running].pointer, scheduler);
}

void wait_for_block() { hand_on(2); }
void wait_for_warp() { hand_on(1); }

static void enter() {
    (*body)();
    fibers[running].done = true;
    hand_on(0);
    abort();
}

static void resume(unsigned at, std::vector<Thread> &threads) {
    running = at;
    current = &threads[at];
    fibers[at].waits = 0;
    emulate_switch(&scheduler, fibers[at].pointer);
}

void run_block(const std::function<void()> &kernel, std::vector<Thread> &threads) {
    body = &kernel;
    for (auto &fiber : fibers) {
        if (!fiber.stack) fiber.stack.reset(new char[STACK]);
        // The entry's stack is aligned as after a call.
        void **top = (void **)(((uintptr_t)fiber.stack.get() + STACK) & ~(uintptr_t)15) - 1;
        *--top = (void *)enter;
        for (int i = 0; i < 6; ++i) *--top = nullptr;
        fiber.pointer = top;
        fiber.done = false;
        fiber.waits = 0;
    }
    for (unsigned left = THREADS_A_BLOCK; left > 0;) {
        // Every warp runs to its end or to the block's barrier, and then all go on.
        for (unsigned warp = 0; warp < WARPS; ++warp) {
            for (bool again = true; again;) {
                unsigned waiting = 0, blocked = 0, ended = 0;
                for (unsigned at = warp * LANES; at < (warp + 1) * LANES; ++at) {
                    if (!fibers[at].done && fibers[at].waits == 0) resume(at, threads);
                    ended += fibers[at].done;
                    waiting += !fibers[at].done && fibers[at].waits == 1;
                    blocked += !fibers[at].done && fibers[at].waits == 2;
                }
                if (waiting != 0 && waiting != LANES) {
                    fprintf(stderr, "emulator: only %u lanes of a warp reach its barrier\n", waiting);
                    abort();
                }
                again = waiting == LANES;
                for (unsigned at = warp * LANES; again && at < (warp + 1) * LANES; ++at) fibers[at].waits = 0;
                if (blocked != 0 && ended != 0) {
                    fprintf(stderr, "emulator: only some threads of a block reach its barrier\n");
                    abort();
                }
            }
        }
        left = 0;
        for (auto &fiber : fibers) {
            left += !fiber.done;
            fiber.waits = 0;
        }
        if (left != 0 && left != THREADS_A_BLOCK) {
            fprintf(stderr, "emulator: %u threads of a block reach its barrier, the others ended\n", left);
            abort();
        }
    }
}

#endif

} // namespace emulate
