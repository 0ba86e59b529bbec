#include "server/store_lock_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"

#define SUFFIX "-server"
#define MAX_TEXT 4096
/* A process that was just killed may still hold the lock. */
#define WAIT_US 1000000
#define STEP_US 20000

struct hd_store_lock_file {
    int fd;
    char path[PATH_MAX + sizeof(SUFFIX)];
};

/* Resolves symbolic links, as SQLite does for the names of its companion files. */
static int set_path(struct hd_store_lock_file *hold, const char *database,
                    struct heddle_error *fault)
{
    if (!realpath(database, hold->path))
        return hd_error_set(fault, HD_EIO, "%.120s: %s", database, strerror(errno));
    memcpy(hold->path + strlen(hold->path), SUFFIX, sizeof(SUFFIX));
    return 0;
}

/* False: the holder has removed the file at its end, so a lock on it has no effect. */
static bool is_current(const struct hd_store_lock_file *hold)
{
    struct stat opened, named;

    return fstat(hold->fd, &opened) == 0 && lstat(hold->path, &named) == 0 &&
           opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

static void close_file(struct hd_store_lock_file *hold)
{
    if (hold->fd >= 0)
        (void)close(hold->fd);
    hold->fd = -1;
}

/* HD_EBUSY: another process has the lock; `fd` stays open to read the owner's identity. */
static int try_lock(struct hd_store_lock_file *hold, struct heddle_error *fault)
{
    for (;;) {
        /* Workers must not inherit the descriptor: the lock lasts until its last copy is closed. */
        hold->fd = open(hold->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (hold->fd < 0)
            return hd_error_set(fault, errno == EACCES ? HD_EACCESS : HD_EIO, "%.160s: %s",
                                hold->path, strerror(errno));
        if (flock(hold->fd, LOCK_EX | LOCK_NB) != 0) {
            if (errno == EWOULDBLOCK)
                return HD_EBUSY;
            return hd_error_set(fault, HD_EIO, "cannot lock %.160s: %s", hold->path,
                                strerror(errno));
        }
        if (is_current(hold))
            return 0;
        close_file(hold);
    }
}

static void read_holder(int fd, struct hd_server_identity *out)
{
    char text[MAX_TEXT];
    ssize_t len = pread(fd, text, sizeof(text), 0);

    hd_server_identity_read(hd_slice(text, len > 0 ? (size_t)len : 0), out);
}

static int refuse_locked_store(const struct hd_store_lock_file *hold, struct heddle_error *fault)
{
    struct hd_server_identity holder;
    char name[160];

    read_holder(hold->fd, &holder);
    hd_server_identity_describe(&holder, name, sizeof(name));
    return hd_error_set(fault, HD_EBUSY, "it is in use by %s", name);
}

int hd_store_lock_file_take(const char *database, const struct hd_server_identity *self,
                            struct hd_store_lock_file **out, struct heddle_error *fault)
{
    struct hd_store_lock_file *hold = hd_calloc(1, sizeof(*hold));
    int64_t until = hd_clock_monotonic_us() + WAIT_US;
    int err;

    if (!hold)
        return HD_ENOMEM;
    hold->fd = -1;
    err = set_path(hold, database, fault);
    if (!err)
        err = try_lock(hold, fault);
    while (err == HD_EBUSY && hd_clock_monotonic_us() < until) {
        close_file(hold);
        hd_clock_sleep_us(STEP_US);
        err = try_lock(hold, fault);
    }
    if (err == HD_EBUSY)
        err = refuse_locked_store(hold, fault);
    if (err) {
        close_file(hold);
        hd_free(hold);
        return err;
    }
    hd_store_lock_file_update(hold, self);
    *out = hold;
    return 0;
}

/* An error is only logged: the lock is valid without the text. */
void hd_store_lock_file_update(struct hd_store_lock_file *hold,
                               const struct hd_server_identity *self)
{
    struct hd_buf text;

    hd_buf_init(&text, MAX_TEXT);
    if (hd_server_identity_write(self, &text) || ftruncate(hold->fd, 0) != 0 ||
        pwrite(hold->fd, text.ptr, text.len, 0) != (ssize_t)text.len)
        hd_log(HD_LOG_WARN, "serve", "cannot write %s", hold->path);
    hd_buf_fini(&text);
}

static int refuse_missing_file(const struct hd_store_lock_file *hold, struct heddle_error *fault)
{
    if (errno == ENOENT)
        return HD_ENOTFOUND;
    return hd_error_set(fault, errno == EACCES ? HD_EACCESS : HD_EIO, "%.160s: %s", hold->path,
                        strerror(errno));
}

int hd_store_lock_file_holder(const char *database, struct hd_server_identity *out,
                              struct heddle_error *fault)
{
    struct hd_store_lock_file hold;
    int err = set_path(&hold, database, fault);

    if (err)
        return err;
    hold.fd = open(hold.path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (hold.fd < 0)
        return refuse_missing_file(&hold, fault);
    err = HD_ENOTFOUND;
    if (flock(hold.fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        read_holder(hold.fd, out);
        err = 0;
    }
    close_file(&hold);
    return err;
}

void hd_store_lock_file_release(struct hd_store_lock_file *hold)
{
    if (!hold)
        return;
    if (is_current(hold))
        (void)unlink(hold->path);
    close_file(hold);
    hd_free(hold);
}
