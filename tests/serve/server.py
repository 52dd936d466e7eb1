"""Starts `arenite serve` on a free port and talks to it."""

import http.client
import json
import pathlib
import re
import shutil
import signal
import subprocess
import time

TIMEOUT = 60
TEMPLATE = """\
{%- if tools %}{{- '<|im_start|>system\\n' + (tools | tojson) + '<|im_end|>\\n' }}{%- endif %}
{%- for m in messages %}
{{- '<|im_start|>' + m.role + '\\n' }}
{%- if m.role == 'assistant' and m.reasoning_content %}
{{- '<think>\\n' + m.reasoning_content + '\\n</think>\\n\\n' }}
{%- endif %}
{{- m.content }}
{%- if m.tool_calls %}{%- for call in m.tool_calls %}
{{- '\\n<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' }}
{{- (call.function.arguments | tojson) + '}\\n</tool_call>' }}
{%- endfor %}{%- endif %}
{{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}
{%- if enable_thinking is defined and enable_thinking %}{{- '<think>\\n' }}{%- endif %}
{%- endif %}
"""


def make_bundle(converter, checkpoint, folder):
  """Returns the path of a small model whose template has tools and reasoning."""
  folder = pathlib.Path(folder)
  shutil.copytree(checkpoint, folder / "checkpoint")
  (folder / "checkpoint/chat_template.jinja").write_text(TEMPLATE)
  bundle = folder / "fable.arn"
  subprocess.run([converter, folder / "checkpoint", "-o", bundle, "--quiet"], check=True,
                 timeout=300)
  return str(bundle)


class Reply:

  def __init__(self, response):
    self.status = response.status
    self.headers = {name.lower(): value for name, value in response.getheaders()}
    self.text = response.read().decode()

  @property
  def json(self):
    return json.loads(self.text)

  @property
  def chunks(self):
    """The JSON chunks of a stream, which must end as streams do."""
    lines = [line for line in self.text.split("\n\n") if line]
    assert all(line.startswith("data: ") for line in lines), self.text
    assert lines[-1] == "data: [DONE]", self.text
    return [json.loads(line[len("data: "):]) for line in lines[:-1]]


class Server:

  def __init__(self, arenite, bundle, *arguments):
    self.start([arenite, "serve", bundle, "--port", "0", *arguments])

  def start(self, command):
    self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                    text=True)
    self.printed = ""
    while "listening on" not in self.printed:
      line = self.process.stdout.readline()
      if not line:
        raise AssertionError(f"{self.printed}{self.process.stderr.read()}")
      self.printed += line
    self.port = int(re.search(r"listening on http://[^ ]*:([0-9]+)", self.printed).group(1))

  def connect(self):
    return http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT)

  def request(self, method, path, body=None, **headers):
    connection = self.connect()
    try:
      headers = {name.replace("_", "-"): value for name, value in headers.items()}
      if isinstance(body, (dict, list)):
        body = json.dumps(body)
      connection.request(method, path, body, headers)
      return Reply(connection.getresponse())
    finally:
      connection.close()

  def get(self, path, **headers):
    return self.request("GET", path, **headers)

  def post(self, path, body, **headers):
    return self.request("POST", path, body, **headers)

  def chat(self, text, **fields):
    return self.post("/v1/chat/completions", {
        "messages": [{"role": "user", "content": text}], "max_tokens": 24, "seed": 1, **fields})

  def complete(self, prompt, **fields):
    return self.post("/v1/completions",
                     {"prompt": prompt, "max_tokens": 16, "temperature": 0, **fields})

  def status(self):
    return self.get("/v1/status").json

  def metric(self, name):
    text = self.get("/metrics").text
    return float(re.search(rf"^arenite_{name} (\S+)$", text, re.MULTILINE).group(1))

  def wait_until_idle(self, seconds=10):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
      status = self.status()
      if status["queue"]["waiting"] == 0 and not any(s["busy"] for s in status["sequences"]):
        return
      time.sleep(0.01)
    raise AssertionError(f"still busy: {self.status()}")

  def end(self):
    """Ends the server as a service manager does; returns the exit code."""
    if self.process.poll() is None:
      self.process.send_signal(signal.SIGTERM)
    try:
      out, err = self.process.communicate(timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
      self.process.kill()
      raise
    self.printed += out
    self.errors = err
    return self.process.returncode


class RefusalAssertions:
  """For a unittest.TestCase."""

  def assert_refused(self, reply, status, param, *words):
    self.assertEqual(status, reply.status, reply.text)
    error = reply.json["error"]
    self.assertEqual({"message", "type", "param", "code"}, set(error))
    self.assertEqual(param, error["param"], error)
    for word in words:
      self.assertIn(word, error["message"])
