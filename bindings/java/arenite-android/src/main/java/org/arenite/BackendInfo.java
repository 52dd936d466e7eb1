// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/**
 * The backend that computes a session's tokens. The fields are those of arn_backend_info in
 * arenite.h.
 */
public final class BackendInfo {
  /** Backend, never AUTO */
  public Backend backend = Backend.CPU;
  /** "cpu", "reference", "vulkan", "vulkan+cpu" */
  public String name;
  /** VULKAN, VULKAN_CPU: device name; else "" */
  public String device;
  /** AUTO, VULKAN_CPU: why it is not Vulkan, or no longer; else "" */
  public String reason;
  /**
   * VULKAN, VULKAN_CPU: text for display: the matmul kernels per weight type for one, few and many
   * rows, and whether they were "measured" at creation, "remembered" in device_folder, or are
   * "fixed"; else "".
   */
  public String kernels;
  /**
   * VULKAN, VULKAN_CPU: text for display: what is not used because of known bugs of this driver,
   * with a source for each; else "".
   */
  public String quirks;
  /**
   * VULKAN, VULKAN_CPU: bytes of weights that the device reads in the bundle's own pages:
   * importable_bytes of the plan, or less where the driver takes only some of them; else 0.
   */
  public long importedBytes;
}
