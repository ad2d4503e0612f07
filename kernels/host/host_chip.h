// The host chip: the subset of CUDA that lanec's programs use, on the CPU, for a C++17 compiler. Include it after every
// standard header. Link Boost.Context and threads; build with -ffp-contract=off where results are compared to the bit.
//
// Settings, from the environment: HOST_CHIP_THREADS (OS threads), HOST_CHIP_STACK_KB (a fiber's stack),
// HOST_CHIP_MEMORY_BYTES (device memory). A kernel's fault that a GPU would answer with a hang or with garbage aborts.
#pragma once
#include "host/block.h"
#include "host/collectives.h"
#include "host/device_functions.h"
#include "host/pool.h"
#include "host/runtime.h"
#include "host/types.h"
