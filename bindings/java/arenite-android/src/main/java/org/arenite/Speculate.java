// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/** Where guesses of the next tokens come from. */
public enum Speculate {
  NONE(0),
  NGRAM(1),
  DRAFT(2),
  AUTO(3),
  MTP(4);

  /** Number in arenite.h. */
  public final int number;

  Speculate(int number) {
    this.number = number;
  }

  /** Returns the value of a number, or null if there is none. Also called by native code. */
  static Speculate of(int number) {
    for (Speculate value : values()) {
      if (value.number == number) {
        return value;
      }
    }
    return null;
  }
}
