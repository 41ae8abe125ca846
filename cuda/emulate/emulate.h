// Runs the kernels on the host: blocks in turn; the threads of a block as fibers, or with -DEMULATE_THREADS as threads of
// the operating system, which is what sanitizers understand. For tests only.
//
// cuda_fp16.h and mma.h of this folder stand in for those of CUDA, so that the sources are compiled as they are.
//
// Tensor cores are modelled at their worst: the products of a step and the sum before are cut off, not rounded, to 24 bits
// of the largest of them.
#pragma once

#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <pthread.h>
#include <thread>
#include <vector>

#define __global__
#define __device__
#define __shared__ static
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...)

struct uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
struct float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };
struct dim3 { unsigned x = 1, y = 1, z = 1; };

inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

inline unsigned __float_as_uint(float x) { unsigned bits; memcpy(&bits, &x, 4); return bits; }
// Four bytes of x (0 to 3) and y (4 to 7), chosen by the four lowest digits of `which`.
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned which) {
    const unsigned long long both = (unsigned long long)y << 32 | x;
    unsigned made = 0;
    for (unsigned i = 0; i < 4; ++i) made |= (unsigned)(both >> 8 * (which >> 4 * i & 7) & 0xff) << 8 * i;
    return made;
}

inline float __uint_as_float(unsigned bits) { float x; memcpy(&x, &bits, 4); return x; }

namespace emulate {

const unsigned THREADS_A_BLOCK = 256, LANES = 32, WARPS = THREADS_A_BLOCK / LANES;

struct Thread {
    dim3 index, block, grid;
};

extern thread_local Thread *current;
inline std::atomic<unsigned long long> loaded{0};

// Waits for all threads of the block, or of the warp.
void wait_for_block();
void wait_for_warp();
// A place for each lane of the calling thread's warp.
void **lanes();

void run_block(const std::function<void()> &kernel, std::vector<Thread> &threads);

inline void launch(dim3 grid, const std::function<void()> &kernel) {
    for (unsigned y = 0; y < grid.y; ++y) {
        for (unsigned x = 0; x < grid.x; ++x) {
            std::vector<Thread> threads(THREADS_A_BLOCK);
            for (unsigned i = 0; i < THREADS_A_BLOCK; ++i) threads[i] = {{i, 0, 0}, {x, y, 0}, grid};
            run_block(kernel, threads);
        }
    }
}

} // namespace emulate

#define threadIdx (emulate::current->index)
#define blockIdx (emulate::current->block)
#define gridDim (emulate::current->grid)
#define COUNT_LOADED(bytes) emulate::loaded.fetch_add(bytes, std::memory_order_relaxed)

inline void __syncthreads() { emulate::wait_for_block(); }
inline void __syncwarp() { emulate::wait_for_warp(); }

inline float __shfl_xor_sync(unsigned, float value, unsigned mask) {
    void **lanes = emulate::lanes();
    const unsigned lane = threadIdx.x % emulate::LANES;
    lanes[lane] = &value;
    emulate::wait_for_warp();
    const float other = *(const float *)lanes[lane ^ mask];
    emulate::wait_for_warp();
    return other;
}

inline unsigned long long atomicMax(unsigned long long *at, unsigned long long value) {
    unsigned long long before = __atomic_load_n(at, __ATOMIC_RELAXED);
    while (before < value && !__atomic_compare_exchange_n(at, &before, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
    return before;
}
inline unsigned atomicAdd(unsigned *at, unsigned more) { return __atomic_fetch_add(at, more, __ATOMIC_RELAXED); }
