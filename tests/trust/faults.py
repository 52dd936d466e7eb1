"""The fault shim, from outside: which call of a process fails, and how many there were."""

import errno
import mmap
import os
import pathlib
import struct

# In the order of FaultClass (fault_control.h).
CLASSES = ["none", "memory", "map", "hint", "open", "stat", "read", "write", "sync", "rename",
           "thread", "listen", "socket"]
SHORT = 1000
FIELDS = ["is_loaded", "class", "error", "at", "is_forever", "calls", "failures", "blocks",
          "mapped"]
# Of each class: error, whether it may last, whether the caller must not notice it. A peer that is
# gone ends a connection, and interrupted or short calls are called again.
FAULTS = [
    ("memory", errno.ENOMEM, True, False), ("map", errno.ENOMEM, True, False),
    ("hint", errno.ENOMEM, True, False), ("open", errno.EMFILE, True, False),
    ("open", errno.EINTR, False, True), ("stat", errno.EIO, True, False),
    ("read", errno.EIO, True, False), ("read", errno.EINTR, False, True),
    ("read", SHORT, True, True), ("write", errno.ENOSPC, True, False),
    ("write", errno.EINTR, False, True), ("write", SHORT, True, True),
    ("sync", errno.EIO, True, False), ("sync", errno.EINTR, False, True),
    ("rename", errno.ENOSPC, True, False), ("thread", errno.EAGAIN, True, False)]
SOCKET_FAULTS = [("listen", errno.EMFILE, True, False), ("socket", errno.ECONNABORTED, True, False),
                 ("socket", errno.EMFILE, False, False), ("socket", errno.EINTR, False, True),
                 ("socket", SHORT, True, True)]


def error_name(error):
  return "short" if error == SHORT else errno.errorcode[error]


class Control:
  """The page that a process shares, from its start on."""

  def __init__(self, shim, folder):
    path = pathlib.Path(folder) / "fault_control"
    path.write_bytes(bytes(4096))
    with open(path, "r+b") as file:
      self.page = mmap.mmap(file.fileno(), 4096)
    self.environment = dict(os.environ, LD_PRELOAD=str(shim), ARN_FAULT_CONTROL=str(path))

  def get(self, field):
    return struct.unpack_from("<q", self.page, 8 * FIELDS.index(field))[0]

  def set(self, field, value):
    struct.pack_into("<q", self.page, 8 * FIELDS.index(field), value)

  def arm(self, kind, error, at, is_forever):
    """at = 0: counts only."""
    self.disarm()
    for field, value in (("error", error), ("at", at), ("is_forever", int(is_forever)),
                         ("calls", 0), ("failures", 0), ("class", CLASSES.index(kind))):
      self.set(field, value)

  def disarm(self):
    self.set("class", 0)


def spread(calls, most):
  """Calls to fail: all, or `most` of them, half of these the first ones (0: all)."""
  if most == 0 or calls <= most:
    return list(range(1, calls + 1))
  first = most // 2
  rest = most - first
  return [*range(1, first + 1), *(first + (calls - first) * i // rest
                                  for i in range(1, rest + 1))]
