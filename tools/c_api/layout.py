"""Generates a C program that prints, as JSON, the compiler's view of the headers: sizes and offsets
of structs, the bytes of their INIT macros, the values of enums.
"""

import headers

HEAD = r'''/* Written by tools/c_api/generate.py. */
#include <arenite/arenite.h>
#include <stdio.h>

static void bytes(const char* name, const void* data, size_t n) {
  const unsigned char* at = data;
  printf("  \"%s\": \"", name);
  for (size_t i = 0; i < n; ++i) printf("%02x", at[i]);
  printf("\",\n");
}

static void structure(const char* name, size_t size) {
  printf("  \"%s\": {\"\": [0, %zu]", name, size);
}

static void field(const char* name, size_t offset, size_t size) {
  printf(", \"%s\": [%zu, %zu]", name, offset, size);
}

'''


def make():
  found = headers.declarations()
  inits = [d.name for d in found if d.kind == "init"]
  text = HEAD
  for d in found:
    if d.kind == "init":
      macro = d.text.split()[1]
      text += f"static const {d.name} k_{d.name} = {macro};\n"
  text += '\nint main(void) {\n  printf("{\\"structs\\": {\\n");\n'
  for d in found:
    if d.kind == "struct":
      text += f'  structure("{d.name}", sizeof({d.name}));\n'
      for v in d.variables:
        text += (f'  field("{v.name}", offsetof({d.name}, {v.name}),'
                 f" sizeof((({d.name}*)0)->{v.name}));\n")
      text += '  printf("},\\n");\n'
  text += '  printf("  \\"\\": {}}, \\"initial\\": {\\n");\n'
  for name in inits:
    text += f'  bytes("{name}", &k_{name}, sizeof k_{name});\n'
  text += '  printf("  \\"\\": \\"\\"}, \\"constants\\": {\\n");\n'
  for name in headers.constants(found):
    text += f'  printf("  \\"{name}\\": %lld,\\n", (long long){name});\n'
  return text + '  printf("  \\"\\": 0}}\\n");\n  return 0;\n}\n'
