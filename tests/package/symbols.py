#!/usr/bin/env python3
"""Checks rule 6 of arenite.h for the linked library, third parties included: it does not call the C
library to end the process, to print, or to read the environment or the time zone.

usage: symbols.py NM LIBRARY...
"""

import re
import subprocess
import sys

FORBIDDEN = re.compile(
    # ends the process
    r"abort|exit|_exit|quick_exit|_Exit|raise|kill|__assert_fail|__assert2?|_ZSt9terminatev"
    r"|__cxa_throw|__cxa_pure_virtual"
    # prints
    r"|stdout|stderr|(__)?v?f?printf(_chk)?|v?dprintf|puts|fputs|fputc|putchar|putc|fwrite|perror"
    r"|_ZSt4(cout|cerr|clog)|v?syslog|__android_log_\w+"
    # the environment and its readers
    r"|(secure_)?getenv|setenv|environ|localtime(_r)?|gmtime(_r)?|mktime|tzset|setlocale|getopt\w*")


def undefined(nm, library):
  """Returns the undefined dynamic symbols of a shared library."""
  dynamic = [] if library.endswith(".a") else ["-D"]
  run = subprocess.run([nm, *dynamic, "--undefined-only", library], capture_output=True, text=True,
                       check=True)
  lines = [line.split() for line in run.stdout.splitlines()]
  return {fields[1].split("@")[0] for fields in lines if len(fields) == 2 and fields[0] in "Uvw"}


def main():
  nm, libraries = sys.argv[1], sys.argv[2:]
  bad = 0
  for library in libraries:
    symbols = undefined(nm, library)
    if "mmap" not in symbols and "mmap64" not in symbols:
      sys.exit(f"{library}: mmap is not among its {len(symbols)} symbols: this test sees nothing")
    for symbol in sorted(symbols):
      if FORBIDDEN.fullmatch(symbol):
        print(f"{library}: uses {symbol}")
        bad += 1
  print(f"{bad} of what rule 6 of arenite.h forbids")
  sys.exit(bad != 0)


if __name__ == "__main__":
  main()
