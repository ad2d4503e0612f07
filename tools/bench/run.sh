#!/usr/bin/env bash
# How fast programs are on the GPU of this machine, in one table a checkpoint: decode, prefill, batches, loading.
#
#   tools/bench/run.sh [--chip NAME] [--llama FOLDER] [--work FOLDER] [SHAPE/MIX | MODEL.gguf]...
#
# SHAPE/MIX is a checkpoint of noise (tools/make_noise_checkpoint.cpp); without any: the four shapes in q4_k_m, and the 1B in
# q8_0 and bf16. --llama: a folder with llama-bench and llama-batched-bench, run on the same files. --work: where checkpoints and
# programs go and stay; else they are removed. BATCHES, REPEATS, LIMIT (bytes a second that the GPU reads at most, 4.3e12 on an
# H200) and OPTIONS (more options of lanec compile) are taken from the environment.
set -euo pipefail
cd "$(dirname "$0")/../.."

chip=sm_90 llama='' work=''
while [ $# -gt 0 ]; do
  case $1 in
    --chip) chip=$2; shift 2 ;;
    --llama) llama=$2; shift 2 ;;
    --work) work=$2; shift 2 ;;
    -*) echo "run.sh: unknown option $1" >&2; exit 2 ;;
    *) break ;;
  esac
done
[ $# -gt 0 ] || set -- gemma3-270m/q4_k_m qwen2.5-0.5b/q4_k_m llama3.2-1b/q4_k_m llama3.2-1b/q8_0 llama3.2-1b/bf16 llama3.1-8b/q4_k_m
batches=${BATCHES-2 4 8 16} repeats=${REPEATS:-5} limit=${LIMIT:-4.3e12} options=${OPTIONS:-}
lanec=${LANEC:-build/tools/lanec} noise=${MAKE_NOISE_CHECKPOINT:-build/tools/make_noise_checkpoint}
if [ -z "$work" ]; then
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
fi
mkdir -p "$work"

# prompts COUNT LENGTH N: lines for --prompts, each of LENGTH ids of its own and N tokens to generate.
prompts() {
  awk -v count="$1" -v length_="$2" -v n="$3" 'BEGIN {
    for (i = 0; i < count; i++) {
      printf "{\"tokens\": ["
      for (t = 0; t < length_; t++) printf "%s%d", t ? ", " : "", 300 + (t * 37 + i * 11) % 200
      printf "], \"n\": %d}\n", n
    }
  }'
}
# values KEY: of each answer, as they come.
values() { grep -o "\"$1\": [0-9.]*" | awk '{ print $2 }'; }
median() { sort -g | awk '{ v[NR] = $1 } END { if (!NR) exit 1; print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }
# run PROGRAM COUNT LENGTH N KEY: the median of KEY over COUNT answers after one to warm up.
run() {
  prompts $(($2 + 1)) "$3" "$4" >"$work/prompts"
  "$1" --prompts "$work/prompts" 2>>"$work/log" >"$work/answers"
  tail -n +2 "$work/answers" | values "$5" | median
}
# compile NAME OPTIONS...: the program of $model.
compile() {
  local name=$1
  shift
  # shellcheck disable=SC2086
  "$lanec" build "$model" -o "$work/$name" --chip "$chip" $options "$@" 2>>"$work/log"
}
# row WHAT TOKENS_A_SECOND STEPS_A_SECOND
row() {
  awk -v what="$1" -v tokens="$2" -v steps="$3" -v bytes="$bytes" -v limit="$limit" 'BEGIN {
    printf "| %s | %.0f | %.0f | %.0f%% |\n", what, tokens, steps * bytes / 1e9, 100 * steps * bytes / limit }'
}

bench() {
  local plan launches batch rate
  plan=$("$lanec" compile "$model" --chip "$chip" --ctx 4608 $options --emit plan | head -1)
  launches=$(grep -o '[0-9]* launches' <<<"$plan")
  bytes=$("$lanec" compile "$model" --chip "$chip" --ctx 4608 $options --emit residence | awk '/^read by a step/ { print $5 }')
  printf '\n### %s\n\n%s a decode step, which reads %s bytes of matrices\n\n' "$name" "$launches" "$bytes"
  printf '| what | tok/s | GB/s | of the limit |\n|---|---|---|---|\n'
  compile single --ctx 4608
  rate=$(run "$work/single" "$repeats" 1 257 generation_tokens_per_second)
  row 'decode' "$rate" "$rate"
  rate=$(run "$work/single" "$repeats" 4096 129 generation_tokens_per_second)
  row 'decode at depth 4096' "$rate" "$rate"
  for length in 32 128 512 2048; do
    rate=$(run "$work/single" "$repeats" "$length" 1 prompt_tokens_per_second)
    printf '| prefill %s | %.0f | | |\n' "$length" "$rate"
  done
  for batch in $batches; do
    compile "batch$batch" --ctx 512 --prefill 1 --batch "$batch"
    prompts $((2 * batch)) 1 257 >"$work/prompts"
    rate=$("$work/batch$batch" --prompts "$work/prompts" 2>>"$work/log" | values generation_tokens_per_second | median)
    row "batch $batch" "$(awk -v r="$rate" -v b="$batch" 'BEGIN { print r * b }')" "$rate"
  done
  loading
}
# The second start, from a warm page cache.
loading() {
  local start end
  "$work/single" --tokens 300 -n 1 >"$work/answers" 2>&1
  start=$(date +%s.%N)
  "$work/single" --tokens 300 -n 1 --json 2>>"$work/log" >"$work/answers"
  end=$(date +%s.%N)
  printf '\nloaded in %s s; first token %.2f s after the start\n' "$(values load_seconds <"$work/answers")" \
    "$(awk -v a="$start" -v b="$end" 'BEGIN { print b - a }')"
}
peer() {
  printf '\n'
  "$llama/llama-bench" -m "$model" -fa 1 -ngl 99 -p 32,128,512,2048 -n 256 -r "$repeats" 2>>"$work/log"
  "$llama/llama-bench" -m "$model" -fa 1 -ngl 99 -p 0 -n 128 -d 4096 -r "$repeats" 2>>"$work/log"
  "$llama/llama-batched-bench" -m "$model" -fa on -ngl 99 -c 8192 -npp 1 -ntg 256 -npl "${batches// /,}" 2>>"$work/log"
}

nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null || true
for name; do
  model=$name
  if [[ $name != *.gguf ]]; then
    model=$work/${name//\//-}.gguf
    [ -e "$model" ] || "$noise" "${name%/*}" "${name#*/}" "$model"
  fi
  bench
  [ -z "$llama" ] || peer
done
