// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/**
 * The bytes that an image encoder takes, by region. The fields are those of arn_image_plan_data in
 * arenite.h.
 */
public final class ImagePlan {
  /** state, and weights repacked for this CPU */
  public long constantsBytes;
  /** part of constants_bytes */
  public long repackedBytes;
  /** of a tile; VULKAN: 0, they are in device_bytes */
  public long activationsBytes;
  /** resized images, patches; reserved, committed on use */
  public long ioBytes;
  /** of the block */
  public long totalBytes;
  /** of the block */
  public long alignment;
  /** options after defaults are applied */
  public int maxSide;
  public int nThreads;
  /** all buffers on a GPU, outside the block; 0: on the CPU */
  public long deviceBytes;
}
