#!/usr/bin/env python3
"""arenite serve with a model that writes speech down: OpenAI's /v1/audio.

usage: speech_test.py ARENITE CONVERTER CHECKPOINT
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest

import server
from speech_server import BOUNDARY, convert, form, signal, wav

ARENITE, CONVERTER, CHECKPOINT = sys.argv[1:4]
TRANSCRIBE, TRANSLATE = "/v1/audio/transcriptions", "/v1/audio/translations"


class SpeechCase(server.RefusalAssertions, unittest.TestCase):

  def send(self, path, fields=None, file=None, name="file", to=None):
    return (to or self.server).post(
        path, form(fields or {}, file, name),
        Content_Type=f"multipart/form-data; boundary={BOUNDARY}")

  def ask(self, path, fields=None, file=None):
    reply = self.send(path, fields, file)
    self.assertEqual(200, reply.status, reply.text)
    return reply


class TranscriberAlone(SpeechCase):

  @classmethod
  def setUpClass(cls):
    cls.folder = tempfile.TemporaryDirectory()
    cls.bundle, cls.case = convert(CONVERTER, pathlib.Path(cls.folder.name), "multilingual")
    cls.server = server.Server(ARENITE, str(cls.bundle), "--kv", "f32")
    cls.run_ = cls.case["runs"][3]
    cls.sound = wav(signal(cls.run_["samples"]))
    cls.path = pathlib.Path(cls.folder.name) / "a.wav"
    cls.path.write_bytes(cls.sound)

  @classmethod
  def tearDownClass(cls):
    code = cls.server.end()
    cls.folder.cleanup()
    assert code == 0, (code, cls.server.errors)

  def command(self, *arguments):
    return subprocess.run([ARENITE, "transcribe", self.bundle, self.path, "--kv", "f32", "--quiet",
                           *arguments], check=True, capture_output=True, text=True).stdout

  def test_every_golden_has_its_segments(self):
    n_run = 0
    for run in self.case["runs"]:
      if not run["timestamps"]:
        continue  # the server always asks for times
      fields = {"response_format": "verbose_json"}
      if run["given"] and not run["translate"]:
        fields["language"] = run["given"]
      if run["translate"] and run["given"]:
        continue  # translations take no language
      found = self.ask(TRANSLATE if run["translate"] else TRANSCRIBE, fields,
                       wav(signal(run["samples"]))).json
      self.assertEqual("translate" if run["translate"] else "transcribe", found["task"])
      self.assertEqual(run["language"], found["language"])
      self.assertEqual([s["ids"] for s in run["segments"]],
                       [s["tokens"] for s in found["segments"]])
      for expected, segment in zip(run["segments"], found["segments"]):
        self.assertAlmostEqual(expected["start"], segment["start"])
        self.assertAlmostEqual(expected["end"], segment["end"])
      self.assertAlmostEqual(run["samples"] / 16000, found["duration"])
      n_run += 1
    self.assertGreater(n_run, 1)

  def test_forms_are_those_of_the_command(self):
    segments = json.loads(self.command("--format", "json"))["segments"]
    verbose = self.ask(TRANSCRIBE, {"response_format": "verbose_json",
                                    "timestamp_granularities[]": ["segment"]}, self.sound).json
    self.assertEqual([s["text"] for s in segments],
                     [s["text"].strip() for s in verbose["segments"]])
    text = "".join(s["text"] for s in verbose["segments"]).strip()
    self.assertTrue(text)
    whole = self.ask(TRANSCRIBE, {"model": "multilingual", "temperature": "0"}, self.sound).json
    self.assertEqual({"text", "usage"}, set(whole))
    self.assertEqual(text, whole["text"])
    self.assertEqual({"type": "duration", "seconds": self.run_["samples"] / 16000}, whole["usage"])
    reply = self.ask(TRANSCRIBE, {"response_format": "text"}, self.sound)
    self.assertEqual(text + "\n", reply.text)
    self.assertIn("text/plain", reply.headers["content-type"])
    for format_ in ("srt", "vtt"):
      reply = self.ask(TRANSCRIBE, {"response_format": format_}, self.sound)
      self.assertEqual(self.command("--format", format_), reply.text)

  def test_streams_deltas_and_the_whole(self):
    whole = self.ask(TRANSCRIBE, {}, self.sound).json
    reply = self.ask(TRANSCRIBE, {"stream": "true"}, self.sound)
    self.assertIn("text/event-stream", reply.headers["content-type"])
    events = [json.loads(line[len("data: "):]) for line in reply.text.split("\n\n") if line]
    self.assertGreater(len(events), 2)
    self.assertEqual({"transcript.text.delta"}, {event["type"] for event in events[:-1]})
    self.assertEqual("".join(event["delta"] for event in events[:-1]).strip(), whole["text"])
    self.assertEqual({"type": "transcript.text.done", **whole}, events[-1])

  def test_a_verbose_stream_has_times(self):
    for path in (TRANSCRIBE, TRANSLATE):
      whole = self.ask(path, {"response_format": "verbose_json"}, self.sound).json
      reply = self.ask(path, {"response_format": "verbose_json", "stream": "true"}, self.sound)
      events = [json.loads(line[len("data: "):]) for line in reply.text.split("\n\n") if line]
      segments = [event for event in events if event["type"] == "transcript.text.segment"]
      self.assertEqual([{"type": "transcript.text.segment", **segment}
                        for segment in whole["segments"]], segments)
      deltas = [event["delta"] for event in events if event["type"] == "transcript.text.delta"]
      self.assertEqual(whole["text"], "".join(deltas).strip())
      self.assertEqual({"type": "transcript.text.done", **whole}, events[-1])

  def test_words_are_those_of_the_command(self):
    segments = json.loads(self.command("--format", "json", "--words"))["segments"]
    expected = [{"word": word["text"].strip(), "start": word["start"], "end": word["end"]}
                for segment in segments for word in segment["words"] if word["text"].strip()]
    self.assertGreater(len(expected), 2)
    fields = {"response_format": "verbose_json", "timestamp_granularities[]": ["word"]}
    found = self.ask(TRANSCRIBE, fields, self.sound).json
    self.assertEqual(expected, found["words"])
    self.assertNotIn("segments", found)
    fields["timestamp_granularities[]"] = ["segment", "word"]
    both = self.ask(TRANSCRIBE, fields, self.sound).json
    self.assertEqual(expected, both["words"])
    self.assertEqual(len(segments), len(both["segments"]))
    self.assertNotIn("words", self.ask(TRANSCRIBE, {"response_format": "verbose_json"},
                                       self.sound).json)
    reply = self.ask(TRANSCRIBE, {**fields, "stream": "true"}, self.sound)
    events = [json.loads(line[len("data: "):]) for line in reply.text.split("\n\n") if line]
    self.assertEqual(expected, [word for event in events
                                if event["type"] == "transcript.text.segment"
                                for word in event["words"]])
    self.assertEqual(expected, events[-1]["words"])
    for format_ in ("srt", "vtt"):
      text = self.ask(TRANSCRIBE, {**fields, "response_format": format_}, self.sound).text
      self.assertEqual(len(expected), text.count(" --> "))
      self.assertEqual(self.command("--format", format_, "--words"), text)
    lines = self.command("--timestamps", "--words").splitlines()
    self.assertEqual(len(expected), len(lines))
    for word, line in zip(expected, lines):
      self.assertTrue(line.endswith("] " + word["word"]), line)
    refused = subprocess.run([ARENITE, "transcribe", self.bundle, self.path, "--words"],
                             capture_output=True, text=True)
    self.assertEqual(1, refused.returncode)
    self.assertIn("--words: text is without times", refused.stderr)

  def test_prompts_and_thresholds_are_those_of_the_command(self):
    def both(fields, *arguments):
      found = self.ask(TRANSCRIBE, {"response_format": "verbose_json", **fields}, self.sound).json
      ids = [segment["tokens"] for segment in found["segments"]]
      made = json.loads(self.command("--format", "json", *arguments))
      self.assertEqual([segment["ids"] for segment in made["segments"]], ids)
      return found["segments"], made
    plain, _ = both({})
    self.assertEqual({0.0}, {segment["avg_logprob"] for segment in plain})
    prompted, _ = both({"prompt": "  Ada, GGUF "}, "--prompt", "Ada, GGUF")
    self.assertNotEqual([s["tokens"] for s in plain], [s["tokens"] for s in prompted])
    both({"condition_on_previous": "true"}, "--condition-on-previous")
    rated, made = both({"logprob_threshold": "-1", "temperature_step": "0.5"},
                       "--logprob-threshold=-1", "--temperature-step", "0.5")
    self.assertEqual({1.0}, {segment["temperature"] for segment in rated})
    self.assertLess(max(segment["avg_logprob"] for segment in rated), -1)
    self.assertEqual(2 * made["windows"], made["retries"])
    _, made = both({"temperature_step": "0.2", "logprob_threshold": "-1",
                    "entropy_threshold": "2.4", "no_speech_threshold": "0.6"}, "--retry")
    self.assertEqual(5 * made["windows"], made["retries"])
    self.assertEqual(0, made["silent"])
    silent = json.loads(self.command("--format", "json", "--logprob-threshold=-0.5",
                                     "--no-speech-threshold", "1e-9"))
    self.assertEqual([], silent["segments"])
    self.assertEqual(silent["windows"], silent["silent"])

  def test_mistakes_name_the_field(self):
    for fields, file, status, param, word in [
        ({"response_format": "json"}, None, 400, "file", "missing"),
        ({}, b"RIFF", 400, "file", "not a WAV or FLAC file"),
        ({}, b"ID3" + bytes(100), 400, "file", "ffmpeg"),
        ({}, wav([]), 400, "file", "no samples"),
        ({}, wav([0.0] * 400, 1000), 400, "file", "1000 samples in a second"),
        ({"stream": "true"}, b"RIFF", 400, "file", "not a WAV or FLAC file"),
        ({"language": "tlh"}, self.sound, 400, "language", "yue"),
        ({"model": "whisper-1"}, self.sound, 404, "model", "multilingual"),
        ({"response_format": "xml"}, self.sound, 400, "response_format", "verbose_json"),
        ({"stream": "true", "response_format": "srt"}, self.sound, 400, "stream", "json"),
        ({"stream": "yes"}, self.sound, 400, "stream", "true or false"),
        ({"temperature": "1.4"}, self.sound, 400, "temperature", "from 0 to 1"),
        ({"logprob_threshold": "1"}, self.sound, 400, "logprob_threshold", "1"),
        ({"temperature_step": "0.01"}, self.sound, 400, None, "temperature_step is 0.01"),
        ({"no_speech_threshold": "0.5"}, self.sound, 400, None, "needs a logprob_threshold"),
        ({"condition_on_previous": "2"}, self.sound, 400, "condition_on_previous", "true or false"),
        ({"temperature": "warm"}, self.sound, 400, "temperature", "a number"),
        ({"timestamp_granularities[]": ["word"]}, self.sound, 400, "timestamp_granularities",
         "verbose_json"),
        ({"timestamp_granularities[]": ["letter"]}, self.sound, 400, "timestamp_granularities",
         "expected segment or word"),
        ({"languages": "en"}, self.sound, 400, "languages", "did you mean language?")]:
      with self.subTest(fields=fields, word=word):
        self.assert_refused(self.send(TRANSCRIBE, fields, file), status, param, word)
    self.assert_refused(self.send(TRANSCRIBE, {}, self.sound, name="audio"), 400, "audio",
                        "expected as file")
    self.assert_refused(self.send(TRANSLATE, {"language": "en"}, self.sound), 400, "language", "")
    self.assert_refused(self.server.post(TRANSCRIBE, {"model": "multilingual"}), 400, None,
                        "multipart/form-data")

  def test_many_at_once_get_their_own(self):
    sounds = [wav(signal(16000 + 4000 * i)) for i in range(4)]
    expected = [self.ask(TRANSCRIBE, {}, sound).json for sound in sounds]
    found = [None] * 12

    def one(i):
      found[i] = self.send(TRANSCRIBE, {"stream": "true"} if i % 3 == 0 else {}, sounds[i % 4])

    threads = [threading.Thread(target=one, args=(i,)) for i in range(len(found))]
    for thread in threads:
      thread.start()
    for thread in threads:
      thread.join()
    for i, reply in enumerate(found):
      self.assertEqual(200, reply.status, reply.text)
      last = reply.text.strip().split("\n\n")[-1].removeprefix("data: ")
      self.assertEqual(expected[i % 4]["text"], json.loads(last)["text"])

  def test_a_client_that_leaves_does_not_hold_others_up(self):
    long = wav(signal(16000 * 40))
    connection = self.server.connect()
    connection.request("POST", TRANSCRIBE, form({"stream": "true"}, long),
                       {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"})
    response = connection.getresponse()
    self.assertEqual(200, response.status)
    response.read(1)
    response.close()
    connection.close()
    self.ask(TRANSCRIBE, {}, self.sound)

  def test_models_and_other_endpoints(self):
    names = [model["id"] for model in self.server.get("/v1/models").json["data"]]
    self.assertEqual(["multilingual"], names)
    self.assertEqual("multilingual", self.server.get("/v1/models/multilingual").json["id"])
    self.assert_refused(self.server.chat("hello"), 501, "model", "no model that makes text")
    transcriber = self.server.status()["transcriber"]
    self.assertEqual(("multilingual", True, True), tuple(
        transcriber[name] for name in ("id", "can_translate", "has_timestamps")))
    self.assertIn("yue", transcriber["languages"])
    page = self.server.get("/")
    self.assertIn("text/html", page.headers["content-type"])
    self.assertEqual(page.text, self.server.get("/speech").text)
    self.assert_refused(self.server.post("/v1/embeddings", {"input": "a"}), 501, "model",
                        "--embedder")


class BesideText(SpeechCase):

  def test_a_server_of_text_takes_a_transcriber(self):
    with tempfile.TemporaryDirectory() as name:
      folder = pathlib.Path(name)
      bundle, case = convert(CONVERTER, folder, "english")
      text = folder / "text.arn"
      subprocess.run([CONVERTER, CHECKPOINT, "-o", text], check=True, capture_output=True)
      both = server.Server(ARENITE, str(text), "--transcriber", str(bundle))
      run = case["runs"][0]
      reply = self.send(TRANSCRIBE, {"response_format": "verbose_json"},
                        wav(signal(run["samples"])), to=both)
      self.assertEqual(200, reply.status, reply.text)
      self.assertEqual(200, both.complete("once").status)
      self.assertEqual("english", both.status()["transcriber"]["id"])
      self.assertNotEqual(both.get("/").text, both.get("/speech").text)
      self.assertEqual(["text", "english"],
                       [model["id"] for model in both.get("/v1/models").json["data"]])
      self.assert_refused(
          self.send(TRANSLATE, {}, wav(signal(1000)), to=both), 501, "model", "translate")
      self.assert_refused(self.send(TRANSCRIBE, {"language": "en"}, wav(signal(1000)), to=both),
                          400, "language", "one language")
      fields = {"response_format": "verbose_json", "timestamp_granularities[]": ["word"]}
      self.assert_refused(self.send(TRANSCRIBE, fields, wav(signal(1000)), to=both), 400,
                          "timestamp_granularities", "alignment_heads")
      self.assertEqual(0, both.end(), both.errors)

      alone = server.Server(ARENITE, str(text))
      self.assertIsNone(alone.status()["transcriber"])
      self.assert_refused(alone.get("/speech"), 501, "model", "--transcriber")
      self.assert_refused(self.send(TRANSCRIBE, {}, wav(signal(1000)), to=alone), 501, "model",
                          "--transcriber")
      self.assertEqual(0, alone.end(), alone.errors)
      done = subprocess.run([ARENITE, "serve", text, "--transcriber", text], capture_output=True,
                            text=True)
      self.assertEqual(1, done.returncode)
      self.assertIn("does not write speech down", done.stderr)


if __name__ == "__main__":
  unittest.main(argv=sys.argv[:1])
