#!/usr/bin/env bash
# Builds lanec and runs every test that this machine can run. Needs no GPU; uses nvcc where there is one.
#
#   tools/test.sh [ctest arguments]        e.g. tools/test.sh -R Tokenizer
#
# LANE_GOLDENS (a folder of golden cases: tokenizers/, real/) and LANE_MODELS (a folder with gemma3-270m.gguf and
# qwen2.5-coder-0.5b.gguf) add tests that are skipped, and say so, without them.
set -euo pipefail
cd "$(dirname "$0")/.."

tools/packages.sh test
jobs=$(nproc)

echo "test: formatting" >&2
git ls-files '*.h' '*.cpp' '*.cuh' '*.cu' | xargs clang-format-14 --dry-run --Werror

echo "test: building with warnings as errors" >&2
cmake -S . -B build -G Ninja -DLANE_WERROR=ON -DLANE_TESTS=ON >&2
cmake --build build -j "$jobs" >&2

# Last, so that its closing lines are the last that count tests.
exec ctest --test-dir build --output-on-failure -j "$jobs" "$@"
