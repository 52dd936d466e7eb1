package org.arenite;

/** Takes the pieces of a text as bytes, on the thread that called generate. */
public interface PieceListener {
  /**
   * One more token.
   *
   * @param token its id, or -1 for text that was held back to the end
   * @param utf8 what can be shown now: whole characters, possibly none
   * @return true to go on, false to end after this token
   */
  boolean onPiece(int token, byte[] utf8);
}
