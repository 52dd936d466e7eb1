// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/** Where a bundle's bytes are while it is open. */
public final class Residency {
  public static final int MAPPED = 0;
  public static final int COPIED = 1;
  public static final int LOCKED = 2;
  public static final int HUGE = 3;

  private Residency() {}
}
