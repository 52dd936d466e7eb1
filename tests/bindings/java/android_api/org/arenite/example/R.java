package org.arenite.example;

/** Declares the resource class that Android's build generates for the example. */
final class R {
  static final class layout {
    static final int story = 1;
  }

  static final class id {
    static final int prompt = 1;
    static final int tell = 2;
    static final int stop = 3;
    static final int story = 4;
  }
}
