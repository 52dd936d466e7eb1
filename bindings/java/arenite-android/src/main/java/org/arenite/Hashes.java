// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/** ARN_HASHES_... of arenite.h. */
public final class Hashes {
  public static final int INDEX = 0;
  public static final int ALL = 1;
  public static final int ON_USE = 2;

  private Hashes() {}
}
