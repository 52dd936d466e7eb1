// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/** CPUs of one package that are alike. The fields are those of arn_cpu_cluster in arenite.h. */
public final class CpuCluster {
  /** those that the process may use */
  public int[] cpus;
  public int nCpus;
  /** as the kernel compares CPUs, the largest 1024; 0: it does not say */
  public int capacity;
  /** 0: it does not say */
  public int maxKhz;
  /** 1: of at least half of the largest capacity */
  public boolean isPerformance;
}
