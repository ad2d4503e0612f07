// The choices of a block of tokens by expert, so that an expert's weights are read once for all tokens that chose it.
//
// note [expert groups]
// Choice i is the (i % count)-th of token i / count. A group is an expert that somebody chose, groups in the order of
// experts; group g has the choices order[first[g]], …, order[first[g + 1] - 1], in their own order. There is room for
// min(choices, experts) groups; those behind the last are empty. A product computes each choice by itself, so its bits
// are those of a lone token.
#pragma once
#include "base/launch.cuh"
#include "base/warp.cuh"

namespace LANE_NAMESPACE {

/// What stands before an expert: its groups and their choices; the same in every lane.
struct GroupsBefore {
  int groups, choices;
};
__device__ inline GroupsBefore groups_before(const int* chosen_by, int expert) {
  GroupsBefore before{0, 0};
  for (int e = lane_index(); e < expert; e += kWarpLanes) {
    before.groups += chosen_by[e] > 0;
    before.choices += chosen_by[e];
  }
  before.groups = warp_sum(before.groups);
  before.choices = warp_sum(before.choices);
  return before;
}

/// A warp writes the choices of `expert`, one after the other, to `order`.
__device__ inline void gather_choices(int* order, const int* ids, int choices, int expert) {
  const unsigned lower_lanes = (1u << lane_index()) - 1;
  for (int first = 0; first < choices; first += kWarpLanes) {
    const int i = first + lane_index();
    const bool mine = i < choices && ids[i] == expert;
    const unsigned votes = __ballot_sync(LANE_FULL_WARP, mine);
    if (mine) order[__popc(votes & lower_lanes)] = i;
    order += __popc(votes);
  }
}

/// `order` takes `choices`, `expert` `groups` and `first` groups + 1 integers; the expert of an empty group is 0. Grid:
/// any number of blocks of any warps, which share the experts; dynamic shared memory for an integer an expert.
__global__ void group_choices(int* order, int* expert, int* first, const int* ids, int choices, int experts,
                              int groups) {
  follow_producer();
  LANE_DYNAMIC_SHARED(int, chosen_by);
  const int threads = static_cast<int>(blockDim.x), warps = threads / kWarpLanes;
  for (int e = threadIdx.x; e < experts; e += threads) chosen_by[e] = 0;
  __syncthreads();
  for (int i = threadIdx.x; i < choices; i += threads)
    atomicAdd(chosen_by + ids[i], 1);  // a sum of integers: any order
  __syncthreads();
  const int first_warp = static_cast<int>(blockIdx.x) * warps + warp_index();
  for (int e = first_warp; e < experts; e += static_cast<int>(gridDim.x) * warps) {
    if (chosen_by[e] == 0) continue;
    const GroupsBefore before = groups_before(chosen_by, e);
    if (lane_index() == 0) {
      expert[before.groups] = e;
      first[before.groups] = before.choices;
    }
    gather_choices(order + before.choices, ids, choices, e);
  }
  if (first_warp != 0) return;
  const GroupsBefore all = groups_before(chosen_by, experts);
  for (int g = all.groups + lane_index(); g <= groups; g += kWarpLanes) {
    first[g] = choices;
    if (g < groups) expert[g] = 0;
  }
}

}  // namespace LANE_NAMESPACE
