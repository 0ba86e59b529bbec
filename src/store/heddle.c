/* The public API: checks the arguments and calls the store. */
#include <heddle.h>

#include "base/alloc.h"
#include "store/allowance.h"
#include "store/codec/delta.h"
#include "store/lane.h"
#include "store/list_append.h"
#include "store/prune.h"
#include "store/rows.h"
#include "store/scan.h"

/* The public struct is the store itself; callers never see inside. */
struct heddle {
    struct hd_store store;
};

struct hd_store *hd_store_of(struct heddle *heddle)
{
    return &heddle->store;
}

/* callers that wait for a commit share it: more threads make larger groups */
enum { POOL_SIZE = 16 };

/* Clears the caller's struct, which may be NULL. */
static struct heddle_error *call_enter(struct heddle_error *error)
{
    if (error)
        memset(error, 0, sizeof(*error));
    return error;
}

/* A failure always has a text, at least that of its code; a success clears it. */
static int call_leave(int err, struct heddle_error *error)
{
    if (!error)
        return err;
    if (err) {
        hd_error_set(error, err, "%s", hd_error_text(err));
        error->code = err;
    } else {
        memset(error, 0, sizeof(*error));
    }
    return err;
}

const char *heddle_error_text(int code)
{
    return hd_error_text(code);
}

/* ---- keys ---- */

int hd_check_length(struct hd_slice s, size_t max, const char *what, struct heddle_error *fault)
{
    if (s.len > max)
        return hd_error_set(fault, HD_ELIMIT, "%s has %zu bytes; at most %zu are allowed", what,
                            s.len, max);
    return 0;
}

int hd_check_principal(struct hd_slice principal, struct heddle_error *fault)
{
    if (principal.len && memchr(principal.ptr, ':', principal.len))
        return hd_error_set(fault, HD_EINVAL, "principal must not contain ':'");
    return hd_check_length(principal, HD_MAX_PRINCIPAL, "principal", fault);
}

int hd_store_thread_key(const struct heddle_thread *thread, struct hd_arena *arena,
                        struct hd_slice *out, struct heddle_error *fault)
{
    struct hd_slice principal = hd_from_public(thread->principal), id = hd_from_public(thread->id);
    char *key;
    int err = hd_check_principal(principal, fault);

    if (!err)
        err = hd_check_length(id, HD_MAX_THREAD_ID, "thread_id", fault);
    if (err)
        return err;
    key = hd_arena_alloc(arena, principal.len + 1 + id.len);
    if (!key)
        return HD_ENOMEM;
    if (principal.len)
        memcpy(key, principal.ptr, principal.len);
    key[principal.len] = ':';
    if (id.len)
        memcpy(key + principal.len + 1, id.ptr, id.len);
    *out = hd_slice(key, principal.len + 1 + id.len);
    return 0;
}

struct heddle_thread hd_store_thread_from_key(struct hd_slice key)
{
    const char *colon = key.len ? memchr(key.ptr, ':', key.len) : NULL;
    size_t principal = colon ? (size_t)(colon - key.ptr) : 0;
    size_t id = colon ? principal + 1 : 0;

    return (struct heddle_thread){{key.ptr, principal}, {key.ptr + id, key.len - id}};
}

/* ---- opening ---- */

static int open_store(struct hd_store *store, const char *text, int enough_version,
                      struct heddle_error *fault)
{
    struct hd_arena arena;
    struct hd_url url;
    int err;

    hd_arena_init(&arena, 1 << 20);
    err = hd_url_parse(&url, text, &arena, fault);
    url.enough_version = enough_version;
    if (!err)
        err = hd_backend_open(&store->backend, &url, fault);
    if (!err) {
        store->max_value = url.max_value;
        store->timeout_us = (int64_t)url.timeout_ms * 1000;
    }
    hd_arena_fini(&arena);
    if (!err)
        err = hd_lanes_open(store);
    if (!err)
        err = hd_thread_pool_open(&store->pool, POOL_SIZE);
    return err;
}

void heddle_close(struct heddle *heddle)
{
    if (!heddle)
        return;
    hd_thread_pool_close(heddle->store.pool);
    hd_lanes_close(&heddle->store);
    if (heddle->store.backend)
        hd_backend_close(heddle->store.backend);
    hd_free(heddle);
}

int hd_rows_open(struct heddle **out, const char *url, int enough_version,
                 struct heddle_error *error)
{
    struct heddle_error *fault = call_enter(error);
    struct heddle *heddle = hd_calloc(1, sizeof(*heddle));
    int err;

    if (!heddle)
        return call_leave(HD_ENOMEM, error);
    err = open_store(&heddle->store, url, enough_version, fault);
    if (err) {
        heddle_close(heddle);
        return call_leave(err, error);
    }
    *out = heddle;
    return call_leave(0, error);
}

int heddle_open(struct heddle **out, const char *url, struct heddle_error *error)
{
    return hd_rows_open(out, url, 0, error);
}

/* ---- writing ---- */

static void add_extras(struct hd_lane_request *request, const struct hd_put_extras *extras)
{
    if (!extras)
        return;
    request->growths = extras->growths;
    request->outline = extras->outline;
    request->chain = extras->chain;
    request->guard = extras->guard;
}

int hd_store_put(struct heddle *heddle, const struct heddle_checkpoint *checkpoint,
                 const struct hd_put_extras *extras, struct heddle_error *error)
{
    struct heddle_error *fault = call_enter(error);
    struct hd_lane_request request;
    int err = hd_lane_request_put(&heddle->store, &request, checkpoint, fault);

    if (!err) {
        add_extras(&request, extras);
        err = hd_lane_request_cut(&request);
        if (!err)
            err = hd_lane_run(&heddle->store, &request, fault);
        hd_lane_request_fini(&request);
    }
    return call_leave(err, error);
}

int heddle_put(struct heddle *heddle, const struct heddle_checkpoint *checkpoint,
               struct heddle_error *error)
{
    return hd_store_put(heddle, checkpoint, NULL, error);
}

int hd_store_put_writes(struct heddle *heddle, const struct heddle_writes *writes,
                        struct hd_guard guard, struct heddle_error *error)
{
    struct heddle_error *fault = call_enter(error);
    struct hd_lane_request request;
    int err = hd_lane_request_writes(&heddle->store, &request, writes, fault);

    if (!err) {
        request.guard = guard;
        err = hd_lane_request_cut(&request);
        if (!err)
            err = hd_lane_run(&heddle->store, &request, fault);
        hd_lane_request_fini(&request);
    }
    return call_leave(err, error);
}

int heddle_put_writes(struct heddle *heddle, const struct heddle_writes *writes,
                      struct heddle_error *error)
{
    return hd_store_put_writes(heddle, writes, HD_NO_GUARD, error);
}

/* Takes the request, also on failure. */
static int queue(struct heddle *heddle, struct hd_lane_request *request, heddle_done done,
                 void *arg)
{
    int err;

    request->done = done;
    request->done_arg = arg;
    err = hd_lane_queue(&heddle->store, request);
    if (err) {
        hd_lane_request_fini(request);
        hd_free(request);
    }
    return err;
}

/*
 * Errors in the input are reported through `done` like all others, so that callers have one place
 * for errors: the request then carries no work.
 */
static int queue_and_go(struct heddle *heddle, struct hd_lane_request *request, int err,
                        const struct heddle_error *fault, heddle_done done, void *arg)
{
    if (err == HD_ENOMEM) {
        hd_free(request);
        return err;
    }
    if (err) {
        request->err = err;
        request->fault = *fault;
        request->is_settled = true;
        request->thread = hd_slice(NULL, 0); /* its memory was freed with the rejection */
    }
    err = queue(heddle, request, done, arg);
    hd_lanes_wake(&heddle->store);
    return err;
}

int heddle_put_async(struct heddle *heddle, const struct heddle_checkpoint *checkpoint,
                     heddle_done done, void *arg)
{
    struct hd_lane_request *request = hd_malloc(sizeof(*request));
    struct heddle_error fault = {0};
    int err;

    if (!request)
        return HD_ENOMEM;
    err = hd_lane_request_put(&heddle->store, request, checkpoint, &fault);
    return queue_and_go(heddle, request, err, &fault, done, arg);
}

int heddle_put_writes_async(struct heddle *heddle, const struct heddle_writes *writes,
                            heddle_done done, void *arg)
{
    struct hd_lane_request *request = hd_malloc(sizeof(*request));
    struct heddle_error fault = {0};
    int err;

    if (!request)
        return HD_ENOMEM;
    err = hd_lane_request_writes(&heddle->store, request, writes, &fault);
    return queue_and_go(heddle, request, err, &fault, done, arg);
}

int hd_store_queue_put(struct heddle *heddle, const struct heddle_checkpoint *checkpoint,
                       const struct hd_put_extras *extras, heddle_done done, void *arg,
                       struct heddle_error *error)
{
    struct hd_lane_request *request = hd_malloc(sizeof(*request));
    int err;

    if (!request)
        return call_leave(HD_ENOMEM, error);
    err = hd_lane_request_put(&heddle->store, request, checkpoint, call_enter(error));
    if (err) {
        hd_free(request);
        return call_leave(err, error);
    }
    add_extras(request, extras);
    return call_leave(queue(heddle, request, done, arg), error);
}

int hd_store_queue_writes(struct heddle *heddle, const struct heddle_writes *writes,
                          struct hd_guard guard, heddle_done done, void *arg,
                          struct heddle_error *error)
{
    struct hd_lane_request *request = hd_malloc(sizeof(*request));
    int err;

    if (!request)
        return call_leave(HD_ENOMEM, error);
    err = hd_lane_request_writes(&heddle->store, request, writes, call_enter(error));
    if (err) {
        hd_free(request);
        return call_leave(err, error);
    }
    request->guard = guard;
    return call_leave(queue(heddle, request, done, arg), error);
}

void hd_store_queue_go(struct heddle *heddle)
{
    hd_lanes_wake(&heddle->store);
}

int heddle_defer(struct heddle *heddle, void (*work)(void *arg), void *arg)
{
    return hd_thread_pool_add(heddle->store.pool, work, arg);
}

/* ---- results ---- */

/* The result of a call, with the arena that holds all of it. */
struct call_result {
    struct hd_arena arena;
    union {
        struct heddle_tuple tuple;
        struct heddle_histories histories;
        struct heddle_threads threads;
    } as;
};

static struct call_result *answer_create(void)
{
    struct call_result *answer = hd_calloc(1, sizeof(*answer));

    if (answer)
        hd_arena_init(&answer->arena, SIZE_MAX / 2);
    return answer;
}

static void answer_destroy(struct call_result *answer)
{
    if (!answer)
        return;
    hd_arena_fini(&answer->arena);
    hd_free(answer);
}

/* `handed_out` is one of the members of `as`, or NULL. */
static void answer_free(void *handed_out)
{
    if (handed_out)
        answer_destroy(
            (struct call_result *)((char *)handed_out - offsetof(struct call_result, as)));
}

/* Ends a call that makes a result: without an error sets *out, otherwise frees the result. */
static int leave_answer(struct call_result *answer, int err, struct heddle_error *error)
{
    if (err)
        answer_destroy(answer);
    return call_leave(err, error);
}

static int read_tuple(struct heddle *heddle, const struct heddle_key *key,
                      const struct hd_known *known, size_t known_count, struct call_result *answer,
                      struct heddle_error *fault)
{
    struct hd_key stored = {.ns = hd_from_public(key->ns), .id = hd_from_public(key->id)};
    int err = hd_store_thread_key(&key->thread, &answer->arena, &stored.thread, fault);

    if (!err)
        err = hd_store_read_unknown(&heddle->store, &stored, known, known_count, &answer->arena,
                                    &answer->as.tuple, fault);
    return !err && !answer->as.tuple.id.data ? HD_ENOTFOUND : err;
}

int hd_store_get_unknown(struct heddle *heddle, const struct heddle_key *key,
                         const struct hd_known *known, size_t known_count,
                         struct heddle_tuple **out, struct heddle_error *error)
{
    struct heddle_error *fault = call_enter(error);
    struct call_result *answer = answer_create();
    int err = answer ? read_tuple(heddle, key, known, known_count, answer, fault) : HD_ENOMEM;

    if (!err)
        *out = &answer->as.tuple;
    return leave_answer(answer, err, error);
}

int hd_store_get_within(struct heddle *heddle, const struct heddle_key *key,
                        struct hd_allowance *allowance, struct heddle_tuple **out,
                        struct heddle_error *error)
{
    struct heddle_error *fault = call_enter(error);
    struct call_result *answer = answer_create();
    struct hd_key stored = {.ns = hd_from_public(key->ns), .id = hd_from_public(key->id)};
    int err = answer ? hd_store_thread_key(&key->thread, &answer->arena, &stored.thread, fault)
                     : HD_ENOMEM;

    if (!err)
        err = hd_store_read_tuples(&heddle->store, &stored, 1, 0, allowance, &answer->arena,
                                   &answer->as.tuple, fault);
    if (!err && !answer->as.tuple.id.data)
        err = HD_ENOTFOUND;
    if (!err)
        *out = &answer->as.tuple;
    return leave_answer(answer, err, error);
}

int heddle_get(struct heddle *heddle, const struct heddle_key *key, struct heddle_tuple **out,
               struct heddle_error *error)
{
    return hd_store_get_unknown(heddle, key, NULL, 0, out, error);
}

void heddle_tuple_free(struct heddle_tuple *tuple)
{
    answer_free(tuple);
}

int heddle_list_open(struct heddle *heddle, const struct heddle_query *query,
                     struct heddle_list **out, struct heddle_error *error)
{
    return call_leave(hd_list_open(&heddle->store, query, out, call_enter(error)), error);
}

int heddle_list_next(struct heddle_list *list, const struct heddle_tuple **out,
                     struct heddle_error *error)
{
    return call_leave(hd_list_next(list, out, call_enter(error)), error);
}

void heddle_list_close(struct heddle_list *list)
{
    hd_list_close(list);
}

static int read_histories(struct heddle *heddle, const struct heddle_key *key,
                          const struct heddle_bytes *channels, size_t count,
                          struct call_result *answer, struct heddle_error *fault)
{
    struct hd_arena *arena = &answer->arena;
    struct heddle_history *histories = hd_arena_calloc(arena, count, sizeof(*histories));
    struct hd_slice *names = hd_arena_calloc(arena, count, sizeof(*names));
    struct hd_key stored = {.ns = hd_from_public(key->ns), .id = hd_from_public(key->id)};
    int err = histories && names ? 0 : HD_ENOMEM;

    for (size_t i = 0; !err && i < count; i++)
        err = hd_arena_copy(arena, hd_from_public(channels[i]), &names[i]);
    if (!err)
        err = hd_store_thread_key(&key->thread, arena, &stored.thread, fault);
    if (!err)
        err = hd_delta_histories(&heddle->store, &stored, names, count, arena, histories, fault);
    answer->as.histories = (struct heddle_histories){histories, count};
    return err;
}

int heddle_delta_history(struct heddle *heddle, const struct heddle_key *key,
                         const struct heddle_bytes *channels, size_t channel_count,
                         struct heddle_histories **out, struct heddle_error *error)
{
    struct heddle_error *fault = call_enter(error);
    struct call_result *answer = answer_create();
    int err =
        answer ? read_histories(heddle, key, channels, channel_count, answer, fault) : HD_ENOMEM;

    if (!err)
        *out = &answer->as.histories;
    return leave_answer(answer, err, error);
}

void heddle_histories_free(struct heddle_histories *histories)
{
    answer_free(histories);
}

/* ---- threads ---- */

struct thread_lister {
    struct hd_arena *arena;
    struct heddle_thread_info *infos;
    size_t count;
    size_t cap;
    size_t limit;
};

static int threads_make_room(struct thread_lister *lister)
{
    size_t cap = lister->cap ? lister->cap * 2 : 16;
    struct heddle_thread_info *grown;

    if (lister->count < lister->cap)
        return 0;
    grown = hd_arena_alloc(lister->arena, cap * sizeof(*grown));
    if (!grown)
        return HD_ENOMEM;
    if (lister->count)
        memcpy(grown, lister->infos, lister->count * sizeof(*grown));
    lister->infos = grown;
    lister->cap = cap;
    return 0;
}

static int threads_on_row(void *arg, size_t which, const struct hd_cell *cells)
{
    struct thread_lister *lister = arg;
    struct heddle_thread_info *info;
    struct hd_slice key;
    int err;

    (void)which;
    if (cells[HD_THREADS_CREATED].number == 0)
        return 0; /* a copy is in progress: see copy.c */
    err = hd_arena_copy(lister->arena, cells[HD_THREADS_ID].bytes, &key);
    if (!err)
        err = threads_make_room(lister);
    if (err)
        return err;
    info = &lister->infos[lister->count++];
    info->thread = hd_store_thread_from_key(key);
    info->created_at_us = cells[HD_THREADS_CREATED].number;
    info->updated_at_us = cells[HD_THREADS_UPDATED].number;
    return lister->count == lister->limit;
}

/* Keys of a principal's threads lie between "principal:" and "principal;". */
static int scan_threads(struct heddle *heddle, struct heddle_bytes principal,
                        struct heddle_bytes after, struct thread_lister *lister,
                        struct heddle_error *fault)
{
    struct heddle_thread from = {principal, after};
    struct hd_slice low = {0}, end = {0};
    struct hd_cell low_cell, high_cell;
    struct hd_query query = {.table = HD_THREADS, .index = HD_PRIMARY, .columns = HD_ALL_COLUMNS};
    int err = hd_store_thread_key(&from, lister->arena, &low, fault);

    if (!err)
        err = hd_arena_copy(lister->arena, hd_slice(low.ptr, principal.len + 1), &end);
    if (err)
        return err;
    ((char *)end.ptr)[principal.len] = ':' + 1;
    low_cell = hd_cell_bytes(low);
    high_cell = hd_cell_bytes(end);
    query.low = &low_cell;
    query.high = &high_cell;
    if (after.len) {
        query.after = &low_cell;
        query.after_count = 1;
    }
    return hd_scan(heddle->store.backend, query, threads_on_row, lister, fault);
}

int heddle_list_threads(struct heddle *heddle, struct heddle_bytes principal,
                        struct heddle_bytes after, size_t limit, struct heddle_threads **out,
                        struct heddle_error *error)
{
    struct heddle_error *fault = call_enter(error);
    struct call_result *answer = answer_create();
    struct thread_lister lister = {.arena = answer ? &answer->arena : NULL, .limit = limit};
    int err = answer ? hd_check_principal(hd_from_public(principal), fault) : HD_ENOMEM;

    if (!err && limit)
        err = scan_threads(heddle, principal, after, &lister, fault);
    if (!err) {
        answer->as.threads = (struct heddle_threads){lister.infos, lister.count};
        *out = &answer->as.threads;
    }
    return leave_answer(answer, err, error);
}

void heddle_threads_free(struct heddle_threads *threads)
{
    answer_free(threads);
}

/* Calls an operation on one or two threads with their stored keys. */
static int with_keys(struct heddle *heddle, const struct heddle_thread *first,
                     const struct heddle_thread *second,
                     int (*fn)(struct hd_store *, struct hd_slice, struct hd_slice, void *,
                               struct heddle_error *),
                     void *arg, struct heddle_error *error)
{
    struct heddle_error *fault = call_enter(error);
    struct hd_arena arena;
    struct hd_slice a = {0}, b = {0};
    int err;

    hd_arena_init(&arena, 1 << 16);
    err = hd_store_thread_key(first, &arena, &a, fault);
    if (!err && second)
        err = hd_store_thread_key(second, &arena, &b, fault);
    if (!err)
        err = fn(&heddle->store, a, b, arg, fault);
    hd_arena_fini(&arena);
    return call_leave(err, error);
}

static int call_usage(struct hd_store *store, struct hd_slice a, struct hd_slice b, void *arg,
                      struct heddle_error *fault)
{
    (void)b;
    return hd_store_thread_usage(store, a, arg, fault);
}

int heddle_thread_usage(struct heddle *heddle, const struct heddle_thread *thread,
                        struct heddle_usage *out, struct heddle_error *error)
{
    return with_keys(heddle, thread, NULL, call_usage, out, error);
}

static int call_delete(struct hd_store *store, struct hd_slice a, struct hd_slice b, void *arg,
                       struct heddle_error *fault)
{
    (void)b;
    (void)arg;
    return hd_delete_thread(store, a, fault);
}

int heddle_delete_thread(struct heddle *heddle, const struct heddle_thread *thread,
                         struct heddle_error *error)
{
    return with_keys(heddle, thread, NULL, call_delete, NULL, error);
}

static int call_copy(struct hd_store *store, struct hd_slice a, struct hd_slice b, void *arg,
                     struct heddle_error *fault)
{
    (void)arg;
    return hd_copy_thread(store, a, b, fault);
}

int heddle_copy_thread(struct heddle *heddle, const struct heddle_thread *source,
                       const struct heddle_thread *target, struct heddle_error *error)
{
    return with_keys(heddle, source, target, call_copy, NULL, error);
}

/* ---- pruning ---- */

static void add_usage(struct heddle_usage *sum, const struct heddle_usage *more)
{
    sum->checkpoints += more->checkpoints;
    sum->writes += more->writes;
    sum->chunks += more->chunks;
    sum->bytes += more->bytes;
}

static int delete_all(struct hd_store *store, struct hd_slice thread,
                      const struct hd_prune_options *keep, struct heddle_error *fault)
{
    struct heddle_usage usage;
    int err = 0;

    if (keep->removed) {
        err = hd_store_thread_usage(store, thread, &usage, fault);
        if (!err)
            add_usage(keep->removed, &usage);
    }
    return err || keep->is_dry ? err : hd_delete_thread(store, thread, fault);
}

static int call_prune(struct hd_store *store, struct hd_slice a, struct hd_slice b, void *arg,
                      struct heddle_error *fault)
{
    const struct hd_prune_options *keep = arg;

    (void)b;
    if (keep->strategy == HEDDLE_DELETE_ALL)
        return delete_all(store, a, keep, fault);
    return hd_prune_thread(store, a, keep, fault);
}

static int check_prune(const struct heddle_prune_options *options, struct heddle_error *fault)
{
    switch (options->strategy) {
    case HEDDLE_KEEP_LATEST:
    case HEDDLE_DELETE_ALL:
    case HEDDLE_KEEP_BRANCHES:
        return 0;
    }
    return hd_error_set(fault, HD_EINVAL, "unknown prune strategy");
}

/* The heads with stored keys, in the arena. */
static int read_heads(const struct heddle_prune_options *options, struct hd_arena *arena,
                      struct hd_prune_options *keep, struct heddle_error *fault)
{
    struct hd_key *heads = hd_arena_calloc(arena, options->head_count, sizeof(*heads));
    int err = heads ? 0 : HD_ENOMEM;

    for (size_t i = 0; !err && i < options->head_count; i++) {
        heads[i].ns = hd_from_public(options->heads[i].ns);
        heads[i].id = hd_from_public(options->heads[i].id);
        err = hd_store_thread_key(&options->heads[i].thread, arena, &heads[i].thread, fault);
    }
    keep->heads = heads;
    keep->head_count = options->head_count;
    return err;
}

int heddle_prune_with(struct heddle *heddle, const struct heddle_thread *threads,
                      size_t thread_count, const struct heddle_prune_options *options,
                      struct heddle_usage *removed, struct heddle_error *error)
{
    struct hd_prune_options keep = {.strategy = options->strategy,
                                    .last = options->keep_last ? options->keep_last : 1,
                                    .is_dry = options->dry_run != 0,
                                    .removed = removed};
    struct heddle_error *fault = call_enter(error);
    struct hd_arena arena;
    int err = check_prune(options, fault);

    if (err)
        return call_leave(err, error);
    if (removed)
        memset(removed, 0, sizeof(*removed));
    hd_arena_init(&arena, SIZE_MAX / 2);
    err = read_heads(options, &arena, &keep, fault);
    if (err)
        call_leave(err, error);
    for (size_t i = 0; !err && i < thread_count; i++)
        err = with_keys(heddle, &threads[i], NULL, call_prune, &keep, error);
    hd_arena_fini(&arena);
    return err;
}

int heddle_prune(struct heddle *heddle, const struct heddle_thread *threads, size_t thread_count,
                 enum heddle_prune strategy, struct heddle_error *error)
{
    const struct heddle_prune_options options = {.strategy = strategy};

    return heddle_prune_with(heddle, threads, thread_count, &options, NULL, error);
}

int heddle_delete_runs(struct heddle *heddle, struct heddle_bytes principal,
                       const struct heddle_bytes *run_ids, size_t run_count,
                       struct heddle_error *error)
{
    return call_leave(hd_delete_runs(&heddle->store, hd_from_public(principal), run_ids, run_count,
                                     call_enter(error)),
                      error);
}

int heddle_compact(struct heddle *heddle, struct heddle_error *error)
{
    return call_leave(hd_backend_compact(heddle->store.backend, call_enter(error)), error);
}

int heddle_check(struct heddle *heddle, struct heddle_error *error)
{
    struct heddle_error *fault = call_enter(error);
    int err = hd_backend_check(heddle->store.backend, fault);

    if (!err)
        err = hd_check_values(&heddle->store, fault);
    return call_leave(err, error);
}
