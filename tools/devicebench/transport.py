"""Ways to reach a device: adb, ssh, or none for this machine. Each runs a POSIX shell script there,
and copies files.
"""

import os
import shlex
import shutil
import signal
import subprocess

LOST_ADB = ("not found", "device offline", "no devices", "device unauthorized", "protocol fault",
            "error: closed", "cannot connect to daemon")
SSH_FAILED = 255


class Lost(Exception):
  """The device does not answer, or no longer."""


class Failed(Exception):
  """The device answers, but the operation failed: a full disk, no such folder."""


class TimedOut(Exception):
  """A script took too long."""


class Result:
  def __init__(self, code, out, err):
    self.code, self.out, self.err = code, out, err


def _start(command, timeout):
  try:
    # Starts a process group, so that a timeout ends all child processes too.
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, start_new_session=True)
  except FileNotFoundError as error:
    raise Lost(f"{command[0]} is not installed on this machine") from error
  try:
    out, err = process.communicate(timeout=timeout)
  except BaseException as error:
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    process.stderr.close()
    if isinstance(error, subprocess.TimeoutExpired):
      raise TimedOut(f"timed out after {timeout:g} s") from error
    raise
  return Result(process.returncode, _text(out), _text(err))


def _text(data):
  return data.decode("utf-8", "replace").replace("\r\n", "\n")


class Local:
  kind = "local"

  def __init__(self, _name=None):
    self.name = "this machine"

  def run(self, script, timeout=60):
    return _start(["sh", "-c", script], timeout)

  def copy(self, source, target):
    try:
      shutil.copyfile(source, target)
    except OSError as error:
      raise Failed(error.strerror or str(error)) from error


class Adb:
  kind = "adb"
  # Printed at the end with the exit status, which older versions of adb do not pass on.
  MARK = "@@exit"

  def __init__(self, serial):
    self.name = serial

  def _adb(self, *arguments, timeout):
    result = _start(["adb", "-s", self.name, *arguments], timeout)
    said = (result.err or result.out).strip()
    if result.code != 0 and any(word in said for word in LOST_ADB):
      raise Lost(said.splitlines()[0])
    return result

  def run(self, script, timeout=60):
    result = self._adb("shell", f"({script}\n); echo \"{self.MARK} $?\"", timeout=timeout)
    out, found, code = result.out.rpartition(self.MARK)
    if not found:
      raise Lost("the connection was lost: " + _last_line(result))
    return Result(int(code.strip() or 1), out, result.err)

  def copy(self, source, target):
    result = self._adb("push", source, target, timeout=3600)
    if result.code != 0:
      raise Failed(_last_line(result))


class Ssh:
  kind = "ssh"
  OPTIONS = ["-o", "BatchMode=yes", "-o", "ConnectTimeout=15", "-o", "ServerAliveInterval=10"]

  def __init__(self, host):
    self.name = host

  def run(self, script, timeout=60):
    # Uses sh whatever the user's login shell is.
    result = _start(["ssh", *self.OPTIONS, self.name, "sh -c " + shlex.quote(script)], timeout)
    if result.code == SSH_FAILED:
      raise Lost(_last_line(result))
    return result

  def copy(self, source, target):
    result = _start(["scp", "-q", *self.OPTIONS, source, f"{self.name}:{target}"], 3600)
    if result.code == SSH_FAILED or "lost connection" in result.err:
      raise Lost(_last_line(result))
    if result.code != 0:
      raise Failed(_last_line(result))


def _last_line(result):
  lines = [line.strip() for line in (result.err + "\n" + result.out).splitlines() if line.strip()]
  full = [line for line in lines if "No space left" in line]
  return (full or lines or [f"exit status {result.code}"])[-1]
