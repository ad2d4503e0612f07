#!/usr/bin/env python3
"""Compares the ids of random texts with llama.cpp's.

usage: compare_tokens.py MODEL.gguf [--pre NAME...] [--texts N] [--seed N] [--bytes] [--lanec PROGRAM]

MODEL needs its vocabulary alone. --pre puts other pre-tokenizers on it, one after the other. --bytes draws bytes instead
of text: many are no UTF-8. Prints each text whose ids differ, and exits with 1 where one does. Needs the Python packages
llama-cpp-python and gguf, and build/tools/lanec.
"""
import argparse, ctypes, json, pathlib, random, subprocess, sys, tempfile

import llama_cpp

from gguf_copy import copy_gguf

WORDS = ["'s", "'S", "'LL", "'re", "'d", "\u2019s", "it's", "don'T", "camelCase", "ABC", "12", "34567", "//", "/\n"]
SPACES = [" ", "  ", "\n", "\r\n", "\t", " \n ", "\n\n", "\r", "\u3000", "\xa0", "\x0b", "\x85", "\u2028"]
# First and last code points of what texts are drawn from: scripts with and without case, marks, symbols, private use.
RANGES = [(0x20, 0x7E), (0xA0, 0x17F), (0x1C5, 0x1CC), (0x2B0, 0x36F), (0x370, 0x4FF), (0x590, 0x6FF), (0x900, 0x97F),
          (0xE00, 0xE7F), (0x1E00, 0x1FFF), (0x2000, 0x23FF), (0x2460, 0x24FF), (0x3000, 0x30FF), (0x4E00, 0x9FFF),
          (0xAC00, 0xD7A3), (0xE000, 0xE0FF), (0xFE00, 0xFE0F), (0xFF00, 0xFFEF), (0x10400, 0x1044F), (0x1D400, 0x1D7FF),
          (0x1F300, 0x1FAFF)]


def stretch(rng):
    first, last = rng.choice(RANGES)
    return "".join(chr(rng.randint(first, last)) for _ in range(rng.randrange(1, 5)))


def random_text(rng):
    draws = [lambda: rng.choice(WORDS), lambda: rng.choice(SPACES), lambda: stretch(rng), lambda: stretch(rng)]
    return "".join(rng.choice(draws)() for _ in range(rng.randrange(1, 14))).encode()


def random_bytes(rng):
    return bytes(rng.randrange(rng.choice([0x80, 0x100])) for _ in range(rng.randrange(1, 60)))


def peer_vocabulary(model):
    params = llama_cpp.llama_model_default_params()
    params.vocab_only = True
    loaded = llama_cpp.llama_model_load_from_file(str(model).encode(), params)
    return llama_cpp.llama_model_get_vocab(loaded) if loaded else sys.exit(f"llama.cpp refuses {model}")


def peer_ids(vocabulary, text):
    room = 4 * len(text) + 16
    ids = (llama_cpp.llama_token * room)()
    return list(ids[:llama_cpp.llama_tokenize(vocabulary, text, len(text), ids, room, False, True)])


def lanec_ids(lanec, model, text):
    words = [lanec, "tokenize", str(model), "--no-bos", "-f", "-"]
    return json.loads(subprocess.run(words, input=text, check=True, capture_output=True).stdout)


def compare(arguments, model, name):
    vocabulary = peer_vocabulary(model)
    rng = random.Random(arguments.seed)
    differing = 0
    for _ in range(arguments.texts):
        text = random_bytes(rng) if arguments.bytes else random_text(rng)
        peer, ours = peer_ids(vocabulary, text), lanec_ids(arguments.lanec, model, text)
        if peer != ours:
            differing += 1
            print(f"{text!r}\n  llama.cpp {peer}\n  lanec     {ours}")
    print(f"{name}: {differing} of {arguments.texts} texts differ")
    return differing == 0


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--pre", nargs="*", default=[])
    parser.add_argument("--texts", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--bytes", action="store_true")
    parser.add_argument("--lanec", default="build/tools/lanec")
    arguments = parser.parse_args()
    quiet = llama_cpp.llama_log_callback(lambda level, text, data: None)
    llama_cpp.llama_log_set(quiet, ctypes.c_void_p(0))
    llama_cpp.llama_backend_init()
    if not arguments.pre:
        sys.exit(0 if compare(arguments, arguments.model, arguments.model.name) else 1)
    agree = True
    with tempfile.TemporaryDirectory() as folder:
        for pre in arguments.pre:
            model = pathlib.Path(folder) / f"{pre}.gguf"
            copy_gguf(arguments.model, model, {"tokenizer.ggml.pre": pre})
            agree = compare(arguments, model, pre) and agree
    sys.exit(0 if agree else 1)


if __name__ == "__main__":
    main()
