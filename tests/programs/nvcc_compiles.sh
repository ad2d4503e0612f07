#!/usr/bin/env bash
# usage: nvcc_compiles.sh MAKE_CHECKPOINT LANEC CHIP CASE.json OPTIONS...
# lanec's program for CHIP, with the forms that OPTIONS ask for, is built by nvcc (CUDACXX names it) without a warning.
set -euo pipefail
make_checkpoint=$1 lanec=$2 chip=$3 case=$4
shift 4
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$make_checkpoint" "$case" "$folder/model.gguf"
"$lanec" build "$folder/model.gguf" -o "$folder/model" --chip "$chip" --ctx 128 "$@" 2>&1 | tee "$folder/log"
if grep -q warning "$folder/log"; then exit 1; fi
[ -x "$folder/model" ]
