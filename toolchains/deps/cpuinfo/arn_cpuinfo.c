#include "arn_cpuinfo.h"

#include <cpuinfo.h>
#include <pthread.h>
#include <stdatomic.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool is_known = false;
static struct cpuinfo_core core;
static struct cpuinfo_uarch_info uarch;

#if CPUINFO_ARCH_X86 || CPUINFO_ARCH_X86_64
#include <x86/api.h>
#include <x86/cpuid.h>

struct cpuinfo_x86_isa cpuinfo_isa;

static void decode(uint32_t midr) {
  (void)midr;
  static const struct cpuid_regs none = {0, 0, 0, 0};
  const struct cpuid_regs first = cpuid(0);
  if (first.eax < 1) return;
  const uint32_t extended = UINT32_C(0x80000000), last_extended = cpuid(extended).eax;
  const struct cpuid_regs leaf1 = cpuid(1);
  const struct cpuid_regs extended1 = last_extended > extended ? cpuid(extended + 1) : none;
  const struct cpuinfo_x86_model_info model = cpuinfo_x86_decode_model_info(leaf1.eax);
  core.vendor = cpuinfo_x86_decode_vendor(first.ebx, first.ecx, first.edx);
  core.uarch = uarch.uarch = cpuinfo_x86_decode_uarch(core.vendor, &model);
  cpuinfo_isa = cpuinfo_x86_detect_isa(leaf1, extended1, first.eax,
                                       last_extended >= extended ? last_extended : 0, core.vendor,
                                       core.uarch);
}

#elif (CPUINFO_ARCH_ARM || CPUINFO_ARCH_ARM64) && defined(__linux__)
#include <arm/linux/api.h>
#include <sys/auxv.h>

struct cpuinfo_arm_isa cpuinfo_isa;

static void decode(uint32_t midr) {
  static const struct cpuinfo_arm_chipset unknown_chipset = {0};
  const uint32_t features = (uint32_t)getauxval(AT_HWCAP);
  const uint64_t features2 = getauxval(AT_HWCAP2);
#if CPUINFO_ARCH_ARM64
  cpuinfo_arm64_linux_decode_isa_from_proc_cpuinfo(features, features2, midr, &unknown_chipset,
                                                   &cpuinfo_isa);
  cpuinfo_arm_decode_vendor_uarch(midr, &core.vendor, &core.uarch);
#else
  /* "v7l", "v8l": the architecture as reported by the kernel. */
  const char* platform = (const char*)getauxval(AT_PLATFORM);
  const int has_version = platform != 0 && platform[0] == 'v';
  const uint32_t version = has_version ? (uint32_t)(platform[1] - '0') : 7;
  cpuinfo_arm_linux_decode_isa_from_proc_cpuinfo(features, features2, midr, version, 0,
                                                 &unknown_chipset, &cpuinfo_isa);
  /* Linux reports dot products from 6.2 on; cpuinfo guesses from lists of cores and chipsets. */
  const uint32_t has_dot = UINT32_C(1) << 24;
  cpuinfo_isa.dot = (features & has_dot) != 0;
  cpuinfo_arm_decode_vendor_uarch(midr, (features & CPUINFO_ARM_LINUX_FEATURE_VFPV4) != 0,
                                  &core.vendor, &core.uarch);
#endif
  core.midr = uarch.midr = midr;
  uarch.uarch = core.uarch;
}

#else

static void decode(uint32_t midr) { (void)midr; }

#endif

void cpuinfo_know(uint32_t midr) {
  pthread_mutex_lock(&mutex);
  if (!atomic_load(&is_known)) {
    decode(midr);
    atomic_store(&is_known, true);
  }
  pthread_mutex_unlock(&mutex);
}

bool CPUINFO_ABI cpuinfo_initialize(void) { return atomic_load(&is_known); }

/* The same kernels are used on all cores. */
const struct cpuinfo_core* CPUINFO_ABI cpuinfo_get_core(uint32_t index) {
  return index == 0 ? &core : NULL;
}

const struct cpuinfo_uarch_info* CPUINFO_ABI cpuinfo_get_uarch(uint32_t index) {
  return index == 0 ? &uarch : NULL;
}
