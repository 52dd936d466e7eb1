// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/** Backends. */
public enum Backend {
  CPU(0),
  REFERENCE(1),
  VULKAN(2),
  AUTO(3),
  VULKAN_CPU(4);

  /** Number in arenite.h. */
  public final int number;

  Backend(int number) {
    this.number = number;
  }

  /** Returns the value of a number, or null if there is none. Also called by native code. */
  static Backend of(int number) {
    for (Backend value : values()) {
      if (value.number == number) {
        return value;
      }
    }
    return null;
  }
}
