"""Draws the table of docs/benchmarks.md as SVG: one bar per row, as long as the ratio, with the
speeds of both programs beside it. Uses only the standard library, and colours readable on white and
on black."""

from xml.sax.saxutils import escape

WIDTH, LEFT, RIGHT = 860, 290, 190
BAR, GAP, GROUP_GAP, TOP = 18, 6, 22, 64
# Each as (light, dark).
COLOURS = {
    "text": ("#1f2328", "#e6edf3"),
    "faint": ("#8c959f", "#7d8590"),
    "prefill": ("#0969da", "#4493f8"),
    "decode": ("#1a7f37", "#3fb950"),
    "deep": ("#9a6700", "#d29922"),
}


def _style():
  def rules(i):
    return " ".join(f".{name} {{ fill: {pair[i]}; stroke: {pair[i]}; }}"
                    for name, pair in COLOURS.items())
  return ("<style>\n"
          "text { font: 13px sans-serif; stroke: none !important; }\n"
          "rect { stroke: none !important; }\n"
          f"{rules(0)}\n"
          f"@media (prefers-color-scheme: dark) {{ {rules(1)} }}\n"
          "</style>")


def _kind(row):
  if row["test"].startswith("prefill"):
    return "prefill"
  return "deep" if row["depth"] > 0 else "decode"


def _speed(tokens_per_s):
  return f"{tokens_per_s:,.0f}" if tokens_per_s >= 100 else f"{tokens_per_s:.1f}"


def draw(rows, measured):
  """Returns the SVG text. `rows` are those of compare.py; `measured` says when, on what and how."""
  groups = []
  for row in rows:
    name = f"{row['geometry']}, {row['weights']}"
    if not groups or groups[-1][0] != name:
      groups.append((name, []))
    groups[-1][1].append(row)
  scale = (WIDTH - LEFT - RIGHT) / max([r["ratio"] for r in rows] + [1.0])
  height = TOP + sum(len(g) * (BAR + GAP) + GROUP_GAP for _, g in groups) + 10
  disturbed = any(not row["undisturbed"] for row in rows)
  out = [f'<svg xmlns="http://www.w3.org/2000/svg" version="1.1" width="{WIDTH}" height="{height}" '
         f'viewBox="0 0 {WIDTH} {height}">', _style(),
         '<text class="text" x="10" y="22" font-weight="bold">Tokens per second: Arenite, '
         'llama.cpp, and their ratio</text>',
         f'<text class="faint" x="10" y="42">{escape(measured)}'
         f'{" * the machine was not idle." if disturbed else ""}</text>']
  y = TOP
  for name, group in groups:
    out.append(f'<text class="text" x="10" y="{y + BAR - 4}">{escape(name)}</text>')
    for row in group:
      middle, length = y + BAR - 4, row["ratio"] * scale
      out.append(f'<text class="text" x="{LEFT - 8}" y="{middle}" text-anchor="end">'
                 f'{escape(row["test"])}</text>')
      out.append(f'<rect class="{_kind(row)}" x="{LEFT}" y="{y}" width="{length:.1f}" '
                 f'height="{BAR}"/>')
      out.append(f'<text class="text" x="{LEFT + length + 8:.1f}" y="{middle}">'
                 f'{_speed(row["ours"])} : {_speed(row["theirs"])} = {row["ratio"]:.2f}'
                 f'{"" if row["undisturbed"] else " *"}</text>')
      y += BAR + GAP
    y += GROUP_GAP
  at = LEFT + scale
  out.append(f'<line class="faint" x1="{at:.1f}" y1="{TOP - 8}" x2="{at:.1f}" '
             f'y2="{height - 14}" stroke-width="1" stroke-dasharray="3 3"/>')
  return "\n".join(out + ["</svg>"]) + "\n"
