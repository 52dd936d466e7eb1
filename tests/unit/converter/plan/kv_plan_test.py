#!/usr/bin/env python3
"""arenite-convert --plan: the bytes of the KV cache from only a config.json.

usage: kv_plan_test.py CONVERTER CHECKPOINT_FOLDER ARENITE GOLDENS
"""

import json
import math
import os
import struct
import subprocess
import sys
import tempfile
import unittest

CONVERTER, CHECKPOINT, ARENITE, GOLDENS = sys.argv[1:5]

# name: layers, hidden, heads, bytes of f32 KV for 2048 tokens
PYTHIA = {
    "70m": (6, 512, 8, 50331648),
    "160m": (12, 768, 12, 150994944),
    "410m": (24, 1024, 16, 402653184),
    "1b": (16, 2048, 8, 536870912),
    "1.4b": (24, 2048, 16, 805306368),
    "2.8b": (32, 2560, 32, 1342177280),
    "6.9b": (32, 4096, 32, 2147483648),
    "12b": (36, 5120, 40, 3019898880),
}


def neox(layers, hidden, heads):
  return {
      "architectures": ["GPTNeoXForCausalLM"], "model_type": "gpt_neox", "hidden_act": "gelu",
      "hidden_size": hidden, "intermediate_size": 4 * hidden, "num_hidden_layers": layers,
      "num_attention_heads": heads, "max_position_embeddings": 2048, "rotary_pct": 0.25,
      "rotary_emb_base": 10000, "use_parallel_residual": True, "vocab_size": 50304,
      "layer_norm_eps": 1e-05, "tie_word_embeddings": False, "torch_dtype": "float16",
  }


# A decoder of a family not in the table.
PLAIN = {"model_type": "unheard_of", "num_hidden_layers": 4, "num_attention_heads": 8,
         "num_key_value_heads": 2, "hidden_size": 128}


class KvPlan(unittest.TestCase):

  def setUp(self):
    self.folder = tempfile.TemporaryDirectory()
    self.addCleanup(self.folder.cleanup)
    self.config = os.path.join(self.folder.name, "config.json")

  def run_plan(self, config, *arguments):
    with open(self.config, "w") as file:
      file.write(config if isinstance(config, str) else json.dumps(config))
    return subprocess.run([CONVERTER, "--plan", self.config, *arguments], capture_output=True,
                          text=True, timeout=60)

  def plan(self, config, *arguments):
    run = self.run_plan(config, *arguments, "--json")
    self.assertEqual((run.returncode, run.stderr), (0, ""))
    return json.loads(run.stdout)

  def groups(self, config, *arguments):
    keys = ("layers", "kv_heads", "head_dim", "window", "chunk")
    plan = self.plan(config, *arguments)
    return [tuple(group[key] for key in keys) for group in plan["groups"]]

  def assert_error(self, config, *words, arguments=(), code=1):
    run = self.run_plan(config, *arguments)
    self.assertEqual((run.returncode, run.stdout), (code, ""), run.stderr)
    self.assertTrue(run.stderr.startswith("arenite-convert: error: "), run.stderr)
    self.assertEqual(run.stderr.count("\n"), 1)
    for word in words:
      self.assertIn(word, run.stderr)

  def test_pythia(self):
    for name, (layers, hidden, heads, wanted) in PYTHIA.items():
      with self.subTest(name):
        config = neox(layers, hidden, heads)
        plan = self.plan(config, "--context", "2048", "--kv", "f32")
        self.assertEqual(plan["keys_and_values"], wanted)
        self.assertEqual(plan["scales"], 0)
        # Whole pages; only the region is padded.
        self.assertEqual(plan["groups"][0]["reserved"], wanted)
        self.assertEqual(plan["reserved"], wanted + 16384)
        self.assertEqual(self.plan(config, "--context", "2048", "--kv", "f16")["keys_and_values"],
                         wanted // 2)
        int8 = self.plan(config, "--context", "2048", "--kv", "int8")
        self.assertEqual(int8["keys_and_values"], wanted // 4)
        self.assertEqual(int8["scales"], 2 * layers * 2048 * heads * 4)
        table = self.run_plan(config, "--context", "2048", "--kv", "f32").stdout
        self.assertRegex(table, rf"(?m)^keys and values +{wanted} ")

  def test_a_context_that_is_no_whole_number_of_pages(self):
    plan = self.plan(PLAIN, "--context", "33", "--kv", "f32")
    self.assertEqual(plan["keys_and_values"], 2 * 4 * 33 * 2 * 16 * 4)
    self.assertEqual(plan["groups"][0]["reserved"], 2 * 4 * 64 * 2 * 16 * 4)

  def test_a_session_reserves_the_same(self):
    bundle = os.path.join(self.folder.name, "model.arn")
    with open(os.path.join(CHECKPOINT, "config.json")) as file:
      config = json.load(file)
    subprocess.run([CONVERTER, CHECKPOINT, "-o", bundle, "--quiet"], check=True, timeout=120)
    types = ["full_attention", "sliding_attention"] * 3
    windowed = dict(config, use_sliding_window=True, sliding_window=100, layer_types=types)
    with_window = os.path.join(self.folder.name, "window.arn")
    changed = os.path.join(self.folder.name, "changed.json")
    with open(changed, "w") as file:
      json.dump(windowed, file)
    subprocess.run([CONVERTER, CHECKPOINT, "-o", with_window, "--config", changed, "--quiet"],
                   check=True, timeout=120)
    for used, path in ((config, bundle), (windowed, with_window)):
      for kv in ("f32", "f16", "int8", "int4", "int2"):
        for context, sequences in (("1", "1"), ("40", "2"), ("500", "1"), ("500", "3")):
          with self.subTest(kv=kv, context=context, sequences=sequences, path=path):
            size = ("--context", context, "--kv", kv, "--sequences", sequences)
            planned = self.plan(used, *size)
            session = json.loads(subprocess.run(
                [ARENITE, "plan", path, *size, "--json"], check=True, capture_output=True,
                timeout=60).stdout)
            self.assertEqual(planned["reserved"], session["kv"])
            self.assertEqual(planned["prefill_chunk"], session["prefill_chunk"])
            for mine, its in zip(planned["groups"], session["groups"], strict=True):
              for key in ("layers", "kv_heads", "head_dim", "window", "chunk", "pages",
                          "page_bytes"):
                self.assertEqual(mine[key], its[key], key)
    self.assertEqual(self.plan(config)["context"], json.loads(subprocess.run(
        [ARENITE, "plan", bundle, "--json"], check=True, capture_output=True).stdout)["context"])

  def test_latent_layers_keep_keys_only(self):
    with open(os.path.join(GOLDENS, "latent_attention.json")) as file:
      golden = json.load(file)
    config = golden["config"]
    checkpoint = os.path.join(self.folder.name, "checkpoint")
    os.mkdir(checkpoint)
    with open(os.path.join(checkpoint, "config.json"), "w") as file:
      json.dump(config, file)
    header, end = {}, 0
    for name, shape in golden["tensors"].items():
      size = 4 * math.prod(shape)
      header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [end, end + size]}
      end += size
    text = json.dumps(header).encode()
    with open(os.path.join(checkpoint, "model.safetensors"), "wb") as file:
      file.write(struct.pack("<Q", len(text)) + text + bytes(end))
    bundle = os.path.join(self.folder.name, "latent.arn")
    subprocess.run([CONVERTER, checkpoint, "-o", bundle, "--quiet", "--no-tokenizer"], check=True,
                   timeout=120)
    for kv in ("f32", "f16", "int8", "int4", "int2"):
      with self.subTest(kv=kv):
        size = ("--context", "256", "--kv", kv, "--sequences", "2")
        planned = self.plan(config, *size)
        session = json.loads(subprocess.run([ARENITE, "plan", bundle, *size, "--json"], check=True,
                                            capture_output=True, timeout=60).stdout)
        self.assertEqual(planned["reserved"], session["kv"])
        for mine, its in zip(planned["groups"], session["groups"], strict=True):
          for key in ("layers", "kv_heads", "head_dim", "pages", "page_bytes"):
            self.assertEqual(mine[key], its[key], key)
    latent = config["kv_lora_rank"] + config["qk_rope_head_dim"]
    self.assertEqual(self.plan(config, "--context", "64", "--kv", "f32")["keys_and_values"],
                     config["num_hidden_layers"] * 64 * latent * 4)

  def test_recurrent_states_are_counted(self):
    mamba = {"architectures": ["MambaForCausalLM"], "model_type": "mamba", "hidden_size": 64,
             "num_hidden_layers": 3, "state_size": 16, "conv_kernel": 4, "expand": 2,
             "vocab_size": 61}
    state = 3 * 128 * (3 + 16) * 4  # layers * width * (taps - 1 + states) * f32
    for sequences in (1, 5):
      plan = self.plan(mamba, "--sequences", str(sequences))
      self.assertEqual(plan["groups"], [])
      self.assertEqual(plan["keys_and_values"], 0)
      self.assertEqual(plan["state_bytes"], sequences * state)
      self.assertEqual(plan["states"][0]["slots"], 2 * sequences)
      self.assertEqual(plan["states"][0]["reserved"], 2 * sequences * state)
      self.assertGreaterEqual(plan["reserved"], 2 * sequences * state)
    table = self.run_plan(mamba).stdout
    self.assertRegex(table, rf"(?m)^states +{state} ")
    self.assertNotIn("keys and values  ", table)

  def test_sequences_multiply(self):
    one = self.plan(PLAIN, "--context", "64")
    many = self.plan(PLAIN, "--context", "64", "--sequences", "225")
    self.assertEqual(many["keys_and_values"], 225 * one["keys_and_values"])
    self.assertEqual(many["scales"], 225 * one["scales"])

  def test_int4_counts_what_is_quantised(self):
    # 1024 tokens: 128 recent ones stay int8, 896 are 14 quantised pages.
    plan = self.plan(PLAIN, "--context", "1024", "--kv", "int4")
    self.assertEqual(plan["groups"][0]["quantised_pages"], 14)
    self.assertEqual(plan["keys_and_values"], 2 * 4 * 2 * (128 * 16 + 896 * 16 // 2))

  def test_a_picture_of_the_cache_alone(self):
    svg = os.path.join(self.folder.name, "cache.svg")
    self.assertEqual(self.run_plan(PLAIN, "--kv", "int2", "--svg", svg).returncode, 0)
    with open(svg) as file:
      drawn = file.read()
    self.assertTrue(drawn.startswith("<?xml"))
    self.assertIn('id="region-kv"', drawn)
    self.assertNotIn('id="region-io"', drawn)
    self.assertIn("quantised pages of 32 tokens", drawn)

  def test_other_names_of_the_same_keys(self):
    gpt = {"model_type": "gpt2", "n_layer": 12, "n_head": 12, "n_embd": 768, "n_positions": 1024}
    self.assertEqual(self.groups(gpt), [(12, 12, 64, 0, 0)])
    plan = self.plan(gpt, "--context", "2048")
    self.assertIn("1024", plan["notes"][0])
    self.assertEqual(self.plan(gpt)["context"], 1024)
    self.assertEqual(self.groups(dict(gpt, model_type="gpt_bigcode", multi_query=True)),
                     [(12, 1, 64, 0, 0)])
    self.assertEqual(self.groups(dict(PLAIN, head_dim=48)), [(4, 2, 48, 0, 0)])
    self.assertEqual(self.groups({"model_type": "outer", "text_config": PLAIN}),
                     [(4, 2, 16, 0, 0)])

  def test_windows(self):
    window = dict(PLAIN, sliding_window=64)
    self.assertEqual(self.groups(window), [(4, 2, 16, 64, 0)])
    self.assertEqual(self.groups(dict(window, use_sliding_window=False)), [(4, 2, 16, 0, 0)])
    self.assertEqual(self.groups(dict(window, max_window_layers=3)),
                     [(3, 2, 16, 0, 0), (1, 2, 16, 64, 0)])
    self.assertEqual(self.groups(dict(window, sliding_window_pattern=2)),
                     [(2, 2, 16, 64, 0), (2, 2, 16, 0, 0)])
    self.assertEqual(self.groups(dict(window, model_type="gemma2")),
                     [(2, 2, 256, 64, 0), (2, 2, 256, 0, 0)])
    types = ["sliding_attention", "full_attention", "full_attention", "sliding_attention"]
    self.assertEqual(self.groups(dict(window, layer_types=types)),
                     [(2, 2, 16, 64, 0), (2, 2, 16, 0, 0)])
    types[2] = "linear_attention"
    plan = self.plan(dict(window, layer_types=types), "--context", "1000", "--kv", "int8")
    self.assertIn("1 layer keeps no keys and values", plan["notes"][0])
    slides, sees_all = plan["groups"]
    self.assertEqual((slides["tokens"], slides["pages"]), (64, 7))  # ceil((63 + 127) / 32) + 1
    self.assertEqual((sees_all["tokens"], sees_all["pages"]), (1000, 32))
    self.assertEqual(slides["keys_and_values"], 2 * 2 * 64 * 2 * 16)
    self.assertEqual(slides["scales"], 2 * 2 * 64 * 2 * 4)
    self.assertEqual(plan["keys_and_values"],
                     slides["keys_and_values"] + sees_all["keys_and_values"])

  def test_chunks_and_shared_layers(self):
    chunked = dict(PLAIN, attention_chunk_size=256)
    self.assertEqual(self.groups(chunked), [(3, 2, 16, 0, 256), (1, 2, 16, 0, 0)])
    self.assertEqual(self.groups(dict(chunked, no_rope_layers=[0, 1, 1, 0])),
                     [(2, 2, 16, 0, 0), (2, 2, 16, 0, 256)])
    self.assertEqual(self.groups(dict(PLAIN, num_kv_shared_layers=1)), [(3, 2, 16, 0, 0)])

  def test_families_that_are_converted_have_their_own_rules(self):
    qwen = dict(PLAIN, architectures=["Qwen2ForCausalLM"], sliding_window=64, max_window_layers=1)
    self.assertEqual(self.groups(qwen), [(4, 2, 16, 0, 0)])
    self.assertEqual(self.groups(dict(qwen, use_sliding_window=True)),
                     [(1, 2, 16, 0, 0), (3, 2, 16, 64, 0)])
    qwen = dict(PLAIN, architectures=["Qwen3ForCausalLM"])
    self.assertEqual(self.groups(qwen), [(4, 2, 128, 0, 0)])

  def test_errors_name_file_key_and_value(self):
    def without(key):
      return {k: v for k, v in PLAIN.items() if k != key}
    self.assert_error(without("num_hidden_layers"), self.config, "num_hidden_layers", "nothing")
    self.assert_error(without("num_attention_heads"), self.config, "num_attention_heads", "nothing")
    self.assert_error(without("hidden_size"), self.config, "hidden_size", "nothing")
    for key, value, shown in (("num_hidden_layers", 0, "0"), ("num_hidden_layers", "six", '"six"'),
                              ("num_hidden_layers", 5000, "5000"), ("hidden_size", -3, "-3"),
                              ("num_key_value_heads", 3, "3"), ("hidden_size", 100, "100"),
                              ("head_dim", 1.5, "1.5"), ("sliding_window", "x", '"x"'),
                              ("layer_types", ["full_attention"], "full_attention"),
                              ("layer_types", ["odd"] * 4, '"odd"'),
                              ("layer_types", ["sliding_attention"] * 4, "sliding_window"),
                              ("num_kv_shared_layers", 4, "4"), ("kv_lora_rank", 512, "512"),
                              ("is_encoder_decoder", True, "true")):
      with self.subTest(key=key, value=value):
        self.assert_error(dict(PLAIN, **{key: value}), self.config, key, shown)
    self.assert_error("{", self.config + ":1:")
    self.assert_error("[]", self.config, "[]")
    os.remove(self.config)
    run = subprocess.run([CONVERTER, "--plan", self.config], capture_output=True, text=True)
    self.assertEqual(run.returncode, 1)
    self.assertIn(self.config, run.stderr)

  def test_usage(self):
    self.assert_error(PLAIN, "--context", arguments=("--context", "0"), code=2)
    self.assert_error(PLAIN, "--kv", "int3", arguments=("--kv", "int3"), code=2)
    self.assert_error(PLAIN, "--plan", "--output", arguments=("-o", "x.arn"), code=2)
    run = subprocess.run([CONVERTER, CHECKPOINT, "-o", "x.arn", "--context", "3"],
                         capture_output=True, text=True)
    self.assertEqual(run.returncode, 2)
    self.assertIn("--plan", run.stderr)


if __name__ == "__main__":
  unittest.main(argv=sys.argv[:1])
