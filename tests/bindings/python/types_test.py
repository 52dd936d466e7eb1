"""Runs mypy --strict over the package and over programs that use it."""

import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile

PROGRAM = """
import arenite

def tell(path: str) -> str:
  with arenite.Model(path) as model, model.session() as session:
    ids: list[int] = model.tokenize("Once")
    session.prefill(ids)
    for piece in session.generate(max_tokens=3):
      data: bytes = piece.data
      token: int | None = piece.token
      print(data, token)
    reveal_type(session.generate().close().finish)
    return session.generate().text()
"""
MISTAKE = PROGRAM + """
tell(3)
"""


def mypy(*arguments):
  return subprocess.run(["mypy", "--strict", "--no-incremental", *map(str, arguments)],
                        capture_output=True, text=True, check=False)


def main():
  parser = argparse.ArgumentParser()
  parser.add_argument("--source", type=pathlib.Path, required=True)
  package = parser.parse_args().source / "bindings/python"
  if shutil.which("mypy") is None:
    print("skipped: mypy is not installed: toolchains/get_deps.sh --install-bindings gets it.")
    return 77
  problems = []
  done = mypy("--cache-dir=/dev/null", package / "arenite", package / "wheel_backend.py")
  if done.returncode != 0:
    problems.append(done.stdout + done.stderr)
  with tempfile.TemporaryDirectory() as folder:
    file = pathlib.Path(folder, "program.py")
    for text, expected in ((PROGRAM, 0), (MISTAKE, 1)):
      file.write_text(text, encoding="utf-8")
      done = subprocess.run(
          ["mypy", "--strict", "--cache-dir=/dev/null", "--python-version=3.11", str(file)],
          capture_output=True, text=True, check=False, env={"MYPYPATH": str(package), "PATH":
              str(pathlib.Path(shutil.which("mypy")).parent)})
      if done.returncode != expected or "arenite.enums.Finish" not in done.stdout:
        problems.append(done.stdout + done.stderr)
  print("\n".join(problems) or "nothing found")
  return 1 if problems else 0


if __name__ == "__main__":
  sys.exit(main())
