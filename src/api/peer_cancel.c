#include "api/peer_cancel.h"

#include <string.h>
#include <uv.h>

#include "api/request/peer.h"
#include "app/defer.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "cluster/cluster.h"
#include "records/hold.h"

#define PATH "/cluster/runs/cancel"
#define AGAIN_MS 500
#define MAX_ARENA ((size_t)1 << 30)
#define MAX_RUNS 10000 /* of one request; the next round has the others */

static const char *const actions[] = {
    [HD_CANCEL_INTERRUPT] = "interrupt", [HD_CANCEL_ROLLBACK] = "rollback", NULL};

/* ---- finding (store thread) ------------------------------------------- */

/* A run in flight, and the server that holds its thread. */
struct held_run {
    struct held_run *next;
    struct hd_slice principal, thread_id, run_id, server;
};

struct peer_cancelling {
    struct hd_peer_cancel *cancel;
    struct hd_app *app;
    uv_timer_t timer; /* between two rounds */
    int64_t deadline; /* monotonic */
    size_t pending;   /* requests */
    bool is_again;    /* some runs must be looked up again */
    bool is_first;

    struct hd_arena arena; /* of this round */
    struct held_run *first;
    struct hd_arena read; /* of one thread */
    struct heddle_error fault;
    int err;
};

static int note_run(struct peer_cancelling *c, const struct hd_run_rec *run, struct hd_slice server)
{
    struct held_run *held = hd_arena_calloc(&c->arena, 1, sizeof(*held));
    int err = held ? 0 : HD_ENOMEM;

    if (!err)
        err = hd_arena_copy(&c->arena, run->principal, &held->principal);
    if (!err)
        err = hd_arena_copy(&c->arena, run->thread_id, &held->thread_id);
    if (!err)
        err = hd_arena_copy(&c->arena, run->run_id, &held->run_id);
    if (!err)
        err = hd_arena_copy(&c->arena, server, &held->server);
    if (err)
        return err;
    held->next = c->first; /* in reverse: no queued run begins when the one before it ends */
    c->first = held;
    return 0;
}

/* In the first round the route has cancelled those of this server. */
static bool is_of_interest(const struct peer_cancelling *c, struct hd_slice server)
{
    return server.len > 0 &&
           (!c->is_first || !hd_slice_eq(server, hd_cluster_self(c->app->cluster)));
}

static bool is_wanted(const struct hd_run_selection *selection, const struct hd_run_rec *run)
{
    return (!selection->actor || hd_slice_eq(run->actor, *selection->actor)) &&
           (!selection->assistant_id || hd_slice_eq(run->assistant_id, *selection->assistant_id)) &&
           (run->status == HD_RUN_STATE_RUNNING ? selection->running : selection->pending);
}

static int on_held_thread(void *arg, struct hd_slice principal, struct hd_slice thread,
                          const struct hd_hold *hold)
{
    struct peer_cancelling *c = arg;
    const struct hd_run_selection *selection = c->cancel->selection;
    struct hd_run_rec *runs = NULL;
    size_t count = 0;
    int err;

    if (!is_of_interest(c, hold->server) ||
        (selection->principal && !hd_slice_eq(principal, *selection->principal)))
        return 0;
    hd_arena_reset(&c->read);
    err = hd_runs_active(c->app->store, principal, thread, &c->read, &runs, &count, &c->fault);
    for (size_t i = 0; !err && i < count; i++) {
        if (is_wanted(selection, &runs[i]))
            err = note_run(c, &runs[i], hold->server);
    }
    return err;
}

static int find_listed(struct peer_cancelling *c, const struct hd_run_rec *listed)
{
    struct hd_hold hold = {.token = 0};
    struct hd_run_rec run;
    int err;

    hd_arena_reset(&c->read);
    err = hd_hold_read(c->app->store, listed->principal, listed->thread_id, &c->read, &hold,
                       &c->fault);
    if (err || !is_of_interest(c, hold.server))
        return err;
    err = hd_run_read(c->app->store, listed->principal, listed->thread_id, listed->run_id, &c->read,
                      &run, &c->fault);
    if (err == HD_ENOTFOUND) {
        c->fault = (struct heddle_error){0};
        return 0;
    }
    return err || run.due_at == 0 ? err : note_run(c, &run, hold.server);
}

static void find_runs(void *arg)
{
    struct peer_cancelling *c = arg;
    const struct hd_peer_cancel *cancel = c->cancel;

    if (cancel->selection)
        c->err = hd_holds_all(c->app->store, on_held_thread, c, &c->fault);
    for (size_t i = 0; !c->err && !cancel->selection && i < cancel->count; i++)
        c->err = find_listed(c, &cancel->runs[i]);
}

/* ---- sending (loop) --------------------------------------------------- */

static void begin_round(struct peer_cancelling *c);

static void on_cancel_closed(uv_handle_t *handle)
{
    struct peer_cancelling *c = handle->data;

    hd_arena_fini(&c->arena);
    hd_arena_fini(&c->read);
    hd_free(c);
}

static void end_cancelling(struct peer_cancelling *c)
{
    struct hd_peer_cancel *cancel = c->cancel;

    cancel->has_failed = c->is_again;
    if (c->is_again)
        hd_log(HD_LOG_WARN, "cluster", "not all runs could be cancelled: a server does not answer");
    uv_close((uv_handle_t *)&c->timer, on_cancel_closed);
    cancel->done(cancel->ctx);
}

static void on_again(uv_timer_t *timer)
{
    begin_round(timer->data);
}

static void end_round(struct peer_cancelling *c)
{
    if (c->pending > 0)
        return;
    c->is_first = false;
    if (c->is_again && hd_clock_monotonic_us() < c->deadline)
        uv_timer_start(&c->timer, on_again, AGAIN_MS, 0);
    else
        end_cancelling(c);
}

/* The answer: {"missing": the number of runs that are not in its queue}. */
static bool has_all(struct hd_slice body)
{
    struct hd_json json = {NULL};
    int64_t missing = 1;
    bool is_good = hd_json_parse(&json, body, NULL) == 0 &&
                   hd_json_int(hd_json_get(hd_json_root(&json), HD_S("missing")), &missing);

    hd_json_fini(&json);
    return is_good && missing == 0;
}

static void on_peer_cancelled(void *ctx, int status, struct hd_slice body)
{
    struct peer_cancelling *c = ctx;

    c->pending--;
    if (status != 200 || !has_all(body))
        c->is_again = true;
    end_round(c);
}

static void put_run(struct hd_jw *jw, const struct held_run *held)
{
    hd_jw_array(jw);
    hd_jw_string(jw, held->principal);
    hd_jw_string(jw, held->thread_id);
    hd_jw_string(jw, held->run_id);
    hd_jw_array_end(jw);
}

/* Writes the runs of the server of the first one, and takes them out of the list. */
static int write_runs(struct peer_cancelling *c, struct hd_slice server, struct hd_buf *out)
{
    struct held_run **at = &c->first;
    size_t count = 0;
    struct hd_jw jw;

    hd_jw_init(&jw, out);
    hd_jw_object(&jw);
    hd_jw_put_string(&jw, "action", hd_slice_cstr(actions[c->cancel->action]));
    hd_jw_put_bool(&jw, "waits", c->cancel->waits);
    hd_jw_put_array(&jw, "runs");
    while (*at) {
        struct held_run *held = *at;

        if (!hd_slice_eq(held->server, server) || count == MAX_RUNS) {
            at = &held->next;
            continue;
        }
        put_run(&jw, held);
        count++;
        *at = held->next;
    }
    hd_jw_array_end(&jw);
    hd_jw_object_end(&jw);
    if (c->is_first)
        c->cancel->found += count;
    return hd_jw_finish(&jw);
}

static void send_runs(struct peer_cancelling *c, struct hd_slice server)
{
    struct hd_peer_request *request;
    struct hd_buf body;
    int err;

    hd_buf_init(&body, MAX_ARENA);
    err = write_runs(c, server, &body);
    if (!err)
        err = hd_peer_send(c->cancel->call, server, PATH, hd_buf_slice(&body), on_peer_cancelled, c,
                           &request);
    hd_buf_fini(&body);
    c->pending += !err;
    c->is_again = c->is_again || err;
}

/* Of threads that this server has taken over since. */
static void cancel_here(struct peer_cancelling *c)
{
    const struct held_run *held = c->first;

    c->first = held->next;
    hd_queue_cancel(c->app->queue, held->principal, held->thread_id, held->run_id,
                    c->cancel->action);
    c->is_again = true; /* it waits for the end by looking again */
}

static void on_found_runs(void *arg)
{
    struct peer_cancelling *c = arg;

    c->is_again = c->err != 0;
    while (c->first) {
        struct hd_slice server = c->first->server;

        if (hd_slice_eq(server, hd_cluster_self(c->app->cluster)))
            cancel_here(c);
        else
            send_runs(c, server);
    }
    end_round(c);
}

static void begin_round(struct peer_cancelling *c)
{
    hd_arena_reset(&c->arena);
    c->first = NULL;
    c->err = 0;
    c->fault = (struct heddle_error){0};
    if (hd_defer_run(c->app->defer, find_runs, on_found_runs, c)) {
        c->is_again = true;
        uv_timer_start(&c->timer, on_again, AGAIN_MS, 0);
    }
}

int hd_peer_cancel_start(struct hd_peer_cancel *cancel)
{
    struct hd_app *app = cancel->call->app;
    struct peer_cancelling *c;

    if (!hd_cluster_is_on(app->cluster))
        return HD_READY;
    c = hd_calloc(1, sizeof(*c));
    if (!c || uv_timer_init(app->loop, &c->timer)) {
        hd_free(c);
        return HD_ENOMEM;
    }
    c->timer.data = c;
    c->cancel = cancel;
    c->app = app;
    c->is_first = true;
    c->deadline = hd_clock_monotonic_us() + HD_PEER_CANCEL_S * INT64_C(1000000);
    hd_arena_init(&c->arena, MAX_ARENA);
    hd_arena_init(&c->read, MAX_ARENA);
    begin_round(c);
    return 0;
}

/* ---- requests of other servers ---------------------------------------- */

/* In the arena of its call. */
struct peer_order {
    struct hd_call *call;
    enum hd_cancel action;
    bool waits;
    size_t missing;
    size_t waited_for;
};

struct order_waiter {
    struct peer_order *order;
    struct hd_waiter waiter;
};

static struct hd_step put_missing(struct peer_order *order)
{
    struct hd_jw *jw = &order->call->jw;

    hd_jw_object(jw);
    hd_jw_put_int(jw, "missing", (int64_t)order->missing);
    hd_jw_object_end(jw);
    return HD_DONE;
}

static void on_ordered_end(void *ctx, const struct hd_outcome *outcome)
{
    struct order_waiter *own = ctx;

    (void)outcome;
    own->waiter.link = NULL;
    if (--own->order->waited_for == 0)
        hd_call_resume(own->order->call, put_missing(own->order));
}

static void wait_for_end(struct peer_order *order, const struct hd_slice id[3])
{
    struct hd_queue *queue = order->call->app->queue;
    struct order_waiter *own;

    if (!order->waits && !hd_queue_is_waiting(queue, id[0], id[1], id[2]))
        return;
    own = hd_arena_calloc(order->call->arena, 1, sizeof(*own));
    if (!own)
        return; /* the answer may be early */
    own->order = order;
    own->waiter.fn = on_ordered_end;
    own->waiter.ctx = own;
    if (hd_queue_wait(queue, id[0], id[1], id[2], &own->waiter))
        order->waited_for++;
}

static void obey(struct peer_order *order, hd_json_val run)
{
    struct hd_json_iter it = hd_json_iter(run);
    struct hd_slice id[3] = {{NULL, 0}};

    for (size_t i = 0; i < HD_COUNT(id) && hd_json_next(&it); i++)
        id[i] = hd_json_string(it.val);
    wait_for_end(order, id);
    if (!hd_queue_cancel(order->call->app->queue, id[0], id[1], id[2], order->action))
        order->missing++;
}

static struct hd_step cancel_for_peer(struct hd_call *call)
{
    struct peer_order *order = call->state;
    struct hd_json_iter it = hd_json_iter(hd_body_get(call, "runs"));

    while (hd_json_next(&it)) {
        if (hd_json_is_array(it.val))
            obey(order, it.val);
    }
    return order->waited_for == 0 ? put_missing(order) : HD_WAIT;
}

static int read_body(struct hd_call *call)
{
    int err = hd_json_parse(&call->json, hd_exchange_request(call->exchange)->body, &call->fault);

    call->body = hd_json_root(&call->json);
    return err;
}

static struct hd_step read_order(struct hd_call *call)
{
    struct peer_order *order = hd_arena_calloc(call->arena, 1, sizeof(*order));
    int word = 0;
    int err = order ? 0 : HD_ENOMEM;

    if (!hd_peer_is_caller(call))
        return hd_call_refuse(call, 404, "Not Found");
    if (!err)
        err = read_body(call);
    if (!err)
        err = hd_body_word(call, "action", actions, &word);
    if (!err)
        err = hd_body_bool(call, "waits", &order->waits);
    if (!err && !hd_json_is_array(hd_body_get(call, "runs")))
        err = hd_error_set(&call->fault, HD_EINVAL, "runs: expected a list");
    if (err)
        return hd_step_fail(err);
    order->call = call;
    order->action = (enum hd_cancel)word;
    call->state = order;
    return HD_NEXT;
}

/* Without a tag: it is no part of the API. */
static const struct hd_endpoint routes[] = {
    {.method = HD_METHOD_POST,
     .pattern = PATH,
     .access = HD_ACCESS_PUBLIC,
     .on = HD_ON_NOTHING,
     .work = read_order,
     .then = cancel_for_peer},
};

const struct hd_routes hd_routes_peer_cancel = {routes, HD_COUNT(routes)};
