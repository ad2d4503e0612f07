#!/bin/sh
# Builds the kernel checks and benches with nvcc alone: tools/bench/build.sh [FOLDER], default build-bench. Flags for
# another GPU: GENCODE="arch=compute_100a,code=sm_100a".
set -e
root=$(cd "$(dirname "$0")/../.." && pwd)
out=${1:-$root/build-bench}
mkdir -p "$out"
for program in check_products check_tiled check_floats check_attention check_attention_chunk time_steps time_loading; do
  nvcc -O3 -std=c++20 -gencode "${GENCODE:-arch=compute_90a,code=sm_90a}" -I"$root/kernels" -I"$root/include" \
    -I"$root/tools/bench" "$root/tools/bench/$program.cu" "$root/src/tables/formats.cpp" "$root"/src/tables/decode_*.cpp \
    -o "$out/$program"
done
