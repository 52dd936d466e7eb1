#!/usr/bin/env python3
"""arenite serve --state-folder: conversations outlive the server.

usage: state_folder_test.py ARENITE CONVERTER CHECKPOINT
"""

import pathlib
import stat
import subprocess
import sys
import tempfile
import time
import unittest

import server

ARENITE, CONVERTER, CHECKPOINT = sys.argv[1:4]
STORY = "Once upon a time there was a fox who lived in the woods and had a friend, "


class StateFolder(unittest.TestCase):

  @classmethod
  def setUpClass(cls):
    cls.folder = tempfile.TemporaryDirectory()
    cls.bundle = server.make_bundle(CONVERTER, CHECKPOINT, cls.folder.name)

  @classmethod
  def tearDownClass(cls):
    cls.folder.cleanup()

  def setUp(self):
    self.states = tempfile.TemporaryDirectory()
    self.addCleanup(self.states.cleanup)
    self.kept = pathlib.Path(self.states.name) / "kept"
    self.file = self.kept / "fable.state"

  def start(self, *arguments, bundle=None):
    return server.Server(ARENITE, bundle or self.bundle, "--sequences", "2", "--state-folder",
                         str(self.kept), *arguments)

  def end(self, running):
    self.assertEqual(0, running.end(), running.errors)
    return running.errors

  def talk(self, running, messages):
    """Returns the reply's text and how many tokens of the prompt were there already."""
    reply = running.post("/v1/chat/completions",
                         {"messages": messages, "max_tokens": 24, "temperature": 0})
    self.assertEqual(200, reply.status, reply.text)
    usage = reply.json["usage"]["prompt_tokens_details"]
    return reply.json["choices"][0]["message"]["content"], usage["cached_tokens"]

  def turns(self):
    return [{"role": "user", "content": STORY * 3}]

  def next_turns(self, reply):
    return self.turns() + [{"role": "assistant", "content": reply},
                           {"role": "user", "content": "And then?"}]

  def wait_for_file(self, seconds=20):
    end = time.monotonic() + seconds
    while not self.file.exists():
      self.assertLess(time.monotonic(), end, "nothing was saved")
      time.sleep(0.02)

  def test_ended_and_started_again_goes_on_without_the_prompt(self):
    first = self.start()
    reply, cached = self.talk(first, self.turns())
    self.assertEqual(0, cached)
    self.end(first)
    self.assertEqual(0o700, stat.S_IMODE(self.kept.stat().st_mode))

    plain = server.Server(ARENITE, self.bundle, "--sequences", "2")
    expected, _ = self.talk(plain, self.next_turns(reply))
    self.end(plain)

    second = self.start()
    self.assertGreater(second.status()["sequences"][0]["tokens"], 60)
    found, cached = self.talk(second, self.next_turns(reply))
    self.assertEqual(expected, found)
    self.assertGreater(cached, 60)
    self.assertEqual("", self.end(second))

  def test_killed_what_was_saved_is_there(self):
    first = self.start("--save-after", "1")
    reply, _ = self.talk(first, self.turns())
    self.wait_for_file()
    first.process.kill()
    first.process.communicate()
    second = self.start()
    _, cached = self.talk(second, self.next_turns(reply))
    self.assertGreater(cached, 60)
    self.end(second)

  def test_more_conversations_than_before_fit_or_are_refused(self):
    first = self.start()
    self.talk(first, self.turns())
    self.talk(first, [{"role": "user", "content": "A bear sang."}])
    self.end(first)
    small = server.Server(ARENITE, self.bundle, "--sequences", "1", "--state-folder",
                          str(self.kept))
    self.talk(small, self.turns())
    self.assertIn("conversations begin from scratch", self.end(small))

  def test_damaged_files_and_those_of_others_are_left_aside(self):
    first = self.start()
    self.talk(first, self.turns())
    self.end(first)
    good = self.file.read_bytes()
    other = pathlib.Path(self.folder.name) / "other/fable.arn"
    other.parent.mkdir(exist_ok=True)
    subprocess.run([CONVERTER, CHECKPOINT, "-o", other, "--weights", "int4", "--quiet"], check=True)
    damaged = bytearray(good)
    damaged[len(damaged) // 2] ^= 1
    for content, bundle in [(b"", None), (good[:-100], None), (bytes(damaged), None),
                            (good, str(other))]:
      self.file.write_bytes(content)
      again = self.start(bundle=bundle)
      _, cached = self.talk(again, self.turns()) if bundle is None else ("", 0)
      self.assertEqual(0, cached)
      errors = self.end(again)
      self.assertIn("warning: conversations begin from scratch", errors)
      self.assertIn(str(self.file), errors)

  def test_nothing_new_is_not_written_again(self):
    first = self.start()
    self.talk(first, self.turns())
    self.end(first)
    before = self.file.stat().st_mtime_ns
    second = self.start("--save-after", "1")
    time.sleep(1.5)
    self.end(second)
    self.assertEqual(before, self.file.stat().st_mtime_ns)

  def test_mistakes_are_named(self):
    taken = pathlib.Path(self.states.name) / "file"
    taken.write_text("")
    for arguments, part in [(["--state-folder", str(taken)], "no folder"),
                            (["--save-after", "3"], "--state-folder")]:
      done = subprocess.run([ARENITE, "serve", self.bundle, *arguments], capture_output=True,
                            text=True)
      self.assertNotEqual(0, done.returncode)
      self.assertIn(part, done.stderr)


if __name__ == "__main__":
  unittest.main(argv=sys.argv[:1])
