// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/** Why a generation ended. */
public enum Finish {
  NONE(0),
  EOS(1),
  STOP(2),
  LENGTH(3),
  CONTEXT(4),
  CALLBACK(5),
  CANCELLED(6);

  /** Number in arenite.h. */
  public final int number;

  Finish(int number) {
    this.number = number;
  }

  /** Returns the value of a number, or null if there is none. Also called by native code. */
  static Finish of(int number) {
    for (Finish value : values()) {
      if (value.number == number) {
        return value;
      }
    }
    return null;
  }
}
