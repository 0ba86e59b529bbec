/* The thread of an admission: its record and its hold. */
#include "app/app.h"
#include "base/clock.h"
#include "base/uuid.h"
#include "cluster/cluster.h"
#include "config/config.h"
#include "config/ttl.h"
#include "run/admit_internal.h"
#include "run/run_commit.h"

/* ---- the record ------------------------------------------------------- */

/* Reads the thread with its hold, where several servers share the store. */
static int read_held_thread(struct hd_admit_attempt *t)
{
    struct hd_admission_group *group = t->group;
    struct heddle *store = group->app->store;
    struct hd_held_thread found;
    int err = 0;

    if (!hd_cluster_is_on(group->app->cluster))
        return hd_thread_read(store, group->principal, group->thread_id, group->arena, &t->thread,
                              t->fault);
    if (group->seen)
        found = *group->seen;
    else
        err = hd_hold_read_thread(store, group->principal, group->thread_id, group->arena, &found,
                                  t->fault);
    group->seen = NULL; /* it may have changed before the next attempt */
    if (err)
        return err;
    t->thread = found.thread;
    t->hold = found.hold;
    return found.has_thread ? 0 : HD_ENOTFOUND;
}

/* Deletes an expired thread and returns HD_ENOTFOUND for it. */
static int read_live_thread(struct hd_admit_attempt *t)
{
    int err = read_held_thread(t);

    if (err || !hd_thread_is_over(&t->thread, hd_clock_now_us()))
        return err;
    err = hd_run_commit_expire_thread(t->group->app->store, &t->thread, t->fault);
    t->hold = (struct hd_hold){.token = 0}; /* its row went with the thread */
    return err ? err : HD_ENOTFOUND;
}

/* Begins a new thread, with its owner in the metadata. */
static int init_new_thread(struct hd_admit_attempt *t, struct hd_slice id)
{
    t->is_new_thread = true;
    hd_thread_init(&t->thread, t->group->principal, id);
    return t->group->subject.len > 0 ? hd_admit_config_own_thread(t) : 0;
}

/* Participants of a shared thread may not create threads for its owner. */
static bool may_create(const struct hd_admission_group *group)
{
    return group->creates_thread && hd_slice_eq(group->actor, group->principal);
}

int hd_admit_thread_find(struct hd_admit_attempt *t)
{
    struct hd_admission_group *group = t->group;
    char *id;
    int err;

    if (group->thread_id.len == 0) {
        id = hd_arena_alloc(group->arena, HD_UUID_SIZE);
        if (!id)
            return HD_ENOMEM;
        hd_uuid_v4(id);
        return init_new_thread(t, hd_slice(id, HD_UUID_LEN));
    }
    err = read_live_thread(t);
    if (err != HD_ENOTFOUND)
        return err;
    if (!may_create(group))
        return hd_admit_refuse(group, t->fault, 404, "Thread with ID %.*s not found",
                               (int)group->thread_id.len, group->thread_id.ptr);
    return init_new_thread(t, group->thread_id);
}

/* The head before the runs is that of the first one that makes the thread busy. */
static void make_busy(struct hd_thread_rec *thread)
{
    if (thread->status == HD_THREAD_BUSY)
        return;
    thread->has_before = true;
    thread->status_before = thread->status;
    thread->head_before = thread->head;
    thread->status = HD_THREAD_BUSY;
}

static void show_run(struct hd_thread_rec *thread, const struct hd_admit_run *run)
{
    thread->head = (struct hd_head){.ns = run->ns,
                                    .checkpoint_id = run->checkpoint_id,
                                    .graph_id = run->assistant.graph_id,
                                    .assistant_id = run->assistant.id};
}

int hd_admit_thread_fill(struct hd_admit_attempt *t, const struct hd_admit_run *shown, int64_t now)
{
    struct hd_thread_rec *thread = &t->thread;
    int err = 0;

    if (t->count > 0)
        make_busy(thread);
    if (shown)
        show_run(thread, shown);
    thread->updated_at = now;
    if (t->is_new_thread) {
        thread->created_at = thread->state_updated_at = now;
        err = hd_ttl_standard(t->group->app->config, t->group->arena, &thread->ttl);
    }
    if (t->count == 0) /* the end of a run does it otherwise */
        hd_thread_touch(thread, now);
    return err;
}

/* ---- the hold --------------------------------------------------------- */

int hd_admit_thread_check_hold(struct hd_admit_attempt *t)
{
    struct hd_admission_group *group = t->group;
    struct hd_cluster *cluster = group->app->cluster;

    if (!hd_cluster_is_on(cluster))
        return 0;
    if (t->hold.token && !hd_slice_eq(t->hold.server, hd_cluster_self(cluster))) {
        group->holder = t->hold.server;
        return HD_EBUSY;
    }
    return 0;
}

void hd_admit_thread_choose_token(struct hd_admit_attempt *t)
{
    if (!hd_cluster_is_on(t->group->app->cluster))
        return;
    t->claims = t->hold.token == 0 && t->count > 0;
    t->token = t->claims ? hd_hold_token() : t->hold.token;
}

int hd_admit_thread_add_hold(struct hd_admit_attempt *t, struct hd_batch_builder *batch)
{
    struct hd_cluster *cluster = t->group->app->cluster;
    struct hd_slice self = hd_cluster_self(cluster);
    const struct hd_hold claim = {.token = t->token, .server = self, .last = self};

    if (!hd_cluster_is_on(cluster))
        return 0;
    if (t->claims)
        return hd_hold_put(batch, t->group->principal, t->thread.id, &claim);
    if (t->token)
        return hd_hold_expect(batch, t->group->principal, t->thread.id, t->token);
    return hd_hold_announce(batch, cluster, t->group->principal, t->thread.id, &t->hold, t->fault);
}
