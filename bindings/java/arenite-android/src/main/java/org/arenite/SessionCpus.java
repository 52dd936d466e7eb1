// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/**
 * CPUs that a session's threads may run on. The fields are those of arn_session_cpus_data in
 * arenite.h.
 */
public final class SessionCpus {
  /** requested CPUs; none: placed by the system */
  public int[] wanted;
  /** union of the CPUs that the threads may run on now */
  public int[] applied;
  /**
   * Threads covered: the session's own and the calling thread, as it was in the last run. 0: the
   * backend has none.
   */
  public int nThreads;
  /**
   * 1: each thread may run on exactly the CPUs of `wanted`, or the system places them. 0: the
   * system has moved some (Android does so with an app in the background).
   */
  public boolean isAsWanted;
}
