#!/usr/bin/env python3
"""The command line of arenite-convert: exit codes, messages, --verify, memory, what it leaves.

usage: cli_test.py CONVERTER CHECKPOINT_FOLDER
"""

import json
import os
import re
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

CONVERTER, CHECKPOINT = sys.argv[1:3]
LARGE_BYTES = 400 << 20


def convert(*arguments, **options):
  return subprocess.run([CONVERTER, *arguments], capture_output=True, text=True, timeout=300,
                        **options)


def write_large_checkpoint(folder):
  """A decoder with one small layer; its embedding is a hole of LARGE_BYTES in the file."""
  hidden, ffn, heads, head_dim = 1024, 32, 1, 32
  vocab = LARGE_BYTES // (4 * hidden)
  layer = "model.layers.0."
  shapes = {
      "model.embed_tokens.weight": [vocab, hidden],
      "model.norm.weight": [hidden],
      layer + "input_layernorm.weight": [hidden],
      layer + "post_attention_layernorm.weight": [hidden],
      layer + "self_attn.q_proj.weight": [heads * head_dim, hidden],
      layer + "self_attn.k_proj.weight": [heads * head_dim, hidden],
      layer + "self_attn.v_proj.weight": [heads * head_dim, hidden],
      layer + "self_attn.o_proj.weight": [hidden, heads * head_dim],
      layer + "mlp.gate_proj.weight": [ffn, hidden],
      layer + "mlp.up_proj.weight": [ffn, hidden],
      layer + "mlp.down_proj.weight": [hidden, ffn],
  }
  header, offset = {}, 0
  for name, shape in shapes.items():
    size = 4
    for d in shape:
      size *= d
    header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [offset, offset + size]}
    offset += size
  text = json.dumps(header).encode()
  text += b" " * (-len(text) % 8)
  with open(os.path.join(folder, "model.safetensors"), "wb") as file:
    file.write(struct.pack("<Q", len(text)) + text)
    file.truncate(8 + len(text) + offset)
  config = {"architectures": ["LlamaForCausalLM"], "hidden_size": hidden, "intermediate_size": ffn,
            "num_hidden_layers": 1, "num_attention_heads": heads, "head_dim": head_dim,
            "vocab_size": vocab, "tie_word_embeddings": True}
  with open(os.path.join(folder, "config.json"), "w") as file:
    json.dump(config, file)


class WithFolder(unittest.TestCase):

  def setUp(self):
    self.folder = tempfile.TemporaryDirectory()
    self.addCleanup(self.folder.cleanup)
    self.out = os.path.join(self.folder.name, "out.arn")

  def left(self):
    return sorted(os.listdir(self.folder.name))


class CommandLine(WithFolder):

  def assert_one_error(self, run, code, pattern):
    self.assertEqual(run.returncode, code, run.stderr)
    lines = run.stderr.splitlines()
    self.assertEqual(len([l for l in lines if "error:" in l]), 1, run.stderr)
    self.assertRegex(lines[-1], "^arenite-convert: error: .*" + pattern)

  def test_success_prints_progress_and_leaves_one_file(self):
    run = convert(CHECKPOINT, "-o", self.out)
    self.assertEqual(run.returncode, 0, run.stderr)
    self.assertEqual(self.left(), ["out.arn"])
    self.assertEqual(run.stdout, "")
    self.assertIn("100%", run.stderr)
    self.assertRegex(run.stderr, r"out\.arn: [0-9.]+ M parameters")
    self.assertNotIn("\x1b", run.stderr)

  def test_quiet_prints_nothing(self):
    run = convert(CHECKPOINT, "-o", self.out, "--quiet")
    self.assertEqual((run.returncode, run.stdout, run.stderr), (0, "", ""))

  def test_usage_errors_give_2(self):
    self.assert_one_error(convert("-o", self.out), 2, "DIR is required")
    self.assert_one_error(convert(CHECKPOINT), 2, "--output is required")
    self.assert_one_error(convert(CHECKPOINT, "-o", self.out, "--weights", "int5"), 2, "int5")
    self.assert_one_error(convert(CHECKPOINT, "-o", self.out, "--target", "z80"), 2, "z80")
    self.assert_one_error(convert(CHECKPOINT, "-o", self.out, "--verify", "--tokenizer-only"), 2,
                          "--verify")
    self.assertEqual(self.left(), [])

  def test_failure_gives_1_and_one_sentence(self):
    self.assert_one_error(convert("/nonexistent", "-o", self.out), 1, "/nonexistent: not a folder")
    self.assertEqual(self.left(), [])

  def test_sign_says_the_public_key(self):
    key = os.path.join(self.folder.name, "key.pem")
    with open(key, "w") as file:  # RFC 8032, 7.1, test 1
      file.write("-----BEGIN PRIVATE KEY-----\n"
                 "MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n"
                 "-----END PRIVATE KEY-----\n")
    run = convert(CHECKPOINT, "-o", self.out, "--sign", key)
    self.assertEqual(run.returncode, 0, run.stderr)
    self.assertIn("signed, public key "
                  "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", run.stderr)

  def test_a_key_that_is_none_is_found_out_before_the_work(self):
    key = os.path.join(self.folder.name, "key")
    with open(key, "w") as file:
      file.write("secret\n")
    self.assert_one_error(convert(CHECKPOINT, "-o", self.out, "--sign", key), 1,
                          "key: expected an Ed25519 private key")
    self.assertEqual(self.left(), ["key"])

  def test_help_has_an_example(self):
    run = convert("--help")
    self.assertEqual(run.returncode, 0)
    self.assertIn("Example: arenite-convert", run.stdout)

  def figures(self, *arguments):
    run = convert(CHECKPOINT, "-o", self.out, "--quiet", "--verify", *arguments)
    self.assertEqual(run.returncode, 0, run.stderr)
    self.assertEqual(self.left(), ["out.arn"])
    found = re.search(r"verify: (\d+) tokens.*\n.*error +(\S+)\n.*divergence +(\S+) nats\n"
                      r".*agreement +(\S+) %\n.*perplexity +(\S+) \(f32: ([0-9.]+),", run.stdout)
    self.assertIsNotNone(found, run.stdout)
    return [float(x) for x in found.groups()]

  def test_verify_of_f32_finds_no_difference(self):
    tokens, error, divergence, agreement, perplexity, reference = self.figures(
        "--weights", "f32", "--target", "portable")
    self.assertGreater(tokens, 100)
    self.assertEqual((error, divergence, agreement), (0, 0, 100))
    self.assertEqual(perplexity, reference)

  def test_verify_of_int4_finds_more_than_of_int8(self):
    text = os.path.join(self.folder.name, "..", os.path.basename(self.folder.name) + ".txt")
    with open(text, "w") as file:
      file.write("Once upon a time there was a fox who lived by the river. " * 8)
    self.addCleanup(os.remove, text)
    int8 = self.figures("--weights", "int8", "--verify-text", text)
    int4 = self.figures("--weights", "int4", "--verify-text", text)
    self.assertEqual(int8[0], int4[0])
    self.assertGreater(int8[1], 0)
    self.assertGreater(int4[1], int8[1])
    self.assertGreater(int4[2], int8[2])
    self.assertLess(int8[2], 0.02)
    self.assertGreater(int8[3], 90)

  def test_full_disk_is_reported(self):
    def limit():
      resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
    self.assert_one_error(convert(CHECKPOINT, "-o", self.out, preexec_fn=limit), 1, "disk full")
    self.assertEqual(self.left(), [])


class LargeCheckpoint(WithFolder):

  def setUp(self):
    super().setUp()
    self.source = tempfile.TemporaryDirectory()
    self.addCleanup(self.source.cleanup)
    write_large_checkpoint(self.source.name)

  def test_memory_stays_far_below_the_largest_tensor(self):
    # A sanitizer would keep what was freed for a while.
    options = os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1"
    run = subprocess.Popen([CONVERTER, self.source.name, "-o", self.out, "--quiet"],
                           stderr=subprocess.DEVNULL, env={**os.environ, "ASAN_OPTIONS": options})
    _, status, usage = os.wait4(run.pid, 0)
    run.returncode = status
    self.assertEqual(status, 0)
    self.assertGreater(os.path.getsize(self.out), LARGE_BYTES // 4)
    # Some 20 MB, and the bundle, which the self-test maps.
    self.assertLess(usage.ru_maxrss * 1024, LARGE_BYTES * 2 // 3)

  def test_interrupt_leaves_nothing(self):
    run = subprocess.Popen([CONVERTER, self.source.name, "-o", self.out, "--weights", "int4",
                            "--embedding", "int4"], stderr=subprocess.PIPE, text=True)
    while not self.left() and run.poll() is None:
      time.sleep(0.01)
    run.send_signal(signal.SIGINT)
    _, stderr = run.communicate(timeout=120)
    self.assertEqual(run.returncode, 1, stderr)
    self.assertIn("arenite-convert: error: interrupted", stderr)
    self.assertEqual(self.left(), [])


if __name__ == "__main__":
  unittest.main(argv=sys.argv[:1])
