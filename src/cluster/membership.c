#include "cluster/membership.h"

#include <heddle.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/uuid.h"
#include "cluster/cluster_internal.h"
#include "store/rows.h"

#define SECOND INT64_C(1000000)
#define LOOK_US (SECOND / 5) /* between two reads of the row of a server that uses it alone */
#define MARK ""
/* Servers of older versions take a row over that was unchanged for ten seconds. */
#define MARK_SILENCE_US (4 * SECOND)

static int read_servers(struct hd_cluster *cluster, struct heddle_error *fault)
{
    return hd_server_row_read_all(hd_lease_backend(cluster->lease), &cluster->rows, fault);
}

static int apply(struct hd_cluster *cluster, struct hd_batch_builder *batch,
                 struct heddle_error *fault)
{
    return hd_server_row_apply(hd_lease_backend(cluster->lease), batch, fault);
}

static int64_t random_beat(void)
{
    int64_t beat;

    hd_random(&beat, sizeof(beat));
    return beat;
}

/* Appends this server as the leader. */
static int put_mark(struct hd_cluster *cluster, struct hd_batch_builder *batch,
                    enum hd_op_kind kind)
{
    struct hd_server_row mark = cluster->row;

    mark.slot[0] = '\0';
    mark.beat = random_beat();
    return hd_server_row_put(batch, kind, &mark);
}

static void drop_row(struct hd_server_rows *rows, size_t index)
{
    rows->count--;
    memmove(&rows->items[index], &rows->items[index + 1],
            (rows->count - index) * sizeof(rows->items[0]));
}

static void describe(const struct hd_server_row *row, char *out, size_t size)
{
    hd_server_identity_describe(&row->identity, out, size);
}

/* ---- beats ------------------------------------------------------------ */

/* HD_ECONFLICT: the row is not as it was. */
static int beat(struct hd_cluster *cluster, struct heddle_error *fault)
{
    struct hd_batch_builder batch;
    int err;

    hd_batch_init(&batch);
    err = hd_server_row_beat(&batch, cluster->row.slot, cluster->row.token, ++cluster->row.beat);
    if (!err)
        err = apply(cluster, &batch, fault);
    hd_batch_fini(&batch);
    return err;
}

/* The row is not as it was: another server has removed it. */
static int examine(struct hd_cluster *cluster, struct heddle_error *fault)
{
    const struct hd_server_row *row;
    int err = read_servers(cluster, fault);

    if (err)
        return err;
    row = hd_server_row_find(&cluster->rows, cluster->row.slot);
    if (row && row->token == cluster->row.token)
        return HD_EBUSY; /* not so any more; the next beat finds out */
    return hd_error_set(fault, HD_ECLOSED,
                        "the lease on the store has expired and another server has removed this "
                        "one from the cluster");
}

static int renew_membership(void *ctx, bool is_update, struct heddle_error *fault)
{
    struct hd_cluster *cluster = ctx;
    int err = beat(cluster, fault);

    (void)is_update; /* its row never changes */
    if (err != HD_ECONFLICT)
        return err;
    *fault = (struct heddle_error){0};
    return examine(cluster, fault);
}

/* When this server cannot write, the others perhaps cannot either. */
static void note_missed(void *ctx)
{
    struct hd_cluster *cluster = ctx;

    hd_observation_restart(&cluster->observation);
}

/* ---- other servers ----------------------------------------------------- */

static void observe_rows(struct hd_cluster *cluster, int64_t began, int64_t ended)
{
    hd_observation_begin(&cluster->observation, began, ended);
    for (size_t i = 0; i < cluster->rows.count; i++)
        hd_observation_note(&cluster->observation, cluster->rows.items[i].slot,
                            cluster->rows.items[i].token, cluster->rows.items[i].beat);
    hd_observation_end(&cluster->observation);
}

/* The reason why a server is dead; NULL: it may be alive. */
static const char *find_death(const struct hd_cluster *cluster, const struct hd_server_row *row)
{
    int64_t lease = hd_server_identity_lease(&row->identity), own = hd_lease_us(cluster->lease);

    if (hd_server_identity_is_gone(&row->identity, &cluster->row.identity))
        return "whose process has ended";
    /* A short lease of the other one must not ask more of this server than its own. */
    lease = lease < own ? own : lease;
    return hd_observation_silence(&cluster->observation, row->slot) >= lease
               ? "which has not renewed its lease"
               : NULL;
}

/* 0: the row is gone. HD_ECONFLICT: another server was faster, or this one is alive. */
static int remove_server(struct hd_cluster *cluster, const struct hd_server_row *row,
                         const char *why)
{
    struct heddle_error fault = {0};
    struct hd_batch_builder batch;
    char name[160];
    int err;

    hd_batch_init(&batch);
    err = hd_server_row_expect(&batch, cluster->row.slot, cluster->row.token);
    if (!err)
        err = hd_server_row_expect_seen(&batch, row);
    if (!err)
        err = hd_server_row_delete(&batch, row->slot);
    if (!err)
        err = apply(cluster, &batch, &fault);
    hd_batch_fini(&batch);
    describe(row, name, sizeof(name));
    if (!err)
        hd_log(HD_LOG_WARN, "cluster", "removed %s, %s", name, why);
    else if (err != HD_ECONFLICT)
        hd_log(HD_LOG_WARN, "cluster", "cannot remove %s, %s: %s", name, why,
               fault.code ? fault.text : hd_error_text(err));
    return err;
}

/* An error ends it: each failed batch takes time, and the next beat must not be late. */
static int remove_dead(struct hd_cluster *cluster)
{
    for (size_t i = 0; i < cluster->rows.count;) {
        const struct hd_server_row *row = &cluster->rows.items[i];
        const char *why = NULL;
        int err;

        if (row->slot[0] && row->token != cluster->row.token)
            why = find_death(cluster, row);
        err = why ? remove_server(cluster, row, why) : HD_ECONFLICT;
        if (err && err != HD_ECONFLICT)
            return err;
        if (!err) {
            hd_cluster_note_gone(cluster, row->slot);
            drop_row(&cluster->rows, i);
        } else {
            i++;
        }
    }
    return 0;
}

static bool has_server(const struct hd_cluster *cluster, int64_t token)
{
    for (size_t i = 0; i < cluster->rows.count; i++) {
        if (cluster->rows.items[i].slot[0] && cluster->rows.items[i].token == token)
            return true;
    }
    return false;
}

static bool has_others(const struct hd_cluster *cluster)
{
    for (size_t i = 0; i < cluster->rows.count; i++) {
        if (cluster->rows.items[i].slot[0] && cluster->rows.items[i].token != cluster->row.token)
            return true;
    }
    return false;
}

/* Makes this server the leader. `mark`: that of a leader without a row, or NULL. */
static void take_mark(struct hd_cluster *cluster, const struct hd_server_row *mark)
{
    struct heddle_error fault = {0};
    struct hd_batch_builder batch;
    int err;

    hd_batch_init(&batch);
    err = hd_server_row_expect(&batch, cluster->row.slot, cluster->row.token);
    if (!err && mark)
        err = hd_server_row_expect(&batch, MARK, mark->token);
    if (!err)
        err = put_mark(cluster, &batch, mark ? HD_OP_PUT : HD_OP_ADD);
    if (!err)
        err = apply(cluster, &batch, &fault);
    hd_batch_fini(&batch);
    if (!err) {
        cluster->mark_token = cluster->row.token;
        hd_log(HD_LOG_INFO, "cluster", "this server is the leader now");
    } else if (err != HD_ECONFLICT) {
        hd_log(HD_LOG_WARN, "cluster", "cannot become the leader: %s",
               fault.code ? fault.text : hd_error_text(err));
    }
}

/*
 * Another server shall become the leader. Without another one a retiring server takes the mark all
 * the same, which shows that the store is in use (hd_cluster_publish() makes it no leader).
 */
static bool leaves_mark(struct hd_cluster *cluster)
{
    return hd_cluster_is_retiring(cluster) && has_others(cluster);
}

/*
 * The leader changes the counter, and others when it does not: then the mark shows for as long as
 * any server lives that the store is in use. A batch apart from the beats: servers that wait for
 * the one row must not miss their own renewal.
 */
static void renew_mark(struct hd_cluster *cluster)
{
    struct heddle_error fault = {0};
    struct hd_batch_builder batch;
    int err;

    if (cluster->mark_token != cluster->row.token &&
        hd_observation_silence(&cluster->observation, MARK) < MARK_SILENCE_US)
        return;
    hd_batch_init(&batch);
    err = hd_server_row_expect(&batch, cluster->row.slot, cluster->row.token);
    if (!err)
        err = hd_server_row_beat(&batch, MARK, cluster->mark_token, random_beat());
    if (!err)
        err = apply(cluster, &batch, &fault);
    hd_batch_fini(&batch);
    if (err && err != HD_ECONFLICT)
        hd_log(HD_LOG_WARN, "cluster", "cannot renew the mark of the cluster: %s",
               fault.code ? fault.text : hd_error_text(err));
}

/* HD_ECLOSED: a server uses the store alone, so an older version took it over. */
static int follow_mark(struct hd_cluster *cluster, struct heddle_error *fault)
{
    const struct hd_server_row *mark = hd_server_row_find(&cluster->rows, MARK);
    char name[160];

    cluster->mark_token = mark ? mark->token : 0;
    if (mark && !hd_server_row_is_shared(mark)) {
        describe(mark, name, sizeof(name));
        return hd_error_set(fault, HD_ECLOSED, "%s has taken over the store", name);
    }
    if (mark && (has_server(cluster, mark->token) || leaves_mark(cluster)))
        renew_mark(cluster);
    else if (!leaves_mark(cluster))
        take_mark(cluster, mark);
    return 0;
}

static int observe_servers(void *ctx, struct heddle_error *fault)
{
    struct hd_cluster *cluster = ctx;
    int64_t began = hd_clock_boot_us();
    int err = read_servers(cluster, fault);

    if (err) {
        hd_observation_restart(&cluster->observation);
        hd_log(HD_LOG_WARN, "cluster", "cannot read the servers: %s",
               fault->code ? fault->text : hd_error_text(err));
        return err;
    }
    if (!has_server(cluster, cluster->row.token))
        return 0; /* removed since the beat; the next one finds out */
    observe_rows(cluster, began, hd_clock_boot_us());
    err = remove_dead(cluster);
    if (!err)
        err = follow_mark(cluster, fault);
    if (err != HD_ECLOSED)
        hd_cluster_publish(cluster);
    return err;
}

static void on_lease_doubt(void *ctx, bool in_doubt)
{
    struct hd_cluster *cluster = ctx;

    hd_log(in_doubt ? HD_LOG_WARN : HD_LOG_INFO, "cluster",
           in_doubt ? "the lease is in doubt: this server stores nothing until it is renewed"
                    : "the lease is not in doubt any more");
    hd_cluster_report_doubt(cluster, in_doubt);
}

static const struct hd_lease_mode shared = {
    .renew = renew_membership,
    .observe = observe_servers,
    .missed = note_missed,
    .doubt = on_lease_doubt,
    .fenced = "another server has removed this one from the cluster",
};

/* ---- join -------------------------------------------------------------- */

/* 0: no live server uses the store alone; 1: look again later. *why: the mark is a dead one's. */
static int judge_mark(struct hd_cluster *cluster, bool *is_announced, const char **why,
                      struct heddle_error *fault)
{
    const struct hd_server_row *mark = hd_server_row_find(&cluster->rows, MARK);
    char name[160];

    *why = NULL;
    if (!mark || hd_server_row_is_shared(mark))
        return 0;
    describe(mark, name, sizeof(name));
    *why = find_death(cluster, mark);
    if (*why)
        return 0;
    if (hd_observation_has_changed(&cluster->observation, MARK))
        return hd_error_set(fault, HD_EBUSY,
                            "it is in use by %s, which has no cluster.address and uses it alone",
                            name);
    if (!*is_announced)
        hd_log(HD_LOG_INFO, "cluster",
               "%s has a lease on the store: waiting up to %d s to see whether it is alive", name,
               (int)(hd_server_identity_lease(&mark->identity) / SECOND));
    *is_announced = true;
    return 1;
}

/* The rows are as read: HD_ECONFLICT otherwise. */
static int add_rows(struct hd_cluster *cluster, bool takes_over, struct heddle_error *fault)
{
    const struct hd_server_row *mark = hd_server_row_find(&cluster->rows, MARK);
    struct hd_batch_builder batch;
    int err = 0;

    hd_batch_init(&batch);
    /* The counter of the mark changes: a server that wants the store alone expects it as it was. */
    if (mark && !takes_over)
        err = hd_server_row_beat(&batch, MARK, mark->token, random_beat());
    else if (mark)
        err = hd_server_row_expect_seen(&batch, mark);
    if (!err && (!mark || takes_over))
        err = put_mark(cluster, &batch, mark ? HD_OP_PUT : HD_OP_ADD);
    if (!err)
        err = hd_server_row_put(&batch, HD_OP_ADD, &cluster->row);
    if (!err)
        err = apply(cluster, &batch, fault);
    hd_batch_fini(&batch);
    if (!err)
        cluster->mark_token = mark && !takes_over ? mark->token : cluster->row.token;
    return err;
}

/* Reads the rows once, and joins if possible. 1: read them again later. */
static int try_join(struct hd_cluster *cluster, bool *is_announced, struct heddle_error *fault)
{
    const struct hd_server_row *mark;
    int64_t began = hd_clock_boot_us();
    int err = read_servers(cluster, fault);
    const char *why;
    char name[160];

    if (err)
        return err;
    observe_rows(cluster, began, hd_clock_boot_us());
    if (has_server(cluster, cluster->row.token)) { /* our commit, whose reply was lost */
        mark = hd_server_row_find(&cluster->rows, MARK);
        cluster->mark_token = mark ? mark->token : 0;
        return 0;
    }
    err = judge_mark(cluster, is_announced, &why, fault);
    if (err)
        return err;
    mark = hd_server_row_find(&cluster->rows, MARK);
    if (mark)
        describe(mark, name, sizeof(name));
    err = add_rows(cluster, why != NULL, fault);
    if (!err && why)
        hd_log(HD_LOG_INFO, "cluster", "took over the store from %s, %s", name, why);
    return err;
}

/* Servers that joined at the same time may be too many together. */
static int check_size(struct hd_cluster *cluster, struct heddle_error *fault)
{
    int err = read_servers(cluster, fault);

    if (!err && cluster->rows.count > HD_CLUSTER_MAX_SERVERS + 1)
        err = hd_error_set(fault, HD_ELIMIT, "%d servers share it already, which is the limit",
                           HD_CLUSTER_MAX_SERVERS);
    if (!err)
        hd_cluster_publish(cluster);
    return err;
}

/* *confirmed: the time before the successful attempt. */
static int join(struct hd_cluster *cluster, int64_t *confirmed, struct heddle_error *fault)
{
    bool is_announced = false;
    int err;

    do {
        *confirmed = hd_clock_boot_us();
        err = try_join(cluster, &is_announced, fault);
        if (err == HD_ECONFLICT && fault)
            *fault = (struct heddle_error){0};
        if (err > 0)
            hd_clock_sleep_us(LOOK_US);
    } while (err > 0 || err == HD_ECONFLICT);
    return err ? err : check_size(cluster, fault);
}

static void set_row(struct hd_cluster *cluster, const struct hd_cluster_options *options)
{
    struct hd_server_row *row = &cluster->row;
    size_t len;

    hd_uuid_v4(row->slot);
    do
        hd_random(&row->token, sizeof(row->token));
    while (row->token == 0);
    row->started_at = hd_clock_now_us();
    row->identity = *options->self;
    row->identity.lease_us = options->lease_us;
    memcpy(row->identity.id, row->slot, sizeof(row->identity.id));
    (void)snprintf(row->identity.address, sizeof(row->identity.address), "%s", options->address);
    len = strlen(row->identity.address);
    while (len > 0 && row->identity.address[len - 1] == '/')
        row->identity.address[--len] = '\0';
}

static int create(struct heddle *store, const struct hd_cluster_options *options,
                  struct hd_cluster **out, struct heddle_error *fault)
{
    struct hd_cluster *cluster = hd_calloc(1, sizeof(*cluster));
    int err;

    if (!cluster || pthread_mutex_init(&cluster->lock, NULL) != 0) {
        hd_free(cluster);
        return HD_ENOMEM;
    }

    const struct hd_lease_options common = {.url = options->url,
                                            .lease_us = options->lease_us,
                                            .mode = &shared,
                                            .ctx = cluster,
                                            .lost = options->lost,
                                            .lost_ctx = options->lost_ctx};

    cluster->store = store;
    set_row(cluster, options);
    hd_observation_init(&cluster->observation, options->lease_us);
    err = hd_lease_create(&common, &cluster->lease, fault);
    if (err) {
        pthread_mutex_destroy(&cluster->lock);
        hd_free(cluster);
        return err;
    }
    *out = cluster;
    return 0;
}

int hd_cluster_join(struct heddle *store, const struct hd_cluster_options *options,
                    struct hd_cluster **out, struct heddle_error *fault)
{
    struct hd_cluster *cluster = NULL;
    int64_t confirmed;
    int err;

    if (!hd_rows_is_remote(store))
        return hd_error_set(fault, HD_EINVAL,
                            "cluster.address is set, but this store is for one server only; "
                            "several can share one in PostgreSQL");
    err = create(store, options, &cluster, fault);
    if (err)
        return err;
    *out = cluster;
    err = join(cluster, &confirmed, fault);
    if (!err)
        err = hd_cluster_open_state(cluster, options->loop);
    if (!err)
        err = hd_lease_start(cluster->lease, store, options->loop, confirmed);
    return err;
}

/* ---- leave ------------------------------------------------------------- */

void hd_cluster_leave_loop(struct hd_cluster *cluster)
{
    if (!cluster)
        return;
    hd_cluster_close_async(cluster);
    hd_lease_leave_loop(cluster->lease);
}

/* HD_ECONFLICT: the leader is another server, or this one is gone already. */
static int remove_rows(struct hd_cluster *cluster, bool with_mark, struct heddle_error *fault)
{
    struct hd_batch_builder batch;
    int err;

    hd_batch_init(&batch);
    err = hd_server_row_expect(&batch, cluster->row.slot, cluster->row.token);
    if (!err && with_mark)
        err = hd_server_row_expect(&batch, MARK, cluster->row.token);
    if (!err)
        err = hd_server_row_delete(&batch, cluster->row.slot);
    if (!err && with_mark)
        err = hd_server_row_delete(&batch, MARK);
    if (!err)
        err = apply(cluster, &batch, fault);
    hd_batch_fini(&batch);
    return err;
}

void hd_cluster_leave(struct hd_cluster *cluster)
{
    struct heddle_error fault = {0};
    int err;

    if (!cluster)
        return;
    hd_lease_stop(cluster->lease);
    err = remove_rows(cluster, true, &fault);
    if (err == HD_ECONFLICT)
        err = remove_rows(cluster, false, &fault);
    if (err && err != HD_ECONFLICT)
        hd_log(HD_LOG_WARN, "cluster",
               "cannot leave the cluster, the others remove this server later: %s",
               fault.code ? fault.text : hd_error_text(err));
    hd_lease_destroy(cluster->lease);
    pthread_mutex_destroy(&cluster->lock);
    hd_free(cluster);
}
