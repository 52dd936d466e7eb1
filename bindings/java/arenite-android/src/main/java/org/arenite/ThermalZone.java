// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/** A thermal zone of the device. The fields are those of arn_thermal_zone in arenite.h. */
public final class ThermalZone {
  /** Stats.NO_TEMPERATURE: cannot be read now */
  public int millicelsius;
  /** the kernel's zone type: "cpu-0-0", "battery" */
  public String name;
}
