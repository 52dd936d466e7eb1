// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/** ARN_CONSTRAINT_... of arenite.h. */
public final class ConstraintKind {
  public static final int JSON_SCHEMA = 0;
  public static final int REGEX = 1;
  public static final int GRAMMAR = 2;
  public static final int CHOICES = 3;
  public static final int TOOL_CALLS = 4;

  private ConstraintKind() {}
}
