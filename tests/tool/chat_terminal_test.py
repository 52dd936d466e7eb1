#!/usr/bin/env python3
"""arenite chat on a pseudo-terminal: editing, history, pasted lines, several lines, the commands
that change the conversation, and terminals that can do less.

usage: chat_terminal_test.py ARENITE CONVERTER CHECKPOINT
"""

import fcntl
import json
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

ARENITE, CONVERTER, CHECKPOINT = sys.argv[1:4]
TEMPLATE = ("{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}"
            "{% if add_generation_prompt %}<assistant>{% endif %}")
TIMEOUT = 60
ENTER, UP, LEFT, BACKSPACE, CTRL_C, CTRL_D, CTRL_J = (
    "\r", "\x1b[A", "\x1b[D", "\x7f", "\x03", "\x04", "\n")


class Terminal:
  """A program on a pseudo-terminal of 80 columns."""

  def __init__(self, command, home, **environment):
    self.output = ""
    kept = {name: value for name, value in os.environ.items()
            if name not in ("XDG_STATE_HOME", "COLUMNS", "LINES", "NO_COLOR")}
    environment = {**kept, "TERM": "xterm-256color", "HOME": home, **environment}
    self.pid, self.fd = pty.fork()
    if self.pid == 0:
      try:
        os.execve(command[0], command, environment)
      finally:
        os._exit(127)
    fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))

  def type(self, keys):
    os.write(self.fd, keys.encode())

  def wait(self, pattern, start=0):
    """Waits until the output from `start` on matches; returns the end of the match."""
    end = time.monotonic() + TIMEOUT
    while True:
      found = re.search(pattern, self.output[start:], re.DOTALL)
      if found:
        return start + found.end()
      left = end - time.monotonic()
      if left <= 0:
        raise AssertionError(f"no {pattern!r} in {self.output[start:]!r}")
      if select.select([self.fd], [], [], left)[0]:
        try:
          data = os.read(self.fd, 65536)
        except OSError:  # the program has ended
          data = b""
        if not data:
          raise AssertionError(f"ended without {pattern!r}: {self.output[start:]!r}")
        self.output += data.decode(errors="replace")
        self.answer_queries(data)

  def answer_queries(self, data):
    """The editor may ask where the cursor is."""
    for _ in range(data.count(b"\x1b[6n")):
      os.write(self.fd, b"\x1b[1;1R")

  def exit_code(self):
    end = time.monotonic() + TIMEOUT
    while time.monotonic() < end:
      if select.select([self.fd], [], [], 0.1)[0]:
        try:
          self.output += os.read(self.fd, 65536).decode(errors="replace")
        except OSError:
          pass
      pid, status = os.waitpid(self.pid, os.WNOHANG)
      if pid != 0:
        os.close(self.fd)
        return os.waitstatus_to_exitcode(status)
    os.kill(self.pid, signal.SIGKILL)
    raise AssertionError(f"still runs: {self.output!r}")


class ChatOnATerminal(unittest.TestCase):

  @classmethod
  def setUpClass(cls):
    cls.shared = tempfile.TemporaryDirectory()
    folder = pathlib.Path(cls.shared.name)
    shutil.copytree(CHECKPOINT, folder / "checkpoint")
    (folder / "checkpoint/chat_template.jinja").write_text(TEMPLATE)
    cls.bundle = str(folder / "fable.arn")
    subprocess.run([CONVERTER, folder / "checkpoint", "-o", cls.bundle, "--quiet"], check=True,
                   timeout=300)

  @classmethod
  def tearDownClass(cls):
    cls.shared.cleanup()

  def setUp(self):
    folder = tempfile.TemporaryDirectory()
    self.addCleanup(folder.cleanup)
    self.home = folder.name
    self.n_saved = 0

  def start(self, *arguments, **environment):
    if "--max-tokens" not in arguments:
      arguments += ("--max-tokens", "6")
    chat = Terminal([ARENITE, "chat", self.bundle, "--temperature", "0", *arguments], self.home,
                    **environment)
    chat.at = chat.wait("> ")
    return chat

  def say(self, chat, keys):
    """Types, waits for the next prompt, and returns the output in between."""
    start = len(chat.output)
    chat.type(keys)
    # The editor draws the prompt again with each key: the one with the new count of tokens, or
    # behind a command's answer, comes last.
    chat.wait(r"\x1b\[\?2004l.*\x1b\[\?2004h.*> ", start)
    return chat.output[start:]

  def messages(self, chat):
    self.n_saved += 1
    path = os.path.join(self.home, f"saved{self.n_saved}")
    start = len(chat.output)
    chat.type(f"/save {path}{ENTER}")
    chat.wait(f"saved .*{os.path.basename(path)}: [0-9]+ tokens", start)
    chat.wait(r"\x1b\[\?2004h.*> ", start)
    with open(path + ".messages.json", encoding="utf-8") as file:
      return [(m["role"], m["content"]) for m in json.load(file)]

  def said(self, chat):
    return [text for role, text in self.messages(chat) if role == "user"]

  def end(self, chat):
    chat.type(CTRL_D)
    self.assertEqual(0, chat.exit_code(), chat.output)

  def test_messages_are_edited_before_they_are_sent(self):
    chat = self.start()
    self.say(chat, "helo" + LEFT + "l" + ENTER)
    self.say(chat, "你好吗" + BACKSPACE + ENTER)
    self.assertEqual(["hello", "你好"], self.said(chat))
    self.end(chat)

  def test_earlier_messages_come_back(self):
    chat = self.start()
    self.say(chat, "first" + ENTER)
    self.say(chat, "second" + ENTER)
    self.say(chat, UP + UP + "!" + ENTER)
    self.assertEqual(["first", "second", "first!"], self.said(chat))
    self.end(chat)
    chat = self.start()
    self.say(chat, UP + UP + UP + "?" + ENTER)  # past /save and first!
    self.assertIn("?", self.said(chat)[0])
    self.end(chat)
    history = os.path.join(self.home, ".local/state/arenite/history")
    self.assertEqual(0o600, stat.S_IMODE(os.stat(history).st_mode))

  def test_history_can_be_off(self):
    chat = self.start("--history", "none")
    self.say(chat, "secret" + ENTER)
    self.end(chat)
    self.assertFalse(os.path.exists(os.path.join(self.home, ".local")))

  def test_pasted_lines_are_one_message(self):
    chat = self.start()
    self.say(chat, "\x1b[200~one\rtwo\r\nthree\x1b[201~" + ENTER)
    self.say(chat, "a" + CTRL_J + "b" + ENTER)
    self.assertEqual(["one\ntwo\nthree", "a\nb"], self.said(chat))
    self.end(chat)

  def test_undo_regenerate_and_edit(self):
    chat = self.start()
    self.say(chat, "one" + ENTER)
    whole = self.messages(chat)
    self.say(chat, "two" + ENTER)
    out = self.say(chat, "/undo" + ENTER)
    self.assertIn("taken back: two", out)
    self.assertEqual(whole, self.messages(chat))
    out = self.say(chat, "/regenerate" + ENTER)
    self.assertIn("greedy", out)
    self.assertEqual(whole, self.messages(chat))
    self.say(chat, "/edit" + ENTER)  # offers the message
    self.say(chat, " more" + ENTER)
    self.assertEqual(["one more"], self.said(chat))
    self.say(chat, "/edit other" + ENTER)
    self.assertEqual(["other"], self.said(chat))
    self.say(chat, "/undo" + ENTER)
    self.assertIn("no message", self.say(chat, "/undo" + ENTER))
    self.end(chat)

  def test_sampling_is_set(self):
    chat = self.start()
    self.assertIn("greedy", self.say(chat, "/set" + ENTER))
    self.assertIn("temperature 0.5", self.say(chat, "/set temperature 0.5" + ENTER))
    self.assertIn("top-k 3", self.say(chat, "/set top-k 3" + ENTER))
    self.assertIn("max-tokens 2", self.say(chat, "/set max-tokens 2" + ENTER))
    self.assertIn("did you mean --temperature?", self.say(chat, "/set temperture 1" + ENTER))
    self.assertIn("expected a number", self.say(chat, "/set temperature hot" + ENTER))
    self.assertIn("temperature 0.5, top-k 3", self.say(chat, "/set" + ENTER))
    self.end(chat)

  def test_help_has_topics(self):
    chat = self.start()
    self.assertIn("/regenerate", self.say(chat, "/help" + ENTER))
    self.assertIn("Ctrl-J", self.say(chat, "/help keys" + ENTER))
    self.assertIn("without its dashes", self.say(chat, "/help set" + ENTER))
    self.assertIn("did you mean /stats?", self.say(chat, "/sats" + ENTER))
    self.end(chat)

  def test_a_loaded_conversation_is_shown_and_files_are_private(self):
    chat = self.start()
    self.say(chat, "remember" + ENTER)
    self.messages(chat)
    self.end(chat)
    saved = os.path.join(self.home, "saved1")
    for path in (saved, saved + ".messages.json"):
      self.assertEqual(0o600, stat.S_IMODE(os.stat(path).st_mode), path)
    chat = self.start()
    out = self.say(chat, f"/load {saved}{ENTER}")
    self.assertRegex(out, r"you:(\x1b\[0m)? remember")
    self.assertIn("model:", out)
    self.end(chat)

  def test_the_prompt_shows_context_and_speed(self):
    chat = self.start()
    out = self.say(chat, "hello" + ENTER)
    self.assertRegex(out, r"[0-9]+/512 tokens, [0-9.]+ tokens/s ")
    self.end(chat)

  def test_ctrl_c_twice_quits(self):
    chat = self.start()
    start = len(chat.output)
    chat.type(CTRL_C)
    chat.wait("press Ctrl-C again.*> ", start)
    chat.type(CTRL_C)
    self.assertEqual(130, chat.exit_code())

  def test_ctrl_c_stops_an_answer(self):
    chat = self.start("--max-tokens", "0", "--ignore-eos", "--overflow", "shift")
    start = len(chat.output)
    chat.type("go on" + ENTER)
    chat.wait(r"\x1b\[\?2004l.*[a-z]+ [a-z]+ [a-z]+", start)
    chat.type(CTRL_C)
    chat.wait(r"\(stopped\).*> ", start)
    self.end(chat)

  def test_without_colour(self):
    chat = self.start(NO_COLOR="1")
    self.say(chat, "hello" + ENTER)
    self.end(chat)
    self.assertNotRegex(chat.output, r"\x1b\[[0-9;]*[1-9][0-9;]*m")

  def test_a_dumb_terminal_gets_plain_text(self):
    chat = self.start(TERM="dumb")
    start = len(chat.output)
    chat.type("hello\n")
    chat.wait(r"/512 tokens, [0-9.]+ tokens/s > ", start)
    chat.type(CTRL_D)
    self.assertEqual(0, chat.exit_code())
    self.assertNotIn("\x1b", chat.output)

  def test_a_pipe_gets_answers_alone(self):
    run = subprocess.run([ARENITE, "chat", self.bundle, "--max-tokens", "6", "--temperature", "0"],
                         input="hello\n/set temperature 0.5\n", capture_output=True, text=True,
                         timeout=TIMEOUT, env={**os.environ, "TERM": "xterm"})
    self.assertEqual(0, run.returncode, run.stderr)
    self.assertEqual(1, run.stdout.count("\n"), run.stdout)
    self.assertNotIn("\x1b", run.stdout + run.stderr)


if __name__ == "__main__":
  unittest.main(argv=sys.argv[:1], verbosity=2)
