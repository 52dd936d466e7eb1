/* What libsodium's keypair.c asks of its randombytes.c: for who makes keys, and nobody else. */
#include <stdlib.h>

#include "randombytes.h"

/* Only keys without a seed would ask for random numbers, and all of ours have one. */
void randombytes_buf(void* const buffer, const size_t bytes) {
  (void)buffer;
  (void)bytes;
  abort();
}
