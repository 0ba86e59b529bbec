/* Deleting and pruning threads. No run may be in flight on a deleted thread, so its runs are
 * cancelled first, on the loop, and their ends awaited. If another run starts meanwhile, this is
 * repeated. */
#include "api/thread_delete.h"

#include <stdlib.h>

#include "api/request/authorize.h"
#include "api/state/checkpoint_target.h"
#include "api/stop_runs.h"
#include "events/event_log.h"
#include "run/queue.h"
#include "run/run_commit.h"
#include "run/thread_prune.h"

#define MAX_ROUNDS 20
#define MAX_THREADS 10000 /* of a request */

/* In the arena of its call. */
struct removal {
    struct hd_slice *ids; /* of the threads; missing ones are left out */
    size_t count;
    struct hd_stop_runs stop; /* the runs in flight on one of them */
    int rounds;
    bool is_repeated; /* runs are in flight again */
    hd_thread_deleted_fn deleted;
};

/* ---- runs in flight --------------------------------------------------- */

/* Threads that do not exist, or that the caller does not see, are left out. */
static int find_runs(struct hd_call *call, struct removal *removal)
{
    size_t kept = 0;
    int err = 0;

    removal->stop.count = 0;
    for (size_t i = 0; !err && i < removal->count; i++) {
        struct hd_thread_rec thread;
        struct hd_run_rec *runs = NULL;
        bool is_seen = false;
        size_t count = 0;

        err = hd_thread_read(call->app->store, call->principal, removal->ids[i], call->arena,
                             &thread, &call->fault);
        if (err == HD_ENOTFOUND) {
            err = 0;
            continue;
        }
        if (!err)
            err = hd_call_sees(call, HD_OF_THREADS, thread.metadata, &is_seen);
        if (!err && !is_seen)
            continue;
        if (!err && thread.status == HD_THREAD_BUSY)
            err = hd_runs_active(call->app->store, call->principal, thread.id, call->arena, &runs,
                                 &count, &call->fault);
        for (size_t k = 0; !err && k < count; k++)
            err = hd_stop_runs_add(&removal->stop, &runs[k]);
        removal->ids[kept++] = removal->ids[i];
    }
    if (!err)
        removal->count = kept;
    return err;
}

/* ---- deleting --------------------------------------------------------- */

/* HD_ECONFLICT: a run has started meanwhile. After MAX_ROUNDS the thread is deleted regardless. */
static int delete_quiet(struct hd_call *call, const struct removal *removal, struct hd_slice id)
{
    struct heddle *store = call->app->store;
    struct hd_thread_rec thread;
    int err = hd_thread_read(store, call->principal, id, call->arena, &thread, &call->fault);

    if (err == HD_ENOTFOUND || removal->rounds >= MAX_ROUNDS) {
        call->fault = (struct heddle_error){0};
        return hd_run_commit_delete_thread(store, call->principal, id, &call->fault);
    }
    if (!err && thread.status == HD_THREAD_BUSY)
        return HD_ECONFLICT;
    return err ? err : hd_run_commit_expire_thread(store, &thread, &call->fault);
}

static struct hd_step delete_threads(struct hd_call *call)
{
    struct removal *removal = call->state;
    size_t count = removal->count;
    int err = find_runs(call, removal);

    removal->count = count; /* threads deleted concurrently are fine */
    removal->is_repeated = !err && removal->stop.count > 0 && removal->rounds < MAX_ROUNDS;
    if (removal->is_repeated)
        return HD_NEXT;
    for (size_t i = 0; !err && i < removal->count; i++)
        err = delete_quiet(call, removal, removal->ids[i]);
    removal->is_repeated = err == HD_ECONFLICT;
    if (!removal->is_repeated)
        return hd_step_next(err);
    call->fault = (struct heddle_error){0};
    return HD_NEXT;
}

static void put_count(struct hd_call *call, size_t count)
{
    hd_jw_object(&call->jw);
    hd_jw_put_int(&call->jw, "pruned_count", (int64_t)count);
    hd_jw_object_end(&call->jw);
}

static struct hd_step after_delete(struct hd_call *call)
{
    struct removal *removal = call->state;

    if (removal->is_repeated) {
        removal->rounds++;
        return hd_stop_runs_start(&removal->stop);
    }
    for (size_t i = 0; i < removal->count; i++) {
        struct hd_event_log *log =
            hd_event_log_find(call->app->event_logs, call->principal, removal->ids[i]);

        if (log)
            hd_event_log_drop(log);
    }
    removal->deleted(call, removal->count);
    return HD_DONE;
}

static struct hd_step delete_stopped(struct hd_call *call)
{
    return hd_call_visit(call, delete_threads, after_delete);
}

struct hd_step hd_thread_delete_then(struct hd_call *call)
{
    struct removal *removal = call->state;

    return hd_stop_runs_start(&removal->stop);
}

static struct removal *make_removal(struct hd_call *call, hd_thread_deleted_fn deleted)
{
    struct removal *removal = hd_arena_calloc(call->arena, 1, sizeof(*removal));

    if (removal) {
        removal->stop.call = call;
        removal->stop.then = delete_stopped;
        removal->deleted = deleted;
    }
    call->state = removal;
    return removal;
}

struct hd_step hd_thread_delete_start(struct hd_call *call, struct hd_slice *ids, size_t count,
                                      hd_thread_deleted_fn deleted)
{
    struct removal *removal = make_removal(call, deleted);
    int err;

    if (!removal)
        return hd_step_fail(HD_ENOMEM);
    removal->ids = ids;
    removal->count = count;
    err = find_runs(call, removal);
    return hd_step_next(err);
}

static void put_nothing(struct hd_call *call, size_t count)
{
    (void)count;
    call->status = 204;
}

static struct hd_step delete_thread(struct hd_call *call)
{
    struct hd_slice *id = hd_arena_alloc(call->arena, sizeof(*id));
    struct hd_thread_rec thread;
    int err = id ? hd_call_thread(call, &thread) : HD_ENOMEM;

    if (err)
        return hd_step_fail(err);
    *id = thread.id;
    return hd_thread_delete_start(call, id, 1, put_nothing);
}

/* ---- pruning ---------------------------------------------------------- */

static int read_ids(struct hd_call *call, struct removal *removal)
{
    int err = hd_body_strings(call, "thread_ids", &removal->ids, &removal->count);

    if (!err && !hd_body_get(call, "thread_ids"))
        err = hd_error_set(&call->fault, HD_EINVAL, "thread_ids: expected a list of UUIDs");
    if (!err && removal->count > MAX_THREADS)
        err = hd_error_set(&call->fault, HD_EINVAL, "thread_ids: more than %d", MAX_THREADS);
    for (size_t i = 0; !err && i < removal->count; i++)
        err = hd_call_uuid(call, "thread_ids", removal->ids[i], &removal->ids[i]);
    return err;
}

/* For sorting; duplicate ids count once. */
static int compare_ids(const void *a, const void *b)
{
    return hd_slice_cmp(*(const struct hd_slice *)a, *(const struct hd_slice *)b);
}

static void drop_doubles(struct removal *removal)
{
    size_t kept = 0;

    if (removal->count == 0)
        return;
    qsort(removal->ids, removal->count, sizeof(*removal->ids), compare_ids);
    for (size_t i = 0; i < removal->count; i++) {
        if (kept == 0 || !hd_slice_eq(removal->ids[i], removal->ids[kept - 1]))
            removal->ids[kept++] = removal->ids[i];
    }
    removal->count = kept;
}

static int read_prune(struct hd_call *call, struct hd_prune *prune)
{
    int word = 0;
    int64_t last = call->app->config->ttl_keep_last;
    int err = hd_body_word(call, "strategy", hd_ttl_strategies, &word);

    if (!err)
        err = hd_body_int(call, "keep_last", 1, HD_KEEP_LAST_MAX, &last);
    if (!err)
        err = hd_body_bool(call, "dry_run", &prune->is_dry);
    prune->strategy = (enum hd_ttl_strategy)word;
    prune->keep_last = (size_t)last;
    return err;
}

static void put_removed(struct hd_call *call, size_t count, const struct hd_removed *removed)
{
    const struct {
        struct hd_slice name;
        int64_t number;
    } members[] = {{HD_S("pruned_count"), (int64_t)count},
                   {HD_S("checkpoints"), removed->checkpoints},
                   {HD_S("writes"), removed->writes},
                   {HD_S("runs"), removed->runs},
                   {HD_S("bytes"), removed->bytes}};

    hd_jw_object(&call->jw);
    for (size_t i = 0; i < HD_COUNT(members); i++) {
        hd_jw_key(&call->jw, members[i].name);
        hd_jw_int(&call->jw, members[i].number);
    }
    hd_jw_put_bool(&call->jw, "dry_run", true);
    hd_jw_object_end(&call->jw);
}

static struct hd_step prune_threads(struct hd_call *call)
{
    struct removal *removal = make_removal(call, put_count);
    struct hd_removed removed = {0};
    struct hd_prune prune = {0};
    int err = removal ? read_ids(call, removal) : HD_ENOMEM;

    if (!err)
        err = read_prune(call, &prune);
    if (err)
        return hd_step_fail(err);
    drop_doubles(removal);
    err = find_runs(call, removal);
    if (err || (prune.strategy == HD_TTL_DELETE && !prune.is_dry))
        return hd_step_next(err);
    for (size_t i = 0; !err && i < removal->count; i++) {
        err = hd_thread_prune_by_id(call->app->store, call->principal, removal->ids[i], &prune,
                                    &removed, &call->fault);
        if (err == HD_ENOTFOUND)
            err = 0; /* deleted meanwhile */
    }
    if (!err && prune.is_dry)
        put_removed(call, removal->count, &removed);
    else if (!err)
        put_count(call, removal->count);
    return hd_step_done(err);
}

static const struct hd_endpoint routes[] = {
    {.method = HD_METHOD_DELETE,
     .pattern = "/threads/{thread_id}",
     .access = HD_ACCESS_OWNER,
     .by = HD_BY_HOLDER,
     .on = HD_ON_THREADS_DELETE,
     .frees = true,
     .work = delete_thread,
     .then = hd_thread_delete_then,
     .tag = "Threads",
     .summary = "Delete a thread; its active runs are cancelled",
     .status = 204},
    {.method = HD_METHOD_POST,
     .pattern = "/threads/prune",
     .access = HD_ACCESS_USER,
     .on = HD_ON_THREADS_DELETE,
     .frees = true,
     .work = prune_threads,
     .then = hd_thread_delete_then,
     .tag = "Threads",
     .summary = "Delete or prune threads",
     .body = "ThreadPrune",
     .answer = "ThreadPruned"},
};

const struct hd_routes hd_routes_thread_delete = {routes, HD_COUNT(routes)};
