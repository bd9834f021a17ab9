/* Loaded before everything else (LD_PRELOAD), it makes every fsync and fdatasync take at least SLOW_SYNC_MS
   milliseconds: the disk's own time, and sleep for what is left of them. slow_syncs() says how many there were. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

static atomic_long count;

long slow_syncs(void) { return count; }

static long long now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec * 1000000000LL + at.tv_nsec;
}

static int slowly(const char *name, int file) {
    int (*sync)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    long long least = strtod(getenv("SLOW_SYNC_MS"), NULL) * 1e6, start = now();
    int done = sync(file);
    long long left = start + least - now();
    if (left > 0) nanosleep(&(struct timespec){left / 1000000000, left % 1000000000}, NULL);
    count++;
    return done;
}

int fsync(int file) { return slowly("fsync", file); }
int fdatasync(int file) { return slowly("fdatasync", file); }
