"""Tests Embedder on the demo model with pooling: vectors equal to the command's, and refusals."""

import json
import unittest

import support

rest = support.parse_arguments()

import arenite  # noqa: E402

TEXTS = ["The dog ran to the park.", "She ate a red apple.", ""]


class EmbedderTest(unittest.TestCase):
  @classmethod
  def setUpClass(cls):
    cls.bundle = support.temporary_folder() / "vectors.arn"
    support.run(support.options.bin / "arenite-convert",
                support.options.source / "models/fable/fable-2m", "-o", cls.bundle, "--weights",
                "int8", "--pooling", "mean")

  def setUp(self):
    self.model = arenite.Model(self.bundle)
    self.addCleanup(self.model.close)

  def test_gives_the_vectors_of_the_command(self):
    self.assertTrue(self.model.info.makes_vectors)
    with arenite.Embedder(self.model) as embedder:
      self.assertEqual(192, embedder.width)
      self.assertGreater(embedder.memory_bytes, 0)
      self.assertEqual({}, embedder.prompts)
      vectors = embedder.embed(TEXTS[:2])
      prompted = embedder.embed(TEXTS[:1], prompt="One day. ")
    for text, vector in zip(TEXTS, vectors):
      shown = support.run(support.options.bin / "arenite", "embed", self.bundle, "--text", text)
      for expected, found in zip(json.loads(shown)["vectors"][0], vector):
        self.assertAlmostEqual(expected, found, places=5)
    self.assertNotEqual(vectors[0], prompted[0])

  def test_width_cuts(self):
    with arenite.Embedder(self.model) as whole, arenite.Embedder(self.model, width=5) as cut:
      self.assertEqual(whole.embed(TEXTS[:1])[0][:5], cut.embed(TEXTS[:1])[0])

  def test_refusals_name_the_reason(self):
    with self.assertRaisesRegex(arenite.BadArgument, "max_tokens"):
      arenite.Embedder(self.model, max_tokens=10**6)
    with arenite.Embedder(self.model) as embedder:
      with self.assertRaisesRegex(arenite.Unsupported, "vectors, not scores"):
        embedder.rerank("a", ["b"])
      with self.assertRaisesRegex(arenite.BadArgument, "without tokens"):
        embedder.embed(TEXTS)
      embedder.cancel()
      with self.assertRaises(arenite.Cancelled):
        embedder.embed(TEXTS[:1])
      self.assertEqual(1, len(embedder.embed(TEXTS[:1])))
    with self.assertRaises(arenite.BadState):
      embedder.embed(TEXTS[:1])


if __name__ == "__main__":
  support.main(rest)
