// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/** Element types of keys and values. */
public final class KvType {
  public static final int F32 = 0;
  public static final int F16 = 1;
  public static final int INT8 = 2;
  public static final int INT4 = 3;
  public static final int INT2 = 4;
  public static final int AS_KEYS = 255;

  private KvType() {}
}
