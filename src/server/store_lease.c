#include "server/store_lease.h"

#include <heddle.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/uuid.h"
#include "cluster/observation.h"
#include "cluster/server_row.h"

#define SECOND INT64_C(1000000)
#define LOOK_US (SECOND / 5) /* between two reads of other servers' rows */

struct hd_store_lease {
    struct hd_lease *lease;
    struct hd_server_row row;
    struct hd_server_rows rows; /* as read last; for the thread that acquires or renews */
    struct hd_observation observation;
    pthread_mutex_t lock; /* protects `self` */
    struct hd_server_identity self;
};

static int read_holders(struct hd_store_lease *lease, struct heddle_error *fault)
{
    return hd_server_row_read_all(hd_lease_backend(lease->lease), &lease->rows, fault);
}

static int apply(struct hd_store_lease *lease, struct hd_batch_builder *batch,
                 struct heddle_error *fault)
{
    return hd_server_row_apply(hd_lease_backend(lease->lease), batch, fault);
}

static void take_identity(struct hd_store_lease *lease)
{
    pthread_mutex_lock(&lease->lock);
    lease->row.identity = lease->self;
    pthread_mutex_unlock(&lease->lock);
}

/* ---- beats ------------------------------------------------------------ */

/* HD_ECONFLICT: the row is not ours. */
static int beat(struct hd_store_lease *lease, bool is_update, struct heddle_error *fault)
{
    struct hd_batch_builder batch;
    int err;

    lease->row.beat++;
    hd_batch_init(&batch);
    if (is_update) {
        take_identity(lease);
        err = hd_server_row_expect(&batch, lease->row.slot, lease->row.token);
        if (!err)
            err = hd_server_row_put(&batch, HD_OP_PUT, &lease->row);
    } else {
        err = hd_server_row_beat(&batch, lease->row.slot, lease->row.token, lease->row.beat);
    }
    if (!err)
        err = apply(lease, &batch, fault);
    hd_batch_fini(&batch);
    return err;
}

static int claim(struct hd_store_lease *lease, struct heddle_error *fault)
{
    struct hd_batch_builder batch;
    int err;

    hd_batch_init(&batch);
    err = hd_server_row_put(&batch, HD_OP_ADD, &lease->row);
    if (!err)
        err = apply(lease, &batch, fault);
    hd_batch_fini(&batch);
    return err;
}

/*
 * The row belongs to another server, or an earlier commit of ours changed it and its reply was
 * lost.
 */
static int examine(struct hd_store_lease *lease, struct heddle_error *fault)
{
    int err = read_holders(lease, fault);
    char name[160];

    if (!err && lease->rows.count == 0) {
        err = claim(lease, fault);
        if (err == HD_ECONFLICT)
            err = read_holders(lease, fault);
    }
    if (err || lease->rows.count == 0 || lease->rows.items[0].token == lease->row.token)
        return err;
    hd_server_identity_describe(&lease->rows.items[0].identity, name, sizeof(name));
    return hd_error_set(fault, HD_ECLOSED, "%s has taken over the store", name);
}

static int renew_lease(void *ctx, bool is_update, struct heddle_error *fault)
{
    struct hd_store_lease *lease = ctx;
    int err = beat(lease, is_update, fault);

    if (err != HD_ECONFLICT)
        return err;
    *fault = (struct heddle_error){0};
    return examine(lease, fault);
}

static const struct hd_lease_mode exclusive = {
    .renew = renew_lease,
    .fenced = "another server has taken over the store",
};

/* ---- take ------------------------------------------------------------- */

static size_t count_shared(const struct hd_server_rows *rows)
{
    size_t count = 0;

    for (size_t i = 0; i < rows->count; i++)
        count += rows->items[i].slot[0] != '\0';
    return count;
}

static int refuse_held_store(const struct hd_server_rows *rows, const struct hd_server_row *holder,
                             struct heddle_error *fault)
{
    size_t count = count_shared(rows);
    char name[160];

    hd_server_identity_describe(&holder->identity, name, sizeof(name));
    if (count == 0)
        return hd_error_set(fault, HD_EBUSY, "it is in use by %s", name);
    return hd_error_set(fault, HD_EBUSY,
                        "it is in use by %s%s; set cluster.address and cluster.key to join %s",
                        name, count > 1 ? " and others" : "", count > 1 ? "them" : "it");
}

enum standing { ALIVE, ENDED, SILENT, UNKNOWN };

static enum standing judge(const struct hd_store_lease *lease, const struct hd_server_row *row)
{
    if (hd_server_identity_is_gone(&row->identity, &lease->row.identity))
        return ENDED;
    if (hd_observation_has_changed(&lease->observation, row->slot))
        return ALIVE;
    return hd_observation_silence(&lease->observation, row->slot) >=
                   hd_server_identity_lease(&row->identity)
               ? SILENT
               : UNKNOWN;
}

/* All servers that have rows are dead. */
static int take_over(struct hd_store_lease *lease, const char *why, struct heddle_error *fault)
{
    const struct hd_server_rows *rows = &lease->rows;
    struct hd_batch_builder batch;
    char name[160];
    int err = 0;

    hd_batch_init(&batch);
    for (size_t i = 0; !err && i < rows->count; i++)
        err = hd_server_row_expect_seen(&batch, &rows->items[i]);
    for (size_t i = 0; !err && i < rows->count; i++) {
        if (rows->items[i].slot[0])
            err = hd_server_row_delete(&batch, rows->items[i].slot);
    }
    if (!err)
        err =
            hd_server_row_put(&batch, rows->items[0].slot[0] ? HD_OP_ADD : HD_OP_PUT, &lease->row);
    if (!err)
        err = apply(lease, &batch, fault);
    hd_batch_fini(&batch);
    hd_server_identity_describe(&rows->items[0].identity, name, sizeof(name));
    if (!err)
        hd_log(HD_LOG_INFO, "serve", "took over the store from %s, %s", name, why);
    return err;
}

static void observe(struct hd_store_lease *lease, int64_t began, int64_t ended)
{
    hd_observation_begin(&lease->observation, began, ended);
    for (size_t i = 0; i < lease->rows.count; i++)
        hd_observation_note(&lease->observation, lease->rows.items[i].slot,
                            lease->rows.items[i].token, lease->rows.items[i].beat);
    hd_observation_end(&lease->observation);
}

static void announce_wait(const struct hd_server_row *row)
{
    char name[160];

    hd_server_identity_describe(&row->identity, name, sizeof(name));
    hd_log(HD_LOG_INFO, "serve",
           "%s has a lease on the store: waiting up to %d s to see whether it is alive", name,
           (int)(hd_server_identity_lease(&row->identity) / SECOND));
}

/* Reads the rows once. 1: read them again later. */
static int look_at_servers(struct hd_store_lease *lease, bool *is_announced,
                           struct heddle_error *fault)
{
    const char *why = "whose process has ended";
    int64_t began = hd_clock_boot_us();
    int err = read_holders(lease, fault);

    if (err)
        return err;
    observe(lease, began, hd_clock_boot_us());
    if (lease->rows.count == 0)
        return claim(lease, fault);
    if (lease->rows.items[0].token == lease->row.token)
        return 0; /* our commit whose reply was lost */
    for (size_t i = 0; i < lease->rows.count; i++) {
        const struct hd_server_row *row = &lease->rows.items[i];
        enum standing standing = judge(lease, row);

        if (standing == ALIVE)
            return refuse_held_store(&lease->rows, row, fault);
        if (standing == UNKNOWN) {
            if (!*is_announced)
                announce_wait(row);
            *is_announced = true;
            return 1;
        }
        if (standing == SILENT)
            why = "which has not renewed its lease";
    }
    return take_over(lease, why, fault);
}

/* *confirmed: the time before the successful attempt. */
static int acquire(struct hd_store_lease *lease, int64_t *confirmed, struct heddle_error *fault)
{
    bool is_announced = false;
    int err;

    do {
        *confirmed = hd_clock_boot_us();
        err = look_at_servers(lease, &is_announced, fault);
        if (err == HD_ECONFLICT && fault)
            *fault = (struct heddle_error){0};
        if (err > 0)
            hd_clock_sleep_us(LOOK_US);
    } while (err > 0 || err == HD_ECONFLICT);
    return err;
}

static void destroy(struct hd_store_lease *lease)
{
    hd_lease_destroy(lease->lease);
    pthread_mutex_destroy(&lease->lock);
    hd_free(lease);
}

int hd_store_lease_take(struct heddle *store, const struct hd_store_lease_options *options,
                        struct hd_store_lease **out, struct heddle_error *fault)
{
    struct hd_store_lease *lease = hd_calloc(1, sizeof(*lease));
    int64_t confirmed;
    int err;

    if (!lease || pthread_mutex_init(&lease->lock, NULL) != 0) {
        hd_free(lease);
        return HD_ENOMEM;
    }

    const struct hd_lease_options common = {.url = options->url,
                                            .lease_us = HD_SERVER_IDENTITY_LEASE_US,
                                            .mode = &exclusive,
                                            .ctx = lease,
                                            .lost = options->lost,
                                            .lost_ctx = options->ctx};

    hd_random(&lease->row.token, sizeof(lease->row.token));
    lease->row.started_at = hd_clock_now_us();
    lease->row.identity = lease->self = *options->self;
    hd_observation_init(&lease->observation, HD_SERVER_IDENTITY_LEASE_US);
    err = hd_lease_create(&common, &lease->lease, fault);
    if (!err)
        err = acquire(lease, &confirmed, fault);
    if (err) {
        destroy(lease);
        return err;
    }
    *out = lease;
    return hd_lease_start(lease->lease, store, options->loop, confirmed);
}

void hd_store_lease_update(struct hd_store_lease *lease, const struct hd_server_identity *self)
{
    pthread_mutex_lock(&lease->lock);
    lease->self = *self;
    pthread_mutex_unlock(&lease->lock);
    hd_lease_update(lease->lease);
}

void hd_store_lease_leave_loop(struct hd_store_lease *lease)
{
    if (lease)
        hd_lease_leave_loop(lease->lease);
}

void hd_store_lease_release(struct hd_store_lease *lease)
{
    struct heddle_error fault = {0};
    struct hd_batch_builder batch;
    int err;

    if (!lease)
        return;
    hd_lease_stop(lease->lease);
    hd_batch_init(&batch);
    err = hd_server_row_expect(&batch, lease->row.slot, lease->row.token);
    if (!err)
        err = hd_server_row_delete(&batch, lease->row.slot);
    if (!err)
        err = apply(lease, &batch, &fault);
    hd_batch_fini(&batch);
    if (err && err != HD_ECONFLICT)
        hd_log(HD_LOG_WARN, "serve",
               "cannot release the lease on the store, it stays until it expires: %s",
               fault.code ? fault.text : hd_error_text(err));
    destroy(lease);
}
