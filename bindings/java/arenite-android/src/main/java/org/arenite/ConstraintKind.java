// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/** ARN_CONSTRAINT_... of arenite.h. */
public enum ConstraintKind {
  JSON_SCHEMA(0),
  REGEX(1),
  GRAMMAR(2),
  CHOICES(3),
  TOOL_CALLS(4);

  /** Number in arenite.h. */
  public final int number;

  ConstraintKind(int number) {
    this.number = number;
  }

  /** Returns the value of a number, or null if there is none. Also called by native code. */
  static ConstraintKind of(int number) {
    for (ConstraintKind value : values()) {
      if (value.number == number) {
        return value;
      }
    }
    return null;
  }
}
