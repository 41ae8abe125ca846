// A device in a process: reads requests from stdin, answers on stdout. All numbers are little-endian.
//
//     A len:u64                                          -> address:u64, 0 when there is no memory
//     F address:u64                                      -> nothing
//     W address:u64 len:u64 bytes                        -> nothing
//     R address:u64 len:u64                              -> bytes
//     L x:u32 y:u32 name_len:u32 params_len:u32 name params -> 1 when the kernel ran, 0 when there is none of that name
//     C                                                  -> bytes of vectors loaded since the last C, u64
//
// A copy outside of what was allocated is a bug of the caller: the process ends.
#define EMULATED
#include "../kernels/kernels.cu"
#include <map>
#include <string>

#define KERNELS(X) \
    X(few_f32_dot) X(few_f32_l2) X(few_f16_dot) X(few_f16_l2) X(few_i8_dot) X(few_i8_l2) X(merge) \
    X(many_f32_dot) X(many_f32_l2) X(many_f16_dot) X(many_f16_l2) X(many_i8_dot) X(many_i8_l2) X(keep) \
    X(measure_f32) X(measure_f16) X(measure_i8)

static const std::map<std::string, void (*)(Scan)> kernels = {
#define ENTRY(name) {#name, name},
    KERNELS(ENTRY)
#undef ENTRY
};

static std::map<uint64_t, uint64_t> held;

template <typename T> static T take() {
    T value;
    if (fread(&value, sizeof value, 1, stdin) != 1) exit(0);
    return value;
}

static void give(const void *bytes, size_t len) { fwrite(bytes, 1, len, stdout); }

static void check(uint64_t address, uint64_t len) {
    auto after = held.upper_bound(address);
    if (after == held.begin() || address + len > std::prev(after)->first + std::prev(after)->second) {
        fprintf(stderr, "emulator: a copy of %llu bytes outside of any buffer\n", (unsigned long long)len);
        abort();
    }
}

int main() {
    static_assert(sizeof(Scan) == 12 * 8 + 10 * 4, "no padding: callers write it byte by byte");
    for (;;) {
        switch (take<char>()) {
        case 'A': {
            const auto len = take<uint64_t>();
            const auto address = (uint64_t)aligned_alloc(256, (len + 255) / 256 * 256);
            if (address) {
                memset((void *)address, 0xff, (len + 255) / 256 * 256);
                held[address] = len;
            }
            give(&address, 8);
            break;
        }
        case 'F': {
            const auto address = take<uint64_t>();
            held.erase(address);
            free((void *)address);
            break;
        }
        case 'W': {
            const auto address = take<uint64_t>(), len = take<uint64_t>();
            check(address, len);
            if (len && fread((void *)address, 1, len, stdin) != len) exit(0);
            break;
        }
        case 'R': {
            const auto address = take<uint64_t>(), len = take<uint64_t>();
            check(address, len);
            give((void *)address, len);
            break;
        }
        case 'L': {
            dim3 grid;
            grid.x = take<uint32_t>();
            grid.y = take<uint32_t>();
            const auto name_len = take<uint32_t>(), params_len = take<uint32_t>();
            std::string name(name_len, 0);
            if (fread(name.data(), 1, name_len, stdin) != name_len) exit(0);
            std::vector<char> params(params_len);
            if (fread(params.data(), 1, params_len, stdin) != params_len) exit(0);
            const auto kernel = kernels.find(name);
            const char ran = kernel != kernels.end() && params_len == sizeof(Scan);
            if (ran) {
                Scan scan;
                memcpy(&scan, params.data(), sizeof scan);
                emulate::launch(grid, [&] { kernel->second(scan); });
            }
            give(&ran, 1);
            break;
        }
        case 'C': {
            const uint64_t count = emulate::loaded.exchange(0);
            give(&count, 8);
            break;
        }
        default:
            fprintf(stderr, "emulator: no such request\n");
            abort();
        }
        fflush(stdout);
    }
}
