"""A fake device for device_bench_test.py: its folder, its /sys, and the programs that connect to
it.
"""

import json
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

TOOLS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools")

# $FAKE/lost: the device is disconnected. $FAKE/left: remaining calls before it is. $FAKE/full: the
# largest file, in bytes, that fits.
ADB = r"""#!/bin/sh
[ "$1" = -s ] || exit 64
serial=$2
shift 2
if [ -f "$FAKE/left" ]; then
  read -r n < "$FAKE/left"
  [ "$n" -gt 0 ] && echo $((n - 1)) > "$FAKE/left" || : > "$FAKE/lost"
fi
if [ -f "$FAKE/lost" ]; then
  echo "adb: device '$serial' not found" >&2
  exit 1
fi
echo "$1" >> "$FAKE/calls"
case $1 in
  shell) shift; cd "$FAKE/device" && exec sh -c "$*";;
  push) . "$FAKE/copy"; copy "$2" "$3";;
esac
"""
COPY = r"""
copy() {
  if [ -f "$FAKE/full" ] && [ "$(wc -c < "$1")" -gt "$(cat "$FAKE/full")" ]; then
    head -c 10 "$1" > "$2"
    echo "adb: error: failed to copy '$1' to '$2': remote write failed: No space left on device" >&2
    exit 1
  fi
  cp "$1" "$2"
}
"""
SSH = r"""#!/bin/sh
while [ "$1" = -o ]; do shift 2; done
[ "$1" = board ] || { echo "ssh: Could not resolve hostname $1" >&2; exit 255; }
echo ssh >> "$FAKE/calls"
cd "$FAKE/device" && exec /bin/sh -c "$2"
"""
SCP = r"""#!/bin/sh
[ "$1" = -q ] && shift
while [ "$1" = -o ]; do shift 2; done
echo push >> "$FAKE/calls"
. "$FAKE/copy"
cd "$FAKE/device" && copy "$1" "${2#board:}"
"""
# Fails as specified in FAKE/fail if the file exists and its words are among the arguments.
ARENITE = r"""#!/bin/sh
echo "$*" >> "$FAKE/runs"
kv=; threads=; prefill=; context=
all="$*"
while [ $# -gt 0 ]; do
  case $1 in
    --kv) kv=$2;; --threads) threads=$2;; --prefill) prefill=$2;; --context) context=$2;;
  esac
  shift
done
case $all in
  plan*)
    echo '{"weights": 2000000, "constants": 100000, "kv": 300000, "activations": 400000,'
    echo '"io": 50000, "total": 850000, "context": '$context'}'
    exit 0;;
esac
if [ -f "$FAKE/fail" ] && . "$FAKE/fail" && [ -n "$FAILS" ]; then
  case $all in *"$FAILS"*) eval "$HOW";; esac
fi
read -r now rest < /proc/uptime
sleep 0.15
speed=$((1000 + 100 * threads))
[ "$prefill" = 0 ] || echo '{"bundle": "b", "peak_rss": 9000000, "results": [
  {"test": "prefill", "tokens_per_s": '$((speed * 10))', "threads": 2,
   "device": {"cpus": {"threads": 2, "wanted": "0-1", "applied": "0-1", "as_wanted": true}},
   "runs": [{"at_s": '$now', "tokens_per_s": '$((speed * 10))'}]},'
[ "$prefill" = 0 ] && echo '{"bundle": "b", "peak_rss": 9000000, "results": ['
echo '{"test": "decode", "tokens_per_s": '$speed', "threads": 2, "gb_per_s": 2.5,
  "joules_per_token": 0.0125,
  "device": {"cpus": {"threads": 2, "wanted": "0-1", "applied": "0-1", "as_wanted": true}},
  "runs": [{"at_s": '$now', "tokens_per_s": '$speed'}, {"at_s": '$now', "tokens_per_s": 500}]}]}'
"""


class Fake:
  """A fake device, and the programs that connect to it."""

  def __init__(self):
    self.root = tempfile.mkdtemp(prefix="arn_device_")
    self.programs = os.path.join(self.root, "bin")
    self.device = os.path.join(self.root, "device")
    self.remote = os.path.join(self.device, "data")
    self.out = os.path.join(self.root, "out")
    os.makedirs(self.programs)
    os.makedirs(self.device)
    for name, text in (("adb", ADB), ("ssh", SSH), ("scp", SCP)):
      self.program(os.path.join(self.programs, name), text)
    self.write("copy", COPY)
    self.arenite = os.path.join(self.root, "arenite")
    self.program(self.arenite, ARENITE)
    self.bundle = self.write("story.arn", "a bundle\n" * 100)
    for path, text in (
        ("class/thermal/thermal_zone0/type", "cpu-big"),
        ("class/thermal/thermal_zone0/temp", "41500"),
        ("class/thermal/thermal_zone1/type", "battery"),
        ("class/thermal/thermal_zone1/temp", "30000"),
        ("class/thermal/thermal_zone2/type", "cpu-dead"),
        ("class/thermal/thermal_zone2/temp", "-273000"),
        ("devices/system/cpu/cpu0/cpu_capacity", "400"),
        ("devices/system/cpu/cpu1/cpu_capacity", "1024"),
        ("devices/system/cpu/cpu1/cpufreq/cpuinfo_max_freq", "2400000"),
        ("devices/system/cpu/cpufreq/policy0/scaling_cur_freq", "1800000"),
        ("devices/system/cpu/cpufreq/policy0/related_cpus", "0 1"),
        ("class/power_supply/BAT/type", "Battery"),
        ("class/power_supply/BAT/status", "Discharging"),
        ("class/power_supply/BAT/current_now", "-500000"),
        ("class/power_supply/BAT/voltage_now", "4000000")):
      self.write("root/sys/" + path, text + "\n")

  def program(self, path, text):
    with open(path, "w", encoding="utf-8") as file:
      file.write(text)
    os.chmod(path, 0o755)

  def write(self, name, text):
    path = os.path.join(self.root, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
      file.write(text)
    return path

  def remove(self, name):
    os.remove(os.path.join(self.root, name))

  def lines(self, name):
    path = os.path.join(self.root, name)
    if not os.path.exists(path):
      return []
    with open(path, encoding="utf-8") as file:
      return file.read().splitlines()

  def bench(self, *arguments, way=("--adb", "S1")):
    environment = {**os.environ, "FAKE": self.root,
                   "PATH": self.programs + os.pathsep + os.environ["PATH"]}
    return subprocess.run(
        [sys.executable, "-B", os.path.join(TOOLS, "device_bench.py"), *way, "--out", self.out,
         "--remote-dir", self.remote, "--arenite", self.arenite, "--every", "0.1",
         "--system-root", os.path.join(self.root, "root"), *arguments],
        capture_output=True, text=True, env=environment, check=False)

  def results(self, name="S1"):
    with open(os.path.join(self.out, name + ".json"), encoding="utf-8") as file:
      return json.load(file)

  def page(self):
    return ElementTree.parse(os.path.join(self.out, "report.html")).getroot()

  def page_text(self):
    return " ".join("".join(self.page().itertext()).split())
