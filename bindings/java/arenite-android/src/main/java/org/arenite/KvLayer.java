// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/**
 * What can be read of a layer's keys and values. The fields are those of arn_kv_layer_info in
 * arenite.h.
 */
public final class KvLayer {
  public int nKvHeads;
  public int headDim;
  /** whose keys and values the layer uses: its own number or an earlier one's */
  public int kvLayer;
  /**
   * of the selected sequence; those before it are dropped: no later token of a layer with a window
   * or chunks sees them
   */
  public int firstPosition;
}
