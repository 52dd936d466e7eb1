#!/usr/bin/env python3
"""arenite serve with images: replies, what is kept of conversations, and what is refused.

usage: images_test.py ARENITE CONVERTER CHECKPOINT
"""

import base64
import json
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest

import server

ARENITE, CONVERTER = sys.argv[1:3]
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

from vision_checkpoint import IMAGE, golden_image, png, write_vision_checkpoint  # noqa: E402


def uri(rows):
  return "data:image/png;base64," + base64.b64encode(png(rows)).decode()


def image(rows):
  return {"type": "image_url", "image_url": {"url": uri(rows), "detail": "auto"}}


def text(words):
  return {"type": "text", "text": words}


class ImagesTest(server.RefusalAssertions, unittest.TestCase):

  @classmethod
  def setUpClass(cls):
    cls.temporary = tempfile.TemporaryDirectory()
    cls.folder = pathlib.Path(cls.temporary.name)
    write_vision_checkpoint(cls.folder / "checkpoint")
    cls.bundle = cls.folder / "see.arn"
    subprocess.run([CONVERTER, cls.folder / "checkpoint", "-o", cls.bundle, "--weights", "f32"],
                   check=True, capture_output=True)
    cls.first, cls.second = golden_image(64, 40, 0), golden_image(31, 97, 1)
    (cls.folder / "first.png").write_bytes(png(cls.first))
    cls.server = cls.start()

  @classmethod
  def tearDownClass(cls):
    code = cls.server.end()
    cls.temporary.cleanup()
    assert code == 0, cls.server.errors

  @classmethod
  def start(cls, *arguments):
    return server.Server(ARENITE, cls.bundle, "--sequences", "2", "--kv", "f32", *arguments)

  def ask(self, *parts, before=(), running=None, **fields):
    """Returns the answer to a message of these parts, and its usage."""
    reply = (running or self.server).post("/v1/chat/completions", {
        "messages": [*before, {"role": "user", "content": list(parts)}], "max_tokens": 8,
        "temperature": 0, "ignore_eos": True, **fields})
    self.assertEqual(200, reply.status, reply.text)
    return reply.json["choices"][0]["message"]["content"], reply.json["usage"]

  def run_tool(self, prompt):
    done = subprocess.run(
        [ARENITE, "run", self.bundle, "--kv", "f32", "--json", "--max-tokens", "8", "--ignore-eos",
         "--image", self.folder / "first.png", "--prompt", prompt],
        capture_output=True, text=True, timeout=120, check=True)
    return json.loads(done.stdout)

  def test_a_reply_is_that_of_run(self):
    made = self.run_tool("user:<image>What is it?assistant:")
    answer, usage = self.ask(image(self.first), text("What is it?"))
    self.assertEqual(made["text"].lstrip(), answer)  # replies begin with a character
    self.assertEqual(len(made["prompt_ids"]), usage["prompt_tokens"])
    self.assertGreater(made["prompt_ids"].count(IMAGE), 60)

  def test_the_responses_api_gives_the_same(self):
    answer, usage = self.ask(image(self.first), text("Why?"))
    reply = self.server.post("/v1/responses", {
        "input": [{"role": "user", "content": [
            {"type": "input_image", "image_url": uri(self.first), "detail": "low"},
            {"type": "input_text", "text": "Why?"}]}],
        "max_output_tokens": 8, "temperature": 0, "ignore_eos": True})
    self.assertEqual(200, reply.status, reply.text)
    self.assertEqual(usage["prompt_tokens"], reply.json["usage"]["input_tokens"])
    self.assertEqual(answer, reply.json["output"][-1]["content"][0]["text"])

  def test_the_next_turn_computes_only_what_is_new(self):
    question = [image(self.second), text("Where was this?")]
    answer, first = self.ask(*question)
    before = [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
    _, second = self.ask(text("And when?"), before=before)
    self.assertGreaterEqual(second["prompt_tokens_details"]["cached_tokens"],
                            first["prompt_tokens"] - 1)
    other = [{"role": "user", "content": [image(golden_image(31, 97, 3)), question[1]]}, before[1]]
    _, changed = self.ask(text("And when?"), before=other)
    self.assertLess(changed["prompt_tokens_details"]["cached_tokens"], 40)

  def test_a_server_that_starts_again_has_the_images(self):
    kept = ("--state-folder", str(self.folder / "kept"))
    question = [image(self.second), text("Where was this?")]
    first = self.start(*kept)
    answer, _ = self.ask(*question, running=first)
    self.assertEqual(0, first.end(), first.errors)
    before = [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
    expected, _ = self.ask(text("And when?"), before=before)
    second = self.start(*kept)
    found, usage = self.ask(text("And when?"), before=before, running=second)
    self.assertEqual(0, second.end(), second.errors)
    self.assertEqual(expected, found)
    self.assertGreater(usage["prompt_tokens_details"]["cached_tokens"], 60)

  def test_images_of_several_conversations_share_the_room(self):
    """More images than the sequences hold: those of old conversations go."""
    first, _ = self.ask(image(self.first), text("0"))
    for i in range(6):
      self.ask(image(golden_image(64, 34 + i, i)), text(str(i)))
    again, _ = self.ask(image(self.first), text("0"))
    self.assertEqual(first, again)

  def test_encoding_holds_no_text_up(self):
    pictures = [image(golden_image(201 + i, 157, i)) for i in range(10)]
    answers = []
    asking = threading.Thread(target=lambda: answers.append(self.server.post(
        "/apply-template", {"messages": [{"role": "user", "content": pictures}]})))
    asking.start()
    n_read = 0
    while not answers:
      self.assertEqual(200, self.server.post("/tokenize", {"content": "a"}).status)
      n_read += 1
    asking.join()
    self.assertEqual(200, answers[0].status, answers[0].text)
    # One that waited for the images would be one of two.
    self.assertGreater(n_read, 5)

  def test_a_users_marker_is_text(self):
    _, plain = self.ask(text("an <image> here"))
    self.assertLess(plain["prompt_tokens"], 60)
    _, usage = self.ask(text("an <image> here"), image(self.first))
    self.assertGreater(usage["prompt_tokens"], plain["prompt_tokens"] + 60)

  def test_refusals_name_the_field(self):
    def post(part, role="user"):
      return self.server.post("/v1/chat/completions",
                              {"messages": [{"role": role, "content": [text("a"), part]}]})

    def of(url):
      return {"type": "image_url", "image_url": {"url": url}}

    at = "messages[0].content[1].image_url.url"
    self.assert_refused(post(of("https://example.org/a.png")), 400, at, "fetches nothing", "data:")
    self.assert_refused(post(of("data:image/png,abc")), 400, at, "without base64")
    self.assert_refused(post(of("data:image/png;base64,ab$d")), 400, at, "'$'")
    self.assert_refused(post(of("data:image/png;base64,abcd")), 400, at, "not a PNG or JPEG")
    wide = png([bytes(3 * 4097)])
    wide = "data:image/png;base64," + base64.b64encode(wide).decode()
    self.assert_refused(post(of(wide)), 400, at, "4097 x 1", "4096")
    self.assert_refused(post({"type": "image_url"}), 400, "messages[0].content[1].image_url")
    self.assert_refused(post({"type": "input_audio"}), 400, "messages[0].content[1].type",
                        "text and image_url only")
    self.assert_refused(post(image(self.first), role="system"), 400,
                        "messages[0].content[1].type", "text only")

  def test_a_state_folder_keeps_conversations_without_images(self):
    arguments = ("--state-folder", str(self.folder / "states"))
    words = [text("Tell me a long story about the sea, the wind and a fox. ")]
    running = self.start(*arguments)
    self.ask(*words, running=running)
    self.ask(image(self.first), running=running)
    self.assertEqual(0, running.end(), running.errors)
    self.assertEqual("", running.errors)
    running = self.start(*arguments)
    _, usage = self.ask(*words, running=running)
    self.assertGreater(usage["prompt_tokens_details"]["cached_tokens"], 40)
    self.assertEqual(0, running.end(), running.errors)


if __name__ == "__main__":
  unittest.main(argv=sys.argv[:1])
