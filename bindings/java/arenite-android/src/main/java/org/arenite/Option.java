// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/** ARN_OPTION_... of arenite.h. */
public enum Option {
  FLOAT(0),
  UINT32(1),
  UINT64(2),
  INT32(3),
  IDS(4),
  FLOATS(5);

  /** Number in arenite.h. */
  public final int number;

  Option(int number) {
    this.number = number;
  }

  /** Returns the value of a number, or null if there is none. Also called by native code. */
  static Option of(int number) {
    for (Option value : values()) {
      if (value.number == number) {
        return value;
      }
    }
    return null;
  }
}
