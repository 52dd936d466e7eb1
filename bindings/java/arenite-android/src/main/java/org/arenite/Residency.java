// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/** Where a bundle's bytes are while it is open. */
public enum Residency {
  MAPPED(0),
  COPIED(1),
  LOCKED(2),
  HUGE(3);

  /** Number in arenite.h. */
  public final int number;

  Residency(int number) {
    this.number = number;
  }

  /** Returns the value of a number, or null if there is none. Also called by native code. */
  static Residency of(int number) {
    for (Residency value : values()) {
      if (value.number == number) {
        return value;
      }
    }
    return null;
  }
}
