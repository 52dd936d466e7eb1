// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/** Contents of an adapter. The fields are those of arn_adapter_info in arenite.h. */
public final class AdapterInfo {
  /** of the folder that it was made from */
  public String name;
  /** file name of its base */
  public String baseName;
  public String producer;
  /** of the bundle that it changes */
  public long baseHash;
  /** of the adapter, as in saved states */
  public long hash;
  /** matrices that it changes */
  public int nChanges;
  /** the largest of a matrix; parts that a bundle joins, such as q, k and v, add up */
  public int maxRank;
  public long fileBytes;
}
