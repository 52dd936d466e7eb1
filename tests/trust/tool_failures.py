"""Commands under the fault shim: they end in time, with 0 and all of their output or with an error
that they say, and leave no half file."""

import pathlib
import re
import shutil
import subprocess

import faults

SECONDS = 60


def plain(text):
  """Without what is measured."""
  return re.sub(r'("tokens_per_s": )[0-9.e+-]+', r"\1-", text)


class Command:
  """A command line with the folder that it may write to."""

  def __init__(self, name, arguments, output=None, text_input=None, reader=None):
    """reader: a command that succeeds if the output is whole, for an output that may be another."""
    self.name, self.arguments, self.output = name, [str(a) for a in arguments], output
    self.text_input = text_input
    self.reader = [str(a) for a in reader] if reader else None

  def run(self, folder, environment=None):
    """Returns the completed process; None: it hangs."""
    try:
      return subprocess.run(self.arguments, cwd=folder, env=environment, input=self.text_input,
                            capture_output=True, text=True, errors="replace", timeout=SECONDS)
    except subprocess.TimeoutExpired:
      return None


class CommandFailures:
  """One command: what it gives if nothing fails, and how it fails."""

  def __init__(self, command, control, folder):
    self.command, self.control = command, control
    self.folder = pathlib.Path(folder) / f"work_{command.name}"
    self.reset()
    self.good = command.run(self.folder)
    assert self.good is not None and self.good.returncode == 0, self.good
    self.output = self.contents()

  def contents(self):
    path = self.folder / self.command.output if self.command.output else None
    return path.read_bytes() if path and path.exists() else None

  def is_whole(self):
    if self.command.reader is None:
      return False
    return subprocess.run(self.command.reader, cwd=self.folder, capture_output=True,
                          check=False, timeout=SECONDS).returncode == 0

  def says_error(self, ended):
    """A chat says what went wrong and goes on with the next message."""
    return self.command.name == "chat" and "error: " in ended.stderr

  def reset(self, old=None):
    shutil.rmtree(self.folder, ignore_errors=True)
    self.folder.mkdir()
    if old is not None:
      (self.folder / self.command.output).write_bytes(old)

  def calls(self, kind):
    self.reset()
    self.control.arm(kind, 0, 0, False)
    self.command.run(self.folder, self.control.environment)
    self.control.disarm()
    return self.control.get("calls")

  def problem(self, kind, error, at, is_forever, is_hidden):
    """Fails one call. Returns what is wrong with what follows, or None."""
    old = b"old" if self.command.output else None
    self.reset(old)
    self.control.arm(kind, error, at, is_forever)
    ended = self.command.run(self.folder, self.control.environment)
    self.control.disarm()
    if ended is None:
      return "hangs"
    if ended.returncode < 0 or ended.returncode > 2:
      return f"ends with {ended.returncode}: {ended.stderr[-300:]}"
    found = self.contents()
    left = {path.name for path in self.folder.iterdir()} - {self.command.output}
    if left:
      return f"leaves {sorted(left)}"
    if ended.returncode == 0:
      if found != self.output:
        return "ends with 0 and another file"
      if plain(ended.stdout) != plain(self.good.stdout) and not self.says_error(ended):
        return f"ends with 0 and another text: {ended.stdout[-200:]!r}"
      return None
    if is_hidden:
      return f"is noticed: {ended.stderr[-300:]}"
    # The new file may be there if only its folder could not be synced.
    if found not in (old, self.output) and not self.is_whole():
      return "the file is neither the old nor the new one"
    # What is written to a standard error that takes nothing is lost.
    if "error: " not in ended.stderr and not (kind == "write" and is_forever):
      return f"ends with {ended.returncode} and says nothing: {ended.stderr[-300:]!r}"
    return None


def fail_command(failures, most, kinds):
  """Yields a line of the report for each class, error and mode."""
  counts = {}
  for kind, error, can_last, is_hidden in kinds:
    if kind not in counts:
      counts[kind] = failures.calls(kind)
    for is_forever in (False, True) if can_last else (False,):
      problems, runs = [], 0
      for at in faults.spread(counts[kind], most):
        problem = failures.problem(kind, error, at, is_forever, is_hidden)
        runs += 1
        if problem:
          problems.append(f"call {at}: {problem}")
      yield {"scenario": "tool_" + failures.command.name, "class": kind,
             "error": faults.error_name(error), "mode": "forever" if is_forever else "once",
             "calls": counts[kind], "runs": runs, "problems": problems}


def commands(arenite, converter, bundles, checkpoint, tiny, key, wav):
  run = [arenite, "run", bundles / "text.arn", "--prompt", "Once upon a time", "--threads", "2",
         "--seed", "1"]
  return [
      Command("run", [*run, "--max-tokens", "12"]),
      Command("run_save", [*run, "--max-tokens", "4", "--save", "x.state"], "x.state",
              reader=[arenite, "run", bundles / "text.arn", "--restore", "x.state",
                      "--max-tokens", "1"]),
      Command("run_schema", [*run, "--max-tokens", "12", "--regex", "[a-z ]{3,20}"]),
      Command("tokenize", [arenite, "tokenize", bundles / "text.arn", "--text", "a fox"]),
      Command("inspect", [arenite, "inspect", bundles / "text.arn", "--json"]),
      Command("chat", [arenite, "chat", bundles / "text.arn", "--max-tokens", "8", "--seed", "1",
                       "--history", "none"],
              text_input="Tell a story.\n"),
      Command("embed", [arenite, "embed", bundles / "vectors.arn", "--text", "a fox",
                        "--threads", "2"]),
      Command("transcribe", [arenite, "transcribe", bundles / "speech.arn", wav]),
      Command("convert", [converter, tiny, "-o", "x.arn"], "x.arn"),
      Command("convert_signed", [converter, tiny, "-o", "x.arn", "--sign", key], "x.arn"),
      Command("convert_text", [converter, checkpoint, "-o", "x.arn", "--weights", "int4"],
              "x.arn"),
  ]
