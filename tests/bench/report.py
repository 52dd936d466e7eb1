"""Formats the results of compare.py as Markdown, and as table and chart of docs/benchmarks."""

import re

import chart

BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"
HEADER = (
    "| geometry | weights | test | KV | Arenite tokens/s | min - max, n | llama.cpp tokens/s "
    "| min - max, n | ratio | scaled | target | of the limit |\n"
    "|---|---|---|---|--:|--:|--:|--:|--:|--:|--:|--:|")


def spread(speeds):
  """Returns the range and the count of a row's rounds."""
  return f"{min(speeds):.1f} - {max(speeds):.1f}, {len(speeds)}"


def least_ns(work, limits):
  """Returns the time per token of this work at the machine's limits."""
  return sum(max(step["bytes"] / limits["read_gb_per_s"],
                 step["integer_ops"] / limits["integer_gop_per_s"]
                 + step["float_ops"] / limits["float_gop_per_s"]) for step in work)


WEIGHTS = ("bf16", "int4", "int8")


def line(row, limits):
  """Returns one row of the table. `limits` are the report's, used if the row has none."""
  mark = "" if row["undisturbed"] else " *"
  target = f"{row['target']:.2f}" if row.get("target") else "-"
  limits = row.get("limits", limits)
  limit = f"{least_ns(row['work'], limits) * row['ours'] / 1e9:.0%}"
  linear = [step for step in row["work"] if step["op"] == "linear"]
  if row["test"].startswith("prefill") and linear:
    ns = sum(step["ns"] for step in linear)
    limit += f" (linears {least_ns(linear, limits) / ns:.0%})"
  scaled = "-" if row["peer_factor"] == 1 else f"{row['ratio'] / row['peer_factor']:.2f}"
  return (f"| {row['geometry']} | {row['weights']} | {row['test']} | {row['kv']} | "
          f"{row['ours']:.1f} | {spread(row['all_ours'])} | {row['theirs']:.1f} | "
          f"{spread(row['all_theirs'])} | {row['ratio']:.2f}{mark} | {scaled} | "
          f"{target} | {limit} |")


def merged(reports):
  """Merges reports measured one after another on one machine. Each row keeps the limits of its
  report, because memory speed varies over time."""
  first = reports[0]
  for name in ("cpu", "threads", "peer", "peer_factors", "residency"):
    for other in reports[1:]:
      if other[name] != first[name]:
        raise SystemExit(f"these were not measured alike: {name} is {first[name]} in one and "
                         f"{other[name]} in another")
  rows = [{"limits": r["limits"], **row} for r in reports for row in r["rows"]]
  best = {name: max(r["limits"][name] for r in reports) for name in first["limits"]}
  return {**first, "limits": best, "rounds": max(r["rounds"] for r in reports),
          "date": max(r["date"] for r in reports), "rows": sorted(rows, key=_order)}


def _order(row):
  """Sorts by geometry in document order, then weights, then tests by depth."""
  return (row["geometry"] != "135M", row["geometry"], -WEIGHTS.index(row["weights"].split("/")[0]),
          row["depth"], row["test"].startswith("decode"))


def notes(report):
  limits = report["limits"]
  lines = [
      f"{report['date']}, {report['cpu']}, {report['threads']} threads; medians of at most "
      f"{report['rounds']} rounds, the two programs in turn. llama.cpp: {report['peer']}."
      + ("" if report["residency"] == "mapped" else f" Bundles {report['residency']}."),
      "",
      f"Limits measured with the rows, the best: reads {limits['read_gb_per_s']:.1f} GB/s, "
      f"{limits['integer_instruction']} {limits['integer_gop_per_s']:.0f} GOP/s, "
      f"{limits['float_instruction']} {limits['float_gop_per_s']:.0f} GFLOP/s. The last column is "
      "the time that our steps would take at them, over the time that they took.",
  ]
  if any(row["peer_factor"] != 1 for row in report["rows"]):
    factors = ", ".join(report["peer_factors"])
    lines += ["", "Scaled: against a llama.cpp that is faster by what was once seen of one that "
              f"was compiled for this CPU ({factors})."]
  if any(not row["undisturbed"] for row in report["rows"]):
    lines += ["", "\\* other processes took part of the machine while this row was measured."]
  return "\n".join(lines)


def markdown(report):
  rows = [line(row, report["limits"]) for row in report["rows"]]
  return "\n".join([notes(report), "", HEADER] + rows)


def _table(text):
  """Returns the lines of the document between its marks."""
  found = re.search(f"{BEGIN}\n(.*?)\n{END}", text, flags=re.DOTALL)
  if not found:
    raise SystemExit(f"the document has no {BEGIN} and {END} with a table between")
  return found.group(1).split("\n")


def rows_of(text):
  """Reads back the rows that update_docs() wrote, as far as the chart needs them."""
  lines = [line for line in _table(text) if line.startswith("|")]
  names = [cell.strip() for cell in lines[0].split("|")]
  rows = []
  for line_text in lines[2:]:
    cells = dict(zip(names, (cell.strip() for cell in line_text.split("|"))))
    ratio, _, mark = cells["ratio"].partition(" ")
    depth = re.search(r"@ (\d+)", cells["test"])
    rows.append({"geometry": cells["geometry"], "weights": cells["weights"], "test": cells["test"],
                 "depth": int(depth.group(1)) if depth else 0, "ratio": float(ratio),
                 "ours": float(cells["Arenite tokens/s"]),
                 "theirs": float(cells["llama.cpp tokens/s"]), "undisturbed": not mark})
  return rows


def picture_of(text):
  """Returns the chart of a document's table."""
  measured = _table(text)[0].partition(";")[0]  # date, CPU, threads
  peer = re.search(r"llama\.cpp: (.*?)\.?$", _table(text)[0]).group(1)
  return chart.draw(rows_of(text), f"{measured}; llama.cpp {peer}.")


def update_docs(report, document, picture):
  """Puts the table between the document's two markers, and draws the chart next to it."""
  with open(document) as f:
    text = f.read()
  if BEGIN not in text or END not in text:
    raise SystemExit(f"{document}: no {BEGIN} and {END} to put the table between")
  table = f"{BEGIN}\n{markdown(report)}\n{END}"
  text = re.sub(f"{BEGIN}.*?{END}", lambda _: table, text, flags=re.DOTALL)
  with open(document, "w") as f:
    f.write(text)
  with open(picture, "w") as f:
    f.write(picture_of(text))
