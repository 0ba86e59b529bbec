#include "vfs.h"

#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model.h"

enum { SECTOR = 512, MAX_FILES = 16, MAX_ENTRIES = 64 };

/* A write or a cut that was not synced. */
struct pending {
    struct pending *next;
    sqlite3_int64 offset; /* of a cut: the new size */
    bool is_cut;
    size_t len;
    char bytes[];
};

/* A file as the process sees it, with the part that a power loss would lose. */
struct disk {
    char path[256];
    bool is_used;
    char *image;
    size_t size, cap;
    struct pending *pending, **tail;
};

/* A name made or taken away since the directory was synced. */
struct entry {
    char path[256];
    char undead[280]; /* path of a deleted file until the sync; empty: it was created */
};

struct file {
    sqlite3_file base;
    struct disk *disk; /* NULL: passed through */
    bool must_sync_directory;
    sqlite3_file *real;
};

/* `lock` guards everything in it. */
static struct {
    pthread_mutex_t lock;
    sqlite3_vfs *real;

    enum vfs_kind kind;
    long fail_at, seen, failures;
    bool is_sticky, is_full;

    bool has_power_mode;
    uint64_t random;
    long calls, off_at;
    struct disk disks[MAX_FILES];
    struct entry entries[MAX_ENTRIES];
    unsigned entry_count, deleted_count;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void die(const char *what)
{
    (void)fprintf(stderr, "vfs: %s\n", what);
    abort();
}

/* ---- losing power ---- */

static bool chance(unsigned percent)
{
    return random_below(&state.random, 100) < percent;
}

static void write_out(int fd, const void *bytes, size_t len, off_t offset)
{
    if (pwrite(fd, bytes, len, offset) != (ssize_t)len)
        die("cannot write to a file");
}

/* Some sectors of a write, each whole, in part or not at all. */
static void write_some(int fd, const struct pending *p, unsigned percent)
{
    for (size_t at = 0; at < p->len;) {
        size_t n = SECTOR - (size_t)(p->offset + (sqlite3_int64)at) % SECTOR;

        n = n < p->len - at ? n : p->len - at;
        if (chance(percent))
            write_out(fd, p->bytes + at, chance(5) ? random_below(&state.random, (uint32_t)n) : n,
                      p->offset + (off_t)at);
        at += n;
    }
}

static void lose_writes(struct disk *disk, unsigned percent)
{
    int fd = open(disk->path, O_RDWR | O_CLOEXEC);

    if (fd < 0)
        return; /* deleted */
    for (struct pending *p = disk->pending; p; p = p->next) {
        if (!p->is_cut)
            write_some(fd, p, percent);
        else if (chance(percent) && ftruncate(fd, p->offset) != 0)
            die("cannot cut a file");
    }
    close(fd);
}

/* A file system keeps the order of names: some of the first ones last. */
static void lose_names(void)
{
    unsigned kept = random_below(&state.random, state.entry_count + 1);

    while (state.entry_count > kept) {
        struct entry *entry = &state.entries[--state.entry_count];

        if (!entry->undead[0])
            unlink(entry->path);
        else if (rename(entry->undead, entry->path) != 0)
            die("cannot bring back a file");
    }
    while (state.entry_count > 0) {
        struct entry *entry = &state.entries[--state.entry_count];

        if (entry->undead[0])
            unlink(entry->undead);
    }
}

static void power_off(void)
{
    static const unsigned percents[] = {0, 10, 50, 90, 100};

    for (unsigned i = 0; i < MAX_FILES; i++) {
        if (state.disks[i].is_used)
            lose_writes(&state.disks[i], percents[random_below(&state.random, 5)]);
    }
    lose_names();
    _exit(VFS_POWER_STATUS);
}

void vfs_power_off(void)
{
    pthread_mutex_lock(&state.lock);
    power_off();
}

/* ---- counting ---- */

/* Every call comes by here. True: it must fail. */
static bool must_fail(enum vfs_kind kind)
{
    bool fails = false;

    pthread_mutex_lock(&state.lock);
    state.calls++;
    if (state.off_at && state.calls >= state.off_at)
        power_off();
    if (state.fail_at && kind == state.kind) {
        state.seen++;
        fails = state.seen == state.fail_at || (state.is_sticky && state.seen > state.fail_at);
        state.failures += fails;
    }
    pthread_mutex_unlock(&state.lock);
    return fails;
}

void vfs_fail(enum vfs_kind kind, long n, bool sticky, bool is_full)
{
    pthread_mutex_lock(&state.lock);
    state.kind = kind;
    state.fail_at = n;
    state.is_sticky = sticky;
    state.is_full = is_full;
    state.seen = state.failures = 0;
    pthread_mutex_unlock(&state.lock);
}

long vfs_failures(void)
{
    long failures;

    pthread_mutex_lock(&state.lock);
    failures = state.failures;
    pthread_mutex_unlock(&state.lock);
    return failures;
}

void vfs_power(uint64_t seed, long n)
{
    pthread_mutex_lock(&state.lock);
    state.has_power_mode = true;
    state.random = seed;
    state.off_at = n ? state.calls + n : 0;
    pthread_mutex_unlock(&state.lock);
}

long vfs_calls(void)
{
    long calls;

    pthread_mutex_lock(&state.lock);
    calls = state.calls;
    pthread_mutex_unlock(&state.lock);
    return calls;
}

/* ---- files as seen; all with the lock held ---- */

static void image_resize(struct disk *disk, size_t size)
{
    if (size > disk->cap) {
        disk->cap = size * 2;
        disk->image = must_alloc(disk->image, disk->cap);
    }
    if (size > disk->size)
        memset(disk->image + disk->size, 0, size - disk->size);
    disk->size = size;
}

static void image_load(struct disk *disk)
{
    int fd = open(disk->path, O_RDONLY | O_CLOEXEC);
    struct stat st;

    disk->size = 0;
    if (fd < 0)
        return;
    if (fstat(fd, &st) != 0)
        die("cannot look at a file");
    image_resize(disk, (size_t)st.st_size);
    if (pread(fd, disk->image, disk->size, 0) != (ssize_t)disk->size)
        die("cannot read a file");
    close(fd);
}

static void drop_pending(struct disk *disk)
{
    while (disk->pending) {
        struct pending *next = disk->pending->next;

        free(disk->pending);
        disk->pending = next;
    }
    disk->tail = &disk->pending;
}

static struct disk *disk_of(const char *path)
{
    struct disk *free_one = NULL;

    for (unsigned i = 0; i < MAX_FILES; i++) {
        struct disk *disk = &state.disks[i];

        if (disk->is_used && strcmp(disk->path, path) == 0)
            return disk;
        if (!disk->is_used && !free_one)
            free_one = disk;
    }
    if (!free_one || strlen(path) >= sizeof(free_one->path))
        die("too many files");
    (void)snprintf(free_one->path, sizeof(free_one->path), "%s", path);
    free_one->is_used = true;
    free_one->tail = &free_one->pending;
    image_load(free_one);
    return free_one;
}

static void add_pending(struct disk *disk, const void *bytes, size_t len, sqlite3_int64 offset,
                        bool is_cut)
{
    struct pending *p = must_alloc(NULL, sizeof(*p) + len);

    *p = (struct pending){.offset = offset, .is_cut = is_cut, .len = len};
    if (len)
        memcpy(p->bytes, bytes, len);
    *disk->tail = p;
    disk->tail = &p->next;
}

static void sync_disk(struct disk *disk)
{
    int fd = open(disk->path, O_RDWR | O_CLOEXEC);

    /* Deleted while it was open: it is not visible any more. */
    for (struct pending *p = disk->pending; fd >= 0 && p; p = p->next) {
        if (!p->is_cut)
            write_out(fd, p->bytes, p->len, p->offset);
        else if (ftruncate(fd, p->offset) != 0)
            die("cannot cut a file");
    }
    drop_pending(disk);
    /*
     * Closing drops this process's POSIX locks on the file. Only one process runs during the power
     * test, so no other could take them.
     */
    if (fd >= 0)
        close(fd);
}

static void add_entry(const char *path, const char *undead)
{
    struct entry *entry = &state.entries[state.entry_count++];

    if (state.entry_count == MAX_ENTRIES)
        die("too many names");
    (void)snprintf(entry->path, sizeof(entry->path), "%s", path);
    (void)snprintf(entry->undead, sizeof(entry->undead), "%s", undead);
}

static void sync_directory(void)
{
    for (unsigned i = 0; i < state.entry_count; i++) {
        if (state.entries[i].undead[0])
            unlink(state.entries[i].undead);
    }
    state.entry_count = 0;
}

static int delete_name(const char *path, bool is_synced)
{
    struct disk *disk;
    char undead[280];

    if (access(path, F_OK) != 0)
        return SQLITE_IOERR_DELETE_NOENT;
    disk = disk_of(path);
    (void)snprintf(undead, sizeof(undead), "%s.undead%u", path, state.deleted_count++);
    if (rename(path, undead) != 0)
        return SQLITE_IOERR_DELETE;
    drop_pending(disk);
    free(disk->image);
    memset(disk, 0, sizeof(*disk));
    add_entry(path, undead);
    if (is_synced)
        sync_directory();
    return SQLITE_OK;
}

/* ---- the methods of a file ---- */

static sqlite3_file *real_of(sqlite3_file *file)
{
    return ((struct file *)file)->real;
}

static int on_close(sqlite3_file *file)
{
    return real_of(file)->pMethods->xClose(real_of(file));
}

static int on_read(sqlite3_file *file, void *out, int len, sqlite3_int64 offset)
{
    struct disk *disk = ((struct file *)file)->disk;
    size_t got = 0;

    if (must_fail(VFS_READ))
        return SQLITE_IOERR_READ;
    if (!disk)
        return real_of(file)->pMethods->xRead(real_of(file), out, len, offset);
    pthread_mutex_lock(&state.lock);
    if ((size_t)offset < disk->size)
        got = disk->size - (size_t)offset < (size_t)len ? disk->size - (size_t)offset : (size_t)len;
    if (got)
        memcpy(out, disk->image + offset, got);
    pthread_mutex_unlock(&state.lock);
    memset((char *)out + got, 0, (size_t)len - got);
    return got == (size_t)len ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
}

static int on_write(sqlite3_file *file, const void *bytes, int len, sqlite3_int64 offset)
{
    struct disk *disk = ((struct file *)file)->disk;

    if (must_fail(VFS_WRITE)) {
        if (!state.is_full)
            return SQLITE_IOERR_WRITE;
        (void)real_of(file)->pMethods->xWrite(real_of(file), bytes, len / 2, offset);
        return SQLITE_FULL;
    }
    if (!disk)
        return real_of(file)->pMethods->xWrite(real_of(file), bytes, len, offset);
    pthread_mutex_lock(&state.lock);
    if ((size_t)offset + (size_t)len > disk->size)
        image_resize(disk, (size_t)offset + (size_t)len);
    memcpy(disk->image + offset, bytes, (size_t)len);
    add_pending(disk, bytes, (size_t)len, offset, false);
    pthread_mutex_unlock(&state.lock);
    return SQLITE_OK;
}

static int on_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    struct disk *disk = ((struct file *)file)->disk;

    if (must_fail(VFS_TRUNCATE))
        return SQLITE_IOERR_TRUNCATE;
    if (!disk)
        return real_of(file)->pMethods->xTruncate(real_of(file), size);
    pthread_mutex_lock(&state.lock);
    image_resize(disk, (size_t)size);
    add_pending(disk, NULL, 0, size, true);
    pthread_mutex_unlock(&state.lock);
    return SQLITE_OK;
}

/* The real disk is not flushed: this layer makes the faults and losses itself. */
static int on_sync(sqlite3_file *base, int flags)
{
    struct file *file = (struct file *)base;

    (void)flags;
    if (must_fail(VFS_SYNC))
        return SQLITE_IOERR_FSYNC;
    if (!file->disk)
        return SQLITE_OK;
    pthread_mutex_lock(&state.lock);
    sync_disk(file->disk);
    if (file->must_sync_directory)
        sync_directory();
    file->must_sync_directory = false;
    pthread_mutex_unlock(&state.lock);
    return SQLITE_OK;
}

static int on_size(sqlite3_file *file, sqlite3_int64 *out)
{
    struct disk *disk = ((struct file *)file)->disk;

    if (must_fail(VFS_SIZE))
        return SQLITE_IOERR_FSTAT;
    if (!disk)
        return real_of(file)->pMethods->xFileSize(real_of(file), out);
    pthread_mutex_lock(&state.lock);
    *out = (sqlite3_int64)disk->size;
    pthread_mutex_unlock(&state.lock);
    return SQLITE_OK;
}

static int on_lock(sqlite3_file *file, int level)
{
    if (must_fail(VFS_LOCK))
        return SQLITE_IOERR_LOCK;
    return real_of(file)->pMethods->xLock(real_of(file), level);
}

static int on_unlock(sqlite3_file *file, int level)
{
    return real_of(file)->pMethods->xUnlock(real_of(file), level);
}

static int on_check_lock(sqlite3_file *file, int *out)
{
    return real_of(file)->pMethods->xCheckReservedLock(real_of(file), out);
}

static int on_control(sqlite3_file *file, int op, void *arg)
{
    if (((struct file *)file)->disk &&
        (op == SQLITE_FCNTL_SIZE_HINT || op == SQLITE_FCNTL_CHUNK_SIZE))
        return SQLITE_NOTFOUND; /* would change the size of the file below */
    return real_of(file)->pMethods->xFileControl(real_of(file), op, arg);
}

static int on_sector_size(sqlite3_file *file)
{
    return real_of(file)->pMethods->xSectorSize(real_of(file));
}

static int on_characteristics(sqlite3_file *file)
{
    return real_of(file)->pMethods->xDeviceCharacteristics(real_of(file));
}

static int on_shm_map(sqlite3_file *file, int region, int size, int extend, void volatile **out)
{
    if (must_fail(VFS_SHM)) {
        *out = NULL;
        return SQLITE_IOERR_SHMMAP;
    }
    return real_of(file)->pMethods->xShmMap(real_of(file), region, size, extend, out);
}

static int on_shm_lock(sqlite3_file *file, int offset, int n, int flags)
{
    if (flags & SQLITE_SHM_LOCK && must_fail(VFS_SHM))
        return SQLITE_IOERR_SHMLOCK;
    return real_of(file)->pMethods->xShmLock(real_of(file), offset, n, flags);
}

static void on_shm_barrier(sqlite3_file *file)
{
    real_of(file)->pMethods->xShmBarrier(real_of(file));
}

static int on_shm_unmap(sqlite3_file *file, int must_delete)
{
    return real_of(file)->pMethods->xShmUnmap(real_of(file), must_delete);
}

static const sqlite3_io_methods methods = {
    .iVersion = 2, /* no memory map */
    .xClose = on_close,
    .xRead = on_read,
    .xWrite = on_write,
    .xTruncate = on_truncate,
    .xSync = on_sync,
    .xFileSize = on_size,
    .xLock = on_lock,
    .xUnlock = on_unlock,
    .xCheckReservedLock = on_check_lock,
    .xFileControl = on_control,
    .xSectorSize = on_sector_size,
    .xDeviceCharacteristics = on_characteristics,
    .xShmMap = on_shm_map,
    .xShmLock = on_shm_lock,
    .xShmBarrier = on_shm_barrier,
    .xShmUnmap = on_shm_unmap,
};

/* ---- the VFS ---- */

static int on_open(sqlite3_vfs *vfs, const char *path, sqlite3_file *base, int flags, int *out)
{
    struct file *file = (struct file *)base;
    bool is_new = path && access(path, F_OK) != 0;
    int code;

    (void)vfs;
    memset(file, 0, sizeof(*file));
    file->real = (sqlite3_file *)(file + 1);
    if (must_fail(VFS_OPEN))
        return SQLITE_CANTOPEN;
    code = state.real->xOpen(state.real, path, file->real, flags, out);
    if (code != SQLITE_OK)
        return code;
    file->base.pMethods = &methods;
    if (state.has_power_mode && path) {
        pthread_mutex_lock(&state.lock);
        file->disk = disk_of(path);
        if (is_new)
            add_entry(path, "");
        /* As the VFS below does: a journal or log syncs its directory with its first sync. */
        file->must_sync_directory = !(flags & SQLITE_OPEN_MAIN_DB);
        pthread_mutex_unlock(&state.lock);
    }
    return SQLITE_OK;
}

static int on_delete(sqlite3_vfs *vfs, const char *path, int sync)
{
    int code;

    (void)vfs;
    if (must_fail(VFS_DELETE))
        return SQLITE_IOERR_DELETE;
    if (!state.has_power_mode)
        return state.real->xDelete(state.real, path, 0);
    pthread_mutex_lock(&state.lock);
    code = delete_name(path, sync != 0);
    pthread_mutex_unlock(&state.lock);
    return code;
}

void vfs_install(void)
{
    static sqlite3_vfs vfs;

    state.real = sqlite3_vfs_find(NULL);
    if (!state.real)
        die("SQLite has no VFS");
    vfs = *state.real;
    vfs.pNext = NULL;
    vfs.zName = "fault";
    vfs.szOsFile += (int)sizeof(struct file);
    vfs.xOpen = on_open;
    vfs.xDelete = on_delete;
    if (sqlite3_vfs_register(&vfs, 1) != SQLITE_OK)
        die("cannot register");
}
