// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/**
 * A group of layers that share a pool of KV pages. The fields are those of arn_kv_group_info in
 * arenite.h.
 */
public final class KvGroup {
  /** layers with their own keys and values */
  public int nLayers;
  public int nKvHeads;
  public int headDim;
  /** tokens that a query attends to, itself included; 0: all */
  public int window;
  /** A query attends only within its chunk of this many positions; 0: no chunks. */
  public int chunk;
  public int pageTokens;
  /** pages in the pool */
  public int nPages;
  /** maximum pages of one sequence */
  public int sequencePages;
  public long pageBytes;
  /** offset of the pool in the KV region */
  public long offset;
  /** pages in the pool of quantised pages; 0: none */
  public int nQuantisedPages;
  public long quantisedPageBytes;
  public long quantisedOffset;
  /** most recent tokens, never quantised; 0 without quantised pages */
  public int residual;
  /**
   * Bytes per layer; 0: keys and values. Otherwise each page is a slot with the states of one
   * sequence, independent of its length: heads, dimension, window, chunk and page_tokens are 0.
   */
  public long stateBytes;
  /** 1: cross-attention: a page holds a sequence's encoder output, up to page_tokens rows */
  public boolean isEncoder;
}
