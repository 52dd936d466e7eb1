#!/usr/bin/env python3
"""Checks a picture of `arenite plan --svg`: well-formed, self-contained, all of it inside its
frame. Prints as JSON the texts of the regions and the groups and the number of cells per group.

usage: check_svg.py FILE
"""

import json
import sys
import xml.etree.ElementTree

NAMESPACE = "{http://www.w3.org/2000/svg}"
ELEMENTS = {"svg", "g", "rect", "text", "polygon"}


def main():
  root = xml.etree.ElementTree.parse(sys.argv[1]).getroot()
  assert root.tag == NAMESPACE + "svg", root.tag
  assert root.get("version") == "1.1"
  width, height = float(root.get("width")), float(root.get("height"))
  assert root.get("viewBox") == f"0 0 {width:.0f} {height:.0f}", root.get("viewBox")
  regions, groups = {}, []
  for element in root.iter():
    assert element.tag.startswith(NAMESPACE), element.tag
    assert element.tag[len(NAMESPACE):] in ELEMENTS, element.tag
    for name in element.keys():
      assert not name.startswith("on") and "href" not in name, name
    if element.tag == NAMESPACE + "rect":
      x, y, w, h = (float(element.get(k)) for k in ("x", "y", "width", "height"))
      assert x >= 0 and y >= 0 and w > 0 and h > 0, (x, y, w, h)
      assert x + w <= width + 0.01 and y + h <= height + 0.01, (x, y, w, h)
    if element.tag == NAMESPACE + "text":
      # Half the font size is more than the mean width of a letter.
      length = len(element.text) * float(element.get("font-size")) * 0.5
      x = float(element.get("x")) - (length if element.get("text-anchor") == "end" else 0)
      assert 0 <= x and x + length <= width, element.text
  for g in root.iter(NAMESPACE + "g"):
    kind, name = g.get("id").split("-", 1)
    texts = [t.text for t in g.iter(NAMESPACE + "text")]
    rects = list(g.iter(NAMESPACE + "rect"))
    if kind == "region":
      regions[name] = {"texts": texts, "width": float(rects[0].get("width"))}
    else:
      cells = {(r.get("x"), r.get("y")) for r in rects}
      # A partly used cell has both a free and a used rectangle.
      groups.append({
          "texts": texts,
          "cells": len(cells),
          "used": sum(r.get("class") == "used" for r in rects),
          "free": sum(r.get("class") == "free" for r in rects),
      })
  print(json.dumps({"regions": regions, "groups": groups}))


if __name__ == "__main__":
  main()
