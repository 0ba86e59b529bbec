/* The order of principals to move: see rekey.h. */
#include "transfer/rekey.h"

#include <heddle.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "records/principals.h"
#include "records/record_internal.h"
#include "store/rows.h"
#include "transfer/rekey_internal.h"

#define GROUP 100      /* principals that move at a time */
#define POLL_US 200000 /* between looks at what is under way */
#define MAX_PASSES 100 /* over one principal, without success */
#define RECHECK_MARGIN_US 1000000

struct moving {
    struct hd_rekey *rekey;
    struct heddle_error *fault;
    struct hd_arena arena; /* of the group */
    struct journey {
        struct hd_principal_rec principal; /* marked as moving */
        struct hd_slice from, to;
        bool is_begun; /* something may have moved before */
    } group[GROUP];
    size_t count;
    struct hd_buf after; /* the last principal that was looked at */
    bool has_more;
};

static const struct hd_principal_key *new_key(const struct hd_rekey *rekey)
{
    return hd_auth_key(rekey->auth, 0);
}

/* ---- rows of principals ----------------------------------------------- */

static int apply_principals(struct moving *m, struct hd_batch_builder *builder)
{
    struct hd_batch batch = hd_batch_view(builder);
    int err = hd_rows_apply(m->rekey->store, hd_principal_lane(), &batch, NULL, m->fault);

    hd_batch_reset(builder);
    return err;
}

/* Updates its row. HD_ECONFLICT: another writer changed it. */
static int set_state(struct moving *m, struct hd_principal_rec *principal,
                     enum hd_principal_state state)
{
    struct hd_batch_builder batch;
    int err;

    hd_batch_init(&batch);
    principal->state = state;
    err = hd_principal_put(&batch, principal);
    if (!err)
        err = apply_principals(m, &batch);
    hd_batch_fini(&batch);
    return err;
}

/* It has come back from where it was going. */
static int set_returned(struct moving *m, struct hd_principal_rec *principal)
{
    principal->moved_to = HD_S("");
    return set_state(m, principal, HD_PRINCIPAL_HERE);
}

/* It is there now: its new row and the old one change together. */
static int set_moved(struct moving *m, struct hd_principal_rec *old)
{
    struct hd_principal_rec new = *old, there;
    struct hd_batch_builder batch;
    int err = hd_principal_read(m->rekey->store, old->moved_to, &m->arena, &there, m->fault);

    hd_batch_init(&batch);
    new.id = old->moved_to;
    new.key_id = new_key(m->rekey)->id;
    new.moved_to = HD_S("");
    new.state = HD_PRINCIPAL_HERE;
    new.rev = err ? 0 : there.rev;
    if (err == HD_ENOTFOUND)
        err = hd_principal_add(&batch, &new);
    else if (!err)
        err = hd_principal_put(&batch, &new);
    old->state = HD_PRINCIPAL_MOVED;
    if (!err)
        err = hd_principal_put(&batch, old);
    if (!err)
        err = apply_principals(m, &batch);
    hd_batch_fini(&batch);
    return err;
}

/* ---- choosing --------------------------------------------------------- */

static bool is_new(const struct moving *m, const struct hd_principal_rec *principal)
{
    return hd_slice_eq(principal->key_id, new_key(m->rekey)->id);
}

/* One of the new key is on its way when a move was interrupted, and the keys then changed back. */
static bool must_move(const struct moving *m, const struct hd_principal_rec *principal)
{
    return is_new(m, principal) ? principal->state == HD_PRINCIPAL_MOVING
                                : principal->state != HD_PRINCIPAL_MOVED;
}

/* The new principal, or that of an interrupted move. */
static int find_other(struct moving *m, const struct hd_principal_rec *principal,
                      struct hd_slice *out)
{
    char to[HD_PRINCIPAL_SIZE];
    int err;

    if (is_new(m, principal))
        return hd_arena_copy(&m->arena, principal->moved_to, out);
    err = hd_auth_principal_derive(new_key(m->rekey), principal->kind, principal->issuer,
                                   principal->subject, to);
    return err ? err : hd_arena_copy(&m->arena, hd_slice_cstr(to), out);
}

static int keep_journey(struct moving *m, const struct hd_principal_rec *principal)
{
    struct journey *journey = &m->group[m->count];
    struct hd_principal_rec *kept = &journey->principal;
    bool is_back = is_new(m, principal);
    int err;

    *kept = *principal;
    err = hd_arena_copy(&m->arena, principal->id, &kept->id);
    if (!err)
        err = hd_arena_copy(&m->arena, principal->key_id, &kept->key_id);
    if (!err)
        err = hd_arena_copy(&m->arena, principal->issuer, &kept->issuer);
    if (!err)
        err = hd_arena_copy(&m->arena, principal->subject, &kept->subject);
    if (!err)
        err = find_other(m, principal, &kept->moved_to);
    journey->is_begun = principal->state == HD_PRINCIPAL_MOVING;
    journey->from = is_back ? kept->moved_to : kept->id;
    journey->to = is_back ? kept->id : kept->moved_to;
    m->count += !err;
    return err;
}

static int on_principal(void *arg, const struct hd_principal_rec *principal)
{
    struct moving *m = arg;
    int err;

    if (m->count == GROUP) {
        m->has_more = true;
        return 1;
    }
    hd_buf_reset(&m->after);
    err = hd_buf_append_slice(&m->after, principal->id);
    if (err || !must_move(m, principal))
        return err;
    return keep_journey(m, principal);
}

static int choose_group(struct moving *m)
{
    struct hd_buf after;
    int err;

    m->count = 0;
    m->has_more = false;
    hd_arena_reset(&m->arena);
    hd_buf_init(&after, 4096);
    err = hd_buf_append_slice(&after, hd_buf_slice(&m->after));
    if (!err)
        err = hd_principals_scan(m->rekey->store, hd_buf_slice(&after), on_principal, m, m->fault);
    hd_buf_fini(&after);
    return err;
}

/* ---- moving ----------------------------------------------------------- */

static int count_group(struct moving *m)
{
    int err = 0;

    for (size_t i = 0; !err && i < m->count; i++) {
        struct hd_mover mover = {.rekey = m->rekey, .from = m->group[i].from, .fault = m->fault};

        err = hd_mover_count(&mover);
        m->rekey->principals += !err;
    }
    return err;
}

/* Marks the principals as moving: new requests are refused at once, earlier ones soon. */
static int announce(struct moving *m)
{
    int err = 0;

    for (size_t i = 0; !err && i < m->count; i++) {
        struct hd_principal_rec *principal = &m->group[i].principal;

        err = set_state(m, principal, HD_PRINCIPAL_MOVING);
        if (err == HD_ECONFLICT) { /* the next time */
            principal->state = HD_PRINCIPAL_HERE;
            err = 0;
        }
    }
    if (!err && m->count > 0)
        hd_clock_sleep_us(HD_AUTH_RECHECK_US + RECHECK_MARGIN_US);
    return err;
}

/* *is_so: nothing is left under the old principal. *has_moved: something went. */
static int move_all(struct moving *m, struct hd_mover *mover, bool *is_so, bool *has_moved)
{
    int64_t until = hd_clock_monotonic_us() + m->rekey->patience_us;
    int err = 0;

    *is_so = false;
    for (int pass = 0; !err && !*is_so && pass < MAX_PASSES;) {
        bool is_busy;

        err = hd_mover_is_busy(mover, &is_busy);
        if (err || (is_busy && hd_clock_monotonic_us() > until))
            return err;
        if (is_busy) {
            hd_clock_sleep_us(POLL_US);
            continue;
        }
        err = hd_mover_pass(mover);
        *is_so = !err && mover->left == 0 && mover->moved == 0;
        *has_moved = *has_moved || mover->moved > 0;
        pass++;
        if (mover->left > 0)
            hd_clock_sleep_us(POLL_US / 4);
    }
    return err;
}

/* A principal with runs that do not end stays unchanged, unless a part of it has moved already. */
static int move_one(struct moving *m, struct journey *journey)
{
    struct hd_mover mover = {
        .rekey = m->rekey, .from = journey->from, .to = journey->to, .fault = m->fault};
    struct hd_principal_rec *principal = &journey->principal;
    bool is_back = is_new(m, principal), is_done;
    int err;

    if (principal->state != HD_PRINCIPAL_MOVING) {
        m->rekey->waiting++;
        return 0;
    }
    err = move_all(m, &mover, &is_done, &journey->is_begun);
    if (!err && !is_done) {
        m->rekey->waiting++;
        return journey->is_begun ? 0 : set_state(m, principal, HD_PRINCIPAL_HERE);
    }
    if (!err)
        err = is_back ? set_returned(m, principal) : set_moved(m, principal);
    m->rekey->principals += !err;
    return err;
}

static int move_group(struct moving *m)
{
    int err = announce(m);

    for (size_t i = 0; !err && i < m->count; i++) {
        if (m->rekey->progress)
            m->rekey->progress(m->rekey->ctx, m->count - i);
        err = move_one(m, &m->group[i]);
    }
    return err;
}

/* ---- creators of runs --------------------------------------------------- */

/* The body names the actor when it is not the thread's owner: wherever it is, it has moved too. */
static int on_run(void *arg, size_t which, const struct hd_cell *cells)
{
    struct moving *m = arg;
    struct hd_principal_rec principal = {.state = HD_PRINCIPAL_HERE};
    struct hd_slice raw = {NULL, 0}, actor;
    struct hd_member member = {"actor", &raw};
    struct hd_run_rec run;
    struct hd_batch_builder batch;
    int err = hd_record_split(cells[HD_RUNS_BODY].bytes, &member, 1);

    (void)which;
    if (err || raw.len == 0)
        return err;
    hd_arena_reset(&m->arena);
    err = hd_record_text(raw, &m->arena, &actor);
    if (!err)
        err = hd_principal_read(m->rekey->store, actor, &m->arena, &principal, m->fault);
    if (err || principal.state != HD_PRINCIPAL_MOVED || principal.moved_to.len == 0)
        return err == HD_ENOTFOUND ? 0 : err;
    hd_batch_init(&batch);
    err = hd_run_read(m->rekey->store, cells[HD_RUNS_PRINCIPAL].bytes, cells[HD_RUNS_THREAD].bytes,
                      cells[HD_RUNS_ID].bytes, &m->arena, &run, m->fault);
    if (!err) {
        run.actor = principal.moved_to;
        err = hd_run_put(&batch, &run);
    }
    if (!err)
        err = apply_principals(m, &batch);
    hd_batch_fini(&batch);
    m->rekey->rows += !err;
    return err == HD_ENOTFOUND || err == HD_ECONFLICT ? 0 : err;
}

static int move_actors(struct moving *m)
{
    struct hd_query query = {.table = HD_RUNS, .index = HD_PRIMARY, .columns = 1u << HD_RUNS_BODY};

    return hd_rows_scan(m->rekey->store, query, on_run, m, m->fault);
}

/* ---- all of them ------------------------------------------------------ */

int hd_rekey(struct hd_rekey *rekey, struct heddle_error *fault)
{
    struct moving *m = hd_calloc(1, sizeof(*m));
    int err = 0;

    if (!m)
        return HD_ENOMEM;
    rekey->principals = rekey->threads = rekey->rows = rekey->waiting = 0;
    m->rekey = rekey;
    m->fault = fault;
    hd_arena_init(&m->arena, (size_t)1 << 30);
    hd_buf_init(&m->after, 4096);
    do {
        err = choose_group(m);
        if (!err)
            err = rekey->only_counts ? count_group(m) : move_group(m);
    } while (!err && m->has_more);
    if (!err && !rekey->only_counts && rekey->principals > 0)
        err = move_actors(m);
    if (!err && !rekey->only_counts)
        err = hd_mover_follow_people(rekey, fault);
    hd_buf_fini(&m->after);
    hd_arena_fini(&m->arena);
    hd_free(m);
    return err;
}
