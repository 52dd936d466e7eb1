// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/** ARN_REQUEST_STATE_... of arenite.h. */
public enum RequestState {
  WAITING(1),
  PROMPT(2),
  REPLY(3),
  ENDED(4);

  /** Number in arenite.h. */
  public final int number;

  RequestState(int number) {
    this.number = number;
  }

  /** Returns the value of a number, or null if there is none. Also called by native code. */
  static RequestState of(int number) {
    for (RequestState value : values()) {
      if (value.number == number) {
        return value;
      }
    }
    return null;
  }
}
