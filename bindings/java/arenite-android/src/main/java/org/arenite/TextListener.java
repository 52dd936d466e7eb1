package org.arenite;

/** Receives the pieces of a text, on the thread that called generate. */
public interface TextListener {
  /**
   * Called with more text: whole characters, at least one.
   *
   * @return true to go on, false to end after this token
   */
  boolean onText(String text);
}
