"""Checks the exploit mitigations in ELF files, for any architecture.

  hardening_test.py --readelf READELF [--loading-only] FILE ...

--loading-only skips the compiled-in ones (ARENITE_HARDENING=OFF).
"""

import argparse
import re
import struct
import subprocess
import sys
import unittest

# First instruction of a function that can be called through a pointer, as bytes in the file.
X86_64 = 62
LANDING_PADS = {
    X86_64: (b"\xf3\x0f\x1e\xfa",),                    # endbr64
    183: (b"\x5f\x24\x03\xd5", b"\x3f\x23\x03\xd5"),   # AArch64: bti c, paciasp
}
options = None


def readelf(*arguments):
  return subprocess.run([options.readelf, "-W", *arguments], check=True, capture_output=True,
                        text=True).stdout


def functions(path):
  """Returns name -> address of the functions in the symbol table, or of main()."""
  found = {}
  for line in readelf("--dyn-syms", "--syms", path).splitlines():
    fields = line.split()
    if len(fields) == 8 and fields[3] == "FUNC" and fields[6] != "UND":
      name = fields[7].split("@")[0]
      is_shown = fields[4:6] == ["GLOBAL", "DEFAULT"] and name.startswith(("arn_", "Java_"))
      if is_shown or name == "main":
        found[name] = int(fields[1], 16)
  return found


def bytes_at(path, address, n):
  """Returns n bytes of the file by their load address."""
  for line in readelf("-l", path).splitlines():
    fields = line.split()
    if fields and fields[0] == "LOAD":
      offset, start, size = int(fields[1], 16), int(fields[2], 16), int(fields[4], 16)
      if start <= address < start + size:
        with open(path, "rb") as file:
          file.seek(offset + address - start)
          return file.read(n)
  raise AssertionError(f"{path}: no segment has the address {address:#x}")


def machine(path):
  """Returns e_machine of the ELF header."""
  with open(path, "rb") as file:
    return struct.unpack_from("<H", file.read(20), 18)[0]


class HardeningTest(unittest.TestCase):
  def each_file(self):
    for path in options.files:
      with self.subTest(path):
        yield path

  def compiled_in(self):
    if options.loading_only:
      self.skipTest("ARENITE_HARDENING is OFF")
    return self.each_file()

  def machine(self):
    machines = {machine(path) for path in options.files}
    self.assertEqual(len(machines), 1, machines)
    return machines.pop()

  def test_at_random_addresses(self):
    for path in self.each_file():
      self.assertRegex(readelf("-h", path), r"Type:\s+DYN")

  def test_all_symbols_are_bound_before_the_tables_become_read_only(self):
    for path in self.each_file():
      self.assertIn("GNU_RELRO", readelf("-l", path))
      dynamic = readelf("-d", path)
      self.assertRegex(dynamic, r"BIND_NOW|\bNOW\b")
      self.assertNotIn("TEXTREL", dynamic)

  def test_nothing_is_writable_and_executable(self):
    for path in self.each_file():
      segments = readelf("-l", path)
      self.assertRegex(segments, r"GNU_STACK.* RW +0x")
      self.assertNotRegex(segments, r"(LOAD|GNU_STACK).* (RWE|WE) ")

  def test_stacks_have_canaries(self):
    for path in self.compiled_in():
      self.assertIn("__stack_chk_fail", readelf("--dyn-syms", path))

  def test_libc_checks_sizes(self):
    for path in self.compiled_in():
      checked = set(re.findall(r"\b(__\w+_chk)\b", readelf("--dyn-syms", path)))
      self.assertTrue(checked, path)

  def test_functions_begin_with_landing_pads(self):
    files = self.compiled_in()
    if self.machine() not in LANDING_PADS:
      self.skipTest(f"ELF machine {self.machine()} has none")
    for path in files:
      found = functions(path)
      self.assertTrue(found, path)
      bare = [name for name, address in found.items()
              if bytes_at(path, address, 4) not in LANDING_PADS[self.machine()]]
      self.assertEqual(bare, [])

  def test_landing_pads_are_said_to_be_everywhere(self):
    # One object without the mark, such as an assembler file, removes it from the whole file. The
    # start-up files of the C library need it too.
    files = self.compiled_in()
    if self.machine() != X86_64:
      self.skipTest("XNNPACK's assembly for ARM has no landing pads")
    if not options.marked_start_files:
      self.skipTest("the C library's start-up files are not marked")
    for path in files:
      self.assertRegex(readelf("-n", path), r"x86 feature: IBT, SHSTK")


if __name__ == "__main__":
  parser = argparse.ArgumentParser()
  parser.add_argument("--readelf", required=True)
  parser.add_argument("--cc", required=True)
  parser.add_argument("--loading-only", action="store_true")
  parser.add_argument("files", nargs="+")
  options = parser.parse_args()
  start_file = subprocess.run([options.cc, "-print-file-name=crti.o"], capture_output=True,
                              text=True, check=True).stdout.strip()
  options.marked_start_files = "IBT" in readelf("-n", start_file)
  unittest.main(argv=[sys.argv[0]])
