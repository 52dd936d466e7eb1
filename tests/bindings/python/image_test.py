"""Tests ImageEncoder on a checkpoint of tests/golden/data/vision: its embeddings and tokens."""

import sys
import unittest

import support

rest = support.parse_arguments()

sys.path.insert(0, str(support.options.source / "tests/support"))

import arenite  # noqa: E402
from vision_checkpoint import IMAGE, golden_image, write_vision_checkpoint  # noqa: E402


class ImageEncoderTest(unittest.TestCase):
  @classmethod
  def setUpClass(cls):
    folder = support.temporary_folder()
    cls.case = write_vision_checkpoint(folder / "checkpoint")
    cls.bundle = folder / "see.arn"
    support.run(support.options.bin / "arenite-convert", folder / "checkpoint", "-o", cls.bundle,
                "--weights", "f32")

  def setUp(self):
    self.model = arenite.Model(self.bundle)
    self.addCleanup(self.model.close)

  def encode(self):
    with arenite.ImageEncoder(self.model, n_threads=1) as encoder:
      self.assertGreater(encoder.memory_bytes, 0)
      self.assertEqual(encoder.device_bytes, 0)
      self.assertEqual(encoder.backend.name, "cpu")
      self.assertEqual("<image>", encoder.info.marker)
      self.assertEqual(IMAGE, encoder.info.token_id)
      return [encoder.encode(b"".join(golden_image(*size, i)), *size)
              for i, size in enumerate(self.case["images"])]

  def session(self, n_images=2):
    rows = n_images * self.case["prompt"].count(IMAGE)
    return self.model.session(kv="f32", embedding_rows=rows)

  def test_embeddings_and_tokens_are_the_goldens(self):
    images = self.encode()
    found = [v for image in images for v in image.embeddings]
    width = len(found) // len(self.case["embeddings"])
    for row, expected in enumerate(self.case["embeddings"]):
      for i, value in enumerate(expected):
        self.assertAlmostEqual(value, found[row * width + 5 * i], delta=3e-4)
    with self.session() as session:
      session.prefill(self.case["prompt"], images)
      self.assertEqual(self.case["greedy"], [session.decode() for _ in self.case["greedy"]])

  def test_follow_keeps_equal_images(self):
    images = self.encode()
    prompt = self.case["prompt"]
    with self.session() as session:
      self.assertEqual(0, session.follow(prompt, images))
      self.assertEqual(len(prompt), session.follow([*prompt, 7, 8], images))
      other = [images[1], images[0]]
      self.assertEqual(prompt.index(IMAGE), session.follow(prompt, other))

  def test_chat_expands_the_markers_of_the_template_alone(self):
    images = self.encode()
    message = {"role": "user", "content": [{"type": "image"}, {"type": "image"},
                                           {"type": "text", "text": "What is an <image>?"}]}
    with self.model.chat() as chat, self.session() as session:
      ids = chat.tokenize([message], images=images)
      self.assertEqual(self.case["prompt"].count(IMAGE), ids.count(IMAGE))
      session.follow(ids, images)
      with self.assertRaisesRegex(arenite.BadArgument, "marker"):
        chat.tokenize([message], images=images[:1])

  def test_text_prompts_are_expanded(self):
    images = self.encode()
    with self.session() as session:
      session.prefill("a <image> b <image>", images)
      self.assertEqual(self.case["prompt"].count(IMAGE), sum(t < 0 for t in session.tokens))

  def test_refusals_name_the_reason(self):
    images = self.encode()
    with arenite.ImageEncoder(self.model, max_side=64) as encoder:
      with self.assertRaisesRegex(ValueError, "take more than 5 bytes"):
        encoder.encode(b"12345", 2, 1)
      with self.assertRaisesRegex(arenite.BadArgument, "65"):
        encoder.encode(bytes(65 * 3), 65, 1)
      encoder.cancel()
      with self.assertRaises(arenite.Cancelled):
        encoder.encode(bytes(48 * 32 * 3), 48, 32)
    with self.model.session() as session:
      with self.assertRaisesRegex(arenite.BadState, "embedding_rows"):
        session.prefill(self.case["prompt"], images)


if __name__ == "__main__":
  support.main(rest)
