package org.arenite;

/** Where a bundle comes from that no file holds as it is: encrypted, compressed, fetched. */
public interface BundleReader {
  /**
   * Fills out with the bytes of the bundle from offset on. Called on the thread that opens the
   * bundle, from its beginning to its end. An exception reaches the caller of {@link Model#open}.
   */
  void read(long offset, byte[] out) throws java.io.IOException;
}
