// Tensor cores of the emulator.
#pragma once
#include "cuda_fp16.h"

// The sum with every term cut off to 24 bits of the largest.
inline float cut_sum(const double (&terms)[17]) {
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

// What layout.cuh says of it, in the same way.
#define MULTIPLY_TILES
inline void multiply_tiles(float (&sums)[4], const unsigned (&a)[2], const unsigned (&b)[2], const unsigned (&column)[2]) {
    struct Given { const unsigned *rows[2], *column; } given{{a, b}, column};
    void **lanes = emulate::lanes();
    const unsigned lane = threadIdx.x % emulate::LANES;
    lanes[lane] = &given;
    emulate::wait_for_warp();
    const auto half = [](unsigned both, unsigned at) { return (double)__half2float({(unsigned short)(both >> 16 * at)}); };
    for (unsigned i = 0; i < 4; ++i) {
        double terms[17];
        for (unsigned k = 0; k < 16; ++k) {
            const unsigned lane_of = k % 8 / 2, word = k / 8;
            const auto *row = (const Given *)lanes[lane / 4 * 4 + lane_of];
            const auto *query = (const Given *)lanes[(lane % 4 * 2 + i % 2) * 4 + lane_of];
            terms[k] = half(row->rows[i / 2][word], k % 2) * half(query->column[word], k % 2);
        }
        terms[16] = sums[i];
        sums[i] = cut_sum(terms);
    }
    emulate::wait_for_warp();
}
