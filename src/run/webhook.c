/*
 * A delivery is ready (waits for a place), flying (a request is under way) or
 * waiting (for the time of its next attempt). One timer serves all that wait.
 *
 * The body is rendered once, but for the moment at which it is sent, which is
 * added to each attempt as its last member. URLs are not logged: they may have
 * tokens in them.
 */
#include "run/webhook.h"

#include <string.h>
#include <uv.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/uuid.h"
#include "graph/http.h"
#include "run/config.h"
#include "run/run_kwargs.h"
#include "run/ticket.h"
#include "run/webhook_headers.h"
#include "run/webhook_rules.h"

#define MAX_FLYING 64
#define MAX_PENDING 10000
#define MAX_BYTES ((size_t)256 << 20) /* of all that are pending */

struct delivery {
    struct hd_webhooks *webhooks;
    struct delivery *prev, *next;
    int attempt;                /* from 1 on, once it was tried */
    int64_t due;                /* of one that waits; monotonic */
    struct hd_request *request; /* of one that flies */
    bool is_own;                /* a path of this server */
    char run_id[HD_UUID_SIZE];
    struct hd_buf body; /* without its end */
    char url[];
};

struct list {
    struct delivery *first, *last;
};

struct hd_webhooks {
    struct hd_app *app;
    struct hd_webhook_policy policy;
    struct hd_arena arena; /* of the headers */
    const char *headers[HD_WEBHOOK_MAX_HEADERS];
    size_t header_count;
    uv_timer_t timer;
    struct list ready, flying, waiting; /* waiting: the first due first */
    size_t flying_count;
    size_t bytes;
    struct hd_webhook_counts counts;

    bool is_stopping;
    int64_t deadline; /* monotonic */
    void (*stopped)(void *ctx);
    void *stopped_ctx;
};

/* ---- rules ------------------------------------------------------------ */

static struct hd_webhook_policy policy_of(const struct hd_config *config)
{
    return (struct hd_webhook_policy){.require_https = config->webhooks_require_https,
                                      .allow_loopback = config->webhooks_allow_loopback,
                                      .domains = config->webhooks_allowed_domains.items,
                                      .domain_count = config->webhooks_allowed_domains.count,
                                      .ports = config->webhooks_allowed_ports.items,
                                      .port_count = config->webhooks_allowed_ports.count,
                                      .max_url = (size_t)config->webhooks_max_url_length};
}

int hd_webhook_allowed(const struct hd_config *config, struct hd_slice url, struct hd_fault *fault)
{
    const struct hd_webhook_policy policy = policy_of(config);
    int err;

    if (config->http_disable[HD_HTTP_WEBHOOKS])
        return hd_fault_set(fault, HD_EINVAL, "webhook: this server calls none");
    err = hd_webhook_check(&policy, url, fault);

    /* A path of this server leads nowhere else. */
    if (!err && url.ptr[0] != '/')
        err = hd_outgoing_check(&config->outgoing, url, fault);
    return err;
}

static bool allows(void *ctx, const struct sockaddr *address)
{
    return hd_webhook_allows_address(ctx, address);
}

/* ---- lists ------------------------------------------------------------ */

static void take_out(struct list *list, struct delivery *delivery)
{
    *(delivery->prev ? &delivery->prev->next : &list->first) = delivery->next;
    *(delivery->next ? &delivery->next->prev : &list->last) = delivery->prev;
    delivery->prev = delivery->next = NULL;
}

/* Behind `before`; as the first when that is NULL. */
static void link_after(struct list *list, struct delivery *delivery, struct delivery *before)
{
    delivery->prev = before;
    delivery->next = before ? before->next : list->first;
    *(delivery->prev ? &delivery->prev->next : &list->first) = delivery;
    *(delivery->next ? &delivery->next->prev : &list->last) = delivery;
}

static void append(struct list *list, struct delivery *delivery)
{
    link_after(list, delivery, list->last);
}

static void insert_by_due(struct list *list, struct delivery *delivery)
{
    struct delivery *before = list->last;

    while (before && before->due > delivery->due)
        before = before->prev;
    link_after(list, delivery, before);
}

/* ---- the end of a delivery -------------------------------------------- */

/* It is in no list any more. */
static void end(struct delivery *delivery, bool is_sent)
{
    struct hd_webhooks *webhooks = delivery->webhooks;

    webhooks->counts.pending--;
    *(is_sent ? &webhooks->counts.sent : &webhooks->counts.dropped) += 1;
    webhooks->bytes -= delivery->body.len;
    hd_buf_fini(&delivery->body);
    hd_free(delivery);
}

static void tell_stopped(struct hd_webhooks *webhooks)
{
    void (*stopped)(void *) = webhooks->stopped;

    if (!stopped || webhooks->counts.pending > 0)
        return;
    webhooks->stopped = NULL;
    uv_timer_stop(&webhooks->timer);
    stopped(webhooks->stopped_ctx); /* the last thing that is done here */
}

/* ---- attempts --------------------------------------------------------- */

static void go_on(struct hd_webhooks *webhooks);

static void on_timer(uv_timer_t *timer);

static void set_timer(struct hd_webhooks *webhooks)
{
    int64_t due = webhooks->waiting.first ? webhooks->waiting.first->due : INT64_MAX;
    int64_t wait;

    if (webhooks->is_stopping && webhooks->deadline < due)
        due = webhooks->deadline;
    if (due == INT64_MAX) {
        uv_timer_stop(&webhooks->timer);
        return;
    }
    wait = due - hd_clock_monotonic_us();
    uv_timer_start(&webhooks->timer, on_timer, wait > 0 ? (uint64_t)wait / 1000 + 1 : 0, 0);
}

/* Tries again later, or gives up. */
static void fail(struct delivery *delivery, int status)
{
    struct hd_webhooks *webhooks = delivery->webhooks;
    bool may_retry = hd_webhook_may_retry(status) &&
                     delivery->attempt <= webhooks->app->config->webhooks_retries;
    uint32_t random;

    hd_random(&random, sizeof(random));
    delivery->due = hd_clock_monotonic_us() + hd_webhook_delay_us(delivery->attempt, random);
    if (webhooks->is_stopping && delivery->due > webhooks->deadline)
        may_retry = false;
    if (may_retry) {
        insert_by_due(&webhooks->waiting, delivery);
        return;
    }
    if (status == 0)
        hd_log(HD_LOG_WARN, "webhook", "run %s: given up, no answer", delivery->run_id);
    else
        hd_log(HD_LOG_WARN, "webhook", "run %s: given up, the answer is %d", delivery->run_id,
               status);
    end(delivery, false);
}

/* It would be refused again. */
static void refuse(struct delivery *delivery)
{
    hd_log(HD_LOG_WARN, "webhook", "run %s: given up: %s", delivery->run_id, HD_OUTGOING_REFUSAL);
    end(delivery, false);
}

static void on_answer(void *ctx, const struct hd_response *response)
{
    struct delivery *delivery = ctx;
    struct hd_webhooks *webhooks = delivery->webhooks;
    int status = response->error ? 0 : (int)response->status;

    take_out(&webhooks->flying, delivery);
    webhooks->flying_count--;
    delivery->request = NULL;
    if (status >= 200 && status < 300)
        end(delivery, true);
    else if (response->failure == HD_HTTP_REFUSED)
        refuse(delivery);
    else
        fail(delivery, status);
    go_on(webhooks);
}

/* The body with its last member. */
static int complete(const struct delivery *delivery, struct hd_buf *out)
{
    char sent_at[33];
    int err = hd_buf_append_slice(out, hd_buf_slice(&delivery->body));

    hd_clock_format_iso(hd_clock_now_us(), sent_at);
    return err ? err : hd_buf_printf(out, ",\"webhook_sent_at\":\"%s\"}", sent_at);
}

static int start(struct delivery *delivery, struct hd_slice body)
{
    struct hd_webhooks *webhooks = delivery->webhooks;
    const struct hd_config *config = webhooks->app->config;
    char signature[sizeof(HD_WEBHOOK_HEADER) + 2 + HD_WEBHOOK_SIGNATURE_SIZE] =
        HD_WEBHOOK_HEADER ": ";
    const char *headers[4 + HD_WEBHOOK_MAX_HEADERS] = {"Content-Type: application/json",
                                                       "User-Agent: heddle", "Expect:"};
    bool is_signed = config->webhooks_secret[0] != '\0';
    size_t count = 3;
    struct hd_http_what what = {.method = "POST",
                                .url = delivery->url,
                                .headers = headers,
                                .body = body,
                                .timeout_ms = config->webhooks_timeout_us / 1000,
                                .is_direct = true,
                                .is_trusted = delivery->is_own,
                                .is_own = delivery->is_own,
                                .ignores_answer = true,
                                .allows = delivery->is_own ? NULL : allows,
                                .allows_ctx = &webhooks->policy};
    int err = 0;

    if (is_signed)
        headers[count++] = signature;
    for (size_t i = 0; i < webhooks->header_count; i++)
        headers[count++] = webhooks->headers[i];
    what.header_count = count;
    if (is_signed)
        err = hd_webhook_sign(hd_slice_cstr(config->webhooks_secret), hd_clock_now_us() / 1000000,
                              body, signature + strlen(HD_WEBHOOK_HEADER ": "));
    if (!err)
        err = hd_http_send(webhooks->app->http, &what, on_answer, delivery, &delivery->request);
    return err;
}

static void attempt(struct delivery *delivery)
{
    struct hd_webhooks *webhooks = delivery->webhooks;
    struct hd_buf body;
    int err;

    delivery->attempt++;
    hd_buf_init(&body, MAX_BYTES + 256);
    err = complete(delivery, &body);
    if (!err)
        err = start(delivery, hd_buf_slice(&body));
    hd_buf_fini(&body);
    if (err) {
        fail(delivery, 0);
        return;
    }
    append(&webhooks->flying, delivery);
    webhooks->flying_count++;
}

/* Begins what may begin; sets the timer; says when it was the last. */
static void go_on(struct hd_webhooks *webhooks)
{
    int64_t now = hd_clock_monotonic_us();

    while (webhooks->waiting.first && webhooks->waiting.first->due <= now) {
        struct delivery *delivery = webhooks->waiting.first;

        take_out(&webhooks->waiting, delivery);
        append(&webhooks->ready, delivery);
    }
    while (webhooks->ready.first && webhooks->flying_count < MAX_FLYING) {
        struct delivery *delivery = webhooks->ready.first;

        take_out(&webhooks->ready, delivery);
        attempt(delivery);
    }
    set_timer(webhooks);
    tell_stopped(webhooks);
}

/* ---- what is sent ----------------------------------------------------- */

static void put_text(struct hd_jw *jw, const char *name, struct hd_slice text)
{
    hd_jw_key(jw, hd_slice_cstr(name));
    hd_jw_string(jw, text);
}

static void put_json(struct hd_jw *jw, const char *name, struct hd_slice json,
                     const char *otherwise)
{
    hd_jw_key(jw, hd_slice_cstr(name));
    hd_jw_raw(jw, json.len > 0 ? json : hd_slice_cstr(otherwise));
}

static void put_time(struct hd_jw *jw, const char *name, int64_t us)
{
    char text[33];

    hd_jw_key(jw, hd_slice_cstr(name));
    hd_clock_format_iso(us, text);
    if (us)
        hd_jw_string(jw, hd_slice_cstr(text));
    else
        hd_jw_null(jw);
}

/* The run, as GET shows it, and how it ended. The object is left open. */
static int write_body(const struct hd_ticket *ticket, struct hd_buf *out)
{
    const struct hd_run_rec *run = &ticket->rec;
    const struct hd_outcome *outcome = &ticket->outcome;
    int64_t now = hd_clock_now_us();
    struct hd_jw jw;

    hd_jw_init(&jw, out);
    hd_jw_object(&jw);
    put_text(&jw, "run_id", run->run_id);
    put_text(&jw, "thread_id", run->thread_id);
    put_text(&jw, "assistant_id", run->assistant_id);
    put_time(&jw, "created_at", run->created_at);
    put_time(&jw, "updated_at", now);
    put_text(&jw, "status", hd_slice_cstr(hd_run_state_name(outcome->status)));
    put_json(&jw, "metadata", run->metadata, "{}");
    hd_jw_key(&jw, HD_S("kwargs"));
    hd_run_put_kwargs(&jw, run->kwargs, ticket->app->config->namespaces_show);
    put_text(&jw, "multitask_strategy", hd_slice_cstr(hd_multitask_name(run->multitask)));
    put_time(&jw, "run_started_at", ticket->started_at);
    put_time(&jw, "run_ended_at", now);
    put_json(&jw, "values", outcome->values, "null");
    if (outcome->error_type.len > 0)
        put_text(&jw, "error", outcome->error_text);
    return jw.err;
}

/* ---- where it is sent ------------------------------------------------- */

/* The beginning of this server's own URLs; "" when it does not listen. */
static void own_address(const struct hd_app *app, char out[300])
{
    const char *host = app->config->host;
    const char *scheme = app->config->tls_certificate[0] ? "https" : "http";

    if (strcmp(host, "0.0.0.0") == 0)
        host = "127.0.0.1";
    if (strcmp(host, "::") == 0)
        host = "::1";
    out[0] = '\0';
    if (app->port == 0)
        return;
    (void)snprintf(out, 300, strchr(host, ':') && host[0] != '[' ? "%s://[%s]:%d" : "%s://%s:%d",
                   scheme, host, app->port);
}

/* The URL in the run's kwargs, in the arena; empty when there is none. */
static struct hd_slice url_of(const struct hd_ticket *ticket, struct hd_arena *arena)
{
    struct hd_slice url = hd_slice("", 0);
    struct hd_json json = {NULL};

    if (ticket->kwargs)
        return hd_val_get_string(hd_val_get(ticket->kwargs, HD_S("webhook")));
    /* One that never began: its kwargs were not read yet. */
    if (hd_json_parse(&json, ticket->rec.kwargs, NULL) ||
        hd_arena_copy(arena, hd_json_string(hd_json_get(hd_json_root(&json), HD_S("webhook"))),
                      &url))
        url = hd_slice("", 0);
    hd_json_fini(&json);
    return url;
}

static struct delivery *make(struct hd_webhooks *webhooks, const struct hd_ticket *ticket,
                             struct hd_slice url)
{
    bool is_own = url.ptr[0] == '/';
    char own[300] = "";
    struct delivery *delivery;
    size_t len;

    if (is_own)
        own_address(webhooks->app, own);
    len = strlen(own);
    delivery = hd_calloc(1, sizeof(*delivery) + len + url.len + 1);
    if (!delivery)
        return NULL;
    memcpy(delivery->url, own, len);
    memcpy(delivery->url + len, url.ptr, url.len);
    (void)snprintf(delivery->run_id, sizeof(delivery->run_id), "%.*s", (int)ticket->rec.run_id.len,
                   ticket->rec.run_id.ptr);
    delivery->webhooks = webhooks;
    delivery->is_own = is_own;
    hd_buf_init(&delivery->body, MAX_BYTES - webhooks->bytes);
    if (write_body(ticket, &delivery->body)) {
        hd_buf_fini(&delivery->body);
        hd_free(delivery);
        return NULL;
    }
    return delivery;
}

void hd_webhook_send(const struct hd_ticket *ticket)
{
    struct hd_webhooks *webhooks = ticket->app->webhooks;
    struct delivery *delivery = NULL;
    struct hd_arena arena;
    struct hd_slice url;

    hd_arena_init(&arena, (size_t)2 * HD_WEBHOOK_MAX_URL);
    url = url_of(ticket, &arena);
    if (url.len == 0)
        goto free_arena;
    if (!webhooks->is_stopping && webhooks->counts.pending < MAX_PENDING)
        delivery = make(webhooks, ticket, url);
    if (!delivery) {
        webhooks->counts.dropped++;
        hd_log(HD_LOG_WARN, "webhook", "run %.*s: not sent, there are too many",
               (int)ticket->rec.run_id.len, ticket->rec.run_id.ptr);
        goto free_arena;
    }
    webhooks->counts.pending++;
    webhooks->bytes += delivery->body.len;
    append(&webhooks->ready, delivery);
    go_on(webhooks);
free_arena:
    hd_arena_fini(&arena);
}

/* ---- the whole -------------------------------------------------------- */

static void drop_all(struct list *list)
{
    while (list->first) {
        struct delivery *delivery = list->first;

        take_out(list, delivery);
        if (delivery->request) {
            hd_http_cancel(delivery->request);
            delivery->webhooks->flying_count--;
        }
        end(delivery, false);
    }
}

/* Those that would be tried after the deadline are not waited for. */
static void drop_late(struct hd_webhooks *webhooks)
{
    while (webhooks->waiting.last && webhooks->waiting.last->due > webhooks->deadline) {
        struct delivery *delivery = webhooks->waiting.last;

        take_out(&webhooks->waiting, delivery);
        end(delivery, false);
    }
}

static void log_dropped(size_t count)
{
    if (count > 0)
        hd_log(HD_LOG_WARN, "webhook", "%zu webhooks were not delivered", count);
}

static void on_timer(uv_timer_t *timer)
{
    struct hd_webhooks *webhooks = timer->data;

    if (webhooks->is_stopping && hd_clock_monotonic_us() >= webhooks->deadline) {
        log_dropped(webhooks->counts.pending);
        drop_all(&webhooks->ready);
        drop_all(&webhooks->waiting);
        drop_all(&webhooks->flying);
    }
    go_on(webhooks);
}

int hd_webhooks_create(struct hd_app *app, struct hd_webhooks **out)
{
    struct hd_webhooks *webhooks = hd_calloc(1, sizeof(*webhooks));
    int err;

    if (!webhooks)
        return HD_ENOMEM;
    hd_arena_init(&webhooks->arena, (size_t)4 << 20);
    err = hd_webhook_headers(app->config, &webhooks->arena, webhooks->headers,
                             &webhooks->header_count, NULL);
    if (!err && uv_timer_init(app->loop, &webhooks->timer))
        err = HD_EIO;
    if (err) {
        hd_arena_fini(&webhooks->arena);
        hd_free(webhooks);
        return err;
    }
    webhooks->timer.data = webhooks;
    webhooks->app = app;
    webhooks->policy = policy_of(app->config);
    *out = webhooks;
    return 0;
}

static void on_closed(uv_handle_t *handle)
{
    struct hd_webhooks *webhooks = handle->data;

    hd_arena_fini(&webhooks->arena);
    hd_free(webhooks);
}

void hd_webhooks_destroy(struct hd_webhooks *webhooks)
{
    if (webhooks)
        uv_close((uv_handle_t *)&webhooks->timer, on_closed);
}

struct hd_webhook_counts hd_webhooks_counts(const struct hd_webhooks *webhooks)
{
    return webhooks->counts;
}

void hd_webhooks_stop(struct hd_webhooks *webhooks, int64_t within_us, void (*done)(void *ctx),
                      void *ctx)
{
    size_t before = webhooks->counts.pending;

    webhooks->is_stopping = true;
    webhooks->deadline = hd_clock_monotonic_us() + within_us;
    webhooks->stopped = done;
    webhooks->stopped_ctx = ctx;
    drop_late(webhooks);
    log_dropped(before - webhooks->counts.pending);
    go_on(webhooks);
}
