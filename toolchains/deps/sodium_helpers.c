/* What Ed25519 and SHA-512 of libsodium ask of its sodium/utils.c, which would bring guarded
 * allocation, the system's random numbers and detection of the CPU into every program that links
 * it. */
#include "utils.h"

void sodium_memzero(void* const memory, const size_t bytes) {
  volatile unsigned char* at = memory;
  for (size_t i = 0; i < bytes; ++i) at[i] = 0;
}

/* 0 when equal, else -1; the time does not depend on where they differ. */
int sodium_memcmp(const void* const a, const void* const b, size_t bytes) {
  const volatile unsigned char* x = a;
  const volatile unsigned char* y = b;
  unsigned char differ = 0;
  for (size_t i = 0; i < bytes; ++i) differ |= x[i] ^ y[i];
  return differ == 0 ? 0 : -1;
}

/* 1 when all bytes are 0; the time does not depend on them. */
int sodium_is_zero(const unsigned char* bytes, const size_t count) {
  volatile unsigned char any = 0;
  for (size_t i = 0; i < count; ++i) any |= bytes[i];
  return any == 0;
}
