"""Generates small Java classes for the structs and enums of the C API that Java programs use, and a
table of their fields for the JNI code. Names are those of C in Java's spelling: kv_type is kvType.
"""

import re
import textwrap

import headers
import views

JAVA = "bindings/java/arenite-android/src/main/java/org/arenite"
CPP = "bindings/java/arenite-android/src/main/cpp"

_ENUM_COMMENTS = {
    "Status": "Status of a call of the C API: AreniteException.status().",
    "KvType": "Element types of keys and values.",
    "Overflow": "Behaviour when the context is full.",
    "Speculate": "Where guesses of the next tokens come from.",
    "Backend": "Backends.", "Verify": "Which hashes of a saved state are checked.",
    "Residency": "Where a bundle's bytes are while it is open.",
    "Finish": "Why a generation ended.", "EarlyStopping": "When a beam search is done.",
}
# Kind of field: kind in the table, Java type.
_KINDS = {
    "bool": ("kBool", "boolean"), "u32": ("kInt", "int"), "i32": ("kSigned", "int"),
    "u64": ("kLong", "long"), "i64": ("kLong", "long"), "float": ("kFloat", "float"),
    "double": ("kDouble", "double"), "text": ("kText", "String"), "chars": ("kChars", "String"),
    "ids": ("kIds", "int[]"), "floats": ("kFloats", "float[]"), "cpus": ("kCpus", "int[]"),
}
_STRUCTS = {**views.STRUCTS, **views.SKILLS}
_NUMBERS_ONLY = ("Status",)  # AreniteException.status() may be one of a newer library
HEAD = "// Written by tools/c_api/generate.py from arenite.h: do not edit it.\n"


def _camel(name):
  first, *rest = name.split("_")
  return first + "".join(word.capitalize() for word in rest)


def _in_java(text):
  """Replaces the enum names in a comment by Java's."""
  for number, cls in views.NUMBERS.items():
    text = re.sub(rf"\b{number}\b", f"{cls}.{number[4:]}", text)
  enums = views.enums(headers.declarations())
  for e in sorted(enums, key=lambda e: -len(e.prefix)):
    text = re.sub(rf"\b{e.prefix}\.\.\.", e.name, text)
    text = re.sub(rf"\b{e.prefix}(?=[A-Z])", e.name + ".", text)
  return re.sub(r"\bNULL\b", "null", text)


def _javadoc(text, indent):
  text = _in_java(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
  lines = textwrap.wrap(text, 96 - len(indent))
  if len(lines) == 1 and len(lines[0]) < 90 - len(indent):
    return f"{indent}/** {lines[0]} */\n"
  return f"{indent}/**\n" + "".join(f"{indent} * {line}\n" for line in lines) + f"{indent} */\n"


def _enum_of(field):
  """Returns the Java enum of a field, or ""."""
  known = {e.name for e in views.enums(headers.declarations())}
  return field.enum if field.enum in known and field.enum not in _NUMBERS_ONLY else ""


def _value(field, constants):
  if _enum_of(field):
    enum = next(e for e in views.enums(headers.declarations()) if e.name == field.enum)
    number = constants[field.initial] if field.initial in constants else int(field.initial)
    return f"{enum.name}.{next(n for n, v in enum.values.items() if v == number)}"
  if field.kind in ("text", "ids", "floats", "chars", "cpus"):
    return "null"
  if field.kind == "bool":
    return "true" if int(field.initial) else "false"
  if field.kind in ("float", "double"):
    return f"{float(field.initial.removesuffix('f'))}" + ("f" if field.kind == "float" else "")
  return str(constants.get(field.initial, field.initial))


def _struct_class(struct, fields, constants):
  name, what, _ = _STRUCTS[struct]
  text = HEAD + "package org.arenite;\n\n"
  text += _javadoc(f"{what} The fields are those of {struct} in arenite.h.", "")
  text += f"public final class {name} {{\n"
  for number in (n for n, cls in views.NUMBERS.items() if cls == name):
    text += f"  public static final int {number[4:]} = {constants[number]};\n\n"
  for field in fields:
    kind = _enum_of(field) or _KINDS[field.kind][1]
    if field.comment:
      text += _javadoc(headers.without_comments(field.comment), "  ")
    value = _value(field, constants)
    default = {"boolean": "false", "int": "0", "long": "0", "float": "0.0f", "double": "0.0"}
    text += f"  public {kind} {_camel(field.name)}"
    text += ";\n" if value == default.get(kind, "null") else f" = {value};\n"
  return text + "}\n"


def _enum_class(enum):
  what = _ENUM_COMMENTS.get(enum.name, f"{enum.prefix}... of arenite.h.")
  text = HEAD + "package org.arenite;\n\n/** " + what + " */\n"
  if enum.name in _NUMBERS_ONLY:
    text += f"public final class {enum.name} {{\n"
    for constant, value in enum.values.items():
      text += f"  public static final int {constant} = {value};\n"
    return text + f"\n  private {enum.name}() {{}}\n}}\n"
  values = ",\n".join(f"  {constant}({value})" for constant, value in enum.values.items())
  return text + f"""public enum {enum.name} {{
{values};

  /** Number in arenite.h. */
  public final int number;

  {enum.name}(int number) {{
    this.number = number;
  }}

  /** Returns the value of a number, or null if there is none. Also called by native code. */
  static {enum.name} of(int number) {{
    for ({enum.name} value : values()) {{
      if (value.number == number) {{
        return value;
      }}
    }}
    return null;
  }}
}}
"""


def classes():
  """Maps paths in the source tree to the text of each class."""
  found = headers.declarations()
  constants = headers.constants(found)
  made = {f"{JAVA}/{e.name}.java": _enum_class(e) for e in views.enums(found)}
  for name, fields in views.structs(_STRUCTS):
    made[f"{JAVA}/{_STRUCTS[name][0]}.java"] = _struct_class(name, fields, constants)
  return made


def tables():
  """Maps paths in the source tree to the table of each class's fields and their offsets in C."""
  return {f"{CPP}/struct_fields.h": _table(views.STRUCTS),
          f"{CPP}/skill_fields.h": _table(views.SKILLS)}


def _table(chosen):
  text = HEAD + '#pragma once\n\n#include <arenite/arenite.h>\n\n'
  text += '#include "bindings/java/arenite-android/src/main/cpp/structs.h"\n\n'
  text += "namespace arn::jni {\n\n// clang-format off\n"
  for struct, fields in views.structs(chosen):
    text += f"inline constexpr Field k{chosen[struct][0]}Fields[] = {{\n"
    for field in fields:
      enum = _enum_of(field)
      kind = "kEnum" if enum else _KINDS[field.kind][0]
      count = f"offsetof({struct}, n_{field.name})" if kind in ("kIds", "kFloats") else "0"
      count += f', "Lorg/arenite/{enum};"' if enum else ""
      text += f'    {{"{_camel(field.name)}", FieldKind::{kind},\n'
      line = f"     offsetof({struct}, {field.name}), {count}}},\n"
      text += line if len(line) <= 101 else line.replace("), ", "),\n     ")
    text += "};\n"
  return text + "// clang-format on\n\n}  // namespace arn::jni\n"
