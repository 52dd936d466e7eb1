// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/** When a beam search is done. */
public final class EarlyStopping {
  public static final int FALSE = 0;
  public static final int TRUE = 1;
  public static final int NEVER = 2;

  private EarlyStopping() {}
}
