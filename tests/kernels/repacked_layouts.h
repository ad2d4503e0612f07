// The repacked layouts, for the lists of kernels that are made of each.
#pragma once
#include "kernels/registered.h"
#include "layout/all.cuh"

namespace lane::test {

/// Calls `visit.operator()<Layout, Words>(name)` for each: Words as by default, floats or two int8 words.
template <class Visit>
void for_each_repacked_layout(Visit visit) {
  visit.template operator()<program::RepackedBF16, 0>("BF16");
  visit.template operator()<program::RepackedF16, 0>("F16");
  visit.template operator()<program::RepackedQ3_K, 2>("Q3_K");
  visit.template operator()<program::RepackedQ4_0, 2>("Q4_0");
  visit.template operator()<program::RepackedQ4_1, 2>("Q4_1");
  visit.template operator()<program::RepackedQ4_K, 2>("Q4_K");
  visit.template operator()<program::RepackedQ5_0, 2>("Q5_0");
  visit.template operator()<program::RepackedQ5_1, 2>("Q5_1");
  visit.template operator()<program::RepackedQ5_K, 2>("Q5_K");
  visit.template operator()<program::RepackedQ6_K, 2>("Q6_K");
  visit.template operator()<program::RepackedQ8_0, 2>("Q8_0");
  visit.template operator()<program::RepackedIQ4_NL, 2>("IQ4_NL");
  visit.template operator()<program::RepackedIQ4_XS, 2>("IQ4_XS");
}

}  // namespace lane::test
