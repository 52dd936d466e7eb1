// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/** Counters of a session. The fields are those of arn_session_stats_data in arenite.h. */
public final class Stats {
  public long prefillTokens;
  public long prefillNs;
  public long decodeTokens;
  public long decodeNs;
  public long createNs;
  /** read from memory by one decode step: weights */
  public long weightBytesPerToken;
  /** and KV at the present length */
  public long kvBytesReadPerToken;
  /** pages in use */
  public long kvUsedBytes;
  public long constantsUsedBytes;
  public long activationsUsedBytes;
  public long ioUsedBytes;
  /** must equal the plan */
  public long kvCapacityBytes;
}
