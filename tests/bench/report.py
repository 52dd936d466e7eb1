"""What compare.py measured, as Markdown, and as the table and the picture of docs/benchmarks."""

import re

import chart

BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"
HEADER = (
    "| geometry | weights | test | KV | Arenite tokens/s | llama.cpp tokens/s | ratio | scaled "
    "| target | of the limit |\n"
    "|---|---|---|---|--:|--:|--:|--:|--:|--:|")


def least_ns(work, limits):
  """The time a token that such work takes at the machine's limits."""
  return sum(max(step["bytes"] / limits["read_gb_per_s"],
                 step["integer_ops"] / limits["integer_gop_per_s"]
                 + step["float_ops"] / limits["float_gop_per_s"]) for step in work)


def line(row, limits):
  """One row of the table."""
  mark = "" if row["undisturbed"] else " *"
  target = f"{row['target']:.2f}" if row.get("target") else "-"
  limit = f"{least_ns(row['work'], limits) * row['ours'] / 1e9:.0%}"
  linear = [step for step in row["work"] if step["op"] == "linear"]
  if row["test"].startswith("prefill") and linear:
    ns = sum(step["ns"] for step in linear)
    limit += f" (linears {least_ns(linear, limits) / ns:.0%})"
  scaled = "-" if row["peer_factor"] == 1 else f"{row['ratio'] / row['peer_factor']:.2f}"
  return (f"| {row['geometry']} | {row['weights']} | {row['test']} | {row['kv']} | "
          f"{row['ours']:.1f} | {row['theirs']:.1f} | {row['ratio']:.2f}{mark} | {scaled} | "
          f"{target} | {limit} |")


def notes(report):
  limits = report["limits"]
  lines = [
      f"{report['date']}, {report['cpu']}, {report['threads']} threads; medians of "
      f"{report['rounds']} rounds, the two programs in turn. llama.cpp: {report['peer']}.",
      "",
      f"Limits measured in the same run: reads {limits['read_gb_per_s']:.1f} GB/s, "
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


def update_docs(report, document, picture):
  """Puts the table between the two marks of the document, and draws the picture beside it."""
  with open(document) as f:
    text = f.read()
  if BEGIN not in text or END not in text:
    raise SystemExit(f"{document}: no {BEGIN} and {END} to put the table between")
  table = f"{BEGIN}\n{markdown(report)}\n{END}"
  text = re.sub(f"{BEGIN}.*?{END}", lambda _: table, text, flags=re.DOTALL)
  with open(document, "w") as f:
    f.write(text)
  with open(picture, "w") as f:
    f.write(chart.draw(report["rows"]))
