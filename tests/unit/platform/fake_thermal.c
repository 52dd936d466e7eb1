/* The part of Android's thermal API in use, as a shared library. The headroom grows by a tenth with
 * each call. The third call returns NaN, as for a caller that polls too often. */
#include <stddef.h>

typedef struct AThermalManager {
  int asked;
} AThermalManager;

static AThermalManager manager;

AThermalManager* AThermal_acquireManager(void) {
  manager.asked = 0;
  return &manager;
}

void AThermal_releaseManager(AThermalManager* m) { m->asked = -1; }

float AThermal_getThermalHeadroom(AThermalManager* m, int forecast_seconds) {
  if (forecast_seconds != 0) return -1.0f;
  ++m->asked;
  return m->asked == 3 ? __builtin_nanf("") : 0.5f + 0.1f * (float)m->asked;
}
