// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/** CPUs of one package that are alike. The fields are those of arn_cpu_cluster in arenite.h. */
public final class CpuCluster {
  /** CPUs that the process may use */
  public int[] cpus;
  public int nCpus;
  /** relative to the largest CPU, 1024; 0: unknown */
  public int capacity;
  /** 0: unknown */
  public int maxKhz;
  /** 1: at least half of the largest capacity */
  public boolean isPerformance;
}
