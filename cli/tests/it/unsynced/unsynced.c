/*
 * A disk that keeps nothing but what was synced, under a real program on real files.
 *
 * Preloaded (LD_PRELOAD), this notes how to undo each change of files under UNSYNCED_ROOT before it is made, in a journal
 * under UNSYNCED_JOURNAL, and which changes fsync and fdatasync have covered since. When the program is killed, whoever
 * started it undoes what is not covered, last change first: the files are then what a disk holds that lost every unsynced
 * write, length and name. Reads and memory maps need no help, for the files themselves are always as the program left them.
 *
 * The program must name the files by whole paths, without links in them.
 *
 * A sync of a file or directory whose path ends in UNSYNCED_IGNORE is left out, and said to have worked: so a program is
 * seen to need it.
 *
 * The journal is a file of records, each of this header (integers as the machine has them) and then its bytes:
 *
 *   kind      u32   W bytes overwritten, T length changed, S file synced, C name made, R renamed, U removed, D directory synced
 *   a_len     u32   length of the first string
 *   b_len     u32   length of the second
 *   zero      u32
 *   inode     u64   of W, T, S; a second name of the file is files/INODE
 *   offset    u64   of W: where; of T and W: see old_len
 *   old_len   u64   the length of the file before
 *   data_len  u64   the bytes that stood there before
 *
 * Strings: C name; R from, to (what `to` named before is kept as kept/NUMBER, if offset is not 0); U name (kept as
 * kept/NUMBER); D directory.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *root, *journal_dir, *ignored;
static int journal = -1;
static uint64_t kept;

static ssize_t (*real_pwrite)(int, const void *, size_t, off_t);
static ssize_t (*real_write)(int, const void *, size_t);
static int (*real_ftruncate)(int, off_t);
static int (*real_fsync)(int);
static int (*real_fdatasync)(int);
static int (*real_rename)(const char *, const char *);
static int (*real_unlink)(const char *);
static int (*real_open)(const char *, int, ...);

__attribute__((constructor)) static void begin(void) {
    real_pwrite = dlsym(RTLD_NEXT, "pwrite64");
    real_write = dlsym(RTLD_NEXT, "write");
    real_ftruncate = dlsym(RTLD_NEXT, "ftruncate64");
    real_fsync = dlsym(RTLD_NEXT, "fsync");
    real_fdatasync = dlsym(RTLD_NEXT, "fdatasync");
    real_rename = dlsym(RTLD_NEXT, "rename");
    real_unlink = dlsym(RTLD_NEXT, "unlink");
    real_open = dlsym(RTLD_NEXT, "open64");
    root = getenv("UNSYNCED_ROOT");
    journal_dir = getenv("UNSYNCED_JOURNAL");
    ignored = getenv("UNSYNCED_IGNORE");
    if (root && journal_dir) {
        char path[4096];
        snprintf(path, sizeof path, "%s/journal", journal_dir);
        journal = real_open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        kept = (uint64_t)getpid() << 24;
    }
    if (journal < 0) root = NULL;
}

static int inside(const char *path) {
    return root && path && strncmp(path, root, strlen(root)) == 0 && path[strlen(root)] == '/';
}

/* The path of an open file, if it is one of ours. */
static int path_of(int fd, char *path, size_t len) {
    char link[64];
    if (!root || fd == journal) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t got = readlink(link, path, len - 1);
    if (got <= 0) return 0;
    path[got] = 0;
    return inside(path);
}

static void put(const void *bytes, size_t len) {
    const char *at = bytes;
    while (len > 0) {
        ssize_t done = real_write(journal, at, len);
        if (done <= 0) {
            if (done < 0 && errno == EINTR) continue;
            abort();
        }
        at += done;
        len -= (size_t)done;
    }
}

struct header {
    uint32_t kind, a_len, b_len, zero;
    uint64_t inode, offset, old_len, data_len;
};

/* One write, so that a kill leaves a whole record or none. */
static void note(struct header head, const char *a, const char *b, const void *data) {
    head.a_len = a ? strlen(a) : 0;
    head.b_len = b ? strlen(b) : 0;
    size_t len = sizeof head + head.a_len + head.b_len + head.data_len;
    char *record = malloc(len), *at = record;
    if (!record) abort();
    memcpy(at, &head, sizeof head);
    at += sizeof head;
    if (a) memcpy(at, a, head.a_len);
    at += head.a_len;
    if (b) memcpy(at, b, head.b_len);
    at += head.b_len;
    if (data) memcpy(at, data, head.data_len);
    put(record, len);
    free(record);
}

/* Notes what a change of [offset, offset + len) or of the length will overwrite. */
static void note_content(uint32_t kind, int fd, const char *path, uint64_t offset, uint64_t len) {
    struct stat state;
    char second[4096];
    if (fstat(fd, &state) != 0) abort();
    snprintf(second, sizeof second, "%s/files/%llu", journal_dir, (unsigned long long)state.st_ino);
    if (link(path, second) != 0 && errno != EEXIST) abort();
    uint64_t old = (uint64_t)state.st_size, from = offset < old ? offset : old;
    uint64_t until = offset + len < old ? offset + len : old;
    char *data = malloc(until - from + 1);
    if (!data) abort();
    uint64_t done = 0;
    while (from + done < until) {
        /* The descriptor may be for writing only: the second name is not. */
        int reading = real_open(second, O_RDONLY | O_CLOEXEC);
        ssize_t got = reading < 0 ? -1 : pread(reading, data + done, until - from - done, (off_t)(from + done));
        if (reading >= 0) close(reading);
        if (got <= 0) abort();
        done += (uint64_t)got;
    }
    struct header head = {kind, 0, 0, 0, state.st_ino, from, old, done};
    note(head, NULL, NULL, data);
    free(data);
}

static int sync_of(int fd, int (*real)(int)) {
    char path[4096];
    if (!path_of(fd, path, sizeof path)) {
        /* The root itself is a directory of ours too. */
        if (!root || strcmp(path, root) != 0) return real(fd);
    }
    size_t end = ignored ? strlen(ignored) : 0, len = strlen(path);
    if (end > 0 && len >= end && strcmp(path + len - end, ignored) == 0) return 0;
    struct stat state;
    if (fstat(fd, &state) != 0) return -1;
    pthread_mutex_lock(&lock);
    struct header head = {S_ISDIR(state.st_mode) ? 'D' : 'S', 0, 0, 0, state.st_ino, 0, 0, 0};
    note(head, S_ISDIR(state.st_mode) ? path : NULL, NULL, NULL);
    pthread_mutex_unlock(&lock);
    /* That the disk really does it is not what is tried here, and it would take most of the time. */
    return 0;
}

int fsync(int fd) { return sync_of(fd, real_fsync); }
int fdatasync(int fd) { return sync_of(fd, real_fdatasync); }

ssize_t pwrite64(int fd, const void *bytes, size_t len, off_t offset) {
    char path[4096];
    if (!path_of(fd, path, sizeof path)) return real_pwrite(fd, bytes, len, offset);
    pthread_mutex_lock(&lock);
    note_content('W', fd, path, (uint64_t)offset, len);
    ssize_t done = real_pwrite(fd, bytes, len, offset);
    pthread_mutex_unlock(&lock);
    return done;
}

ssize_t pwrite(int fd, const void *bytes, size_t len, off_t offset) { return pwrite64(fd, bytes, len, offset); }

ssize_t write(int fd, const void *bytes, size_t len) {
    char path[4096];
    if (!path_of(fd, path, sizeof path)) return real_write(fd, bytes, len);
    pthread_mutex_lock(&lock);
    off_t offset = lseek(fd, 0, SEEK_CUR);
    note_content('W', fd, path, (uint64_t)offset, len);
    ssize_t done = real_write(fd, bytes, len);
    pthread_mutex_unlock(&lock);
    return done;
}

int ftruncate64(int fd, off_t len) {
    char path[4096];
    if (!path_of(fd, path, sizeof path)) return real_ftruncate(fd, len);
    pthread_mutex_lock(&lock);
    note_content('T', fd, path, (uint64_t)len, UINT64_MAX / 2);
    int done = real_ftruncate(fd, len);
    pthread_mutex_unlock(&lock);
    return done;
}

int ftruncate(int fd, off_t len) { return ftruncate64(fd, len); }

/* Keeps what a name stands for, and gives its number; 0 if it stands for nothing. */
static uint64_t keep(const char *path) {
    char second[4096];
    struct stat state;
    if (lstat(path, &state) != 0) return 0;
    kept += 1;
    snprintf(second, sizeof second, "%s/kept/%llu", journal_dir, (unsigned long long)kept);
    if (link(path, second) != 0) abort();
    return kept;
}

int rename(const char *from, const char *to) {
    if (!inside(from)) return real_rename(from, to);
    pthread_mutex_lock(&lock);
    struct header head = {'R', 0, 0, 0, 0, keep(to), 0, 0};
    note(head, from, to, NULL);
    int done = real_rename(from, to);
    pthread_mutex_unlock(&lock);
    return done;
}

int unlink(const char *path) {
    if (!inside(path)) return real_unlink(path);
    pthread_mutex_lock(&lock);
    uint64_t number = keep(path);
    if (number) {
        struct header head = {'U', 0, 0, 0, 0, number, 0, 0};
        note(head, path, NULL, NULL);
    }
    int done = real_unlink(path);
    pthread_mutex_unlock(&lock);
    return done;
}

int open64(const char *path, int flags, ...) {
    mode_t mode = 0;
    if (flags & (O_CREAT | O_TMPFILE)) {
        va_list rest;
        va_start(rest, flags);
        mode = va_arg(rest, mode_t);
        va_end(rest);
    }
    if (!inside(path) || !(flags & O_CREAT)) return real_open(path, flags, mode);
    pthread_mutex_lock(&lock);
    struct stat state;
    if (lstat(path, &state) != 0) {
        struct header head = {'C', 0, 0, 0, 0, 0, 0, 0};
        note(head, path, NULL, NULL);
    }
    int fd = real_open(path, flags, mode);
    pthread_mutex_unlock(&lock);
    return fd;
}

int open(const char *path, int flags, ...) {
    mode_t mode = 0;
    if (flags & (O_CREAT | O_TMPFILE)) {
        va_list rest;
        va_start(rest, flags);
        mode = va_arg(rest, mode_t);
        va_end(rest);
    }
    return open64(path, flags, mode);
}
