#!/usr/bin/env python3
"""Tests tools/device_bench.py against fake devices: programs named adb, ssh and scp that work in a
folder, a /sys in a folder, and a program named arenite with scripted output. If ARN_TOOL and
ARN_CONVERTER are set, it also runs the real ones.
"""

import os
import re
import shutil
import subprocess
import sys
import unittest
import xml.etree.ElementTree as ElementTree

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
TOOLS = os.path.join(SOURCE, "tools")
sys.path.insert(0, TOOLS)

import fake_device  # noqa: E402
from devicebench import device, matrix, page, plots, report  # noqa: E402

XHTML = "{http://www.w3.org/1999/xhtml}"

class Base(unittest.TestCase):
  def setUp(self):
    self.fake = fake_device.Fake()
    self.addCleanup(shutil.rmtree, self.fake.root)

  def well(self, done):
    self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

  def table(self, root):
    rows = []
    for row in root.find(f".//{XHTML}tbody"):
      rows.append(["".join(cell.itertext()) for cell in row])
    return rows


class WholeTest(Base):
  def test_adb_measures_all_combinations_and_the_page_says_the_same(self):
    self.well(self.fake.bench("--threads", "1,2", "--kv", "int8,f32", "--sustain", "1",
                              self.fake.bundle))
    results = self.fake.results()
    runs = results["runs"]
    self.assertEqual([(r["kind"], r["kv"], r["threads"], r["status"]) for r in runs],
                     [("matrix", "int8", 1, "ok"), ("matrix", "int8", 2, "ok"),
                      ("matrix", "f32", 1, "ok"), ("matrix", "f32", 2, "ok"),
                      ("sustained", "int8", 2, "ok")])
    self.assertEqual([s["kind"] for s in results["device"]["sources"]],
                     ["zone", "zone", "zone", "freq", "current", "voltage", "status"][:6])
    self.assertEqual(results["device"]["cpus"],
                     [{"cpu": 0, "capacity": 400, "max_khz": 0},
                      {"cpu": 1, "capacity": 1024, "max_khz": 2400000}])
    for run in runs:
      self.assertGreaterEqual(len(run["samples"]), 1)
      for row in run["samples"]:
        self.assertEqual(row[1:7], [41.5, 30.0, None, 1.8, -0.5, 4.0])
        self.assertGreater(row[7], 0)
    root = self.fake.page()
    rows = self.table(root)
    self.assertEqual(len(rows), len(runs))
    for row, run in zip(rows, runs):
      by_test = {r["test"]: r for r in run["bench"]["results"]}
      prefill = by_test.get("prefill")
      self.assertEqual(row, [
          "S1", "story.arn", run["kind"], "cpu", run["kv"], "2", "0-1",
          plots.number(prefill["tokens_per_s"]) if prefill else "-",
          plots.number(by_test["decode"]["tokens_per_s"]), "12.5", "2.5", "9", "2.85", "41.5"])
    text = self.fake.page_text()
    for words in ("cpu-big 41.5", "cpu 0-1 1.8", "power, W", "1 of 2.40 GHz (capacity 1024)"):
      self.assertIn(words, text)
    self.assertNotIn("cpu-dead", text)

  def test_page_needs_nothing_else(self):
    self.well(self.fake.bench("--threads", "1", "--sustain", "1", self.fake.bundle))
    with open(os.path.join(self.fake.out, "report.html"), encoding="utf-8") as file:
      html = file.read()
    self.assertTrue(html.startswith("<!DOCTYPE html>"))
    self.assertNotRegex(html, r"<(script|link|img|iframe)\b|\burl\(|@import|\bsrc=")
    self.assertEqual(re.findall(r'https?://[^"\s]+', html), ["http://www.w3.org/1999/xhtml"])
    self.assertIn("prefers-color-scheme: dark", html)

  def test_ssh_does_the_same(self):
    self.well(self.fake.bench("--threads", "1", "--sustain", "0", self.fake.bundle,
                              way=("--ssh", "board")))
    self.assertEqual([r["status"] for r in self.fake.results("board")["runs"]], ["ok"])

  def test_local_does_the_same(self):
    os.environ["FAKE"] = self.fake.root
    self.well(self.fake.bench("--threads", "1", "--sustain", "0", "--name", "here",
                              self.fake.bundle, way=("--local",)))
    self.assertEqual([r["status"] for r in self.fake.results("here")["runs"]], ["ok"])

  def test_several_devices_are_side_by_side(self):
    self.well(self.fake.bench("--threads", "1", "--sustain", "0", self.fake.bundle,
                              way=("--adb", "S1", "--adb", "S<2>", "--ssh", "board")))
    self.assertEqual([row[0] for row in self.table(self.fake.page())], ["S1", "S<2>", "board"])
    one = os.path.join(self.fake.out, "S1.json")
    two = os.path.join(self.fake.out, "S_2_.json")
    self.fake.remove("out/report.html")
    self.well(self.fake.bench("--report", two, "--with", one, way=()))
    self.assertEqual([row[0] for row in self.table(self.fake.page())], ["S<2>", "S1"])

  def test_what_is_there_is_not_copied_again(self):
    self.well(self.fake.bench("--threads", "1", "--sustain", "0", self.fake.bundle))
    self.assertEqual(self.fake.lines("calls").count("push"), 2)
    again = self.fake.bench("--threads", "1", "--sustain", "0", self.fake.bundle)
    self.well(again)
    self.assertEqual(self.fake.lines("calls").count("push"), 2)
    self.assertIn("done before", again.stdout)
    self.fake.write("story.arn", "A bundle\n" * 100)
    self.well(self.fake.bench("--threads", "1", "--sustain", "0", self.fake.bundle))
    self.assertEqual(self.fake.lines("calls").count("push"), 3, "as long as before, other bytes")
    self.assertEqual(len(self.fake.results()["runs"]), 2)


class TroubleTest(Base):
  def failing(self, how, words, fails="--kv f32"):
    self.fake.write("fail", f"FAILS='{fails}'\nHOW='{how}'\n")
    done = self.fake.bench("--threads", "1", "--kv", "int8,f32,int4", "--sustain", "0",
                           self.fake.bundle)
    self.assertEqual(done.returncode, 1)
    runs = self.fake.results()["runs"]
    self.assertEqual([r["status"] for r in runs], ["ok", "failed", "ok"])
    self.assertRegex(runs[1]["reason"], words)
    self.assertIn(runs[1]["reason"], self.fake.page_text())
    self.assertIsNone(runs[1]["bench"])
    # After the repair only the failed run runs again.
    before = len([line for line in self.fake.lines("runs") if line.startswith("bench")])
    self.fake.remove("fail")
    self.well(self.fake.bench("--threads", "1", "--kv", "int8,f32,int4", "--sustain", "0",
                              self.fake.bundle))
    self.assertEqual([r["status"] for r in self.fake.results()["runs"]], ["ok"] * 3)
    after = len([line for line in self.fake.lines("runs") if line.startswith("bench")])
    self.assertEqual(after - before, 1)

  def test_killed_for_memory(self):
    self.failing("kill -9 $$", "killed, as the system does when memory runs out; the plan is 0.8")

  def test_missing_library_of_linux(self):
    self.failing('echo "./arenite: error while loading shared libraries: libc++.so.1: cannot open '
                 'shared object file" >&2; exit 127', "missing library: libc\\+\\+.so.1")

  def test_missing_library_of_android(self):
    self.failing('echo "CANNOT LINK EXECUTABLE \\"./arenite\\": library \\"libc++_shared.so\\" not '
                 'found: needed by main executable" >&2; exit 1', "missing library: libc\\+\\+_sha")

  def test_full_disk_while_it_runs(self):
    self.failing('echo "arenite: error: cannot write to standard output" >&2; exit 1',
                 "disk is full")

  def test_what_the_program_says_is_the_reason(self):
    self.failing('echo "arenite: error: Vulkan: this library was built without it" >&2; exit 1',
                 "^Vulkan: this library was built without it$")

  def test_no_end(self):
    self.fake.write("fail", "FAILS='--kv f32'\nHOW='sleep 30'\n")
    done = self.fake.bench("--threads", "1", "--kv", "f32,int8", "--sustain", "0", "--timeout", "2",
                           self.fake.bundle)
    self.assertEqual(done.returncode, 1)
    runs = self.fake.results()["runs"]
    self.assertEqual([r["status"] for r in runs], ["failed", "ok"])
    self.assertIn("given up", runs[0]["reason"])

  def test_device_that_disappears_loses_nothing_and_is_gone_on_with(self):
    arguments = ["--threads", "1,2", "--kv", "int8,f32", "--sustain", "0", self.fake.bundle]
    # The number of calls up to the second run.
    self.well(self.fake.bench("--threads", "1", "--kv", "int8", "--sustain", "0", self.fake.bundle))
    calls = len(self.fake.lines("calls"))
    shutil.rmtree(self.fake.out)
    shutil.rmtree(self.fake.remote)
    self.fake.write("left", str(calls + 2))
    done = self.fake.bench(*arguments)
    self.assertEqual(done.returncode, 1)
    results = self.fake.results()
    self.assertEqual([r["status"] for r in results["runs"]], ["ok", "failed"])
    self.assertIn("lost: adb: device 'S1' not found", results["notes"][0])
    self.assertIn("goes on there", self.fake.page_text())
    self.fake.remove("left")
    self.fake.remove("lost")
    self.well(self.fake.bench(*arguments))
    results = self.fake.results()
    self.assertEqual([r["status"] for r in results["runs"]], ["ok"] * 4)
    self.assertEqual(results["notes"], [])

  def test_device_that_never_was_there(self):
    self.fake.write("lost", "")
    done = self.fake.bench(self.fake.bundle)
    self.assertEqual(done.returncode, 1)
    self.assertIn("not found", self.fake.results()["notes"][0])
    self.assertIn("It was not reached.", self.fake.page_text())
    done = self.fake.bench(self.fake.bundle, way=("--ssh", "nowhere"))
    self.assertEqual(done.returncode, 1)
    self.assertIn("Could not resolve hostname", self.fake.results("nowhere")["notes"][0])

  def test_bundle_that_does_not_fit_leaves_the_others(self):
    large = self.fake.write("large.arn", "x" * 100000)
    self.fake.write("full", "50000")
    done = self.fake.bench("--threads", "1", "--sustain", "0", large, self.fake.bundle)
    self.assertEqual(done.returncode, 1)
    runs = self.fake.results()["runs"]
    self.assertEqual([(r["bundle"], r["status"]) for r in runs],
                     [("large.arn", "failed"), ("story.arn", "ok")])
    self.assertIn("No space left on device", runs[0]["reason"])
    self.assertFalse(os.path.exists(os.path.join(self.fake.remote, "large.arn")))
    self.assertFalse(os.path.exists(os.path.join(self.fake.remote, "large.arn.part")))

  def test_folder_that_cannot_be_written(self):
    self.fake.remote = "/proc/arenite"
    done = self.fake.bench("--threads", "1", "--sustain", "0", self.fake.bundle)
    self.assertEqual(done.returncode, 1)
    self.assertIn("could not be copied", self.fake.results()["notes"][0])


class PartsTest(unittest.TestCase):
  def test_reasons_of_exit_codes(self):
    for code, words in ((132, "illegal instruction"), (139, "crashed"), (126, "architecture"),
                        (97, "folder"), (96, "full"), (143, "signal 15"), (3, "exit status 3")):
      self.assertIn(words, matrix.reason_of(code, "", "", None, None))

  def test_samples_that_are_broken_or_absurd_are_holes(self):
    sources = [{"kind": "zone"}, {"kind": "freq"}]
    text = "5.0 41000 1800000 100\n5.5 - hot 120\n6.0 900000 99000000000 -\n6.5 41\nnow 1 2 3\n"
    self.assertEqual(device.parse_samples(text, sources),
                     [[5.0, 41.0, 1.8, 100.0], [5.5, None, None, 120.0], [6.0, None, None, None]])

  def test_power_of_counters_that_begin_again_has_a_hole(self):
    run = {"sources": [{"kind": "energy"}, {"kind": "power"}],
           "samples": [[1.0, 10.0, 9.0, 1], [2.0, 13.0, 9.0, 1], [3.0, 1.0, 9.0, 1],
                       [5.0, 5.0, 9.0, 1]]}
    self.assertEqual(report.watts(run), [(1.0, 3.0), (2.0, None), (4.0, 2.0)])

  def test_numbers(self):
    self.assertEqual([plots.number(v) for v in (0, 0.1234, 1.5, 12.34, 123.4, 12345.6, 2.5e6)],
                     ["0", "0.123", "1.5", "12.3", "123", "12,346", "2.5 M"])
    self.assertEqual(plots.ticks(0, 100), [0, 25, 50, 75, 100])
    self.assertEqual(plots.ticks(40, 47), [40, 42, 44, 46])

  def test_long_series_are_thinned_and_keep_their_holes(self):
    points = [(i, None if 500 <= i < 600 else 1.0) for i in range(1000)]
    thin = report.thin(points, 100)
    self.assertLessEqual(len(thin), 100)
    self.assertIn(None, [y for _, y in thin])

  def test_plots_are_well_formed_whatever_the_names(self):
    series = [plots.Series('a "<&>"', [(0, 1), (1, None), (2, 3)], 1), plots.Series("b", [], 2)]
    ElementTree.fromstring(plots.timeline([("<t>", series, True)], (0, 2), 'l "<'))
    ElementTree.fromstring(plots.bars("t", [("<n>", [(0, 1, "&")])], "u", "l"))
    ElementTree.fromstring(plots.stacks("t", [("<n>", [(0, 1), (2, 2)], "")], "u", "l"))

  def test_page_of_nothing(self):
    ElementTree.fromstring(page.render([]).split("\n", 1)[1])


@unittest.skipUnless(os.environ.get("ARN_TOOL") and os.environ.get("ARN_CONVERTER"),
                     "needs ARN_TOOL and ARN_CONVERTER")
class RealTest(Base):
  def test_this_machine(self):
    bundle = os.path.join(self.fake.root, "fable.arn")
    subprocess.run([os.environ["ARN_CONVERTER"],
                    os.path.join(SOURCE, "models", "fable", "fable-2m"), "-o", bundle,
                    "--weights", "int8"], check=True, capture_output=True)
    self.fake.arenite = os.environ["ARN_TOOL"]
    self.well(self.fake.bench("--threads", "1,2", "--prefill", "32", "--decode", "32", "--sustain",
                              "1", "--name", "here", bundle, way=("--local",)))
    runs = self.fake.results("here")["runs"]
    self.assertEqual([r["status"] for r in runs], ["ok"] * 3)
    for run in runs:
      for result in run["bench"]["results"]:
        self.assertGreater(result["tokens_per_s"], 0)
        self.assertEqual(result["device"]["temperature_c"], 41.5)
      self.assertGreater(run["bench"]["peak_rss"], run["plan"]["weights"])
    sustained = runs[-1]["bench"]["results"][0]["runs"]
    self.assertGreaterEqual(sustained[-1]["at_s"] - sustained[0]["at_s"], 0.8)
    # The samples and the runs use one clock.
    samples = runs[-1]["samples"]
    self.assertLess(samples[0][0] - 1, sustained[0]["at_s"])
    self.assertLess(sustained[-1]["at_s"], samples[-1][0] + 1)
    self.assertEqual(len(self.table(self.fake.page())), 3)


if __name__ == "__main__":
  unittest.main()
