#!/usr/bin/env python3
"""Measures servers with OpenAI's API under the same load, in turn: tokens/s of all clients, the
time to the first token, and the time between tokens.

  serve_speed.py --server Arenite "arenite serve F.arn --sequences 8 --context 1024 --port {port}"
                 --server llama-server "llama-server -m F.gguf -np 8 -c 8192 -t 2 --port {port}"
                 [--clients 16] [--seconds 30] [--rounds 3] [--prompt 32:256] [--reply 32:128]

Each client sends one request after the other: token ids as the prompt, and a limit of the reply's
tokens, both at random within the ranges and the same for every server. Replies are streamed and go
on behind stop tokens. Each round starts the servers anew, and waits until /health says that the
model is read.
"""

import argparse
import asyncio
import json
import random
import re
import shlex
import socket
import statistics
import subprocess
import sys
import time

HEADER = ("| server | n | tokens/s, least / median / most | first token ms, p50 / p99 | "
          "between tokens ms, p50 / p99 | resident MB |\n|---|--:|--:|--:|--:|--:|")


def percentile(values, share):
  ordered = sorted(values)
  return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")


class Load:
  """What the clients of one round measured."""

  def __init__(self):
    self.tokens, self.first, self.gaps, self.failures = 0, [], [], []


async def ask(port, body, load, end):
  """Streams one reply. Tokens that come after `end` do not count."""
  reader, writer = await asyncio.open_connection("127.0.0.1", port)
  try:
    text = json.dumps(body).encode()
    writer.write(b"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
                 b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(text) + text)
    await writer.drain()
    before = time.monotonic()
    status = await reader.readline()
    if b" 200 " not in status:
      load.failures.append(status.decode(errors="replace").strip())
      await asyncio.sleep(0.01)
      return
    is_first = True
    while line := await reader.readline():
      # Each token is one event; the last events have no choice, or the reason of the end.
      if not line.startswith(b"data: {") or b'"choices":[{' not in line.replace(b" ", b""):
        continue
      if re.search(rb'"finish_reason": ?"', line):
        continue
      now = time.monotonic()
      if now < end:
        load.tokens += 1
        (load.first if is_first else load.gaps).append(now - before)
      is_first, before = False, now
  finally:
    writer.close()


async def client(number, port, options, load, end):
  rng = random.Random(number)
  while time.monotonic() < end:
    ids = [rng.randrange(100, options.vocab) for _ in range(rng.randint(*options.prompt))]
    await ask(port, {"prompt": ids, "max_tokens": rng.randint(*options.reply), "stream": True,
                     "temperature": 0.8, "seed": number, "ignore_eos": True}, load, end)


async def run_load(port, options):
  load = Load()
  end = time.monotonic() + options.seconds
  await asyncio.gather(*(client(i, port, options, load, end) for i in range(options.clients)))
  return load


def free_port():
  with socket.socket() as s:
    s.bind(("127.0.0.1", 0))
    return s.getsockname()[1]


def wait_until_ready(process, port):
  for _ in range(1200):
    if process.poll() is not None:
      sys.exit(f"the server ended with {process.returncode}")
    try:
      with socket.create_connection(("127.0.0.1", port), 1) as s:
        s.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        if b" 200 " in s.recv(4096):
          return
    except OSError:
      pass
    time.sleep(0.1)
  sys.exit("the server did not become ready")


def resident_mb(pid):
  """Returns the peak of a process, or of its only child (a chroot's)."""
  with open(f"/proc/{pid}/status") as status:
    return int(re.search(r"VmHWM:\s+(\d+)", status.read())[1]) / 1000


def measure(command, options):
  port = free_port()
  process = subprocess.Popen(shlex.split(command.format(port=port)), stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
  try:
    wait_until_ready(process, port)
    load = asyncio.run(run_load(port, options))
    return load, resident_mb(process.pid)
  finally:
    process.terminate()
    process.wait()


def parse_range(text):
  low, high = (int(word) for word in text.split(":"))
  return low, high


def parse():
  parser = argparse.ArgumentParser(description=__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--server", nargs=2, action="append", required=True,
                      metavar=("NAME", "COMMAND"))
  parser.add_argument("--clients", type=int, default=16)
  parser.add_argument("--seconds", type=float, default=30)
  parser.add_argument("--rounds", type=int, default=3)
  parser.add_argument("--prompt", type=parse_range, default=(32, 256), metavar="FROM:TO")
  parser.add_argument("--reply", type=parse_range, default=(32, 128), metavar="FROM:TO")
  parser.add_argument("--vocab", type=int, default=16000, help="prompts have ids from 100 to this")
  return parser.parse_args()


def main():
  options = parse()
  rounds = {name: [] for name, _ in options.server}
  for _ in range(options.rounds):
    for name, command in options.server:
      rounds[name].append(measure(command, options))
  print(HEADER)
  for name, loads in rounds.items():
    speeds = [load.tokens / options.seconds for load, _ in loads]
    first = [1000 * x for load, _ in loads for x in load.first]
    gaps = [1000 * x for load, _ in loads for x in load.gaps]
    print(f"| {name} | {len(loads)} | {min(speeds):.0f} / {statistics.median(speeds):.0f} / "
          f"{max(speeds):.0f} | {percentile(first, 0.5):.0f} / {percentile(first, 0.99):.0f} | "
          f"{percentile(gaps, 0.5):.1f} / {percentile(gaps, 0.99):.1f} | "
          f"{max(resident for _, resident in loads):.0f} |")
    failures = [failure for load, _ in loads for failure in load.failures]
    if failures:
      print(f"{name}: {len(failures)} requests were refused, the first with: {failures[0]}",
            file=sys.stderr)


if __name__ == "__main__":
  main()
