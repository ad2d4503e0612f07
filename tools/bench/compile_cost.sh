#!/usr/bin/env bash
# What compiling costs: a row a checkpoint of noise, for docs/performance.md. Warm page cache; the decode step, chunks of 2 to 512
# rows and a batch of 8, for sm_90.
#
#   tools/bench/compile_cost.sh [--nvcc] [SHAPE/MIX]...
#
# --nvcc: times nvcc on each program too, as it is and with all of the machine's cores (-split-compile 0). /usr/bin/time (Debian: time) is needed. CPU seconds are user and system together: on a
# machine that does nothing else the elapsed time is at most that.
set -euo pipefail
cd "$(dirname "$0")/../.."
nvcc=''
if [ "${1:-}" = --nvcc ]; then nvcc=1; shift; fi
[ $# -gt 0 ] || set -- qwen2.5-0.5b/q4_k_m llama3.1-8b/q4_k_m
lanec=${LANEC:-build/tools/lanec} noise=${MAKE_NOISE_CHECKPOINT:-build/tools/make_noise_checkpoint}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# timed COMMAND...: elapsed | CPU | most memory, of a command that must succeed.
timed() {
  /usr/bin/time -o "$work/time" -f '%e %U %S %M' "$@"
  awk '{ printf "%.2f s | %.2f s | %.0f MB", $1, $2 + $3, $4 / 1000 }' "$work/time"
}
# Bytes of a program without the lines of its LOGOS texts.
program_bytes() { grep -vE '^//   (##?|Model|Let|Set|Return) ' "$1" | wc -c; }

echo '| checkpoint | lanec: elapsed | CPU | memory | program, bytes | of it beside LOGOS | nvcc: elapsed | CPU | memory | all cores: elapsed | CPU | memory |'
echo '|---|---|---|---|---|---|---|---|---|---|---|---|'
build() { timed nvcc -std=c++17 -O3 -gencode arch=compute_90a,code=sm_90a "$@" "$work/model.cu" -o "$work/model"; }
for name; do
  model=$work/model.gguf
  "$noise" "${name%/*}" "${name#*/}" "$model"
  cat "$model" >/dev/null
  cost=$(timed "$lanec" compile "$model" -o "$work/model.cu" --batch 8)
  built='| | | | |'
  if [ -n "$nvcc" ]; then built="$(build) | $(build -split-compile 0)"; fi
  echo "| $name | $cost | $(stat -c %s "$work/model.cu") | $(program_bytes "$work/model.cu") | $built |"
done
