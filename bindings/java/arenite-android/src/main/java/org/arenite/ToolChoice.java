// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/** ARN_TOOL_CHOICE_... of arenite.h. */
public enum ToolChoice {
  AUTO(0),
  REQUIRED(1),
  NONE(2),
  NAMED(3);

  /** Number in arenite.h. */
  public final int number;

  ToolChoice(int number) {
    this.number = number;
  }

  /** Returns the value of a number, or null if there is none. Also called by native code. */
  static ToolChoice of(int number) {
    for (ToolChoice value : values()) {
      if (value.number == number) {
        return value;
      }
    }
    return null;
  }
}
