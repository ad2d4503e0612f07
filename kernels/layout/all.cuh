// Every repacked layout.
#pragma once
#include "layout/floats.cuh"
#include "layout/q4_k.cuh"
#include "layout/q5_0.cuh"
#include "layout/q6_k.cuh"
#include "layout/q8_0.cuh"
