// Preloaded into an original tool (LD_PRELOAD): adds the overhead that longhaul's worker has, so that only real differences remain.
//
// - A second, idle thread: in a process with two threads the kernel counts references to a file in each call (fdget in fs/file.c).
// - An explicit offset in each call: for read(2) and write(2), which use the file position, the kernel would also take a lock in a
//   process with two threads (fdget_pos), which it does not in the original.
// - An open folder relative to which names are looked up, whose references are counted too.
// - A clock read directly before and after each call on a file. Calls go directly to the kernel, without the C library's handling of
//   thread cancellation. $READINGS is a number of additional clock reads after each call.
// At the end it appends a line for each kind of call to the file $CALLS: the name, and the seconds spent in it. Writes to /dev/null make
// no call, because a call makes the next one slower. A sync of all file systems only syncs the working folder, and appends the lines so
// far; with $SPLIT each sync of a file appends them too. This works for programs that access regular files on one thread and do not
// duplicate descriptors of files that they have used.
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

enum { READ, WRITE, SYNC, CLOSE, CREATE, DELETE, LIST, KINDS };
static const char *const names[KINDS] = {"read", "write", "sync", "close", "create", "delete", "list"};
static int64_t nanoseconds[KINDS];
static int readings;

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

// Compares everything that was read with zeros, as longhaul does to verify it, because the next read into the same memory is then slower.
static volatile bool is_as_written;
static void verify(const void *buffer, ssize_t size) {
    static const char zeros[4096];
    bool is = true;
    for (ssize_t at = 0; is && at < size; at += sizeof zeros) {
        size_t piece = size - at;
        if (piece > sizeof zeros) piece = sizeof zeros;
        is = memcmp((const char *)buffer + at, zeros, piece) == 0;
    }
    is_as_written = is;
}

// Generates the zeros to write, as longhaul does before each write, because the state of the processor's cache affects the write time.
static void make(const void *buffer, size_t size) { memset((void *)buffer, 0, size); }

#define TIMED(kind, result, name, number, first, then, parameters, ...)       \
    result name parameters {                                                  \
        first;                                                                \
        int64_t began = now();                                                \
        result answer = syscall(number, __VA_ARGS__);                         \
        nanoseconds[kind] += now() - began;                                   \
        for (int more = 0; more < readings; more++) now();                    \
        then;                                                                 \
        return answer;                                                        \
    }

TIMED(READ, ssize_t, pread, SYS_pread64, , verify(buffer, answer), (int file, void *buffer, size_t size, off_t at), file, buffer, size,
      at)
TIMED(READ, ssize_t, pread64, SYS_pread64, , verify(buffer, answer), (int file, void *buffer, size_t size, off64_t at), file, buffer,
      size, at)
TIMED(WRITE, ssize_t, pwrite, SYS_pwrite64, make(buffer, size), , (int file, const void *buffer, size_t size, off_t at), file,
      buffer, size, at)
TIMED(WRITE, ssize_t, pwrite64, SYS_pwrite64, make(buffer, size), , (int file, const void *buffer, size_t size, off64_t at), file,
      buffer, size, at)
// Appends the lines so far to $CALLS and resets the times.
static void put(void);
static bool splits;

TIMED(SYNC, int, fsync, SYS_fsync, , if (splits) put(), (int file), file)

// Descriptor of the working folder.
static int folder = AT_FDCWD;

static void enter(void) { folder = syscall(SYS_openat, AT_FDCWD, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); }

int chdir(const char *path) {
    int answer = syscall(SYS_chdir, path);
    if (answer == 0) {
        syscall(SYS_close, folder);
        enter();
    }
    return answer;
}

TIMED(DELETE, int, unlink, SYS_unlinkat, , , (const char *path), folder, path, 0)
TIMED(CREATE, int, create_file, SYS_openat, , , (const char *path, int flags, mode_t mode), folder, path, flags, mode)

// Position of each regular file, if tracked here; the kernel's own file position is not moved then. NOWHERE is /dev/null.
enum { FILES = 256 };
enum sort { UNKNOWN, REGULAR, NOWHERE, OTHER };
static off64_t places[FILES];
static enum sort sorts[FILES];

static enum sort sort_of(int file) {
    if (file < 0 || file >= FILES) return OTHER;
    if (sorts[file] == UNKNOWN) {
        int before = errno;
        struct stat about;
        sorts[file] = fstat(file, &about) != 0 ? OTHER
            : S_ISREG(about.st_mode) ? REGULAR
            : S_ISCHR(about.st_mode) && about.st_rdev == makedev(1, 3) ? NOWHERE : OTHER;
        places[file] = syscall(SYS_lseek, file, 0, SEEK_CUR);
        errno = before;
    }
    return sorts[file];
}

#define IN_ORDER(name, placed, number, contents, from_nowhere)                \
    ssize_t name(int file, contents buffer, size_t size) {                    \
        enum sort sort = sort_of(file);                                       \
        if (sort == NOWHERE) return from_nowhere;                             \
        if (sort != REGULAR) return syscall(number, file, buffer, size);      \
        ssize_t moved = placed(file, buffer, size, places[file]);             \
        if (moved > 0) places[file] += moved;                                 \
        return moved;                                                         \
    }

IN_ORDER(read, pread64, SYS_read, void *, 0)
IN_ORDER(write, pwrite64, SYS_write, const void *, size)

off64_t lseek64(int file, off64_t offset, int from) {
    bool is_here = (from == SEEK_SET || from == SEEK_CUR) && sort_of(file) == REGULAR;
    if (is_here && from == SEEK_CUR) offset += places[file];
    off64_t place = is_here && offset >= 0 ? offset : syscall(SYS_lseek, file, offset, from);
    if (place >= 0 && sort_of(file) == REGULAR) places[file] = place;
    return place;
}
off_t lseek(int file, off_t offset, int from) { return lseek64(file, offset, from); }

int close(int file) {
    if (file >= 0 && file < FILES) sorts[file] = UNKNOWN;
    int64_t began = now();
    int answer = syscall(SYS_close, file);
    nanoseconds[CLOSE] += now() - began;
    return answer;
}

int open64(const char *path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;
    va_end(more);
    return flags & O_CREAT ? create_file(path, flags, mode) : syscall(SYS_openat, folder, path, flags, mode);
}
int open(const char *path, int flags, ...) __attribute__((alias("open64")));

// The function is looked up at the first call, because libraries list folders before this one is initialized (libnuma of fio).
struct dirent *readdir(DIR *listed) {
    static struct dirent *(*next)(DIR *);
    if (!next) next = (struct dirent *(*)(DIR *))dlsym(RTLD_NEXT, "readdir");
    int64_t began = now();
    struct dirent *answer = next(listed);
    nanoseconds[LIST] += now() - began;
    // Listing time only counts if the program deletes the listed files.
    if (!answer && nanoseconds[DELETE] == 0) nanoseconds[LIST] = 0;
    return answer;
}

static void put(void) {
    const char *path = getenv("CALLS");
    FILE *out = path ? fopen(path, "a") : NULL;
    if (!out) return;
    for (int kind = 0; kind < KINDS; kind++) fprintf(out, "%s %.9f\n", names[kind], nanoseconds[kind] / 1e9);
    fclose(out);
    memset(nanoseconds, 0, sizeof nanoseconds);
}

void sync(void) {
    fsync(folder);
    put();
}

static void *idle(void *nothing) {
    for (;;) pause();
    return nothing;
}

__attribute__((constructor)) static void begin(void) {
    const char *more = getenv("READINGS");
    if (more) readings = atoi(more);
    const char *split = getenv("SPLIT");
    splits = split && atoi(split);
    enter();
    pthread_t second_thread;
    pthread_create(&second_thread, NULL, idle, NULL);
}

__attribute__((destructor)) static void end(void) { put(); }
