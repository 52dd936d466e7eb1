package org.arenite;

/** Source of a bundle that is not a plain file: encrypted, compressed, downloaded. */
public interface BundleReader {
  /**
   * Fills out with the bundle's bytes from offset on. Called on the thread that opens the bundle,
   * in increasing order of offset. An exception propagates to the caller of {@link Model#open}.
   */
  void read(long offset, byte[] out) throws java.io.IOException;
}
