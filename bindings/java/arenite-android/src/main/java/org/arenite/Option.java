// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/** ARN_OPTION_... of arenite.h. */
public final class Option {
  public static final int FLOAT = 0;
  public static final int UINT32 = 1;
  public static final int UINT64 = 2;
  public static final int INT32 = 3;
  public static final int IDS = 4;
  public static final int FLOATS = 5;

  private Option() {}
}
