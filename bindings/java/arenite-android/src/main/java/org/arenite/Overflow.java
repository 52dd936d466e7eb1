// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/** Behaviour when the context is full. */
public enum Overflow {
  STOP(0),
  ERROR(1),
  SHIFT(2);

  /** Number in arenite.h. */
  public final int number;

  Overflow(int number) {
    this.number = number;
  }

  /** Returns the value of a number, or null if there is none. Also called by native code. */
  static Overflow of(int number) {
    for (Overflow value : values()) {
      if (value.number == number) {
        return value;
      }
    }
    return null;
  }
}
