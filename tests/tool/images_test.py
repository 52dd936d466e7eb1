#!/usr/bin/env python3
"""arenite run and chat with images: PNG and JPEG files, markers, and what is refused.

usage: images_test.py ARENITE CONVERTER
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))

from vision_checkpoint import IMAGE, golden_image, png, write_vision_checkpoint  # noqa: E402

ARENITE, CONVERTER = sys.argv[1:3]
DATA = ROOT / "tests/tool/data"


class ImagesTest(unittest.TestCase):

  @classmethod
  def setUpClass(cls):
    cls.temporary = tempfile.TemporaryDirectory()
    cls.folder = pathlib.Path(cls.temporary.name)
    cls.case = write_vision_checkpoint(cls.folder / "checkpoint")
    cls.bundle = cls.folder / "see.arn"
    subprocess.run([CONVERTER, cls.folder / "checkpoint", "-o", cls.bundle, "--weights", "f32"],
                   check=True, capture_output=True)
    cls.blind = cls.folder / "blind.arn"
    subprocess.run([CONVERTER, cls.folder / "checkpoint", "-o", cls.blind, "--weights", "f32",
                    "--no-images"], check=True, capture_output=True)
    for index, (width, height) in enumerate(cls.case["images"]):
      (cls.folder / f"{index}.png").write_bytes(png(golden_image(width, height, index)))

  @classmethod
  def tearDownClass(cls):
    cls.temporary.cleanup()

  def call(self, *arguments, text=None):
    return subprocess.run([ARENITE, *map(str, arguments)], input=text, capture_output=True,
                          text=True, timeout=120)

  def run_json(self, *arguments, max_tokens=6):
    done = self.call("run", self.bundle, "--kv", "f32", "--json", "--max-tokens", max_tokens,
                     "--ignore-eos", *arguments)
    self.assertEqual(0, done.returncode, done.stderr)
    return json.loads(done.stdout)

  def refused(self, part, *arguments, text=None):
    done = self.call(*arguments, text=text)
    self.assertNotEqual(0, done.returncode)
    self.assertIn(part, done.stderr)

  def test_run_takes_images_where_the_markers_are(self):
    first, second = self.folder / "0.png", self.folder / "1.png"
    made = self.run_json("--image", first, "--image", second, "--prompt", "a <image> b <image> c")
    counts = [text.count("<image>") for text in self.case["texts"]]
    self.assertEqual(sum(counts), made["prompt_ids"].count(IMAGE))
    self.assertEqual(6, len(made["ids"]))
    swapped = self.run_json("--image", second, "--image", first, "--prompt",
                            "a <image> b <image> c")
    self.assertEqual(sum(counts), swapped["prompt_ids"].count(IMAGE))
    self.assertNotEqual(made["prompt_ids"], swapped["prompt_ids"])

  def test_images_without_markers_come_first(self):
    image = self.folder / "0.png"
    marked = self.run_json("--image", image, "--prompt", "<image>what?")
    plain = self.run_json("--image", image, "--prompt", "what?")
    self.assertEqual(marked["prompt_ids"], plain["prompt_ids"])
    self.assertEqual(marked["ids"], plain["ids"])

  def test_jpeg_files_are_read_upright(self):
    upright = self.run_json("--image", DATA / "bars.jpg", "--prompt", "x")
    turned = self.run_json("--image", DATA / "bars_turned.jpg", "--prompt", "x")
    # 40 x 24 pixels become 24 x 40.
    self.assertEqual(2, upright["prompt_ids"].count(503) + upright["prompt_ids"].count(504))
    self.assertNotEqual(upright["prompt_ids"], turned["prompt_ids"])

  def test_saved_session_goes_on_with_its_images(self):
    image, saved = self.folder / "0.png", self.folder / "seen.state"
    whole = self.run_json("--image", image, "--prompt", "<image>what?", "--context", "256",
                          max_tokens=12)
    begun = self.run_json("--image", image, "--prompt", "<image>what?", "--context", "256",
                          "--save", saved)
    self.assertEqual(whole["ids"][:6], begun["ids"])
    # A session restored without its last token computes that first.
    rest = self.run_json("--restore", saved, "--context", "256")
    self.assertEqual(whole["ids"][6:12], rest["ids"])
    other = self.run_json("--image", self.folder / "1.png", "--prompt", "<image>what?",
                          "--context", "256", max_tokens=12)
    self.assertNotEqual(whole["ids"], other["ids"])

  def test_chat_keeps_images_over_turns(self):
    done = self.call("chat", self.bundle, "--image", self.folder / "0.png", "--max-tokens", "4",
                     "--kv", "f32", "--history", "none",
                     text="what is it?\nand now?\n/stats\n")
    self.assertEqual(0, done.returncode, done.stderr)
    self.assertIn("64 x 40 pixels, 112 tokens", done.stderr)
    self.assertNotIn("error", done.stderr)
    self.assertRegex(done.stderr, r"last turn  1[3-9]\d tokens reused, [12]\d computed")

  def test_chat_takes_images_in_between_and_again_after_undo(self):
    lines = ["hello", f"/image {self.folder / '1.png'}", "what is it?", "/undo", "what is it?",
             "/reset", f"/image {self.folder / '0.png'}", "this?", "/save x", "/stats"]
    done = self.call("chat", self.bundle, "--max-tokens", "4", "--kv", "f32", "--history", "none",
                     text="\n".join(lines) + "\n")
    self.assertEqual(0, done.returncode, done.stderr)
    self.assertIn("31 x 97 pixels, 64 tokens", done.stderr)
    answers = done.stdout.splitlines()
    self.assertEqual(answers[1], answers[2])
    self.assertRegex(done.stderr, r"last turn  0 tokens reused, 1[3-9]\d computed")

  def test_bench_counts_the_tower(self):
    done = self.call("bench", self.bundle, "--backend", "vulkan", "--count", "-p", "4",
                     "--device-profile", "adreno830", "--json")
    if "built without" in done.stderr:
      self.skipTest(done.stderr)
    self.assertEqual(0, done.returncode, done.stderr)
    runs = {run["test"]: run for run in json.loads(done.stdout)}
    self.assertEqual({"prefill", "decode", "tower"}, set(runs))
    self.assertEqual(64, runs["tower"]["tokens"])  # 8 x 8 patches
    self.assertIn("pool", [kernel["kernel"] for kernel in runs["tower"]["kernels"]])

  def test_a_users_marker_is_text(self):
    done = self.call("chat", self.bundle, "--max-tokens", "2", "--history", "none",
                     text="an <image> of mine\n")
    self.assertEqual(0, done.returncode, done.stderr)
    self.assertNotIn("error", done.stderr)

  def test_refusals_say_what_to_do(self):
    image = self.folder / "0.png"
    self.refused("no vision tower", "run", self.blind, "--image", image, "--prompt", "x")
    self.refused("1 images for 2 markers", "run", self.bundle, "--image", image, "--prompt",
                 "<image><image>")
    self.refused("not a PNG or JPEG image", "run", self.bundle, "--image", self.bundle, "--prompt",
                 "x")
    self.refused("nowhere.png", "run", self.bundle, "--image", "nowhere.png", "--prompt", "x")
    self.refused("--restore", "run", self.bundle, "--image", image, "--prompt", "x", "--restore",
                 "s")
    cut = self.folder / "cut.png"
    cut.write_bytes(image.read_bytes()[:90])
    self.refused("cut.png", "run", self.bundle, "--image", cut, "--prompt", "x")
    done = self.call("chat", self.blind, "--history", "none", text=f"/image {image}\n")
    self.assertIn("takes no images", done.stderr)

  def test_the_converter_says_what_it_leaves_out_and_refuses(self):
    folder = self.folder / "other"
    write_vision_checkpoint(folder)
    def convert(*arguments):
      return subprocess.run([CONVERTER, folder, "-o", self.folder / "other.arn", *arguments],
                            capture_output=True, text=True)
    config = json.loads((folder / "preprocessor_config.json").read_text())
    for key, value, part in (("do_normalize", False, "do_normalize"), ("new_key", 1, "new_key"),
                             ("resample", 7, "resample"), ("image_mean", [1], "image_mean"),
                             ("max_image_size", {"longest_edge": 16}, "max_image_size")):
      (folder / "preprocessor_config.json").write_text(json.dumps({**config, key: value}))
      done = convert()
      self.assertNotEqual(0, done.returncode, key)
      self.assertIn(part, done.stderr)
      done = convert("--no-images")
      self.assertEqual(0, done.returncode, done.stderr)
    (folder / "preprocessor_config.json").unlink()
    done = convert()
    self.assertEqual(0, done.returncode, done.stderr)
    self.assertIn("images are left out", done.stderr)


if __name__ == "__main__":
  unittest.main(argv=sys.argv[:1])
