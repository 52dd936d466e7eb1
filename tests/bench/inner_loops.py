#!/usr/bin/env python3
"""Estimates the speed of arm64 inner loops with llvm-mca; the build machines cannot time them.

Disassembles a program or archive of the arm64 build, finds in each named function the innermost
loop with the most multiplications, and runs it a hundred times in llvm-mca.

  inner_loops.py build/linux-arm64/lib/libmicrokernels-prod.a qd8_f32_qc8w_gemm.*neondot
  inner_loops.py build/linux-arm64/bin/arenite 'ScoreRows|AddValueRows' --cpus cortex-a76

Prints for each loop its instructions, multiplications and bytes loaded, the cycles per iteration,
and the lower bound from its multiplications and loads at two of either per cycle. (neoverse-v1
does four multiplications and three loads per cycle, which llvm-mca before version 15 does not
model.)
"""

import argparse
import re
import shutil
import subprocess
import sys

MULTIPLY = re.compile(r"^(sdot|udot|usdot|smmla|fmla|fmlal|bfmmla|bfdot|smlal2?|mla|smull2?)$")
BRANCH = re.compile(r"^(b\.\w+|cbn?z|tbn?z)$")
FUNCTION = re.compile(r"^[0-9a-f]+ <(.+)>:$")
LINE = re.compile(r"^\s+([0-9a-f]+):\s+([0-9a-f]{8})\s+(\S+)\s*(.*)$")
SVE_BYTES = {"ld1b": 32, "ld1rqb": 16}  # the vector length kernels/cpu/int8_dot/sve.cc is for
REGISTER_BYTES = {"q": 16, "d": 8, "s": 4, "x": 8, "w": 4, "h": 2, "b": 1}


def functions(binary, wanted, objdump):
    """Yields (name, [(address, mnemonic, operands)]) of each matching function."""
    text = subprocess.run([objdump, "-d", "-C", binary], capture_output=True, text=True,
                          check=True).stdout
    name, body = None, []
    for line in text.splitlines():
        start = FUNCTION.match(line)
        if start:
            if body:
                yield name, body
            name, body = start[1] if re.search(wanted, start[1]) else None, []
        elif name:
            match = LINE.match(line)
            if match:
                operands = re.sub(r"\s*(//|<).*$", "", match[4]).strip()
                body.append((int(match[1], 16), match[3], operands))
    if body:
        yield name, body


def loaded_bytes(mnemonic, operands):
    if mnemonic in SVE_BYTES:
        return SVE_BYTES[mnemonic]
    if not re.match(r"ld(p|r|ur|1r?)$", mnemonic):
        return 0
    vectors = re.match(r"\{(.*)\}", operands)
    if vectors:  # ld1 {v0.16b-v3.16b} or {v0.16b, v1.16b}; ld1r reads one element
        span = re.match(r"v(\d+)\.\w+-v(\d+)", vectors[1])
        count = int(span[2]) - int(span[1]) + 1 if span else vectors[1].count("v")
        return 16 * count if mnemonic == "ld1" else 4
    size = REGISTER_BYTES.get(operands[0], 0)
    return size * (2 if mnemonic == "ldp" else 1)


def inner_loop(body):
    """Returns the instructions between a backward branch and its target, with no inner loop among
    them."""
    loops = []
    for index, (address, mnemonic, operands) in enumerate(body):
        target = re.search(r"([0-9a-f]+)$", operands)
        if not BRANCH.match(mnemonic) or not target:
            continue
        to = int(target[1], 16)
        first = next((i for i, line in enumerate(body) if line[0] == to), None)
        if first is not None and to < address:
            loops.append((first, index))
    inner = [(a, b) for a, b in loops
             if not any((c, d) != (a, b) and a <= c and d <= b for c, d in loops)]

    def multiplications(loop):
        return sum(1 for line in body[loop[0]:loop[1] + 1] if MULTIPLY.match(line[1]))

    best = max(inner, key=multiplications, default=None)
    return body[best[0]:best[1] + 1] if best and multiplications(best) else None


def cycles(loop, cpu, mca):
    lines = [f"{mnemonic} {operands}" for _, mnemonic, operands in loop
             if not BRANCH.match(mnemonic)]
    extensions = [f".arch_extension {name}" for name in ("dotprod", "i8mm", "sve")]
    source = "\n".join([*extensions, *lines]) + "\n"
    done = subprocess.run(
        [mca, "-march=aarch64", f"-mcpu={cpu}", "-mattr=+dotprod,+i8mm,+bf16,+fp16fml,+sve",
         "-iterations=100"], input=source, capture_output=True, text=True, check=False)
    total = re.search(r"Total Cycles:\s+(\d+)", done.stdout)
    if not total:
        sys.exit(f"error: {mca} for {cpu}: {done.stderr.strip()[:300]}")
    return int(total[1]) / 100


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("binary")
    parser.add_argument("functions", help="regular expression of demangled names")
    parser.add_argument("--cpus", nargs="+", default=["cortex-a76", "neoverse-v1"])
    parser.add_argument("--objdump", default="aarch64-linux-gnu-objdump")
    parser.add_argument("--mca", default="llvm-mca-14")
    args = parser.parse_args()
    for tool in (args.objdump, args.mca):
        if not shutil.which(tool):
            sys.exit(f"error: '{tool}' is not on the PATH")
    print("| function | instructions | multiplications | bytes loaded | "
          + " | ".join(f"cycles, {cpu}" for cpu in args.cpus) + " | at least |")
    print("|---|--:|--:|--:|" + "--:|" * (len(args.cpus) + 1))
    found = False
    for name, body in functions(args.binary, args.functions, args.objdump):
        loop = inner_loop(body)
        if loop is None:
            continue
        found = True
        multiplications = sum(1 for line in loop if MULTIPLY.match(line[1]))
        loads = sum(1 for line in loop if loaded_bytes(line[1], line[2]))
        size = sum(loaded_bytes(line[1], line[2]) for line in loop)
        measured = [f"{cycles(loop, cpu, args.mca):.1f}" for cpu in args.cpus]
        print(f"| {name} | {len(loop)} | {multiplications} | {size} | " + " | ".join(measured)
              + f" | {max(multiplications, loads) / 2:.1f} |")
    if not found:
        sys.exit(f"error: no loop with multiplications in a function like '{args.functions}' of "
                 f"{args.binary}")


if __name__ == "__main__":
    main()
