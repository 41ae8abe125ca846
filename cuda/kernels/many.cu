// Many queries: tiles of 128 queries by 64 vectors on tensor cores. What reaches a query's threshold joins its list;
// the scores themselves are never written.
//
// The host calls `measure` once for resident vectors, then `many` and `keep` in turn on stretches of vectors, each
// some times as long as all before. `keep` cuts each list to what may still be among the best k, and raises the
// threshold. The first stretch fits the lists whole; after that a stretch adds a few times k keys to a list, so that
// lists stay short. A list that overflows all the same is marked, gets an infinite threshold, and the host asks again
// with `few`.
//
// A query is rounded to sixteen bits, and so is a vector of f32; each is first scaled by a power of two that brings
// its largest component to [2^13, 2^14), so nothing overflows and hardly anything is lost to subnormal halves. Sums
// are f32.
//
// A tile in shared memory is made of slabs of 32 components. A line of a slab has 64 bytes, so that the sixteen bytes
// that each lane gives to the tensor cores lie side by side for a warp, without conflicts. Which of the components of
// a slab a step multiplies is the same for queries and vectors, and does not matter otherwise.
//
// Invariants:
// 1. The threshold of a query is at most the k-th best rank of all less its margin: no vector of the best k is missed.
// 2. All threads of a block take the same way to every barrier.
#include "layout.cuh"

const u32 QUERY_TILE = 128;
const u32 TILE = 64;
const u32 SLAB = 32;
const u32 SLABS = 2;
// Pieces of sixteen bytes of a line of a slab.
const u32 PIECES = 4;
// Floats of a line of scores: lines of a warp's writes begin in different banks.
const u32 SCORE_LINE = 40;
const u32 CAPACITY = 4096;

__device__ inline u32 two_halves(float low, float high) {
    const __half2 both = __floats2half2_rn(low, high);
    return *(const u32 *)&both;
}

__device__ inline uint4 eight_halves(const float4 &low, const float4 &high, float factor) {
    return make_uint4(two_halves(low.x * factor, low.y * factor), two_halves(low.z * factor, low.w * factor),
                      two_halves(high.x * factor, high.y * factor), two_halves(high.z * factor, high.w * factor));
}

// The eight components from `component` on of a row, scaled, as halves.
template <int ENCODING> __device__ inline uint4 load_halves(const Scan &p, u32 position, u32 component) {
    const char *row = (const char *)(p.rows + (u64)(position - p.base) * p.stride);
    if (ENCODING == F32) {
        const float4 *at = (const float4 *)(row + component * 4);
        COUNT_LOADED(32);
        return eight_halves(at[0], at[1], 1.0f / ((const float2 *)p.measures)[position - p.base].y);
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

// Where piece `piece` of line `line` stands in a tile of so many lines; pieces count on through the slabs. In the
// second slab neighbouring lines change places, so that the pieces of one line are in different banks.
__device__ inline u32 place_in(u32 lines, u32 line, u32 piece) {
    return (piece / PIECES * lines + (line ^ piece / PIECES)) * PIECES + piece % PIECES;
}

// Adds the products of 32 queries and 32 vectors over one slab, whose first lines these are. A lane reads piece `own`
// of each eight lines.
__device__ inline void multiply_slab(float (&sums)[2][4][4], const uint4 *queries, const uint4 *rows, u32 own) {
    uint4 a[4];
#pragma unroll
    for (u32 eight = 0; eight < 4; ++eight) a[eight] = queries[eight * 8 * PIECES + own];
#pragma unroll
    for (u32 eight = 0; eight < 4; ++eight) {
        const uint4 b = rows[eight * 8 * PIECES + own];
#pragma unroll
        for (u32 at = 0; at < 4; at += 2) {
            const u32 column[2] = {word_of(b, at), word_of(b, at + 1)};
#pragma unroll
            for (u32 side = 0; side < 2; ++side) {
                const u32 upper[2] = {word_of(a[side * 2], at), word_of(a[side * 2], at + 1)};
                const u32 lower[2] = {word_of(a[side * 2 + 1], at), word_of(a[side * 2 + 1], at + 1)};
                multiply_tiles(sums[side][eight], upper, lower, column);
            }
        }
    }
}

// Offers the sums of sixteen queries from `number` on with 32 vectors from `position` on, of which `word` tells which
// match. They pass through shared memory, `scores`, so that a lane has one vector. All lanes of one warp call it.
template <int METRIC>
__device__ inline void offer_sums(const Scan &p, const float (&sums)[4][4], float *scores, u32 number, u32 position,
                                  u32 word) {
    const u32 lane = threadIdx.x % WARP;
    __syncwarp();
#pragma unroll
    for (u32 at = 0; at < 8; ++at) {
        const u32 eight = at / 2, half = at % 2;
        float2 *pair = (float2 *)(scores + (lane / 4 + half * 8) * SCORE_LINE + eight * 8 + lane % 4 * 2);
        *pair = make_float2(sums[eight][half * 2], sums[eight][half * 2 + 1]);
    }
    __syncwarp();
    if (!(word >> lane & 1)) return;
    position += lane;
    const float2 row = ((const float2 *)p.measures)[position - p.base];
    const u32 known = number < p.query_count ? p.query_count - number : 0;
#pragma unroll 2
    for (u32 at = 0; at < 16; ++at) {
        if (at >= known) break;
        const u32 query = number + at;
        const float2 measure = ((const float2 *)p.query_measures)[query];
        const float dot = scores[at * SCORE_LINE + lane] * measure.y * row.y;
        const float rank = METRIC == L2 ? 2.0f * dot - measure.x - row.x : dot;
        if (rank >= ((const float *)p.limits)[query]) {
            const u32 slot = atomicAdd((u32 *)p.counts + query, 1u);
            if (slot < p.capacity) ((u64 *)p.lists)[(u64)query * p.capacity + slot] = key_of(rank, position);
        }
    }
}

template <int ENCODING, int METRIC> __device__ inline void many(const Scan &p) {
    __shared__ uint4 space[SLABS * (QUERY_TILE + TILE) * PIECES];
    uint4 *query_tile = space, *row_tile = space + SLABS * QUERY_TILE * PIECES;
    const u32 thread = threadIdx.x, lane = thread % WARP, warp = thread / WARP;
    const u32 end = p.first + p.count;
    const u32 first_query = blockIdx.x * QUERY_TILE;
    // What this thread loads of each tile: one piece of each 32 lines.
    const u32 line = thread / (SLABS * PIECES), piece = thread % (SLABS * PIECES);
    const uint4 *queries = (const uint4 *)((const __half *)p.halves + (u64)(first_query + line) * p.dim) + piece;
    const u32 warp_query = warp / 2 * 32, warp_row = warp % 2 * 32;
    for (u32 tile = blockIdx.y; tile * TILE < p.count; tile += gridDim.y) {
        const u32 start = p.first + tile * TILE;
        const u32 words[2] = {matching_word(p, start, end), matching_word(p, start + 32, end)};
        if ((words[0] | words[1]) == 0) continue;
        float sums[2][4][4] = {};
        for (u32 depth = 0; depth < p.dim; depth += SLABS * SLAB) {
            if (depth + piece * 8 < p.dim) {
#pragma unroll
                for (u32 at = 0; at < QUERY_TILE / 32; ++at) {
                    query_tile[place_in(QUERY_TILE, at * 32 + line, piece)] = queries[(at * 32 * p.dim + depth) / 8];
                }
#pragma unroll
                for (u32 half = 0; half < 2; ++half) {
                    uint4 loaded = make_uint4(0, 0, 0, 0);
                    if (words[half] >> line & 1) {
                        loaded = load_halves<ENCODING>(p, start + half * 32 + line, depth + piece * 8);
                    }
                    row_tile[place_in(TILE, half * 32 + line, piece)] = loaded;
                }
            }
            __syncthreads();
#pragma unroll
            for (u32 slab = 0; slab < SLABS; ++slab) {
                if (depth + slab * SLAB < p.dim) {
                    multiply_slab(sums, query_tile + (slab * QUERY_TILE + warp_query) * PIECES,
                                  row_tile + (slab * TILE + warp_row) * PIECES, lane ^ slab * PIECES);
                }
            }
            __syncthreads();
        }
        float *scores = (float *)space + warp * (16 * SCORE_LINE);
        const u32 number = first_query + warp_query, position = start + warp_row;
        offer_sums<METRIC>(p, sums[0], scores, number, position, words[warp_row / 32]);
        offer_sums<METRIC>(p, sums[1], scores, number + 16, position, words[warp_row / 32]);
        __syncthreads();
    }
}

// Cuts the list of a query to what may be among its best k, and raises its threshold; at the end (`room` above 0)
// copies what is left to the answers. One block a query.
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
        for (u32 at = thread; at < p.room; at += THREADS) ((u64 *)p.answers)[(u64)query * p.room + at] = 0;
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
            for (u32 at = thread; at < p.room; at += THREADS) {
                ((u64 *)p.answers)[(u64)query * p.room + at] = at < found ? keys[at] : 0;
            }
        }
        if (thread == 0 && p.room > 0 && found > p.room) ((u32 *)p.overflowed)[query] = 1;
        return;
    }
    const float2 margin = ((const float2 *)p.margins)[query];
    const float kth = rank_of(keys[p.k - 1]);
    float least = (kth < margin.y ? kth : margin.y) - margin.x;
    if (kth - margin.x < -margin.y) least = __uint_as_float(0xff800000u);
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
        for (u32 at = thread; at < p.room; at += THREADS) {
            ((u64 *)p.answers)[(u64)query * p.room + at] = at < low ? keys[at] : 0;
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

extern "C" __global__ void __launch_bounds__(THREADS, 3) many_f32_dot(Scan p) { many<F32, DOT>(p); }
extern "C" __global__ void __launch_bounds__(THREADS, 3) many_f32_l2(Scan p) { many<F32, L2>(p); }
extern "C" __global__ void __launch_bounds__(THREADS, 3) many_f16_dot(Scan p) { many<F16, DOT>(p); }
extern "C" __global__ void __launch_bounds__(THREADS, 3) many_f16_l2(Scan p) { many<F16, L2>(p); }
extern "C" __global__ void __launch_bounds__(THREADS, 3) many_i8_dot(Scan p) { many<I8, DOT>(p); }
extern "C" __global__ void __launch_bounds__(THREADS, 3) many_i8_l2(Scan p) { many<I8, L2>(p); }
extern "C" __global__ void __launch_bounds__(THREADS, 4) measure_f32(Scan p) { measure<F32>(p); }
extern "C" __global__ void __launch_bounds__(THREADS, 4) measure_f16(Scan p) { measure<F16>(p); }
extern "C" __global__ void __launch_bounds__(THREADS, 4) measure_i8(Scan p) { measure<I8>(p); }
