// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/** Which hashes of a saved state are checked. */
public enum Verify {
  DEFAULT(0),
  ALL(1),
  TABLES(2);

  /** Number in arenite.h. */
  public final int number;

  Verify(int number) {
    this.number = number;
  }

  /** Returns the value of a number, or null if there is none. Also called by native code. */
  static Verify of(int number) {
    for (Verify value : values()) {
      if (value.number == number) {
        return value;
      }
    }
    return null;
  }
}
