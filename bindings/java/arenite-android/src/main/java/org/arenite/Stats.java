// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/** Counters of a session. The fields are those of arn_session_stats_data in arenite.h. */
public final class Stats {
  public static final int NO_TEMPERATURE = -2147483648;

  public long prefillTokens;
  /** with what was slept */
  public long prefillNs;
  public long decodeTokens;
  /** with what was slept, and a callback's own time */
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
  public double prefillTokensPerS;
  /** of the above; 0: none yet */
  public double decodeTokensPerS;
  /** by all runs; each weight once a run */
  public long weightBytesRead;
  /** each key, value and state once a run and sequence */
  public long kvBytesRead;
  /** slept for max_tokens_per_s and for the heat */
  public long pacedNs;
  /** the part of it that was for the heat */
  public long cooledNs;
  /**
   * What follows needs sensors = 1; without, it is 0 and Stats.NO_TEMPERATURE. It is read again
   * after 100 ms at the earliest. microjoules: of all that the source sees, whoever used it
   */
  public long energyUj;
  /**
   * of the time, idle or not, that energy_uj is of; less than what has passed where the source
   * could not be read
   */
  public long energyNs;
  /** microwatts when it was last read; 0: not known */
  public long powerUw;
  /** Energy */
  public int energySource;
  /** found at creation, see arn_session_thermal_zone */
  public int nThermalZones;
  /** of the hottest that can be read, in thousandths of a degree, or Stats.NO_TEMPERATURE */
  public int temperatureMc = -2147483648;
  /** its index */
  public int hottestZone;
  /** Android's; less than 0: not known */
  public float thermalHeadroom = -1.0f;
  /** 1: the heat is over the session's limit */
  public boolean isHot;
  /** the source's own name */
  public String energyName;
}
