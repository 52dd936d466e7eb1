// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/** ARN_HASHES_... of arenite.h. */
public enum Hashes {
  INDEX(0),
  ALL(1),
  ON_USE(2);

  /** Number in arenite.h. */
  public final int number;

  Hashes(int number) {
    this.number = number;
  }

  /** Returns the value of a number, or null if there is none. Also called by native code. */
  static Hashes of(int number) {
    for (Hashes value : values()) {
      if (value.number == number) {
        return value;
      }
    }
    return null;
  }
}
