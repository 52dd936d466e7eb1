// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/**
 * Options of an image encoder. Zeros are defaults. The fields are those of arn_image_options in
 * arenite.h.
 */
public final class ImageOptions {
  /**
   * Backend; the tower runs whole on it. AUTO and VULKAN_CPU: on a GPU if there is one that runs
   * it, else, or once it fails, on the CPU. VULKAN: Status.UNSUPPORTED if it does not run the
   * tower.
   */
  public Backend backend = Backend.CPU;
  /** longest side of an image, in pixels, at most 32768; 0: 8192 */
  public int maxSide;
  /** 0: as many as there are performance CPUs */
  public int nThreads;
  /**
   * As in arn_session_options; strings must stay valid until arn_image_encoder_create returns.
   */
  public String device;
  public String deviceFolder;
  public boolean needsGpu;
  /** 0: tests a GPU with made-up patches, against the CPU */
  public boolean trustDevice;
}
