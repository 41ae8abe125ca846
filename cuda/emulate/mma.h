// Tensor-core tiles of the emulator: element i of lane l is element l * 8 + i of the tile in row-major order.
#pragma once
#include "cuda_fp16.h"

namespace nvcuda::wmma {

struct matrix_a {};
struct matrix_b {};
struct accumulator {};
struct row_major {};
struct col_major {};
enum layout_t { mem_row_major };

template <typename Use, int M, int N, int K, typename T, typename Layout = row_major> struct fragment {
    T x[8];
};

template <typename F> void fill_fragment(F &to, float value) {
    for (auto &x : to.x) x = value;
}

inline unsigned lane() { return threadIdx.x % emulate::LANES; }

template <typename T> void load_matrix_sync(fragment<matrix_a, 16, 16, 16, T, row_major> &to, const T *from, unsigned line) {
    for (unsigned i = 0; i < 8; ++i) to.x[i] = from[(lane() * 8 + i) / 16 * line + (lane() * 8 + i) % 16];
    emulate::wait_for_warp();
}

template <typename T> void load_matrix_sync(fragment<matrix_b, 16, 16, 16, T, col_major> &to, const T *from, unsigned line) {
    for (unsigned i = 0; i < 8; ++i) to.x[i] = from[(lane() * 8 + i) % 16 * line + (lane() * 8 + i) / 16];
    emulate::wait_for_warp();
}

inline void store_matrix_sync(float *to, const fragment<accumulator, 16, 16, 16, float> &from, unsigned line, layout_t) {
    for (unsigned i = 0; i < 8; ++i) to[(lane() * 8 + i) / 16 * line + (lane() * 8 + i) % 16] = from.x[i];
    emulate::wait_for_warp();
}

// The sum with every term cut off to 24 bits of the largest.
template <unsigned COUNT> float cut_sum(const double (&terms)[COUNT]) {
    double largest = 0;
    for (double term : terms) largest = std::fmax(largest, std::fabs(term));
    if (largest == 0) return 0;
    uint64_t bits;
    memcpy(&bits, &largest, 8);
    const int exponent = (int)(bits >> 52) - 1023 - 23;
    const uint64_t unit_bits = (uint64_t)(exponent + 1023) << 52, inverse_bits = (uint64_t)(1023 - exponent) << 52;
    double unit, inverse;
    memcpy(&unit, &unit_bits, 8);
    memcpy(&inverse, &inverse_bits, 8);
    int64_t sum = 0;
    for (double term : terms) sum += (int64_t)(term * inverse);
    const double exact = (double)sum * unit;
    float cut = (float)exact;
    if (std::fabs((double)cut) > std::fabs(exact)) cut = std::nextafterf(cut, 0);
    return cut;
}

template <typename A, typename B, typename C> void mma_sync(C &to, const A &a, const B &b, const C &before) {
    struct Given { const A *a; const B *b; } given{&a, &b};
    void **lanes = emulate::lanes();
    lanes[lane()] = &given;
    emulate::wait_for_warp();
    for (unsigned i = 0; i < 8; ++i) {
        const unsigned row = (lane() * 8 + i) / 16, column = (lane() * 8 + i) % 16;
        double terms[17];
        for (unsigned k = 0; k < 16; ++k) {
            const unsigned in_a = row * 16 + k, in_b = k * 16 + column;
            terms[k] = (double)__half2float(((Given *)lanes[in_a / 8])->a->x[in_a % 8])
                     * (double)__half2float(((Given *)lanes[in_b / 8])->b->x[in_b % 8]);
        }
        terms[16] = before.x[i];
        to.x[i] = cut_sum(terms);
    }
    emulate::wait_for_warp();
}

} // namespace nvcuda::wmma

// What layout.cuh says of it, in the same way.
#define MULTIPLY_TILES
inline void multiply_tiles(float (&sums)[4], unsigned a, unsigned b, unsigned column) {
    struct Given { unsigned rows[2], column; } given{{a, b}, column};
    void **lanes = emulate::lanes();
    const unsigned lane = threadIdx.x % emulate::LANES;
    lanes[lane] = &given;
    emulate::wait_for_warp();
    const auto half = [](unsigned both, unsigned at) { return (double)__half2float({(unsigned short)(both >> 16 * at)}); };
    for (unsigned i = 0; i < 4; ++i) {
        double terms[9];
        for (unsigned k = 0; k < 8; ++k) {
            const auto *row = (const Given *)lanes[lane / 4 * 4 + k / 2];
            const auto *query = (const Given *)lanes[(lane % 4 * 2 + i % 2) * 4 + k / 2];
            terms[k] = half(row->rows[i / 2], k % 2) * half(query->column, k % 2);
        }
        terms[8] = sums[i];
        sums[i] = nvcuda::wmma::cut_sum(terms);
    }
    emulate::wait_for_warp();
}
