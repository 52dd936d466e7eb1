// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/**
 * What a session's threads may run on. The fields are those of arn_session_cpus_data in arenite.h.
 */
public final class SessionCpus {
  /** what they are to stay on; none: the system places them */
  public int[] wanted;
  /** what they may run on now, all of them together */
  public int[] applied;
  /**
   * of which it was read: the calling thread, as it was in the last run, and those of the session;
   * 0: the backend has none
   */
  public int nThreads;
  /**
   * 1: each may run on those of `wanted` and no others, or the system places them. 0: it has moved
   * some elsewhere (Android does so with an app in the background)
   */
  public boolean isAsWanted;
}
