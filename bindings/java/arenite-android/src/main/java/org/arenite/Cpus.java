// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/** ARN_CPUS_... of arenite.h. */
public final class Cpus {
  public static final int AUTO = 0;
  public static final int PERFORMANCE = 1;
  public static final int ALL = 2;
  public static final int MASK = 3;

  private Cpus() {}
}
