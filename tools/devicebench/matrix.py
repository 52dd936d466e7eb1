"""Runs the cases on one device, one process each, so that a crash loses no earlier result, and
keeps the file of results from which an interrupted series resumes.
"""

import json
import os
import re
import shlex
import time

from devicebench import device
from devicebench.transport import Failed, Lost, TimedOut

FORMAT = 1
SIGNALS = {4: "an illegal instruction: the program was built for another CPU", 6: "it aborted",
           7: "a bus error: a file on the device shrank, or its disk is full", 11: "it crashed"}


class Results:
  """The results file of a device. Every change is on disk when the call returns."""

  def __init__(self, path, name):
    self.path = path
    self.data = {"format": FORMAT, "name": name, "date": "", "device": {}, "bundles": {},
                 "runs": [], "notes": []}
    if os.path.exists(path):
      with open(path, encoding="utf-8") as file:
        self.data = json.load(file)
      if self.data.get("format") != FORMAT:
        raise Failed(f"{path} is not a result file that this version can read")
    self.data["notes"] = []

  def save(self):
    self.data["date"] = time.strftime("%Y-%m-%d %H:%M")
    part = self.path + ".part"
    with open(part, "w", encoding="utf-8") as file:
      json.dump(self.data, file, indent=1)
      file.write("\n")
    os.replace(part, self.path)

  def note(self, text):
    self.data["notes"].append(text)
    self.save()

  def done(self, key):
    return any(run["key"] == key and run["status"] == "ok" for run in self.data["runs"])

  def put(self, run):
    """Replaces an earlier run with the same key, unless that one succeeded and this one failed."""
    if run["status"] != "ok" and self.done(run["key"]):
      return
    runs = self.data["runs"]
    at = next((i for i, old in enumerate(runs) if old["key"] == run["key"]), len(runs))
    runs[at:at + 1] = [run]
    self.save()


def cases(options, bundles):
  """Returns the runs for each device, in order."""
  found = []
  for bundle in bundles:
    for backend in options.backend:
      for kv in options.kv:
        for threads in options.threads:
          found.append({"kind": "matrix", "bundle": bundle, "backend": backend, "kv": kv,
                        "threads": threads})
    if options.sustain > 0:
      found.append({"kind": "sustained", "bundle": bundle, "backend": options.backend[0],
                    "kv": options.kv[0], "threads": options.threads[-1]})
  return found


def bench_command(case, options):
  command = ["./arenite", "bench", case["bundle"], "--json", "--stats",
             "--backend", case["backend"], "--kv", case["kv"], "--threads", str(case["threads"]),
             "--depth", str(options.depth), "--decode", str(options.decode)]
  if case["kind"] == "sustained":
    command += ["--prefill", "0", "--repeats", "1", "--seconds", f"{options.sustain:g}"]
  else:
    command += ["--prefill", str(options.prefill), "--repeats", str(options.repeats)]
  return command + device_flags(case, options)


def device_flags(case, options):
  flags = ["--cpus", options.cpus] if case["backend"] == "cpu" else []
  if options.system_root:
    flags += ["--system-root", options.system_root]
  return flags


def plan_command(case, options):
  prefill = 0 if case["kind"] == "sustained" else options.prefill
  context = max(options.depth + prefill, max(options.depth, 1) + options.decode)
  return ["./arenite", "plan", case["bundle"], "--json", "--backend", case["backend"],
          "--kv", case["kv"], "--threads", str(case["threads"]), "--context", str(context)]


def key_of(case, options, hashes):
  """Returns the settings that must match for a result to be the same measurement."""
  return " ".join([case["kind"], hashes["arenite"][:12], hashes[case["bundle"]][:12]]
                  + bench_command(case, options)[2:])


def reason_of(code, err, out, plan, available_kb):
  """Returns why a program failed, in a line for the report."""
  words = err.strip()
  last = words.splitlines()[-1] if words else ""
  library = re.search(r'error while loading shared libraries: ([^:\s]+)', words) or re.search(
      r'library "([^"]+)" not found', words)
  if library:
    return f"missing library: {library.group(1)}; give it with --library"
  if "CANNOT LINK EXECUTABLE" in words:
    return "the program does not link on the device: " + last
  if code == 97:
    return "the folder on the device is gone"
  if code == 96:
    return "nothing can be written on the device: its disk is full, or the folder is read-only"
  if "No space left" in words or "cannot write to standard output" in words:
    return "the device's disk is full"
  if code == 126 or "Exec format error" in words or "not executable" in words:
    return "the device cannot run the program: it was built for another architecture"
  if code == 127:
    return "the program or its loader is not on the device: " + (last or "not found")
  if code in (9, 137):
    needs = ""
    if plan:
      total, weights = plan["total"] / 1e6, plan["weights"] / 1e6
      needs = f"; the plan is {total:.1f} MB and {weights:.1f} MB mapped"
    if available_kb:
      needs += f", {available_kb * 1024 / 1e6:.0f} MB were available"
    return "killed, as the system does when memory runs out" + needs
  if code > 128 and code - 128 in SIGNALS:
    return f"ended by signal {code - 128}: {SIGNALS[code - 128]}"
  if code > 128:
    return f"ended by signal {code - 128}"
  if code == 0 and not out.strip():
    return "it said nothing: is the device's disk full?"
  return last.removeprefix("arenite: error: ") or f"exit status {code}"


def run_case(transport, folder, case, options, state, key):
  """Runs a case; returns a result for Results.put()."""
  run = {"key": key, "kind": case["kind"], "bundle": case["bundle"], "backend": case["backend"],
         "kv": case["kv"], "threads": case["threads"], "status": "failed", "reason": "",
         "bench": None, "plan": None, "samples": [], "sources": state["sources"],
         "command": " ".join(bench_command(case, options))}
  available = None
  try:
    planned = transport.run(f"cd {shlex.quote(folder)} && LD_LIBRARY_PATH=. "
                            + shlex.join(plan_command(case, options)), timeout=300)
    run["plan"] = _json(planned.out)
    available = device.probe(transport, options.system_root)["mem_available_kb"]
    code, out, err, samples = device.run_sampled(
        transport, folder, bench_command(case, options), state["sources"],
        options.every if state["nap"] else max(1, round(options.every)), options.timeout)
  except TimedOut as error:
    run["reason"] = f"{error}: given up (--timeout)"
    _stop(transport, folder)
    return run
  except Lost as error:
    run["reason"] = f"the device was lost: {error}"
    raise LostDuring(run) from error
  run["available_kb"] = available
  run["samples"] = samples
  run["bench"] = _json(out)
  if code == 0 and run["bench"]:
    run["status"] = "ok"
  else:
    run["bench"] = None
    run["reason"] = reason_of(code, err, out, run["plan"], available)
  return run


class LostDuring(Lost):
  def __init__(self, run):
    super().__init__(run["reason"])
    self.run = run


def _stop(transport, folder):
  try:
    transport.run(f"cd {shlex.quote(folder)} && [ -f pid ] && kill $(cat pid); rm -f pid",
                  timeout=30)
  except (Lost, TimedOut):
    pass


def _json(text):
  try:
    return json.loads(text)
  except ValueError:
    return None


def measure(transport, results, options, files, say):
  """Copies changed files and makes the missing runs. Returns True if all are done."""
  folder = options.remote_dir
  try:
    return _measure(transport, folder, results, options, files, say)
  except LostDuring as lost:
    results.put(lost.run)
    results.note(str(lost) + ". What was measured before is kept; the same command goes on there.")
  except Lost as lost:
    results.note(f"The device was lost: {lost}. The same command goes on there.")
  except TimedOut as error:
    results.note(f"The device did not answer: {error}. The same command goes on there.")
  except Failed as failed:
    results.note(str(failed))
  say(results.data["notes"][-1])
  return False


def _measure(transport, folder, results, options, files, say):
  state = device.probe(transport, options.system_root)
  results.data["device"] = state
  results.save()
  transport.run(f"mkdir -p {shlex.quote(folder)}")
  hashes = {}
  failed_copies = {}
  for path in files["programs"] + files["bundles"]:
    name = os.path.basename(path)
    hashes[name] = device.hash_of(path)
    is_program = path in files["programs"]
    try:
      copied = device.copy_if_changed(transport, path, folder, executable=is_program)
      say(f"{name}: {'copied' if copied else 'is there already'}")
    except Failed as failed:
      if is_program:
        raise
      # Other bundles may still fit.
      failed_copies[name] = str(failed)
      say(str(failed))
  state["free_kb"] = device.free_kb(transport, folder)
  for path in files["bundles"]:
    name = os.path.basename(path)
    results.data["bundles"][name] = {"bytes": os.path.getsize(path), "sha256": hashes[name]}
  results.save()
  all_well = True
  planned = cases(options, [os.path.basename(path) for path in files["bundles"]])
  for number, case in enumerate(planned, 1):
    key = key_of(case, options, hashes)
    label = (f"[{number}/{len(planned)}] {case['bundle']} {case['kind']} {case['backend']} "
             f"kv {case['kv']} threads {case['threads']}")
    if results.done(key):
      say(f"{label}: done before")
      continue
    if case["bundle"] in failed_copies:
      run = {"key": key, **case, "status": "failed", "reason": failed_copies[case["bundle"]],
             "bench": None, "plan": None, "samples": [], "sources": []}
    else:
      if options.rest > 0 and number > 1:
        time.sleep(options.rest)
      run = run_case(transport, folder, case, options, state, key)
    results.put(run)
    all_well = all_well and run["status"] == "ok"
    say(f"{label}: " + (summary(run) if run["status"] == "ok" else run["reason"]))
  return all_well


def summary(run):
  return ", ".join(f"{r['test']} {r['tokens_per_s']:.1f} tokens/s" for r in run["bench"]["results"])
