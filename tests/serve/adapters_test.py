#!/usr/bin/env python3
"""arenite serve with adapters: each is a model of its own, and requests may mix them.

usage: adapters_test.py ARENITE CONVERTER CHECKPOINT
"""

import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest

import server

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "bindings"))
from adapter_files import write_adapter  # noqa: E402

ARENITE, CONVERTER, CHECKPOINT = sys.argv[1:4]
PROMPT = "Once upon a time, there was a little"
N_TOKENS = 12


class ServeAdapters(unittest.TestCase):

  @classmethod
  def setUpClass(cls):
    cls.temporary = tempfile.TemporaryDirectory()
    cls.folder = pathlib.Path(cls.temporary.name)
    cls.bundle = server.make_bundle(CONVERTER, CHECKPOINT, cls.folder)
    for seed, name in enumerate(("pirate", "poet")):
      write_adapter(cls.folder / name, pathlib.Path(CHECKPOINT), seed)
      subprocess.run([CONVERTER, CHECKPOINT, "--lora", cls.folder / name, "--base", cls.bundle,
                      "-o", cls.path(name), "--quiet"], check=True, timeout=300)
    cls.pirate, cls.poet = cls.path("pirate") + "=2", cls.path("poet") + "=4"
    cls.server = server.Server(ARENITE, cls.bundle, "--sequences", "3", "--adapter", cls.pirate,
                               "--adapter", cls.poet)

  @classmethod
  def tearDownClass(cls):
    code = cls.server.end()
    cls.temporary.cleanup()
    assert code == 0, (code, cls.server.errors)

  @classmethod
  def path(cls, name):
    return str(cls.folder / f"{name}.arn")

  def told(self, *adapters):
    """What `arenite run` tells with these values of --adapter."""
    options = [word for value in adapters for word in ("--adapter", value)]
    told = subprocess.run(
        [ARENITE, "run", self.bundle, "--prompt", PROMPT, "--temperature", "0", "--max-tokens",
         str(N_TOKENS), *options], check=True, capture_output=True, text=True, timeout=60).stdout
    self.assertTrue(told)
    return told.rstrip("\n")

  def answer(self, **fields):
    reply = self.server.complete(PROMPT, max_tokens=N_TOKENS, **fields)
    self.assertEqual(200, reply.status, reply.text)
    return reply.json

  def text(self, **fields):
    return self.answer(**fields)["choices"][0]["text"]

  def assert_refused(self, status, param, words, **fields):
    reply = self.server.complete(PROMPT, **fields)
    self.assertEqual(status, reply.status, reply.text)
    error = reply.json["error"]
    self.assertEqual(param, error["param"])
    self.assertIn(words, error["message"])

  def test_models_are_listed_with_their_parent(self):
    models = self.server.get("/v1/models").json["data"]
    self.assertEqual(["fable", "pirate", "poet"], [m["id"] for m in models])
    self.assertEqual([None, "fable", "fable"], [m.get("parent") for m in models])
    self.assertEqual({"lora": 1, "scale": 4}, models[2]["meta"])
    self.assertEqual(models[2], self.server.get("/v1/models/poet").json)
    self.assertEqual(404, self.server.get("/v1/models/sailor").status)

  def test_each_model_tells_what_the_command_tells(self):
    base, pirate, poet = self.told(), self.told(self.pirate), self.told(self.poet)
    self.assertEqual(3, len({base, pirate, poet}))
    for _ in range(2):
      self.assertEqual(base, self.text())
      self.assertEqual(pirate, self.text(model="pirate"))
      self.assertEqual(poet, self.text(model="poet"))
      self.assertEqual(base, self.text(model="fable"))

  def test_lora_adds_adapters_with_the_scales_of_the_request(self):
    both = self.told(self.path("pirate") + "=-3", self.path("poet"))
    self.assertNotIn(both, [self.told(), self.told(self.path("poet"))])
    self.assertEqual(both, self.text(lora=[{"id": 1}, {"id": 0, "scale": -3}]))
    self.assertEqual(self.told(), self.text(lora=[]))
    self.assertEqual(self.told(), self.text(lora=[{"id": 0, "scale": 0}]))
    self.assertEqual(self.text(model="pirate"), self.text(lora=[{"id": 0, "scale": 2}]))

  def test_answers_repeat_the_model_and_streams_too(self):
    self.assertEqual("pirate", self.answer(model="pirate")["model"])
    self.assertEqual("fable", self.answer()["model"])
    self.assertEqual("pirate", self.server.chat("Hello", model="pirate").json["model"])
    stream = self.server.complete(PROMPT, model="poet", stream=True, max_tokens=N_TOKENS)
    self.assertEqual({"poet"}, {chunk["model"] for chunk in stream.chunks})
    text = "".join(chunk["choices"][0]["text"] for chunk in stream.chunks if chunk["choices"])
    self.assertEqual(self.told(self.poet), text)
    reply = self.server.post("/v1/responses", {"model": "poet", "input": "Hello",
                                               "max_output_tokens": 4})
    self.assertEqual("poet", reply.json["model"])

  def test_tokens_are_kept_for_the_same_adapters_only(self):
    def cached(**fields):
      self.server.wait_until_idle()
      usage = self.answer(**fields)["usage"]
      return usage["prompt_tokens_details"]["cached_tokens"]
    with_scale = [{"id": 0, "scale": 0.125}]
    self.assertEqual(0, cached(lora=with_scale))
    self.assertLess(0, cached(lora=with_scale))
    self.assertEqual(0, cached(lora=[{"id": 0, "scale": 0.0625}]))

  def test_several_replies_have_the_adapters_of_the_request(self):
    choices = self.answer(model="pirate", n=3)["choices"]
    self.assertEqual({self.told(self.pirate)}, {c["text"] for c in choices})
    self.assertEqual(self.told(), self.text())

  def test_requests_beside_each_other_keep_their_own(self):
    names = ["fable", "pirate", "poet"] * 6
    expected = {name: self.text(model=name) for name in names[:3]}
    found = [None] * len(names)

    def ask(i):
      found[i] = self.text(model=names[i])

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(len(names))]
    for thread in threads:
      thread.start()
    for thread in threads:
      thread.join()
    self.assertEqual([expected[name] for name in names], found)

  def test_mistakes_name_the_field(self):
    self.assert_refused(404, "model", 'this server has "fable", "pirate", "poet"', model="sailor")
    self.assert_refused(400, "lora", "cannot be combined", model="poet", lora=[{"id": 0}])
    self.assert_refused(400, "lora", "expected an array", lora={"id": 0})
    self.assert_refused(400, "lora[0]", "expected an object", lora=[0])
    self.assert_refused(400, "lora[0].id", "is missing", lora=[{"scale": 1}])
    self.assert_refused(400, "lora[1].id", "the server has 2 adapters", lora=[{"id": 0}, {"id": 2}])
    self.assert_refused(400, "lora[1].id", "is there twice", lora=[{"id": 1}, {"id": 1}])
    self.assert_refused(400, "lora[0].scale", "expected", lora=[{"id": 1, "scale": "much"}])
    self.assert_refused(400, "lora[0].name", "", lora=[{"id": 1, "name": "poet"}])

  def test_two_models_of_one_name_are_refused(self):
    for options, words in (
        (("--adapter", self.path("poet"), "--adapter", self.path("poet")), "rename the file"),
        (("--name", "poet", "--adapter", self.path("poet")), "see --name")):
      done = subprocess.run([ARENITE, "serve", self.bundle, "--port", "0", *options],
                            capture_output=True, text=True, timeout=60)
      self.assertNotEqual(0, done.returncode)
      self.assertIn("--adapter poet: another model has this name", done.stderr)
      self.assertIn(words, done.stderr)


if __name__ == "__main__":
  unittest.main(argv=sys.argv[:1])
