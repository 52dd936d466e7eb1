"""`arenite serve` under the fault shim: it starts or says why not; a request that meets a failure
is answered with an error at worst, and the next one as if nothing had been."""

import contextlib
import http.client
import pathlib
import re
import signal
import subprocess
import threading

import faults
from server import Server

SECONDS = 60
QUESTION = {"messages": [{"role": "user", "content": "Tell a story of a fox."}], "max_tokens": 8,
            "temperature": 0}


class WatchedServer(Server):
  """Under the shim, and ended by a timer if it neither listens nor ends."""

  def __init__(self, command, environment):
    self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                    text=True, env=environment)
    self.is_hanging = False
    self.timer = threading.Timer(SECONDS, self._kill)
    self.timer.start()
    self.printed, self.port = "", None
    while self.port is None:
      line = self.process.stdout.readline()
      if not line:
        break
      self.printed += line
      found = re.search(r"listening on http://[^ ]*:([0-9]+)", line)
      self.port = int(found.group(1)) if found else None

  def _kill(self):
    self.is_hanging = True
    self.process.kill()

  def ask(self):
    """Returns status and text of an answer; None: the connection broke."""
    try:
      reply = self.post("/v1/chat/completions", QUESTION)
      text = reply.json["choices"][0]["message"]["content"] if reply.status == 200 else reply.text
      return reply.status, text
    except (OSError, http.client.HTTPException):
      return None

  def files(self):
    return len(list(pathlib.Path(f"/proc/{self.process.pid}/fd").iterdir()))

  def end(self):
    if self.process.poll() is None:
      self.process.send_signal(signal.SIGTERM)
    out, err = self.process.communicate()
    self.timer.cancel()
    self.printed += out
    self.errors = err
    return self.process.returncode


class ServeFailures:

  def __init__(self, arenite, bundle, control):
    self.command = [str(arenite), "serve", str(bundle), "--port", "0", "--threads", "2",
                    "--sequences", "2", "--connections", "2", "--context", "128"]
    self.control = control

  def start(self):
    return WatchedServer(self.command, self.control.environment)

  def starts(self, kind, error, at, is_forever, is_hidden):
    """Fails a call from the start on. Returns the number of calls and a problem, or None."""
    self.control.arm(kind, error, at, is_forever)
    running = self.start()
    first = running.ask() if running.port is not None and not is_forever else None
    self.control.disarm()
    calls = self.control.get("calls")
    again = running.ask() if running.port is not None else None
    if again is None and running.port is not None:  # an error on the way from listening to serving
      running.process.wait(SECONDS)
      running.port = None
    code = running.end()
    if running.is_hanging:
      return calls, "hangs"
    if code < 0:
      return calls, f"ends by signal {-code}: {running.errors[-300:]}"
    if running.port is None:
      if is_hidden:
        return calls, f"is noticed: {running.errors[-300:]}"
      if "error: " not in running.errors and (kind != "write" or code == 0):
        return calls, f"ends with {code} and says nothing: {running.errors[-300:]!r}"
      return calls, None
    if again is None or again[0] != 200:
      return calls, f"answers {again} once nothing fails (before: {first}): {running.errors[-200:]}"
    if code != 0:
      return calls, f"ends with {code}: {running.errors[-300:]}"
    return calls, None

  def start_lines(self, most, kinds):
    for kind, error, can_last, is_hidden in kinds:
      calls, problem = self.starts(kind, error, 0, False, is_hidden)
      for is_forever in (False, True) if can_last else (False,):
        problems = [f"nothing fails: {problem}"] if problem else []
        at_calls = [] if problem else faults.spread(calls, most)
        for at in at_calls:
          found = self.starts(kind, error, at, is_forever, is_hidden)[1]
          if found:
            problems.append(f"call {at}: {found}")
        yield self._line("serve_start", kind, error, is_forever, calls, len(at_calls), problems)

  def request_lines(self, most, kinds):
    """Fails calls during requests of one server."""
    running = self.start()
    good = running.ask()
    assert good is not None and good[0] == 200, (good, running.printed)
    running.timer.cancel()
    for kind, error, can_last, is_hidden in kinds:
      self.control.arm(kind, error, 0, False)
      running.ask()
      self.control.disarm()
      calls = self.control.get("calls")
      for is_forever in (False, True) if can_last else (False,):
        problems, at_calls = [], faults.spread(calls, most)
        for at in at_calls:
          self.control.arm(kind, error, at, is_forever)
          given = running.ask()
          self.control.disarm()
          again = self._ask_again(running, good)
          problem = self._request_problem(running, good, given, again, is_hidden)
          if problem and not self._may_end(running, kind, is_forever):
            problems.append(f"call {at}: {problem}")
          if running.process.poll() is not None:
            running = self.start()
            running.timer.cancel()
        yield self._line("serve_request", kind, error, is_forever, calls, len(at_calls), problems)
    files = running.files()
    for _ in range(5):
      running.ask()
    code = running.end()
    problems = [] if code == 0 else [f"ends with {code}: {running.errors[-300:]}"]
    if files > 40:
      problems.append(f"{files} files are open after all")
    yield {"scenario": "serve_end", "class": "-", "error": "-", "mode": "-", "calls": 0, "runs": 1,
           "problems": problems}

  def _ask_again(self, running, good):
    """What was in work when the failures ended may still end a request."""
    for _ in range(3):
      given = running.ask()
      if given == good:
        break
      if given is None:
        with contextlib.suppress(subprocess.TimeoutExpired):
          running.process.wait(1)
    return given

  def _may_end(self, running, kind, is_forever):
    """Without any memory, the destructor of a JSON text (a third party's) ends the process."""
    return (kind == "memory" and is_forever and running.process.poll() == 1 and
            running.end() == 1 and running.errors.startswith("error: out of memory"))

  def _request_problem(self, running, good, given, again, is_hidden):
    if running.process.poll() is not None:
      return f"ends with {running.process.returncode}"
    if again != good:
      return f"the next answer is {again}"
    if given is not None and given[0] == 200 and given != good:
      return f"answers {given}"
    if given is not None and given[0] != 200 and not 400 <= given[0] < 600:
      return f"answers {given}"
    if is_hidden and given != good:
      return f"is noticed: {given}"
    return None

  def _line(self, scenario, kind, error, is_forever, calls, runs, problems):
    return {"scenario": scenario, "class": kind, "error": faults.error_name(error),
            "mode": "forever" if is_forever else "once", "calls": calls, "runs": runs,
            "problems": problems}
