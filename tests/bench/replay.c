// Makes calls on the files of a folder in a bare loop: the peer of tests/bench/replay.py.
//
//   replay FOLDER FOLDERS FILES      FOLDERS folders with FILES files each, named d0/f0 and so on; prints the nanoseconds of the loop
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static char block[16384];

static void check(long result) {
    if (result < 0) {
        perror("replay");
        exit(1);
    }
}

// Reads a file as a viewer does: attributes, then the content.
static void read_file(int folder, const char *name) {
    struct stat attributes;
    check(fstatat(folder, name, &attributes, 0));
    int file = openat(folder, name, O_RDONLY);
    check(file);
    check(fstat(file, &attributes));
    check(pread(file, block, sizeof block, 0));
    check(close(file));
}

// Saves a file as an editor does: under another name, then over the old one.
static void save_file(int folder, const char *name, const char *temporary) {
    int file = openat(folder, temporary, O_WRONLY | O_CREAT | O_EXCL, 0644);
    check(file);
    check(pwrite(file, block, sizeof block, 0));
    check(close(file));
    check(renameat(folder, temporary, folder, name));
}

int main(int count, char **arguments) {
    if (count != 4) return 2;
    int folder = open(arguments[1], O_RDONLY | O_DIRECTORY);
    check(folder);
    int folders = atoi(arguments[2]), files = atoi(arguments[3]);
    struct timespec began, ended;
    clock_gettime(CLOCK_MONOTONIC, &began);
    for (int i = 0; i < folders; i++)
        for (int j = 0; j < files; j++) {
            char name[32], temporary[32];
            snprintf(name, sizeof name, "d%d/f%d", i, j);
            snprintf(temporary, sizeof temporary, "d%d/t%d", i, j);
            read_file(folder, name);
            if (j % 8 == 0) save_file(folder, name, temporary);
        }
    clock_gettime(CLOCK_MONOTONIC, &ended);
    printf("%lld\n", (ended.tv_sec - began.tv_sec) * 1000000000LL + ended.tv_nsec - began.tv_nsec);
}
