// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/** Counts of the last image. The fields are those of arn_image_counts in arenite.h. */
public final class ImageCounts {
  public long nTiles;
  public long nEmbeddings;
  /** part of ns: from pixels to patches */
  public long resizeNs;
  public long ns;
}
