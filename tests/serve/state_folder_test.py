#!/usr/bin/env python3
"""arenite serve --state-folder: conversations outlive the server.

usage: state_folder_test.py ARENITE CONVERTER CHECKPOINT
"""

import pathlib
import random
import stat
import subprocess
import sys
import tempfile
import threading
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

  # ---- conversations that have to leave the memory

  PLACES = ("river", "mountain", "castle", "garden", "harbour")

  def conversation(self, place):
    return [{"role": "user", "content": f"In a {place} far away there was a {place} fox. " +
             STORY * 2}]

  def goes_on(self, place, reply):
    return self.conversation(place) + [{"role": "assistant", "content": reply},
                                       {"role": "user", "content": "And then?"}]

  def expected(self, replies):
    """What a server without states says next."""
    plain = server.Server(ARENITE, self.bundle, "--sequences", "2")
    texts = {place: self.talk(plain, self.goes_on(place, reply))[0]
             for place, reply in replies.items()}
    self.end(plain)
    return texts

  def files(self):
    return sorted((self.kept / "fable.kept").glob("*"))

  def wait_for_files(self, n, seconds=20):
    end = time.monotonic() + seconds
    while len([f for f in self.files() if f.suffix == ".state"]) < n:
      self.assertLess(time.monotonic(), end, f"{self.files()}")
      time.sleep(0.02)

  def test_conversations_without_a_sequence_go_to_disk_and_come_back(self):
    running = self.start()
    replies = {place: self.talk(running, self.conversation(place))[0] for place in self.PLACES}
    expected = self.expected(replies)
    self.assertEqual(3, running.metric("states_saved_total"))
    for place, reply in replies.items():
      text, cached = self.talk(running, self.goes_on(place, reply))
      self.assertEqual(expected[place], text)
      self.assertGreater(cached, 60, place)
    self.assertGreaterEqual(running.metric("states_restored_total"), 3)
    self.assertEqual(0, running.metric("states_skipped_total"))
    self.assertEqual("", self.end(running))

  def test_killed_those_on_disk_come_back(self):
    first = self.start()
    replies = {place: self.talk(first, self.conversation(place))[0] for place in self.PLACES}
    self.wait_for_files(3)
    first.process.kill()
    first.process.communicate()
    expected = self.expected(replies)
    second = self.start()
    for place in self.PLACES[:3]:
      text, cached = self.talk(second, self.goes_on(place, replies[place]))
      self.assertEqual(expected[place], text)
      self.assertGreater(cached, 60, place)
    self.assertEqual("", self.end(second))

  def test_a_conversation_that_went_on_has_one_file(self):
    running = self.start()
    reply, _ = self.talk(running, self.conversation("river"))
    self.talk(running, self.conversation("castle"))
    self.talk(running, self.conversation("garden"))
    self.wait_for_files(1)
    self.talk(running, self.goes_on("river", reply))  # comes back, and castle goes
    self.talk(running, self.conversation("harbour"))
    self.talk(running, self.conversation("mountain"))
    self.assertEqual("", self.end(running))
    self.assertEqual(3, len(self.files()), self.files())

  def test_killed_anywhere_the_next_one_starts_and_says_the_same(self):
    plain = server.Server(ARENITE, self.bundle, "--sequences", "2")
    expected = {place: self.talk(plain, self.conversation(place))[0] for place in self.PLACES}
    self.end(plain)
    rng = random.Random(1)
    for _ in range(8):
      running = self.start("--save-after", "1")
      self.assertEqual([], [f for f in self.files() if f.suffix == ".tmp"])

      def talk_on():
        try:
          for i in range(1000):
            self.talk(running, self.conversation(f"{self.PLACES[i % 5]} {rng.random()}"))
        except OSError:
          pass  # it was killed
        except Exception as failure:  # for the main thread
          failures.append(failure)
      failures = []
      talking = threading.Thread(target=talk_on)
      talking.start()
      time.sleep(rng.uniform(0.02, 0.3))
      running.process.kill()
      running.process.communicate()
      talking.join()
      self.assertEqual([], [f for f in failures if "IncompleteRead" not in repr(f)
                            and "BadStatusLine" not in repr(f)])
    last = self.start()
    for place in self.PLACES:
      self.assertEqual(expected[place], self.talk(last, self.conversation(place))[0])
    self.assertEqual("", self.end(last))

  def test_damaged_conversations_are_computed_again(self):
    first = self.start()
    replies = {place: self.talk(first, self.conversation(place))[0] for place in self.PLACES}
    self.wait_for_files(3)
    self.end(first)
    expected = self.expected(replies)
    files = self.files()
    whole = files[0].read_bytes()
    damaged = bytearray(whole)
    damaged[-100] ^= 1
    files[0].write_bytes(damaged)
    files[1].write_bytes(files[1].read_bytes()[:-64])
    files[2].write_bytes(b"ARNSTATE and nothing else")
    (self.kept / "fable.state").unlink()
    second = self.start()
    for place in self.PLACES:
      self.assertEqual(expected[place], self.talk(second, self.goes_on(place, replies[place]))[0])
    self.assertEqual(0, second.metric("requests_failed_total"))
    self.assertIn("the conversation is computed again", self.end(second))

  def test_the_folder_has_its_limit(self):
    running = self.start("--state-bytes", "500K")
    for i in range(8):
      self.talk(running, self.conversation(f"{self.PLACES[i % 5]} {i}"))
    self.assertGreaterEqual(running.metric("states_saved_total"), 6)
    self.assertLessEqual(running.metric("states_bytes"), 500 * 1024)
    self.assertGreaterEqual(running.metric("states_kept"), 1)
    self.assertEqual("", self.end(running))
    self.assertLessEqual(sum(f.stat().st_size for f in self.files()), 500 * 1024)
    none = self.start("--state-bytes", "0")
    for place in self.PLACES:
      self.talk(none, self.conversation(place))
    self.assertEqual(0, none.metric("states_saved_total"))
    self.end(none)

  def test_mistakes_are_named(self):
    taken = pathlib.Path(self.states.name) / "file"
    taken.write_text("")
    for arguments, part in [(["--state-folder", str(taken)], "no folder"),
                            (["--save-after", "3"], "--state-folder"),
                            (["--state-bytes", "3M"], "--state-folder"),
                            (["--state-folder", str(self.kept), "--state-bytes", "much"],
                             "--state-bytes")]:
      done = subprocess.run([ARENITE, "serve", self.bundle, *arguments], capture_output=True,
                            text=True)
      self.assertNotEqual(0, done.returncode)
      self.assertIn(part, done.stderr)


if __name__ == "__main__":
  unittest.main(argv=sys.argv[:1] + [a for a in sys.argv[4:] if a != "sanitized"])
