// Many queries: tiles of 64 queries by 64 vectors on tensor cores. What reaches a query's threshold joins its list; the
// scores themselves are never written.
//
// The host calls `measure` once for resident vectors, then `many` and `keep` in turn on stretches of vectors, each as
// long as all before. `keep` cuts each list to what may still be among the best k, and raises the threshold. The first
// stretch fits the lists whole; after that a stretch adds about k keys to a list, so that lists stay short. A list that
// overflows all the same is marked, gets an infinite threshold, and the host asks again with `few`.
//
// A query is rounded to sixteen bits, and so is a vector of f32; each is first scaled by a power of two that brings its
// largest component to [2^13, 2^14), so nothing overflows and hardly anything is lost to subnormal halves. Sums are f32.
//
// Invariants:
// 1. The threshold of a query is at most the k-th best rank of all less its margin: no vector of the best k is missed.
// 2. All threads of a block take the same way to every barrier.
#include "layout.cuh"

using namespace nvcuda;

const u32 TILE = 64;
const u32 DEPTH = 32;
// Lines of a tile in shared memory are padded, so that they begin in different banks.
const u32 HALF_LINE = DEPTH + 8;
const u32 SCORE_LINE = TILE + 4;
const u32 CAPACITY = 4096;


__device__ inline u32 two_halves(float low, float high) {
    const __half2 both = __floats2half2_rn(low, high);
    return *(const u32 *)&both;
}

__device__ inline uint4 eight_halves(const float4 &low, const float4 &high, float factor) {
    return make_uint4(two_halves(low.x * factor, low.y * factor), two_halves(low.z * factor, low.w * factor),
                      two_halves(high.x * factor, high.y * factor), two_halves(high.z * factor, high.w * factor));
}

// The eight components from `component` on of a row, times `factor`, as halves.
template <int ENCODING> __device__ inline uint4 load_halves(const Scan &p, u32 position, u32 component, float factor) {
    const char *row = (const char *)(p.rows + (u64)(position - p.base) * p.stride);
    if (ENCODING == F32) {
        const float4 *at = (const float4 *)(row + component * 4);
        COUNT_LOADED(32);
        return eight_halves(at[0], at[1], factor);
    }
    if (ENCODING == F16) {
        COUNT_LOADED(16);
        return *(const uint4 *)(row + component * 2);
    }
    const uint2 codes = *(const uint2 *)(row + component);
    COUNT_LOADED(8);
    const uint4 bytes = make_uint4(codes.x, codes.y, 0, 0);
    return eight_halves(decode<I8>(bytes, 0), decode<I8>(bytes, 1), 1.0f);
}

template <int ENCODING, int METRIC> __device__ inline void many(const Scan &p) {
    __shared__ __align__(16) char space[TILE * SCORE_LINE * sizeof(float)];
    __half *query_tile = (__half *)space;
    __half *row_tile = query_tile + TILE * HALF_LINE;
    float *scores = (float *)space;
    const u32 thread = threadIdx.x, warp = thread / WARP;
    const u32 end = p.first + p.count;
    const u32 first_query = blockIdx.x * TILE;
    // What this thread loads of each tile, and what it compares with thresholds.
    const u32 line = thread / 4, part = thread % 4 * 8;
    const __half *query = (const __half *)p.halves + (u64)(first_query + line) * p.dim + part;
    const u32 column = thread % TILE, first_line = thread / TILE * (TILE * TILE / THREADS);
    const u32 warp_line = warp / 2 * 16, warp_column = warp % 2 * 32;
    for (u32 tile = blockIdx.y; tile * TILE < p.count; tile += gridDim.y) {
        const u32 start = p.first + tile * TILE;
        const u32 words[2] = {matching_word(p, start, end), matching_word(p, start + 32, end)};
        if ((words[0] | words[1]) == 0) continue;
        const bool loads = words[line / 32] >> (line % 32) & 1;
        float factor = 1.0f;
        if (ENCODING == F32 && loads) factor = 1.0f / ((const float2 *)p.measures)[start + line - p.base].y;
        wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums[2];
        wmma::fill_fragment(sums[0], 0.0f);
        wmma::fill_fragment(sums[1], 0.0f);
        uint4 next_query = *(const uint4 *)query;
        uint4 next_row = loads ? load_halves<ENCODING>(p, start + line, part, factor) : make_uint4(0, 0, 0, 0);
        for (u32 depth = 0; depth < p.dim; depth += DEPTH) {
            *(uint4 *)(query_tile + line * HALF_LINE + part) = next_query;
            *(uint4 *)(row_tile + line * HALF_LINE + part) = next_row;
            __syncthreads();
            if (depth + DEPTH < p.dim) {
                next_query = *(const uint4 *)(query + depth + DEPTH);
                if (loads) next_row = load_halves<ENCODING>(p, start + line, depth + DEPTH + part, factor);
            }
#pragma unroll
            for (u32 inner = 0; inner < DEPTH; inner += 16) {
                wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> a;
                wmma::load_matrix_sync(a, query_tile + warp_line * HALF_LINE + inner, HALF_LINE);
#pragma unroll
                for (u32 side = 0; side < 2; ++side) {
                    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> b;
                    wmma::load_matrix_sync(b, row_tile + (warp_column + side * 16) * HALF_LINE + inner, HALF_LINE);
                    wmma::mma_sync(sums[side], a, b, sums[side]);
                }
            }
            __syncthreads();
        }
#pragma unroll
        for (u32 side = 0; side < 2; ++side) {
            float *at = scores + warp_line * SCORE_LINE + warp_column + side * 16;
            wmma::store_matrix_sync(at, sums[side], SCORE_LINE, wmma::mem_row_major);
        }
        __syncthreads();
        if (words[column / 32] >> (column % 32) & 1) {
            const u32 position = start + column;
            const float2 row = ((const float2 *)p.measures)[position - p.base];
            for (u32 at = first_line; at < first_line + TILE * TILE / THREADS; ++at) {
                const u32 number = first_query + at;
                if (number >= p.query_count) break;
                const float2 measure = ((const float2 *)p.query_measures)[number];
                const float dot = scores[at * SCORE_LINE + column] * measure.y * row.y;
                const float rank = METRIC == L2 ? 2.0f * dot - measure.x - row.x : dot;
                if (rank >= ((const float *)p.limits)[number]) {
                    const u32 slot = atomicAdd((u32 *)p.counts + number, 1u);
                    if (slot < p.capacity) ((u64 *)p.lists)[(u64)number * p.capacity + slot] = key_of(rank, position);
                }
            }
        }
        __syncthreads();
    }
}

// Cuts the list of a query to what may be among its best k, and raises its threshold; at the end (`room` above 0) copies
// what is left to the answers. One block a query.
extern "C" __global__ void __launch_bounds__(THREADS, 2) keep(Scan p) {
    __shared__ u64 keys[CAPACITY];
    const u32 query = blockIdx.x, thread = threadIdx.x;
    u64 *list = (u64 *)p.lists + (u64)query * p.capacity;
    u32 *count = (u32 *)p.counts + query;
    float *limit = (float *)p.limits + query;
    const u32 found = *count;
    __syncthreads();
    if (found > p.capacity) {
        if (thread == 0) {
            ((u32 *)p.overflowed)[query] = 1;
            *count = 0;
            *limit = __uint_as_float(0x7f800000u);
        }
        return;
    }
    u32 size = 1;
    while (size < found) size *= 2;
    for (u32 at = thread; at < size; at += THREADS) keys[at] = at < found ? list[at] : 0;
    __syncthreads();
    sort_by_block(keys, size, thread);
    if (found < p.k) {
        // Still all of them; nothing is known to be too small.
        if (p.room > 0) {
            for (u32 at = thread; at < found && at < p.room; at += THREADS) {
                ((u64 *)p.answers)[(u64)query * p.room + at] = keys[at];
            }
        }
        if (thread == 0 && p.room > 0 && found > p.room) ((u32 *)p.overflowed)[query] = 1;
        return;
    }
    const float least = rank_of(keys[p.k - 1]) - ((const float *)p.margins)[query];
    // The first that is too small, by bisection: every thread finds the same.
    u32 low = p.k, high = found;
    while (low < high) {
        const u32 middle = (low + high) / 2;
        if (rank_of(keys[middle]) >= least) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (p.room > 0) {
        for (u32 at = thread; at < low && at < p.room; at += THREADS) {
            ((u64 *)p.answers)[(u64)query * p.room + at] = keys[at];
        }
    } else {
        for (u32 at = thread; at < low; at += THREADS) list[at] = keys[at];
    }
    if (thread == 0) {
        *count = low;
        *limit = least;
        if (p.room > 0 && low > p.room) ((u32 *)p.overflowed)[query] = 1;
    }
}

// The squared length of each vector, and what one unit of its halves is worth: one warp a vector.
template <int ENCODING> __device__ inline void measure(const Scan &p) {
    const u32 lane = threadIdx.x % WARP;
    const u32 warps = gridDim.x * (THREADS / WARP);
    for (u32 at = blockIdx.x * (THREADS / WARP) + threadIdx.x / WARP; at < p.count; at += warps) {
        const u32 row = p.first - p.base + at;
        const uint4 *bytes = (const uint4 *)(p.rows + (u64)row * p.stride);
        float squared = 0.0f, largest = 0.0f;
        for (u32 chunk = lane; chunk < p.stride / 16; chunk += WARP) {
            const uint4 loaded = bytes[chunk];
#pragma unroll
            for (u32 piece = 0; piece < components<ENCODING>() / 4; ++piece) {
                const float4 x = decode<ENCODING>(loaded, piece);
                squared += x.x * x.x + x.y * x.y + x.z * x.z + x.w * x.w;
                largest = fmaxf(largest, fmaxf(fmaxf(fabsf(x.x), fabsf(x.y)), fmaxf(fabsf(x.z), fabsf(x.w))));
            }
        }
        for (u32 step = 16; step > 0; step /= 2) {
            squared += __shfl_xor_sync(ALL_LANES, squared, step);
            largest = fmaxf(largest, __shfl_xor_sync(ALL_LANES, largest, step));
        }
        if (lane == 0) {
            float unit = 1.0f;
            if (ENCODING == I8) {
                unit = ((const float *)p.scales)[row];
                squared *= unit * unit;
            }
            if (ENCODING == F32) {
                // 2^(e - 14) for a largest component in [2^(e - 1), 2^e), within what has a reciprocal.
                int exponent = (int)(__float_as_uint(largest) >> 23) - 126 - 14;
                exponent = exponent < -126 ? -126 : exponent > 126 ? 126 : exponent;
                unit = __uint_as_float((u32)(exponent + 127) << 23);
            }
            ((float2 *)p.measures)[row] = make_float2(squared, unit);
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 4) many_f32_dot(Scan p) { many<F32, DOT>(p); }
extern "C" __global__ void __launch_bounds__(THREADS, 4) many_f32_l2(Scan p) { many<F32, L2>(p); }
extern "C" __global__ void __launch_bounds__(THREADS, 4) many_f16_dot(Scan p) { many<F16, DOT>(p); }
extern "C" __global__ void __launch_bounds__(THREADS, 4) many_f16_l2(Scan p) { many<F16, L2>(p); }
extern "C" __global__ void __launch_bounds__(THREADS, 4) many_i8_dot(Scan p) { many<I8, DOT>(p); }
extern "C" __global__ void __launch_bounds__(THREADS, 4) many_i8_l2(Scan p) { many<I8, L2>(p); }
extern "C" __global__ void __launch_bounds__(THREADS, 4) measure_f32(Scan p) { measure<F32>(p); }
extern "C" __global__ void __launch_bounds__(THREADS, 4) measure_f16(Scan p) { measure<F16>(p); }
extern "C" __global__ void __launch_bounds__(THREADS, 4) measure_i8(Scan p) { measure<I8>(p); }
