/*
 * Exchanges: retries, the order of callbacks, and ownership.
 *
 * An exchange is on the list of its run until it has ended or is cancelled, so that a held run
 * stops reading. A detached one is on no list: it is tried once, and ends with the engine's HTTP
 * client at the latest.
 */
#include "agent/exchange.h"

#include "agent/agent_internal.h"
#include "agent/exchange_internal.h"
#include "agent/source.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/uuid.h"

#define MAX_BODY ((size_t)16 << 20)
#define MAX_COPY ((size_t)512 << 20)
#define MAX_TRIES 10
#define FIRST_WAIT_MS 500 /* doubled for each further try */
#define MAX_BACKOFF_MS 8000
#define MAX_HOPS 3        /* redirects */
#define DETACHED_MS 10000 /* for closing a session */

/* ---- the run's list --------------------------------------------------- */

static bool is_held(const struct hd_agent_exchange *exchange)
{
    return exchange->run && exchange->run->is_held;
}

/* Delivers data that was read already; reads no more while the run is held. */
void hd_agent_exchanges_hold(struct hd_agent_exchange *list, bool is_held)
{
    for (struct hd_agent_exchange *exchange = list; exchange; exchange = exchange->in_run.next) {
        if (!exchange->is_given || !exchange->request)
            continue;
        if (is_held)
            hd_client_pause(exchange->request);
        else
            hd_client_resume(exchange->request);
    }
}

/* ---- ending ----------------------------------------------------------- */

static void free_exchange(struct hd_agent_exchange *exchange)
{
    hd_buf_fini(&exchange->kept);
    hd_buf_fini(&exchange->text);
    hd_arena_fini(&exchange->arena);
    hd_free(exchange);
}

static void on_timer_closed(uv_handle_t *handle)
{
    free_exchange(handle->data);
}

static void drop(struct hd_agent_exchange *exchange)
{
    hd_dlist_remove(exchange, in_run);
    if (exchange->has_timer)
        uv_close((uv_handle_t *)&exchange->timer, on_timer_closed);
    else
        free_exchange(exchange);
}

/* Around callbacks: one that cancels the exchange may use it until it returns. */
static void begin_call(struct hd_agent_exchange *exchange)
{
    exchange->calling++;
}

/* Whether it still exists. */
static bool end_call(struct hd_agent_exchange *exchange)
{
    if (--exchange->calling > 0 || !exchange->is_cancelled)
        return !exchange->is_cancelled;
    drop(exchange);
    return false;
}

static void end_exchange(struct hd_agent_exchange *exchange, const struct hd_reply *reply)
{
    hd_dlist_remove(exchange, in_run);
    hd_agent_exchange_record(exchange, reply);
    begin_call(exchange);
    if (exchange->options.on_done)
        exchange->options.on_done(exchange->options.ctx, reply);
    exchange->is_cancelled = true;
    end_call(exchange);
}

void hd_agent_exchange_cancel(struct hd_agent_exchange *exchange)
{
    if (exchange->is_cancelled)
        return;
    exchange->is_cancelled = true;
    hd_dlist_remove(exchange, in_run);
    if (exchange->request)
        hd_client_cancel(exchange->request);
    exchange->request = NULL;
    if (exchange->calling == 0)
        drop(exchange);
}

/* ---- tries ------------------------------------------------------------ */

static int64_t elapsed_ms(const struct hd_agent_exchange *exchange)
{
    return (hd_clock_monotonic_us() - exchange->began_us) / 1000;
}

/* Exponential, with jitter in the upper half so that many do not retry at once. */
static int64_t backoff_ms(int tries)
{
    int64_t ms = FIRST_WAIT_MS;
    uint32_t dice;

    for (int i = 1; i < tries && ms < MAX_BACKOFF_MS; i++)
        ms *= 2;
    hd_random(&dice, sizeof(dice));
    return ms / 2 + (int64_t)(dice % (uint32_t)(ms / 2 + 1));
}

static bool is_passing_status(const struct hd_agent_exchange *exchange, long status)
{
    if (status == 409)
        return exchange->options.peer && strcmp(exchange->options.peer, "model") == 0;
    return status == 408 || status == 429 || (status >= 500 && status != 501);
}

static bool is_passing_failure(enum hd_client_failure failure)
{
    return failure == HD_CLIENT_RESOLVE || failure == HD_CLIENT_CONNECT ||
           failure == HD_CLIENT_CONNECT_TIME || failure == HD_CLIENT_CLOSED;
}

/* The delay before a retry; -1: no more retries, or no time left. */
static int64_t next_try_ms(const struct hd_agent_exchange *exchange,
                           const struct hd_client_response *response)
{
    int64_t ms = -1, limit = exchange->options.timeout_ms;
    bool is_passing = response->failure ? is_passing_failure(response->failure)
                                        : is_passing_status(exchange, response->status);

    if (!is_passing || exchange->has_head || exchange->tries >= exchange->options.tries)
        return -1;
    if (!response->failure)
        ms = hd_retry_after_ms(response->headers, hd_clock_now_us());
    if (ms < 0)
        ms = backoff_ms(exchange->tries);
    return limit > 0 && elapsed_ms(exchange) + ms >= limit ? -1 : ms;
}

static bool is_redirect(const struct hd_agent_exchange *exchange,
                        const struct hd_client_response *response)
{
    return exchange->options.is_direct && response->status > 300 && response->status < 400 &&
           hd_header_find(response->headers, "location").ptr != NULL;
}

static struct hd_reply reply_of(struct hd_agent_exchange *exchange,
                                const struct hd_client_response *response)
{
    return (struct hd_reply){.status = response->status,
                             .headers = response->headers,
                             .body = response->body,
                             .tries = exchange->tries};
}

/* ---- responses -------------------------------------------------------- */

static bool on_response_head(void *ctx, const struct hd_client_response *response)
{
    struct hd_agent_exchange *exchange = ctx;
    struct hd_reply head = reply_of(exchange, response);
    bool is_given;

    exchange->is_redirected = is_redirect(exchange, response);
    exchange->wait_ms = next_try_ms(exchange, response);
    if (exchange->is_redirected || exchange->wait_ms >= 0 || !exchange->options.on_head)
        return false;
    exchange->has_head = true;
    begin_call(exchange);
    is_given = exchange->options.on_head(exchange->options.ctx, &head);
    exchange->is_given = is_given;
    if (end_call(exchange) && is_given && is_held(exchange))
        hd_client_pause(exchange->request);
    return is_given;
}

static void on_response_data(void *ctx, struct hd_slice data)
{
    struct hd_agent_exchange *exchange = ctx;

    hd_agent_exchange_keep(exchange, data);
    begin_call(exchange);
    exchange->options.on_data(exchange->options.ctx, data);
    end_call(exchange);
}

static int start_exchange_timer(struct hd_agent_exchange *exchange, uv_timer_cb fn, int64_t ms)
{
    if (!exchange->has_timer && uv_timer_init(exchange->engine->uv, &exchange->timer))
        return HD_EIO;
    exchange->has_timer = true;
    exchange->timer.data = exchange;
    return uv_timer_start(&exchange->timer, fn, (uint64_t)ms, 0) ? HD_EIO : 0;
}

static int try_it(struct hd_agent_exchange *exchange);

/*
 * Follows a redirect to another path of the same server, such as one with a trailing slash: the
 * credentials stay with that server. The method must stay the same if it changes something.
 */
static bool follow(struct hd_agent_exchange *exchange, const struct hd_client_response *response)
{
    bool is_kept = response->status == 307 || response->status == 308;
    const char *url;

    if (exchange->hops >= MAX_HOPS || (!is_kept && strcmp(exchange->options.method, "GET") != 0))
        return false;
    url = hd_redirect_within(exchange->options.url, hd_header_find(response->headers, "location"),
                             &exchange->arena);
    if (!url)
        return false;
    exchange->options.url = url;
    exchange->hops++;
    exchange->tries--; /* counts as the same try */
    if (try_it(exchange) == 0)
        return true;
    exchange->is_redirected = true;
    return false;
}

static void on_again(uv_timer_t *timer)
{
    struct hd_agent_exchange *exchange = timer->data;
    const struct hd_client_response response = {.failure = HD_CLIENT_OTHER,
                                                .error = "out of memory"};
    struct hd_reply reply = {.tries = exchange->tries};

    if (try_it(exchange) == 0)
        return;
    reply.error = hd_agent_exchange_error(exchange, &response);
    end_exchange(exchange, &reply);
}

static void on_response(void *ctx, const struct hd_client_response *response)
{
    struct hd_agent_exchange *exchange = ctx;
    struct hd_reply reply = reply_of(exchange, response);

    exchange->request = NULL;
    if (exchange->is_redirected && !response->failure && follow(exchange, response))
        return;
    /* A response that will be retried may be cut off: that changes nothing. */
    if (exchange->wait_ms < 0 && response->failure)
        exchange->wait_ms = next_try_ms(exchange, response);
    if (exchange->wait_ms >= 0 && start_exchange_timer(exchange, on_again, exchange->wait_ms) == 0)
        return;
    if (response->failure || exchange->is_redirected)
        reply.error = hd_agent_exchange_error(exchange, response);
    reply.is_timeout = response->failure == HD_CLIENT_TIMEOUT ||
                       response->failure == HD_CLIENT_IDLE ||
                       response->failure == HD_CLIENT_CONNECT_TIME;
    reply.is_cut = response->failure && response->has_head;
    end_exchange(exchange, &reply);
}

static int try_it(struct hd_agent_exchange *exchange)
{
    const struct hd_agent_exchange_options *options = &exchange->options;
    struct hd_client *http = hd_engine_http(exchange->engine);
    struct hd_client_options sent = {.method = options->method,
                                     .url = options->url,
                                     .headers = options->headers,
                                     .header_count = options->header_count,
                                     .body = options->body,
                                     .is_final = options->is_direct,
                                     .is_trusted = options->is_trusted,
                                     .idle_ms = options->idle_ms,
                                     .max_body = options->max_body,
                                     .max_given = exchange->max_given,
                                     .on_head = on_response_head,
                                     .on_data = on_response_data};

    if (!http)
        return HD_ENOMEM;
    exchange->tries++;
    exchange->wait_ms = -1;
    exchange->is_redirected = false;
    if (options->timeout_ms > 0) {
        sent.timeout_ms = options->timeout_ms - elapsed_ms(exchange);
        if (sent.timeout_ms < 1)
            sent.timeout_ms = 1;
    }
    return hd_client_send(http, &sent, on_response, exchange, &exchange->request);
}

/* ---- from a recording ------------------------------------------------- */

static void on_replay(uv_timer_t *timer)
{
    struct hd_agent_exchange *exchange = timer->data;
    const struct hd_record_answer *answer = exchange->replay;
    struct hd_reply reply = {.error = answer->error,
                             .is_timeout = answer->is_timeout,
                             .is_cut = answer->error && answer->status > 0,
                             .status = answer->status,
                             .headers = answer->headers,
                             .tries = answer->tries};

    if (answer->status > 0 && exchange->options.on_head) {
        begin_call(exchange);
        exchange->is_given = exchange->options.on_head(exchange->options.ctx, &reply);
        if (exchange->is_given && !exchange->is_cancelled && answer->body.len > 0)
            exchange->options.on_data(exchange->options.ctx, answer->body);
        if (!end_call(exchange))
            return;
    }
    if (!exchange->is_given)
        reply.body = answer->body;
    end_exchange(exchange, &reply);
}

/* ---- start ------------------------------------------------------------ */

static int copy_text(struct hd_arena *arena, const char **text)
{
    struct hd_slice copy;
    int err = *text ? hd_arena_copy(arena, hd_slice_cstr(*text), &copy) : 0;

    if (!err && *text)
        *text = copy.ptr;
    return err;
}

static int copy_headers(struct hd_agent_exchange *exchange)
{
    struct hd_agent_exchange_options *options = &exchange->options;
    const char **lines =
        hd_arena_calloc(&exchange->arena, options->header_count + 1, sizeof(*lines));
    int err = lines ? 0 : HD_ENOMEM;

    for (size_t i = 0; i < options->header_count && !err; i++) {
        lines[i] = options->headers[i];
        err = copy_text(&exchange->arena, &lines[i]);
    }
    options->headers = lines;
    return err;
}

static int copy_secrets(struct hd_agent_exchange *exchange)
{
    struct hd_agent_exchange_options *options = &exchange->options;
    struct hd_slice *own =
        hd_arena_calloc(&exchange->arena, options->secret_count + 1, sizeof(*own));
    int err = own ? 0 : HD_ENOMEM;

    for (size_t i = 0; i < options->secret_count && !err; i++)
        err = hd_arena_copy(&exchange->arena, options->secrets[i], &own[i]);
    options->secrets = own;
    return err ? err : hd_agent_exchange_secrets(exchange);
}

static int copy_what(struct hd_agent_exchange *exchange)
{
    struct hd_agent_exchange_options *options = &exchange->options;
    struct hd_arena *arena = &exchange->arena;
    int err = copy_text(arena, &options->peer);

    if (!err)
        err = copy_text(arena, &options->method);
    if (!err)
        err = copy_text(arena, &options->url);
    if (!err && options->body.ptr)
        err = hd_arena_copy(arena, options->body, &options->body);
    if (!err)
        err = copy_headers(exchange);
    return err ? err : copy_secrets(exchange);
}

static void set_limits(struct hd_agent_exchange *exchange)
{
    struct hd_agent_exchange_options *options = &exchange->options;

    exchange->max_given = options->max_body;
    if (options->max_body == 0)
        options->max_body = MAX_BODY;
    if (options->tries < 1 || options->is_detached)
        options->tries = 1;
    if (options->tries > MAX_TRIES)
        options->tries = MAX_TRIES;
    if (options->is_detached && (options->timeout_ms <= 0 || options->timeout_ms > DETACHED_MS))
        options->timeout_ms = DETACHED_MS;
}

static int begin_exchange(struct hd_agent_exchange *exchange)
{
    int err = copy_what(exchange);

    if (!err)
        err = hd_agent_exchange_replay(exchange);
    if (err)
        return err;
    if (exchange->options.is_detached)
        exchange->recorder = NULL; /* it may outlive the recorder */
    return exchange->replay ? start_exchange_timer(exchange, on_replay, 0) : try_it(exchange);
}

static int start_exchange(struct hd_engine_run *run, struct hd_task *task,
                          const struct hd_agent_exchange_options *options,
                          struct hd_agent_exchange **out)
{
    struct hd_agent_exchange *exchange = hd_calloc(1, sizeof(*exchange));
    struct hd_agents *agents = hd_agents_of_run(run);
    struct hd_agent_run *agent = options->is_detached ? NULL : hd_agent_run_of(run);
    int err;

    if (!exchange || (!agent && !options->is_detached)) {
        hd_free(exchange);
        return HD_ENOMEM;
    }
    exchange->engine = run->engine;
    exchange->run = options->is_detached ? NULL : run;
    exchange->task = options->is_detached ? NULL : task;
    exchange->recorder = agents ? agents->options.recorder : NULL;
    exchange->began_us = hd_clock_monotonic_us();
    exchange->options = *options;
    set_limits(exchange);
    hd_arena_init(&exchange->arena, MAX_COPY);
    hd_buf_init(&exchange->text, 8192);
    err = begin_exchange(exchange);
    if (err) {
        drop(exchange);
        return err;
    }
    if (agent)
        hd_dlist_insert(&agent->exchanges, exchange, in_run);
    *out = exchange;
    return 0;
}

int hd_agent_exchange_start(struct hd_task *task, const struct hd_agent_exchange_options *options,
                            struct hd_agent_exchange **out)
{
    return start_exchange(task->loop->run, task, options, out);
}

int hd_agent_exchange_start_run(struct hd_engine_run *run,
                                const struct hd_agent_exchange_options *options,
                                struct hd_agent_exchange **out)
{
    return start_exchange(run, NULL, options, out);
}
