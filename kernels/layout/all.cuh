// Every repacked layout.
#pragma once
#include "layout/floats.cuh"
#include "layout/iq4_nl.cuh"
#include "layout/iq4_xs.cuh"
#include "layout/q3_k.cuh"
#include "layout/q4_0.cuh"
#include "layout/q4_1.cuh"
#include "layout/q4_k.cuh"
#include "layout/q5_0.cuh"
#include "layout/q5_1.cuh"
#include "layout/q5_k.cuh"
#include "layout/q6_k.cuh"
#include "layout/q8_0.cuh"
