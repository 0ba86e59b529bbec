#include "run/off_head.h"

#include "base/json.h"
#include "config/config.h"
#include "records/hold.h"
#include "records/line.h"
#include "records/thread_heads.h"
#include "store/rows.h"

#define MAX_READ ((size_t)256 << 20)

/* ---- keeping the head ------------------------------------------------- */

struct keeping {
    struct hd_app *app;
    const struct hd_run_rec *run;
    struct hd_slice ns;
    struct hd_arena arena;
};

/* True if a run on the head of the line is in flight. */
static int find_line_run(const struct keeping *k, struct hd_arena *arena, bool *out,
                         struct heddle_error *fault)
{
    struct hd_run_rec *active = NULL;
    size_t count = 0;
    int err = hd_runs_active(k->app->store, k->run->principal, k->run->thread_id, arena, &active,
                             &count, fault);

    *out = false;
    for (size_t i = 0; !err && i < count && !*out; i++) {
        struct hd_slice ns;

        err = hd_run_line(&active[i], arena, &ns, fault);
        *out = !err && !active[i].is_off_head && hd_slice_eq(ns, k->ns);
    }
    return err;
}

/* The end of the last run: the one in flight may be rolled back. */
static int read_line_end(const struct keeping *k, const struct hd_thread_rec *thread,
                         struct hd_arena *arena, struct hd_slice *out, struct heddle_error *fault)
{
    struct heddle *store = k->app->store;
    const struct hd_line_rec *line;
    struct hd_lines lines;
    int err = hd_lines_read(store, thread, arena, &lines, fault);

    line = err ? NULL : hd_lines_find(&lines, k->ns);
    if (!line || line->checkpoint_id.len == 0)
        return err;
    err = hd_thread_heads_check(store, thread->principal, thread->id, k->ns, line->checkpoint_id,
                                fault);
    if (!err)
        *out = line->checkpoint_id;
    return err == HD_ENOTFOUND ? 0 : err;
}

/* Empty: the record names the head already, or there is none. */
static int find_unnamed(const struct keeping *k, const struct hd_thread_rec *thread,
                        struct hd_arena *arena, struct hd_slice *out, struct heddle_error *fault)
{
    struct heddle *store = k->app->store;
    struct hd_slice chosen;
    bool is_busy = false;
    int err = hd_thread_heads_get(store, thread, k->ns, arena, &chosen, fault);

    *out = hd_slice(NULL, 0);
    if (err || chosen.len > 0)
        return err;
    err = find_line_run(k, arena, &is_busy, fault);
    if (!err && is_busy)
        err = read_line_end(k, thread, arena, out, fault);
    if (!err && out->len == 0)
        err = hd_thread_heads_latest(store, thread, k->ns, arena, out, fault);
    return err;
}

static int keep_head(const struct keeping *k, struct hd_thread_rec *thread, struct hd_slice head,
                     struct hd_arena *arena, struct heddle_error *fault)
{
    const struct hd_run_rec *run = k->run;
    struct hd_batch_builder batch;
    struct hd_batch view;
    struct hd_slice lane = {NULL, 0};
    int err = hd_thread_lane(arena, run->principal, run->thread_id, &lane);

    hd_batch_init(&batch);
    if (!err)
        err = hd_thread_heads_set(arena, &thread->heads, k->ns, head);
    if (!err)
        err = hd_thread_put(&batch, thread);
    if (!err && run->guard.token)
        err = hd_hold_expect(&batch, run->principal, run->thread_id, run->guard.token);
    view = hd_batch_view(&batch);
    if (!err)
        err = hd_rows_apply(k->app->store, lane, &view, NULL, fault);
    hd_batch_fini(&batch);
    return err;
}

static int keep_once(void *arg, struct heddle_error *fault)
{
    struct keeping *k = arg;
    struct hd_thread_rec thread;
    struct hd_slice head = {NULL, 0};
    int err;

    hd_arena_reset(&k->arena);
    err = hd_thread_read(k->app->store, k->run->principal, k->run->thread_id, &k->arena, &thread,
                         fault);
    if (!err)
        err = find_unnamed(k, &thread, &k->arena, &head, fault);
    if (err || head.len == 0)
        return err;
    return keep_head(k, &thread, head, &k->arena, fault);
}

int hd_off_head_keep(struct hd_app *app, const struct hd_run_rec *run, struct hd_slice ns,
                     struct heddle_error *fault)
{
    struct keeping k = {.app = app, .run = run, .ns = ns};
    int err;

    hd_arena_init(&k.arena, MAX_READ);
    err = hd_rows_change(app->store, keep_once, &k, fault);
    hd_arena_fini(&k.arena);
    return err;
}

/* ---- forks of delegates ----------------------------------------------- */

static int read_fork(const struct hd_run_rec *run, struct hd_slice ns, struct hd_arena *arena,
                     struct hd_slice *out, struct heddle_error *fault)
{
    struct hd_json json = {NULL};
    int err = run->forks.len > 0 ? hd_json_parse(&json, run->forks, fault) : 0;

    if (!err && run->forks.len > 0)
        err = hd_arena_copy(arena, hd_json_string(hd_json_get(hd_json_root(&json), ns)), out);
    hd_json_fini(&json);
    return err;
}

/* The head, also of a line whose latest checkpoint is the head. */
static int read_head(struct hd_app *app, const struct hd_run_rec *run, struct hd_slice ns,
                     struct hd_arena *arena, struct hd_slice *out, struct heddle_error *fault)
{
    struct hd_thread_rec thread;
    int err = hd_thread_read(app->store, run->principal, run->thread_id, arena, &thread, fault);

    if (!err)
        err = hd_thread_heads_get(app->store, &thread, ns, arena, out, fault);
    if (!err && out->len == 0)
        err = hd_thread_heads_latest(app->store, &thread, ns, arena, out, fault);
    return err;
}

int hd_off_head_fork(struct hd_app *app, const struct hd_run_rec *run, struct hd_slice ns,
                     struct hd_arena *arena, struct hd_slice *out, bool *is_own,
                     struct heddle_error *fault)
{
    int err = hd_thread_heads_made(app->store, run->principal, run->thread_id, ns, run->run_id,
                                   arena, out, fault);

    *is_own = !err && out->len > 0;
    if (!err && out->len == 0)
        err = read_fork(run, ns, arena, out, fault);
    if (!err && out->len == 0)
        err = read_head(app, run, ns, arena, out, fault);
    return err;
}
