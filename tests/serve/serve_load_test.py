#!/usr/bin/env python3
"""Many clients at once, some of which go away: each gets the reply to its own request, none is
forgotten, and the memory does not grow.

usage: serve_load_test.py ARENITE CONVERTER CHECKPOINT [sanitized]

sanitized: the program's memory is a sanitizer's too, so that it is not measured.
"""

import json
import random
import sys
import tempfile
import threading
import time
import unittest

import server

ARENITE, CONVERTER, CHECKPOINT = sys.argv[1:4]
MEASURES_MEMORY = "sanitized" not in sys.argv[4:]
CLIENTS, REQUESTS = 16, 12


class Load(unittest.TestCase):

  def setUp(self):
    folder = tempfile.TemporaryDirectory()
    self.addCleanup(folder.cleanup)
    bundle = server.make_bundle(CONVERTER, CHECKPOINT, folder.name)
    # Fewer pages than four full sequences need, and a queue for all clients.
    self.server = server.Server(ARENITE, bundle, "--sequences", "4", "--kv-tokens", "1024",
                                "--queue", str(CLIENTS))
    self.failures = []
    self.counts = {"answered": 0, "left": 0}
    self.lock = threading.Lock()

  def one(self, rng, name):
    """A request whose only possible answer has the name in it, or one that is given up."""
    filler = "a goat and a hen went to the river. " * rng.randrange(12)
    body = {"messages": [{"role": "user", "content": filler + name}],
            "max_tokens": 60, "temperature": 1, "stream": rng.random() < 0.5,
            "response_format": {"type": "json_schema", "json_schema": {
                "name": "n", "schema": {"type": "object", "properties": {"is": {"const": name}},
                                        "required": ["is"], "additionalProperties": False}}}}
    leaves = rng.random() < 0.3
    if leaves:
      del body["response_format"]
      body["ignore_eos"] = True
      body["max_tokens"] = 200
    while not self.ask(body, leaves, name):
      time.sleep(0.01)  # the queue is full

  def ask(self, body, leaves, name):
    connection = self.server.connect()
    try:
      connection.request("POST", "/v1/chat/completions", json.dumps(body))
      if leaves and not body["stream"]:
        key = "left"
      else:
        response = connection.getresponse()
        if leaves:
          response.readline()
          key = "left"
        else:
          key = "answered"
          reply = server.Reply(response)
          if reply.status == 429:
            return False
          assert reply.status == 200, reply.text
          if body["stream"]:
            text = "".join(c["delta"].get("content") or "" for chunk in reply.chunks
                           for c in chunk["choices"])
          else:
            text = reply.json["choices"][0]["message"]["content"]
          assert json.loads(text) == {"is": name}, (text, name)
    finally:
      connection.close()
    with self.lock:
      self.counts[key] += 1
    return True

  def client(self, number):
    rng = random.Random(number)
    for i in range(REQUESTS):
      try:
        self.one(rng, f"client {number} request {i}")
      except Exception as failure:  # for the main thread
        self.failures.append((number, i, failure))

  def round(self):
    threads = [threading.Thread(target=self.client, args=(n,)) for n in range(CLIENTS)]
    for thread in threads:
      thread.start()
    for thread in threads:
      thread.join()
    self.assertEqual([], self.failures)
    self.server.wait_until_idle()
    return self.server.status()["memory"]["resident"]

  def test_load(self):
    self.round()
    resident = self.round()
    again = self.round()
    self.assertEqual(3 * CLIENTS * REQUESTS, sum(self.counts.values()))
    self.assertGreater(self.counts["left"], 50)
    if MEASURES_MEMORY:
      self.assertLess(again, resident + (2 << 20), "the memory grows")
    # Bodies whose values take many times their bytes.
    nested = "[" * 98 + "]" * 98
    for body in ('{"prompt": [' + ",".join([nested] * 4000) + "]}",
                 '{"prompt": [' + ",".join(["{}"] * 300000) + "]}"):
      for _ in range(3):
        self.assertEqual(400, self.server.post("/v1/completions", body).status)
    if MEASURES_MEMORY:
      self.assertLess(self.server.status()["memory"]["resident"], again + (4 << 20))
    self.assertEqual(0, self.server.metric("requests_failed_total"))
    self.assertEqual(0, self.server.end())
    self.assertEqual("", self.server.errors)


if __name__ == "__main__":
  unittest.main(argv=sys.argv[:1])
