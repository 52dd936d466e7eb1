#!/usr/bin/env python3
"""The pages of arenite serve that take sound, in a headless Chromium with a microphone that plays a
file: the page of a transcriber, and dictation in a chat. Skipped without chromedriver; the rules of
axe-core also where npm cannot install it.

  speech_page_test.py ARENITE CONVERTER CHECKPOINT [FOLDER FOR SCREENSHOTS]
"""

import array
import base64
import json
import pathlib
import shutil
import struct
import sys
import tempfile
import unittest

import accessibility
import browser as chromium
import server
from speech_server import BOUNDARY, convert, form, signal, wav

SKIPPED = 77  # SKIP_RETURN_CODE
# Notes each request for a transcript, and hands its sound out as base64.
WATCH = """
window.sent = [];
const plain = fetch;
window.fetch = (path, options) => {
  if (options?.body instanceof FormData) sent.push([path, options.body]);
  return plain(path, options);
};
"""
SENT = """
const [path, body] = sent.at(-1);
const done = arguments[0];
const reader = new FileReader();
reader.onload = () => done([path, Object.fromEntries([...body].filter(([name]) => name !== 'file')),
    reader.result.split(',')[1]]);
reader.readAsDataURL(body.get('file'));
"""
DROP = """
const [name, data] = arguments;
const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
const moved = new DataTransfer();
moved.items.add(new File([bytes], name));
document.body.dispatchEvent(new DragEvent('drop', {dataTransfer: moved, bubbles: true,
                                                   cancelable: true}));
"""


def wav_file(data, kind, channels, width):
  """Returns a WAV file of 16 kHz. kind: 1: integers, 3: floats, of `width` bytes."""
  frame = channels * width
  head = struct.pack("<HHIIHH", kind, channels, 16000, 16000 * frame, frame, 8 * width)
  return (b"RIFF" + struct.pack("<I", 36 + len(data)) + b"WAVEfmt " + struct.pack("<I", 16) + head +
          b"data" + struct.pack("<I", len(data)) + data)


def samples_of(sound):
  """Returns the samples of a WAV file of 16 bits, one channel and 16 kHz."""
  kind, channels, rate = struct.unpack("<HHI", sound[20:28])
  assert (b"RIFF", b"WAVE", 1, 1, 16000) == (sound[:4], sound[8:12], kind, channels, rate)
  assert struct.unpack("<I", sound[40:44])[0] == len(sound) - 44
  return array.array("h", sound[44:])


class SpeechCase(chromium.PageCase):
  options = sys.argv[1:4]
  pictures = pathlib.Path(sys.argv[4]) if len(sys.argv) > 4 else None

  @classmethod
  def setUpClass(cls):
    spoken = tempfile.NamedTemporaryFile(suffix=".wav")
    pcm = array.array("h", (round(32767 * s) for s in signal(32000)))
    spoken.write(wav_file(pcm.tobytes(), 1, 1, 2))
    spoken.flush()
    cls.addClassCleanup(spoken.close)
    cls.flags = ("--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream",
                 f"--use-file-for-fake-audio-capture={spoken.name}",
                 "--autoplay-policy=no-user-gesture-required")
    super().setUpClass()

  def open(self, *arguments, **options):
    browser = super().open(*arguments, **options)
    browser.run(WATCH)
    return browser

  def ask(self, sound, **fields):
    return self.server.post(
        "/v1/audio/transcriptions", form(fields, sound),
        Content_Type=f"multipart/form-data; boundary={BOUNDARY}")

  def sent(self, browser):
    """Returns path, fields and sound of the last request for a transcript."""
    path, fields, sound = browser.run_later(SENT)
    return path, fields, base64.b64decode(sound)


class SpeechPage(SpeechCase):
  title = "multilingual"

  @classmethod
  def start_server(cls, folder):
    folder = pathlib.Path(folder)
    bundle, case = convert(cls.options[1], folder, "multilingual")
    cls.sound = wav(signal(case["runs"][3]["samples"]))
    cls.path = folder / "talk.wav"
    cls.path.write_bytes(cls.sound)
    return server.Server(cls.options[0], str(bundle), "--host", "0.0.0.0", "--kv", "f32")

  def choose(self, browser, *paths):
    browser.type("#files", "\n".join(map(str, paths)))
    self.wait(browser, len(paths))

  def drop(self, browser, name, data, n=1):
    browser.run(DROP, name, base64.b64encode(data).decode())
    self.wait(browser, n)

  def wait(self, browser, n):
    browser.wait_for(f"transcripts.length === {n} && !running")

  def shown(self, browser):
    return browser.run("return [...document.querySelectorAll('.transcript')[0].querySelectorAll("
                       "'.segments li')].map((line) => line.textContent)")

  def test_a_file_is_written_down_and_downloaded(self):
    browser = self.open()
    self.choose(browser, self.path)
    path, fields, sound = self.sent(browser)
    self.assertEqual("v1/audio/transcriptions", path)
    self.assertEqual({"response_format": "verbose_json", "stream": "true"}, fields)
    self.assertEqual(self.sound, sound)  # as it is
    whole = self.ask(self.sound, response_format="verbose_json").json
    lines = [f"{int(s['start'] // 60)}:{s['start'] % 60:05.2f}{s['text'].strip()}"
             for s in whole["segments"] if s["text"].strip()]
    self.assertGreater(len(lines), 1)
    self.assertEqual(lines, self.shown(browser))
    made = browser.run("return Object.fromEntries(Object.entries(FORMS).map(([name, form]) => "
                       "[name, form.make(transcripts[0].whole)]))")
    self.assertEqual(whole, json.loads(made["json"]))
    for ending, name in (("txt", "text"), ("srt", "srt"), ("vtt", "vtt")):
      self.assertEqual(self.ask(self.sound, response_format=name).text, made[ending])
    browser.run("window.links = []; HTMLAnchorElement.prototype.click = function() { "
                "links.push([this.download, this.protocol]); }; for (const button of "
                "document.querySelectorAll('[aria-label^=Download]')) button.click()")
    self.assertEqual([[f"talk.{ending}", "blob:"] for ending in ("txt", "srt", "vtt", "json")],
                     browser.run("return links"))
    self.assertRegex(browser.run("return $('rate').textContent"), r"^[\d.]+× real time$")
    browser.click("[aria-label='Copy the text']")
    browser.wait_for("$('said').textContent.endsWith('Copied.')")
    # The time of a segment plays it.
    browser.click(".segments li:last-child button")
    browser.wait_for("transcripts[0].audio.currentTime >= "
                     f"{[s['start'] for s in whole['segments'] if s['text'].strip()][-1]}")
    self.assertEqual([], browser.problems())

  def test_language_and_task(self):
    browser = self.open()
    languages = self.server.status()["transcriber"]["languages"]
    self.assertEqual(set(languages) | {""},
                     set(browser.run("return [...$('language').options].map((o) => o.value)")))
    browser.run("$('language').value = arguments[0]; $('language').onchange()", languages[0])
    self.choose(browser, self.path)
    self.assertEqual(languages[0], self.sent(browser)[1]["language"])
    browser.run("$('task').value = 'translate'; $('task').onchange()")
    self.assertTrue(browser.run("return $('language').disabled"))
    self.drop(browser, "again.wav", self.sound, 2)
    path, fields, _ = self.sent(browser)
    self.assertEqual("v1/audio/translations", path)
    self.assertNotIn("language", fields)
    self.assertEqual("translate", browser.run("return transcripts[0].whole.task"))
    # They are kept.
    browser.open(f"http://127.0.0.1:{self.server.port}/")
    browser.wait_for("$('task').value === 'translate' && $('language').value")

  def test_dropped_files_of_any_format(self):
    browser = self.open()
    self.drop(browser, "a.wav", self.sound)
    # A large file is sent as its 16 bits and one channel.
    left = array.array("f", signal(16000)) * 40
    both = array.array("f", bytes(8 * len(left)))
    both[0::2], both[1::2] = left, array.array("f", (0.5 * s for s in left))
    self.drop(browser, "large.wav", wav_file(both.tobytes(), 3, 2, 4), 2)
    heard = samples_of(self.sent(browser)[2])
    self.assertEqual(len(left), len(heard))
    error = max(abs(h / 32768 - 0.75 * s) for h, s in zip(heard, left))
    self.assertLess(error, 2 / 32768)
    self.drop(browser, "talk.ogg", self.ogg(), 3)
    self.assertAlmostEqual(2, len(samples_of(self.sent(browser)[2])) / 16000, places=1)
    self.assertEqual("", browser.run("return transcripts.map((t) => t.error).join('')"))
    self.assertEqual([], browser.problems())

  def test_the_microphone(self):
    browser = self.open()
    browser.run("$('record').focus()")
    browser.press("Enter")
    browser.wait_for("recording?.seconds() > 1.5 && recording.level() > 0.02")
    self.assertEqual("Stop", browser.run("return $('record').textContent"))
    browser.press("Enter")
    self.wait(browser, 1)
    self.assertEqual("", browser.run("return transcripts[0].error"))
    heard = samples_of(self.sent(browser)[2])
    self.assertGreater(len(heard), 16000)
    self.assertGreater(max(map(abs, heard)), 1000)
    # Escape gives a recording up.
    browser.press("Enter")
    browser.wait_for("recording")
    browser.press("Escape")
    browser.wait_for("!recording && $('level').classList.contains('hidden')")
    self.assertEqual(1, browser.run("return transcripts.length"))
    browser.run("navigator.mediaDevices.getUserMedia = () => "
                "Promise.reject(new DOMException('', 'NotAllowedError'))")
    browser.click("#record")
    browser.wait_for("$('problem').offsetParent")
    self.assertIn("does not let this page", browser.run("return $('problem').textContent"))

  def test_a_page_over_http_has_no_microphone_and_says_so(self):
    self.flags = (*self.flags, "--host-resolver-rules=MAP page.test 127.0.0.1")
    browser = self.open(host="page.test")
    self.assertTrue(browser.run("return $('record').disabled"))
    self.assertIn("https", browser.run("return $('microphone').innerText"))
    self.choose(browser, self.path)
    self.assertTrue(self.shown(browser))

  def test_mistakes_in_the_words_of_the_api(self):
    browser = self.open()
    self.drop(browser, "bad.wav", b"RIFF")
    expected = self.ask(b"RIFF").json["error"]["message"]
    self.assertEqual(expected, browser.run("return transcripts[0].error"))
    self.drop(browser, "text.txt", b"no sound", 2)
    self.assertEqual("text.txt has no sound that the browser reads",
                     browser.run("return transcripts[0].error"))
    self.drop(browser, "long.flac", b"fLaC" + bytes(9000000), 3)
    self.assertIn("--max-body", browser.run("return transcripts[0].error"))
    self.assertEqual(3, browser.run("return document.querySelectorAll('p.error:not(.hidden)')"
                                    ".length"))

  def test_cancel_ends_all(self):
    browser = self.open()
    browser.run("transcribeAll([0, 1, 2].map((i) => new File(['RIFF'], `${i}.wav`)));"
                "document.dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape'}))")
    self.wait(browser, 3)
    self.assertEqual(["Cancelled."] * 3, browser.run("return transcripts.map((t) => t.error)"))

  def test_every_width_and_colour(self):
    for name, width, height in (("desk", 1280, 800), ("phone", 390, 844)):
      for scheme in ("light", "dark"):
        with self.subTest(name=name, scheme=scheme):
          browser = self.open(width, height, scheme)
          self.drop(browser, "bad.wav", b"RIFF")
          self.drop(browser, "a_talk_about_foxes_and_hens.wav", self.sound, 2)
          self.assertLessEqual(browser.run("return document.documentElement.scrollWidth"), width)
          self.assertLessEqual(browser.run("return document.querySelector('main').scrollWidth"),
                               width)
          self.keep(browser, f"speech-{name}-{scheme}")
          browser.click("#record")
          browser.wait_for("recording?.seconds() > 0.5")
          self.keep(browser, f"speech-{name}-{scheme}-recording")
          luminance = browser.run(
              "return getComputedStyle(document.body).backgroundColor.match(/\\d+/g)[0]")
          self.assertEqual(scheme == "dark", int(luminance) < 128)

  def test_the_rules_of_axe(self):
    axe = accessibility.install_axe(pathlib.Path(self.folder.name))
    if axe is None:
      self.skipTest("there is no axe-core")
    for width, height in ((1280, 800), (390, 844)):
      for scheme in ("light", "dark"):
        browser = self.open(width, height, scheme)
        self.drop(browser, "bad.wav", b"RIFF")
        self.drop(browser, "a.wav", self.sound, 2)
        browser.run("showProblem('There is no microphone.')")
        browser.run(axe + "; window.axe = axe")
        with self.subTest(width=width, scheme=scheme):
          self.assertEqual([], browser.run_later(accessibility.VIOLATIONS))

  def test_names_and_what_is_heard(self):
    browser = self.open()
    browser.run(accessibility.LISTEN)
    self.drop(browser, "a.wav", self.sound)
    segments = browser.run("return transcripts[0].segments.map((s) => s.text.trim())")
    self.assertEqual([s for s in segments if s] + ["The transcript is complete."],
                     browser.run("return heard"))
    found = accessibility.tree(browser)
    names = {(role, name) for role, name, _ in found}
    for expected in (("main", ""), ("region", "Sound"), ("heading", "multilingual"),
                     ("button", "Record"), ("button", "Choose files"), ("combobox", "Language"),
                     ("combobox", "Task"), ("region", "Transcripts"), ("heading", "a.wav"),
                     ("article", "Transcript of a.wav"), ("button", "Download as SRT"),
                     ("button", "Copy the text"), ("status", "")):
      self.assertIn(expected, names)
    live = [(role, properties["live"]) for role, _, properties in found
            if properties.get("live", "off") != "off"]
    self.assertEqual({("status", "polite")}, set(live))
    unnamed = [role for role, name, _ in found if not name and role in
               ("button", "textbox", "slider", "combobox", "region", "progressbar")]
    self.assertEqual([], unnamed)

  def ogg(self):
    """Two seconds in a format that the server does not read."""
    browser = chromium.Browser(self.port, 800, 600, "light", *self.flags)
    try:
      browser.open(f"http://127.0.0.1:{self.server.port}/")
      return base64.b64decode(browser.run_later("""
          const done = arguments[0];
          record().then((recording) => setTimeout(async () => {
            const reader = new FileReader();
            reader.onload = () => done(reader.result.split(',')[1]);
            reader.readAsDataURL(await recording.stop('a'));
          }, 2000));"""))
    finally:
      browser.close()


class WithoutTimes(SpeechCase):
  title = "samples"

  @classmethod
  def start_server(cls, folder):
    bundle, _ = convert(cls.options[1], pathlib.Path(folder), "samples")
    return server.Server(cls.options[0], str(bundle))

  def test_text_is_one_paragraph_without_subtitles(self):
    browser = self.open()
    sound = wav(signal(12345))
    browser.run(DROP, "a.wav", base64.b64encode(sound).decode())
    browser.wait_for("transcripts.length === 1 && !running")
    whole = self.ask(sound, response_format="verbose_json").json
    self.assertTrue(whole["text"])
    self.assertEqual(whole["text"],
                     browser.run("return document.querySelector('p.text').textContent.trim()"))
    self.assertEqual(["Copy", "Text", "JSON"], browser.run(
        "return [...document.querySelectorAll('.actions button')].map((b) => b.textContent)"))
    self.assertEqual([], browser.run("return [...document.querySelectorAll('.segments')]"))
    self.assertEqual([], browser.problems())


class Dictation(SpeechCase):

  @classmethod
  def start_server(cls, folder):
    speech, _ = convert(cls.options[1], pathlib.Path(folder), "english")
    text = server.make_bundle(cls.options[1], cls.options[2], folder)
    return server.Server(cls.options[0], text, "--transcriber", str(speech))

  def test_a_message_is_dictated(self):
    browser = self.open()
    browser.wait_for("$('dictate').offsetParent")
    browser.type("#draft", "Tell me:")
    browser.click("#dictate")
    browser.wait_for("dictation?.seconds() > 1.5")
    self.assertEqual("Done", browser.run("return $('dictate').textContent"))
    self.keep(browser, "dictation")
    browser.click("#dictate")
    browser.wait_for("!dictation")
    written = browser.run("return $('draft').value")
    expected = self.ask(self.sent(browser)[2]).json["text"]
    self.assertTrue(expected)
    self.assertEqual("Tell me: " + expected, written)
    self.assertEqual("Dictate", browser.run("return $('dictate').textContent"))
    # Escape gives it up, and a browser without a microphone says so.
    browser.click("#dictate")
    browser.wait_for("dictation")
    browser.press("Escape")
    browser.wait_for("!dictation")
    self.assertEqual(written, browser.run("return $('draft').value"))
    browser.run("navigator.mediaDevices.getUserMedia = () => "
                "Promise.reject(new DOMException('', 'NotFoundError'))")
    browser.click("#dictate")
    browser.wait_for("$('problem').offsetParent")
    self.assertEqual("There is no microphone.", browser.run("return $('problem').textContent"))
    self.assertEqual([], browser.problems())

  def test_the_page_of_files_is_beside_it(self):
    browser = self.open()
    browser.wait_for("document.querySelector('#dictation a').offsetParent")
    browser.click("#dictation a")
    browser.wait_for("document.title.startsWith('english')")
    # The model has one language and does not translate.
    self.assertEqual([True, True, False], browser.run(
        "return ['#tasks', 'label:has(#language)', '#chat'].map((css) => "
        "!document.querySelector(css).offsetParent)"))
    browser.click("#chat")
    browser.wait_for("document.title.startsWith('fable')")


if __name__ == "__main__":
  if not shutil.which("chromedriver"):
    print("skipped: there is no chromedriver")
    sys.exit(SKIPPED)
  unittest.main(argv=sys.argv[:1])
