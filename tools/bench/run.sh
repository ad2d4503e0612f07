#!/usr/bin/env bash
# How fast programs are on the GPU of this machine, a table a checkpoint: decode, prefill, batches, loading.
#
#   tools/bench/run.sh [--chip NAME] [--llama FOLDER] [SHAPE/MIX | MODEL.gguf]...
#   tools/bench/run.sh --prepare DIR [--chip NAME] [SHAPE/MIX | MODEL.gguf]...  builds programs into DIR; needs no GPU
#   DIR/run.sh --run DIR [--llama FOLDER] [SHAPE/MIX | MODEL.gguf]...  runs them; needs a GPU and its driver alone
#
# SHAPE/MIX is a checkpoint of noise (tools/make_noise_checkpoint.cpp), made again where it is run; without any: the four
# shapes in q4_k_m, and the 1B in q8_0 and bf16; for --run: all that DIR holds. --llama: a folder with llama-bench and
# llama-batched-bench, run on the same files. The environment has more: REPEATS (5) a figure, of which the median counts;
# DEPTHS (4096), PROMPTS (32 128 512 2048) and BATCHES (2 4 8 16); LIMIT, the bytes a second that the GPU reads at most
# (4.3e12: an H200); OPTIONS of lanec compile, NOISE of make_noise_checkpoint; JOBS, programs built at a time; LANEC and
# MAKE_NOISE_CHECKPOINT, where those are.
set -euo pipefail

say() { echo "run.sh: $*" >&2; }
die() { say "$*"; exit 5; }

repeats=${REPEATS:-5} limit=${LIMIT:-4.3e12}

# --- building ---

# fact KEY VALUE: for whoever runs the programs.
fact() { printf '%s=%q\n' "$1" "$2" >>"$folder/facts"; }

# stage CONTEXT NAME [OPTIONS...]: a stage's text, of programs with that context.
stage() {
  local context=$1 name=$2
  shift 2
  # shellcheck disable=SC2086
  "$lanec" compile "$model" --chip "$chip" $options --ctx "$context" --emit "$name" "$@"
}
# Reads all of its input, as does whatever is behind a pipe here: a pipe that closes early is an error.
launches_of() { sed -n '1s/.* \([0-9]*\) launches.*/\1/p'; }
state_at() { stage "$1" residence | awk '/^carried state/ { print $3 }'; }

# Bytes of cache that a step reads for each position ahead of it; nothing where a layer looks back no further than a window.
cache_bytes() {
  if stage 512 spec | grep '^  window' >/dev/null; then return; fi
  echo $((($(state_at 512) - $(state_at 256)) / 256))
}

# build PROGRAM OPTIONS...: one more of the programs that are built side by side.
build() {
  local program=$1
  shift
  programs+=("$folder/$program")
  while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n || true; done
  # shellcheck disable=SC2086
  "$lanec" build "$model" -o "$folder/$program" --chip "$chip" $options "$@" >>"$folder/log" 2>&1 &
}

prepare_one() {
  local name=$1 batch
  folder=$dir/${name//\//-} model=$name
  rm -rf "$folder"
  mkdir "$folder"
  if [[ $name != *.gguf ]]; then
    model=$folder/model.gguf
    # shellcheck disable=SC2086
    "$noise" "${name%/*}" "${name#*/}" "$model" ${NOISE:-}
  fi
  fact name "$name"
  fact noise_options "${NOISE:-}"
  fact depths "$depths"
  fact batches "$batches"
  fact lengths "$lengths"
  fact launches "$(stage 512 plan | launches_of)"
  fact step_bytes "$(stage 512 residence | awk '/^read by a step/ { print $5 }')"
  fact cache_bytes "$(cache_bytes)"
  build single --ctx "$context"
  for batch in $batches; do
    fact "launches_$batch" "$(stage 512 plan --batch "$batch" --prefill 1 --form "b$batch" | launches_of)"
    build "batch$batch" --ctx 512 --prefill 1 --batch "$batch"
  done
}

# What runs without this repository: the programs' script, the writer of noise and its libraries, the bounds of loading.
prepare_tools() {
  local source=tools/bench/time_loading.cu
  mkdir -p "$dir/lib"
  cp tools/bench/run.sh "$noise" "$dir"
  strip "$dir/make_noise_checkpoint"
  ldd "$noise" | awk '/=> \// && !/lib(c|m|pthread|dl|rt)\.so/ { print $3 }' | xargs -r cp -L -t "$dir/lib"
  if [ "$chip" = host ]; then
    c++ -std=c++17 -O2 -x c++ -Ikernels "$source" -o "$dir/time_loading" -pthread -lboost_context
  else
    "${CUDACXX:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}" -std=c++17 -O2 -Ikernels "$source" -o "$dir/time_loading"
  fi
}

prepare() {
  cd "$(dirname "${BASH_SOURCE[0]}")/../.."
  lanec=${LANEC:-build/tools/lanec} noise=${MAKE_NOISE_CHECKPOINT:-build/tools/make_noise_checkpoint}
  batches=${BATCHES-2 4 8 16} depths=${DEPTHS-4096} lengths=${PROMPTS-32 128 512 2048} options=${OPTIONS:-}
  jobs=${JOBS:-$(nproc)} context=512 programs=()
  local length depth name program
  for length in $lengths; do context=$((length > context ? length : context)); done
  for depth in $depths; do context=$((depth + 512 > context ? depth + 512 : context)); done
  prepare_tools
  for name; do prepare_one "$name"; done
  wait
  for program in "${programs[@]}"; do [ -x "$program" ] || die "$program was not built; see the log beside it"; done
  rm -f "$dir"/*/*.cu
}

# --- running ---

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
median() {
  sort -g | awk '{ v[NR] = $1 } END { if (!NR) exit 1
    print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}
# values KEY: of each answer, as they come.
values() { grep -o "\"$1\": [0-9.]*" | awk '{ print $2 }'; }

# ask PROGRAM: the answers to $work/prompts, each as long as was asked for.
ask() {
  local asked whole
  asked=$(grep -c . "$work/prompts")
  "$folder/$1" -m "$model" --prompts "$work/prompts" >"$work/answers" 2>"$work/log" ||
    die "$1 of $name: $(tail -n 1 "$work/log")"
  whole=$(grep -c '"finish_reason": "length"' "$work/answers" || true)
  [ "$whole" = "$asked" ] || die "$1 of $name: $whole of $asked answers are as long as was asked for"
}
# rate KEY FIRST COUNT: the median of KEY over COUNT answers from answer FIRST on.
rate() { awk -v from="$2" -v count="$3" 'NR >= from && NR < from + count' "$work/answers" | values "$1" | median; }

# row WHAT TOKENS_A_SECOND STEPS_A_SECOND LAUNCHES BYTES_A_STEP; without bytes: what is read is not known.
row() {
  awk -v what="$1" -v tokens="$2" -v steps="$3" -v launches="$4" -v bytes="$5" -v limit="$limit" 'BEGIN {
    printf "| %s | %.0f | %s", what, tokens, launches ? launches " | " : "| "
    if (bytes) printf "%.0f | %.0f%% |\n", steps * bytes / 1e9, 100 * steps * bytes / limit
    else print "| |" }'
}

# One process answers all of these, so that it loads once: REPEATS prompts of a kind, after one to warm up.
run_single() {
  local length depth first=1 each=$((repeats + 1)) figure
  {
    prompts "$each" 1 257
    for length in $lengths; do prompts "$each" "$length" 1; done
    for depth in $depths; do prompts "$each" "$depth" 129; done
  } >"$work/prompts"
  ask single
  figure=$(rate generation_tokens_per_second 2 "$repeats")
  row decode "$figure" "$figure" "$launches" "$step_bytes"
  for length in $lengths; do
    first=$((first + each))
    row "prompt of $length" "$(rate prompt_tokens_per_second $((first + 1)) "$repeats")" 0 '' ''
  done
  for depth in $depths; do
    first=$((first + each))
    figure=$(rate generation_tokens_per_second $((first + 1)) "$repeats")
    # Half of the 129 tokens lie, on average, between a step and the prompt.
    row "decode at depth $depth" "$figure" "$figure" "$launches" "${cache_bytes:+$((step_bytes + cache_bytes * (depth + 64)))}"
  done
}
run_batch() {
  local figure said=launches_$1
  prompts $(($1 * (repeats + 1))) 1 129 >"$work/prompts"
  ask "batch$1"
  figure=$(rate generation_tokens_per_second $(($1 + 1)) $(($1 * repeats)))
  row "batch $1" "$(awk -v r="$figure" -v b="$1" 'BEGIN { print r * b }')" "$figure" "${!said}" "$step_bytes"
}

# From a process's start to its first answer, of one token; the checkpoint is in the page cache.
first_token() {
  local start=$EPOCHREALTIME
  "$folder/single" -m "$model" --prompts "$work/prompts" 2>/dev/null | {
    IFS= read -r answer
    awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.4f ", b - a }'
    values load_seconds <<<"$answer"
  }
}
# taken COLUMN: the median of what first_token said, but for its first line.
taken() { tail -n +2 "$work/loads" | cut -d ' ' -f "$1" | median; }
# bound KEY: the median of what time_loading says of it.
bound() { awk -v key="$1" '$1 == key { print $2 }' "$work/bounds" | median; }
run_loading() {
  local i
  prompts 1 1 1 >"$work/prompts"
  cat "$model" >/dev/null
  for ((i = 0; i <= repeats; i++)); do first_token; done >"$work/loads"
  for ((i = 0; i < repeats; i++)); do "$dir/time_loading"; done >"$work/bounds"
  awk -v total="$(taken 1)" -v load="$(taken 2)" -v bytes="$(stat -L -c %s "$model")" \
    -v link="$(bound link_bytes_per_second)" -v context="$(bound context_seconds)" 'BEGIN {
      printf "\nThe first token comes %.2f s after the start, %.2f s of it loading. ", total, load
      printf "1.5 times the file'\''s %.3f GB over a link of %.1f GB/s, a bare context'\''s %.2f s and 0.3 s: %.2f s\n",
        bytes / 1e9, link / 1e9, context, 1.5 * bytes / link + context + 0.3 }'
}

peer() {
  printf '\n'
  # shellcheck disable=SC2129
  "$llama/llama-bench" -m "$model" -fa 1 -ngl 99 -p "${lengths// /,}" -n 256 -r "$repeats" 2>>"$work/log"
  "$llama/llama-bench" -m "$model" -fa 1 -ngl 99 -p 0 -n 128 -d "${depths// /,}" -r "$repeats" 2>>"$work/log"
  "$llama/llama-batched-bench" -m "$model" -fa on -ngl 99 -c 8192 -npp 1 -ntg 128 -npl "${batches// /,}" 2>>"$work/log"
}

run_one() {
  local batch cache_bytes='' launches='' step_bytes='' name='' noise_options='' depths='' batches='' lengths=''
  # shellcheck disable=SC1091
  . "$folder/facts"
  model=$name
  if [[ $name != *.gguf ]]; then
    model=$folder/model.gguf
    # shellcheck disable=SC2086
    [ -f "$model" ] || "$dir/make_noise_checkpoint" "${name%/*}" "${name#*/}" "$model" $noise_options
  fi
  printf '\n### %s\n\n' "$name"
  awk -v b="$step_bytes" -v c="$cache_bytes" 'BEGIN {
    printf "A decode step reads %.3f GB of matrices", b / 1e9
    if (c) printf " and %d bytes for each position ahead of it", c
    print "." }'
  printf '\n| what | tok/s | launches a step | GB/s | of the limit |\n|---|---|---|---|---|\n'
  run_single
  for batch in $batches; do run_batch "$batch"; done
  run_loading
  [ -z "$llama" ] || peer
  [ "$mode" = all ] || rm -f "$folder/model.gguf"
}

run() {
  local name
  export LD_LIBRARY_PATH=$dir/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  work=$(mktemp -d)
  nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null || say "no nvidia-smi"
  if [ $# = 0 ]; then
    for folder in "$dir"/*/; do [ ! -f "$folder/facts" ] || run_one; done
    return
  fi
  for name; do
    folder=$dir/${name//\//-}
    [ -f "$folder/facts" ] || die "$dir holds no programs of $name"
    run_one
  done
}

# --- the command line ---

mode=all dir='' chip=sm_90 llama=''
while [ $# -gt 0 ]; do
  case $1 in
    --prepare | --run) mode=${1#--} dir=${2:?$1 takes a folder}; shift 2 ;;
    --chip) chip=${2:?--chip takes a name, as in sm_90}; shift 2 ;;
    --llama) llama=${2:?--llama takes a folder}; shift 2 ;;
    -*) say "unknown option $1"; exit 2 ;;
    *) break ;;
  esac
done
if [ "$mode" != run ] && [ $# = 0 ]; then
  set -- gemma3-270m/q4_k_m qwen2.5-0.5b/q4_k_m llama3.2-1b/q4_k_m llama3.2-1b/q8_0 llama3.2-1b/bf16 llama3.1-8b/q4_k_m
fi
work='' temporary=''
trap 'rm -rf ${work:+"$work"} ${temporary:+"$temporary"}' EXIT
if [ "$mode" = all ]; then dir=$(mktemp -d) temporary=$dir; fi
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
case $mode in
  all) prepare "$@"; run "$@" ;;
  prepare) prepare "$@"; rm -f "$dir"/*/model.gguf ;;
  run) run "$@" ;;
esac
