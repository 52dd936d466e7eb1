/* The functions of libsodium's sodium/utils.c that its Ed25519 and SHA-512 call. utils.c itself
 * would pull guarded allocation, the system's random number generator and CPU detection into every
 * program that links it. */
#include "utils.h"

void sodium_memzero(void* const memory, const size_t bytes) {
  volatile unsigned char* at = memory;
  for (size_t i = 0; i < bytes; ++i) at[i] = 0;
}

/* Constant time. Returns 0 if equal, else -1. */
int sodium_memcmp(const void* const a, const void* const b, size_t bytes) {
  const volatile unsigned char* x = a;
  const volatile unsigned char* y = b;
  unsigned char differ = 0;
  for (size_t i = 0; i < bytes; ++i) differ |= x[i] ^ y[i];
  return differ == 0 ? 0 : -1;
}

/* Constant time. Returns 1 if all bytes are 0. */
int sodium_is_zero(const unsigned char* bytes, const size_t count) {
  volatile unsigned char any = 0;
  for (size_t i = 0; i < count; ++i) any |= bytes[i];
  return any == 0;
}
