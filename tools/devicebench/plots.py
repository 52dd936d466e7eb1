"""SVG plots without a library. Their colours come from the page's style, so that they suit the
light and the dark theme.
"""

import math
from xml.sax.saxutils import escape

WIDTH = 760
LEFT, RIGHT, TOP, BOTTOM = 56, 132, 26, 26
SERIES = 6  # colours in the page's style


def ticks(low, high, about=4):
  """Returns round numbers from low to high."""
  span = high - low
  if span <= 0:
    return [low]
  step = 10 ** math.floor(math.log10(span / about))
  for factor in (1, 2, 2.5, 5, 10):
    if span / (step * factor) <= about:
      step *= factor
      break
  first = math.ceil(low / step - 1e-9)
  last = math.floor(high / step + 1e-9)
  return [round(i * step, 10) for i in range(first, last + 1)]


def number(value):
  """Formats a number with three significant digits."""
  if value == 0:
    return "0"
  size = abs(value)
  if size >= 1e6:
    return f"{value / 1e6:.3g} M"
  if size >= 1000:
    return f"{value:,.0f}"
  digits = 0 if size >= 100 else 1 if size >= 10 else 2 if size >= 1 else 3
  text = f"{value:.{digits}f}"
  return text.rstrip("0").rstrip(".") if "." in text else text


def _text(x, y, text, kind="", anchor="start"):
  style = f' class="{kind}"' if kind else ""
  return f'<text x="{x:.1f}" y="{y:.1f}"{style} text-anchor="{anchor}">{escape(str(text))}</text>'


def _svg(height, parts, label):
  return (f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" '
          f'aria-label="{escape(label, QUOTES)}">' + "".join(parts) + "</svg>")


QUOTES = {'"': "&quot;"}


class Series:
  """A line of (x, y); y None is a gap."""

  def __init__(self, name, points, colour):
    self.name, self.points, self.colour = name, points, colour

  def known(self):
    return [(x, y) for x, y in self.points if y is not None]


def panel(title, series, x_range, top, height=110, from_zero=True, with_axis=False):
  """Draws one plot of lines over time. Returns (svg parts, height used)."""
  values = [y for s in series for _, y in s.known()]
  low, high = (0, 1) if not values else (min(values), max(values))
  if from_zero:
    low = min(low, 0)
  margin = (high - low or abs(high) or 1) * 0.08
  high += margin
  if not from_zero:
    low -= margin
  x_low, x_high = x_range
  across = WIDTH - LEFT - RIGHT

  def at(x, y):
    return (LEFT + (x - x_low) / ((x_high - x_low) or 1) * across,
            top + TOP + (high - y) / (high - low) * height)

  parts = [_text(LEFT, top + 16, title, "title")]
  for tick in ticks(low, high):
    y = at(x_low, tick)[1]
    parts.append(f'<line class="grid" x1="{LEFT}" x2="{LEFT + across}" y1="{y:.1f}" y2="{y:.1f}"/>')
    parts.append(_text(LEFT - 6, y + 4, number(tick), "tick", "end"))
  for tick in ticks(x_low, x_high, 8):
    x = at(tick, low)[0]
    bottom = top + TOP + height
    parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{top + TOP}" y2="{bottom}"/>')
    if with_axis:
      parts.append(_text(x, bottom + 16, f"{tick:g} s", "tick", "middle"))
  labels = []
  for s in series:
    parts += _line(s, at)
    if s.known():
      labels.append([at(*s.known()[-1])[1], s])
  parts += _labels(labels, LEFT + across + 8, top + TOP, height)
  return parts, TOP + height + (BOTTOM if with_axis else 4)


def _line(s, at):
  parts, path, pen = [], "", "M"
  for x, y in s.points:
    if y is None:
      pen = "M"
      continue
    px, py = at(x, y)
    path += f"{pen}{px:.1f} {py:.1f}"
    pen = "L"
  if path:
    parts.append(f'<path class="line s{s.colour}" d="{path}"/>')
  if len(s.known()) <= 40:
    for point in s.known():
      x, y = at(*point)
      parts.append(f'<circle class="dot s{s.colour}" cx="{x:.1f}" cy="{y:.1f}" r="2.5"/>')
  return parts


def _labels(labels, x, top, height):
  """Places a label at the end of each line, moved apart where labels would overlap."""
  labels.sort(key=lambda label: label[0])
  step = 14
  for i in range(1, len(labels)):
    labels[i][0] = max(labels[i][0], labels[i - 1][0] + step)
  over = labels[-1][0] - (top + height) if labels else 0
  parts = []
  for y, s in labels:
    y -= max(over, 0)
    last = s.known()[-1][1]
    parts.append(f'<rect class="fill s{s.colour}" x="{x:.1f}" y="{y - 4:.1f}" width="8" height="8" '
                 'rx="2"/>')
    parts.append(_text(x + 13, y + 4, f"{shorten(s.name, 12)} {number(last)}".strip(), "label"))
  return parts


def shorten(text, most):
  return text if len(text) <= most else text[:most - 1] + "…"


def timeline(panels, x_range, label):
  """Stacks panels of (title, series, from_zero) with one time axis."""
  parts, top = [], 0
  for i, (title, series, from_zero) in enumerate(panels):
    drawn, took = panel(title, series, x_range, top, from_zero=from_zero,
                        with_axis=i == len(panels) - 1)
    parts += drawn
    top += took
  return _svg(top + 4, parts, label)


def bars(title, rows, unit, label):
  """Draws horizontal bars of (name, [(value, colour, text)]), one below the other within a name."""
  name_width, height, gap = 230, 16, 10
  most = max((value for _, group in rows for value, _, _ in group), default=1) or 1
  across = WIDTH - name_width - 150
  parts, y = [_text(0, 16, title, "title")], 30
  for name, group in rows:
    parts.append(_text(name_width - 8, y + height / 2 + 4, shorten(name, 36), "label", "end"))
    for value, colour, text in group:
      width = value / most * across
      parts.append(f'<rect class="fill s{colour}" x="{name_width}" y="{y}" '
                   f'width="{max(width, 1):.1f}" height="{height - 2}" rx="3"/>')
      parts.append(_text(name_width + width + 6, y + height / 2 + 3,
                         f"{number(value)} {unit}  {text}", "value"))
      y += height
    y += gap
  return _svg(y, parts, label)


def stacks(title, rows, unit, label):
  """Draws horizontal stacked bars: (name, [(value, colour)], text)."""
  name_width, height = 230, 22
  most = max((sum(value for value, _ in row[1]) for row in rows), default=1) or 1
  across = WIDTH - name_width - 150
  parts, y = [_text(0, 16, title, "title")], 30
  for name, pieces, text in rows:
    y += 8 if name and y > 30 else 0
    parts.append(_text(name_width - 8, y + height / 2 + 2, shorten(name, 36), "label", "end"))
    x = name_width
    for value, colour in pieces:
      width = value / most * across
      if width > 0:
        # Leaves a thin gap between two parts.
        parts.append(f'<rect class="fill s{colour}" x="{x:.1f}" y="{y}" '
                     f'width="{max(width - 1, 0.5):.1f}" height="{height - 6}" rx="2"/>')
      x += width
    total = sum(value for value, _ in pieces)
    parts.append(_text(x + 6, y + height / 2 + 2, f"{number(total)} {unit} {text}", "value"))
    y += height
  return _svg(y + 4, parts, label)
