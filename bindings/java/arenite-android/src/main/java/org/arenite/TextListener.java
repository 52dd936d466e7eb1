package org.arenite;

/** Takes the pieces of a text, on the thread that called generate. */
public interface TextListener {
  /**
   * More of the text: whole characters, at least one.
   *
   * @return true to go on, false to end after this token
   */
  boolean onText(String text);
}
