// CUDA's errors on their way up: nothing here prints, exits or throws, since a program may be a library in another's.
#pragma once
#include "base/device.cuh"

/// In a function that returns cudaError_t: leaves it with the error of `expression`, if there is one.
#define LANE_TRY(expression)                          \
  do {                                                \
    const cudaError_t lane_error = (expression);      \
    if (lane_error != cudaSuccess) return lane_error; \
  } while (0)
