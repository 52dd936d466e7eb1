// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/** A thermal zone of the device. The fields are those of arn_thermal_zone in arenite.h. */
public final class ThermalZone {
  /** Stats.NO_TEMPERATURE: it cannot be read now */
  public int millicelsius;
  /** its type, as the kernel has it: "cpu-0-0", "battery" */
  public String name;
}
