"""An emulated disk: a recorded log of what a process did to a folder, and every state in which a
loss of power may leave it.

What is promised: the bytes of a file up to its last sync, and the names in a folder up to the
folder's last sync. Of what came later, any part may be there: any of a file's writes, a part of one
(in sectors of 512 bytes), any of a folder's changes, in their order, whatever the data.
"""

import dataclasses
import itertools
import os
import struct

SECTOR = 512
RECORD = struct.Struct("<c7xQQIIII")
MOST_SUBSETS = 4  # of changes whose subsets are all tried; of more, their beginnings


@dataclasses.dataclass
class Record:
  op: str
  inode: int
  offset: int
  name: str
  other: str
  data: bytes


def read_log(path):
  content, at, records = path.read_bytes() if path.exists() else b"", 0, []
  while at < len(content):
    op, inode, offset, n_name, n_other, n_data, _ = RECORD.unpack_from(content, at)
    at += RECORD.size
    name, other = content[at:at + n_name].decode(), content[at + n_name:at + n_name + n_other]
    at += n_name + n_other
    records.append(Record(op.decode(), inode, offset, name, other.decode(),
                          content[at:at + n_data]))
    at += n_data
  return records


def write_into(content, offset, data):
  if len(content) < offset:
    content = content + bytes(offset - len(content))
  return content[:offset] + data + content[offset + len(data):]


def apply(content, changes):
  for kind, offset, data in changes:
    content = (write_into(content, offset, data) if kind == "w"
               else content[:offset] + bytes(max(0, offset - len(content))))
  return content


def choices(changes):
  """Parts of a list of changes that may have reached the disk, without repeats."""
  n = len(changes)
  kept = set()
  if n <= MOST_SUBSETS:
    for k in range(n + 1):
      kept.update(itertools.combinations(range(n), k))
  else:
    kept.update(tuple(range(k)) for k in range(n + 1))
    kept.update(tuple(i for i in range(n) if i != k) for k in range(n))
    kept.update((k,) for k in range(n))
  return [[changes[i] for i in indices] for indices in sorted(kept)]


def contents(durable, changes):
  """What a file may hold."""
  found = {apply(durable, chosen) for chosen in choices(changes)}
  if changes and changes[-1][0] == "w":  # the last write is torn
    kind, offset, data = changes[-1]
    for bytes_kept in {SECTOR, len(data) // 2 // SECTOR * SECTOR}:
      found.add(apply(durable, [*changes[:-1], (kind, offset, data[:bytes_kept])]))
  return sorted(found)


class Disk:
  """What is on the disk for certain, and what may be."""

  def __init__(self, folder):
    self.files, self.names = {}, {}  # by inode: bytes; by path: an inode, or None for a folder
    self.data_changes, self.name_changes = {}, []
    for root, folders, names in os.walk(folder):
      for name in folders:
        self.names[os.path.join(root, name)] = None
      for name in names:
        path = os.path.join(root, name)
        inode = os.stat(path).st_ino
        self.names[path] = inode
        with open(path, "rb") as file:
          self.files[inode] = file.read()
    self.current = dict(self.names)
    self.root = str(folder)

  def _change_name(self, change, path):
    self.name_changes.append((os.path.dirname(path), change))
    self._rename(self.current, change)

  @staticmethod
  def _rename(names, change):
    kind, path, other, inode = change
    if kind in ("link", "folder"):
      names[path] = inode
    elif kind == "move":
      names.pop(path, None)
      names[other] = inode
    else:
      names.pop(path, None)

  def run(self, record):
    if record.op == "o":
      if self.current.get(record.name) != record.inode:
        self.files[record.inode], self.data_changes[record.inode] = b"", []
        self._change_name(("link", record.name, "", record.inode), record.name)
      else:
        self.data_changes.setdefault(record.inode, []).append(("t", 0, b""))
    elif record.op in "wt":
      self.data_changes.setdefault(record.inode, []).append(
          (record.op, record.offset, record.data))
    elif record.op == "s":
      if self.current.get(record.name) is None:  # a folder
        mine = [change for folder, change in self.name_changes if folder == record.name]
        for change in mine:
          self._rename(self.names, change)
        self.name_changes = [c for c in self.name_changes if c[0] != record.name]
      else:
        changes = self.data_changes.pop(record.inode, [])
        self.files[record.inode] = apply(self.files.get(record.inode, b""), changes)
    elif record.op == "r":
      inode = self.current[record.name]
      self._change_name(("move", record.name, record.other, inode), record.other)
    elif record.op == "u":
      self._change_name(("unlink", record.name, "", 0), record.name)
    elif record.op == "m":
      self._change_name(("folder", record.name, "", None), record.name)

  def states(self):
    """Yields {path: bytes} of every state after a loss of power now; folders are None."""
    for chosen in choices([change for _, change in self.name_changes]):
      names = dict(self.names)
      for change in chosen:
        self._rename(names, change)
      names = {path: inode for path, inode in names.items() if self._is_reachable(path, names)}
      inodes = sorted({inode for inode in names.values() if inode is not None})
      options = [contents(self.files.get(i, b""), self.data_changes.get(i, [])) for i in inodes]
      for held in itertools.product(*options):
        by_inode = dict(zip(inodes, held))
        yield {path: None if inode is None else by_inode[inode] for path, inode in names.items()}

  def _is_reachable(self, path, names):
    folder = os.path.dirname(path)
    while folder != self.root:
      if folder not in names:
        return False
      folder = os.path.dirname(folder)
    return True
