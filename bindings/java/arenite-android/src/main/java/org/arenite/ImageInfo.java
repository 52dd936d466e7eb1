// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/** How a model takes images. The fields are those of arn_image_info in arenite.h. */
public final class ImageInfo {
  /** floats of an embedding: at least the decoder's width */
  public int width;
  /** most embeddings of an image */
  public int maxEmbeddings;
  /** the token whose places embeddings take */
  public int tokenId;
  /** of an image in a prompt; lives as long as the model */
  public String marker;
}
