"""Tests Adapter on the demo model: selections, what merging gives, lifetimes and refusals."""

import pathlib
import sys
import unittest

import support

rest = support.parse_arguments()
sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

import arenite  # noqa: E402
from adapter_files import write_adapter  # noqa: E402

PROMPT = [5, 6, 7, 8]


class AdapterTest(unittest.TestCase):
  @classmethod
  def setUpClass(cls):
    cls.folder = support.temporary_folder()
    cls.bundle = cls.folder / "base.arn"
    checkpoint = support.options.source / "models/fable/fable-2m"
    convert = support.options.bin / "arenite-convert"
    support.run(convert, checkpoint, "-o", cls.bundle, "--weights", "f32")
    for seed, name in enumerate(("first", "second")):
      write_adapter(cls.folder / name, checkpoint, seed)
      support.run(convert, checkpoint, "--lora", cls.folder / name, "--base", cls.bundle, "-o",
                  cls.folder / f"{name}.arn", "--weights", "f32")
    support.run(convert, checkpoint, "--lora", cls.folder / "first", "--merge", "-o",
                cls.folder / "merged.arn", "--weights", "f32")

  def setUp(self):
    self.model = arenite.Model(self.bundle)
    self.addCleanup(self.model.close)
    self.first, self.second = (
        arenite.Adapter(self.model, self.folder / f"{name}.arn") for name in ("first", "second"))

  def logits(self, session, adapters):
    session.reset()
    session.set_adapters(adapters)
    session.prefill(PROMPT)
    return session.logits()

  def test_adds_what_merging_adds(self):
    with self.model.session(kv="f32", adapters=[self.second, self.first]) as session:
      found = self.logits(session, [self.first])
      base = self.logits(session, [])
      scaled = self.logits(session, {self.first: 0.5, self.second: -1.0})
    with arenite.Model(self.folder / "merged.arn") as merged, merged.session(kv="f32") as session:
      session.prefill(PROMPT)
      expected = session.logits()
    for a, b in zip(expected, found):
      self.assertAlmostEqual(a, b, places=3)
    with self.model.session(kv="f32") as session:
      session.prefill(PROMPT)
      self.assertEqual(list(session.logits()), list(base))
    self.assertNotEqual(list(base), list(found))
    self.assertNotEqual(list(base), list(scaled))

  def test_info_and_plan(self):
    info = self.first.info
    self.assertEqual(("first", "base.arn"), (info.name, info.base_name))
    self.assertEqual(info.max_rank, 2)
    plan = self.model.plan(adapters=[self.first])
    self.assertEqual((1, info.file_bytes), (plan.n_adapters, plan.adapter_files_bytes))
    self.assertGreater(plan.adapters_bytes, 0)

  def test_session_keeps_a_closed_adapter(self):
    session = self.model.session(adapters=[self.first])
    self.first.close()
    session.set_adapters([self.first])
    session.prefill(PROMPT)
    session.close()
    with self.assertRaises(arenite.BadState):
      self.model.session(adapters=[self.first])

  def test_refusals_name_the_reason(self):
    with self.assertRaisesRegex(arenite.BadBundle, "no adapter"):
      arenite.Adapter(self.model, self.bundle)
    with arenite.Model(self.folder / "merged.arn") as other:
      with self.assertRaisesRegex(arenite.BadBundle, "base_hash"):
        arenite.Adapter(other, self.folder / "first.arn")
    with self.model.session(adapters=[self.first]) as session:
      with self.assertRaisesRegex(ValueError, "without this adapter"):
        session.set_adapters([self.second])
      session.prefill(PROMPT)
      with self.assertRaisesRegex(arenite.BadState, "empty"):
        session.set_adapters([self.first])


if __name__ == "__main__":
  support.main(rest)
