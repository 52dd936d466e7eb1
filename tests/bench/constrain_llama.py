"""Measures llama.cpp's grammars as constrain_compare.py measures others: the same schema and texts.

usage: constrain_llama.py LIBLLAMA.so VOCABULARY.gguf json_schema_to_grammar.py

The last file is llama.cpp's own (examples/); the vocabulary is made by its convert_hf_to_gguf.py
with --vocab-only. Checked with llama.cpp 0.7.0; it has no Python binding, so that the few functions
are called as llama.h declares them.
"""

import ctypes
import itertools
import json
import pathlib
import subprocess
import sys
import tempfile
import time

from constrain_compare import SCHEMA, percentiles, texts

# Bytes of llama_model_params, or more: it is only passed on, but for one flag.
PARAMETER_BYTES = 1024
# Offset of its flag vocab_only in this version.
VOCAB_ONLY = 72
TEXTS = 40  # a mask takes milliseconds


class Parameters(ctypes.Structure):
  _fields_ = [("bytes", ctypes.c_ubyte * PARAMETER_BYTES)]


class Candidate(ctypes.Structure):
  _fields_ = [("id", ctypes.c_int32), ("logit", ctypes.c_float), ("p", ctypes.c_float)]


class Candidates(ctypes.Structure):
  _fields_ = [("data", ctypes.POINTER(Candidate)), ("size", ctypes.c_size_t),
              ("selected", ctypes.c_int64), ("sorted", ctypes.c_bool)]


LogCallback = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)


def open_library(path):
  lib = ctypes.CDLL(path)
  lib.llama_model_default_params.restype = Parameters
  lib.llama_model_load_from_file.argtypes = [ctypes.c_char_p, Parameters]
  for name in ("llama_model_load_from_file", "llama_model_get_vocab",
               "llama_sampler_init_grammar"):
    getattr(lib, name).restype = ctypes.c_void_p
  lib.llama_model_get_vocab.argtypes = [ctypes.c_void_p]
  lib.llama_vocab_n_tokens.argtypes = [ctypes.c_void_p]
  lib.llama_sampler_init_grammar.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p]
  lib.llama_sampler_apply.argtypes = [ctypes.c_void_p, ctypes.POINTER(Candidates)]
  lib.llama_sampler_accept.argtypes = [ctypes.c_void_p, ctypes.c_int32]
  lib.llama_sampler_reset.argtypes = [ctypes.c_void_p]
  lib.llama_tokenize.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int32,
                                 ctypes.POINTER(ctypes.c_int32), ctypes.c_int32, ctypes.c_bool,
                                 ctypes.c_bool]
  return lib


def grammar_of(converter):
  """Returns the schema in GBNF, without white space: our texts have none."""
  with tempfile.TemporaryDirectory() as folder:
    schema = pathlib.Path(folder, "schema.json")
    schema.write_text(json.dumps(SCHEMA), encoding="utf-8")
    made = subprocess.run([sys.executable, converter, str(schema)], stdout=subprocess.PIPE,
                          check=True, text=True).stdout
  return "\n".join('space ::= ""' if line.startswith("space ::=") else line
                   for line in made.splitlines())


def main(library, vocabulary, converter):
  lib = open_library(library)
  quiet = LogCallback(lambda level, text, user: None)
  lib.llama_log_set(quiet, None)
  lib.llama_backend_init()
  parameters = lib.llama_model_default_params()
  parameters.bytes[VOCAB_ONLY] = 1
  model = lib.llama_model_load_from_file(vocabulary.encode(), parameters)
  if not model:
    sys.exit(f"{vocabulary}: cannot be loaded")
  vocab = lib.llama_model_get_vocab(model)
  n = lib.llama_vocab_n_tokens(vocab)
  grammar = grammar_of(converter).encode()
  start = time.thread_time()
  sampler = lib.llama_sampler_init_grammar(vocab, grammar, b"root")
  print(f"compile    {(time.thread_time() - start) * 1e6:.0f}")
  if not sampler:
    sys.exit("the grammar is refused")
  fresh = (Candidate * n)(*((i, 0.0, 0.0) for i in range(n)))
  data = (Candidate * n)()
  candidates = Candidates(data, n, -1, False)
  ids = (ctypes.c_int32 * 4096)()
  mask, accept, refused = [], [], 0
  for text in itertools.islice(texts(), TEXTS):
    raw = text.encode()
    n_ids = lib.llama_tokenize(vocab, raw, len(raw), ids, len(ids), False, False)
    lib.llama_sampler_reset(sampler)
    for token in ids[:n_ids]:
      ctypes.memmove(data, fresh, ctypes.sizeof(fresh))
      times = [time.thread_time()]
      lib.llama_sampler_apply(sampler, ctypes.byref(candidates))
      times.append(time.thread_time())
      if data[token].logit == float("-inf"):
        refused += 1  # accepting it would end the program
        break
      lib.llama_sampler_accept(sampler, token)
      times.append(time.thread_time())
      mask.append(times[1] - times[0])
      accept.append(times[2] - times[1])
  print(f"mask       {percentiles(mask)}\naccept     {percentiles(accept)}")
  print(f"           of {TEXTS} texts {refused} are refused; {len(mask)} masks")


if __name__ == "__main__":
  if len(sys.argv) != 4:
    sys.exit(__doc__)
  main(*sys.argv[1:])
