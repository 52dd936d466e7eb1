"""Tests the Android scripts against a small fake bionic and NDK."""

import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.abspath(sys.argv.pop(1))
CC, NM = sys.argv.pop(1), sys.argv.pop(1)
sys.path.insert(0, os.path.join(ROOT, "toolchains"))
import android_symbols  # noqa: E402

LIBC = """
LIBC { # introduced-arm64=21 introduced-arm=9
  global:
    __errno;
    open; # introduced=3
    aligned_alloc; # introduced=28
    stderr; # var introduced=23
    old_arm_thing; # arm
    vendor_thing; # llndk-only
    codename; # introduced=O
    # a comment; with a semicolon
  local:
    hidden;
};
LIBC_O { # introduced=26
  global:
    newer;
} LIBC;
LIBC_PRIVATE { # arm
  global:
    private_thing;
} LIBC_O;
LIBC_PLATFORM { # platform-only
  global:
    platform_thing;
};
"""


class SymbolsTest(unittest.TestCase):
  def test_exported_depends_on_level_and_architecture(self):
    at_24 = {"__errno", "open", "stderr"}
    self.assertEqual(android_symbols.exported(LIBC, 24, "arm64"), at_24)
    self.assertEqual(android_symbols.exported(LIBC, 24, "arm"), at_24 | {"old_arm_thing"})
    self.assertEqual(android_symbols.exported(LIBC, 28, "arm64"),
                     at_24 | {"aligned_alloc", "codename", "newer"})
    self.assertEqual(android_symbols.exported(LIBC, 20, "arm64"), set())
    self.assertEqual(android_symbols.exported(LIBC, 22, "arm64"), {"__errno", "open"})

  def test_missing_leaves_out_what_the_toolchain_brings(self):
    needed = {"open", "aligned_alloc", "ours", "_ZNSt6__ndk15mutex4lockEv", "__aeabi_uldivmod",
              "__udivti3", "_ZdlPv", "__cxa_guard_acquire", "__fancy_glibc", "getrandom",
              "__android_log_vprint"}
    self.assertEqual(android_symbols.missing(needed, {"ours"}, {"open"}),
                     ["__fancy_glibc", "aligned_alloc", "getrandom"])

  def test_archives_are_audited(self):
    with tempfile.TemporaryDirectory() as folder:
      for path, text in zip(android_symbols.MAPS, (LIBC, "LIBC {\n};", "LIBC {\n};")):
        os.makedirs(os.path.dirname(os.path.join(folder, path)))
        with open(os.path.join(folder, path), "w", encoding="utf-8") as f:
          f.write(text)
      source = os.path.join(folder, "a.c")
      with open(source, "w", encoding="utf-8") as f:
        f.write("int open(const char*, int); int newer(void); int ours(void);\n"
                "int ours(void) { return open(\"\", 0) + newer(); }\n"
                "int theirs(void) { return ours(); }\n")
      subprocess.run([CC, "-fno-stack-protector", "-c", source, "-o", source + ".o"], check=True)
      for api, code, said in ((24, 1, "newer: not in Android's API 24 for arm64"),
                              (26, 0, "all in Android's API 26")):
        done = subprocess.run(
            [sys.executable, os.path.join(ROOT, "toolchains/android_symbols.py"), "--bionic",
             folder, "--api", str(api), "--arch", "arm64", "--nm", NM, source + ".o"],
            capture_output=True, text=True)
        with self.subTest(api):
          self.assertEqual((done.returncode, said in done.stdout), (code, True), done)
          self.assertNotIn("open", done.stdout.replace("open:", "open"))


def run(*command, **environment):
  clean = {k: v for k, v in os.environ.items() if k not in ("ANDROID_NDK_HOME", "BIONIC_DIR")}
  return subprocess.run(command, capture_output=True, text=True, env={**clean, **environment})


class CheckScriptTest(unittest.TestCase):
  script = os.path.join(ROOT, "toolchains/android_check.sh")

  def test_explains_itself_without_either(self):
    done = run(self.script)
    self.assertEqual(done.returncode, 77)
    self.assertIn("nothing was checked", done.stderr)
    self.assertIn("BIONIC_DIR", done.stderr)

  def test_says_what_bionic_lacks(self):
    with tempfile.TemporaryDirectory() as folder:
      done = run(self.script, BIONIC_DIR=folder)
    self.assertEqual(done.returncode, 1)
    self.assertIn("libc/include/stdio.h is not there", done.stderr)

  def test_says_that_liblog_is_missing(self):
    # The header is in neither bionic nor libc++, but cpuinfo includes it.
    with tempfile.TemporaryDirectory() as folder:
      for path in ("bionic/libc/include/stdio.h", "cxx/vector",
                   *("bionic/" + path for path in android_symbols.MAPS)):
        os.makedirs(os.path.dirname(os.path.join(folder, path)), exist_ok=True)
        with open(os.path.join(folder, path), "w", encoding="utf-8"):
          pass
      done = run(self.script, BIONIC_DIR=os.path.join(folder, "bionic"),
                 ARN_LIBCXX=os.path.join(folder, "cxx"), ARN_LIBLOG=folder)
    self.assertEqual(done.returncode, 1)
    self.assertIn("android/log.h is not in", done.stderr)

  def test_refuses_arguments(self):
    self.assertEqual(run(self.script, "--fast").returncode, 2)


class ToolchainFileTest(unittest.TestCase):
  def test_ndk_is_told_what_arenite_needs(self):
    with tempfile.TemporaryDirectory() as folder:
      os.makedirs(os.path.join(folder, "build/cmake"))
      with open(os.path.join(folder, "build/cmake/android.toolchain.cmake"), "w",
                encoding="utf-8") as f:
        f.write('message("${ANDROID_ABI} ${ANDROID_PLATFORM} ${ANDROID_STL} '
                '${ANDROID_SUPPORT_FLEXIBLE_PAGE_SIZES}")\n')
      done = run("cmake", "-DANDROID_ABI=arm64-v8a", "-P",
                 os.path.join(ROOT, "toolchains/android.cmake"), ANDROID_NDK_HOME=folder)
    self.assertEqual(done.returncode, 0, done)
    self.assertIn("arm64-v8a android-24 c++_static ON", done.stderr)

  def test_says_that_there_is_no_ndk(self):
    done = run("cmake", "-P", os.path.join(ROOT, "toolchains/android.cmake"))
    self.assertNotEqual(done.returncode, 0)
    self.assertIn("ANDROID_NDK_HOME", done.stderr)


class PackageTest(unittest.TestCase):
  """toolchains/android_package.sh with a fake SDK and a fake Gradle."""

  def setUp(self):
    temporary = tempfile.TemporaryDirectory()
    self.addCleanup(temporary.cleanup)
    self.root = temporary.name
    for folder in ("toolchains", "bindings/java", "sdk/platforms", "bin"):
      os.makedirs(os.path.join(self.root, folder))
    with open(os.path.join(ROOT, "toolchains/android_package.sh")) as file:
      self.write("toolchains/android_package.sh", file.read())

  def write(self, path, text):
    path = os.path.join(self.root, path)
    with open(path, "w") as file:
      file.write(text)
    os.chmod(path, 0o755)

  def run_script(self, *arguments, **environment):
    path = f"{self.root}/bin:/usr/bin:/bin"
    return subprocess.run([f"{self.root}/toolchains/android_package.sh", *arguments],
                          capture_output=True, text=True, env={"PATH": path, **environment})

  def test_says_what_is_missing(self):
    self.assertIn("ANDROID_HOME is not set", self.run_script().stderr)
    run = self.run_script(ANDROID_HOME=f"{self.root}/bin")
    self.assertEqual(run.returncode, 1)
    self.assertIn("it has no folder platforms", run.stderr)

  def test_writes_the_wrapper_once_and_publishes_by_it(self):
    wrapper = ("#!/bin/sh\necho gradlew \"$@\"; mkdir -p build/maven/org\n"
               "touch build/maven/org/arenite.aar\n")
    self.write("bin/gradle", f"#!/bin/sh\necho gradle \"$@\"\n"
               f"cat > gradlew <<'END'\n{wrapper}END\nchmod +x gradlew\n")
    sdk = f"{self.root}/sdk"
    publish = "gradlew --console=plain -Pa=b :arenite-android:publish\n"
    first = self.run_script("-Pa=b", ANDROID_HOME=sdk)
    self.assertEqual(first.stdout, "gradle --console=plain wrapper\n" + publish +
                     "build/maven/org/arenite.aar\n", first.stderr)
    self.assertEqual(self.run_script("-Pa=b", ANDROID_SDK_ROOT=sdk).stdout,
                     publish + "build/maven/org/arenite.aar\n")


if __name__ == "__main__":
  unittest.main()
