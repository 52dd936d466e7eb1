#!/usr/bin/env python3
"""Makes stereo16.flac and mono24.flac of the formula of flac_test.cc. Needs the program flac."""

import pathlib
import subprocess

HERE = pathlib.Path(__file__).parent


def wave(i):
  place = i * 37 % 2000
  return (place if place < 1000 else 2000 - place) * 20 - 10000


def write(name, n, channels, bits, rate):
  samples = b""
  for i in range(n):
    for c in range(channels):
      value = wave(i) // (1 + c) if bits == 16 else wave(i) * 200 + i
      samples += value.to_bytes(bits // 8, "little", signed=True)
  subprocess.run(
      ["flac", "--silent", "--force", "--force-raw-format", "--endian=little", "--sign=signed",
       f"--channels={channels}", f"--bps={bits}", f"--sample-rate={rate}", "-8", "--no-padding",
       "--blocksize=256", "-o", HERE / name, "-"], input=samples, check=True)


if __name__ == "__main__":
  write("stereo16.flac", 500, 2, 16, 44100)
  write("mono24.flac", 300, 1, 24, 16000)
