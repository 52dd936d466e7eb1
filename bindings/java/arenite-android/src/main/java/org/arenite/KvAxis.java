// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/** ARN_KV_AXIS_... of arenite.h. */
public enum KvAxis {
  DEFAULT(0),
  CHANNEL(1),
  TOKEN(2);

  /** Number in arenite.h. */
  public final int number;

  KvAxis(int number) {
    this.number = number;
  }

  /** Returns the value of a number, or null if there is none. Also called by native code. */
  static KvAxis of(int number) {
    for (KvAxis value : values()) {
      if (value.number == number) {
        return value;
      }
    }
    return null;
  }
}
