#!/usr/bin/env python3
"""Counts the arm64 instructions per token under qemu's user emulation.

The build machines emulate ARM CPUs, so times are meaningless, but instruction counts are exact.
qemu logs each translated block (`-d in_asm`) and each executed one (`exec,nochain`). The sum over
the blocks is the instruction count of a run; the difference between two runs of different lengths
is the cost of the tokens between them.

  instructions.py F.arn                          decode and a prefill chunk, on each of two CPUs
  instructions.py F.arn --cpus max --test decode --arenite build/linux-arm64/bin/arenite

Uses one thread. Prints the instructions per token, the share of arithmetic instructions, and the
dot product instructions executed.
"""

import argparse
import collections
import os
import re
import subprocess
import sys
import tempfile
import threading

# An executed block, with its address in `Trace 0: 0xHOST [cs/PC/flags/cflags] symbol`.
TRACE = re.compile(r"^Trace \d+: 0x[0-9a-f]+ \[[0-9a-f]+/([0-9a-f]+)/")
# An instruction of a block: `0xPC:  4e20cc41  fmla     v1.4s, v2.4s, v0.4s`.
INSTRUCTION = re.compile(r"^0x([0-9a-f]+):\s+([0-9a-f]{8})\s+(\S+)")
# Instructions that qemu's disassembler prints as .byte, from the Arm Architecture Reference Manual:
# mask, value.
ENCODED = {
    "sdot": ((0xFFE0FC00, 0x4E809400), (0xFFC0F400, 0x4F80E000)),
    "smmla": ((0xFFE0FC00, 0x4E80A400), (0xFFE0FC00, 0x45009800)),  # of NEON, and of SVE
    "usdot": ((0xFFE0FC00, 0x4E809C00), (0xFFC0F400, 0x4F80F000)),
    "bfmmla": ((0xFFE0FC00, 0x6E40EC00),),
}
DOT_PRODUCTS = (*ENCODED, "fmla", "smlal", "smlal2")
# Two runs of a test: their difference excludes load and warm-up.
TESTS = {
    "decode": (["-p", "0", "-n", "1"], ["-p", "0", "-n", "3"], 2),
    "prefill": (["-n", "0", "-p", "16"], ["-n", "0", "-p", "32"], 16),
}
RUNS_OF_A_CASE = 2  # one warm-up, one counted


def name_of(word, text):
    for name, encodings in ENCODED.items():
        if any(word & mask == value for mask, value in encodings):
            return name
    return text


def count(lines):
    """Returns (instructions, Counter of mnemonics) of a log."""
    blocks, executed = {}, collections.Counter()
    block, total, kinds = None, 0, collections.Counter()

    def settle():
        nonlocal total
        for pc, times in executed.items():
            names = blocks.get(pc)
            if names is None:
                raise ValueError(f"block {pc:#x} was executed, but never translated")
            total += times * sum(names.values())
            for name, n in names.items():
                kinds[name] += n * times
        executed.clear()

    for line in lines:
        trace = TRACE.match(line)
        if trace:
            executed[int(trace[1], 16)] += 1
            continue
        if line.startswith("IN:"):
            block = None
            continue
        instruction = INSTRUCTION.match(line)
        if not instruction:
            continue
        if block is None:
            pc = int(instruction[1], 16)
            if pc in blocks:  # translated again, maybe with another length
                settle()
            block = blocks[pc] = collections.Counter()
        block[name_of(int(instruction[2], 16), instruction[3])] += 1
    settle()
    return total, kinds


def run(arenite, bundle, cpu, emulator, arguments):
    command = [emulator, "-cpu", cpu, "-L", "/usr/aarch64-linux-gnu", "-d", "in_asm,exec,nochain"]
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "log")
        os.mkfifo(log)
        result = []

        def read():
            with open(log, encoding="utf-8", errors="replace") as lines:
                try:
                    result.append(count(lines))
                except ValueError as error:
                    result.append(error)
                    for _ in lines:  # drain, else the program blocks on the pipe
                        pass

        reader = threading.Thread(target=read)
        reader.start()
        done = subprocess.run(
            [*command, "-D", log, arenite, "bench", bundle, "-t", "1", "-r", "1", *arguments],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0 and reader.is_alive() and not result:
            with open(log, "a", encoding="utf-8"):  # unblocks the reader if the program never
                                                    # opened its log
                pass
        reader.join()
    if done.returncode != 0:
        sys.exit(f"error: '{arenite} bench {bundle}' on {cpu} ended with status {done.returncode}: "
                 f"{done.stderr.strip()[-300:]}")
    if isinstance(result[0], ValueError):
        sys.exit(f"error: qemu's log of {cpu}: {result[0]}")
    return result[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("bundle")
    parser.add_argument("--arenite", default="build/linux-arm64/bin/arenite")
    parser.add_argument("--emulator", default="qemu-aarch64-static")
    parser.add_argument("--cpus", nargs="+", default=["cortex-a76", "max"])
    parser.add_argument("--test", nargs="+", choices=TESTS, default=list(TESTS))
    parser.add_argument("--depth", type=int, default=0, help="tokens before those that are counted")
    args = parser.parse_args()
    for path in (args.arenite, args.bundle):
        if not os.path.exists(path):
            sys.exit(f"error: '{path}' is not there")
    print("| CPU | test | instructions a token | dot products and multiply-adds | of them |")
    print("|---|---|--:|--:|---|")
    for cpu in args.cpus:
        for test in args.test:
            short, long, tokens = TESTS[test]
            short, long = ([*test_args, "-d", str(args.depth)] for test_args in (short, long))
            a, a_kinds = run(args.arenite, args.bundle, cpu, args.emulator, short)
            b, b_kinds = run(args.arenite, args.bundle, cpu, args.emulator, long)
            per_token = (b - a) / tokens / RUNS_OF_A_CASE
            dots = {name: (b_kinds[name] - a_kinds[name]) / tokens / RUNS_OF_A_CASE
                    for name in DOT_PRODUCTS}
            share = sum(dots.values()) / per_token
            what = ", ".join(f"{name} {n / 1e6:.2f} M" for name, n in dots.items() if n > 1e4)
            print(f"| {cpu} | {test} | {per_token / 1e6:.2f} M | {share:.0%} | {what or '-'} |",
                  flush=True)


if __name__ == "__main__":
    main()
