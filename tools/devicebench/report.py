"""Selects the results to show, as rows and lines: numbers in, numbers out."""

from devicebench import plots

MEMORY_PARTS = (("weights (mapped)", 1), ("constants", 2), ("KV cache", 3), ("activations", 4),
                ("tokens, logits, text", 5))
PLAN_KEYS = ("weights", "constants", "kv", "activations", "io")
# Words in the names of thermal zones that belong to the CPU.
CPU_ZONES = ("cpu", "soc", "pkg", "core", "cluster", "big", "little", "mid", "ap", "tsens")
MOST_LINES = 4
KIB = 1024


def colour(index):
  return index % plots.SERIES + 1


def describe(device):
  """Returns lines that describe a device."""
  state = device["device"]
  if not state:
    return ["It was not reached."]
  lines = [line for line in (state["model"], state["cpu"], state["uname"]) if line]
  if state["cpus"]:
    kinds = {}
    for cpu in state["cpus"]:
      kinds.setdefault((cpu["capacity"], cpu["max_khz"]), []).append(cpu["cpu"])
    parts = []
    for (capacity, khz), cpus in sorted(kinds.items(), reverse=True):
      parts.append(f"{len(cpus)}" + (f" of {khz / 1e6:.2f} GHz" if khz else "")
                   + (f" (capacity {capacity})" if capacity and len(kinds) > 1 else ""))
    lines.append("CPUs: " + ", ".join(parts))
  lines.append(f"memory {state['mem_total_kb'] * KIB / 1e9:.2f} GB")
  kinds = [source["kind"] for source in state["sources"]]
  power = sorted({f"{s['kind']} of {s['name'].split()[0]}" for s in state["sources"]
                  if s["kind"] in ("energy", "power", "current")})
  lines.append(f"readable: {kinds.count('zone')} thermal zones, {kinds.count('freq')} frequencies, "
               + (", ".join(power) if power else "no energy"))
  return lines


def threads_of(run):
  """Returns the number of threads actually used, if the run reports it."""
  if run["bench"]:
    return str(run["bench"]["results"][0]["threads"])
  return "all" if run["threads"] == 0 else str(run["threads"])


def of_test(run, test):
  return next((r for r in run["bench"]["results"] if r["test"] == test), None)


def cells(run):
  """Returns the table's cells from "CPUs" on."""
  results = run["bench"]["results"]
  prefill, decode = of_test(run, "prefill"), of_test(run, "decode")
  cpus = results[0].get("device", {}).get("cpus", {})
  placed = cpus.get("applied") or "-"
  if cpus and not cpus["as_wanted"]:
    placed += " (not as wanted)"
  joules = decode and decode.get("joules_per_token")
  plan = run["plan"]
  hottest = hottest_of(run)
  return [placed, _cell(prefill and prefill["tokens_per_s"]),
          _cell(decode and decode["tokens_per_s"]), _cell(joules and joules * 1e3),
          _cell(decode and decode["gb_per_s"]), _cell(run["bench"]["peak_rss"] / 1e6),
          _cell(plan and (plan["total"] + plan["weights"]) / 1e6), _cell(hottest)]


def _cell(value):
  return "-" if value is None else plots.number(value)


def hottest_of(run):
  values = [row[i + 1] for row in run["samples"] for i, source in enumerate(run["sources"])
            if source["kind"] == "zone" and row[i + 1] is not None]
  return max(values) if values else None


def speed_rows(devices, test):
  """Returns bars: one row per configuration, one bar per device in it."""
  rows = {}
  for index, device in enumerate(devices):
    for run in device["runs"]:
      result = of_test(run, test) if run["status"] == "ok" and run["kind"] == "matrix" else None
      if result is None:
        continue
      name = f"{run['bundle'].removesuffix('.arn')} {run['backend']} {run['kv']}"
      threads = "all" if run["threads"] == 0 else str(run["threads"])
      row = rows.setdefault((name, threads), [])
      row.append((result["tokens_per_s"], colour(index),
                  f"({result['threads']} threads)" if run["threads"] == 0 else ""))
  return [(f"{name}, {threads} thr.", group) for (name, threads), group in rows.items()]


def column(run, index):
  start = run["samples"][0][0]
  return [(row[0] - start, row[index]) for row in run["samples"]]


def over_time(run):
  """Returns panels (title, series, from zero), the range of the time axis, and the unreadable
  values."""
  start = run["samples"][0][0] if run["samples"] else run["bench"]["results"][0]["runs"][0]["at_s"]
  points = [(r["at_s"] - start, r["tokens_per_s"]) for r in run["bench"]["results"][0]["runs"]]
  panels = [("decode, tokens/s", [plots.Series("", thin(points), 1)], True)]
  missing = []
  for kind, title, from_zero in (("zone", "temperature, °C", False),
                                 ("freq", "frequency, GHz", True)):
    chosen = chosen_sources(run, kind)
    series = [plots.Series(source_name(run["sources"][i]), thin(column(run, i + 1)), colour(n + 1))
              for n, i in enumerate(chosen)]
    if series:
      panels.append((title, series, from_zero))
    else:
      missing.append("temperature" if kind == "zone" else "frequency")
  power = watts(run)
  if power:
    panels.append(("power, W", [plots.Series("", thin(power), 6)], True))
  else:
    missing.append("power")
  if run["samples"]:
    resident = [(x, None if kib is None else kib * KIB / 1e6) for x, kib in column(run, -1)]
    panels.append(("resident memory, MB", [plots.Series("", thin(resident), 4)], True))
  end = max([x for _, series, _ in panels for s in series for x, _ in s.points] + [1])
  return panels, (0, end), missing


def source_name(source):
  if source["kind"] == "freq":
    cpus = source["name"].split()
    return "cpu " + (cpus[0] if len(cpus) == 1 else f"{cpus[0]}-{cpus[-1]}")
  return source["name"]


def chosen_sources(run, kind):
  """Returns up to MOST_LINES sources of a kind: the CPU's zones if there are any, highest peaks
  first."""
  def peak(i):
    return max((row[i + 1] for row in run["samples"] if row[i + 1] is not None), default=None)

  found = [(i, peak(i)) for i, source in enumerate(run["sources"]) if source["kind"] == kind]
  found = [(i, high) for i, high in found if high is not None]
  if kind == "zone":
    own = [pair for pair in found
           if any(word in run["sources"][pair[0]]["name"].lower() for word in CPU_ZONES)]
    found = own or found
  found.sort(key=lambda pair: -pair[1])
  return [i for i, _ in found[:MOST_LINES]]


def watts(run):
  """Returns power over time from energy counters, else power meters, else current * voltage."""
  kinds = {}
  for i, source in enumerate(run["sources"]):
    kinds.setdefault(source["kind"], []).append(i + 1)
  rows = run["samples"]
  if len(rows) < 2:
    return []
  start = rows[0][0]
  if "energy" in kinds:
    points = []
    for before, row in zip(rows, rows[1:]):
      steps = [_difference(row[i], before[i]) for i in kinds["energy"]]
      seconds = row[0] - before[0]
      known = None not in steps and seconds > 0
      points.append((row[0] - start, sum(steps) / seconds if known else None))
    return points if any(y is not None for _, y in points) else []
  if "power" in kinds:
    i = kinds["power"][0]
    return [(row[0] - start, None if row[i] is None else abs(row[i])) for row in rows]
  if "current" in kinds and "voltage" in kinds:
    i, j = kinds["current"][0], kinds["voltage"][0]
    return [(row[0] - start, None if row[i] is None or row[j] is None else abs(row[i] * row[j]))
            for row in rows]
  return []


def _difference(now, before):
  """Returns None if a value is unknown or the counter was reset."""
  if now is None or before is None or now < before:
    return None
  return now - before


def thin(points, most=400):
  """Reduces the points to a visible number: the mean of each stretch."""
  if len(points) <= most:
    return points
  size = -(-len(points) // most)
  out = []
  for at in range(0, len(points), size):
    part = [(x, y) for x, y in points[at:at + size] if y is not None]
    if part:
      out.append((sum(x for x, _ in part) / len(part), sum(y for _, y in part) / len(part)))
    else:
      out.append((points[at][0], None))
  return out


def first_and_last(run):
  """Returns tokens/s of the first and the last tenth of a sustained run."""
  speeds = [r["tokens_per_s"] for r in run["bench"]["results"][0]["runs"]]
  n = max(1, len(speeds) // 10)
  return sum(speeds[:n]) / n, sum(speeds[-n:]) / n


def memory_rows(devices):
  """Returns stacked bars: planned memory, and below it the peak resident memory; of runs that
  differ only in threads, the one that took the most."""
  found = {}
  for device in devices:
    for run in device["runs"]:
      if run["status"] != "ok" or run["kind"] != "matrix" or not run["plan"]:
        continue
      key = (device["name"], run["bundle"], run["backend"], run["kv"])
      if key not in found or run["bench"]["peak_rss"] > found[key]["bench"]["peak_rss"]:
        found[key] = run
  rows = []
  for (name, bundle, backend, kv), run in found.items():
    label = f"{bundle.removesuffix('.arn')} {backend} {kv}"
    label = f"{name}: {label}" if len(devices) > 1 else label
    rows.append((label, [(run["plan"][part] / 1e6, colour(i)) for i, part in enumerate(PLAN_KEYS)],
                 "planned"))
    rows.append(("", [(run["bench"]["peak_rss"] / 1e6, 6)], "resident"))
  return rows
