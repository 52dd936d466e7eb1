// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/** ARN_ROPE_... of arenite.h. */
public enum RopeScaling {
  AS_TRAINED(0),
  LINEAR(1),
  YARN(2);

  /** Number in arenite.h. */
  public final int number;

  RopeScaling(int number) {
    this.number = number;
  }

  /** Returns the value of a number, or null if there is none. Also called by native code. */
  static RopeScaling of(int number) {
    for (RopeScaling value : values()) {
      if (value.number == number) {
        return value;
      }
    }
    return null;
  }
}
