"""Measures the time from process start to the first token, and the private dirty memory."""

import json
import os
import statistics
import subprocess
import time


def _private_dirty(pid):
  """Returns bytes, or 0 if the process has ended."""
  try:
    with open(f"/proc/{pid}/smaps_rollup") as f:
      return sum(int(line.split()[1]) * 1024 for line in f if line.startswith("Private_Dirty"))
  except (OSError, ProcessLookupError):
    return 0


def first_token_ms(command):
  """Measures the time to the first byte of text, or to exit if the first token has no text."""
  start = time.perf_counter()
  process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL)
  process.stdout.read(1)
  seconds = time.perf_counter() - start
  process.communicate()
  if process.returncode != 0:
    raise SystemExit(f"{' '.join(command)}: exit code {process.returncode}")
  return seconds * 1e3


def most_private_dirty(command):
  """Returns the process's peak private dirty memory, sampled every two milliseconds, and its
  output."""
  process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL)
  most = 0
  while process.poll() is None:
    most = max(most, _private_dirty(process.pid))
    time.sleep(0.002)
  out = process.stdout.read()
  if process.returncode != 0:
    raise SystemExit(f"{' '.join(command)}: exit code {process.returncode}")
  return most, out


def table(arenite, peer, pairs, threads, rounds):
  """Returns a Markdown table. pairs: (name, bundle, gguf). The first run of each reads the file
  into the page cache and does not count."""
  lines = ["| weights | | first token, ms | private dirty after 128 tokens, MB | of it KV, MB |",
           "|---|---|--:|--:|--:|"]
  for name, bundle, model in pairs:
    times = {arenite: [], peer: []}
    for i in range(rounds + 1):
      for program, file in ((arenite, bundle), (peer, model)):
        ms = first_token_ms(program.first_token(file, threads))
        if i > 0:
          times[program].append(ms)
    for program, file in ((arenite, bundle), (peer, model)):
      dirty, out = most_private_dirty(program.generate(file, threads, 128))
      used = f"{json.loads(out)['memory']['kv_used'] / 1e6:.1f}" if program is arenite else "-"
      lines.append(f"| {name} | {program.name} | {statistics.median(times[program]):.1f} | "
                   f"{dirty / 1e6:.1f} | {used} |")
  return "\n".join(lines)
