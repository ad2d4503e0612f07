#!/usr/bin/env python3
"""Makes a golden case: the recipe of a small checkpoint, and what llama.cpp computes with it.

usage: make_case.py NAME --from CASE --edit EDIT.json [--make-checkpoint PROGRAM] [--seed N]
       make_case.py NAME --check [--make-checkpoint PROGRAM]

Writes tests/golden/cases/NAME.json and its line of digests.txt; --check compares an existing case with llama.cpp anew.
NAME ends in the type of its matrices, "olmoe-f32". EDIT.json says what the checkpoint has that CASE has not:

  architecture  general.architecture; keys of the case move with it
  keys          {key without "<architecture>.": [type, value]}, or null to drop the key
  drop          [tensor]; "blk.*." stands for every block, here and below
  add           {tensor: {"shape": [rows, columns], "type": "F32", "mean": 0, "sd": 1 / sqrt(columns)}}; all but the shape
                may be left out

The values of a tensor follow from its name and the seed (tests/support/recipe.h). Needs the Python packages
llama-cpp-python, gguf and numpy, and build/tools/make_checkpoint. llama.cpp's CPU code takes GELU from a table of halves;
a case with GELU needs one built without GGML_GELU_FP16 (ggml/src/ggml-cpu/vec.h), as it is off by up to 5e-3 else.
"""
import argparse, ctypes, json, math, pathlib, subprocess, sys, tempfile

import llama_cpp
import numpy as np
from gguf.quants import dequantize

from gguf_copy import copy_gguf

CASES = pathlib.Path(__file__).parent / "cases"
ORACLE = ("llama.cpp (llama-cpp-python %s), CPU, weights dequantized to F32, F32 KV cache, no flash attention, "
          "one token at a time" % llama_cpp.__version__)
PROMPT, GENERATED = 21, 23  # positions fed
BOUND = 2e-4


# ---- The recipe

def blocks_of(recipe):
    return next(value for key, _, value in recipe["metadata"] if key.endswith(".block_count"))


def each_block(name, recipe):
    if not name.startswith("blk.*."):
        return [name]
    return [name.replace("*", str(block), 1) for block in range(blocks_of(recipe))]


def move_keys(recipe, architecture):
    before = recipe["architecture"] + "."
    for entry in recipe["metadata"]:
        if entry[0].startswith(before):
            entry[0] = architecture + "." + entry[0][len(before):]
    recipe["architecture"] = architecture


def set_keys(recipe, keys):
    for key, said in keys.items():
        full = f"{recipe['architecture']}.{key}"
        recipe["metadata"] = [entry for entry in recipe["metadata"] if entry[0] != full]
        if said is not None:
            recipe["metadata"].append([full, *said])


def tensor(name, shape, type="F32", mean=0.0, sd=None):
    deviation = 1 / math.sqrt(shape[-1]) if sd is None else sd
    return {"name": name, "shape": shape, "type": type, "fill": {"kind": "uniform", "mean": mean, "sd": deviation}}


def edited(recipe, edit, seed):
    move_keys(recipe, edit.get("architecture", recipe["architecture"]))
    set_keys(recipe, edit.get("keys", {}))
    dropped = {name for pattern in edit.get("drop", []) for name in each_block(pattern, recipe)}
    recipe["tensors"] = [t for t in recipe["tensors"] if t["name"] not in dropped]
    for pattern, what in edit.get("add", {}).items():
        recipe["tensors"] += [tensor(name, **what) for name in each_block(pattern, recipe)]
    if seed is not None:
        recipe["seed"] = seed
    return recipe


# ---- llama.cpp

def write_exact(path, out):
    """The same checkpoint with every tensor dequantized to F32: llama.cpp's products of quantized weights are not."""
    def exact(t):
        shape = [int(n) for n in reversed(t.shape)]
        return dequantize(t.data, t.tensor_type).astype(np.float32).reshape(shape)

    copy_gguf(path, out, tensor=exact)


def logits_of(path, prompt, generated):
    """The ids fed and chosen, greedily behind the prompt, and a row of logits for each position fed."""
    said = []
    listen = llama_cpp.llama_log_callback(lambda level, text, data: said.append(text.decode(errors="replace")))
    llama_cpp.llama_log_set(listen, ctypes.c_void_p(0))
    llama_cpp.llama_backend_init()
    model_params = llama_cpp.llama_model_default_params()
    model_params.n_gpu_layers = 0
    model = llama_cpp.llama_model_load_from_file(str(path).encode(), model_params)
    if not model:
        sys.exit("llama.cpp refuses it: " + "".join(line for line in said if "error" in line))
    params = llama_cpp.llama_context_default_params()
    params.n_ctx = params.n_batch = params.n_ubatch = 64
    params.flash_attn_type = llama_cpp.LLAMA_FLASH_ATTN_TYPE_DISABLED
    params.type_k = params.type_v = llama_cpp.GGML_TYPE_F32
    context = llama_cpp.llama_init_from_model(model, params)
    tokens = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(model))
    ids, rows = list(prompt), []
    for position in range(len(prompt) + generated):
        if llama_cpp.llama_decode(context, llama_cpp.llama_batch_get_one((llama_cpp.llama_token * 1)(ids[position]), 1)):
            sys.exit(f"llama.cpp fails at position {position}")
        row = np.ctypeslib.as_array(llama_cpp.llama_get_logits_ith(context, -1), (tokens,)).astype(np.float64)
        rows.append(row)
        if len(ids) == position + 1:
            ids.append(int(row.argmax()))
    return ids[len(prompt):], np.array(rows)


# ---- The case

def digits(values):
    return [float(f"{value:.6g}") for value in values]


def top(row):
    best = np.argsort(-row)[:8]
    log_sum = row.max() + np.log(np.exp(row - row.max()).sum())
    return {"ids": [int(i) for i in best], "logits": digits(row[best]), "logsumexp": float(f"{log_sum:.7g}")}


def computed(recipe, prompt, make_checkpoint):
    """(greedy ids, logits, digest of the checkpoint)"""
    with tempfile.TemporaryDirectory() as folder:
        case, model, exact = (pathlib.Path(folder) / name for name in ("case.json", "model.gguf", "exact.gguf"))
        case.write_text(json.dumps({"checkpoint": recipe}))
        made = subprocess.run([make_checkpoint, case, model, "--digest"], check=True, capture_output=True, text=True)
        write_exact(model, exact)
        return *logits_of(exact, prompt, GENERATED), made.stdout.strip()


def save(name, recipe, prompt, greedy, rows, digest):
    full = {str(position): digits(rows[position]) for position in (0, len(prompt) - 1, len(rows) - 1)}
    case = {"case": name, "oracle": ORACLE, "checkpoint": recipe, "prompt_ids": prompt, "greedy_ids": greedy,
            "top8": [top(row) for row in rows], "full_logits": full}
    (CASES / f"{name}.json").write_text(json.dumps(case, separators=(",", ":"), ensure_ascii=False))
    lines = dict(line.split() for line in (CASES / "digests.txt").read_text().splitlines())
    lines[name] = digest
    (CASES / "digests.txt").write_text("".join(f"{case} {lines[case]}\n" for case in sorted(lines)))


def check(name, make_checkpoint):
    case = json.loads((CASES / f"{name}.json").read_text())
    greedy, rows, _ = computed(case["checkpoint"], case["prompt_ids"], make_checkpoint)
    worst = max(abs(rows[i][id] - logit) for i, row in enumerate(case["top8"])
                for id, logit in zip(row["ids"], row["logits"]))
    print(f"{name}: logits differ by {worst:.1e} at most, greedy ids {'agree' if greedy == case['greedy_ids'] else 'differ'}")
    return worst <= BOUND and greedy == case["greedy_ids"]


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("name")
    parser.add_argument("--from", dest="base")
    parser.add_argument("--edit", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--make-checkpoint", default="build/tools/make_checkpoint")
    parser.add_argument("--seed", type=int)
    arguments = parser.parse_args()
    if arguments.check:
        sys.exit(0 if check(arguments.name, arguments.make_checkpoint) else 1)
    if not arguments.base or not arguments.edit:
        parser.error("--from and --edit")
    base = json.loads((CASES / f"{arguments.base}.json").read_text())
    recipe = edited(base["checkpoint"], json.loads(arguments.edit.read_text()), arguments.seed)
    prompt = base["prompt_ids"][:PROMPT]
    greedy, rows, digest = computed(recipe, prompt, arguments.make_checkpoint)
    save(arguments.name, recipe, prompt, greedy, rows, digest)
    print(f"{arguments.name}: logits deviate by {rows.std():.2f}; {len(set(greedy))} of {len(greedy)} greedy ids are distinct")


if __name__ == "__main__":
    main()
