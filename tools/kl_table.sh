#!/usr/bin/env bash
# How far programs are from exact weights in float64: a table of every kind of activations and every cache, for docs/numerics.md.
#
#   tools/kl_table.sh [--chip host] [MODEL...]
#
# LANE_MODELS is a folder of checkpoints MODEL.gguf, LANE_GOLDENS one of golden cases, MODEL's in real/MODEL-*.json. Without names:
# gemma3-270m and qwen2.5-coder-0.5b. Each row is a program, built here and fed each golden's prompt and continuation; LANEC and
# COMPARE_GOLDEN name other builds of the two tools than those in build/. KL is of the golden's ids with the highest logits at a position,
# normalised over them on both sides; top-1 counts the positions at which both have the same greatest.
set -euo pipefail
cd "$(dirname "$0")/.."

chip=host
if [ "${1:-}" = --chip ]; then chip=${2:?--chip takes a name, as in sm_90}; shift 2; fi
[ $# -gt 0 ] || set -- gemma3-270m qwen2.5-coder-0.5b
: "${LANE_MODELS:?names a folder of checkpoints}" "${LANE_GOLDENS:?names a folder of golden cases}"
lanec=${LANEC:-build/tools/lanec} compare=${COMPARE_GOLDEN:-build/tests/support/compare_golden}
for tool in "$lanec" "$compare"; do
  [ -x "$tool" ] || { echo "kl_table: no $tool; build it with cmake --build build --target lanec compare_golden" >&2; exit 5; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# ids_of KEY CASE.json: 1,2,3
ids_of() { tr -d ' \n' <"$2" | grep -o "\"$1\":\[[0-9,]*\]" | grep -o '[0-9][0-9,]*'; }

# One line: positions, agreed, mean KL, max KL, of all goldens of a model.
measure() {
  local program=$1 golden i=0
  shift
  for golden; do
    echo "{\"tokens\": [$(ids_of prompt_ids "$golden")], \"force\": [$(ids_of greedy_ids "$golden")]}"
  done >"$work/prompts"
  "$program" --prompts "$work/prompts" --dump-logits "$work/logits" >"$work/answers"
  for golden; do
    "$compare" "$golden" "$work/logits.$i" --tie 0 --difference 1e9 --mean-kl 1e9 || true
    i=$((i + 1))
  done | awk '{ split($3, a, "/"); n += a[2]; agreed += a[1]; sum += a[2] * $4; if ($5 > most) most = $5 }
              END { if (!n) exit 1; printf "%.1e | %.1e | %d/%d\n", sum / n, most, agreed, n }'
}

echo '| model | activations | cache | mean KL | max KL | top-1 |'
echo '|---|---|---|---|---|---|'
for model; do
  goldens=("$LANE_GOLDENS/real/$model"-*.json)
  for activations in f32 int8x2 int8; do
    for kv in f32 f16 q8_0; do
      "$lanec" build "$LANE_MODELS/$model.gguf" -o "$work/model" --chip "$chip" --activations "$activations" --kv "$kv" \
        --ctx 256 --prefill 1 2>"$work/log" || { cat "$work/log" >&2; exit 5; }
      echo "| $model | \`$activations\` | \`$kv\` | $(measure "$work/model" "${goldens[@]}") |"
    done
  done
done
