#!/usr/bin/env python3
"""arenite bundle diff and patch on real bundles: hashes, signatures, parts.

usage: bundle_patch_test.py ARENITE ARENITE_CONVERT CHECKPOINT_FOLDER
"""

import os
import subprocess
import sys
import tempfile
import unittest

TOOL, CONVERTER, CHECKPOINT = sys.argv[1:4]
KEYS = ("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",  # RFC 8032, 7.1
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb")
PUBLIC = ("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
          "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c")


def run(*arguments):
  return subprocess.run(arguments, capture_output=True, text=True, timeout=120)


class BundlePatch(unittest.TestCase):

  def setUp(self):
    folder = tempfile.TemporaryDirectory()
    self.addCleanup(folder.cleanup)
    self.folder = folder.name
    self.convert("old.arn", "--name", "one")
    for key in KEYS:
      with open(self.path(key[:4]), "w") as file:
        file.write(key)

  def path(self, name):
    return os.path.join(self.folder, name)

  def read(self, name):
    with open(self.path(name), "rb") as file:
      return file.read()

  def convert(self, name, *arguments):
    done = run(CONVERTER, CHECKPOINT, "-o", self.path(name), "-q", *arguments)
    self.assertEqual(done.returncode, 0, done.stderr)

  def diff(self, new, old="old.arn"):
    done = run(TOOL, "bundle", "diff", self.path(old), self.path(new), "-o", self.path("patch"))
    self.assertEqual(done.returncode, 0, done.stderr)

  def patch(self, *arguments):
    return run(TOOL, "bundle", "patch", self.path("old.arn"), self.path("patch"), "-o",
               self.path("made.arn"), *arguments)

  def test_a_new_version_is_made_of_the_old_one(self):
    self.convert("new.arn", "--name", "two", "--no-chat-template")
    self.diff("new.arn")
    self.assertLess(len(self.read("patch")), len(self.read("new.arn")) // 4)
    done = self.patch()
    self.assertEqual(done.returncode, 0, done.stderr)
    self.assertEqual(self.read("made.arn"), self.read("new.arn"))
    # It fits no other file.
    other = run(TOOL, "bundle", "patch", self.path("new.arn"), self.path("patch"), "-o",
                self.path("twice.arn"))
    self.assertEqual(other.returncode, 1)
    self.assertIn("new.arn: is not the file that", other.stderr)
    self.assertFalse(os.path.exists(self.path("twice.arn")))

  def test_signatures_are_checked_before_the_file_appears(self):
    self.convert("new.arn", "--sign", self.path(KEYS[0][:4]))
    self.diff("new.arn")
    self.assertEqual(self.patch("--public-key", PUBLIC[0]).returncode, 0)
    os.remove(self.path("made.arn"))
    refused = self.patch("--public-key", PUBLIC[1])
    self.assertEqual(refused.returncode, 1)
    self.assertIn("made.arn.tmp: ", refused.stderr)
    self.assertFalse(os.path.exists(self.path("made.arn")))
    # A file whose bytes do not fit the key that it states is refused without one, too.
    damaged = bytearray(self.read("new.arn"))
    damaged[len(damaged) // 2] ^= 1
    with open(self.path("damaged.arn"), "wb") as file:
      file.write(damaged)
    self.diff("damaged.arn")
    self.assertEqual(self.patch().returncode, 1)
    self.assertEqual([name for name in os.listdir(self.folder) if name.startswith("made")], [])

  def test_the_first_part_runs_as_the_bundle(self):
    self.convert("parts.arn", "--split", "1M", "--name", "one")
    texts = []
    for name in ("old.arn", "parts-00001-of-00003.arn"):
      done = run(TOOL, "run", self.path(name), "--prompt", "Once", "--max-tokens", "8",
                 "--temperature", "0")
      self.assertEqual(done.returncode, 0, done.stderr)
      texts.append(done.stdout)
    self.assertEqual(texts[0], texts[1])
    os.rename(self.path("parts-00002-of-00003.arn"), self.path("away"))
    done = run(TOOL, "inspect", self.path("parts-00001-of-00003.arn"))
    self.assertEqual(done.returncode, 1)
    self.assertIn("parts-00002-of-00003.arn: No such file", done.stderr)


if __name__ == "__main__":
  unittest.main(argv=sys.argv[:1])
