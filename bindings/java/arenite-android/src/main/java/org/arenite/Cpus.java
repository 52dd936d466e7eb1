// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/** ARN_CPUS_... of arenite.h. */
public enum Cpus {
  AUTO(0),
  PERFORMANCE(1),
  ALL(2),
  MASK(3);

  /** Number in arenite.h. */
  public final int number;

  Cpus(int number) {
    this.number = number;
  }

  /** Returns the value of a number, or null if there is none. Also called by native code. */
  static Cpus of(int number) {
    for (Cpus value : values()) {
      if (value.number == number) {
        return value;
      }
    }
    return null;
  }
}
