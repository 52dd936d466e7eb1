// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/** Bytes of a bundle by where they lie. The fields are those of arn_residency in arenite.h. */
public final class ResidencyInfo {
  /** Residency; COPIED after arn_model_open_reader */
  public Residency residency = Residency.MAPPED;
  /** mapped from the file; 0: a copy, or the caller's memory */
  public long mappedBytes;
  /** memory owned by the model */
  public long copiedBytes;
  /** of these bytes, in memory as far as this process has touched them */
  public long residentBytes;
  /** of the resident bytes, in huge pages */
  public long hugeBytes;
  /** locked in memory */
  public long lockedBytes;
}
