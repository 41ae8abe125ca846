// Few queries: one pass over the vectors gives the best k below a limit for up to eight queries.
//
// A warp multiplies sixteen vectors with all queries on tensor cores. What a lane loads, 16 bytes of two vectors, is
// what it gives to the tensor cores: components are taken in the order in which they arrive, and the host lays out
// the queries likewise. A component of a query is the sum of two halves, and so is one of a vector of f32, of whose
// four products the smallest is left out. Two slices of 64 bytes are loaded together: lines of the cache come whole,
// in one go.
//
// Each vector comes from memory once a pass. What beats the least of the best k joins a buffer of 256 keys in
// shared memory; a warp of its own sorts it when it may overflow, and tells the other blocks which key k others reach.
//
// Invariants:
// 1. Between two barriers a query gains at most STEP keys, and begins with at most KEPT: its buffer never overflows.
// 2. The sum for one vector and one query has the same order wherever the vector stands, so that passes agree.
// 3. Keys come back sorted: the answer does not depend on the order in which blocks and warps run.
//
// k above KEPT takes passes: each begins below the last key of the one before.
#include "layout.cuh"

const u32 QUERIES = 8;
const u32 KEPT = 128;
const u32 STEP = 128;
const u32 SLOTS = KEPT + STEP;
const u32 ROWS_PER_WARP = STEP / (THREADS / WARP);

// The best keys of one query.
struct Best {
    u64 keys[SLOTS];
    u64 least;
    u32 fill;
};

__device__ inline void clear(Best &best) {
    best.least = 0;
    best.fill = 0;
}

__device__ inline void offer(Best &best, u64 key) {
    if (key > best.least) best.keys[atomicAdd(&best.fill, 1u)] = key;
}

// Sorts, and keeps the best k. All lanes of one warp call it.
__device__ inline void compact(Best &best, u32 k, u32 lane) {
    const u32 fill = best.fill;
    u32 slots = WARP;
    while (slots < fill || slots < k) slots *= 2;
    for (u32 slot = fill + lane; slot < slots; slot += WARP) best.keys[slot] = 0;
    __syncwarp();
    sort_by_warp(best.keys, slots, lane);
    if (lane == 0) {
        best.fill = fill < k ? fill : k;
        if (best.keys[k - 1] > best.least) best.least = best.keys[k - 1];
    }
    __syncwarp();
}

// Where the blocks tell each other a key of a query that k keys reach.
__device__ inline u64 *floor_of(const Scan &p, u32 query) {
    return (u64 *)p.limits + p.query_count + query;
}

// What other blocks told so far; asked early, for `settle`.
__device__ inline u64 told_floor(const Scan &p, u32 query, u32 lane) {
    return lane == 0 && query < p.query_count ? *(volatile u64 *)floor_of(p, query) : 0;
}

// After a step: makes room for the next, and tells the other blocks or learns from them what cannot be among the best.
// All lanes of one warp call it.
__device__ inline void settle(const Scan &p, Best &best, u32 query, u64 floor, u32 lane) {
    const bool full = best.fill > KEPT;
    if (full) compact(best, p.k, lane);
    if (lane == 0 && query < p.query_count) {
        if (full && best.least > floor) floor = atomicMax(floor_of(p, query), best.least);
        if (floor > best.least) best.least = floor;
    }
}

// Two halves of 16 bytes of a vector: components 2 * pair and 2 * pair + 1.
template <int ENCODING> __device__ inline u32 two_components(const uint4 &bytes, u32 pair) {
    const u32 word = word_of(bytes, ENCODING == F16 ? pair : pair / 2);
    if (ENCODING == F16) return word;
    // The half 0x6400 + b is 1024 + b for a byte b, here a code and 128.
    const u32 above = __byte_perm(word ^ 0x80808080u, 0x64646464u, pair % 2 ? 0x4342 : 0x4140);
    const u32 offsets = 0x64806480u;
    const __half2 codes = __hsub2(*(const __half2 *)&above, *(const __half2 *)&offsets);
    return *(const u32 *)&codes;
}

// Four components of a row of f32, times `factor`, as upper and lower halves.
__device__ inline void split(const uint4 &bytes, float factor, u32 (&upper)[2], u32 (&lower)[2]) {
    const float4 x = decode<F32>(bytes, 0);
    const float scaled[4] = {x.x * factor, x.y * factor, x.z * factor, x.w * factor};
#pragma unroll
    for (u32 pair = 0; pair < 2; ++pair) {
        const __half2 rounded = __floats2half2_rn(scaled[2 * pair], scaled[2 * pair + 1]);
        const float2 back = __half22float2(rounded);
        const __half2 rest = __floats2half2_rn(scaled[2 * pair] - back.x, scaled[2 * pair + 1] - back.y);
        upper[pair] = *(const u32 *)&rounded;
        lower[pair] = *(const u32 *)&rest;
    }
}

// Adds the products of a slice of sixteen rows, of which these are this lane's bytes, with all queries.
template <int ENCODING>
__device__ inline void multiply_slice(const Scan &p, const uint4 (&bytes)[2], const float (&factors)[2], u32 slice,
                                      u32 lane, float (&sums)[4]) {
    if (ENCODING == F32) {
        const uint4 query = ((const uint4 *)p.halves)[slice * WARP + lane];
        const u32 uppers[2] = {query.x, query.y}, lowers[2] = {query.z, query.w};
        u32 a[2], b[2], a_rest[2], b_rest[2];
        split(bytes[0], factors[0], a, a_rest);
        split(bytes[1], factors[1], b, b_rest);
        multiply_tiles(sums, a, b, uppers);
        multiply_tiles(sums, a, b, lowers);
        multiply_tiles(sums, a_rest, b_rest, uppers);
        return;
    }
    const u32 pieces = components<ENCODING>() / 8;
#pragma unroll
    for (u32 piece = 0; piece < pieces; ++piece) {
        const uint4 *queries = (const uint4 *)p.halves + (slice * pieces + piece) * 2 * WARP + lane;
        const uint4 upper = queries[0], lower = queries[WARP];
#pragma unroll
        for (u32 at = 0; at < 4; at += 2) {
            const u32 pair = piece * 4 + at;
            const u32 a[2] = {two_components<ENCODING>(bytes[0], pair), two_components<ENCODING>(bytes[0], pair + 1)};
            const u32 b[2] = {two_components<ENCODING>(bytes[1], pair), two_components<ENCODING>(bytes[1], pair + 1)};
            const u32 uppers[2] = {word_of(upper, at), word_of(upper, at + 1)};
            const u32 lowers[2] = {word_of(lower, at), word_of(lower, at + 1)};
            multiply_tiles(sums, a, b, uppers);
            multiply_tiles(sums, a, b, lowers);
        }
    }
}

// This lane's 16 bytes of a slice, 64 bytes, of two of sixteen rows: those of its line, and eight below.
__device__ inline void load_slice(const Scan &p, u32 start, u32 wanted, u32 slice, u32 lane, uint4 (&bytes)[2]) {
    const u32 chunk = slice * 4 + lane % 4;
#pragma unroll
    for (u32 half = 0; half < 2; ++half) {
        const u32 line = lane / 4 + half * 8;
        bytes[half] = make_uint4(0, 0, 0, 0);
        if ((wanted >> line & 1) && chunk * 16 < p.stride) {
            bytes[half] = *(const uint4 *)(p.rows + (u64)(start + line - p.base) * p.stride + chunk * 16);
            COUNT_LOADED(16);
        }
    }
}

// Which of the sixteen rows from `start` on match.
__device__ inline u32 sixteen_matching(const Scan &p, u32 start, u32 end) {
    return matching_word(p, start & ~31u, end) >> (start & 31u) & 0xffffu;
}

template <int ENCODING, int METRIC> __device__ inline void few(const Scan &p) {
    __shared__ Best best[QUERIES];
    const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    if (threadIdx.x < QUERIES) clear(best[threadIdx.x]);
    __syncthreads();
    const u32 end = p.first + p.count, slices = (p.stride + 63) / 64;
    u32 start = p.first + blockIdx.x * STEP + warp * ROWS_PER_WARP;
    u32 wanted = sixteen_matching(p, start, end);
    uint4 ahead[2][2];
    load_slice(p, start, wanted, 0, lane, ahead[0]);
    load_slice(p, start, wanted, 1, lane, ahead[1]);
    for (u32 step = blockIdx.x; step * STEP < p.count; step += gridDim.x) {
        const u64 floor = told_floor(p, warp, lane);
        float sums[4] = {};
        // What one unit of either row is worth.
        float units[2] = {1.0f, 1.0f};
#pragma unroll
        for (u32 half = 0; half < 2; ++half) {
            const u32 row = start + lane / 4 + half * 8 - p.base;
            if (ENCODING == F16 || !(wanted >> (lane / 4 + half * 8) & 1)) continue;
            units[half] = ENCODING == F32 ? ((const float2 *)p.measures)[row].y : ((const float *)p.scales)[row];
        }
        if (wanted != 0) {
            const float factors[2] = {1.0f / units[0], 1.0f / units[1]};
            for (u32 slice = 0; slice < slices; slice += 2) {
                if (slice > 0) {
                    load_slice(p, start, wanted, slice, lane, ahead[0]);
                    load_slice(p, start, wanted, slice + 1, lane, ahead[1]);
                }
                multiply_slice<ENCODING>(p, ahead[0], factors, slice, lane, sums);
                if (slice + 1 < slices) multiply_slice<ENCODING>(p, ahead[1], factors, slice + 1, lane, sums);
            }
        }
        const u32 here = start, matched = wanted;
        start += gridDim.x * STEP;
        wanted = start < end ? sixteen_matching(p, start, end) : 0;
        load_slice(p, start, wanted, 0, lane, ahead[0]);
        load_slice(p, start, wanted, 1, lane, ahead[1]);
        // The sums of this lane are of two queries with the two rows that it loads.
#pragma unroll
        for (u32 side = 0; side < 2; ++side) {
            const u32 query = lane % 4 * 2 + side;
            if (query >= p.query_count) break;
            const float2 measure = ((const float2 *)p.query_measures)[query];
            const u64 limit = ((const u64 *)p.limits)[query];
#pragma unroll
            for (u32 half = 0; half < 2; ++half) {
                const u32 line = lane / 4 + half * 8;
                if (!(matched >> line & 1)) continue;
                const float dot = sums[half * 2 + side] * measure.y * units[half];
                float rank = dot;
                if (METRIC == L2) rank = 2.0f * dot - measure.x - ((const float2 *)p.measures)[here + line - p.base].x;
                const u64 key = key_of(rank, here + line);
                if (key < limit) offer(best[query], key);
            }
        }
        __syncthreads();
        settle(p, best[warp], warp, floor, lane);
        __syncthreads();
    }
    compact(best[warp], p.k, lane);
    if (warp < p.query_count) {
        u64 *list = (u64 *)p.lists + ((u64)blockIdx.x * p.query_count + warp) * p.k;
        for (u32 i = lane; i < p.k; i += WARP) list[i] = best[warp].keys[i];
    }
}

// Keys that `merge` holds, and lists that it looks into between two sorts.
const u32 MERGED = 2048;
const u32 LISTS = MERGED - KEPT;

// The best k of a query among the sorted lists of all blocks: one block a query. Round r looks at key r of each list
// whose keys before were all among the best so far.
extern "C" __global__ void __launch_bounds__(THREADS, 4) merge(Scan p) {
    __shared__ u64 keys[MERGED];
    __shared__ u32 fill;
    const u32 query = blockIdx.x, thread = threadIdx.x;
    if (thread == 0) fill = 0;
    // k keys reach the floor, itself among them.
    const u64 floor = *floor_of(p, query), below = floor > 0 ? floor - 1 : 0;
    u64 least = below;
    u32 kept = 0;
    __syncthreads();
    for (u32 round = 0; round < p.k; ++round) {
        u32 offered = 0;
        for (u32 first = 0; first < p.blocks; first += LISTS) {
            const u32 last = p.blocks - first < LISTS ? p.blocks : first + LISTS;
            for (u32 block = first + thread; block < last; block += THREADS) {
                const u64 *list = (const u64 *)p.lists + ((u64)block * p.query_count + query) * p.k;
                // Equal keys are those of no vector, 0, which is never more than `least`.
                const u64 key = list[round];
                if (key > least) keys[atomicAdd(&fill, 1u)] = key;
            }
            __syncthreads();
            const u32 found = fill;
            offered += found - kept;
            u32 slots = 1;
            while (slots < found) slots *= 2;
            for (u32 slot = found + thread; slot < slots; slot += THREADS) keys[slot] = 0;
            __syncthreads();
            if (found > kept) sort_by_block(keys, slots, thread);
            kept = found < p.k ? found : p.k;
            least = found < p.k ? below : keys[p.k - 1];
            if (thread == 0) fill = kept;
            __syncthreads();
        }
        if (offered == 0) break;
    }
    u64 *answer = (u64 *)p.answers + (u64)query * p.k;
    for (u32 i = thread; i < p.k; i += THREADS) answer[i] = i < kept ? keys[i] : 0;
}

extern "C" __global__ void __launch_bounds__(THREADS, 4) few_f32_dot(Scan p) { few<F32, DOT>(p); }
extern "C" __global__ void __launch_bounds__(THREADS, 4) few_f32_l2(Scan p) { few<F32, L2>(p); }
extern "C" __global__ void __launch_bounds__(THREADS, 4) few_f16_dot(Scan p) { few<F16, DOT>(p); }
extern "C" __global__ void __launch_bounds__(THREADS, 4) few_f16_l2(Scan p) { few<F16, L2>(p); }
extern "C" __global__ void __launch_bounds__(THREADS, 4) few_i8_dot(Scan p) { few<I8, DOT>(p); }
extern "C" __global__ void __launch_bounds__(THREADS, 4) few_i8_l2(Scan p) { few<I8, L2>(p); }
