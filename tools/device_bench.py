#!/usr/bin/env python3
"""Benchmarks bundles on devices and writes a report: copies the program and the bundles (skips
unchanged files), runs `arenite bench` over threads, KV types and backends, samples temperature,
frequency, energy and memory during the runs, and writes one JSON file per device and one HTML page
that compares them. docs/device-bench.md

  device_bench.py --adb SERIAL story.arn              a phone
  device_bench.py --ssh pi@board story.arn other.arn  a board
  device_bench.py --local story.arn                   this machine
  device_bench.py --report A.json B.json              measures nothing

The same command resumes an interrupted series.
"""

import argparse
import glob
import os
import re
import sys

from devicebench import matrix, page, transport

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
# Build folders of the presets' programs, by transport and the device's `uname -m`.
PRESETS = {
    ("adb", "aarch64"): "android-arm64", ("adb", "armv7l"): "android-armv7",
    ("adb", "armv8l"): "android-armv7", ("adb", "x86_64"): "android-x86_64",
    ("ssh", "aarch64"): "linux-arm64", ("ssh", "armv7l"): "linux-armv7",
    ("ssh", "riscv64"): "linux-riscv64", ("ssh", "x86_64"): "release",
}
REMOTE_DIRS = {"adb": "/data/local/tmp/arenite", "ssh": "arenite-bench"}


def words(text):
  return [word for word in text.split(",") if word]


def numbers(text):
  return [int(word) for word in words(text)]


def parse(arguments):
  parser = argparse.ArgumentParser(description=__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("files", nargs="+", metavar="BUNDLE",
                      help="bundles; with --report, JSON result files")
  parser.add_argument("--adb", action="append", default=[], metavar="SERIAL")
  parser.add_argument("--ssh", action="append", default=[], metavar="HOST")
  parser.add_argument("--local", action="store_true", help="measure this machine")
  parser.add_argument("--report", action="store_true",
                      help="only write the page, from JSON result files")
  parser.add_argument("--with", action="append", default=[], dest="others", metavar="JSON",
                      help="results of another device to show on the page, too")
  parser.add_argument("--out", default="device-bench", help="folder for the results [%(default)s]")
  parser.add_argument("--name", help="name of the device [its address]")
  parser.add_argument("--arenite",
                      help="arenite program for the device [built by the preset for its CPU]")
  parser.add_argument("--library", action="append", default=[], metavar="FILE",
                      help="shared library that the program needs, copied next to it")
  parser.add_argument("--remote-dir", help=f"folder on the device {REMOTE_DIRS}")
  parser.add_argument("--system-root", default="",
                      help="folder that contains sys on the device [/]")
  parser.add_argument("--threads", type=numbers, default=[1, 0],
                      help="numbers of threads; 0: one per performance core [1,0]")
  parser.add_argument("--kv", type=words, default=["int8"],
                      help="KV types: f32,f16,int8,int4,int2 [int8]")
  parser.add_argument("--backend", type=words, default=["cpu"],
                      help="backends: cpu,vulkan,reference [cpu]")
  parser.add_argument("--cpus", default="auto", help="as in `arenite bench` [%(default)s]")
  parser.add_argument("--prefill", type=int, default=128, help="tokens to prefill [%(default)s]")
  parser.add_argument("--decode", type=int, default=64, help="tokens to decode [%(default)s]")
  parser.add_argument("--depth", type=int, default=0,
                      help="tokens already in the sequence [%(default)s]")
  parser.add_argument("--repeats", type=int, default=3, help="runs of each case [%(default)s]")
  parser.add_argument("--sustain", type=float, default=60, metavar="SECONDS",
                      help="duration of the thermal throttling test; 0: none [%(default)s]")
  parser.add_argument("--rest", type=float, default=0, metavar="SECONDS",
                      help="pause before each run, for the device to cool [%(default)s]")
  parser.add_argument("--every", type=float, default=0.5, metavar="SECONDS",
                      help="time between samples [%(default)s]")
  parser.add_argument("--timeout", type=float, default=1800, metavar="SECONDS",
                      help="time limit of one run [%(default)s]")
  options = parser.parse_args(arguments)
  if not options.report and not (options.adb or options.ssh or options.local):
    parser.error("one of --adb, --ssh, --local or --report is required")
  if options.prefill <= 0 or options.decode <= 0 or not options.threads:
    parser.error("--prefill and --decode must be above 0, --threads not empty")
  return options


def program_for(device, options):
  if options.arenite:
    return options.arenite
  if device.kind == "local":
    preset = "release"
  else:
    machine = device.run("uname -m").out.strip()
    preset = PRESETS.get((device.kind, machine))
    if preset is None:
      raise transport.Failed(f"no preset builds for {machine} over {device.kind}: give --arenite")
  path = os.path.join(ROOT, "build", preset, "bin", "arenite")
  if not os.path.exists(path):
    raise transport.Failed(f"{os.path.relpath(path)} is missing: build the preset {preset}, or "
                           "give --arenite")
  return path


def measure(device, options, say):
  """Returns the path of the device's results, and True if all runs succeeded."""
  name = options.name or (os.uname().nodename if device.kind == "local" else device.name)
  path = os.path.join(options.out, re.sub(r"[^\w.-]+", "_", name) + ".json")
  results = matrix.Results(path, name)
  results.save()
  own = argparse.Namespace(**vars(options))
  own.remote_dir = options.remote_dir or REMOTE_DIRS.get(device.kind) or os.path.abspath(
      os.path.join(options.out, "local"))
  try:
    programs = [program_for(device, options)] + options.library
    if os.path.basename(programs[0]) != "arenite":
      raise transport.Failed(f"{programs[0]}: the program must be called arenite")
  except (transport.Lost, transport.Failed, transport.TimedOut) as error:
    results.note(str(error))
    say(str(error))
    return path, False
  files = {"programs": programs, "bundles": options.files}
  return path, matrix.measure(device, results, own, files, say)


def main(arguments):
  options = parse(arguments)
  missing = [path for path in options.files + options.others + options.library
             if not os.path.exists(path)]
  if missing:
    sys.exit(f"device_bench.py: there is no {missing[0]}")
  os.makedirs(options.out, exist_ok=True)
  all_well, paths = True, []
  if options.report:
    paths = sorted({path for file in options.files for path in glob.glob(file) or [file]})
  else:
    devices = ([transport.Adb(serial) for serial in options.adb]
               + [transport.Ssh(host) for host in options.ssh]
               + ([transport.Local()] if options.local else []))
    if options.name and len(devices) > 1:
      sys.exit("device_bench.py: --name is for one device")
    for device in devices:
      print(f"== {device.kind} {device.name}", flush=True)
      path, is_well = measure(device, options, lambda text: print("   " + text, flush=True))
      paths.append(path)
      all_well = all_well and is_well
  target = os.path.join(options.out, "report.html")
  page.write(target, page.load(paths + options.others))
  print(f"report: {target}")
  return 0 if all_well else 1


if __name__ == "__main__":
  sys.exit(main(sys.argv[1:]))
