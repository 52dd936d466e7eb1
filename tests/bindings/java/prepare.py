"""Writes the input of the Java tests into a folder: the demo model as bundles, the command's story,
and the expected continuations, one per line: ids of the prompt | ids of the answer | its text.
"""

import argparse
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from adapter_files import write_adapter  # noqa: E402


def main():
  parser = argparse.ArgumentParser()
  for name in ("source", "bin", "out"):
    parser.add_argument("--" + name, type=pathlib.Path, required=True)
  given = parser.parse_args()
  given.out.mkdir(parents=True, exist_ok=True)
  for weights in ("f32", "int8"):
    subprocess.run([given.bin / "arenite-convert", given.source / "models/fable/fable-2m", "-o",
                    given.out / f"{weights}.arn", "--weights", weights],
                   check=True, stderr=subprocess.DEVNULL)
  checkpoint = given.source / "models/fable/fable-2m"
  folder = given.out / "adapter"
  if not folder.exists():
    write_adapter(folder, checkpoint, 1)
  for output, more in (("adapter.arn", ["--base", given.out / "f32.arn"]),
                       ("merged.arn", ["--merge"])):
    subprocess.run([given.bin / "arenite-convert", checkpoint, "--lora", folder, "-o",
                    given.out / output, "--weights", "f32"] + more,
                   check=True, stderr=subprocess.DEVNULL)
  story = subprocess.run(
      [given.bin / "arenite", "run", given.out / "f32.arn", "--prompt", "Once upon a time",
       "--max-tokens", "256", "--context", "512", "--seed", "0"],
      check=True, capture_output=True).stdout
  (given.out / "story.txt").write_bytes(story)
  expected = json.loads((given.source / "models/fable/expected.json").read_text(encoding="utf-8"))
  with open(given.out / "cases.txt", "w", encoding="utf-8") as cases:
    for prompt in expected["prompts"]:
      stops = prompt["greedy_stops_after"]
      greedy = prompt["greedy_ids"] if stops is None else prompt["greedy_ids"][:stops - 1]
      words = [" ".join(map(str, ids)) for ids in (prompt["ids_used"], greedy)]
      cases.write("|".join(words + [prompt["greedy_text"].replace("\n", "\\n")]) + "\n")


if __name__ == "__main__":
  main()
