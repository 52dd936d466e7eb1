// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/** Layout of an image of some size. The fields are those of arn_image_layout in arenite.h. */
public final class ImageLayout {
  public int nEmbeddings;
  /** that the tower runs on, the whole image among them */
  public int nTiles;
  /** of the grid that the image is cut into; 0: it is not */
  public int tileRows;
  public int tileCols;
}
