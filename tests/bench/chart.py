"""Draws the ratios of the table as SVG: one bar per row, with the target as a line across it. Uses
only the standard library, and colours readable on white and on black."""

from xml.sax.saxutils import escape

WIDTH, LEFT, RIGHT = 860, 300, 70
BAR, GAP, GROUP_GAP, TOP = 18, 6, 22, 64
# Each as (light, dark).
COLOURS = {
    "text": ("#1f2328", "#e6edf3"),
    "faint": ("#8c959f", "#7d8590"),
    "prefill": ("#0969da", "#4493f8"),
    "decode": ("#1a7f37", "#3fb950"),
    "deep": ("#9a6700", "#d29922"),
    "target": ("#cf222e", "#ff7b72"),
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


def draw(rows):
  """Returns the SVG text. `rows` are those of compare.py."""
  groups = []
  for row in rows:
    name = f"{row['geometry']}, {row['weights']}"
    if not groups or groups[-1][0] != name:
      groups.append((name, []))
    groups[-1][1].append(row)
  most = max([max(r["ratio"], r.get("target") or 0) for r in rows] + [1.0])
  scale = (WIDTH - LEFT - RIGHT) / most

  def x(ratio):
    return LEFT + ratio * scale

  height = TOP + sum(len(g) * (BAR + GAP) + GROUP_GAP for _, g in groups) + 10
  out = [f'<svg xmlns="http://www.w3.org/2000/svg" version="1.1" width="{WIDTH}" height="{height}" '
         f'viewBox="0 0 {WIDTH} {height}">', _style(),
         '<text class="text" x="10" y="22" font-weight="bold">Tokens/s of Arenite over those of '
         'llama.cpp, in the same run</text>',
         '<text class="faint" x="10" y="42">The line across a bar is its target; the vertical one '
         'is as fast as the peer.</text>']
  y = TOP
  for name, group in groups:
    out.append(f'<text class="text" x="10" y="{y + BAR - 4}">{escape(name)}</text>')
    for row in group:
      middle = y + BAR - 4
      out.append(f'<text class="text" x="{LEFT - 8}" y="{middle}" text-anchor="end">'
                 f'{escape(row["test"])}</text>')
      out.append(f'<rect class="{_kind(row)}" x="{LEFT}" y="{y}" '
                 f'width="{row["ratio"] * scale:.1f}" height="{BAR}"/>')
      end = max(row["ratio"], row.get("target") or 0)
      if row.get("target"):
        at = x(row["target"])
        out.append(f'<line class="target" x1="{at:.1f}" y1="{y - 2}" x2="{at:.1f}" '
                   f'y2="{y + BAR + 2}" stroke-width="3"/>')
      out.append(f'<text class="text" x="{x(end) + 8:.1f}" y="{middle}">{row["ratio"]:.2f}</text>')
      y += BAR + GAP
    y += GROUP_GAP
  out.append(f'<line class="faint" x1="{x(1):.1f}" y1="{TOP - 8}" x2="{x(1):.1f}" '
             f'y2="{height - 14}" stroke-width="1" stroke-dasharray="3 3"/>')
  return "\n".join(out + ["</svg>"]) + "\n"
