// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/** Which hashes of a saved state are checked. */
public final class Verify {
  public static final int DEFAULT = 0;
  public static final int ALL = 1;
  public static final int TABLES = 2;

  private Verify() {}
}
