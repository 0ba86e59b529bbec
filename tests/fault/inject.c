/*
 * Faults below SQLite:
 *
 *   inject faults DIRECTORY   the n-th call of each kind fails, once or from then on,
 *                             n = 1, 2, 3 … until a session does not meet the fault; with
 *                             HEDDLE_FAULT_EVERY only every so many
 *   inject full DIRECTORY     a disk that is really full; the directory is on a small file system
 *
 * A call that fails reports the cause, no acknowledged data is lost, failed calls change nothing,
 * and after the fault the same store continues without being opened again.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "model.h"
#include "vfs.h"

enum { SESSION_OPS = 36, LOOK_EVERY = 6, COMPACT_EVERY = 25 };

struct fault {
    const char *name;
    enum vfs_kind kind;
    bool is_full;
    bool is_sticky;
    long n;
};

struct session {
    const struct fault *fault;
    char path[256];
    char url[300];
    struct worker worker;
    struct heddle *store;
    unsigned long met, failed_calls; /* in all sessions */
    uint64_t seed;
    bool has_failed;
};

static bool fail(struct session *s, const char *what, const char *detail)
{
    (void)fprintf(stderr, "FAILED: %s %ld%s, operation %u: %s: %s\n",
                  s->fault ? s->fault->name : "full", s->fault ? s->fault->n : 0,
                  s->fault && s->fault->is_sticky ? " and all later" : "", s->worker.count + 1,
                  what, detail);
    s->has_failed = true;
    return false;
}

/* The fault is over; how often it struck is added up. */
static void mend(struct session *s)
{
    s->met += (unsigned long)vfs_failures();
    vfs_fail(VFS_OPEN, 0, false, false);
}

static bool is_clear(struct session *s, const char *what, const struct heddle_error *error)
{
    bool is_full = s->fault && s->fault->is_full;
    char text[400];

    s->failed_calls++;
    if (vfs_failures() > 0 && error->text[0] &&
        (error->code == HEDDLE_EFULL || (!is_full && error->code == HEDDLE_EIO)))
        return true;
    (void)snprintf(text, sizeof(text), "%d %s (after %ld faults)", error->code, error->text,
                   vfs_failures());
    return fail(s, what, text);
}

/* ---- verification ---- */

/* May be called while the fault is active: then reading may fail, but not return wrong data. */
static bool look(struct session *s, unsigned conv)
{
    struct heddle_error error = {0};
    char *actual = dump_store(&s->worker, conv, s->store, &error), *wanted;
    bool is_same;

    if (!actual) {
        if (!is_clear(s, "reading", &error))
            return false;
        mend(s);
        actual = dump_store(&s->worker, conv, s->store, &error);
        if (!actual)
            return fail(s, "reading again", error.text);
    }
    wanted = dump_model(&s->worker, conv);
    is_same = strcmp(wanted, actual) == 0;
    if (!is_same) {
        fail(s, "verification", s->worker.convs[conv].thread);
        dump_diff(wanted, actual);
    }
    free(wanted);
    free(actual);
    return is_same;
}

static bool look_at_all(struct session *s)
{
    for (unsigned i = 0; i < CONVS; i++) {
        if (!look(s, i))
            return false;
    }
    return true;
}

/* Retention continues where it stopped, so it may be done already for each thread. */
static bool is_before_or_after(struct session *s, const struct op *op, unsigned conv)
{
    struct heddle_error error = {0};
    char *actual = dump_store(&s->worker, conv, s->store, &error), *wanted;
    struct conv before;
    bool is_same;

    if (!actual)
        return fail(s, "reading", error.text);
    wanted = dump_model(&s->worker, conv);
    is_same = strcmp(wanted, actual) == 0;
    free(wanted);
    if (!is_same && (op->kind == OP_KEEP_LATEST || op->kind == OP_DELETE_RUNS)) {
        conv_copy(&before, &s->worker.convs[conv]);
        op_model(op, &s->worker, 1u << conv);
        wanted = dump_model(&s->worker, conv);
        is_same = strcmp(wanted, actual) == 0;
        free(wanted);
        conv_fini(&s->worker.convs[conv]);
        s->worker.convs[conv] = before;
    }
    if (!is_same) {
        wanted = dump_model(&s->worker, conv);
        fail(s, "changed by a failed", op_name(op->kind));
        dump_diff(wanted, actual);
        free(wanted);
    }
    free(actual);
    return is_same;
}

static bool nothing_changed(struct session *s, const struct op *op)
{
    for (unsigned i = 0; i < CONVS; i++) {
        if (!is_before_or_after(s, op, i))
            return false;
    }
    return true;
}

/* ---- a session ---- */

static bool open_store(struct session *s)
{
    struct heddle_error error = {0};

    if (heddle_open(&s->store, s->url, &error) == 0)
        return true;
    if (!is_clear(s, "opening", &error))
        return false;
    mend(s);
    return heddle_open(&s->store, s->url, &error) == 0 || fail(s, "opening again", error.text);
}

static bool operate(struct session *s)
{
    struct heddle_error error = {0};
    struct call call;
    struct op op;
    bool is_well = true;

    op_make(&s->worker, &op);
    call_make(&call, &op, &s->worker);
    if (call_run(&call, s->store, &error)) {
        is_well = is_clear(s, op_name(op.kind), &error);
        mend(s);
        is_well = is_well && nothing_changed(s, &op);
        if (is_well && call_run(&call, s->store, &error))
            is_well = fail(s, "the same again", error.text);
    }
    op_model(&op, &s->worker, ~0u);
    op_fini(&op);
    s->worker.count++;
    return is_well;
}

static bool compact(struct session *s)
{
    struct heddle_error error = {0};

    if (heddle_compact(s->store, &error) == 0)
        return true;
    if (!is_clear(s, "compacting", &error))
        return false;
    mend(s);
    return heddle_compact(s->store, &error) == 0 || fail(s, "compacting again", error.text);
}

static bool check(struct session *s)
{
    struct heddle_error error = {0};

    if (heddle_check(s->store, &error) == 0)
        return true;
    if (!is_clear(s, "checking", &error))
        return false;
    mend(s);
    return heddle_check(s->store, &error) == 0 || fail(s, "checking again", error.text);
}

static bool work(struct session *s)
{
    bool is_well = true;

    for (unsigned i = 1; is_well && i <= SESSION_OPS; i++) {
        is_well = operate(s);
        if (is_well && i % LOOK_EVERY == 0)
            is_well = look(s, i / LOOK_EVERY % CONVS);
        if (is_well && i % COMPACT_EVERY == 0)
            is_well = compact(s);
    }
    return is_well && check(s);
}

static void remove_files(const struct session *s)
{
    static const char *const tails[] = {"", "-wal", "-shm", "-journal"};
    char path[300];

    for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
        (void)snprintf(path, sizeof(path), "%s%s", s->path, tails[i]);
        unlink(path);
    }
}

/* False: failed. *was_met: the fault struck. */
static bool run_session(struct session *s, bool *was_met)
{
    unsigned long before = s->met;
    bool is_well;

    remove_files(s);
    worker_init(&s->worker, 0, s->seed);
    s->worker.is_small = true;
    vfs_fail(s->fault->kind, s->fault->n, s->fault->is_sticky, s->fault->is_full);
    is_well = open_store(s);
    if (is_well) {
        is_well = work(s);
        heddle_close(s->store); /* may fail too; acknowledged data stays */
        mend(s);
        if (is_well && open_store(s)) {
            is_well = look_at_all(s) && check(s);
            heddle_close(s->store);
        }
    }
    worker_fini(&s->worker);
    *was_met = s->met > before;
    return is_well && !s->has_failed;
}

static bool run_faults(struct session *s)
{
    static const struct fault faults[] = {
        {"open", VFS_OPEN, false, false, 0},     {"read", VFS_READ, false, false, 0},
        {"write", VFS_WRITE, false, false, 0},   {"full", VFS_WRITE, true, false, 0},
        {"sync", VFS_SYNC, false, false, 0},     {"truncate", VFS_TRUNCATE, false, false, 0},
        {"lock", VFS_LOCK, false, false, 0},     {"shared memory", VFS_SHM, false, false, 0},
        {"delete", VFS_DELETE, false, false, 0}, {"size", VFS_SIZE, false, false, 0},
    };
    const char *only = getenv("HEDDLE_FAULT_ONLY");
    bool is_well = true;

    for (size_t i = 0; is_well && i < sizeof(faults) / sizeof(faults[0]) * 2; i++) {
        struct fault fault = faults[i / 2];
        unsigned long met = s->met, calls = s->failed_calls;
        long sessions = 0;
        bool was_met = true;

        if (only && strcmp(only, fault.name) != 0)
            continue;
        fault.is_sticky = i % 2;
        s->fault = &fault;
        for (fault.n = 1; is_well && was_met; fault.n += fault_every()) {
            is_well = run_session(s, &was_met);
            sessions++;
        }
        (void)printf("%s%s: %ld sessions, %lu faults, %lu failed calls\n", fault.name,
                     fault.is_sticky ? " from then on" : "", sessions, s->met - met,
                     s->failed_calls - calls);
        (void)fflush(stdout);
        s->fault = NULL;
    }
    return is_well;
}

/* Does a session with this seed have every kind of operation? */
static bool has_all_kinds(uint64_t seed)
{
    struct worker worker;
    unsigned seen = 0;

    worker_init(&worker, 0, seed);
    worker.is_small = true;
    for (int i = 0; i < SESSION_OPS; i++) {
        struct op op;

        op_make(&worker, &op);
        if (op.kind == OP_COPY_REFUSED || (op.touched && worker.convs[op.conv].exists))
            seen |= 1u << op.kind;
        op_model(&op, &worker, ~0u);
        op_fini(&op);
        worker.count++;
    }
    worker_fini(&worker);
    return seen == (1u << OP_KINDS) - 1;
}

/* ---- a full disk ---- */

/* Takes up all space but a little, so that the store meets the end soon. */
static bool blow_up(struct session *s, const char *balloon)
{
    static char block[4096];
    int fd = open(balloon, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    long blocks = 0;

    if (fd < 0)
        return fail(s, "balloon", balloon);
    while (write(fd, block, sizeof(block)) == (ssize_t)sizeof(block))
        blocks++;
    if (ftruncate(fd, (blocks - 40) * (off_t)sizeof(block)) != 0)
        blocks = 0;
    close(fd);
    return blocks > 40 || fail(s, "balloon", "the file system is too small");
}

/* Works until there is no space left, then with space again. */
static bool meet_the_end(struct session *s, const char *balloon)
{
    struct heddle_error error = {0};
    bool is_well = blow_up(s, balloon);

    for (int i = 0; is_well; i++) {
        struct call call;
        struct op op;
        int err;

        op_make(&s->worker, &op);
        call_make(&call, &op, &s->worker);
        err = call_run(&call, s->store, &error);
        if (err) {
            is_well = err == HEDDLE_EFULL || fail(s, "a full disk", error.text);
            is_well = is_well && nothing_changed(s, &op);
            unlink(balloon);
            s->failed_calls++;
            if (is_well && call_run(&call, s->store, &error))
                is_well = fail(s, "with space again", error.text);
        }
        op_model(&op, &s->worker, ~0u);
        op_fini(&op);
        s->worker.count++;
        if (err)
            break;
        if (i > 20000)
            is_well = fail(s, "a full disk", "never met");
    }
    return is_well;
}

static bool run_full(struct session *s, const char *directory)
{
    char balloon[300];
    bool is_well = true;

    (void)snprintf(balloon, sizeof(balloon), "%s/balloon", directory);
    worker_init(&s->worker, 0, 2);
    if (!open_store(s))
        return false;
    for (int i = 0; is_well && i < 40; i++) {
        is_well = meet_the_end(s, balloon) && look_at_all(s);
        if (is_well && i % 5 == 4) {
            heddle_close(s->store);
            if (!open_store(s))
                return false;
            is_well = look_at_all(s) && check(s);
        }
    }
    heddle_close(s->store);
    worker_fini(&s->worker);
    remove_files(s);
    (void)printf("full disk: met %lu times\n", s->failed_calls);
    return is_well;
}

int main(int argc, char **argv)
{
    static struct session s;
    bool is_well;

    if (argc != 3 || (strcmp(argv[1], "faults") != 0 && strcmp(argv[1], "full") != 0)) {
        (void)fprintf(stderr, "inject faults|full DIRECTORY\n");
        return 2;
    }
    hd_log_set_level(HD_LOG_ERROR);
    (void)snprintf(s.path, sizeof(s.path), "%s/inject.db", argv[2]);
    (void)snprintf(s.url, sizeof(s.url), "sqlite:%s?timeout=1", s.path);
    s.seed = 1;
    remove_files(&s);
    if (strcmp(argv[1], "full") == 0) {
        is_well = run_full(&s, argv[2]);
    } else {
        vfs_install();
        while (!has_all_kinds(s.seed))
            s.seed++;
        is_well = run_faults(&s);
        if (is_well)
            remove_files(&s);
    }
    return !is_well;
}
