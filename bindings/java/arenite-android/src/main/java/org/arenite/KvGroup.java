// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/**
 * A group of layers that share a pool of KV pages. The fields are those of arn_kv_group_info in
 * arenite.h.
 */
public final class KvGroup {
  /** with keys and values of their own */
  public int nLayers;
  public int nKvHeads;
  public int headDim;
  /** tokens a query sees, itself included; 0: all */
  public int window;
  /** a query sees none before its chunk of so many positions; 0: no chunks */
  public int chunk;
  public int pageTokens;
  /** in the pool */
  public int nPages;
  /** that one sequence holds at most */
  public int sequencePages;
  public long pageBytes;
  /** of the pool, from the start of the KV region */
  public long offset;
  /** in the pool of sealed pages; 0: there is none */
  public int nSealedPages;
  public long sealedPageBytes;
  public long sealedOffset;
  /** the most recent tokens, which are never sealed; 0 without sealed pages */
  public int residual;
  /**
   * of each layer; 0: keys and values. Else the pages are slots that hold a sequence's states,
   * however many tokens it has: heads, dimension, window, chunk and page_tokens are 0
   */
  public long stateBytes;
  /** 1: a page is a sequence's source, with room for page_tokens rows of it */
  public boolean isSource;
}
