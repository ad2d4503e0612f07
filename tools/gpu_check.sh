#!/usr/bin/env bash
# Everything that needs a GPU: the tests of kernels and schedules compiled as CUDA, and emitted programs against golden cases.
#
#   tools/gpu_check.sh [--chip sm_90]                  builds and runs all of it, on the GPU of this machine
#   tools/gpu_check.sh --prepare DIR [--chip sm_90]    builds into DIR; needs nvcc, but no GPU
#   DIR/gpu_check.sh --run DIR                         runs what lies in DIR; needs a GPU and its driver alone
#
# LANE_MODELS (a folder with gemma3-270m.gguf and qwen2.5-coder-0.5b.gguf) and LANE_GOLDENS (a folder of golden cases, their
# cases in real/) add the programs of real checkpoints; --run reads the checkpoints again, where LANE_MODELS then says. What
# is skipped is said. Exit status: 0 only if everything that ran is right and something did.
set -euo pipefail

tiny=(llama-q4_k_m qwen2-q4_k_m qwen3-f32 gemma3-q4_k_m)  # a golden case of each architecture
real=(gemma3-270m qwen2.5-coder-0.5b)

say() { echo "gpu_check: $*" >&2; }
die() { say "$*"; exit 5; }

# --- building ---

find_nvcc() {
  nvcc=${CUDACXX:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
  [ -x "$nvcc" ] || die "no nvcc; CUDACXX names one"
  export CUDACXX=$nvcc
}

# The chip's own instructions need its "a" architecture from Hopper on.
architecture_of() { local n=${1#sm_}; [ "$n" -ge 90 ] && echo "${n}a-real" || echo "$n-real"; }

build_tests() {
  cmake -S . -B build-gpu -G Ninja -DLANE_GPU_TESTS=ON -DCMAKE_CUDA_ARCHITECTURES="$(architecture_of "$chip")" >&2
  cmake --build build-gpu -j "$(nproc)" --target lanec lane_gpu_tests compare_golden make_checkpoint >&2
  mkdir -p "$dir"/{tests,golden/cases,golden/real,programs,lib}
  cp tools/gpu_check.sh build-gpu/tests/support/compare_golden "$dir"
  rm -rf "$dir/tests"/*
  find build-gpu/tests/gpu -maxdepth 1 -type f -executable -exec cp -t "$dir/tests" {} +
  strip "$dir"/tests/* "$dir/compare_golden"
  cp tests/golden/cases/*.json "$dir/golden/cases"
  # Libraries that a machine with a driver alone may lack; all but the C library, which goes with the kernel.
  ldd "$dir"/tests/* "$dir/compare_golden" | awk '/=> \// && !/lib(c|m|pthread|dl|rt)\.so/ { print $3 }' | sort -u |
    xargs cp -L -t "$dir/lib"
}

# A program NAME of a checkpoint, in the numerics that the goldens have. nvcc must have nothing to remark.
build_program() {
  mkdir -p "$dir/programs/$1"
  NVCC_APPEND_FLAGS='-Werror all-warnings' build-gpu/tools/lanec build "$2" -o "$dir/programs/$1/program" --chip "$chip" \
    --activations f32 --kv f32 >&2
}

# What tests/programs/CMakeLists.txt builds for the host chip, of which the tests of the forms need these: a program with
# every form, another, and both as one process; and one whose chunks have kernels for float weights.
build_forms() {
  local forms=$dir/forms program flags
  mkdir -p "$forms"
  build-gpu/tools/make_checkpoint tests/golden/cases/llama-f32.json "$forms/llama.gguf"
  build-gpu/tools/make_checkpoint tests/golden/cases/qwen2-f32.json "$forms/qwen2.gguf"
  flags=(--chip "$chip" --activations f32 --kv f32)
  build-gpu/tools/lanec build "$forms/llama.gguf" -o "$forms/llama" "${flags[@]}" --symbol-prefix llama_model --prefill 8 \
    --batch 3 >&2
  build-gpu/tools/lanec build "$forms/qwen2.gguf" -o "$forms/qwen2" "${flags[@]}" --prefill 1 >&2
  build-gpu/tools/make_checkpoint tests/golden/cases/llama-bf16.json "$forms/floats.gguf"
  build-gpu/tools/lanec build "$forms/floats.gguf" -o "$forms/floats" --chip "$chip" --kv f32 --prefill 16 >&2
  for program in llama qwen2; do
    "$nvcc" -std=c++17 -O3 -arch="$(architecture_of "$chip" | sed 's/^/sm_/; s/-real$//')" -DLANE_NO_MAIN -c \
      "$forms/$program.cu" -o "$forms/$program.o"
  done
  "$nvcc" tests/programs/two_models.c "$forms/llama.o" "$forms/qwen2.o" -o "$forms/both"
  rm "$forms"/*.o
}

build_programs() {
  local name
  for name in "${tiny[@]}"; do
    mkdir -p "$dir/programs/$name"
    build-gpu/tools/make_checkpoint "tests/golden/cases/$name.json" "$dir/programs/$name/model.gguf"
    build_program "$name" "$dir/programs/$name/model.gguf"
  done
  for name in "${real[@]}"; do
    if [ ! -f "${LANE_MODELS:-}/$name.gguf" ] || [ ! -d "${LANE_GOLDENS:-}/real" ]; then
      say "skipped: program of $name (LANE_MODELS or LANE_GOLDENS is not set)"
      continue
    fi
    cp "$LANE_GOLDENS/real/$name"-*.json "$dir/golden/real"
    build_program "$name" "$LANE_MODELS/$name.gguf"
  done
}

prepare() {
  cd "$(dirname "$0")/.."
  tools/packages.sh test
  find_nvcc
  build_tests
  build_forms
  build_programs
}

# --- running ---

passed=0 failed=0 skipped=0
count() { if [ "$1" = 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi; }
skip() { say "skipped: $*"; skipped=$((skipped + 1)); }

run_tests() {
  local test name status said
  for test in "$dir"/tests/*; do
    name=$(basename "$test") status=0
    "$test" --gtest_brief=1 >"$log/$name" 2>&1 || status=$?
    if ! said=$(grep -E 'PASSED|FAILED TEST' "$log/$name" | xargs); then
      said="FAILED: ended with status $status before its last test" status=1
    fi
    printf '%-24s %s\n' "$name" "$said"
    [ "$status" = 0 ] || grep -m 20 FAILED "$log/$name" || true
    count "$status"
  done
}

# ids_of KEY CASE.json: 1,2,3
ids_of() { tr -d ' \n' <"$2" | grep -o "\"$1\":\[[0-9,]*\]" | grep -o '[0-9][0-9,]*'; }

# One golden case of a program: logits along the golden's path, the same bits without a graph, its own choices.
run_case() {
  local program=$1 model=$2 golden=$3 tie=$4 status=0 out
  local prompt greedy
  prompt=$(ids_of prompt_ids "$golden") greedy=$(ids_of greedy_ids "$golden")
  out=$log/$(basename "$golden" .json)
  local -a command=("$program/program" -m "$model" --sidecar "$program/program.lane" --tokens "$prompt")
  if "${command[@]}" --force "$greedy" --dump-logits "$out.logits" >"$out.txt" 2>"$out.err" &&
    "${command[@]}" --force "$greedy" --dump-logits "$out.direct" --no-cuda-graphs >/dev/null 2>>"$out.err" &&
    "${command[@]}" -n "$(tr , '\n' <<<"$greedy" | wc -l)" --json >"$out.json" 2>>"$out.err"; then
    "$dir/compare_golden" "$golden" "$out.logits" --answer "$out.json" --tie "$tie" --difference "$5" || status=1
    cmp "$out.logits" "$out.direct" || status=1
  else
    printf '%-24s FAILED: %s\n' "$(basename "$golden" .json)" "$(tail -n 1 "$out.err")"
    status=1
  fi
  rm -f "$out.logits" "$out.direct"
  count "$status"
}

run_programs() {
  local name golden
  printf '%-24s %9s  %7s  %9s %9s  %7s  %s\n' case 'max |d|' top-1 'mean KL' 'max KL' greedy verdict
  for name in "${tiny[@]}"; do
    run_case "$dir/programs/$name" "$dir/programs/$name/model.gguf" "$dir/golden/cases/$name.json" 1e-3 1e-3
  done
  for name in "${real[@]}"; do
    if [ ! -d "$dir/programs/$name" ] || [ ! -f "${LANE_MODELS:-}/$name.gguf" ]; then
      skip "$name (no program, or no LANE_MODELS)"
      continue
    fi
    for golden in "$dir/golden/real/$name"-*.json; do
      run_case "$dir/programs/$name" "$LANE_MODELS/$name.gguf" "$golden" 1e-2 1e-2
    done
  done
}

# sanitize NAME PROGRAM...: a run under the memory checker.
sanitize() {
  local name=$1 status=0
  shift
  "$checker" --tool memcheck --error-exitcode 9 "$@" >"$log/memcheck-$name" 2>&1 || status=$?
  printf '%-24s %s\n' "memcheck $name" "$(grep 'ERROR SUMMARY' "$log/memcheck-$name" || tail -n 1 "$log/memcheck-$name")"
  count "$status"
}

# A few tokens of a program of each architecture, and of every form, under the memory checker.
run_sanitizer() {
  local name checker
  checker=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
  if [ ! -x "$checker" ]; then skip "compute-sanitizer (not installed)"; return; fi
  for name in "${tiny[@]}"; do
    sanitize "$name" "$dir/programs/$name/program" -m "$dir/programs/$name/model.gguf" \
      --sidecar "$dir/programs/$name/program.lane" --tokens 5,6,7 -n 4
  done
  printf '{"tokens": [%s], "n": 6}\n' 5,6,7,8,9,10,11,12,13,14,15 7 9,8 4,4,4,4 >"$log/prompts"
  sanitize forms "$dir/forms/llama" -m "$dir/forms/llama.gguf" --prompts "$log/prompts" --dump-logits "$log/logits"
  sanitize ahead "$dir/forms/llama" -m "$dir/forms/llama.gguf" --prompts "$log/prompts"
  rm -f "$log"/logits*
}

run() {
  dir=$(cd "$dir" && pwd)
  export LD_LIBRARY_PATH=$dir/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} LANE_TEST_DIR=$dir LANE_PROGRAMS=$dir/forms
  log=$(mktemp -d)
  nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null || say "no nvidia-smi"
  run_tests
  run_programs
  run_sanitizer
  say "logs: $log"
  echo "$passed passed, $failed failed, $skipped skipped"
  [ "$failed" = 0 ] && [ "$passed" -gt 0 ]
}

# --- the command line ---

mode=all dir='' chip=''
while [ $# -gt 0 ]; do
  case $1 in
    --prepare | --run) mode=${1#--} dir=${2:?$1 takes a folder}; shift ;;
    --chip) chip=${2:?--chip takes a name, as in sm_90}; shift ;;
    *) sed -n '2,12s/^# \?//p' "$0" >&2; exit 2 ;;
  esac
  shift
done

if [ "$mode" != run ] && [ -z "$chip" ]; then
  capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1) || true
  [ -n "$capability" ] || die "no GPU here to build for; --chip names one"
  chip=sm_${capability/./}
fi
case $mode in
  all) dir=${TMPDIR:-/tmp}/lane-gpu-check; prepare; run ;;
  prepare) mkdir -p "$dir"; dir=$(cd "$dir" && pwd); prepare ;;
  run) run ;;
esac
