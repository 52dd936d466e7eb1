#!/usr/bin/env python3
"""Tests the table and the chart made from the results of compare.py."""

import argparse
import os
import tempfile
import unittest
import xml.etree.ElementTree

import chart
import compare
import peers
import programs
import report

LIMITS = {"read_gb_per_s": 20.0, "integer_gop_per_s": 400.0, "float_gop_per_s": 100.0,
          "integer_instruction": "vpdpbusd zmm", "float_instruction": "vfmadd231ps zmm"}
# At the limits 2000 ns: 40 kB take 2000, 200 kops take 500. And 1000 ns: 100 kops of f32.
LINEAR = {"op": "linear", "ns": 4000, "bytes": 40000, "integer_ops": 200000, "float_ops": 0}
ATTENTION = {"op": "attention", "ns": 9000, "bytes": 100, "integer_ops": 0, "float_ops": 100000}


def row(test="prefill 512", depth=0, ratio=4.5, **fields):
  return {"geometry": "135M", "weights": "int8/Q8_0", "test": test, "depth": depth,
          "kv": "int8/f16", "ours": 100000.0, "theirs": 100000.0 / ratio, "ratio": ratio,
          "all_ours": [100000.0, 90000.0, 110000.0], "all_theirs": [100000.0 / ratio],
          "target": 4.0, "undisturbed": True, "peer_factor": 1, "work": [LINEAR, ATTENTION],
          **fields}


def whole(rows):
  return {"date": "2026-01-02", "cpu": "a CPU", "threads": 2, "rounds": 3, "limits": LIMITS,
          "residency": "mapped", "peer": "version: 1", "peer_factors": ["decode x1.1"],
          "rows": rows}


class PeersTest(unittest.TestCase):
  def test_lines_give_runs_spread_and_the_ratio_of_medians(self):
    found = peers.lines("int4/Q4_0", "decode 128",
                        {"Arenite": [40.0, 50.0, 30.0], "peer": [20.0, 21.0], "other": []})
    self.assertEqual(found, [
        "| int4/Q4_0 | decode 128 | Arenite | 3 | 30.0 | 40.0 | 50.0 | 1.00 |",
        "| int4/Q4_0 | decode 128 | peer | 2 | 20.0 | 20.5 | 21.0 | 1.95 |"])


  def test_speed_of_a_batch_is_read_from_json_and_from_a_table(self):
    self.assertEqual(programs.batch_speed('noise\n{"speed_pp": 1.0, "speed_tg": 2.5}\n'), 2.5)
    table = ("|    PP |     TG |    B |   N_KV |   T_PP s | S_PP t/s |   T_TG s | S_TG t/s |\n"
             "|-------|--------|------|--------|----------|----------|----------|----------|\n"
             "|    16 |      8 |    4 |     96 |    0.068 |   936.21 |    0.051 |   632.42 |\n")
    self.assertEqual(programs.batch_speed(table), 632.42)
    with self.assertRaises(SystemExit):
      programs.batch_speed("no row")


class ReportTest(unittest.TestCase):
  def test_least_time_is_that_of_the_slower_of_reading_and_computing(self):
    self.assertAlmostEqual(report.least_ns([LINEAR], LIMITS), 2000)
    self.assertAlmostEqual(report.least_ns([ATTENTION], LIMITS), 1000)

  def test_line_says_the_share_of_the_limit(self):
    # 3000 ns at the limits, of the 10000 ns per token.
    cells = [cell.strip() for cell in report.line(row(), LIMITS).split("|")]
    self.assertEqual(cells[9:13], ["4.50", "-", "4.00", "30% (linears 50%)"])
    cells = [cell.strip() for cell in report.line(row("decode 128"), LIMITS).split("|")]
    self.assertEqual(cells[12], "30%")

  def test_line_has_the_least_the_most_and_the_number_of_rounds(self):
    cells = [cell.strip() for cell in report.line(row(), LIMITS).split("|")]
    self.assertEqual(cells[5:9], ["100000.0", "90000.0 - 110000.0, 3", "22222.2",
                                  "22222.2 - 22222.2, 1"])
    self.assertEqual(len(cells), len(report.HEADER.split("\n")[0].split("|")))

  def test_another_residency_is_named(self):
    self.assertNotIn("Bundles", report.notes(whole([row()])))
    self.assertIn("Bundles copied.", report.notes({**whole([row()]), "residency": "copied"}))

  def test_line_of_a_disturbed_row_is_marked_and_a_factor_divides(self):
    line = report.line(row(undisturbed=False, peer_factor=2), LIMITS)
    self.assertIn("| 4.50 * | 2.25 |", line)

  def test_merged_rows_are_in_order_and_keep_their_limits(self):
    faster = {**LIMITS, "read_gb_per_s": 40.0}
    deep = {**whole([row("decode 128 @ 8192", 8192), row("decode 128")]), "limits": faster}
    one = {**whole([row(geometry="1B"), row(weights="int4/Q4_0")]), "rounds": 1}
    found = report.merged([one, deep])
    self.assertEqual([(r["geometry"], r["weights"], r["test"]) for r in found["rows"]],
                     [("135M", "int8/Q8_0", "decode 128"),
                      ("135M", "int8/Q8_0", "decode 128 @ 8192"),
                      ("135M", "int4/Q4_0", "prefill 512"), ("1B", "int8/Q8_0", "prefill 512")])
    self.assertEqual(found["rows"][0]["limits"], faster)
    self.assertEqual(found["rows"][2]["limits"], LIMITS)
    self.assertEqual((found["rounds"], found["limits"]["read_gb_per_s"]), (3, 40.0))
    self.assertIn("| 20% |", report.line(found["rows"][0], LIMITS))

  def test_reports_of_different_machines_are_not_merged(self):
    with self.assertRaisesRegex(SystemExit, "cpu is a CPU in one and another in another"):
      report.merged([whole([row()]), {**whole([row()]), "cpu": "another"}])

  def test_document_changes_between_the_marks_alone(self):
    with tempfile.TemporaryDirectory() as folder:
      document, picture = os.path.join(folder, "a.md"), os.path.join(folder, "a.svg")
      with open(document, "w") as f:
        f.write(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n")
      for _ in range(2):  # idempotent
        report.update_docs(whole([row()]), document, picture)
      with open(document) as f:
        text = f.read()
      self.assertTrue(text.startswith(f"before\n{report.BEGIN}\n2026-01-02, a CPU, 2 threads"))
      self.assertTrue(text.endswith(f"|\n{report.END}\nafter\n"))
      self.assertNotIn("old", text)
      self.assertEqual(text.count("| 135M |"), 1)
      xml.etree.ElementTree.parse(picture)

  def test_document_without_marks_is_refused(self):
    with tempfile.TemporaryDirectory() as folder:
      document = os.path.join(folder, "a.md")
      with open(document, "w") as f:
        f.write("nothing\n")
      with self.assertRaises(SystemExit):
        report.update_docs(whole([row()]), document, os.path.join(folder, "a.svg"))


class ChartTest(unittest.TestCase):
  def test_everything_is_inside_and_bars_have_the_lengths_of_ratios(self):
    rows = [row(ratio=8.0), row("decode 128", ratio=2.0, undisturbed=False),
            row("decode 128 @ 8192", 8192, ratio=0.5, target=None)]
    root = xml.etree.ElementTree.fromstring(chart.draw(rows, "2026-01-02, a CPU, 2 threads"))
    width, height = float(root.get("width")), float(root.get("height"))
    bars = [e for e in root if e.tag.endswith("rect")]
    self.assertEqual([bar.get("class") for bar in bars], ["prefill", "decode", "deep"])
    lengths = [float(bar.get("width")) for bar in bars]
    self.assertAlmostEqual(lengths[0] / lengths[1], 4, delta=0.01)
    self.assertAlmostEqual(lengths[1] / lengths[2], 4, delta=0.01)
    for bar, length in zip(bars, lengths):
      self.assertLessEqual(float(bar.get("x")) + length, width)
      self.assertLessEqual(float(bar.get("y")) + float(bar.get("height")), height)
    texts = [e for e in root if e.tag.endswith("text")]
    for text in texts:
      # A letter is about 7 wide.
      end = 0 if text.get("text-anchor") else 7 * len(text.text)
      self.assertLess(float(text.get("x")) + end, width, text.text)
    words = [text.text for text in texts]
    self.assertIn("2026-01-02, a CPU, 2 threads * the machine was not idle.", words)
    self.assertIn("100,000 : 50,000 = 2.00 *", words)
    self.assertFalse([word for word in words if "target" in word])

  def test_rows_are_read_back_from_a_document(self):
    rows = [row(ratio=4.0), row("decode 128 @ 8192", 8192, ratio=0.5, undisturbed=False)]
    text = f"{report.BEGIN}\n{report.markdown(whole(rows))}\n{report.END}"
    for read, wrote in zip(report.rows_of(text), rows, strict=True):
      self.assertEqual(read, {name: wrote[name] for name in read})
    self.assertIn("2026-01-02, a CPU, 2 threads; llama.cpp version: 1.", report.picture_of(text))


class OptionsTest(unittest.TestCase):
  def test_tests_and_factors_are_read(self):
    self.assertEqual(compare.parse_tests("prefill:512,decode:128:2048"),
                     [("prefill", 512, 0), ("decode", 128, 2048)])
    tests = compare.parse_tests("batch:64:1,batch:64:8")
    self.assertEqual([compare.name_of(test) for test in tests],
                     ["decode 64, 1 sequence", "decode 64, 8 sequences"])
    with self.assertRaises(argparse.ArgumentTypeError):
      compare.parse_tests("batch:64")
    self.assertEqual(compare.parse_factor("Q8_0:prefill=2"), ("Q8_0", "prefill", 2.0))
    self.assertEqual(compare.parse_factor("decode=1.1"), ("", "decode", 1.1))


if __name__ == "__main__":
  unittest.main()
