// Halves of the emulator, by the processor's own conversions.
#pragma once
#include "emulate.h"
#include <immintrin.h>

struct __half { unsigned short bits; };
struct alignas(4) __half2 { __half x, y; };

inline float __half2float(__half x) { return _cvtsh_ss(x.bits); }
inline __half __float2half_rn(float x) { return {(unsigned short)_cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT)}; }
inline float2 __half22float2(__half2 x) { return {__half2float(x.x), __half2float(x.y)}; }
inline __half2 __floats2half2_rn(float x, float y) { return {__float2half_rn(x), __float2half_rn(y)}; }
inline __half2 __hsub2(__half2 x, __half2 y) {
    return {__float2half_rn(__half2float(x.x) - __half2float(y.x)), __float2half_rn(__half2float(x.y) - __half2float(y.y))};
}
