// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/**
 * Options of an image encoder. Zeros are defaults. The fields are those of arn_image_options in
 * arenite.h.
 */
public final class ImageOptions {
  /** Backend.CPU or Backend.REFERENCE; others: Status.UNSUPPORTED */
  public Backend backend = Backend.CPU;
  /** longest side of an image, in pixels, at most 32768; 0: 8192 */
  public int maxSide;
  /** 0: as many as there are performance CPUs */
  public int nThreads;
}
