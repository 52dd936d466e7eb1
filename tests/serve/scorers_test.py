#!/usr/bin/env python3
"""arenite serve with models of vectors and of scores, beside one that makes text and without it.

usage: scorers_test.py ARENITE CONVERTER CHECKPOINT
"""

import base64
import json
import math
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

import server

ARENITE, CONVERTER, CHECKPOINT = sys.argv[1:4]
WIDTH = 192  # of the checkpoint


class TextScorers(server.RefusalAssertions, unittest.TestCase):
  """Vectors and scores, by two more bundles of the same checkpoint."""

  @classmethod
  def setUpClass(cls):
    cls.folder = tempfile.TemporaryDirectory()
    folder = pathlib.Path(cls.folder.name)
    template = folder / "pair.txt"
    template.write_text("{query} {document} Answer:")
    kinds = {"text": [], "vectors": ["--pooling", "mean"],
             "scores": ["--score-tokens", " the, a", "--pair-template", str(template)]}
    for name, flags in kinds.items():
      subprocess.run([CONVERTER, CHECKPOINT, "-o", str(folder / f"{name}.arn"), *flags],
                     check=True, capture_output=True)
    cls.vectors, cls.scores = folder / "vectors.arn", folder / "scores.arn"
    cls.server = server.Server(ARENITE, str(folder / "text.arn"), "--embedder", str(cls.vectors),
                               "--reranker", str(cls.scores))

  @classmethod
  def tearDownClass(cls):
    code = cls.server.end()
    cls.folder.cleanup()
    assert code == 0, (code, cls.server.errors)

  def embed(self, given, **fields):
    reply = self.server.post("/v1/embeddings", {"input": given, **fields})
    self.assertEqual(200, reply.status, reply.text)
    return reply.json

  def test_vectors_are_those_of_the_command(self):
    texts = ["once upon a time", "a fox"]
    answer = self.embed(texts, model="vectors")
    self.assertEqual([0, 1], [entry["index"] for entry in answer["data"]])
    for text, entry in zip(texts, answer["data"]):
      printed = subprocess.run([ARENITE, "embed", str(self.vectors), "--text", text, "--json"],
                               check=True, capture_output=True, text=True).stdout
      expected = json.loads(printed)["vectors"][0]
      self.assertEqual(len(expected), len(entry["embedding"]))
      for a, b in zip(expected, entry["embedding"]):
        self.assertAlmostEqual(a, b, places=5)
    n_tokens = sum(self.embed(text)["usage"]["prompt_tokens"] for text in texts)
    self.assertEqual(n_tokens, answer["usage"]["prompt_tokens"])

  def test_token_ids_are_texts(self):
    text = "a fox"
    printed = subprocess.run([ARENITE, "tokenize", str(self.vectors), "--text", text],
                             check=True, capture_output=True, text=True).stdout
    ids = json.loads(printed)["ids"]
    expected = self.embed(text)["data"][0]["embedding"]
    answer = self.embed(ids)
    self.assertEqual(len(ids), answer["usage"]["prompt_tokens"])
    self.assertEqual(expected, answer["data"][0]["embedding"])
    self.assertEqual([expected, expected],
                     [entry["embedding"] for entry in self.embed([ids, ids])["data"]])

  def test_base64_and_fewer_dimensions_hold_the_same_floats(self):
    whole = self.embed("a fox")["data"][0]["embedding"]
    short = self.embed("a fox", dimensions=5, encoding_format="base64")["data"][0]["embedding"]
    self.assertEqual(whole[:5], list(struct.unpack("<5f", base64.b64decode(short))))

  def test_rerank_orders_as_the_command_does(self):
    documents = ["a hen", "the fox", "a fox and a hen"]
    reply = self.server.post("/v1/rerank", {"query": "fox", "documents": documents, "top_n": 2,
                                            "return_documents": True})
    self.assertEqual(200, reply.status, reply.text)
    results = reply.json["results"]
    lines = pathlib.Path(self.folder.name) / "documents.txt"
    lines.write_text("\n".join(documents))
    printed = subprocess.run([ARENITE, "rerank", str(self.scores), "--query", "fox", "--file",
                              str(lines), "--top", "2", "--json"],
                             check=True, capture_output=True, text=True).stdout
    expected = json.loads(printed)["results"]
    self.assertEqual([entry["text"] for entry in expected],
                     [result["document"]["text"] for result in results])
    for entry, result in zip(expected, results):
      self.assertAlmostEqual(entry["score"], result["relevance_score"], places=5)

  def test_mistakes_name_the_field(self):
    for body, status, param, word in [
        ({"input": []}, 400, "input", "2048"), ({"input": ["a", 3]}, 400, "input[1]", "string"),
        ({}, 400, "input", ""), ({"input": "a", "dimensions": 1000}, 400, "dimensions", "192"),
        ({"input": "a", "encoding_format": "f16"}, 400, "encoding_format", "base64"),
        ({"input": "a", "prompt_name": "query"}, 400, "prompt_name", "no prompts"),
        ({"input": "a", "model": "text"}, 404, "model", "vectors"),
        ({"input": "a", "inputs": "b"}, 400, "inputs", ""),
        ({"input": [1, "a"]}, 400, "input[1]", "token id below"),
        ({"input": [[1], [-1]]}, 400, "input[1][0]", "token id below"),
        ({"input": [[1], "a"]}, 400, "input[1]", "a string"),
        ({"input": [[]]}, 400, "input[0]", "0 token ids"),
        ({"input": [1] * 5000}, 400, "input", "5000 token ids"),
        ({"input": [1], "prompt_name": "query"}, 400, "prompt_name", "no prompts")]:
      self.assert_refused(self.server.post("/v1/embeddings", body), status, param, word)
    self.assert_refused(self.server.post("/v1/rerank", {"documents": ["a"]}), 400, "query", "")

  def test_models_are_listed(self):
    names = [model["id"] for model in self.server.get("/v1/models").json["data"]]
    self.assertEqual(["text", "vectors", "scores"], names)

  def test_a_bundle_of_another_kind_is_refused(self):
    for flag, bundle in (("--embedder", self.scores), ("--reranker", self.vectors)):
      done = subprocess.run([ARENITE, "serve", str(self.vectors), "--port", "0", flag, str(bundle)],
                            capture_output=True, text=True, check=False)
      self.assertEqual(1, done.returncode)
      self.assertIn(f"{flag} {bundle}: the model makes no", done.stderr)

  def start(self, *arguments):
    started = server.Server(ARENITE, *map(str, arguments))
    self.addCleanup(started.end)
    return started

  def checkpoint_of_scores(self):
    """Writes the checkpoint with a head of scores instead of tokens; returns its folder."""
    folder = pathlib.Path(self.folder.name) / "judge"
    if folder.exists():
      return folder
    shutil.copytree(CHECKPOINT, folder)
    config = json.loads((folder / "config.json").read_text())
    config.update(architectures=["Qwen3ForSequenceClassification"], num_labels=1)
    (folder / "config.json").write_text(json.dumps(config))
    data = (folder / "model.safetensors").read_bytes()
    n = struct.unpack("<Q", data[:8])[0]
    header, values = json.loads(data[8:8 + n]), data[8 + n:]
    head = struct.pack(f"<{WIDTH}f", *(math.sin(i) for i in range(WIDTH)))
    header["score.weight"] = {"dtype": "F32", "shape": [1, WIDTH],
                              "data_offsets": [len(values), len(values) + len(head)]}
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(
        struct.pack("<Q", len(text)) + text + values + head)
    return folder

  def judge(self):
    """Returns a bundle whose model makes scores and no text."""
    bundle = pathlib.Path(self.folder.name) / "judge.arn"
    if not bundle.exists():
      subprocess.run([CONVERTER, self.checkpoint_of_scores(), "-o", bundle], check=True,
                     capture_output=True)
    return bundle

  def start(self, *arguments):
    started = server.Server(ARENITE, *map(str, arguments))
    self.addCleanup(started.end)
    return started

  def assert_does_not_start(self, *words):
    done = subprocess.run([ARENITE, "serve", *map(str, words[:-1]), "--port", "0"],
                          capture_output=True, text=True, check=False, timeout=60)
    self.assertEqual(1, done.returncode)
    self.assertIn(words[-1], done.stderr)

  def test_a_model_without_text_serves_alone(self):
    alone = self.start(self.judge())
    self.assertNotIn("parsers", alone.printed)
    self.assertEqual(["judge"], [m["id"] for m in alone.get("/v1/models").json["data"]])
    reply = alone.post("/v1/rerank", {"query": "fox", "documents": ["a hen", "the fox"]})
    self.assertEqual(2, len(reply.json["results"]), reply.text)
    self.assert_refused(alone.post("/v1/embeddings", {"input": "a"}), 501, "model", "--embedder")
    for path in ("/v1/chat/completions", "/v1/completions", "/v1/responses", "/tokenize",
                 "/detokenize", "/apply-template"):
      self.assert_refused(alone.post(path, {}), 501, "model", "no model that makes text")
    self.assert_refused(alone.get("/"), 501, "model", "no model that makes text")
    self.assertEqual(404, alone.get("/v1/models/text").status)
    self.assertEqual(200, alone.get("/v1/models/judge").status)
    self.assertEqual("ok", alone.get("/health").json["status"])
    self.assertIsNone(alone.status()["model"])
    self.assertLess(0, alone.status()["memory"]["resident"])
    self.assertEqual(0, alone.metric("sequences"))
    self.assertEqual(0, alone.end(), alone.errors)

  def test_vectors_beside_a_model_without_text(self):
    both = self.start(self.judge(), "--embedder", self.vectors)
    self.assertEqual(["vectors", "judge"], [m["id"] for m in both.get("/v1/models").json["data"]])
    body = {"input": "a fox"}
    self.assertEqual(self.server.post("/v1/embeddings", body).json["data"],
                     both.post("/v1/embeddings", body).json["data"])

  def test_a_model_of_text_and_vectors_makes_both(self):
    both = self.start(self.vectors)
    self.assertEqual(["vectors"], [m["id"] for m in both.get("/v1/models").json["data"]])
    self.assertIn("meta", both.get("/v1/models/vectors").json)
    body = {"input": "a fox", "model": "vectors"}
    self.assertEqual(self.server.post("/v1/embeddings", body).json["data"],
                     both.post("/v1/embeddings", body).json["data"])
    self.assertEqual(200, both.complete("Once", model="vectors").status)

  def test_the_name_is_that_of_vectors_and_scores_too(self):
    for bundle, path, body in ((self.vectors, "/v1/embeddings", {"input": "a"}),
                               (self.judge(), "/v1/rerank", {"query": "a", "documents": ["b"]})):
      named = self.start(bundle, "--name", "mine")
      self.assertEqual(["mine"], [m["id"] for m in named.get("/v1/models").json["data"]])
      self.assertEqual(200, named.post(path, {**body, "model": "mine"}).status)
      self.assertEqual(404, named.post(path, {**body, "model": bundle.stem}).status)

  def test_bundles_with_nothing_to_do_are_refused(self):
    judge = self.judge()
    other = shutil.copy(judge, judge.with_name("other.arn"))
    self.assert_does_not_start(judge, "--reranker", other,
                               f"{judge}: the model makes only scores, and --reranker names "
                               "another bundle for them")
    self.assert_does_not_start(judge, "--adapter", judge, f"{judge}: the model makes no text")


if __name__ == "__main__":
  unittest.main(argv=sys.argv[:1])
