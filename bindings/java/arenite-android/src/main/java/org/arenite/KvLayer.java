// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/**
 * A layer whose keys and values can be read. The fields are those of arn_kv_layer_info in
 * arenite.h.
 */
public final class KvLayer {
  public int nKvHeads;
  public int headDim;
  /** layer that owns the keys and values: this layer or an earlier one */
  public int kvLayer;
  /**
   * First position kept for the selected sequence. Earlier ones are dropped: no later token of a
   * layer with a window or chunks attends to them.
   */
  public int firstPosition;
}
