// All kernels as one unit: what NVRTC compiles to PTX, and the host's compiler to the emulator.
#include "few.cu"
#include "many.cu"
