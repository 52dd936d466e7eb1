"""Properties of the machine."""

from __future__ import annotations

import ctypes
import os

from . import _abi
from ._convert import from_struct
from ._library import library
from .errors import Status, check_plain
from .options import CpuCluster


def cpu_clusters(system_root: str = "") -> list[CpuCluster]:
  """Returns the clusters with CPUs that this thread may use, the fastest first. system_root: prefix
  of /sys."""
  found: list[CpuCluster] = []
  while True:
    struct, lib = _abi.arn_cpu_cluster(), library()
    status = lib.arn_cpu_cluster_at(os.fsencode(system_root), len(found), ctypes.byref(struct))
    if status == Status.NOT_FOUND:
      return found
    check_plain(lib, status)
    found.append(from_struct(CpuCluster, struct))
