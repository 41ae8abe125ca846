// Few queries: one pass over the vectors gives the best k below a limit for up to eight queries.
//
// A warp reads two vectors at a time, 16 bytes a lane and load, and multiplies them with all queries, so each vector
// comes from memory once a pass. The 16 sums of a warp are folded in 16 shuffles that leave one sum to a lane. What beats
// the least of the best k joins a buffer of 256 keys in shared memory; a warp of its own sorts it when it may overflow.
//
// Invariants:
// 1. Between two barriers a query gains at most STEP keys, and begins with at most KEPT: its buffer never overflows.
// 2. The sum for one vector and one query has the same order wherever the vector stands, so that passes agree.
// 3. Keys come back sorted: the answer does not depend on the order in which blocks and warps run.
//
// k above KEPT takes passes: each begins below the last key of the one before.
#include "layout.cuh"

const u32 QUERIES = 8;
const u32 ROWS = 2;
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
    for (u32 slot = fill + lane; slot < SLOTS; slot += WARP) best.keys[slot] = 0;
    __syncwarp();
    sort_by_warp<SLOTS>(best.keys, lane);
    if (lane == 0) {
        best.fill = fill < k ? fill : k;
        best.least = best.keys[k - 1];
    }
    __syncwarp();
}

// Lane l is left with the sum over all lanes of value (l & 1) * 8 + (l >> 1 & 1) * 4 + (l >> 2 & 1) * 2 + (l >> 3 & 1).
__device__ inline float fold(float (&values)[ROWS * QUERIES], u32 lane) {
#pragma unroll
    for (u32 half = ROWS * QUERIES / 2, bit = 1; half > 0; half /= 2, bit *= 2) {
        const bool upper = lane & bit;
#pragma unroll
        for (u32 i = 0; i < half; ++i) {
            const float given = upper ? values[i] : values[i + half];
            const float kept = upper ? values[i + half] : values[i];
            values[i] = kept + __shfl_xor_sync(ALL_LANES, given, bit);
        }
    }
    return values[0] + __shfl_xor_sync(ALL_LANES, values[0], 16);
}

// This lane's part of the sums for two rows and all queries.
template <int ENCODING, int METRIC>
__device__ inline void accumulate(const Scan &p, u32 position, u32 wanted, u32 lane, float (&sums)[ROWS * QUERIES]) {
    const u32 pieces = components<ENCODING>() / 4;
    const uint4 *rows = (const uint4 *)(p.rows + (u64)(position - p.base) * p.stride);
    const u32 chunks = p.stride / 16;
    float scales[ROWS] = {1.0f, 1.0f};
    if (ENCODING == I8 && METRIC == L2) {
        for (u32 row = 0; row < ROWS; ++row) {
            if (wanted >> row & 1) scales[row] = ((const float *)p.scales)[position - p.base + row];
        }
    }
    for (u32 chunk = lane; chunk < chunks; chunk += WARP) {
        uint4 bytes[ROWS];
#pragma unroll
        for (u32 row = 0; row < ROWS; ++row) {
            bytes[row] = make_uint4(0, 0, 0, 0);
            if (wanted >> row & 1) {
                bytes[row] = rows[row * chunks + chunk];
                COUNT_LOADED(16);
            }
        }
#pragma unroll
        for (u32 piece = 0; piece < pieces; ++piece) {
            float4 x[ROWS];
#pragma unroll
            for (u32 row = 0; row < ROWS; ++row) {
                x[row] = decode<ENCODING>(bytes[row], piece);
                if (ENCODING == I8 && METRIC == L2) {
                    x[row].x *= scales[row];
                    x[row].y *= scales[row];
                    x[row].z *= scales[row];
                    x[row].w *= scales[row];
                }
            }
#pragma unroll
            for (u32 query = 0; query < QUERIES; ++query) {
                if (query >= p.query_count) break;
                const float4 q = ((const float4 *)p.queries)[query * (p.dim / 4) + chunk * pieces + piece];
#pragma unroll
                for (u32 row = 0; row < ROWS; ++row) {
                    float &sum = sums[row * QUERIES + query];
                    if (METRIC == L2) {
                        const float a = q.x - x[row].x, b = q.y - x[row].y, c = q.z - x[row].z, d = q.w - x[row].w;
                        sum += a * a;
                        sum += b * b;
                        sum += c * c;
                        sum += d * d;
                    } else {
                        sum += q.x * x[row].x;
                        sum += q.y * x[row].y;
                        sum += q.z * x[row].z;
                        sum += q.w * x[row].w;
                    }
                }
            }
        }
    }
}

template <int ENCODING, int METRIC> __device__ inline void few(const Scan &p) {
    __shared__ Best best[QUERIES];
    const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    if (threadIdx.x < QUERIES) clear(best[threadIdx.x]);
    __syncthreads();
    const u32 end = p.first + p.count;
    // What this lane is left with after folding.
    const u32 row = lane & 1, query = (lane >> 1 & 1) * 4 + (lane >> 2 & 1) * 2 + (lane >> 3 & 1);
    const bool offers = lane < ROWS * QUERIES && query < p.query_count;
    const u64 limit = offers ? ((const u64 *)p.limits)[query] : 0;
    for (u32 step = blockIdx.x; step * STEP < p.count; step += gridDim.x) {
        const u32 start = p.first + step * STEP + warp * ROWS_PER_WARP;
        const u32 word = matching_word(p, start & ~31u, end) >> (start & 31u);
        for (u32 at = 0; at < ROWS_PER_WARP; at += ROWS) {
            const u32 wanted = word >> at & ((1u << ROWS) - 1);
            if (wanted == 0) continue;
            float sums[ROWS * QUERIES] = {};
            accumulate<ENCODING, METRIC>(p, start + at, wanted, lane, sums);
            const float sum = fold(sums, lane);
            if (offers && (wanted >> row & 1)) {
                const u32 position = start + at + row;
                float rank = METRIC == L2 ? -sum : sum;
                if (ENCODING == I8 && METRIC == DOT) rank *= ((const float *)p.scales)[position - p.base];
                const u64 key = key_of(rank, position);
                if (key < limit) offer(best[query], key);
            }
        }
        __syncthreads();
        if (best[warp].fill > KEPT) compact(best[warp], p.k, lane);
        __syncthreads();
    }
    compact(best[warp], p.k, lane);
    if (warp < p.query_count) {
        u64 *list = (u64 *)p.lists + ((u64)blockIdx.x * p.query_count + warp) * p.k;
        for (u32 i = lane; i < p.k; i += WARP) list[i] = best[warp].keys[i];
    }
}

// The best k of a query among the lists of all blocks: one block a query.
extern "C" __global__ void __launch_bounds__(THREADS, 4) merge(Scan p) {
    __shared__ Best best;
    const u32 query = blockIdx.x;
    if (threadIdx.x == 0) clear(best);
    __syncthreads();
    const u32 total = p.blocks * p.k;
    for (u32 start = 0; start < total; start += STEP) {
        const u32 at = start + threadIdx.x;
        if (threadIdx.x < STEP && at < total) {
            offer(best, ((const u64 *)p.lists)[((u64)(at / p.k) * p.query_count + query) * p.k + at % p.k]);
        }
        __syncthreads();
        if (threadIdx.x < WARP && best.fill > KEPT) compact(best, p.k, threadIdx.x);
        __syncthreads();
    }
    if (threadIdx.x < WARP) compact(best, p.k, threadIdx.x);
    __syncthreads();
    u64 *answer = (u64 *)p.answers + (u64)query * p.k;
    for (u32 i = threadIdx.x; i < p.k; i += THREADS) answer[i] = best.keys[i];
}

extern "C" __global__ void __launch_bounds__(THREADS, 4) few_f32_dot(Scan p) { few<F32, DOT>(p); }
extern "C" __global__ void __launch_bounds__(THREADS, 4) few_f32_l2(Scan p) { few<F32, L2>(p); }
extern "C" __global__ void __launch_bounds__(THREADS, 4) few_f16_dot(Scan p) { few<F16, DOT>(p); }
extern "C" __global__ void __launch_bounds__(THREADS, 4) few_f16_l2(Scan p) { few<F16, L2>(p); }
extern "C" __global__ void __launch_bounds__(THREADS, 4) few_i8_dot(Scan p) { few<I8, DOT>(p); }
extern "C" __global__ void __launch_bounds__(THREADS, 4) few_i8_l2(Scan p) { few<I8, L2>(p); }
