#!/usr/bin/env python3
"""The command line of arenite-convert: exit codes, messages, --verify, memory, leftover files.

usage: cli_test.py CONVERTER CHECKPOINT_FOLDER
"""

import json
import math
import os
import re
import resource
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest

from sparse_files import write_checkpoint, write_gguf, write_torch

CONVERTER, CHECKPOINT = sys.argv[1:3]
LARGE_BYTES = 400 << 20


def convert(*arguments, **options):
  return subprocess.run([CONVERTER, *arguments], capture_output=True, text=True, timeout=300,
                        **options)


# A process's peak includes that of the one which it was forked from: this one stays small.
MEASURE = """
import os, subprocess, sys
run = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
_, run.returncode, usage = os.wait4(run.pid, 0)
print(run.returncode, usage.ru_maxrss)
"""


def peak_bytes(*arguments):
  """Runs the converter. Returns its exit status and the most memory it had."""
  # A sanitizer delays the release of freed memory.
  options = os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1"
  run = subprocess.run([sys.executable, "-c", MEASURE, CONVERTER, *arguments], text=True,
                       capture_output=True, check=True, env={**os.environ, "ASAN_OPTIONS": options})
  status, peak = map(int, run.stdout.split())
  return status, peak * 1024


def give_tokenizer(folder):
  for name in ("tokenizer.json", "tokenizer_config.json"):
    shutil.copy(os.path.join(CHECKPOINT, name), folder)


def write_text(folder, times):
  """Writes the text that the model has not read, about 2,300 tokens, so often. Returns its path."""
  path = os.path.join(folder, "text.txt")
  with open(os.path.join(os.path.dirname(CHECKPOINT), "heldout.txt")) as file:
    text = file.read()
  with open(path, "w") as file:
    file.write(text * times)
  return path


def is_sanitized():
  with open(CONVERTER, "rb") as file:
    return b"__asan_init" in file.read()


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
    self.assert_one_error(convert("-o", self.out), 2, "DIR is missing")
    self.assert_one_error(convert(CHECKPOINT, "-o", self.out, "--weights", "int5"), 2, "int5")
    self.assert_one_error(convert(CHECKPOINT, "-o", self.out, "--target", "z80"), 2, "z80")
    self.assert_one_error(convert(CHECKPOINT, "-o", self.out, "--verify", "--tokenizer-only"), 2,
                          "--verify")
    self.assertEqual(self.left(), [])

  def test_a_folder_alone_gets_a_type_and_a_name_and_is_told_so(self):
    run = convert(os.path.abspath(CHECKPOINT), cwd=self.folder.name)
    self.assertEqual(run.returncode, 0, run.stderr)
    self.assertEqual(self.left(), ["fable-2m-int8.arn"])
    self.assertRegex(run.stderr, r"(?m)^arenite-convert: 2\.\d million parameters: "
                                 r"--weights int8 .*; writing fable-2m-int8\.arn$")
    again = convert(os.path.abspath(CHECKPOINT), cwd=self.folder.name)
    self.assert_one_error(again, 1, "fable-2m-int8.arn: exists already; -o")
    quiet = convert(os.path.abspath(CHECKPOINT), "--weights", "INT4", "-q", cwd=self.folder.name)
    self.assertEqual((quiet.returncode, quiet.stderr), (0, ""))
    self.assertEqual(self.left(), ["fable-2m-int4.arn", "fable-2m-int8.arn"])

  def test_files_of_weights_that_are_not_read_are_named(self):
    folder = os.path.join(self.folder.name, "copy")
    shutil.copytree(CHECKPOINT, folder)
    with open(os.path.join(folder, "pytorch_model.bin"), "wb") as file:
      file.write(b"PK\3\4")
    run = convert(folder, "-o", self.out)
    self.assertEqual(run.returncode, 0, run.stderr)
    self.assertIn("warning: pytorch_model.bin (0 MB) is not read: the weights are those of "
                  "model.safetensors", run.stderr)

  def test_a_bundle_is_split_into_parts(self):
    whole = os.path.join(self.folder.name, "whole.arn")
    self.assertEqual(convert(CHECKPOINT, "-o", whole, "-q").returncode, 0)
    run = convert(CHECKPOINT, "-o", self.out, "--split", "1M")
    self.assertEqual(run.returncode, 0, run.stderr)
    self.assertEqual(self.left(), [f"out-0000{i}-of-00003.arn" for i in (1, 2, 3)] + ["whole.arn"])
    self.assertIn("out-00001-of-00003.arn and 2 more parts", run.stderr)
    joined = b""
    for name in self.left()[:3]:
      with open(os.path.join(self.folder.name, name), "rb") as file:
        part = file.read()
      self.assertLessEqual(len(part), 1 << 20)
      joined += part[16384 if joined else 0:]
    with open(whole, "rb") as file:
      self.assertEqual(joined, file.read())
    self.assertEqual(convert(CHECKPOINT, "-o", self.out, "--split", "1GB", "-q").returncode, 0)
    self.assertIn("out.arn", self.left())
    for size, words in (("1k", "at least 1M"), ("much", "expected a number of bytes")):
      self.assert_one_error(convert(CHECKPOINT, "-o", self.out, "--split", size), 2, words)
    self.assert_one_error(convert(CHECKPOINT, "-o", self.out + "x", "--split", "1M"), 2,
                          "an output that ends in .arn")

  def test_the_families_are_listed(self):
    run = convert("--list-families")
    self.assertEqual((run.returncode, run.stderr), (0, ""))
    self.assertRegex(run.stdout, r"(?m)^LlamaForCausalLM +llama +llama")

  def test_failure_gives_1_and_one_sentence(self):
    self.assert_one_error(convert("/nonexistent", "-o", self.out), 1,
                          "/nonexistent: no such file or folder")
    tensors = os.path.join(CHECKPOINT, "model.safetensors")
    self.assert_one_error(convert(tensors, "-o", self.out), 1, "give its folder")
    self.assertEqual(self.left(), [])

  def test_a_quantised_checkpoint_is_quantised_again_if_asked(self):
    folder = os.path.join(self.folder.name, "fp8")
    os.mkdir(folder)
    write_checkpoint(folder, 64, 96, 2, 128, quantised=True)
    output = os.path.join(self.folder.name, "fp8.arn")
    for weights in ("int8", "int4"):
      arguments = (folder, "-o", output, "--no-tokenizer", "--weights", weights)
      refused = convert(*arguments)
      self.assertEqual(refused.returncode, 1)
      self.assertIn("--requantise quantises it again", refused.stderr)
      self.assertFalse(os.path.exists(output))
      done = convert(*arguments, "--requantise")
      self.assertEqual(done.returncode, 0, done.stderr)
      self.assertIn("quantised again: 2 matrices", done.stderr)
      os.remove(output)
    done = convert(folder, "-o", output, "--no-tokenizer", "--weights", "bf16")
    self.assertEqual(done.returncode, 0, done.stderr)
    self.assertIn("2 matrices are read as method fp8 quantised them", done.stderr)

  def test_a_gguf_file_in_blocks_is_held_and_rounded_if_asked(self):
    folder = os.path.join(self.folder.name, "blocks")
    os.mkdir(folder)
    file = os.path.join(folder, "model.gguf")
    output = os.path.join(folder, "blocks.arn")
    write_gguf(file, write_checkpoint(folder, 64, 96, 2, 128), 64, 96, 2, in_blocks=True)
    arguments = (file, "-o", output, "--no-tokenizer")
    held = convert(*arguments)
    self.assertEqual(held.returncode, 0, held.stderr)
    self.assertIn("--weights held: each matrix as the file has it", held.stderr)
    self.assertNotIn("quantised again", held.stderr)
    os.remove(output)
    for more in (("--weights", "int8"), ("--weights", "int4"), ("--target", "vulkan")):
      refused = convert(*arguments, *more)
      self.assertEqual(refused.returncode, 1)
      self.assertRegex(refused.stderr, r"model\.gguf: tensor \S+\.weight: int\d does not hold what "
                                       "type Q8_0 stores .*--weights held keeps its values, "
                                       "--requantise quantises it again")
      self.assertFalse(os.path.exists(output))
      done = convert(*arguments, *more, "--requantise")
      self.assertEqual(done.returncode, 0, done.stderr)
      self.assertIn("quantised again: ", done.stderr)
      os.remove(output)

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

  def test_what_can_be_refused_is_refused_before_the_work(self):
    text = os.path.join(self.folder.name, "text")
    with open(text, "w") as file:
      file.write("Once upon a time. " * 1000)
    empty = os.path.join(self.folder.name, "empty")
    open(empty, "w").close()
    for arguments, words in [
        (["--calibrate", "/nosuch"], "/nosuch: cannot open"),
        (["--calibrate", empty], "empty: the text has 0 tokens, expected at least 2"),
        (["--prefix-file", "/nosuch"], "/nosuch: cannot open"),
        (["--prefix-file", empty], "empty: the text has 0 tokens"),
        (["--prefix-file", text], "which fill the model's context"),
        (["--verify", "--verify-text", "/nosuch"], "/nosuch: cannot open"),
        (["--sign", "/nosuch"], "/nosuch"),
    ]:
      run = convert(CHECKPOINT, "-o", self.out, *arguments)
      self.assert_one_error(run, 1, re.escape(words))
      self.assertNotIn("%", run.stderr)
      self.assertEqual(self.left(), ["empty", "text"])
    run = convert(CHECKPOINT, "-o", "/nosuch/out.arn")
    self.assert_one_error(run, 1, "/nosuch/out.arn")
    self.assertNotIn("%", run.stderr)

  def checkpoint_with(self, name, change):
    """Returns a copy of the checkpoint with one JSON file changed."""
    folder = os.path.join(self.folder.name, "changed")
    shutil.copytree(CHECKPOINT, folder)
    path = os.path.join(folder, name)
    with open(path) as file:
      text = file.read()
    with open(path, "w") as file:
      file.write(change(text))
    return folder

  def test_what_the_library_refuses_is_not_written(self):
    def change(text):
      config = json.loads(text)
      config["max_position_embeddings"] = 2**31 - 1
      return json.dumps(config)
    source = self.checkpoint_with("config.json", change)
    with open(self.out, "w") as file:
      file.write("before")
    for arguments in [[], ["--no-self-test"]]:
      run = convert(source, "-o", self.out, *arguments)
      self.assert_one_error(run, 1, "out.arn: not written, .*max_context")
    self.assertEqual(self.left(), ["changed", "out.arn"])
    with open(self.out) as file:
      self.assertEqual(file.read(), "before")

  def test_tokenizer_that_the_library_refuses_is_not_written(self):
    def change(text):
      tokenizer = json.loads(text)
      nfc = {"type": "NFC"}
      tokenizer["normalizer"] = {"type": "Sequence", "normalizers": [nfc] * 17}
      return json.dumps(tokenizer)
    source = self.checkpoint_with("tokenizer.json", change)
    for arguments in [[], ["--tokenizer-only"]]:
      run = convert(source, "-o", self.out, *arguments)
      self.assert_one_error(run, 1, "out.arn: not written")
    self.assertEqual(self.left(), ["changed"])

  def test_numbers_that_no_double_holds_name_their_file(self):
    source = self.checkpoint_with("config.json",
                                  lambda text: text.replace("{", '{"x": 1e400,', 1))
    self.assert_one_error(convert(source, "-o", self.out), 1,
                          "changed/config.json: not valid JSON: .*1e400")

  def test_output_is_a_regular_file_at_the_end_of_links(self):
    self.assert_one_error(convert(CHECKPOINT, "-o", "/dev/full"), 1,
                          "/dev/full: is not a regular file")
    self.assertTrue(stat.S_ISCHR(os.stat("/dev/full").st_mode))
    os.symlink("real.arn", self.out)
    self.assertEqual(convert(CHECKPOINT, "-o", self.out, "-q").returncode, 0)
    self.assertEqual(self.left(), ["out.arn", "real.arn"])
    self.assertTrue(os.path.islink(self.out))

  def test_help_has_an_example(self):
    run = convert("--help")
    self.assertEqual(run.returncode, 0)
    self.assertIn("\n  arenite-convert ", run.stdout)

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

  def rope_config(self, **changes):
    with open(os.path.join(CHECKPOINT, "config.json")) as file:
      config = json.load(file)
    config["rope_parameters"] |= changes.pop("rope")
    path = os.path.join(self.folder.name, "config.json")
    with open(path, "w") as file:
      json.dump(config | changes, file)
    return path

  def test_rope_is_as_if_the_config_had_it(self):
    for rope, parameters in (
        ("linear:2", {"rope_type": "linear", "factor": 2}),
        ("yarn:2.5", {"rope_type": "yarn", "factor": 2.5,
                      "original_max_position_embeddings": 512})):
      with self.subTest(rope):
        context = int(512 * parameters["factor"])
        config = self.rope_config(rope=parameters, max_position_embeddings=context)
        bundles = []
        for arguments in (["--rope", rope], ["--config", config], []):
          run = convert(CHECKPOINT, "-o", self.out, "-q", *arguments)
          self.assertEqual(run.returncode, 0, run.stderr)
          with open(self.out, "rb") as file:
            bundles.append(file.read())
        self.assertEqual(bundles[0], bundles[1])
        self.assertNotEqual(bundles[0], bundles[2])

  def test_rope_that_cannot_be_is_refused(self):
    for text in ("linear", "linear:", "linear:0.5", "linear:2x", "ntk:2", "yarn:nan"):
      self.assert_one_error(convert(CHECKPOINT, "-o", self.out, "--rope", text), 2,
                            f"--rope: {text}: expected linear:FACTOR or yarn:FACTOR")
    config = self.rope_config(rope={"rope_type": "linear", "factor": 2})
    self.assert_one_error(convert(CHECKPOINT, "-o", self.out, "--config", config, "--rope",
                                  "yarn:4"), 1, 'has the scaling "linear": --rope cannot replace')

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
    # One small layer and a large embedding.
    write_checkpoint(self.source.name, hidden=1024, ffn=32, n_layers=1,
                     vocab=LARGE_BYTES // (4 * 1024))

  def test_memory_stays_far_below_the_largest_tensor(self):
    status, peak = peak_bytes(self.source.name, "-o", self.out, "--quiet")
    self.assertEqual(status, 0)
    self.assertGreater(os.path.getsize(self.out), LARGE_BYTES // 4)
    # About 20 MB, plus the bundle, which the self-test maps.
    self.assertLess(peak, LARGE_BYTES * 2 // 3)

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

  def written(self):
    try:
      return os.path.getsize(self.out + ".tmp")
    except FileNotFoundError:
      return 0

  def test_what_a_killed_run_leaves_the_next_one_removes(self):
    for _ in range(2):
      run = subprocess.Popen([CONVERTER, self.source.name, "-o", self.out, "-q"])
      self.addCleanup(run.wait)
      self.addCleanup(run.kill)
      while run.poll() is None and not self.written():
        time.sleep(0.01)
      # A second conversion must not replace the file of the first one.
      run.send_signal(signal.SIGSTOP)
      second = convert(CHECKPOINT, "-o", self.out)
      self.assertIn("out.arn: is being written by another process", second.stderr)
      run.kill()
      run.wait()
      self.assertEqual(self.left(), ["out.arn.tmp"])
      # Any later bytes in it are the next run's.
      os.truncate(self.out + ".tmp", 0)
    self.assertEqual(convert(CHECKPOINT, "-o", self.out).returncode, 0)
    self.assertEqual(self.left(), ["out.arn"])


class ManyLayers(WithFolder):

  def test_memory_is_bound_by_the_largest_tensor(self):
    hidden, ffn, layers = 512, 8192, 4
    shapes = write_checkpoint(self.folder.name, hidden, ffn, layers, vocab=256)
    largest = 4 * hidden * ffn

    def bound(written):
      # A sanitizer's shadow, and what it has freed but not released, are an eighth and more.
      return (int(1.2 * max(largest, written)) + (64 << 20)) * (1.5 if is_sanitized() else 1)

    self.assertGreater(4 * sum(math.prod(shape) for shape in shapes.values()), 1.5 * bound(0))
    gguf = os.path.join(self.folder.name, "model.gguf")
    write_gguf(gguf, shapes, hidden, ffn, layers)
    torch = os.path.join(self.folder.name, "torch")
    os.mkdir(torch)
    shutil.copy(os.path.join(self.folder.name, "config.json"), torch)
    write_torch(torch, shapes)
    for source, *arguments in [(self.folder.name,), (self.folder.name, "--weights", "f32"),
                               (self.folder.name, "--threads", "16"), (torch,), (gguf,)]:
      with self.subTest(source=source, arguments=arguments):
        status, peak = peak_bytes(source, "-o", self.out, "--quiet", "--no-tokenizer", *arguments)
        self.assertEqual(status, 0)
        # Gate and up are written as one matrix.
        self.assertLess(peak, bound(2 * largest if "f32" in arguments else 0))

  def start_until_noted(self, *arguments):
    """Starts a conversion with --resume and waits until it has noted a matrix, or has ended."""
    run = subprocess.Popen([CONVERTER, *arguments], stderr=subprocess.PIPE, text=True)
    self.addCleanup(run.stderr.close)
    self.addCleanup(run.wait)
    self.addCleanup(run.kill)
    while run.poll() is None:
      try:
        with open(self.out + ".resume") as file:
          if len(file.read().splitlines()) > 3:
            return run
      except FileNotFoundError:
        pass
      time.sleep(0.002)
    return run

  def test_an_interrupted_conversion_is_resumed(self):
    write_checkpoint(self.folder.name, hidden=512, ffn=4096, n_layers=12, vocab=256)
    arguments = [self.folder.name, "-o", self.out, "--weights", "int4", "--no-tokenizer"]
    before = self.left()
    self.assertEqual(convert(*arguments, "-q").returncode, 0)
    with open(self.out, "rb") as file:
      expected = file.read()
    os.remove(self.out)
    taken = r"(?m)^(\S+) MB of it were taken from the interrupted conversion$"

    def interrupt(how):
      for _ in range(20):
        run = self.start_until_noted(*arguments, "--resume")
        run.send_signal(how)
        if run.wait() != 0:
          break
        os.remove(self.out)  # on a busy machine it may end before the signal
      self.assertEqual(self.left(), sorted(before + ["out.arn.tmp", "out.arn.resume"]))

    def finish(*more):
      run = convert(*arguments, *more)
      self.assertEqual(run.returncode, 0, run.stderr)
      with open(self.out, "rb") as file:
        self.assertEqual(file.read(), expected)
      os.remove(self.out)
      self.assertEqual(self.left(), before)
      return run.stderr

    for how in (signal.SIGKILL, signal.SIGINT):
      interrupt(how)
      self.assertRegex(finish("--resume"), taken)
    # Damaged bytes are made again; a run without --resume, and one of changed files, start from
    # scratch.
    interrupt(signal.SIGKILL)
    size = os.path.getsize(self.out + ".tmp")
    with open(self.out + ".tmp", "rb+") as file:
      file.truncate(16384)
      file.truncate(size)
      file.seek(16384)
      file.write(b"\xff" * 4096)
    finish("--resume")
    interrupt(signal.SIGKILL)
    self.assertNotRegex(finish(), taken)
    interrupt(signal.SIGKILL)
    os.utime(os.path.join(self.folder.name, "config.json"), (1, 1))
    self.assertNotRegex(finish("--resume"), taken)

  def test_memory_of_calibration_is_bound(self):
    if is_sanitized():
      self.skipTest("a sanitizer keeps memory that the program has released")
    # Wide activations: the sessions of all windows take more.
    hidden, ffn, tokens = 128, 4096, 8 * 512
    shapes = write_checkpoint(self.folder.name, hidden, ffn, n_layers=2, vocab=1024)
    give_tokenizer(self.folder.name)
    text = write_text(self.folder.name, 2)
    largest = 4 * 2 * hidden * ffn  # gate and up are one matrix
    moments = 14 * 1024 * ffn
    window = 4 * 512 * (4 * ffn + 16 * hidden)
    bound = int(1.2 * largest) + moments + 2 * window + (128 << 20)
    self.assertGreater(2 * tokens // 512 * window, 1.5 * bound)
    for bits in ([], ["--bits", "7"]):
      with self.subTest(bits=bits):
        status, peak = peak_bytes(self.folder.name, "-o", self.out, "--quiet", "--weights", "int4",
                                  "--calibrate", text, "--calibrate-tokens", str(tokens),
                                  "--threads", "2", *bits)
        self.assertEqual(status, 0)
        self.assertLess(peak, bound)

  def test_an_interrupted_calibration_is_resumed(self):
    folder = os.path.join(self.folder.name, "model")
    shutil.copytree(CHECKPOINT, folder)
    text = write_text(self.folder.name, 1)
    before = self.left()
    for bits, stops in (([], (2, 3, 9, 14)), (["--bits", "5.5"], (2, 6, 24, 30, 44, 56))):
      arguments = [folder, "-o", self.out, "--weights", "int4", "--calibrate", text,
                   "--calibrate-tokens", "256", *bits]
      self.assertEqual(convert(*arguments, "-q").returncode, 0)
      with open(self.out, "rb") as file:
        expected = file.read()
      os.remove(self.out)
      # One run after another is killed once it has noted so much.
      how = signal.SIGKILL
      for n_lines in stops:
        run = subprocess.Popen([CONVERTER, *arguments, "--resume"], stderr=subprocess.PIPE)
        self.addCleanup(run.stderr.close)
        while run.poll() is None and self.n_noted() < n_lines:
          time.sleep(0.001)
        run.send_signal(how)
        self.assertNotEqual(run.wait(), 0, run.stderr.read())
        self.assertIn("out.arn.calibrate.tmp", self.left())
        how = signal.SIGINT
      n_noted = self.n_noted()
      self.assertGreaterEqual(n_noted, stops[-1])
      run = convert(*arguments, "--resume")
      self.assertEqual(run.returncode, 0, run.stderr)
      with open(self.out, "rb") as file:
        self.assertEqual(file.read(), expected)
      os.remove(self.out)
      self.assertEqual(self.left(), before)

    # A run without --resume starts from scratch, and leaves nothing of the other.
    run = subprocess.Popen([CONVERTER, *arguments, "--resume", "-q"])
    while run.poll() is None and self.n_noted() < 3:
      time.sleep(0.001)
    run.kill()
    run.wait()
    self.assertEqual(convert(CHECKPOINT, "-o", self.out, "-q").returncode, 0)
    self.assertEqual(self.left(), sorted(before + ["out.arn"]))

  def n_noted(self):
    try:
      with open(self.out + ".calibrate.resume") as file:
        return len([line for line in file if line.endswith(" .\n")])
    except FileNotFoundError:
      return 0

  def test_a_full_disk_is_told_before_the_work(self):
    try:  # 8 TB of zeros that take no room
      write_checkpoint(self.folder.name, hidden=1 << 20, ffn=32, n_layers=1, vocab=1 << 21)
    except OSError:
      self.skipTest("the file system has no files of 8 TB")
    run = convert(self.folder.name, "-o", self.out, "--weights", "f32", "--no-tokenizer")
    self.assertEqual(run.returncode, 1)
    self.assertRegex(run.stderr, r"out\.arn: the disk has \S+ [MG]B free, 879\d\.\d GB are needed")

  def test_verify_holds_one_matrix_at_a_time(self):
    shapes = write_checkpoint(self.folder.name, hidden=512, ffn=8192, n_layers=6, vocab=256)
    checkpoint = 4 * sum(math.prod(shape) for shape in shapes.values())
    largest = 4 * 2 * 8192 * 512  # gate and up are one matrix
    arguments = [self.folder.name, "-o", self.out, "--quiet", "--weights", "int4"]
    status, without = peak_bytes(*arguments)
    self.assertEqual(status, 0)
    status, peak = peak_bytes(*arguments, "--verify")
    self.assertEqual(status, 0)
    self.assertGreater(checkpoint, 8 * largest)
    self.assertLess(peak, without + 2 * largest)


if __name__ == "__main__":
  unittest.main(argv=sys.argv[:1] + sys.argv[3:])
