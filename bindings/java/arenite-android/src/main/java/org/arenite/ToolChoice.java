// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/** ARN_TOOL_CHOICE_... of arenite.h. */
public final class ToolChoice {
  public static final int AUTO = 0;
  public static final int REQUIRED = 1;
  public static final int NONE = 2;
  public static final int NAMED = 3;

  private ToolChoice() {}
}
