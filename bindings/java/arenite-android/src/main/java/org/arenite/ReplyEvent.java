// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/** ARN_REPLY_EVENT_... of arenite.h. */
public final class ReplyEvent {
  public static final int TEXT = 0;
  public static final int REASONING = 1;
  public static final int CALL_BEGIN = 2;
  public static final int CALL_ID = 3;
  public static final int CALL_ARGUMENTS = 4;
  public static final int CALL_END = 5;

  private ReplyEvent() {}
}
