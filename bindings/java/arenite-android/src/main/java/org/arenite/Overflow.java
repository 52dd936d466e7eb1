// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/** Behaviour when the context is full. */
public final class Overflow {
  public static final int STOP = 0;
  public static final int ERROR = 1;
  public static final int SHIFT = 2;

  private Overflow() {}
}
