#!/usr/bin/env python3
"""Many clients at a time, some of which go away: none starves, everything is answered or refused as
it should be, and the memory stays as it is.

  fair_load_test.py ARENITE CONVERTER CHECKPOINT [sanitized] [--clients 24] [--seconds 5]
                    [--bundle F.arn] [--queue N] [--growth PAGES] [--serve "--threads 1 ..."]

The long form: --clients 64 --seconds 600.

Each client sends one request after the other. Of ten requests three are given up: before the answer
or behind some tokens of it. What is refused because the queue is full (429) is sent again after
Retry-After, and the client's wait goes on meanwhile.

The wait for a first token is a fair share if the server meanwhile begins one answer for each
client. A request starves if it takes more than three of them: everyone else was then served three
times in between. Answers are counted, not timed, so that a busy machine changes none of it.

Resident memory, but for the mapped weights, is flat if the last two thirds of the run add no more
pages than --growth allows to the most that the first third had. Before it as many of the longest
requests run together as there are sequences, which use all of the KV cache; and glibc's caches of
freed memory are off: each thread would fill its own, with some 50 kB, in its first dozens of
requests.

sanitized: the program's memory is a sanitizer's too, so that it is not measured.
"""

import argparse
import asyncio
import bisect
import json
import os
import random
import re
import shlex
import sys
import tempfile
import time

import server

NO_THREAD_CACHES = "glibc.malloc.tcache_count=0"
STARVED = 3  # fair shares
MOST_PROMPT, MOST_REPLY = 96, 64  # tokens
CONTEXT = MOST_PROMPT + MOST_REPLY
PAGE = 4096


def parse():
  parser = argparse.ArgumentParser(description=__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("arenite")
  parser.add_argument("converter")
  parser.add_argument("checkpoint")
  parser.add_argument("sanitized", nargs="?", choices=["sanitized"])
  parser.add_argument("--bundle", help="serve this one instead")
  parser.add_argument("--clients", type=int, default=24)
  parser.add_argument("--seconds", type=float, default=5)
  parser.add_argument("--sequences", type=int, default=8)
  parser.add_argument("--queue", type=int, help="[the clients and a quarter more]")
  parser.add_argument("--vocab", type=int, default=1000, help="prompts have ids from 100 to this")
  parser.add_argument("--growth", type=int, help="[64 in a run of less than a minute; 8]")
  parser.add_argument("--serve", default="", help="more options of arenite serve")
  return parser.parse_args()


class Record:
  """What the clients saw."""

  def __init__(self):
    self.first = []  # (when it was asked, when its first token came)
    self.counts = {"answered": 0, "left": 0, "refused": 0}
    self.mistakes = []
    self.tokens = 0


def head_of(body):
  text = json.dumps(body).encode()
  return (b"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
          b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(text) + text)


async def read_head(reader):
  status = int((await reader.readline()).split()[1])
  headers = {}
  while (line := await reader.readline()) not in (b"\r\n", b""):
    name, value = line.decode().split(":", 1)
    headers[name.lower()] = value.strip()
  return status, headers


async def ask(port, body, leaves_behind, asked, record):
  """Returns false if the request was refused. leaves_behind: tokens; None: stays to the end."""
  reader, writer = await asyncio.open_connection("127.0.0.1", port)
  try:
    writer.write(head_of(body))
    await writer.drain()
    if leaves_behind == 0:
      await asyncio.sleep(random.random() * 0.05)
      record.counts["left"] += 1
      return True
    status, headers = await read_head(reader)
    if status == 429:
      record.counts["refused"] += 1
      if "retry-after" not in headers:
        record.mistakes.append("429 without Retry-After")
      return False
    if status != 200:
      record.mistakes.append(f"{status}: {(await reader.read())[:200]}")
      return True
    n, is_done, usage = 0, False, None
    while line := await reader.readline():
      is_done = is_done or line.startswith(b"data: [DONE]")
      if line.startswith(b'data: {"error"'):
        record.mistakes.append(line.decode())
      if b'"usage":{' in line:
        usage = json.loads(line[len(b"data: "):])["usage"]
      if not line.startswith(b"data: {") or b'"choices":[{' not in line:
        continue
      if b'"finish_reason":"' in line:
        continue
      n += 1
      if n == 1:
        record.first.append((asked, time.monotonic()))
      if n == leaves_behind:
        record.counts["left"] += 1
        return True
    found = usage["completion_tokens"] if usage else 0
    record.tokens += found
    if not is_done or found != body["max_tokens"]:
      record.mistakes.append(f"{found} of {body['max_tokens']} tokens, end of stream: {is_done}")
    record.counts["answered"] += 1
    return True
  finally:
    writer.close()


async def client(number, port, options, record, end):
  rng = random.Random(number)
  while time.monotonic() < end:
    ids = [rng.randrange(100, options.vocab) for _ in range(rng.randint(8, MOST_PROMPT))]
    body = {"prompt": ids, "max_tokens": rng.randint(8, MOST_REPLY), "stream": True, "seed": number,
            "temperature": 0.8, "ignore_eos": True, "stream_options": {"include_usage": True}}
    leaves_behind = rng.choice([0, rng.randint(1, 8), rng.randint(1, 8)])
    if rng.random() < 0.7:
      leaves_behind = None
    asked = time.monotonic()
    try:
      while not await ask(port, body, leaves_behind, asked, record):
        await asyncio.sleep(1)
    except (OSError, asyncio.IncompleteReadError, IndexError, ValueError) as error:
      record.mistakes.append(repr(error))


def pages_of(process):
  """Resident pages of the program's own; those of the mapped weights come as they are read."""
  with open(f"/proc/{process.pid}/status") as status:
    return int(re.search(r"RssAnon:\s+(\d+) kB", status.read())[1]) * 1024 // PAGE


async def watch(process, start, end, pages):
  while time.monotonic() < end:
    pages.append((time.monotonic() - start, pages_of(process)))
    await asyncio.sleep(0.25)


async def fill(port, options):
  """Uses all pages of the KV cache at once."""
  bodies = [{"prompt": [100 + (i + t) % 100 for t in range(MOST_PROMPT)], "ignore_eos": True,
             "max_tokens": MOST_REPLY, "stream": True, "stream_options": {"include_usage": True}}
            for i in range(options.sequences)]
  record = Record()
  await asyncio.gather(*(ask(port, body, None, 0, record) for body in bodies))
  return record.mistakes


async def run(started, options):
  record, pages = Record(), []
  record.mistakes += await fill(started.port, options)
  start = time.monotonic()
  end = start + options.seconds
  await asyncio.gather(watch(started.process, start, end, pages),
                       *(client(i, started.port, options, record, end)
                         for i in range(options.clients)))
  return record, pages


def shares(record, n_clients):
  """The waits for first tokens, in fair shares: other ones that came meanwhile, for each client."""
  came = sorted(at for _, at in record.first)
  return sorted((bisect.bisect_left(came, at) - bisect.bisect_left(came, asked)) / n_clients
                for asked, at in record.first)


def percentile(ordered, share):
  return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def main():
  options = parse()
  os.environ.setdefault("GLIBC_TUNABLES", NO_THREAD_CACHES)
  queue = options.queue or options.clients + options.clients // 4
  with tempfile.TemporaryDirectory() as folder:
    bundle = options.bundle or server.make_bundle(options.converter, options.checkpoint, folder)
    started = server.Server(options.arenite, bundle, "--sequences", str(options.sequences),
                            "--context", str(CONTEXT), "--queue", str(queue),
                            "--connections", str(2 * options.clients),
                            *shlex.split(options.serve))
    try:
      record, pages = asyncio.run(run(started, options))
      started.wait_until_idle()
      failed = started.metric("requests_failed_total")
    finally:
      code = started.end()
  waits = sorted(at - asked for asked, at in record.first)
  found = shares(record, options.clients)
  warm = max(n for at, n in pages if at <= options.seconds / 3)
  most = max(n for at, n in pages if at > options.seconds / 3)
  print(f"{options.clients} clients, {options.sequences} sequences, {options.seconds:g} s: "
        f"{record.counts['answered']} answered, {record.counts['left']} given up, "
        f"{record.counts['refused']} refused (429); {record.tokens / options.seconds:.0f} tokens/s")
  print("first token, s:            " + ", ".join(
      f"{name} {percentile(waits, share):.3f}" for name, share in
      (("p50", 0.5), ("p99", 0.99), ("most", 1))))
  print("first token, fair shares:  " + ", ".join(
      f"{name} {percentile(found, share):.2f}" for name, share in
      (("p50", 0.5), ("p99", 0.99), ("most", 1))))
  tenths = [max((n for at, n in pages if i <= at * 10 / options.seconds < i + 1), default=0)
            for i in range(10)]
  print(f"resident pages, by tenths: {' '.join(map(str, tenths))}; "
        f"{(most - warm) * PAGE / 1024:+.0f} KiB behind the first third")
  problems = record.mistakes[:5]
  if failed or code or started.errors:
    problems.append(f"{failed:g} requests failed; the server ended with {code}: {started.errors}")
  if record.counts["answered"] == 0 or record.counts["left"] == 0:
    problems.append("nothing was tried")
  if found[-1] > STARVED:
    problems.append(f"a first token took {found[-1]:.2f} fair shares, more than {STARVED}")
  if not options.sanitized:
    growth = options.growth
    if growth is None:
      growth = 64 if options.seconds < 60 else 8
    if most > warm + growth:
      problems.append(f"{most - warm} pages were added after the first third")
  if problems:
    sys.exit("\n".join(problems))


if __name__ == "__main__":
  main()
