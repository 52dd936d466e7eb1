// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/** ARN_REPLY_EVENT_... of arenite.h. */
public enum ReplyEvent {
  TEXT(0),
  REASONING(1),
  CALL_BEGIN(2),
  CALL_ID(3),
  CALL_ARGUMENTS(4),
  CALL_END(5);

  /** Number in arenite.h. */
  public final int number;

  ReplyEvent(int number) {
    this.number = number;
  }

  /** Returns the value of a number, or null if there is none. Also called by native code. */
  static ReplyEvent of(int number) {
    for (ReplyEvent value : values()) {
      if (value.number == number) {
        return value;
      }
    }
    return null;
  }
}
