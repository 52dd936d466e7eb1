package org.arenite;

import java.util.ArrayList;
import java.util.List;

/** Properties of the machine. */
public final class Device {
  private Device() {}

  /** Returns the clusters with CPUs that this thread may use, the fastest first. */
  public static List<CpuCluster> cpuClusters() {
    List<CpuCluster> clusters = new ArrayList<>();
    CpuCluster cluster = new CpuCluster();
    while (Native.cpuCluster(clusters.size(), cluster)) {
      clusters.add(cluster);
      cluster = new CpuCluster();
    }
    return clusters;
  }
}
