/*
 * A delivery is preparing (its row is being stored), ready (waits for a free slot), flying (a
 * request is in progress), waiting (for the time of its next attempt) or storing (its row is looked
 * up or deleted). One timer serves all waiting deliveries.
 *
 * The row in the outbox (outbox.h) is authoritative: it is deleted after the delivery. Rows found
 * at the start, and rows that did not fit into memory, are loaded a few at a time. A retry first
 * checks that the row still exists, so a webhook whose thread or run was deleted is not sent again.
 * In a cluster, rows of live servers are skipped when rows are loaded.
 *
 * The body is rendered once; each attempt adds the time of sending as its last member. URLs are not
 * logged: they may contain tokens.
 */
#include "webhook/webhook.h"

#include <string.h>
#include <strings.h>
#include <uv.h>

#include "app/app.h"
#include "app/defer.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/uuid.h"
#include "cluster/cluster.h"
#include "config/config.h"
#include "net/http_client.h"
#include "webhook/outbox.h"
#include "webhook/webhook_headers.h"
#include "webhook/webhook_rules.h"

#define MAX_FLYING 64
#define MAX_PENDING 10000
#define LOAD_ROWS 16
#define LOAD_AGAIN_US 5000000 /* after the outbox could not be read */
#define ID_HEADER "Webhook-Id"

struct hd_webhook {
    struct hd_webhooks *webhooks;
    struct hd_webhook *prev, *next;
    int attempt;                       /* number of attempts so far */
    int64_t due;                       /* while waiting: time of the next attempt, monotonic */
    struct hd_client_request *request; /* while flying */
    struct hd_outbox_row row;          /* points to `text` and `body` */
    struct hd_buf body;                /* JSON, an object */
    bool is_done;                      /* delivered or given up: delete the row */
    bool is_sent;
    bool is_there; /* result of the lookup: the row exists */
    bool is_other; /* loaded, but another server delivers it */
    int err;       /* of the store call */
    struct heddle_error fault;
    char text[];
};

struct delivery_list {
    struct hd_webhook *first, *last;
    size_t count;
};

struct hd_webhooks {
    struct hd_app *app;
    struct hd_webhook_policy policy;
    struct hd_arena arena; /* memory of the headers */
    const char *headers[HD_WEBHOOK_MAX_HEADERS];
    size_t header_count;
    bool has_id_header; /* the configured headers include ID_HEADER */
    uv_timer_t timer;
    struct delivery_list preparing, ready, flying, waiting, storing; /* waiting: sorted by `due` */
    struct delivery_list ended; /* ended while rows are loaded, which may include their rows */
    size_t bytes;
    struct hd_webhook_counts counts;

    bool is_behind;            /* the outbox may have rows that are not in memory */
    bool is_full;              /* load again from the start: a row did not fit into memory */
    bool is_loading;           /* a store thread reads rows */
    int64_t load_at;           /* earliest time of the next load; monotonic */
    struct hd_webhook *cursor; /* copy of the last loaded row; NULL: load from the start */

    bool is_stopping;
    size_t left;      /* webhooks left in the outbox by the stop */
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

int hd_webhook_allowed(const struct hd_config *config, struct hd_slice url,
                       struct heddle_error *fault)
{
    const struct hd_webhook_policy policy = policy_of(config);
    int err;

    if (config->http_disable[HD_HTTP_WEBHOOKS])
        return hd_error_set(fault, HD_EINVAL, "webhook: webhooks are disabled on this server");
    err = hd_webhook_check(&policy, url, fault);

    /* A path stays on this server, so the rules of outgoing requests do not apply. */
    if (!err && url.ptr[0] != '/')
        err = hd_outgoing_check(&config->outgoing, url, fault);
    return err;
}

static bool allows(void *ctx, const struct sockaddr *address)
{
    return hd_webhook_allows_address(ctx, address);
}

/* ---- lists ------------------------------------------------------------ */

static void take_out(struct delivery_list *list, struct hd_webhook *delivery)
{
    *(delivery->prev ? &delivery->prev->next : &list->first) = delivery->next;
    *(delivery->next ? &delivery->next->prev : &list->last) = delivery->prev;
    delivery->prev = delivery->next = NULL;
    list->count--;
}

/* Inserts after `before`; NULL: as the first. */
static void link_after(struct delivery_list *list, struct hd_webhook *delivery,
                       struct hd_webhook *before)
{
    delivery->prev = before;
    delivery->next = before ? before->next : list->first;
    *(delivery->prev ? &delivery->prev->next : &list->first) = delivery;
    *(delivery->next ? &delivery->next->prev : &list->last) = delivery;
    list->count++;
}

static void append_delivery(struct delivery_list *list, struct hd_webhook *delivery)
{
    link_after(list, delivery, list->last);
}

static void insert_by_due(struct delivery_list *list, struct hd_webhook *delivery)
{
    struct hd_webhook *before = list->last;

    while (before && before->due > delivery->due)
        before = before->prev;
    link_after(list, delivery, before);
}

/* ---- create and free -------------------------------------------------- */

static void free_delivery(struct hd_webhook *delivery)
{
    if (!delivery)
        return;
    hd_buf_fini(&delivery->body);
    hd_free(delivery);
}

static void free_list(struct delivery_list *list)
{
    while (list->first) {
        struct hd_webhook *delivery = list->first;

        take_out(list, delivery);
        free_delivery(delivery);
    }
}

static struct hd_slice copy_text(char **at, struct hd_slice text)
{
    char *start = *at;

    if (text.len > 0)
        memcpy(start, text.ptr, text.len);
    *at += text.len + 1; /* with a NUL */
    return hd_slice(start, text.len);
}

/* Copies the row, except the body. */
static struct hd_webhook *make_delivery(struct hd_webhooks *webhooks,
                                        const struct hd_outbox_row *row)
{
    size_t len = row->principal.len + row->thread_id.len + row->run_id.len + row->id.len +
                 row->server.len + row->url.len + 6;
    struct hd_webhook *delivery = hd_calloc(1, sizeof(*delivery) + len);
    char *at;

    if (!delivery)
        return NULL;
    at = delivery->text;
    delivery->webhooks = webhooks;
    delivery->row.principal = copy_text(&at, row->principal);
    delivery->row.thread_id = copy_text(&at, row->thread_id);
    delivery->row.run_id = copy_text(&at, row->run_id);
    delivery->row.id = copy_text(&at, row->id);
    delivery->row.server = copy_text(&at, row->server);
    delivery->row.url = copy_text(&at, row->url);
    delivery->row.created_at = row->created_at;
    hd_buf_init(&delivery->body, HD_WEBHOOK_MAX_BYTES);
    return delivery;
}

/* ---- end of a delivery ------------------------------------------------ */

/* The delivery must not be in a list. */
static void forget(struct hd_webhook *delivery)
{
    struct hd_webhooks *webhooks = delivery->webhooks;

    webhooks->counts.pending--;
    webhooks->bytes -= delivery->body.len;
    if (webhooks->is_loading)
        append_delivery(&webhooks->ended, delivery);
    else
        free_delivery(delivery);
}

/* Leaves the row to the next process. */
static void leave_delivery(struct hd_webhook *delivery)
{
    delivery->webhooks->left++;
    forget(delivery);
}

/* True if the stop is complete: no delivery is in memory. */
static bool end_stop(struct hd_webhooks *webhooks)
{
    if (webhooks->counts.pending > 0 || webhooks->is_loading)
        return false;
    uv_timer_stop(&webhooks->timer);
    if (webhooks->left > 0)
        hd_log(HD_LOG_WARN, "webhook",
               "%zu webhooks were not delivered: retrying after the next start", webhooks->left);
    return true;
}

static void report_stop(struct hd_webhooks *webhooks)
{
    void (*stopped)(void *) = webhooks->stopped;

    if (!stopped || !end_stop(webhooks))
        return;
    webhooks->stopped = NULL;
    stopped(webhooks->stopped_ctx); /* last: it may free `webhooks` */
}

/* ---- rows ------------------------------------------------------------- */

static void resume_deliveries(struct hd_webhooks *webhooks);
static void launch(struct hd_webhook *delivery);
static void on_delivery_timer(uv_timer_t *timer);

/* Retries after the delay that follows its last attempt. */
static void retry_later(struct hd_webhook *delivery)
{
    struct hd_webhooks *webhooks = delivery->webhooks;
    uint32_t random;

    hd_random(&random, sizeof(random));
    delivery->due = hd_clock_monotonic_us() + hd_webhook_delay_us(delivery->attempt, random);
    if (webhooks->is_stopping && delivery->due > webhooks->deadline)
        leave_delivery(delivery);
    else
        insert_by_due(&webhooks->waiting, delivery);
}

/* Runs on a store thread. */
static void use_row(void *arg)
{
    struct hd_webhook *delivery = arg;
    struct heddle *store = delivery->webhooks->app->store;

    delivery->err = delivery->is_done ? hd_outbox_remove(store, &delivery->row, &delivery->fault)
                                      : hd_outbox_find(store, &delivery->row, &delivery->is_there,
                                                       &delivery->fault);
}

/* A row that cannot be read counts as present: the receiver detects duplicates by the id. */
static void on_row_used(void *arg)
{
    struct hd_webhook *delivery = arg;
    struct hd_webhooks *webhooks = delivery->webhooks;

    take_out(&webhooks->storing, delivery);
    if (delivery->is_done && delivery->err) {
        retry_later(delivery);
    } else if (delivery->is_done) {
        *(delivery->is_sent ? &webhooks->counts.sent : &webhooks->counts.dropped) += 1;
        forget(delivery);
    } else if (!delivery->err && !delivery->is_there) {
        forget(delivery); /* deleted with its thread or run */
    } else {
        launch(delivery);
    }
    resume_deliveries(webhooks);
}

/* Deletes the row of a finished delivery; otherwise looks up whether the row still exists. */
static void visit_row(struct hd_webhook *delivery)
{
    struct hd_webhooks *webhooks = delivery->webhooks;

    append_delivery(&webhooks->storing, delivery);
    if (hd_defer_run(webhooks->app->defer, use_row, on_row_used, delivery)) {
        take_out(&webhooks->storing, delivery);
        retry_later(delivery);
    }
}

static void finish_delivery(struct hd_webhook *delivery, bool is_sent)
{
    delivery->is_done = true;
    delivery->is_sent = is_sent;
    visit_row(delivery);
}

/* ---- attempts --------------------------------------------------------- */

/* True if rows of the outbox are to be read, at `load_at` or later. */
static bool may_load(const struct hd_webhooks *webhooks)
{
    return webhooks->is_behind && !webhooks->is_loading && !webhooks->is_stopping &&
           webhooks->counts.pending < MAX_PENDING / 2 && webhooks->bytes < HD_WEBHOOK_MAX_BYTES / 2;
}

/* True if the deadline of a stop leaves deliveries. Those at the store end by themselves. */
static bool has_deadline(const struct hd_webhooks *webhooks)
{
    return webhooks->is_stopping &&
           (webhooks->ready.first || webhooks->waiting.first || webhooks->flying.first);
}

/*
 * Only for times at which on_delivery_timer() has work, and never without a wait: a timer that
 * starts itself at once is all that the loop of libuv 1.44 runs.
 */
static void set_timer(struct hd_webhooks *webhooks)
{
    int64_t due = webhooks->waiting.first ? webhooks->waiting.first->due : INT64_MAX;
    int64_t wait;

    if (may_load(webhooks) && webhooks->load_at > 0 && webhooks->load_at < due)
        due = webhooks->load_at;
    if (has_deadline(webhooks) && webhooks->deadline < due)
        due = webhooks->deadline;
    if (due == INT64_MAX) {
        uv_timer_stop(&webhooks->timer);
        return;
    }
    wait = due - hd_clock_monotonic_us();
    uv_timer_start(&webhooks->timer, on_delivery_timer, wait > 0 ? (uint64_t)wait / 1000 + 1 : 1,
                   0);
}

static bool is_too_old(const struct hd_webhook *delivery)
{
    return hd_clock_now_us() - delivery->row.created_at >
           delivery->webhooks->app->config->webhooks_max_age_us;
}

static void give_up_delivery(struct hd_webhook *delivery, const char *why)
{
    hd_log(HD_LOG_WARN, "webhook", "run %s: dropped%s", delivery->row.run_id.ptr, why);
    finish_delivery(delivery, false);
}

/* Retries later, or gives up. */
static void fail_delivery(struct hd_webhook *delivery, int status)
{
    const struct hd_config *config = delivery->webhooks->app->config;
    char why[40] = ", no response";

    if (hd_webhook_may_retry(status) && delivery->attempt <= config->webhooks_retries &&
        !is_too_old(delivery)) {
        retry_later(delivery);
        return;
    }
    if (status != 0)
        (void)snprintf(why, sizeof(why), ", the status is %d", status);
    give_up_delivery(delivery, why);
}

static void on_delivery_answer(void *ctx, const struct hd_client_response *response)
{
    struct hd_webhook *delivery = ctx;
    struct hd_webhooks *webhooks = delivery->webhooks;
    int status = response->error ? 0 : (int)response->status;

    take_out(&webhooks->flying, delivery);
    delivery->request = NULL;
    if (status >= 200 && status < 300)
        finish_delivery(delivery, true);
    else if (response->failure == HD_CLIENT_REFUSED)
        give_up_delivery(delivery, ": " HD_OUTGOING_REFUSAL); /* it would be refused again */
    else
        fail_delivery(delivery, status);
    resume_deliveries(webhooks);
}

/* Writes the body with its last member, the time of sending. */
static int complete(const struct hd_webhook *delivery, struct hd_buf *out)
{
    struct hd_slice body = hd_buf_slice(&delivery->body);
    char sent_at[33];
    int err = hd_buf_append(out, body.ptr, body.len - 1);

    hd_clock_format_iso(hd_clock_now_us(), sent_at);
    return err ? err : hd_buf_printf(out, ",\"webhook_sent_at\":\"%s\"}", sent_at);
}

/* ---- request ---------------------------------------------------------- */

/* The base URL of this server; "": it does not listen. */
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

/* Writes the URL, NUL-terminated; prefixes a path with this server's base URL. */
static int write_url(const struct hd_webhook *delivery, struct hd_buf *out)
{
    struct hd_slice url = delivery->row.url;
    char own[300] = "";
    int err;

    if (url.ptr[0] == '/')
        own_address(delivery->webhooks->app, own);
    err = hd_buf_append_slice(out, hd_slice_cstr(own));
    return err ? err : hd_buf_append(out, url.ptr, url.len + 1);
}

static int send_delivery(struct hd_webhook *delivery, const char *url, struct hd_slice body)
{
    struct hd_webhooks *webhooks = delivery->webhooks;
    const struct hd_config *config = webhooks->app->config;
    char signature[sizeof(HD_WEBHOOK_HEADER) + 2 + HD_WEBHOOK_SIGNATURE_SIZE] =
        HD_WEBHOOK_HEADER ": ";
    char id[sizeof(ID_HEADER) + 2 + HD_UUID_SIZE];
    const char *headers[5 + HD_WEBHOOK_MAX_HEADERS] = {"Content-Type: application/json",
                                                       "User-Agent: heddle", "Expect:"};
    bool is_own = delivery->row.url.ptr[0] == '/';
    bool is_signed = config->webhooks_secret[0] != '\0';
    size_t count = 3;
    struct hd_client_options options = {.method = "POST",
                                        .url = url,
                                        .headers = headers,
                                        .body = body,
                                        .timeout_ms = config->webhooks_timeout_us / 1000,
                                        .is_direct = true,
                                        .is_trusted = is_own,
                                        .is_own = is_own,
                                        .ignores_answer = true,
                                        .allows = is_own ? NULL : allows,
                                        .allows_ctx = &webhooks->policy};
    int err = 0;

    if (is_signed)
        headers[count++] = signature;
    (void)snprintf(id, sizeof(id), ID_HEADER ": %s", delivery->row.id.ptr);
    if (!webhooks->has_id_header)
        headers[count++] = id;
    for (size_t i = 0; i < webhooks->header_count; i++)
        headers[count++] = webhooks->headers[i];
    options.header_count = count;
    if (is_signed)
        err = hd_webhook_sign(hd_slice_cstr(config->webhooks_secret), hd_clock_now_us() / 1000000,
                              body, signature + strlen(HD_WEBHOOK_HEADER ": "));
    if (!err)
        err = hd_client_send(webhooks->app->http, &options, on_delivery_answer, delivery,
                             &delivery->request);
    return err;
}

static void launch(struct hd_webhook *delivery)
{
    struct hd_buf body, url;
    int err;

    delivery->attempt++;
    hd_buf_init(&body, HD_WEBHOOK_MAX_BYTES + 256);
    hd_buf_init(&url, (size_t)2 * HD_WEBHOOK_MAX_URL);
    err = complete(delivery, &body);
    if (!err)
        err = write_url(delivery, &url);
    if (!err)
        err = send_delivery(delivery, url.ptr, hd_buf_slice(&body));
    hd_buf_fini(&url);
    hd_buf_fini(&body);
    if (err)
        fail_delivery(delivery, 0);
    else
        append_delivery(&delivery->webhooks->flying, delivery);
}

/* Checks the rules again: another process with other rules may have admitted the run. */
static void attempt(struct hd_webhook *delivery)
{
    const struct hd_config *config = delivery->webhooks->app->config;

    if (!delivery->is_done && is_too_old(delivery))
        give_up_delivery(delivery, ", it is too old");
    else if (!delivery->is_done && hd_webhook_allowed(config, delivery->row.url, NULL))
        give_up_delivery(delivery, ", its URL is no longer allowed");
    else if (delivery->is_done || delivery->attempt > 0)
        visit_row(delivery);
    else
        launch(delivery);
}

static void load_rows(struct hd_webhooks *webhooks);

/* Starts due deliveries, loads rows, sets the timer, and reports the end of a stop. */
static void resume_deliveries(struct hd_webhooks *webhooks)
{
    int64_t now = hd_clock_monotonic_us();

    while (webhooks->waiting.first && webhooks->waiting.first->due <= now) {
        struct hd_webhook *delivery = webhooks->waiting.first;

        take_out(&webhooks->waiting, delivery);
        append_delivery(&webhooks->ready, delivery);
    }
    while (webhooks->ready.first && webhooks->flying.count + webhooks->storing.count < MAX_FLYING) {
        struct hd_webhook *delivery = webhooks->ready.first;

        take_out(&webhooks->ready, delivery);
        attempt(delivery);
    }
    if (may_load(webhooks) && now >= webhooks->load_at)
        load_rows(webhooks);
    set_timer(webhooks);
    report_stop(webhooks);
}

/* Makes a stored delivery ready; it must not be in a list. */
static void take_in(struct hd_webhook *delivery)
{
    struct hd_webhooks *webhooks = delivery->webhooks;

    webhooks->counts.pending++;
    webhooks->bytes += delivery->body.len;
    append_delivery(&webhooks->ready, delivery);
}

/* ---- load ------------------------------------------------------------- */

struct loading {
    struct hd_webhooks *webhooks;
    struct delivery_list found;
    int err;
    struct heddle_error fault;
};

static int on_stored_delivery(void *ctx, const struct hd_outbox_row *row)
{
    struct loading *loading = ctx;
    struct hd_webhook *delivery;

    if (row->url.len == 0 || row->body.len == 0)
        return HD_ECORRUPT;
    delivery = make_delivery(loading->webhooks, row);
    if (!delivery)
        return HD_ENOMEM;
    append_delivery(&loading->found, delivery);
    return hd_buf_append_slice(&delivery->body, row->body);
}

/* Another server delivers the row if it has stored it and lives, or else if it is the leader. */
static int find_deliverer(struct loading *loading, struct hd_webhook *delivery)
{
    struct hd_cluster *cluster = loading->webhooks->app->cluster;
    struct hd_slice server = delivery->row.server;
    bool is_gone = true;
    int err = 0;

    if (!hd_cluster_is_on(cluster) || hd_slice_eq(server, hd_cluster_self(cluster)))
        return 0;
    if (server.len > 0 && hd_cluster_is_leader(cluster))
        err = hd_cluster_check_gone(cluster, server, &is_gone, &loading->fault);
    delivery->is_other = !is_gone || !hd_cluster_is_leader(cluster);
    return err;
}

/* Runs on a store thread; the loop does not change the cursor until it ends. */
static void read_rows(void *arg)
{
    struct loading *loading = arg;
    struct hd_webhooks *webhooks = loading->webhooks;

    loading->err =
        hd_outbox_read(webhooks->app->store, webhooks->cursor ? &webhooks->cursor->row : NULL,
                       LOAD_ROWS, on_stored_delivery, loading, &loading->fault);
    for (struct hd_webhook *delivery = loading->found.first; !loading->err && delivery;
         delivery = delivery->next)
        loading->err = find_deliverer(loading, delivery);
}

static bool is_in(const struct delivery_list *list, const struct hd_outbox_row *row)
{
    for (const struct hd_webhook *each = list->first; each; each = each->next) {
        if (hd_slice_eq(each->row.run_id, row->run_id) &&
            hd_slice_eq(each->row.thread_id, row->thread_id) &&
            hd_slice_eq(each->row.principal, row->principal))
            return true;
    }
    return false;
}

/* True if the delivery is in memory, or has ended since the row was read. */
static bool is_known(const struct hd_webhooks *webhooks, const struct hd_outbox_row *row)
{
    return is_in(&webhooks->preparing, row) || is_in(&webhooks->ready, row) ||
           is_in(&webhooks->flying, row) || is_in(&webhooks->waiting, row) ||
           is_in(&webhooks->storing, row) || is_in(&webhooks->ended, row);
}

static void set_cursor(struct hd_webhooks *webhooks, const struct hd_outbox_row *row)
{
    struct hd_webhook *cursor = row ? make_delivery(webhooks, row) : NULL;

    free_delivery(webhooks->cursor);
    webhooks->cursor = cursor;
}

static void on_rows_read(void *arg)
{
    struct loading *loading = arg;
    struct hd_webhooks *webhooks = loading->webhooks;
    bool is_all = !loading->err && loading->found.count < LOAD_ROWS;

    webhooks->is_loading = false;
    webhooks->load_at = loading->err ? hd_clock_monotonic_us() + LOAD_AGAIN_US : 0;
    if (loading->err)
        hd_log(HD_LOG_WARN, "webhook", "the outbox cannot be read: %s",
               loading->fault.code ? loading->fault.text : hd_error_text(loading->err));
    else if (!is_all)
        set_cursor(webhooks, &loading->found.last->row);
    while (!loading->err && !webhooks->is_stopping && loading->found.first) {
        struct hd_webhook *delivery = loading->found.first;

        take_out(&loading->found, delivery);
        if (delivery->is_other || is_known(webhooks, &delivery->row))
            free_delivery(delivery);
        else
            take_in(delivery);
    }
    if (is_all) {
        set_cursor(webhooks, NULL);
        webhooks->is_behind = webhooks->is_full;
        webhooks->is_full = false;
    }
    free_list(&loading->found);
    free_list(&webhooks->ended);
    hd_free(loading);
    resume_deliveries(webhooks);
}

static void load_rows(struct hd_webhooks *webhooks)
{
    struct loading *loading = hd_calloc(1, sizeof(*loading));

    if (loading)
        loading->webhooks = webhooks;
    if (!loading || hd_defer_run(webhooks->app->defer, read_rows, on_rows_read, loading)) {
        hd_free(loading);
        webhooks->load_at = hd_clock_monotonic_us() + LOAD_AGAIN_US;
        return;
    }
    webhooks->is_loading = true;
}

/* ---- functions for run_complete.c ------------------------------------- */

int hd_webhook_create(struct hd_webhooks *webhooks, const struct hd_outbox_row *row,
                      struct hd_webhook **out)
{
    struct hd_webhook *delivery = make_delivery(webhooks, row);
    int err = delivery ? hd_buf_append_slice(&delivery->body, row->body) : HD_ENOMEM;

    if (err) {
        if (delivery)
            free_delivery(delivery);
        webhooks->counts.dropped++;
        return err;
    }
    delivery->row.body = hd_buf_slice(&delivery->body);
    append_delivery(&webhooks->preparing, delivery);
    *out = delivery;
    return 0;
}

const struct hd_outbox_row *hd_webhook_row(const struct hd_webhook *webhook)
{
    return webhook ? &webhook->row : NULL;
}

void hd_webhook_cancel(struct hd_webhook *webhook)
{
    if (!webhook)
        return;
    take_out(&webhook->webhooks->preparing, webhook);
    free_delivery(webhook);
}

/* A webhook that does not fit into memory is loaded from the outbox later. */
void hd_webhook_send(struct hd_webhook *webhook)
{
    struct hd_webhooks *webhooks = webhook ? webhook->webhooks : NULL;

    if (!webhook)
        return;
    take_out(&webhooks->preparing, webhook);
    if (webhooks->is_stopping) {
        webhooks->left++;
        free_delivery(webhook);
    } else if (webhooks->counts.pending >= MAX_PENDING ||
               webhook->body.len > HD_WEBHOOK_MAX_BYTES - webhooks->bytes) {
        webhooks->is_behind = webhooks->is_full = true;
        free_delivery(webhook);
    } else {
        take_in(webhook);
    }
    resume_deliveries(webhooks);
}

/* During a load, `is_full` makes the next one follow: the load may be past rows to deliver now. */
void hd_webhooks_recover(struct hd_webhooks *webhooks)
{
    webhooks->is_full = webhooks->is_full || webhooks->is_behind;
    webhooks->is_behind = true;
    resume_deliveries(webhooks);
}

/* ---- create and stop -------------------------------------------------- */

static void leave_all(struct delivery_list *list)
{
    while (list->first) {
        struct hd_webhook *delivery = list->first;

        take_out(list, delivery);
        if (delivery->request)
            hd_client_cancel(delivery->request);
        leave_delivery(delivery);
    }
}

/* Leaves deliveries whose next attempt is after the deadline. */
static void leave_late(struct hd_webhooks *webhooks)
{
    while (webhooks->waiting.last && webhooks->waiting.last->due > webhooks->deadline) {
        struct hd_webhook *delivery = webhooks->waiting.last;

        take_out(&webhooks->waiting, delivery);
        leave_delivery(delivery);
    }
}

static void on_delivery_timer(uv_timer_t *timer)
{
    struct hd_webhooks *webhooks = timer->data;

    if (webhooks->is_stopping && hd_clock_monotonic_us() >= webhooks->deadline) {
        leave_all(&webhooks->ready);
        leave_all(&webhooks->waiting);
        leave_all(&webhooks->flying);
    }
    resume_deliveries(webhooks);
}

static bool has_header(const struct hd_webhooks *webhooks, const char *name)
{
    size_t len = strlen(name);

    for (size_t i = 0; i < webhooks->header_count; i++) {
        if (strncasecmp(webhooks->headers[i], name, len) == 0 && webhooks->headers[i][len] == ':')
            return true;
    }
    return false;
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
    webhooks->has_id_header = has_header(webhooks, ID_HEADER);
    *out = webhooks;
    return 0;
}

static void on_webhooks_closed(uv_handle_t *handle)
{
    struct hd_webhooks *webhooks = handle->data;

    free_delivery(webhooks->cursor);
    hd_arena_fini(&webhooks->arena);
    hd_free(webhooks);
}

void hd_webhooks_destroy(struct hd_webhooks *webhooks)
{
    if (webhooks)
        uv_close((uv_handle_t *)&webhooks->timer, on_webhooks_closed);
}

struct hd_webhook_counts hd_webhooks_counts(const struct hd_webhooks *webhooks)
{
    return webhooks->counts;
}

int hd_webhooks_stop(struct hd_webhooks *webhooks, int64_t within_us, void (*done)(void *ctx),
                     void *ctx)
{
    webhooks->is_stopping = true;
    webhooks->deadline = hd_clock_monotonic_us() + within_us;
    leave_late(webhooks);
    resume_deliveries(webhooks);
    if (end_stop(webhooks))
        return HD_READY;
    webhooks->stopped = done;
    webhooks->stopped_ctx = ctx;
    return 0;
}
