"""Tests that each lint finds its problem and accepts correct code."""

import pathlib
import shutil
import tempfile
import unittest

import docs
import forbidden
import format as format_lint
import layering
import model_names
import shape
import simd_targets
import source_tree
import static_state
import vocabulary

LINT_FOLDER = pathlib.Path(__file__).parent


class LintTest(unittest.TestCase):

  def setUp(self):
    self.root = pathlib.Path(tempfile.mkdtemp())
    self.addCleanup(shutil.rmtree, self.root)

  def problems(self, lint, path, text):
    """Returns the problems of the lint in a tree with only this file."""
    file = self.root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    found = lint.check(self.root)
    file.unlink()
    return found

  def assert_finds(self, lint, path, text, what):
    found = self.problems(lint, path, text)
    self.assertEqual(len(found), 1, f"{path}: {text!r} gave {found}")
    self.assertIn(what, found[0])

  def assert_clean(self, lint, path, text):
    self.assertEqual(self.problems(lint, path, text), [], f"{path}: {text!r}")


class Layering(LintTest):

  def test_finds_includes_that_point_up(self):
    for path, header in (
        ("platform/base/a.h", "kernels/contract/ops.h"),
        ("platform/base/a.h", "platform/os/pages.h"),
        ("kernels/contract/ops.h", "kernels/cpu/gemm.h"),
        ("kernels/reference/a.cc", "kernels/cpu/gemm.h"),
        ("kernels/cpu/a.cc", "runtime/model/model.h"),
        ("runtime/bundle/a.cc", "runtime/model/model.h"),
        ("runtime/session/a.cc", "kernels/cpu/backend.h"),
        ("runtime/session/a.cc", "runtime/api/handles.h"),
        ("converter/write/a.cc", "runtime/session/session.h"),
        ("converter/write/a.cc", "kernels/cpu/gemm.h"),
        ("converter/family/a.cc", "converter/write/index.h"),
        ("kernels/vulkan/device/a.cc", "kernels/vulkan/lower/lower.h"),
        ("tools/run.cc", "platform/base/status.h"),
        ("runtime/session/a.cc", "sibling.h"),
    ):
      with self.subTest(path=path, header=header):
        self.assert_finds(layering, path, f'#include "{header}"\n', header)

  def test_finds_parts_that_know_the_whole(self):
    for path, header in (
        ("runtime/session/runner.cc", "runtime/session/session.h"),
        ("runtime/session/runner.h", "runtime/session/session.h"),
        ("runtime/session/session.cc", "runtime/session/saved_pages.h"),
    ):
      with self.subTest(path=path, header=header):
        self.assert_finds(layering, path, f'#include "{header}"\n', "only")
    self.assert_clean(
        layering, "runtime/session/session.cc", '#include "runtime/session/session.h"\n')
    self.assert_clean(layering, "runtime/api/a.cc", '#include "runtime/session/session.h"\n')

  def test_finds_third_party_headers_outside_their_owners(self):
    for path, header in (
        ("runtime/session/a.cc", "<xnnpack.h>"),
        ("kernels/reference/a.cc", '"hwy/highway.h"'),
        ("runtime/session/a.cc", "<sys/mman.h>"),
        ("runtime/text/a.cc", "<nlohmann/json.hpp>"),
    ):
      with self.subTest(path=path, header=header):
        self.assert_finds(layering, path, f"#include {header}\n", header[1:-1])

  def test_finds_names_of_backends(self):
    named = "return FindBackend(BackendId::kVulkan);\n"
    self.assert_finds(layering, "runtime/session/a.cc", named, "BackendId::kVulkan")
    self.assert_clean(layering, "runtime/backends.cc", named)

  def test_leaves_alone_includes_that_point_down(self):
    for path, header in (
        ("platform/os/pages.h", '"platform/base/result.h"'),
        ("platform/os/pages_posix.cc", "<sys/mman.h>"),
        ("kernels/contract/program.h", '"kernels/contract/weight.h"'),
        ("kernels/cpu/a.cc", '"kernels/pack/pack.h"'),
        ("kernels/cpu/a.cc", "<xnnpack.h>"),
        ("runtime/text/a.cc", '"utf8proc.h"'),
        ("runtime/session/a.cc", '"runtime/model/model.h"'),
        ("runtime/backends.cc", '"kernels/cpu/cpu_backend.h"'),
        ("runtime/api/a.cc", '"arenite/arenite.h"'),
        ("converter/write/a.cc", '"runtime/bundle/bundle_generated.h"'),
        ("tools/run.cc", "<vector>"),
    ):
      with self.subTest(path=path, header=header):
        self.assert_clean(layering, path, f"#include {header}\n")


class Shape(LintTest):

  def test_finds_long_files_and_long_lines(self):
    self.assert_finds(shape, "runtime/a.cc", "x\n" * 701, "more than 700 lines")
    self.assert_finds(shape, "toolchains/a.sh", "x" * 101 + "\n", "101 columns")

  def test_leaves_alone_what_fits(self):
    self.assert_clean(shape, "runtime/a.cc", ("x" * 100 + "\n") * 400)


class ModelNames(LintTest):

  def test_finds_names(self):
    for text in ("struct LlamaConfig;", "// as in Qwen2", "kGpt2Pattern", "phi3", "kGemma"):
      with self.subTest(text=text):
        self.assert_finds(model_names, "runtime/model/a.h", text + "\n", "names a model")

  def test_leaves_alone_the_converter_and_other_words(self):
    self.assert_clean(model_names, "converter/family/families.cc", "llama\n")
    self.assert_clean(model_names, "kernels/rope.cc", "struct GemmArgs; float phi; // delphi2\n")


class Vocabulary(LintTest):

  def test_finds_retired_words_and_noun_clauses(self):
    for text, what in (("int a;  // sealed pages\n", "'sealed' is retired"),
                       ("// Computed anew.\n", "'anew' is retired"),
                       ("// What a run keeps.\n", "begin a comment with what the code does"),
                       ("int a;\n# Of several, the first.\n", "begin a comment")):
      self.assert_finds(vocabulary, "runtime/a.cc", text, what)
    self.assert_finds(vocabulary, "docs/a.md", "A sealed page.\n", "'sealed' is retired")

  def test_leaves_alone_later_lines_and_other_words(self):
    self.assert_clean(vocabulary, "runtime/a.cc", "// Returns the first\n// Of those.\n")
    self.assert_clean(vocabulary, "docs/a.md", "What a page is.\n")
    self.assert_clean(vocabulary, "docs/experiments.md", "A sealed page.\n")


class Forbidden(LintTest):

  def test_finds_constructs(self):
    for rule, text in (
        ("exceptions", "throw 1;"),
        ("exceptions", "try {"),
        ("exit", "std::abort();"),
        ("exit", "exit(1);"),
        ("heap", "std::vector<int> v;"),
        ("heap", "std::string s;"),
        ("heap", "auto* p = new Session;"),
        ("heap", "void* p = malloc(4);"),
        ("heap", "delete p;"),
        ("print", "fprintf(stderr, message);"),
        ("environment", 'const char* v = getenv("V");'),
    ):
      with self.subTest(text=text):
        self.assert_finds(forbidden, "runtime/a.cc", text + "\n", rule)

  def test_leaves_alone_what_only_looks_like_it(self):
    for text in (
        "// throw nothing, std::vector nowhere",
        "/* new\n malloc(3) */",
        'const char* s = "throw new exit(1)";',
        "new (p) Session();",
        "#include <new>",
        "Session(const Session&) = delete;",
        "std::string_view s;",
        "snprintf(buffer, n, format);",
        "pages.free(1); arena->free(2);",
        "auto n = 1'000'000; auto m = new_count;",
        "void* p = malloc(4);  // lint:allow heap: the allocator's own door",
    ):
      with self.subTest(text=text):
        self.assert_clean(forbidden, "runtime/a.cc", text + "\n")

  def test_the_host_may_use_the_heap(self):
    self.assert_clean(forbidden, "converter/a.cc", "std::vector<int> v; throw 1;\n")

  def test_finds_unfinished_work(self):
    for text in ("// TODO: later", "# FIXME", "a stub", "one page for now", "not implemented"):
      with self.subTest(text=text):
        self.assert_finds(forbidden, "converter/a.py", text + "\n", "unfinished")
    self.assert_clean(forbidden, "converter/a.py", "mkstemp('XXXXXX')\n")


class SimdTargets(LintTest):

  def test_finds_a_second_set(self):
    self.assert_finds(simd_targets, "kernels/cpu/simd/targets_dot.h",
                      "#define HWY_DISABLED_TARGETS HWY_SSE4\n", "HWY_DISABLED_TARGETS")
    self.assert_finds(simd_targets, "kernels/cpu/CMakeLists.txt",
                      "add_compile_options(-DHWY_COMPILE_ONLY_STATIC)\n", "HWY_COMPILE_ONLY_STATIC")

  def test_finds_headers_before_the_set(self):
    self.assert_finds(simd_targets, "kernels/cpu/simd/a.cc",
                      '#include <hwy/highway.h>\n#include "kernels/cpu/simd/targets.h"\n',
                      "hwy/highway.h")

  def test_leaves_alone_the_set_and_its_users(self):
    self.assert_clean(simd_targets, "kernels/cpu/simd/targets.h",
                      "#define HWY_DISABLED_TARGETS HWY_SSSE3\n")
    self.assert_clean(simd_targets, "kernels/cpu/simd/a.cc",
                      '#include "kernels/cpu/simd/targets.h"\n#include <hwy/highway.h>\n'
                      "#define HWY_TARGET_INCLUDE 1\n")


class Docs(LintTest):

  def setUp(self):
    super().setUp()
    self.write("kernels/cpu/steps.cc", "int a;\n")
    self.write("docs/other.md",
               "# Other\n\n## The [same](other.md) `result`\n\n## The same result\n")

  def write(self, path, text):
    file = self.root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)

  def test_finds_names_that_lead_nowhere(self):
    for text, what in (
        ("`kernels/cpu/gone.cc`", "kernels/cpu/gone.cc"),
        ("`kernels/cpu/{steps,gone}.cc`", "kernels/cpu/gone.cc"),
        ("`bash tests/gone.sh --all`", "tests/gone.sh"),
        ("see `gone.cc`", "gone.cc"),
        ("see `gpu/steps.cc`", "gpu/steps.cc"),
        ("`kernels/gone/*.h`", "kernels/gone/*.h"),
        ("[a](gone.md)", "gone.md"),
        ("[a](other.md#gone)", "no heading"),
        ("[a](#gone)", "no heading"),
        ("| [a](gone.md) |", "gone.md"),
    ):
      with self.subTest(text=text):
        self.assert_finds(docs, "docs/page.md", text + "\n", what)
    self.assert_finds(docs, "README.md", "`kernels/gone.h`\n", "kernels/gone.h")
    self.assert_finds(docs, "docs/deep/page.md", "[a](other.md)\n", "other.md")

  def test_finds_long_lines(self):
    self.assert_finds(docs, "docs/page.md", "a " * 50 + "a\n", "101 columns")

  def test_leaves_alone_what_is_there_and_what_is_no_path(self):
    for text in (
        "`kernels/cpu/steps.cc`, `steps.cc`, `cpu/steps.cc`, `kernels/*/steps.cc`, `kernels/cpu/`",
        "[a](other.md#the-same-result), [b](other.md#the-same-result-1)",
        "[a](../kernels/cpu/steps.cc)",
        "[a](https://example.org/gone.md), `[a](gone.md)`",
        "`build/release/bin/tests/gone.cc`, `xnnpack/gemm.h`, `kernels/<name>/a.h`, `config.json`",
        "```\n" + "a " * 60 + "`kernels/gone.h`\n```",
        "| " + "a " * 60 + "|",
        "<!-- table: begin -->\n" + "a " * 60 + "\n<!-- table: end -->",
    ):
      with self.subTest(text=text):
        self.assert_clean(docs, "docs/page.md", text + "\n")


class Format(LintTest):

  def setUp(self):
    super().setUp()
    if shutil.which(format_lint.CLANG_FORMAT) is None:
      self.skipTest(f"{format_lint.CLANG_FORMAT} is not installed")
    shutil.copy(LINT_FOLDER.parents[1] / ".clang-format", self.root)

  def test_finds_and_leaves_alone(self):
    self.assert_finds(format_lint, "runtime/a.cc", "int  a ;\n", "formatted differently")
    self.assert_clean(format_lint, "runtime/a.cc", "int a;\n")


class StaticState(unittest.TestCase):

  def problems(self, *symbols):
    table = ("a.o:     file format elf64-x86-64",) + symbols
    return static_state.problems_of("lib.a", "\n".join(table))

  def test_finds_constructors_and_variables(self):
    for symbol in (
        "0000000000000000 l    d  .init_array\t0000000000000000 .init_array",
        "0000000000000000 l     O .bss\t0000000000000004 _ZL7counter",
        "0000000000000000 g     O .data.counter\t0000000000000004 .hidden counter",
        "0000000000000000 l     O .tbss\t0000000000000004 _ZL7counter",
    ):
      with self.subTest(symbol=symbol):
        self.assertEqual(len(self.problems(symbol)), 1)

  def test_leaves_alone_constants_and_functions(self):
    self.assertEqual(self.problems(
        "0000000000000000 l     O .data.rel.ro.table\t0000000000000010 _ZL5table",
        "0000000000000000 l     O .rodata\t0000000000000010 _ZL5names",
        "0000000000000000 l    d  .bss\t0000000000000000 .bss",
        "0000000000000000 g     F .text\t0000000000000010 main"), [])


class BlankedCode(unittest.TestCase):

  def test_keeps_lines_and_code(self):
    text = 'a /* x\ny */ "s\\"t" R"(raw\n")" \'\\\'\' 1\'000 b // c\n'
    blank = source_tree.blank_comments_and_strings(text)
    self.assertEqual(blank.count("\n"), text.count("\n"))
    for gone in "xystc":
      self.assertNotIn(gone, blank)
    self.assertIn("1'000 b", blank)


if __name__ == "__main__":
  unittest.main()
