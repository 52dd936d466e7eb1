"""Completes lines in bash, zsh and fish by the scripts that the programs print."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

TOOL, CONVERTER = (os.path.abspath(path) for path in sys.argv[1:3])
PROGRAMS = {"arenite": TOOL, "arenite-convert": CONVERTER}

BASH = r"""
line=$1; source "$2"
read -ra COMP_WORDS <<<"$line"; [[ $line == *' ' ]] && COMP_WORDS+=('')
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
"_${COMP_WORDS[0]//-/_}"
printf '%s\n' "${COMPREPLY[@]}"
"""

# An interactive shell on a pseudo-terminal completes the line as soon as it can be edited, and
# writes what is offered to a file.
ZSH = r"""
zmodload zsh/zpty
export LINE=$1 SCRIPTS=$2 OFFERED=$3
zpty shell "zsh -f -i"
zpty -w shell 'fpath=($SCRIPTS $fpath); autoload -U compinit; compinit -u -D
compadd() {
  local -a __offered
  if [[ " $* " != *" -"[AOD]" "* ]]; then
    builtin compadd -A __offered "$@"
    (($#__offered == 0)) || print -rl -- $__offered >>$OFFERED
  fi
  builtin compadd "$@"
}
zle-line-init() { BUFFER=$LINE; CURSOR=$#BUFFER; zle list-choices; exit }
zle -N zle-line-init'
while zpty -r shell text; do :; done
"""


class Bash(unittest.TestCase):
  shell = "bash"

  @classmethod
  def setUpClass(cls):
    if not shutil.which(cls.shell):
      raise unittest.SkipTest(f"{cls.shell} is not installed")
    cls.temporary = tempfile.TemporaryDirectory()
    cls.folder = pathlib.Path(cls.temporary.name)
    (cls.folder / "model.arn").touch()
    (cls.folder / "scripts").mkdir()
    for name, program in PROGRAMS.items():
      script = subprocess.run([program, "--completion", cls.shell], check=True,
                              capture_output=True).stdout
      (cls.folder / "scripts" / f"_{name}").write_bytes(script)

  @classmethod
  def tearDownClass(cls):
    cls.temporary.cleanup()

  def run_shell(self, line):
    script = self.folder / "scripts" / f"_{line.split()[0]}"
    return [self.shell, "-c", BASH, "bash", line, script]

  def complete(self, line):
    """Returns the words that the shell offers for the end of `line`."""
    done = subprocess.run(self.run_shell(line), cwd=self.folder, capture_output=True, text=True,
                          timeout=60, env={**os.environ, "HOME": str(self.folder),
                                           "LC_ALL": "C.UTF-8"})
    self.assertEqual("", done.stderr)
    return self.words(done.stdout)

  def words(self, text):
    return set(text.split())

  def test_commands(self):
    self.assertEqual({"rerank", "run"}, self.complete("arenite r"))
    self.assertLessEqual({"bench", "chat", "help", "kv"}, self.complete("arenite "))
    self.assertNotIn("model.arn", self.complete("arenite "))

  def test_commands_below_commands(self):
    self.assertEqual({"export", "import"}, self.complete("arenite kv "))
    self.assertEqual({"export"}, self.complete("arenite kv e"))
    self.assertIn("--prompt-ids", self.complete("arenite kv export --"))
    self.assertNotIn("--prompt-ids", self.complete("arenite kv import --"))

  def test_help_takes_a_command(self):
    self.assertEqual({"rerank", "run"}, self.complete("arenite help r"))

  def test_options(self):
    self.assertLessEqual({"--kv", "--kv-file"}, self.complete("arenite run --kv"))
    self.assertEqual({"--weights", "--window"}, self.complete("arenite-convert --w"))
    self.assertEqual({"--version"}, self.complete("arenite --ver"))

  def test_values(self):
    self.assertEqual({"int2", "int4", "int8"}, self.complete("arenite run --kv int"))
    self.assertLessEqual({"bf16", "int4"}, self.complete("arenite-convert x --weights "))

  def test_files(self):
    self.assertEqual({"model.arn"}, self.complete("arenite run mod"))
    self.assertEqual({"model.arn"}, self.complete("arenite-convert mod"))
    self.assertEqual({"model.arn"}, self.complete("arenite run --prompt-file mod"))


class Zsh(Bash):
  shell = "zsh"

  def run_shell(self, line):
    (self.folder / "offered").write_text("")
    return [self.shell, "-f", "-c", ZSH, "zsh", line, self.folder / "scripts",
            self.folder / "offered"]

  def words(self, text):
    return super().words((self.folder / "offered").read_text())


class Fish(Bash):
  shell = "fish"

  def run_shell(self, line):
    script = self.folder / "scripts" / f"_{line.split()[0]}"
    return [self.shell, "--no-config", "-c", 'source $argv[1]; complete -C "$argv[2]"', script,
            line]

  def words(self, text):
    return {row.split("\t")[0] for row in text.splitlines()}


if __name__ == "__main__":
  unittest.main(argv=sys.argv[:1])
