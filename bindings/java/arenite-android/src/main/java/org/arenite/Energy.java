// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/** ARN_ENERGY_... of arenite.h. */
public enum Energy {
  NONE(0),
  RAPL(1),
  BOARD_COUNTER(2),
  BOARD_POWER(3),
  BATTERY_POWER(4),
  BATTERY_LEFT(5);

  /** Number in arenite.h. */
  public final int number;

  Energy(int number) {
    this.number = number;
  }

  /** Returns the value of a number, or null if there is none. Also called by native code. */
  static Energy of(int number) {
    for (Energy value : values()) {
      if (value.number == number) {
        return value;
      }
    }
    return null;
  }
}
