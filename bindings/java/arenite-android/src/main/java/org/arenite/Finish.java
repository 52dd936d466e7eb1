// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/** Why a generation ended. */
public final class Finish {
  public static final int NONE = 0;
  public static final int EOS = 1;
  public static final int STOP = 2;
  public static final int LENGTH = 3;
  public static final int CONTEXT = 4;
  public static final int CALLBACK = 5;
  public static final int CANCELLED = 6;

  private Finish() {}
}
