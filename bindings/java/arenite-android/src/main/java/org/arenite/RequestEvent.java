// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/** ARN_REQUEST_EVENT_... of arenite.h. */
public enum RequestEvent {
  STARTED(1),
  TOKEN(2),
  ENDED(3);

  /** Number in arenite.h. */
  public final int number;

  RequestEvent(int number) {
    this.number = number;
  }

  /** Returns the value of a number, or null if there is none. Also called by native code. */
  static RequestEvent of(int number) {
    for (RequestEvent value : values()) {
      if (value.number == number) {
        return value;
      }
    }
    return null;
  }
}
