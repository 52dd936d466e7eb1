"""Creates and closes hundreds of sessions and checks for leaks of memory, descriptors, mappings and
threads."""

import ctypes
import gc
import os
import time
import unittest

import support

rest = support.parse_arguments()

import arenite  # noqa: E402

CYCLES = 500
SETTLED = 100  # cycles until resources must stop growing
EXIT_SECONDS = 5  # longest wait for the kernel to remove a joined thread
OPTIONS = arenite.SessionOptions(context_tokens=64, kv_page_tokens=8, n_threads=2,
                                 overflow=arenite.Overflow.SHIFT)


class _MallInfo(ctypes.Structure):
  _fields_ = [(name, ctypes.c_size_t) for name in (
      "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks",
      "fordblks", "keepcost")]


def heap_bytes():
  mallinfo2 = ctypes.CDLL(None).mallinfo2
  mallinfo2.restype = _MallInfo
  info = mallinfo2()
  return info.uordblks + info.hblkhd


def threads():
  return len(os.listdir("/proc/self/task"))


def wait_for_exits(n_threads):
  """Waits until no more than n_threads are listed: a join returns before the kernel
  removes the thread from /proc."""
  deadline = time.monotonic() + EXIT_SECONDS
  while threads() > n_threads and time.monotonic() < deadline:
    time.sleep(0.001)


def measure():
  gc.collect()
  with open("/proc/self/statm", encoding="ascii") as statm:
    pages = int(statm.read().split()[1])
  with open("/proc/self/maps", encoding="utf-8") as maps:
    mappings = sum(1 for _ in maps)
  return {"rss": pages * os.sysconf("SC_PAGE_SIZE"), "heap": heap_bytes(), "mappings": mappings,
          "files": len(os.listdir("/proc/self/fd")), "threads": threads()}


class CyclesTest(unittest.TestCase):
  def test_create_generate_cancel_close(self):
    bundle = support.convert(support.temporary_folder(), "int8")
    model = arenite.Model(bundle)
    cancelled, settled = 0, {}
    for cycle in range(CYCLES):
      if cycle == SETTLED:
        settled = measure()
      if cycle % 10 == 0:
        model.close()
        model = arenite.Model(bundle)
      session = model.session(OPTIONS)
      generation = session.generate("Once upon a time", ignore_eos=True)
      try:
        for count, _ in enumerate(generation):
          if count == 3 and cycle % 3 == 0:
            session.cancel()
          elif count == 3 and cycle % 3 == 1:
            generation.close()
          elif count == 3:
            break  # drops it unfinished, with its session
      except arenite.Cancelled:
        cancelled += 1
      if cycle % 3 != 2:
        session.close()
      del generation, session
    model.close()
    wait_for_exits(settled["threads"])
    after = measure()
    print(f"after {SETTLED} cycles {settled}, after {CYCLES} {after}")
    self.assertEqual(len(range(0, CYCLES, 3)), cancelled)
    self.assertLessEqual(after["files"], settled["files"])
    self.assertLessEqual(after["threads"], settled["threads"])
    self.assertLessEqual(after["mappings"], settled["mappings"] + 4)
    self.assertLess(after["heap"], settled["heap"] + 100_000)
    self.assertLess(after["rss"], settled["rss"] + 1_500_000)


if __name__ == "__main__":
  support.main(rest)
