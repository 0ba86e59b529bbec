/*
 * Every operation with every allocation failing in turn:
 *
 *   nomem DIRECTORY
 *
 * n = 1, 2, 3 … until the operation makes fewer than n allocations, including SQLite's own. A call
 * that fails returns HEDDLE_ENOMEM and has changed nothing, and the same call then succeeds on the
 * same store. The sanitizer finds leaks.
 */
#include <fcntl.h>
#include <semaphore.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/log.h"
#include "model.h"
#include "store/codec/canon.h"
#include "store/codec/split.h"

enum { PREPARED_OPS = 24 };

/* When all later ones fail too it is mostly the first that counts: some values of n will do. */
enum { STICKY_STRIDE = 7 };

struct test {
    const char *url;
    const char *path; /* NULL: not a file */
    const char *doing;
    long n;
    bool is_sticky;
    struct worker worker;
    struct heddle *store;
    char *snapshot; /* of the file when it was prepared */
    size_t snapshot_size;
    unsigned long failures, forgiven; /* calls that failed, or succeeded all the same */
    bool has_failed;
};

static bool fail(struct test *t, const char *what, const char *detail)
{
    (void)fprintf(stderr, "FAILED: %s, %s, allocation %ld%s: %s: %s\n", t->url, t->doing, t->n,
                  t->is_sticky ? " and all later" : "", what, detail);
    t->has_failed = true;
    return false;
}

static long stride(const struct test *t)
{
    return t->is_sticky ? STICKY_STRIDE : fault_every();
}

/* ---- SQLite's memory ---- */

/* SQLite needs the size of a block: it is stored before it. */
#define HEAD 16

static void *sqlite_malloc(int size)
{
    char *block = hd_malloc((size_t)size + HEAD);

    if (!block)
        return NULL;
    memcpy(block, &size, sizeof(size));
    return block + HEAD;
}

static void sqlite_free(void *ptr)
{
    if (ptr)
        hd_free((char *)ptr - HEAD);
}

static void *sqlite_realloc(void *ptr, int size)
{
    char *block = hd_realloc(ptr ? (char *)ptr - HEAD : NULL, (size_t)size + HEAD);

    if (!block)
        return NULL;
    memcpy(block, &size, sizeof(size));
    return block + HEAD;
}

static int sqlite_size(void *ptr)
{
    int size = 0;

    if (ptr)
        memcpy(&size, (char *)ptr - HEAD, sizeof(size));
    return size;
}

static int sqlite_round(int size)
{
    return (size + 7) & ~7;
}

static int sqlite_start(void *arg)
{
    (void)arg;
    return SQLITE_OK;
}

static void sqlite_stop(void *arg)
{
    (void)arg;
}

static bool route_sqlite(void)
{
    static const sqlite3_mem_methods methods = {
        .xMalloc = sqlite_malloc,
        .xFree = sqlite_free,
        .xRealloc = sqlite_realloc,
        .xSize = sqlite_size,
        .xRoundup = sqlite_round,
        .xInit = sqlite_start,
        .xShutdown = sqlite_stop,
    };

    /* Without the little pools that would hide allocations from us. */
    return sqlite3_config(SQLITE_CONFIG_MALLOC, &methods) == SQLITE_OK &&
           sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0) == SQLITE_OK &&
           sqlite3_config(SQLITE_CONFIG_PAGECACHE, NULL, 0, 0) == SQLITE_OK;
}

/* ---- the store before each try ---- */

static void remove_files(const char *path)
{
    static const char *const tails[] = {"", "-wal", "-shm", "-journal"};
    char name[4096 + 16];

    for (size_t i = 0; path && i < sizeof(tails) / sizeof(tails[0]); i++) {
        (void)snprintf(name, sizeof(name), "%s%s", path, tails[i]);
        unlink(name);
    }
}

static bool must_open(struct test *t)
{
    struct heddle_error error;

    return heddle_open(&t->store, t->url, &error) == 0 || fail(t, "opening", error.text);
}

static bool do_next(struct test *t, bool is_called)
{
    struct heddle_error error = {0};
    struct call call;
    struct op op;
    bool is_well = true;

    op_make(&t->worker, &op);
    call_make(&call, &op, &t->worker);
    if (is_called && call_run(&call, t->store, &error))
        is_well = fail(t, "preparing", error.text);
    op_model(&op, &t->worker, ~0u);
    op_fini(&op);
    t->worker.count++;
    return is_well;
}

/* All operations before `number`. A store that is not a file is filled again. */
static bool prepare(struct test *t, uint32_t number)
{
    bool must_call = !t->snapshot;
    bool is_well;

    remove_files(t->path);
    if (t->snapshot && t->path) {
        int fd = open(t->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

        if (fd < 0 || write(fd, t->snapshot, t->snapshot_size) != (ssize_t)t->snapshot_size)
            return fail(t, "preparing", "cannot write the file");
        close(fd);
    }
    worker_fini(&t->worker);
    worker_init(&t->worker, 0, 1);
    t->worker.is_small = true;
    is_well = must_open(t);
    while (is_well && t->worker.count + 1 < number)
        is_well = do_next(t, must_call);
    return is_well;
}

/* Remembers the file as it is after it was closed. */
static bool take_snapshot(struct test *t)
{
    FILE *file = fopen(t->path, "rb");
    long size;

    if (!file || fseek(file, 0, SEEK_END) != 0 || (size = ftell(file)) <= 0)
        return fail(t, "snapshot", t->path);
    rewind(file);
    t->snapshot = must_alloc(NULL, (size_t)size);
    t->snapshot_size = fread(t->snapshot, 1, (size_t)size, file);
    (void)fclose(file);
    return t->snapshot_size == (size_t)size || fail(t, "snapshot", t->path);
}

static bool matches_model(struct test *t, const char *when)
{
    bool is_well = true;

    for (unsigned i = 0; is_well && i < CONVS; i++) {
        struct heddle_error error = {0};
        char *wanted = dump_model(&t->worker, i);
        char *actual = dump_store(&t->worker, i, t->store, &error);

        if (!actual || strcmp(wanted, actual) != 0) {
            is_well = fail(t, when, actual ? t->worker.convs[i].thread : error.text);
            dump_diff(wanted, actual ? actual : "");
        }
        free(wanted);
        free(actual);
    }
    return is_well;
}

/*
 * ---- operations that write: each from the same state, until it makes fewer than n allocations
 * ----
 */

static bool is_clean(struct test *t, int err, const struct heddle_error *error)
{
    char text[300];

    if (!err) {
        t->forgiven++;
        return true;
    }
    t->failures++;
    if (err == HEDDLE_ENOMEM && error->code == err && error->text[0])
        return true;
    (void)snprintf(text, sizeof(text), "%d %s", err, error->text);
    return fail(t, "not the right error", text);
}

/* Goes thread by thread and in two steps: may be done in part, and calling again completes it. */
static bool may_be_done(const struct op *op)
{
    return op->kind == OP_KEEP_LATEST || op->kind == OP_DELETE_RUNS;
}

static bool try_write(struct test *t, const struct op *op, bool *was_met)
{
    struct heddle_error error = {0};
    struct call call;
    bool is_well;
    int err;

    call_make(&call, op, &t->worker);
    hd_alloc_fail_at(t->n, t->is_sticky);
    err = call_run(&call, t->store, &error);
    *was_met = hd_alloc_fail_at(0, 0) >= t->n;
    if (!*was_met && err)
        return fail(t, "failed without a reason", error.text);
    is_well = !*was_met || is_clean(t, err, &error);
    if (is_well && err && !may_be_done(op))
        is_well = matches_model(t, "changed by what failed");
    if (is_well && err && call_run(&call, t->store, &error))
        is_well = fail(t, "the same again", error.text);
    op_model(op, &t->worker, ~0u);
    return is_well && matches_model(t, "afterwards");
}

static bool try_each(struct test *t, uint32_t number)
{
    bool is_well = true, was_met = true;

    for (t->n = 1; is_well && was_met; t->n += stride(t)) {
        struct op op;

        is_well = prepare(t, number);
        if (!is_well)
            break;
        op_make(&t->worker, &op);
        t->doing = op_name(op.kind);
        is_well = try_write(t, &op, &was_met);
        op_fini(&op);
        heddle_close(t->store);
    }
    return is_well;
}

/* The first operation of each kind that has something to do, after a few others. */
static void find_kinds(uint32_t found[OP_KINDS])
{
    struct worker worker;

    memset(found, 0, OP_KINDS * sizeof(*found));
    worker_init(&worker, 0, 1);
    worker.is_small = true;
    for (uint32_t number = 1; number < 300; number++) {
        struct op op;
        bool is_work;

        op_make(&worker, &op);
        is_work = op.kind == OP_COPY_REFUSED || (op.touched && worker.convs[op.conv].point_count);
        if (number >= 12 && found[op.kind] == 0 && is_work)
            found[op.kind] = number;
        op_model(&op, &worker, ~0u);
        op_fini(&op);
        worker.count++;
    }
    worker_fini(&worker);
}

static bool test_writes(struct test *t)
{
    uint32_t found[OP_KINDS];
    bool is_well = true;

    find_kinds(found);
    for (int kind = 0; is_well && kind < OP_KINDS; kind++) {
        unsigned long failures = t->failures, forgiven = t->forgiven;

        t->doing = op_name((enum op_kind)kind);
        t->n = 0;
        if (!found[kind])
            return fail(t, "no such operation", "choose another seed");
        if (t->path) {
            is_well = prepare(t, found[kind]);
            heddle_close(t->store);
            is_well = is_well && take_snapshot(t);
        }
        for (int sticky = 0; is_well && sticky < 2; sticky++) {
            t->is_sticky = sticky;
            is_well = try_each(t, found[kind]);
        }
        free(t->snapshot);
        t->snapshot = NULL;
        (void)printf("%s %s: %lu failed, %lu succeeded all the same\n", t->url,
                     op_name((enum op_kind)kind), t->failures - failures, t->forgiven - forgiven);
    }
    return is_well;
}

/* ---- operations that read ---- */

static struct heddle_bytes text(const char *s)
{
    return (struct heddle_bytes){s, strlen(s)};
}

static const struct conv *longest(const struct test *t)
{
    const struct conv *conv = &t->worker.convs[0];

    for (unsigned i = 1; i < SHARED; i++) {
        if (t->worker.convs[i].point_count > conv->point_count)
            conv = &t->worker.convs[i];
    }
    return conv;
}

static int do_get(struct test *t, struct heddle_error *error)
{
    struct heddle_key key = {.thread = {.id = text(longest(t)->thread)}};
    struct heddle_tuple *tuple;
    int err = heddle_get(t->store, &key, &tuple, error);

    if (!err)
        heddle_tuple_free(tuple);
    return err;
}

static int list_all(struct test *t, const struct heddle_query *query, struct heddle_error *error)
{
    const struct heddle_tuple *tuple;
    struct heddle_list *list;
    int err = heddle_list_open(t->store, query, &list, error);

    if (err)
        return err;
    while (!err)
        err = heddle_list_next(list, &tuple, error);
    heddle_list_close(list);
    return err == HEDDLE_ENOTFOUND ? 0 : err;
}

static int do_list(struct test *t, struct heddle_error *error)
{
    struct heddle_bytes thread = text(longest(t)->thread);
    struct heddle_query query = {.thread = &thread, .limit = -1};

    return list_all(t, &query, error);
}

static int do_list_everything(struct test *t, struct heddle_error *error)
{
    struct heddle_query query = {
        .limit = -1, .filter = text("{\"source\":\"loop\"}"), .flags = HEDDLE_LIST_HEADERS};

    return list_all(t, &query, error);
}

static int do_history(struct test *t, struct heddle_error *error)
{
    const struct conv *conv = longest(t);
    struct heddle_key key = {.thread = {.id = text(conv->thread)},
                             .ns = text(conv->points[conv->point_count - 1].ns),
                             .id = text(conv->points[conv->point_count - 1].id)};
    struct heddle_bytes channels[] = {text("messages"), text("files")};
    struct heddle_histories *histories;
    int err = heddle_delta_history(t->store, &key, channels, 2, &histories, error);

    if (!err)
        heddle_histories_free(histories);
    return err;
}

static int do_threads(struct test *t, struct heddle_error *error)
{
    struct heddle_threads *threads;
    int err = heddle_list_threads(t->store, text(""), text(""), 100, &threads, error);

    if (!err)
        heddle_threads_free(threads);
    return err;
}

static int do_usage(struct test *t, struct heddle_error *error)
{
    struct heddle_thread thread = {.id = text(longest(t)->thread)};
    struct heddle_usage usage;

    return heddle_thread_usage(t->store, &thread, &usage, error);
}

static int do_check(struct test *t, struct heddle_error *error)
{
    return heddle_check(t->store, error);
}

static int do_compact(struct test *t, struct heddle_error *error)
{
    return heddle_compact(t->store, error);
}

static int do_open(struct test *t, struct heddle_error *error)
{
    struct heddle *second;
    int err = heddle_open(&second, t->url, error);

    if (!err)
        heddle_close(second);
    return err;
}

/* The file is there, but not yet a store. */
static int do_create(struct test *t, struct heddle_error *error)
{
    char url[320];
    struct heddle *second;
    int err;

    if (!t->path)
        return 0;
    (void)snprintf(url, sizeof(url), "%s-new", t->url);
    err = heddle_open(&second, url, error);
    if (!err) {
        heddle_close(second);
        remove_files(url + strlen("sqlite:"));
    } else if (access(url + strlen("sqlite:"), F_OK) == 0) {
        /*
         * A foreseeable failure leaves nothing; lack of memory is not, but the next attempt must
         * work.
         */
        return err;
    }
    return err;
}

static const struct {
    const char *name;
    int (*fn)(struct test *t, struct heddle_error *error);
} reads[] = {
    {"get", do_get},         {"list", do_list},       {"list everything", do_list_everything},
    {"history", do_history}, {"threads", do_threads}, {"usage", do_usage},
    {"check", do_check},     {"compact", do_compact}, {"open", do_open},
    {"create", do_create},
};

static bool try_read(struct test *t, int (*fn)(struct test *t, struct heddle_error *error))
{
    bool was_met = true, is_well = true;

    for (t->n = 1; is_well && was_met; t->n += stride(t)) {
        struct heddle_error error = {0};
        int err;

        hd_alloc_fail_at(t->n, t->is_sticky);
        err = fn(t, &error);
        was_met = hd_alloc_fail_at(0, 0) >= t->n;
        if (!was_met && err)
            is_well = fail(t, "failed without a reason", error.text);
        else if (was_met)
            is_well = is_clean(t, err, &error);
        if (is_well && err && fn(t, &error))
            is_well = fail(t, "the same again", error.text);
        /* The second call has filled the caches that the first could not: forget them. */
        if (is_well && t->path && t->n % 8 == 0) {
            heddle_close(t->store);
            is_well = must_open(t);
        }
    }
    return is_well;
}

static bool test_reads(struct test *t)
{
    bool is_well = prepare(t, PREPARED_OPS);

    for (size_t i = 0; is_well && i < sizeof(reads) / sizeof(reads[0]); i++) {
        unsigned long failures = t->failures, forgiven = t->forgiven;

        t->doing = reads[i].name;
        for (int sticky = 0; is_well && sticky < 2; sticky++) {
            t->is_sticky = sticky;
            is_well = try_read(t, reads[i].fn);
        }
        (void)printf("%s %s: %lu failed, %lu succeeded all the same\n", t->url, reads[i].name,
                     t->failures - failures, t->forgiven - forgiven);
    }
    is_well = is_well && matches_model(t, "after reading");
    heddle_close(t->store);
    return is_well;
}

/* ---- groups ---- */

struct answer {
    sem_t *done;
    sem_t *gate; /* waits here before it returns, which keeps the lane's worker busy */
    int calls;
    int code;
};

static void on_done(void *arg, int code, const struct heddle_error *error)
{
    struct answer *answer = arg;
    sem_t *gate = answer->gate; /* the answer may be gone when `done` is posted */

    (void)error;
    answer->calls++;
    answer->code = code;
    sem_post(answer->done);
    if (gate)
        sem_wait(gate);
}

/* A group of two: while the worker is held up in a callback both are queued. */
static bool try_group(struct test *t, struct call *first, struct call *second, bool *was_met)
{
    struct heddle_checkpoint opener = {.thread = {.id = text("opener")},
                                       .id = text("1"),
                                       .checkpoint = text("{}"),
                                       .metadata = text("{}"),
                                       .new_versions = text("{}")};
    static sem_t done, gate; /* a callback may still be leaving sem_post() or sem_wait() */
    struct answer answers[] = {{&done, &gate, 0, 0}, {&done, NULL, 0, 1}, {&done, NULL, 0, 1}};
    int queued[2];

    sem_init(&done, 0, 0);
    sem_init(&gate, 0, 0);
    if (heddle_put_async(t->store, &opener, on_done, &answers[0]))
        return fail(t, "opener", "not queued");
    sem_wait(&done);
    hd_alloc_fail_at(t->n, t->is_sticky);
    queued[0] = heddle_put_async(t->store, &first->put, on_done, &answers[1]);
    queued[1] = heddle_put_writes_async(t->store, &second->writes, on_done, &answers[2]);
    sem_post(&gate);
    for (int i = 0; i < 2; i++) {
        if (queued[i] == 0)
            sem_wait(&done);
    }
    *was_met = hd_alloc_fail_at(0, 0) >= t->n;
    for (int i = 0; i < 2; i++) {
        int code = queued[i] ? queued[i] : answers[i + 1].code;

        if (answers[i + 1].calls != (queued[i] == 0))
            return fail(t, "answers", "not exactly one");
        if (code && (code != HEDDLE_ENOMEM || !*was_met))
            return fail(t, "group", heddle_error_text(code));
        t->failures += code != 0;
        if (code == 0)
            op_model(i ? second->op : first->op, &t->worker, ~0u);
    }
    return true;
}

/* A put into a conversation and a write into the same or another one. */
static bool make_pair(struct test *t, struct op ops[2], bool is_same)
{
    bool has[2] = {false, false};

    for (int i = 0; i < 400 && !(has[0] && has[1]); i++) {
        struct op op;
        int which;

        op_make(&t->worker, &op);
        t->worker.count++; /* its choices, not its effects */
        which = op.kind == OP_WRITES;
        if ((op.kind == OP_PUT || op.kind == OP_WRITES) && !has[which] &&
            !(has[!which] && (ops[!which].conv == op.conv) != is_same)) {
            ops[which] = op;
            has[which] = true;
        } else {
            op_fini(&op);
        }
    }
    if (has[0] && has[1])
        return true;
    return fail(t, "group", "no pair of operations found");
}

static bool test_group(struct test *t, bool is_same)
{
    bool is_well = true, was_met = true;
    unsigned long failures = t->failures;

    t->doing = is_same ? "group on one thread" : "group on two threads";
    for (t->n = 1; is_well && was_met; t->n++) {
        struct call calls[2];
        struct op ops[2];

        is_well = prepare(t, PREPARED_OPS) && make_pair(t, ops, is_same);
        if (!is_well)
            break;
        for (int i = 0; i < 2; i++)
            call_make(&calls[i], &ops[i], &t->worker);
        is_well =
            try_group(t, &calls[0], &calls[1], &was_met) && matches_model(t, "after the group");
        /* Again, whatever came of it: both can be repeated. */
        for (int i = 0; is_well && i < 2; i++) {
            struct heddle_error error;

            if (call_run(&calls[i], t->store, &error))
                is_well = fail(t, "the same again", error.text);
            op_model(&ops[i], &t->worker, ~0u);
        }
        is_well = is_well && matches_model(t, "afterwards");
        op_fini(&ops[0]);
        op_fini(&ops[1]);
        heddle_close(t->store);
    }
    (void)printf("%s %s: %lu failed\n", t->url, t->doing, t->failures - failures);
    return is_well;
}

static void count_up(void *arg)
{
    sem_post(arg);
}

static bool test_defer(struct test *t)
{
    bool was_met = true, is_well = prepare(t, 2);
    sem_t done;

    t->doing = "defer";
    sem_init(&done, 0, 0);
    for (t->n = 1; is_well && was_met; t->n++) {
        int err;

        hd_alloc_fail_at(t->n, 0);
        err = heddle_defer(t->store, count_up, &done);
        was_met = hd_alloc_fail_at(0, 0) >= t->n;
        if (err == 0)
            sem_wait(&done);
        else if (err != HEDDLE_ENOMEM || !was_met)
            is_well = fail(t, "defer", heddle_error_text(err));
        t->failures += err != 0;
    }
    heddle_close(t->store);
    sem_destroy(&done);
    return is_well;
}

/* ---- pure functions ---- */

struct pure {
    const char *name;
    int (*fn)(struct hd_slice input, struct hd_buf *out);
    struct hd_slice input;
};

static int do_validate(struct hd_slice input, struct hd_buf *out)
{
    (void)out;
    return hd_canon_validate(input, NULL);
}

static int do_render(struct hd_slice input, struct hd_buf *out)
{
    return hd_canon_render(out, input, NULL);
}

static int do_from_json(struct hd_slice input, struct hd_buf *out)
{
    return hd_canon_from_json(out, input, NULL);
}

static int with_writer(struct hd_slice input, struct hd_buf *out,
                       int (*fn)(struct hd_jw *, hd_json_val, struct heddle_error *))
{
    struct hd_json json = {0};
    struct hd_jw jw;
    int err = hd_json_parse(&json, input, NULL);

    if (err)
        return err;
    hd_jw_init(&jw, out);
    err = fn(&jw, hd_json_root(&json), NULL);
    if (!err)
        err = hd_jw_finish(&jw);
    hd_json_fini(&json);
    return err;
}

static int do_message(struct hd_slice input, struct hd_buf *out)
{
    return with_writer(input, out, hd_canon_write_message);
}

static int do_command(struct hd_slice input, struct hd_buf *out)
{
    return with_writer(input, out, hd_canon_write_command);
}

static int do_split_as(struct hd_slice type, struct hd_slice input)
{
    struct hd_pieces pieces;
    int err;

    hd_pieces_init(&pieces);
    err = hd_split(type, input, &pieces);
    hd_pieces_fini(&pieces);
    return err;
}

static int do_split_json(struct hd_slice input, struct hd_buf *out)
{
    (void)out;
    return do_split_as(HD_S("json"), input);
}

static int do_split_bytes(struct hd_slice input, struct hd_buf *out)
{
    (void)out;
    return do_split_as(HD_S("bin"), input);
}

static int do_split_msgpack(struct hd_slice input, struct hd_buf *out)
{
    (void)out;
    return do_split_as(HD_S("msgpack"), input);
}

/* Until it makes fewer than n allocations: HD_ENOMEM or the very same result. */
static bool try_pure(struct test *t, const struct pure *pure)
{
    struct hd_buf wanted, got;
    bool was_met = true, is_well = true;

    t->doing = pure->name;
    hd_buf_init(&wanted, 1 << 20);
    if (pure->fn(pure->input, &wanted))
        is_well = fail(t, "without faults", "fails");
    for (t->n = 1; is_well && was_met; t->n++) {
        int err;

        hd_buf_init(&got, 1 << 20);
        hd_alloc_fail_at(t->n, t->is_sticky);
        err = pure->fn(pure->input, &got);
        was_met = hd_alloc_fail_at(0, 0) >= t->n;
        if (err ? err != HEDDLE_ENOMEM || !was_met
                : !hd_slice_eq(hd_buf_slice(&wanted), hd_buf_slice(&got)))
            is_well = fail(t, "answer", err ? heddle_error_text(err) : "other bytes");
        t->failures += err != 0;
        hd_buf_fini(&got);
    }
    hd_buf_fini(&wanted);
    return is_well;
}

static bool test_pure(struct test *t)
{
    static char list[6000], packed[3000];
    size_t len = (size_t)snprintf(list, sizeof(list), "[");
    static const char canon[] =
        "{\"messages\":[{\"$\":\"msg\",\"type\":\"human\",\"content\":\"hello\",\"id\":\"1\"}],"
        "\"n\":[1,2,{\"a\":null}]}";
    static const char message[] =
        "{\"role\":\"assistant\",\"content\":\"x\",\"tool_calls\":[{\"id\":\"c\",\"type\":"
        "\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"a\\\": 1}\"}}],\"more\":1}";
    static const char command[] = "{\"update\":{\"a\":[1]},\"resume\":{\"$\":2},"
                                  "\"goto\":[\"x\",{\"node\":\"y\",\"input\":3}]}";
    static const char plain[] = "{\"$\":1,\"big\":12345678901234567890,\"list\":[{\"$\":{}}]}";
    struct pure cases[] = {
        {"validate", do_validate, hd_slice(canon, sizeof(canon) - 1)},
        {"render", do_render, hd_slice(canon, sizeof(canon) - 1)},
        {"from_json", do_from_json, hd_slice(plain, sizeof(plain) - 1)},
        {"write_message", do_message, hd_slice(message, sizeof(message) - 1)},
        {"write_command", do_command, hd_slice(command, sizeof(command) - 1)},
        {"split json", do_split_json, {0}},
        {"split bytes", do_split_bytes, {0}},
        {"split msgpack", do_split_msgpack, {0}},
    };
    bool is_well = true;

    for (int i = 0; i < 30; i++)
        len += (size_t)snprintf(list + len, sizeof(list) - len, "%s{\"content\":\"%0150d\"}",
                                i ? "," : "", i);
    len += (size_t)snprintf(list + len, sizeof(list) - len, "]");
    cases[5].input = cases[6].input = hd_slice(list, len);
    packed[0] = (char)0xdc; /* an array of 20 strings of 100 bytes */
    packed[2] = 20;
    for (size_t i = 0; i < 20; i++) {
        packed[3 + i * 102] = (char)0xd9;
        packed[4 + i * 102] = 100;
        memset(packed + 5 + i * 102, 'a' + (int)i, 100);
    }
    cases[7].input = hd_slice(packed, 3 + (size_t)20 * 102);
    t->url = "pure";
    for (size_t i = 0; is_well && i < sizeof(cases) / sizeof(cases[0]) * 2; i++) {
        t->is_sticky = i % 2;
        is_well = try_pure(t, &cases[i / 2]);
    }
    return is_well;
}

/* ---- the program ---- */

int main(int argc, char **argv)
{
    static struct test t;
    char path[256], url[300];
    const char *urls[] = {"memory:", url, "sqlite::memory:"};
    bool is_well = true;

    if (argc != 2) {
        (void)fprintf(stderr, "nomem DIRECTORY\n");
        return 2;
    }
    if (!route_sqlite())
        return 2;
    hd_log_set_level(HD_LOG_OFF);
    (void)snprintf(path, sizeof(path), "%s/nomem.db", argv[1]);
    (void)snprintf(url, sizeof(url), "sqlite:%s", path);
    for (size_t i = 0; is_well && i < sizeof(urls) / sizeof(urls[0]); i++) {
        t.url = urls[i];
        t.path = i == 1 ? path : NULL;
        is_well = test_reads(&t) && test_writes(&t) && test_group(&t, true) &&
                  test_group(&t, false) && test_defer(&t);
    }
    is_well = is_well && test_pure(&t);
    worker_fini(&t.worker);
    free(t.snapshot);
    remove_files(path);
    (void)printf("failing allocator: %lu calls failed cleanly, %lu succeeded all the same%s\n",
                 t.failures, t.forgiven, is_well ? "" : ": FAILED");
    return !is_well;
}
