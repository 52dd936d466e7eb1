"""The results page: one self-contained HTML file, also well-formed XML."""

import json
import os
import time
from xml.sax.saxutils import escape

from devicebench import plots, report

STYLE = """
:root { color-scheme: light dark; --page: #fcfcfb; --ink: #1c1b1a; --soft: #6b6a66; --rule: #e4e3df;
  --card: #f4f3f0; --bad: #b3261e;
  --c1: #2a78d6; --c2: #d9661f; --c3: #1b9a74; --c4: #7d57c9; --c5: #c43d6d;
  --c6: #8a7a1f; }
@media (prefers-color-scheme: dark) {
  :root { --page: #1a1a19; --ink: #f1f0ec; --soft: #a5a39d; --rule: #383835; --card: #242422;
    --bad: #ff8a80;
    --c1: #5a9df0; --c2: #f08b4a; --c3: #35b992; --c4: #a88bea; --c5: #ea6c98; --c6: #c4b04a; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 24px 20px 60px; max-width: 960px; background: var(--page);
  color: var(--ink); font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
h1 { font-size: 26px; line-height: 1.2; margin: 0 0 4px; }
h2 { font-size: 19px; margin: 36px 0 8px; }
h3 { font-size: 15px; margin: 20px 0 4px; }
p { margin: 6px 0; }
.soft { color: var(--soft); }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(250px, 1fr)); gap: 12px;
  margin-top: 14px; }
.card { background: var(--card); border-radius: 8px; padding: 12px 14px; }
.card h3 { margin: 0 0 4px; }
.card p { margin: 2px 0; font-size: 13px; }
.notes li, .bad { color: var(--bad); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 12.5px;
  font-variant-numeric: tabular-nums; }
th, td { padding: 5px 6px; text-align: right; border-bottom: 1px solid var(--rule);
  white-space: nowrap; }
th { color: var(--soft); font-weight: 600; vertical-align: bottom; white-space: normal; }
td.text, th.text { text-align: left; }
td.wide { white-space: normal; }
svg { display: block; width: 100%; height: auto; margin: 8px 0 14px; }
svg text { fill: var(--soft); font-size: 11.5px; }
svg text.title { fill: var(--ink); font-size: 13px; font-weight: 600; }
svg text.label, svg text.value { fill: var(--ink); }
.grid { stroke: var(--rule); stroke-width: 1; }
.line { fill: none; stroke-width: 2; stroke-linejoin: round; stroke-linecap: round; }
.key { display: inline-block; width: 10px; height: 10px; border-radius: 2px; margin: 0 5px 0 14px; }
.key:first-child { margin-left: 0; }
""" + "".join(
    f".line.s{i} {{ stroke: var(--c{i}); }} .fill.s{i}, .dot.s{i} {{ fill: var(--c{i}); }} "
    f".key.s{i} {{ background: var(--c{i}); }}\n" for i in range(1, plots.SERIES + 1))

COLUMNS = (("device", "text"), ("bundle", "text"), ("run", "text"), ("backend", "text"),
           ("KV", "text"), ("threads", ""), ("CPUs", "text"), ("prefill tokens/s", ""),
           ("decode tokens/s", ""), ("mJ per token", ""), ("GB/s", ""), ("peak RSS MB", ""),
           ("plan MB", ""), ("hottest °C", ""))


def load(paths):
  """Loads the results of devices, each file once."""
  found = []
  for path in dict.fromkeys(os.path.abspath(path) for path in paths):
    with open(path, encoding="utf-8") as file:
      found.append(json.load(file))
  return found


def write(path, devices):
  part = path + ".part"
  with open(part, "w", encoding="utf-8") as file:
    file.write(render(devices))
  os.replace(part, path)


def render(devices):
  body = [f"<h1>Arenite on {_count(len(devices), 'device')}</h1>",
          f'<p class="soft">Written {time.strftime("%Y-%m-%d %H:%M")}. '
          "Speeds are medians of the repeats; temperature, frequency, energy and memory were read "
          "on the device while it ran.</p>", '<div class="cards">']
  body += [_card(device) for device in devices]
  body.append("</div>")
  notes = [(device["name"], note) for device in devices for note in device["notes"]]
  notes += [(device["name"], f"{_case(run)}: {run['reason']}") for device in devices
            for run in device["runs"] if run["status"] != "ok"]
  if notes:
    body.append('<h2>What did not go well</h2><ul class="notes">')
    body += [f"<li>{escape(name)}: {escape(note)}</li>" for name, note in notes]
    body.append("</ul>")
  body += _speeds(devices) + _over_time(devices) + _memory(devices) + _table(devices)
  return ('<!DOCTYPE html>\n<html lang="en" xmlns="http://www.w3.org/1999/xhtml"><head>'
          '<meta charset="utf-8"/>'
          '<meta name="viewport" content="width=device-width, initial-scale=1"/>'
          f"<title>Arenite on devices</title><style>{STYLE}</style></head>\n<body>\n"
          + "\n".join(body) + "\n</body></html>\n")


def _count(n, what):
  return f"{n} {what}" + ("" if n == 1 else "s")


def _list(words):
  return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def _case(run):
  threads = "all threads" if run["threads"] == 0 else _count(run["threads"], "thread")
  return f"{run['bundle']}, {run['backend']}, KV {run['kv']}, {threads}"


def _card(device):
  lines = report.describe(device)
  return (f'<div class="card"><h3>{escape(device["name"])}</h3>'
          + "".join(f"<p>{escape(line)}</p>" for line in lines) + "</div>")


def _speeds(devices):
  charts = []
  for test, title in (("decode", "Decoding"), ("prefill", "Prompts")):
    rows = report.speed_rows(devices, test)
    if rows:
      charts.append(plots.bars(title, rows, "tokens/s", f"{title}: tokens a second of each run"))
  if not charts:
    return []
  keys = "".join(f'<span class="key s{report.colour(i)}"></span>{escape(device["name"])}'
                 for i, device in enumerate(devices))
  return ["<h2>Speed</h2>", f'<p class="soft">{keys}</p>'] + charts


def _over_time(devices):
  body = []
  for device in devices:
    for run in device["runs"]:
      if run["kind"] != "sustained" or run["status"] != "ok":
        continue
      panels, span, says_nothing_of = report.over_time(run)
      first, last = report.first_and_last(run)
      change = "" if not first else (
          f" The first tenth had {plots.number(first)} tokens/s, the last {plots.number(last)}"
          + (f": {abs(last / first - 1):.0%} {'less' if last < first else 'more'}."
             if abs(last / first - 1) > 0.01 else "."))
      body.append(f"<h3>{escape(device['name'])}: {escape(_case(run))}</h3>"
                  f'<p class="soft">Decoding for {span[1] - span[0]:.0f} s.{change}'
                  + (f" The device says nothing of its {_list(says_nothing_of)}."
                     if says_nothing_of else "") + "</p>")
      body.append(plots.timeline(panels, span, "speed, temperature and frequency over time"))
  return ["<h2>Over time</h2>"] + body if body else []


def _memory(devices):
  rows = report.memory_rows(devices)
  if not rows:
    return []
  keys = "".join(f'<span class="key s{colour}"></span>{escape(name)}'
                 for name, colour in report.MEMORY_PARTS)
  return ["<h2>Memory against the plan</h2>",
          f'<p class="soft">{keys}<span class="key s6"></span>peak RSS</p>',
          '<p class="soft">The plan is what a session takes and the weights that it maps. Pages '
          "that nothing has touched, of the KV cache above all, are not resident; the program and "
          "its libraries come on top.</p>",
          plots.stacks("Planned, and resident at most", rows, "MB", "memory of each run")]


def _table(devices):
  head = "".join(f'<th class="{kind}">{escape(name)}</th>' for name, kind in COLUMNS)
  body = []
  for device in devices:
    for run in device["runs"]:
      cells = [(device["name"], "text"), (run["bundle"], "text"), (run["kind"], "text"),
               (run["backend"], "text"), (run["kv"], "text"), (report.threads_of(run), "")]
      if run["status"] == "ok":
        cells += [(text, kind) for text, (_, kind) in zip(report.cells(run), COLUMNS[6:])]
        row = "".join(f'<td class="{kind}">{escape(text)}</td>' for text, kind in cells)
      else:
        row = "".join(f'<td class="{kind}">{escape(text)}</td>' for text, kind in cells)
        row += (f'<td class="text wide bad" colspan="{len(COLUMNS) - len(cells)}">'
                f'{escape(run["reason"])}</td>')
      body.append(f"<tr>{row}</tr>")
  return ["<h2>All runs</h2>", f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>',
          *body, "</tbody></table></div>"]
