#!/usr/bin/env bash
# How far programs are from exact weights in float64: a table of every kind of activations and every cache, of decode steps and of
# chunks, for docs/numerics.md.
#
#   tools/kl_table.sh [OPTIONS] [MODEL...]                      builds the programs and runs them
#   tools/kl_table.sh --prepare DIR --chip sm_90 [OPTIONS] ...  builds into DIR; needs nvcc, but no GPU
#   DIR/kl_table.sh --run DIR                                   runs what lies in DIR; needs a GPU and its driver alone
#
#   --chip CHIP           what to build for (default: the GPU of this machine, else the host chip)
#   --activations LIST    some of f32,int8x2,int8     --kv LIST    some of f32,f16,q8_0
#   --prefill LIST        the largest chunks (default 1: decode steps alone), as in 1,32
#
# LANE_MODELS is a folder of checkpoints MODEL.gguf, LANE_GOLDENS one of golden cases, MODEL's in real/MODEL-*.json. Without
# names: gemma3-270m and qwen2.5-coder-0.5b. Each row is a program, fed each golden's prompt and continuation: token by token, or
# in chunks as large as fit, of whose every row the head makes logits. LANEC and
# COMPARE_GOLDEN name other builds of the two tools than those in build/. KL is of the golden's ids with the highest logits at a
# position, normalised over them on both sides; top-1 counts the positions at which both have the same greatest. TIE (default 0)
# leaves out those whose two highest are nearer than that.
set -euo pipefail

die() { echo "kl_table: $*" >&2; exit "${code:-5}"; }

# --- building: DIR/MODEL/ACTIVATIONS-KV-PREFILL/program ---

prepare() {
  local model activations kv prefill lanec=${LANEC:-build/tools/lanec} compare=${COMPARE_GOLDEN:-build/tests/support/compare_golden}
  : "${LANE_MODELS:?names a folder of checkpoints}"
  for tool in "$lanec" "$compare"; do
    [ -x "$tool" ] || die "no $tool; build it with cmake --build build --target lanec compare_golden"
  done
  mkdir -p "$dir/lib"
  cp tools/kl_table.sh "$compare" "$dir"
  # Libraries that a machine with a driver alone may lack; all but the C library, which goes with the kernel.
  ldd "$compare" | awk '/=> \// && !/lib(c|m|pthread|dl|rt)\.so/ { print $3 }' | xargs -r cp -L -t "$dir/lib"
  for model; do
    for activations in ${activations_list//,/ }; do
      for kv in ${kv_list//,/ }; do
        for prefill in ${prefill_list//,/ }; do
          build "$model" "$activations" "$kv" "$prefill"
        done
      done
    done
  done
}

build() {
  local folder=$dir/$1/$2-$3-$4
  mkdir -p "$folder"
  "$lanec" build "$LANE_MODELS/$1.gguf" -o "$folder/program" --chip "$chip" --activations "$2" --kv "$3" --ctx 256 \
    --prefill "$4" 2>"$dir/log" || { cat "$dir/log" >&2; die "$1 with $2, $3 and chunks of $4 does not build"; }
}

# --- running ---

# ids_of KEY CASE.json: 1,2,3
ids_of() { tr -d ' \n' <"$2" | grep -o "\"$1\":\[[0-9,]*\]" | grep -o '[0-9][0-9,]*'; }

# request GOLDEN PREFILL: a line of --prompts that feeds the prompt and all of the continuation but its last token.
request() {
  local prompt forced
  prompt=$(ids_of prompt_ids "$1") forced=$(ids_of greedy_ids "$1")
  if [ "$2" = 1 ]; then
    echo "{\"tokens\": [$prompt], \"force\": [$forced]}"
  else
    echo "{\"tokens\": [$prompt,${forced%,*}], \"n\": 0}"
  fi
}

# measure MODEL PROGRAM PREFILL: mean KL, max KL, positions that agree, over all goldens of the model.
measure() {
  local golden work i=0
  local goldens=("$LANE_GOLDENS/real/$1"-*.json)
  [ -f "${goldens[0]}" ] || die "no goldens $LANE_GOLDENS/real/$1-*.json"
  work=$(mktemp -d)
  for golden in "${goldens[@]}"; do
    request "$golden" "$3"
  done >"$work/prompts"
  "$2" -m "$LANE_MODELS/$1.gguf" --prompts "$work/prompts" --dump-logits "$work/logits" >"$work/answers" 2>"$work/log" ||
    die "$2: $(tail -n 1 "$work/log")"
  # Its status says whether all positions agree, which here is a column.
  for golden in "${goldens[@]}"; do
    "$dir/compare_golden" "$golden" "$work/logits.$i" --tie "${TIE:-0}" --difference 1e9 --mean-kl 1e9 || true
    i=$((i + 1))
  done >"$work/table"
  rm -rf "$work"/logits.*
  # A divergence that is no number, such as awk takes for 0, leaves its case out, so that cases are missing.
  awk -v cases="$i" 'function finite(x) { return x ~ /^[0-9]+([.][0-9]+)?(e[-+][0-9]+)?$/ }
                     $3 ~ /^[0-9]+\/[0-9]+$/ && finite($4) && finite($5) {
                       split($3, a, "/"); n += a[2]; agreed += a[1]; sum += a[2] * $4
                       if ($5 + 0 > most) most = $5 + 0
                       found++
                     }
                     END { if (found != cases) exit 1; printf "%.1e | %.1e | %d/%d\n", sum / n, most, agreed, n }' \
    "$work/table" || die "$1: $(cat "$work/table")"
  rm -r "$work"
}

run() {
  local program model activations kv prefill row form found=0
  : "${LANE_MODELS:?names a folder of checkpoints}" "${LANE_GOLDENS:?names a folder of golden cases}"
  export LD_LIBRARY_PATH=$dir/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  echo '| model | activations | cache | chunks | mean KL | max KL | top-1 |'
  echo '|---|---|---|---|---|---|---|'
  for model in "$dir"/*/; do
    model=$(basename "$model")
    for activations in f32 int8x2 int8; do
      for kv in f32 f16 q8_0; do
        for prefill in 1 2 4 8 16 32 64 128 256; do
          program=$dir/$model/$activations-$kv-$prefill/program
          [ -x "$program" ] || continue
          row=$(measure "$model" "$program" "$prefill")
          form=$([ "$prefill" = 1 ] && echo none || echo "$prefill")
          echo "| $model | \`$activations\` | \`$kv\` | $form | $row |"
          found=$((found + 1))
        done
      done
    done
  done
  [ "$found" -gt 0 ] || die "no program in $dir"
}

# --- the command line ---

mode=all dir='' chip='' activations_list=f32,int8x2,int8 kv_list=f32,f16,q8_0 prefill_list=1
while [ $# -gt 0 ]; do
  case $1 in
    --prepare | --run) mode=${1#--} dir=${2:?$1 takes a folder}; shift ;;
    --chip) chip=${2:?--chip takes a name, as in sm_90}; shift ;;
    --activations) activations_list=${2:?--activations takes a list, as in f32,int8}; shift ;;
    --kv) kv_list=${2:?--kv takes a list, as in f32,f16}; shift ;;
    --prefill) prefill_list=${2:?--prefill takes a list, as in 1,32}; shift ;;
    -*) sed -n '2,20s/^# \?//p' "$0" >&2; exit 2 ;;
    *) break ;;
  esac
  shift
done
[ $# -gt 0 ] || set -- gemma3-270m qwen2.5-coder-0.5b

if [ "$mode" = all ]; then
  dir=$(mktemp -d)
  trap 'rm -rf "$dir"' EXIT
fi
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
if [ "$mode" != run ]; then
  cd "$(dirname "$0")/.."
  if [ -z "$chip" ]; then
    capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1) || true
    chip=${capability:+sm_${capability/./}}
  fi
  chip=${chip:-host}
  prepare "$@"
fi
[ "$mode" = prepare ] || run
