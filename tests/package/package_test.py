"""Installs the build and links it as a user would: each way of linking tells the same story.

Both libraries export exactly the functions that the headers declare.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import unittest

PROMPT = "Once upon a time"
options = None


def run(*command, **environment):
  done = subprocess.run(command, capture_output=True, text=True,
                        env={**os.environ, **environment})
  if done.returncode != 0:
    raise AssertionError(f"{' '.join(command)}: exit {done.returncode}\n{done.stdout[-3000:]}"
                         f"{done.stderr[-3000:]}")
  return done.stdout


def declared_functions():
  folder = os.path.join(options.source, "runtime/api/include/arenite")
  names = set()
  for header in os.listdir(folder):
    with open(os.path.join(folder, header)) as f:
      text = re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S)
    names.update(re.findall(r"ARN_API[^;(]*?(arn_\w+)\s*\(", text))
  return names


class PackageTest(unittest.TestCase):
  @classmethod
  def setUpClass(cls):
    cls.folder = tempfile.TemporaryDirectory()
    cls.prefix = os.path.join(cls.folder.name, "prefix")
    run("cmake", "--install", options.build, "--prefix", cls.prefix)
    found = [folder for folder, _, files in os.walk(cls.prefix) if "libarenite.a" in files]
    assert len(found) == 1, found
    cls.lib = found[0]
    cls.bundle = os.path.join(cls.folder.name, "fable.arn")
    run(os.path.join(cls.prefix, "bin/arenite-convert"),
        os.path.join(options.source, "models/fable/fable-2m"), "-o", cls.bundle)
    cls.story = os.path.join(options.source, "tools/example/story.c")
    cls.expected = run(os.path.join(cls.prefix, "bin/arenite"), "run", cls.bundle,
                       "--prompt", PROMPT, "--max-tokens", "256", "--context", "512", "--seed", "0")

  @classmethod
  def tearDownClass(cls):
    cls.folder.cleanup()

  def path(self, name):
    return os.path.join(self.folder.name, name)

  def tells_the_story(self, program):
    told = run(program, self.bundle, PROMPT, LD_LIBRARY_PATH=self.lib)
    self.assertTrue(told.startswith(PROMPT))
    self.assertGreater(len(told), len(PROMPT) + 40)
    self.assertEqual(told[len(PROMPT):].strip(), self.expected.strip())

  def build(self, project, name, *definitions, build_type="Release"):
    build = self.path(name)
    run("cmake", "-S", os.path.join(options.source, "tests/package", project), "-B", build,
        "-G", "Ninja", f"-DCMAKE_BUILD_TYPE={build_type}", f"-DCMAKE_C_COMPILER={options.cc}",
        f"-DCMAKE_CXX_COMPILER={options.cxx}", f"-DSTORY={self.story}", *definitions)
    run("cmake", "--build", build)
    return build

  def test_find_package(self):
    build = self.build("installed", "installed", f"-DCMAKE_PREFIX_PATH={self.prefix}")
    for program in ("story_shared", "story_static", "story_cxx"):
      with self.subTest(program):
        self.tells_the_story(os.path.join(build, program))
    self.assertIn("libarenite.so.0",
                  run(options.readelf, "-d", os.path.join(build, "story_shared")))
    self.assertNotIn("libarenite",
                     run(options.readelf, "-d", os.path.join(build, "story_static")))

  def test_manual_pages_and_completions_are_installed(self):
    for name in ("arenite", "arenite-convert"):
      for path in (f"man/man1/{name}.1", f"bash-completion/completions/{name}",
                   f"zsh/site-functions/_{name}", f"fish/vendor_completions.d/{name}.fish"):
        with open(os.path.join(self.prefix, "share", path), encoding="utf-8") as file:
          self.assertIn(name, file.readline().lower())

  def test_licences_are_installed(self):
    folder = os.path.join(self.prefix, "share/doc/arenite")
    self.assertEqual(set(os.listdir(folder)),
                     {"LICENSE", "THIRD_PARTY_NOTICES.txt", "arenite.spdx.json"})

  def test_pkg_config(self):
    if subprocess.run(["which", "pkg-config"], capture_output=True).returncode != 0:
      self.skipTest("pkg-config is not installed")
    path = os.path.join(self.lib, "pkgconfig")
    for name, more in (("pc_shared", ()), ("pc_static", ("--static",))):
      with self.subTest(name):
        flags = run("pkg-config", "--cflags", "--libs", *more, "arenite",
                    PKG_CONFIG_PATH=path).split()
        # --static lists an archive's dependencies; a linker switch selects which library -l takes.
        extra = ["-Wl,-Bstatic", "-larenite", "-Wl,-Bdynamic"] if more else []
        flags = [f for f in flags if not (more and f == "-larenite")]
        head = [f for f in flags if f.startswith(("-I", "-L"))]
        tail = [f for f in flags if not f.startswith(("-I", "-L"))]
        run(options.cc, self.story, *head, *extra, *tail, "-o", self.path(name))
        self.tells_the_story(self.path(name))

  def test_subdirectory(self):
    # As in an app's debug build: compiles the whole library again, without optimisation and with
    # assertions.
    build = self.build("subdirectory", "subdirectory", f"-DARENITE={options.source}",
                       f"-DARENITE_DEPS_BUILD={options.build}", "-DARENITE_VULKAN=OFF",
                       "-DARENITE_SIMD=native", "-DARENITE_UNITY_BUILD=ALL",
                       "-DCMAKE_CXX_FLAGS_DEBUG=-O0",  # without -g: what takes time is to compile
                       build_type="Debug")
    self.tells_the_story(os.path.join(build, "story"))

  def test_program_compiled_with_the_old_header(self):
    old = os.path.join(options.source, "tests/abi/v0_1")
    run(options.cc, "-std=c11", "-I", old, self.story, f"-L{self.lib}", "-larenite", "-o",
        self.path("old_story"))
    self.tells_the_story(self.path("old_story"))

  def test_programs_that_use_the_standard_library(self):
    # The archive has private copies of the standard library's inline functions, for any link order
    # and any compiler of the other objects.
    compilers = {"gcc": (options.cxx, "-O2")}
    if options.clangxx:
      compilers["clang"] = (options.clangxx, "-O0")
    folder = os.path.join(options.source, "tests/package/standard_library")
    for name, (cxx, level) in compilers.items():
      objects = {}
      for source in ("program", "other"):
        objects[source] = self.path(f"{name}_{source}.o")
        run(cxx, "-std=c++20", level, "-c", os.path.join(folder, source + ".cc"), "-o",
            objects[source])
      story = self.path(f"{name}_story.o")
      run(cxx, "-x", "c", "-Dmain=TellStory", f"-I{self.prefix}/include", "-c", self.story, "-o",
          story)
      other = self.path(f"lib{name}_other.a")
      run(options.ar, "rcs", other, objects["other"])
      archive = os.path.join(self.lib, "libarenite.a")
      for link, library, flags in (("shared", os.path.join(self.lib, "libarenite.so"), ()),
                                   ("archive", archive, ()), ("static", archive, ("-static",))):
        for order, libraries in (("behind", (library, other)), ("before", (other, library))):
          with self.subTest(compiler=name, link=link, other=order):
            program = self.path(f"{name}_{link}_{order}")
            run(cxx, *flags, objects["program"], story, *libraries, "-pthread", "-o", program)
            self.tells_the_story(program)

  def test_symbols_of_the_shared_library(self):
    library = os.path.join(self.lib, "libarenite.so")
    listed = run(options.nm, "-D", "--defined-only", library).split("\n")
    names = {line.split()[-1] for line in listed if line.strip()}
    self.assertEqual(names, declared_functions())

  def test_symbols_of_the_archive(self):
    listed = run(options.nm, "-g", "--defined-only", os.path.join(self.lib, "libarenite.a"))
    names = {line.split()[-1] for line in listed.split("\n") if len(line.split()) == 3}
    self.assertEqual(names, declared_functions())

  def test_shared_library_for_pages_of_16_kib(self):
    library = os.path.join(self.lib, "libarenite.so")
    loads = [line.split() for line in run(options.readelf, "-lW", library).split("\n")
             if line.strip().startswith("LOAD")]
    self.assertGreater(len(loads), 1)
    for load in loads:
      self.assertEqual(int(load[-1], 16) % 16384, 0, load)
    self.assertRegex(run(options.readelf, "-dW", library), r"SONAME.*\[libarenite\.so\.0\]")


if __name__ == "__main__":
  parser = argparse.ArgumentParser()
  for name in ("source", "build", "cc", "cxx", "ar", "nm", "readelf"):
    parser.add_argument("--" + name, required=True)
  parser.add_argument("--clangxx", default="", help="another compiler for programs")
  options, rest = parser.parse_known_args()
  unittest.main(argv=[sys.argv[0]] + rest)
