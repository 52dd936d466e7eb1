/* The function of libsodium's randombytes.c that keypair.c calls when it generates keys. */
#include <stdlib.h>

#include "randombytes.h"

/* Called only for keys without a seed; ours always have one. */
void randombytes_buf(void* const buffer, const size_t bytes) {
  (void)buffer;
  (void)bytes;
  abort();
}
