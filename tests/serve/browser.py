"""A headless Chromium, for the tests of the page."""

import base64
import json
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.request

import server

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # of WebDriver
KEYS = {"Enter": "\ue007", "Escape": "\ue00c", "ArrowUp": "\ue013", "ArrowRight": "\ue014",
        "Delete": "\ue017"}


def free_port():
  with socket.socket() as s:
    s.bind(("127.0.0.1", 0))
    return s.getsockname()[1]


class Browser:
  """WebDriver, as far as this needs it."""

  def __init__(self, driver_port, width, height, scheme, *options):
    self.base = f"http://127.0.0.1:{driver_port}"
    arguments = ["--headless=new", "--no-sandbox", "--hide-scrollbars",
                 f"--window-size={max(width, 500)},{height}", *options]
    made = self.call("POST", "/session", {"capabilities": {"alwaysMatch": {
        "goog:chromeOptions": {"args": arguments}, "goog:loggingPrefs": {"browser": "ALL"}}}})
    self.path = f"/session/{made['sessionId']}"
    self.devtools("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": scheme}])
    if width < 500:  # the narrowest window
      self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height,
                    deviceScaleFactor=2, mobile=True)

  def call(self, method, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(self.base + path, data, method=method,
                                     headers={"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as reply:
      return json.load(reply)["value"]

  def devtools(self, command, **params):
    return self.call("POST", f"{self.path}/goog/cdp/execute", {"cmd": command, "params": params})

  def open(self, url):
    self.call("POST", f"{self.path}/url", {"url": url})

  def run(self, script, *arguments):
    return self.call("POST", f"{self.path}/execute/sync",
                     {"script": script, "args": list(arguments)})

  def run_later(self, script, *arguments):
    """The script hands its result to its last argument."""
    return self.call("POST", f"{self.path}/execute/async",
                     {"script": script, "args": list(arguments)})

  def press(self, key):
    self.call("POST", f"{self.path}/actions", {"actions": [
        {"type": "key", "id": "keys", "actions": [
            {"type": "keyDown", "value": KEYS[key]}, {"type": "keyUp", "value": KEYS[key]}]}]})

  def find(self, css):
    return self.call("POST", f"{self.path}/element",
                     {"using": "css selector", "value": css})[ELEMENT]

  def type(self, css, text):
    for name, key in KEYS.items():
      text = text.replace(f"<{name}>", key)
    self.call("POST", f"{self.path}/element/{self.find(css)}/value", {"text": text})

  def click(self, css):
    self.call("POST", f"{self.path}/element/{self.find(css)}/click", {})

  def wait_for(self, condition, seconds=30):
    end = time.monotonic() + seconds
    while not self.run(f"return Boolean({condition})"):
      assert time.monotonic() < end, f"{condition} does not come true"
      time.sleep(0.02)

  def picture(self):
    return base64.b64decode(self.call("GET", f"{self.path}/screenshot"))

  def problems(self):
    found = self.call("POST", f"{self.path}/se/log", {"type": "browser"})
    return [entry for entry in found if entry["level"] in ("SEVERE", "WARNING")]

  def close(self):
    self.call("DELETE", self.path)


class PageCase(unittest.TestCase):
  """Tests of the page of a server of its own. `options`: (ARENITE, CONVERTER, CHECKPOINT)."""

  options = ()
  pictures = None  # folder for screenshots
  title = "fable"
  flags = ()  # of Chromium

  @classmethod
  def start_server(cls, folder):
    arenite, converter, checkpoint = cls.options
    bundle = server.make_bundle(converter, checkpoint, folder)
    return server.Server(arenite, bundle, "--sequences", "4")

  @classmethod
  def setUpClass(cls):
    cls.folder = tempfile.TemporaryDirectory()
    cls.server = cls.start_server(cls.folder.name)
    cls.port = free_port()
    cls.driver = subprocess.Popen(["chromedriver", f"--port={cls.port}"],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(200):
      try:
        urllib.request.urlopen(f"http://127.0.0.1:{cls.port}/status", timeout=5).close()
        break
      except (urllib.error.URLError, ConnectionError):
        time.sleep(0.1)

  @classmethod
  def tearDownClass(cls):
    cls.driver.terminate()
    cls.driver.wait()
    code = cls.server.end()
    cls.folder.cleanup()
    assert code == 0, (code, cls.server.errors)

  def open(self, width=1280, height=800, scheme="light", host="127.0.0.1"):
    browser = Browser(self.port, width, height, scheme, *self.flags)
    self.addCleanup(browser.close)
    browser.open(f"http://{host}:{self.server.port}/")
    browser.wait_for(f"document.title.startsWith('{self.title}')")
    return browser

  def keep(self, browser, name):
    """Keeps a picture of the page, if there is a folder for it."""
    if self.pictures:
      self.pictures.mkdir(parents=True, exist_ok=True)
      (self.pictures / f"{name}.png").write_bytes(browser.picture())

  def say(self, browser, text, n):
    """Sends a message; waits for the reply that makes n messages of them."""
    browser.type("#draft", text + "<Enter>")
    browser.wait_for(f"!running && messages.length === {n}")
    error = browser.run("return messages.at(-1).error || ''")
    self.assertEqual("", error)
