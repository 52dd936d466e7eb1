// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/** ARN_ENERGY_... of arenite.h. */
public final class Energy {
  public static final int NONE = 0;
  public static final int RAPL = 1;
  public static final int BOARD_COUNTER = 2;
  public static final int BOARD_POWER = 3;
  public static final int BATTERY_POWER = 4;
  public static final int BATTERY_LEFT = 5;

  private Energy() {}
}
