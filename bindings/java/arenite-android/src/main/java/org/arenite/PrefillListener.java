package org.arenite;

/** Receives the progress of a prompt, on the thread that runs it. */
public interface PrefillListener {
  /**
   * Called after each chunk.
   *
   * @param done tokens that have run
   * @param total tokens that the call computes
   * @return true to go on, false to end the call before its next chunk, with Status.CANCELLED
   */
  boolean onProgress(long done, long total);
}
