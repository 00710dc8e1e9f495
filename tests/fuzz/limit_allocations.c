/* Ends the program at a single allocation above 64 MB. run.sh loads it before programs that have no AddressSanitizer, which
 * has such a limit of its own. For glibc, whose allocator can be called by other names. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t), *__libc_memalign(size_t, size_t);
extern void abort(void);

static void check(size_t count, size_t size) {
  static const char text[] = "an allocation above 64 MB\n";
  if (size != 0 && count > ((size_t)64 << 20) / size) {
    if (write(2, text, sizeof text - 1) >= 0) abort();
  }
}

void *malloc(size_t size) { check(1, size); return __libc_malloc(size); }
void *calloc(size_t count, size_t size) { check(count, size); return __libc_calloc(count, size); }
void *realloc(void *old, size_t size) { check(1, size); return __libc_realloc(old, size); }
void *memalign(size_t alignment, size_t size) { check(1, size); return __libc_memalign(alignment, size); }
void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
int posix_memalign(void **found, size_t alignment, size_t size) {
  return (*found = memalign(alignment, size)) == NULL ? ENOMEM : 0;
}
