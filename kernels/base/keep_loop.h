// How far nvcc unrolls a loop that it would unroll further: not at all, or by four. A launch of a decode step runs its
// code once, so fetching more of it costs more than it saves.
#pragma once
#if defined(__CUDACC__)
#define LANE_KEEP_LOOP _Pragma("unroll 1")
#define LANE_UNROLL_4 _Pragma("unroll 4")
#else
#define LANE_KEEP_LOOP
#define LANE_UNROLL_4
#endif
