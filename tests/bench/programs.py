"""Runs Arenite and llama.cpp, and measures their speed and whether other processes interfered."""

import json
import os
import resource
import shlex
import subprocess
import sys
import time


def run(command, also_errors=False):
  """Returns the command's standard output, and its standard error if also_errors; ends the program
  if the command fails."""
  result = subprocess.run(command, capture_output=True, text=True)
  if result.returncode != 0:
    reason = result.stderr.strip()[-500:]
    sys.exit(f"{shlex.join(command)}: exit code {result.returncode}: {reason}")
  return result.stdout + (result.stderr if also_errors else "")


def batch_speed(text):
  """Returns the generated tokens/s of llama-batched-bench's first row: a line of JSON, or of a
  table with the columns PP, TG, B, N_KV, T_PP, S_PP, T_TG, S_TG."""
  for line in text.splitlines():
    if line.startswith("{"):
      return json.loads(line)["speed_tg"]
    cells = [cell.strip() for cell in line.split("|")]
    if len(cells) > 8 and cells[1].isdigit():
      return float(cells[8])
  sys.exit(f"llama-batched-bench: no row in its output: {text[-300:]}")


def _busy_seconds():
  """Returns the CPU time of all processes since boot."""
  with open("/proc/stat") as stat:
    user, nice, system, _, _, irq, softirq, steal = map(int, stat.readline().split()[1:9])
  return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def _own_seconds():
  usage = resource.getrusage(resource.RUSAGE_CHILDREN)
  return usage.ru_utime + usage.ru_stime


class Watch:
  """Waits for an idle machine before each run, and repeats a disturbed run."""

  def __init__(self, max_foreign, attempts, patience):
    self.max_foreign, self.attempts, self.patience = max_foreign, attempts, patience

  def wait(self):
    """Returns after one second without other work, or after `patience` seconds."""
    for _ in range(self.patience):
      busy = _busy_seconds()
      time.sleep(1)
      if _busy_seconds() - busy <= self.max_foreign:
        return

  def undisturbed(self, measure):
    """Returns measure()'s result, and True if no other process interfered."""
    for _ in range(self.attempts):
      self.wait()
      busy, own, start = _busy_seconds(), _own_seconds(), time.monotonic()
      result = measure()
      foreign = (_busy_seconds() - busy) - (_own_seconds() - own)
      if foreign <= self.max_foreign * (time.monotonic() - start):
        return result, True
    return result, False


# Prompt tokens of each sequence in a batch: llama-batched-bench has no test without a prompt.
BATCH_PROMPT = 16


class Arenite:
  """`arenite` and `arenite-convert`, in one folder."""

  name = "Arenite"

  def __init__(self, folder, residency="mapped"):
    self.residency = residency
    self.program = os.path.join(folder, "arenite")
    self.converter = os.path.join(folder, "arenite-convert")
    self.limits = {}  # machine limits, the best of all runs

  def bench(self, bundle, test, threads, kv, extra=()):
    """Returns the report of `arenite bench` on one test: (kind, tokens, depth), or ("batch",
    tokens, sequences) with BATCH_PROMPT prompt tokens per sequence."""
    kind, tokens, depth = test
    sequences = []
    if kind == "batch":
      sequences, depth = ["--sequences", str(depth)], BATCH_PROMPT
    report = json.loads(run([
        self.program, "bench", bundle, "-p", str(tokens if kind == "prefill" else 0), "-n",
        str(0 if kind == "prefill" else tokens), "-d", str(depth), "-t", str(threads), "-r", "1",
        "--kv", kv, "--residency", self.residency, "--json", *sequences, *extra]))
    for limits in report.get("limits", []):
      for name, value in limits.items():
        known = self.limits.get(name, value)
        self.limits[name] = max(known, value) if isinstance(value, float) else value
    return report

  def speed(self, bundle, test, threads, kv):
    """Returns tokens/s."""
    return self.bench(bundle, test, threads, kv)["results"][0]["tokens_per_s"]

  def work(self, bundle, test, threads, kv):
    """Returns a list of dictionaries: time, bytes and operations per token for each step type."""
    result = self.bench(bundle, test, threads, kv, ["--profile"])["results"][0]
    tokens = result["tokens"]
    return [{"op": row["op"], "ns": row["ns_per_token"], "bytes": row["bytes"] / tokens,
             "integer_ops": row["integer_ops"] / tokens, "float_ops": row["float_ops"] / tokens}
            for row in result["profile"]]

  def first_token(self, bundle, threads):
    return [self.program, "run", bundle, "--prompt-ids", "100,200,300", "--max-tokens", "1",
            "--ignore-eos", "--threads", str(threads), "--quiet"]

  def generate(self, bundle, threads, tokens):
    return [self.program, "run", bundle, "--prompt-ids", "100,200,300", "--max-tokens", str(tokens),
            "--ignore-eos", "--threads", str(threads), "--json", "--quiet"]


class Peer:
  """llama.cpp's programs. `prefix` precedes each command; `folder` is the files' folder as the peer
  sees it; `options` are further ones of llama-bench."""

  name = "llama.cpp"

  def __init__(self, prefix, folder, options=()):
    self.prefix, self.folder, self.options = shlex.split(prefix), folder, list(options)

  def path(self, model):
    return os.path.join(self.folder, os.path.basename(model)) if self.folder else model

  def command(self, *arguments):
    return self.prefix + list(arguments)

  def speed(self, model, test, threads, kv):
    """Returns tokens/s. kv: type of the KV cache; f16 is the peer's default."""
    kind, tokens, depth = test
    if kind == "batch":
      # Twice the tokens: some versions round each sequence's part of the context down.
      return batch_speed(run(self.command(
          "llama-batched-bench", "-m", self.path(model), "-npp", str(BATCH_PROMPT), "-ntg",
          str(tokens), "-npl", str(depth), "-c", str(2 * (BATCH_PROMPT + tokens) * depth), "-t",
          str(threads), "-ctk", kv, "-ctv", kv, "-fa", "on", "--output-format", "jsonl"),
                             also_errors=True))
    options = ["-ctk", kv, "-ctv", kv, "-fa", "1"] if depth > 0 else []
    # Not all peers have -d.
    at_depth = ["-d", str(depth)] if depth > 0 else []
    rows = json.loads(run(self.command(
        "llama-bench", "-m", self.path(model), "-p", str(tokens if kind == "prefill" else 0), "-n",
        str(tokens if kind == "decode" else 0), *at_depth, "-t", str(threads), "-r", "1", "-o",
        "json", *options, *self.options)))
    return rows[0]["avg_ts"]

  def first_token(self, model, threads):
    return self.generate(model, threads, 1)

  def generate(self, model, threads, tokens):
    return self.command(
        "llama-completion", "-m", self.path(model), "-t", str(threads), "-p", "Once upon a time",
        "-n", str(tokens), "-c", "512", "--ignore-eos", "-no-cnv", "--no-display-prompt",
        "--no-warmup")
