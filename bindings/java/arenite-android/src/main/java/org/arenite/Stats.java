// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/** Counters of a session. The fields are those of arn_session_stats_data in arenite.h. */
public final class Stats {
  public static final int NO_TEMPERATURE = -2147483648;

  public long prefillTokens;
  /** including sleep */
  public long prefillNs;
  public long decodeTokens;
  /** including sleep and time in the callback */
  public long decodeNs;
  public long createNs;
  /** weights read from memory by one decode step */
  public long weightBytesPerToken;
  /** and KV read at the current length */
  public long kvBytesReadPerToken;
  /** pages in use */
  public long kvUsedBytes;
  public long constantsUsedBytes;
  public long activationsUsedBytes;
  public long ioUsedBytes;
  /** must equal the plan */
  public long kvCapacityBytes;
  public double prefillTokensPerS;
  /** from the above; 0: none yet */
  public double decodeTokensPerS;
  /** all runs; each weight once per run */
  public long weightBytesRead;
  /** each key, value and state once per run and sequence */
  public long kvBytesRead;
  /** slept for max_tokens_per_s and thermal throttling */
  public long pacedNs;
  /** part of it for thermal throttling */
  public long cooledNs;
  /**
   * The fields below need sensors = 1; without, they are 0 and Stats.NO_TEMPERATURE. Read again
   * after 100 ms at the earliest. microjoules of everything that the energy source measures, not
   * only this process
   */
  public long energyUj;
  /**
   * time, idle or not, covered by energy_uj; gaps where the energy could not be read are missing
   */
  public long energyNs;
  /** microwatts at the last reading; 0: unknown */
  public long powerUw;
  /** Energy */
  public Energy energySource = Energy.NONE;
  /** found at creation, see arn_session_thermal_zone */
  public int nThermalZones;
  /** hottest readable zone in millidegrees Celsius, or Stats.NO_TEMPERATURE */
  public int temperatureMc = -2147483648;
  /** its index */
  public int hottestZone;
  /** Android's; negative: unknown */
  public float thermalHeadroom = -1.0f;
  /** 1: over the session's thermal limit */
  public boolean isHot;
  /** name of the energy source */
  public String energyName;
  /**
   * With kv_file, the part of the cache that did not fit the memory: requested because it was
   * missing, in whole OS pages
   */
  public long kvFileBytesRead;
  /**
   * of pages that became full, or were quantised, while others were missing; writes by the OS
   * itself are not counted
   */
  public long kvFileBytesWritten;
  /** time that layers waited for reads, beyond the computation */
  public long kvFileWaitNs;
  /**
   * run again after a rewind, by arn_session_follow, for their logits, or beside guesses because
   * of recurrent states
   */
  public long recomputedTokens;
  /** kept for the selected sequence now; not reset */
  public int nStateSnapshots;
  /**
   * Speculation: runs with guesses, the guesses in them, and those that were then chosen. Such a
   * run has a row for each guess and one for the token before them.
   */
  public long guessRuns;
  public long guessesProposed;
  public long guessesAccepted;
  /**
   * part of decode_ns: of the draft model, which reads prompts too, or of the head of
   * Speculate.MTP when it is asked
   */
  public long draftNs;
}
