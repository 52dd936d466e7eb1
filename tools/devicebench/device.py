"""Probes a device, samples it during a run, and manages the files on it."""

import hashlib
import os
import shlex

from devicebench.transport import Failed

# Prints a line for each readable sensor or property: kind, file, name.
PROBE = r"""
R=@ROOT@
say() { echo "$@"; }
first() { v=; { read -r v < "$1"; } 2>/dev/null; [ -n "$v" ]; }
say uname - "$(uname -srm)"
say model - "$(getprop ro.product.model 2>/dev/null)"
for f in "$R/sys/firmware/devicetree/base/model" "$R/sys/class/dmi/id/product_name"; do
  [ -r "$f" ] && say model - "$(tr -d '\000' < "$f" 2>/dev/null)"
done
while IFS=: read -r k v; do
  case $k in "model name"*|"Model"*|"Hardware"*) say cpuname - $v; break;; esac
done < /proc/cpuinfo
while read -r k v u; do
  case $k in MemTotal:|MemAvailable:) say $k - "$v";; esac
done < /proc/meminfo
for c in "$R"/sys/devices/system/cpu/cpu[0-9]*; do
  a=0; m=0
  first "$c/cpu_capacity" && a=$v
  first "$c/cpufreq/cpuinfo_max_freq" && m=$v
  say cpu - "${c##*/cpu} $a $m"
done
for z in "$R"/sys/class/thermal/thermal_zone*; do
  first "$z/temp" || continue
  first "$z/type" && say zone "$z/temp" "$v"
done
for p in "$R"/sys/devices/system/cpu/cpufreq/policy*; do
  first "$p/scaling_cur_freq" || continue
  first "$p/related_cpus" && say freq "$p/scaling_cur_freq" "$v"
done
for e in "$R"/sys/class/powercap/intel-rapl:[0-9]; do
  first "$e/energy_uj" || continue
  first "$e/name" && say energy "$e/energy_uj" "$v"
done
for h in "$R"/sys/class/hwmon/hwmon*; do
  first "$h/name" || continue
  n=$v
  first "$h/energy1_input" && say energy "$h/energy1_input" "$n"
  first "$h/power1_input" && say power "$h/power1_input" "$n"
done
for b in "$R"/sys/class/power_supply/*; do
  first "$b/type" && [ "$v" = Battery ] || continue
  first "$b/power_now" && say power "$b/power_now" "${b##*/}"
  first "$b/current_now" && say current "$b/current_now" "${b##*/}"
  first "$b/voltage_now" && say voltage "$b/voltage_now" "${b##*/}"
  first "$b/status" && say status "$b/status" "${b##*/} $v"
done
sleep 0.01 2>/dev/null && say nap - 0.01
:
"""

# Runs $1... and takes samples meanwhile. Starts no process per sample: `read` is a shell builtin.
RUN = r"""
cd @DIR@ || exit 97
rm -f out.json err.txt samples.txt
echo x > space.tmp 2>/dev/null && [ -s space.tmp ] || exit 96
rm -f space.tmp
LD_LIBRARY_PATH=.${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} ; export LD_LIBRARY_PATH
@COMMAND@ > out.json 2> err.txt < /dev/null &
pid=$!
echo $pid > pid
sample() {
  while [ -d /proc/$pid ]; do
    read -r line rest < /proc/uptime
    for f in @FILES@; do
      v=-
      { read -r v < "$f"; } 2>/dev/null || v=-
      line="$line ${v:--}"
    done
    r=-
    if [ -r /proc/$pid/status ]; then
      { while read -r k v u; do case $k in VmRSS:) r=$v; break;; esac; done
      } < /proc/$pid/status 2>/dev/null
    fi
    echo "$line $r"
    sleep @EVERY@
  done
}
sample > samples.txt 2>/dev/null &
sampler=$!
wait $pid
code=$?
kill $sampler 2>/dev/null
wait $sampler 2>/dev/null
rm -f pid
echo "@@code $code"
echo "@@out"; cat out.json
echo "@@err"; cat err.txt
echo "@@samples"; cat samples.txt
echo "@@end"
"""

# Leaves implausible values out of plots: degrees, GHz.
SANE = {"zone": (-40, 200), "freq": (0.01, 20)}
SCALE = {"zone": 1e-3, "freq": 1e-6, "energy": 1e-6, "power": 1e-6, "current": 1e-6,
         "voltage": 1e-6}


def probe(transport, root):
  """Returns a dict that describes the device: name, cpus, memory, and `sources`, the files to
  sample."""
  result = transport.run(PROBE.replace("@ROOT@", shlex.quote(root)))
  found = {"transport": transport.kind, "address": transport.name, "uname": "", "model": "",
           "cpu": "", "cpus": [], "mem_total_kb": 0, "mem_available_kb": 0, "sources": [],
           "nap": False}
  for line in result.out.splitlines():
    words = line.split(" ", 2)
    if len(words) < 3:
      continue
    what, path, text = words[0], words[1], words[2].strip()
    if what in ("zone", "freq", "energy", "power", "current", "voltage"):
      found["sources"].append({"kind": what, "path": path, "name": text})
    elif what == "uname":
      found["uname"] = text
    elif what == "model" and text and not found["model"]:
      found["model"] = text
    elif what == "cpuname":
      found["cpu"] = text
    elif what in ("MemTotal:", "MemAvailable:"):
      found["mem_total_kb" if what == "MemTotal:" else "mem_available_kb"] = int(text)
    elif what == "cpu":
      number, capacity, khz = text.split()
      if number.isdigit():
        found["cpus"].append({"cpu": int(number), "capacity": int(capacity), "max_khz": int(khz)})
    elif what == "nap":
      found["nap"] = True
  found["cpus"].sort(key=lambda cpu: cpu["cpu"])
  if not found["uname"]:
    raise Failed("the device could not be identified: " + (result.err.strip() or "no output"))
  return found


def run_sampled(transport, folder, command, sources, every, timeout):
  """Runs a command in the folder. Returns (exit status, stdout, stderr, samples); a sample is a row
  of uptime, one value per source in its unit (None: not read), and RSS in KiB."""
  script = (RUN.replace("@DIR@", shlex.quote(folder)).replace("@COMMAND@", shlex.join(command))
            .replace("@FILES@", " ".join(shlex.quote(s["path"]) for s in sources) or "")
            .replace("@EVERY@", f"{every:g}"))
  result = transport.run(script, timeout)
  parts = {"code": "", "out": "", "err": "", "samples": ""}
  at = None
  for line in result.out.splitlines():
    mark = line[2:].split(" ", 1)
    if line.startswith("@@") and mark[0] in ("code", "out", "err", "samples", "end"):
      at = mark[0]
      if at == "code":
        parts["code"] = mark[1]
    elif at in parts:
      parts[at] += line + "\n"
  if not parts["code"]:
    return result.code, "", result.err.strip() or result.out.strip(), []
  return int(parts["code"]), parts["out"], parts["err"], parse_samples(parts["samples"], sources)


def parse_samples(text, sources):
  rows = []
  for line in text.splitlines():
    words = line.split()
    if len(words) != len(sources) + 2:
      continue
    try:
      rows.append([float(words[0])]
                  + [_value(word, source["kind"]) for word, source in zip(words[1:], sources)]
                  + [_number(words[-1])])
    except ValueError:
      continue
  return rows


def _number(word):
  try:
    return float(word)
  except ValueError:
    return None


def _value(word, kind):
  value = _number(word)
  if value is None:
    return None
  value *= SCALE[kind]
  low, high = SANE.get(kind, (-1e15, 1e15))
  return round(value, 6) if low <= value <= high else None


def hash_of(path):
  digest = hashlib.sha256()
  with open(path, "rb") as file:
    for block in iter(lambda: file.read(1 << 20), b""):
      digest.update(block)
  return digest.hexdigest()


def copy_if_changed(transport, source, folder, executable=False):
  """Copies a file unless the device has an identical one. Returns True if it was copied."""
  name = os.path.basename(source)
  target = f"{folder}/{name}"
  size, digest = os.path.getsize(source), hash_of(source)
  if _is_same(_there(transport, target), size, digest):
    return False
  transport.run(f"mkdir -p {shlex.quote(folder)}")
  part = target + ".part"
  try:
    transport.copy(source, part)
  except Failed as error:
    transport.run(f"rm -f {shlex.quote(part)}")
    raise Failed(f"{name} ({size} bytes) could not be copied to {folder}: {error}") from error
  mode = "755" if executable else "644"
  moved = transport.run(f"chmod {mode} {shlex.quote(part)} && "
                        f"mv -f {shlex.quote(part)} {shlex.quote(target)}")
  there = _there(transport, target)
  if moved.code != 0 or not _is_same(there, size, digest):
    transport.run(f"rm -f {shlex.quote(part)} {shlex.quote(target)}")
    raise Failed(f"{name} was copied to {folder} only in part ({there[0]} of {size} bytes): "
                 f"{moved.err.strip() or 'is its disk full?'}")
  return True


def _there(transport, target):
  """Returns (bytes, sha256 or "" if the device cannot compute it) of a file; (-1, "") if absent."""
  path = shlex.quote(target)
  result = transport.run(f"[ -f {path} ] && wc -c < {path} && "
                         f"{{ sha256sum {path} 2>/dev/null || echo -; }}", timeout=600)
  words = result.out.split()
  if len(words) < 2 or not words[0].isdigit():
    return -1, ""
  return int(words[0]), words[1] if len(words[1]) == 64 else ""


def _is_same(there, size, digest):
  return there[0] == size and there[1] in ("", digest)


def free_kb(transport, folder):
  result = transport.run(f"df -k {shlex.quote(folder)} | tail -n 1")
  words = [word for word in result.out.split() if word.isdigit()]
  return int(words[2]) if len(words) >= 3 else None
