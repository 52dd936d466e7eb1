// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/** When a beam search is done. */
public enum EarlyStopping {
  FALSE(0),
  TRUE(1),
  NEVER(2);

  /** Number in arenite.h. */
  public final int number;

  EarlyStopping(int number) {
    this.number = number;
  }

  /** Returns the value of a number, or null if there is none. Also called by native code. */
  static EarlyStopping of(int number) {
    for (EarlyStopping value : values()) {
      if (value.number == number) {
        return value;
      }
    }
    return null;
  }
}
