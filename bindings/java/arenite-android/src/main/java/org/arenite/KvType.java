// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/** Element types of keys and values. */
public enum KvType {
  F32(0),
  F16(1),
  INT8(2),
  INT4(3),
  INT2(4),
  AS_KEYS(255);

  /** Number in arenite.h. */
  public final int number;

  KvType(int number) {
    this.number = number;
  }

  /** Returns the value of a number, or null if there is none. Also called by native code. */
  static KvType of(int number) {
    for (KvType value : values()) {
      if (value.number == number) {
        return value;
      }
    }
    return null;
  }
}
