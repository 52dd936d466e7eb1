// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/** Status of a call of the C API: AreniteException.status(). */
public final class Status {
  public static final int OK = 0;
  public static final int INTERNAL = 1;
  public static final int BAD_STATE = 2;
  public static final int CANCELLED = 3;
  public static final int BAD_ARGUMENT = 16;
  public static final int UNSUPPORTED = 17;
  public static final int BAD_TOKEN = 18;
  public static final int BUFFER_TOO_SMALL = 19;
  public static final int TEMPLATE_ERROR = 20;
  public static final int CONTEXT_FULL = 32;
  public static final int OUT_OF_MEMORY = 33;
  public static final int NOT_FOUND = 34;
  public static final int IO = 35;
  public static final int DISK_FULL = 36;
  public static final int BAD_BUNDLE = 48;
  public static final int BUNDLE_VERSION = 49;
  public static final int BUNDLE_TRUNCATED = 50;
  public static final int HASH_MISMATCH = 51;
  public static final int BAD_SAVE = 52;
  public static final int SAVE_MISMATCH = 53;
  public static final int BAD_SIGNATURE = 54;
  public static final int DEVICE = 64;
  public static final int DEVICE_LOST = 65;

  private Status() {}
}
