package org.arenite;

/** Receives a transcription as it is heard. */
public interface SegmentListener {
  /**
   * Receives a segment.
   *
   * @return true to go on; false ends the transcription with Status.CANCELLED
   */
  boolean onSegment(Segment segment);

  /**
   * Receives, before each window and at the end, how many samples of all are done.
   *
   * @return as {@link #onSegment}
   */
  default boolean onProgress(long done, long total) {
    return true;
  }
}
