package org.arenite;

import java.util.List;

/**
 * An encoded image, for {@link Chat#tokenize}, {@link Session#prefill} and {@link Session#follow}.
 */
public final class Image {
  /** In pixels. */
  public final int width;

  /** In pixels. */
  public final int height;

  /** Rows of ImageInfo.width floats, one after the other, as ImageEncoder.encode wrote them. */
  public final float[] embeddings;

  /** For an app that has stored what an encoder made of an image of this size. */
  public Image(int width, int height, float[] embeddings) {
    this.width = width;
    this.height = height;
    this.embeddings = embeddings;
  }

  /** Returns width and height of each image, for native code. */
  static int[] sizes(List<Image> images) {
    int[] sizes = new int[2 * images.size()];
    int at = 0;
    for (Image image : images) {
      sizes[at++] = image.width;
      sizes[at++] = image.height;
    }
    return sizes;
  }

  static float[][] embeddings(List<Image> images) {
    float[][] embeddings = new float[images.size()][];
    for (int i = 0; i < embeddings.length; ++i) {
      embeddings[i] = images.get(i).embeddings;
    }
    return embeddings;
  }
}
