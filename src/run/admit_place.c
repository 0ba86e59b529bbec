/* Where a run starts: its line, the checkpoint, and the runs before it on the line. */
#include "app/app.h"
#include "base/buf.h"
#include "base/json.h"
#include "config/config.h"
#include "records/line.h"
#include "records/thread_heads.h"
#include "records/thread_roots.h"
#include "run/admit_internal.h"
#include "run/delegate.h"

#define MAX_MAP ((size_t)256 << 20)

static struct heddle *store_of(const struct hd_admit_run *run)
{
    return run->a->app->store;
}

static struct hd_slice configured(const struct hd_run_request *request, const char *name)
{
    return hd_json_string(hd_json_get(request->configurable, hd_slice_cstr(name)));
}

/* ---- the namespace ---------------------------------------------------- */

int hd_admit_assistant_ns(struct hd_arena *arena, struct hd_slice assistant_id,
                          struct hd_slice *out)
{
    char *text = hd_arena_printf(arena, "assistant:%.*s", (int)assistant_id.len, assistant_id.ptr);

    *out = hd_slice_cstr(text);
    return text ? 0 : HD_ENOMEM;
}

/* With namespaces_show off, clients neither receive nor send the root of a namespace. */
static bool is_relative(const struct hd_admit_run *run)
{
    return !run->a->app->config->namespaces_show &&
           !hd_root_is_assistant(run->a->request->checkpoint_ns);
}

/* The root of the checkpoint that the request names; *is_named is false without one. */
static int find_shown(struct hd_admit_run *run, bool *is_named)
{
    const struct hd_run_request *request = run->a->request;
    struct hd_admit_attempt *t = run->attempt;

    run->shown = hd_slice(NULL, 0);
    *is_named = request->has_checkpoint_ns && !is_relative(run);
    if (!*is_named)
        return 0;
    if (request->checkpoint_ns.len == 0)
        return hd_thread_has_empty_root(store_of(run), &t->thread, is_named, t->fault);
    return hd_thread_root_of(store_of(run), &t->thread, request->checkpoint_ns, &run->shown,
                             t->fault);
}

/*
 * The namespace is that of the assistant, unless the configurable names another one; "" names the
 * empty root only where clients see roots. A checkpoint of another assistant is ignored: clients
 * send the head that they display, and the user may have switched the assistant since.
 */
static int choose_place(struct hd_admit_run *run)
{
    const struct hd_run_request *request = run->a->request;
    bool has_root =
        request->has_root && (request->root.len > 0 || run->a->app->config->namespaces_show);
    bool is_named = false;
    int err = hd_admit_assistant_ns(run->a->arena, run->assistant.id, &run->ns);

    if (!err)
        err = find_shown(run, &is_named);
    if (err)
        return err;
    if (has_root)
        run->ns = request->root;
    run->checkpoint_id = configured(request, "checkpoint_id");
    if (run->checkpoint_id.len == 0)
        run->checkpoint_id = request->checkpoint_id;
    if (!is_named || hd_slice_eq(run->shown, run->ns))
        return 0;
    if (!has_root && !hd_root_is_assistant(run->shown))
        run->ns = run->shown;
    else
        run->checkpoint_id = hd_slice(NULL, 0);
    return 0;
}

/* ---- the line --------------------------------------------------------- */

static bool is_on_line(const struct hd_admit_run *run, struct hd_slice ns)
{
    return !run->a->app->config->namespaces_parallel || hd_slice_eq(ns, run->ns);
}

/* A run off the head neither waits for those of its line nor delays them. */
static bool is_beside(const struct hd_admit_run *run, bool is_off_head)
{
    return run->a->app->config->namespaces_parallel && (run->a->is_off_head || is_off_head);
}

/* Lists the runs of the line: those of other agents neither wait for this run nor delay it. */
static int list_in_flight(struct hd_admit_run *run)
{
    const struct hd_admit_attempt *t = run->attempt;
    int err = 0;

    run->in_flight_count = 0;
    if (t->active_count == 0)
        return 0;
    run->in_flight = hd_arena_calloc(run->a->arena, t->active_count, sizeof(*run->in_flight));
    if (!run->in_flight)
        return HD_ENOMEM;
    for (size_t i = 0; !err && i < t->active_count; i++) {
        struct hd_slice ns = {NULL, 0};

        if (run->a->app->config->namespaces_parallel)
            err = hd_run_line(&t->active[i], run->a->arena, &ns, t->fault);
        if (!err && is_on_line(run, ns) && !is_beside(run, t->active[i].is_off_head))
            run->in_flight[run->in_flight_count++] = t->active[i].run_id;
    }
    return err;
}

/* True if an earlier run of the group is on the line. */
static bool has_earlier(const struct hd_admit_run *run)
{
    for (const struct hd_admit_run *other = run->attempt->runs; other < run; other++) {
        if (is_on_line(run, other->ns) && !is_beside(run, other->a->is_off_head))
            return true;
    }
    return false;
}

static int check_line(struct hd_admit_run *run)
{
    struct hd_admit_attempt *t = run->attempt;
    int err = list_in_flight(run);

    if (err)
        return err;
    if (run->a->is_off_head) { /* the queue keeps the heads before it starts the run */
        run->is_busy = true;
        return 0;
    }
    run->is_busy =
        run->in_flight_count > 0 ||
        hd_delegation_is_on_line(run->a->app->delegation, run->a->principal, t->thread.id, run->ns);
    if (run->is_busy && run->a->request->multitask == HD_MULTITASK_REJECT)
        return hd_admit_refuse(t->group, t->fault, 409,
                               "Thread is already running a task. Wait for it to finish or choose "
                               "a different multitask strategy.");
    run->is_busy |= has_earlier(run);
    return 0;
}

bool hd_admit_place_begins_now(const struct hd_admit_run *run)
{
    return !run->is_busy && run->a->request->delay_us == 0;
}

/* ---- the checkpoint --------------------------------------------------- */

/* True if the request names a checkpoint of a subgraph. */
static bool is_inside(const struct hd_admit_run *run)
{
    return run->a->request->checkpoint_ns.len > run->shown.len;
}

/* Strips the root, if present, from a namespace of the checkpoint map. */
static struct hd_slice below_root(const struct hd_admit_run *run, struct hd_slice ns)
{
    if (!hd_slice_starts(ns, run->ns) || run->ns.len == 0)
        return ns;
    if (ns.len == run->ns.len)
        return hd_slice(NULL, 0);
    if (ns.ptr[run->ns.len] != '|')
        return ns;
    return hd_slice(ns.ptr + run->ns.len + 1, ns.len - run->ns.len - 1);
}

static int write_map(const struct hd_admit_run *run, struct hd_buf *buf)
{
    struct hd_json_iter it = hd_json_iter(run->a->request->checkpoint_map);
    struct hd_jw jw;

    hd_jw_init(&jw, buf);
    hd_jw_object(&jw);
    while (hd_json_next(&it)) {
        if (!hd_json_is_string(it.val))
            continue;
        hd_jw_key(&jw, below_root(run, it.key));
        hd_jw_string(&jw, hd_json_string(it.val));
    }
    hd_jw_object_end(&jw);
    return hd_jw_finish(&jw);
}

/* For a checkpoint of a subgraph, the run starts at the root's checkpoint, found in the map. */
static int follow_map(struct hd_admit_run *run)
{
    hd_json_val map = run->a->request->checkpoint_map, root = hd_json_get(map, HD_S(""));
    struct hd_buf buf;
    int err;

    if (!is_inside(run) || run->checkpoint_id.len == 0)
        return 0;
    if (!hd_json_is_string(root))
        root = hd_json_get(map, run->ns);
    if (!hd_json_is_string(root))
        return hd_admit_refuse(run->attempt->group, run->attempt->fault, 422,
                               "checkpoint_map: needed to run from the checkpoint of a subgraph");
    hd_buf_init(&buf, MAX_MAP);
    err = write_map(run, &buf);
    if (!err)
        err = hd_arena_copy(run->a->arena, hd_buf_slice(&buf), &run->checkpoint_map);
    hd_buf_fini(&buf);
    run->checkpoint_id = hd_json_string(root);
    return err;
}

/*
 * Uses the head that a client chose if the request names no checkpoint. A pending run reads its
 * head when it starts, since the runs before it change the head.
 */
static int follow_head(struct hd_admit_run *run)
{
    if (run->checkpoint_id.len > 0 || !hd_admit_place_begins_now(run))
        return 0;
    return hd_thread_heads_get(store_of(run), &run->attempt->thread, run->ns, run->a->arena,
                               &run->checkpoint_id, run->attempt->fault);
}

static int check_checkpoint(struct hd_admit_run *run)
{
    struct hd_admit_attempt *t = run->attempt;
    int err = 0;

    if (run->checkpoint_id.len > 0)
        err = hd_thread_heads_check(store_of(run), run->a->principal, t->thread.id, run->ns,
                                    run->checkpoint_id, t->fault);
    return err == HD_ENOTFOUND ? hd_admit_refuse(t->group, t->fault, 404, "Checkpoint not found")
                               : err;
}

int hd_admit_place_find(struct hd_admit_run *run)
{
    int err = choose_place(run);

    if (!err)
        err = check_line(run);
    if (!err)
        err = follow_map(run);
    if (!err)
        err = follow_head(run);
    if (!err)
        err = check_checkpoint(run);
    return err;
}
