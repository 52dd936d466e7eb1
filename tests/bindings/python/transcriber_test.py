"""Tests Transcriber on a checkpoint of tests/golden/data/speech: the segments of the goldens."""

import json
import pathlib
import sys
import unittest

import support

rest = support.parse_arguments()

sys.path.insert(0, str(support.options.source / "tests/support"))

import arenite  # noqa: E402
from speech_checkpoint import signal, write_checkpoint  # noqa: E402


class TranscriberTest(unittest.TestCase):
  @classmethod
  def setUpClass(cls):
    folder = support.temporary_folder()
    source = pathlib.Path(support.options.source)
    cls.case = json.loads((source / "tests/golden/data/speech/multilingual.json").read_text())
    write_checkpoint(cls.case, folder / "whisper")
    cls.bundle = folder / "whisper.arn"
    support.run(support.options.bin / "arenite-convert", folder / "whisper", "-o", cls.bundle,
                "--weights", "f32")

  def setUp(self):
    self.model = arenite.Model(self.bundle)
    self.addCleanup(self.model.close)

  def test_gives_the_segments_of_the_goldens(self):
    with arenite.Transcriber(self.model, kv="f32") as transcriber:
      for run in self.case["runs"]:
        seen, done = [], []
        found = transcriber.transcribe(
            signal(run["samples"]), language=run["given"], translate=run["translate"],
            timestamps=run["timestamps"], on_segment=seen.append,
            on_progress=lambda n, total: done.append((n, total)))
        self.assertEqual(run["language"], found.language)
        self.assertEqual([s["ids"] for s in run["segments"]], [list(s.ids) for s in found.segments])
        for expected, segment in zip(run["segments"], found.segments):
          self.assertAlmostEqual(expected["start"], segment.start_s)
          self.assertAlmostEqual(expected["end"], segment.end_s)
        self.assertEqual(found.segments, seen)
        self.assertEqual((run["samples"], run["samples"]), done[-1])
        self.assertEqual("", found.text)  # the bundle has no tokenizer

  def test_distrusted_windows_are_written_again(self):
    with arenite.Transcriber(self.model, kv="f32") as transcriber:
      pcm = signal(self.case["runs"][3]["samples"])
      plain = transcriber.transcribe(pcm)
      self.assertEqual({(0.0, 0.0)}, {(s.temperature, s.logprob) for s in plain.segments})
      again = transcriber.transcribe(pcm, temperature_step=0.5, logprob_threshold=-0.1, seed=3,
                                     condition_on_previous=True)
      self.assertEqual({1.0}, {s.temperature for s in again.segments})
      self.assertGreater(again.n_retries, 0)
      self.assertEqual(0, again.n_silent)
      silent = transcriber.transcribe(pcm, logprob_threshold=-0.1, no_speech_threshold=1e-9)
      self.assertEqual([], silent.segments)
      self.assertGreater(silent.n_silent, 0)
      with self.assertRaisesRegex(arenite.BadArgument, "needs a logprob_threshold"):
        transcriber.transcribe(pcm, no_speech_threshold=0.5)
      with self.assertRaises(arenite.Unsupported):  # there is no tokenizer
        transcriber.transcribe(pcm, prompt="Ada")

  def test_words_have_times(self):
    with arenite.Transcriber(self.model, kv="f32", words=True) as transcriber:
      run = self.case["runs"][3]
      found = transcriber.transcribe(signal(run["samples"]), words=True)
      for expected, segment in zip(run["segments"], found.segments, strict=True):
        text = [i for i, id_ in enumerate(expected["ids"]) if id_ < 500]
        self.assertEqual([(expected["ids"][i],) for i in text], [w.ids for w in segment.words])
        for i, word in zip(text, segment.words):
          self.assertAlmostEqual(expected["times"][i], word.end_s, delta=0.0201)
      self.assertEqual((), transcriber.transcribe(signal(9000)).segments[0].words)
    with arenite.Transcriber(self.model) as transcriber:
      with self.assertRaisesRegex(arenite.BadState, "words"):
        transcriber.transcribe([0.0], words=True)

  def test_refusals_name_the_reason(self):
    with arenite.Transcriber(self.model) as transcriber:
      with self.assertRaisesRegex(arenite.BadArgument, "no samples"):
        transcriber.transcribe([])
      with self.assertRaisesRegex(arenite.BadArgument, "tlh"):
        transcriber.transcribe([0.0], language="tlh")
      with self.assertRaises(ZeroDivisionError):
        transcriber.transcribe([0.0], on_progress=lambda done, total: 1 / 0)
      transcriber.cancel()
      with self.assertRaises(arenite.Cancelled):
        transcriber.transcribe([0.0])
      transcriber.transcribe([0.0])
    with self.assertRaises(arenite.BadState):
      transcriber.transcribe([0.0])


if __name__ == "__main__":
  support.main(rest)
