// What the kernels share: their one parameter, keys, and the decoding of vectors.
//
// A vector stands at a position of its part (a segment or a block of the tail). Rows on the device are padded with
// zeros to a multiple of 32 components, so that no kernel has a remainder and every load is 16 bytes, aligned.
//
// A rank is what the kernel compares: the dot product, or minus the squared distance. Larger is better. A key is the
// rank's bits in ascending order above the position, so keys are unique and totally ordered; 0 is no key.
//
// Ranks are approximate. The host must keep every candidate within the rounding bound (the margins of emulate/check.py)
// and score it again.
#pragma once

#include <cuda_fp16.h>
#ifdef EMULATED
#include "mma.h"
#endif

typedef unsigned int u32;
typedef unsigned long long u64;

// The arguments of a launch: addresses first, then numbers.
struct Scan {
    u64 rows;           // encoded vectors, `stride` bytes each; the first is that of position `base`
    u64 scales;         // float a row, i8 only; the first is that of position `base`
    u64 measures;       // float2 a row: squared length, and what one unit of its halves is worth; likewise from `base`
    u64 filter;         // bit i % 32 of word i / 32 for position i; 0: all match
    u64 halves;         // __half. few: two for each component of eight queries, as its lanes read them.
                        // many: query_count rounded up to 128 rows of `dim`
    u64 query_measures; // float2 a query: squared length, and what one unit of its halves is worth
    u64 limits;         // few: key a query, only smaller ones count; then a key a query that k keys reach, 0 at first.
                        // many: float a query, ranks below it do not count
    u64 margins;        // float2 a query: how far below the k-th best rank a candidate may be; the largest rank that is
                        // told from larger ones, likewise the smallest with a minus
    u64 lists;          // few: k keys for each block and query. many: `capacity` keys a query
    u64 counts;         // u32 a query: keys in its list
    u64 overflowed;     // u32 a query: not 0 when its list was too short
    u64 answers;        // few: k keys a query. many: `room` keys a query
    u32 base, first, count, stride, dim, query_count, k, capacity, room, blocks;
};

enum Encoding { F32, F16, I8 };
enum Metric { DOT, L2 };

const u32 THREADS = 256;
const u32 WARP = 32;
const u32 ALL_LANES = 0xffffffffu;

// Counts the bytes of vectors that are read; only the emulator does.
#ifndef COUNT_LOADED
#define COUNT_LOADED(bytes)
#endif

__device__ inline u32 ascending(float rank) {
    const u32 bits = __float_as_uint(rank);
    return bits >> 31 ? ~bits : bits | 0x80000000u;
}

__device__ inline float rank_of(u64 key) {
    const u32 bits = (u32)(key >> 32);
    return __uint_as_float(bits >> 31 ? bits & 0x7fffffffu : ~bits);
}

__device__ inline u64 key_of(float rank, u32 position) {
    return (u64)ascending(rank) << 32 | position;
}

// 32 bits of the filter from `position` on, which is a multiple of 32; positions from `end` on never match.
__device__ inline u32 matching_word(const Scan &p, u32 position, u32 end) {
    if (position >= end) return 0;
    const u32 word = p.filter ? ((const u32 *)p.filter)[position / 32] : ALL_LANES;
    const u32 left = end - position;
    return left >= 32 ? word : word & ((1u << left) - 1);
}

// Components in 16 bytes.
template <int ENCODING> __device__ constexpr u32 components() {
    return ENCODING == F32 ? 4 : ENCODING == F16 ? 8 : 16;
}

// Components 4 * piece to 4 * piece + 3 of 16 bytes of a vector.
template <int ENCODING> __device__ inline float4 decode(const uint4 &bytes, u32 piece) {
    if (ENCODING == F32) {
        return make_float4(__uint_as_float(bytes.x), __uint_as_float(bytes.y), __uint_as_float(bytes.z),
                           __uint_as_float(bytes.w));
    }
    if (ENCODING == F16) {
        const u32 words[2] = {piece ? bytes.z : bytes.x, piece ? bytes.w : bytes.y};
        const float2 low = __half22float2(*(const __half2 *)&words[0]);
        const float2 high = __half22float2(*(const __half2 *)&words[1]);
        return make_float4(low.x, low.y, high.x, high.y);
    }
    const u32 word = piece == 0 ? bytes.x : piece == 1 ? bytes.y : piece == 2 ? bytes.z : bytes.w;
    return make_float4((float)(signed char)(word & 0xff), (float)(signed char)(word >> 8 & 0xff),
                       (float)(signed char)(word >> 16 & 0xff), (float)(signed char)(word >> 24));
}

// Brings pairs of keys, whose places differ by `step`, into the order of a bitonic sort in which runs of `size` are
// made.
__device__ inline void order_pairs(u64 *keys, u32 slots, u32 size, u32 step, u32 first, u32 workers) {
    for (u32 pair = first; pair < slots / 2; pair += workers) {
        const u32 low = 2 * pair - (pair & (step - 1));
        const u64 a = keys[low], b = keys[low + step];
        const bool descending = (low & size) == 0;
        if ((a < b) == descending) {
            keys[low] = b;
            keys[low + step] = a;
        }
    }
}

// Sorts a power of two of keys, the largest first. All lanes of one warp call it.
__device__ inline void sort_by_warp(u64 *keys, u32 slots, u32 lane) {
    for (u32 size = 2; size <= slots; size *= 2) {
        for (u32 step = size / 2; step > 0; step /= 2) {
            order_pairs(keys, slots, size, step, lane, WARP);
            __syncwarp();
        }
    }
}

// The same by all threads of a block.
__device__ inline void sort_by_block(u64 *keys, u32 slots, u32 thread) {
    for (u32 size = 2; size <= slots; size *= 2) {
        for (u32 step = size / 2; step > 0; step /= 2) {
            order_pairs(keys, slots, size, step, thread, THREADS);
            __syncthreads();
        }
    }
}

// Word `at` of sixteen bytes.
__device__ inline u32 word_of(const uint4 &bytes, u32 at) {
    return at == 0 ? bytes.x : at == 1 ? bytes.y : at == 2 ? bytes.z : bytes.w;
}

// Adds the products of sixteen rows with eight columns, sixteen components of each, on tensor cores. Lane l gives two
// pairs of components, the (l % 4) th of either eight, of rows l / 4 (`a`) and l / 4 + 8 (`b`), and of column l / 4.
// Its sums are of row l / 4 with columns 2 * (l % 4) and the next, then of row l / 4 + 8 with the same.
#ifndef MULTIPLY_TILES
__device__ inline void multiply_tiles(float (&sums)[4], const u32 (&a)[2], const u32 (&b)[2], const u32 (&column)[2]) {
#if __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(b[0]), "r"(a[1]), "r"(b[1]), "r"(column[0]), "r"(column[1]));
#else
    for (u32 half = 0; half < 2; ++half) {
        asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
            : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
            : "r"(a[half]), "r"(b[half]), "r"(column[half]));
    }
#endif
}
#endif
