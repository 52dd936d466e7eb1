// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/** Backends. */
public final class Backend {
  public static final int CPU = 0;
  public static final int REFERENCE = 1;
  public static final int VULKAN = 2;
  public static final int AUTO = 3;
  public static final int VULKAN_CPU = 4;

  private Backend() {}
}
