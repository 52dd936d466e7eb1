// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/** ARN_CPU_... of arenite.h. */
public final class Cpu {
  public static final int WORDS = 16;

  private Cpu() {}
}
