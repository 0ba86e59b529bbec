/*
 * The server that tests/http/run talks to: src/http with a handler that does what is
 * asked for. Prints "port N" and serves until POST /close or SIGTERM.
 *
 *   http_server [--NAME=VALUE …]     limits by their names in struct hd_http_server_limits,
 *                                    gzip_min, gzip_loopback, origin, credentials, port, next,
 *                                    loopback, check_host, host, proxy, certificate, key
 *
 * SIGHUP reads the certificate again; SIGUSR1 ends what waits for it (/later without ms, late=1).
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "http/query.h"
#include "http/router.h"
#include "http/server.h"
#include "http/sse.h"
#include "http/tls.h"

#define LIMIT ((size_t)1 << 30)

struct call;

static uv_loop_t loop;
static struct hd_http_server *server;
static struct hd_router *router;
static struct call *waiting;
static unsigned long gone_count, room_count, answered_count;

/* One request that is not answered at once. */
struct call {
    struct call *next;  /* of those that wait for SIGUSR1 */
    uv_timer_cb waited; /* what they do then */
    struct hd_exchange *ex;
    uv_timer_t timer;
    int64_t count; /* lines to send; 0: for ever */
    int64_t sent;
    int64_t size;
    int64_t every; /* milliseconds; 0: as fast as they are taken */
    bool is_sse;
    bool aborts;
    struct hd_buf line;
    size_t line_at;
};

typedef void (*handle_fn)(struct hd_exchange *ex, const struct hd_params *params,
                          const struct hd_match *match);

static void require(int err, const char *what)
{
    if (!err)
        return;
    fprintf(stderr, "%s: %s\n", what, hd_error_text(err));
    exit(1);
}

static int64_t number(const struct hd_params *params, const char *name, int64_t otherwise)
{
    int64_t value = otherwise;

    if (hd_params_int(params, hd_slice_cstr(name), 0, INT64_MAX, otherwise, &value, NULL))
        return otherwise;
    return value;
}

static struct hd_slice text(const struct hd_params *params, const char *name)
{
    struct hd_slice value = hd_slice("", 0);

    (void)hd_params_get(params, hd_slice_cstr(name), &value);
    return value;
}

static void hello(struct hd_exchange *ex, const struct hd_params *params,
                  const struct hd_match *match)
{
    struct hd_buf body;

    (void)params;
    (void)match;
    hd_buf_init(&body, LIMIT);
    require(hd_buf_append_slice(&body, HD_S("{\"hello\":\"world\"}")), "hello");
    hd_answer_json(ex, 200, &body);
}

static void fixed(struct hd_exchange *ex, const struct hd_params *params,
                  const struct hd_match *match)
{
    (void)params;
    (void)match;
    hd_answer_static(ex, 200, HD_TYPE_TEXT, HD_S("fixed"));
}

static void echo(struct hd_exchange *ex, const struct hd_params *params,
                 const struct hd_match *match)
{
    struct hd_buf body;

    (void)params;
    (void)match;
    hd_buf_init(&body, LIMIT);
    require(hd_buf_append_slice(&body, hd_exchange_request(ex)->body), "echo");
    hd_answer_json(ex, 200, &body);
}

/* Everything that is known of the request. */
static void inspect(struct hd_exchange *ex, const struct hd_params *params,
                    const struct hd_match *match)
{
    const struct hd_http_request *request = hd_exchange_request(ex);
    struct hd_buf body;
    struct hd_jw jw;

    (void)params;
    hd_buf_init(&body, LIMIT);
    hd_jw_init(&jw, &body);
    hd_jw_object(&jw);
    hd_jw_put_string(&jw, "method", request->method_name);
    hd_jw_put_string(&jw, "path", request->path);
    hd_jw_put_string(&jw, "query", request->query);
    hd_jw_put_string(&jw, "peer", hd_exchange_peer(ex));
    hd_jw_put_string(&jw, "id", hd_exchange_id(ex));
    hd_jw_put_string(&jw, "rest", match->params[0]);
    hd_jw_put_string(&jw, "body", request->body);
    hd_jw_put_array(&jw, "headers");
    for (size_t i = 0; i < request->header_count; i++) {
        hd_jw_array(&jw);
        hd_jw_string(&jw, request->headers[i].name);
        hd_jw_string(&jw, request->headers[i].value);
        hd_jw_array_end(&jw);
    }
    hd_jw_array_end(&jw);
    hd_jw_object_end(&jw);
    require(hd_jw_finish(&jw), "inspect");
    hd_answer_json(ex, 200, &body);
}

static void big(struct hd_exchange *ex, const struct hd_params *params,
                const struct hd_match *match)
{
    size_t size = (size_t)number(params, "bytes", 1 << 20);
    struct hd_buf body;

    (void)match;
    hd_buf_init(&body, LIMIT);
    require(hd_buf_reserve(&body, size + 2), "big");
    memset(body.ptr, 'x', size + 2);
    body.ptr[0] = body.ptr[size + 1] = '"';
    body.len = size + 2;
    if (number(params, "early", 0))
        require(hd_exchange_compress(ex, HD_TYPE_JSON, &body), "compress");
    hd_answer_json(ex, 200, &body);
}

static void status(struct hd_exchange *ex, const struct hd_params *params,
                   const struct hd_match *match)
{
    int code = (int)number(params, "code", 204);

    (void)match;
    if (code >= 400)
        hd_answer_error(ex, code, "as \"asked\": %d", code);
    else
        hd_answer_empty(ex, code);
}

static void header(struct hd_exchange *ex, const struct hd_params *params,
                   const struct hd_match *match)
{
    (void)match;
    for (int64_t i = 0; i < number(params, "times", 1); i++)
        hd_answer_header(ex, text(params, "name"), text(params, "value"));
    hd_answer_empty(ex, 200);
}

static void call_freed(uv_handle_t *timer)
{
    struct call *call = timer->data;

    hd_buf_fini(&call->line);
    hd_free(call);
}

static void call_free(struct call *call)
{
    struct call **link = &waiting;

    while (*link && *link != call)
        link = &(*link)->next;
    if (*link)
        *link = call->next;
    uv_close((uv_handle_t *)&call->timer, call_freed);
}

static struct call *call_create(struct hd_exchange *ex, const struct hd_params *params)
{
    struct call *call = hd_calloc(1, sizeof(*call));

    if (!call)
        exit(1);
    call->ex = ex;
    call->count = number(params, "count", 3);
    call->size = number(params, "size", 10);
    call->every = number(params, "every", 0);
    call->aborts = number(params, "abort", 0) != 0;
    hd_buf_init(&call->line, LIMIT);
    (void)uv_timer_init(&loop, &call->timer);
    call->timer.data = call;
    return call;
}

/* For what must not happen too early however slow the machine is. */
static void wait_for_signal(struct call *call, uv_timer_cb fn)
{
    call->waited = fn;
    call->next = waiting;
    waiting = call;
}

static void end_waiting(void)
{
    while (waiting) {
        struct call *call = waiting;

        waiting = call->next;
        call->waited(&call->timer);
    }
}

static void answer_late(uv_timer_t *timer)
{
    struct call *call = timer->data;

    hd_answer_error(call->ex, 200, "late");
    call_free(call);
}

static void on_gone(void *ctx)
{
    gone_count++;
    call_free(ctx);
}

static void later(struct hd_exchange *ex, const struct hd_params *params,
                  const struct hd_match *match)
{
    struct call *call = call_create(ex, params);
    int64_t ms = number(params, "ms", -1);

    (void)match;
    if (number(params, "watch", 0))
        hd_exchange_on_gone(ex, on_gone, call);
    if (ms < 0)
        wait_for_signal(call, answer_late);
    else
        (void)uv_timer_start(&call->timer, answer_late, (uint64_t)ms, 0);
}

/* Nobody watches at first; a stream begins when it has waited. */
static void on_room(void *ctx);

static void begin_late(uv_timer_t *timer)
{
    struct call *call = timer->data;

    hd_http_stream_begin(call->ex, 200, HD_TYPE_TEXT, on_room, on_gone, call);
}

static void next_line(struct call *call)
{
    char number_text[24];

    hd_buf_reset(&call->line);
    call->line_at = 0;
    if (call->is_sse) {
        int len = snprintf(number_text, sizeof(number_text), "%" PRId64, call->sent);

        require(hd_http_sse_frame(&call->line, HD_S("tick"), HD_S("{}"),
                                  hd_slice(number_text, (size_t)len)),
                "frame");
        return;
    }
    require(hd_buf_printf(&call->line, "%0*" PRId64 "\n", (int)call->size, call->sent), "line");
}

/* False when the line could not be written completely. */
static bool write_line(struct call *call)
{
    struct hd_slice rest;

    if (call->line_at == call->line.len)
        next_line(call);
    rest = hd_slice(call->line.ptr + call->line_at, call->line.len - call->line_at);
    call->line_at += hd_http_stream_write(call->ex, &rest, 1);
    if (call->line_at < call->line.len)
        return false;
    call->sent++;
    return true;
}

static void finish_stream(struct call *call)
{
    if (call->aborts)
        hd_http_stream_abort(call->ex);
    else
        hd_http_stream_end(call->ex);
    call_free(call);
}

static void on_room(void *ctx)
{
    struct call *call = ctx;

    room_count++;
    while (call->every == 0 && (call->count == 0 || call->sent < call->count)) {
        if (!write_line(call))
            return;
    }
    if (call->every == 0)
        finish_stream(call);
}

static void on_time(uv_timer_t *timer)
{
    struct call *call = timer->data;

    if (call->count == 0 || call->sent < call->count)
        (void)write_line(call);
    else
        finish_stream(call);
}

static void stream(struct hd_exchange *ex, const struct hd_params *params,
                   const struct hd_match *match)
{
    struct call *call = call_create(ex, params);

    (void)match;
    call->is_sse = number(params, "sse", 0) != 0;
    if (number(params, "late", 0)) {
        wait_for_signal(call, begin_late);
        return;
    }
    if (call->is_sse)
        hd_http_stream_begin_sse(ex, 200, on_room, on_gone, call);
    else
        hd_http_stream_begin(ex, 200, HD_TYPE_TEXT, on_room, on_gone, call);
    if (call->every)
        (void)uv_timer_start(&call->timer, on_time, 0, (uint64_t)call->every);
}

static void key_number(struct hd_jw *jw, const char *name, uint64_t value)
{
    hd_jw_put_int(jw, name, (int64_t)value);
}

static void stats(struct hd_exchange *ex, const struct hd_params *params,
                  const struct hd_match *match)
{
    const struct hd_http_server_stats *s = hd_http_server_stats(server);
    struct hd_buf body;
    struct hd_jw jw;

    (void)params;
    (void)match;
    hd_buf_init(&body, LIMIT);
    hd_jw_init(&jw, &body);
    hd_jw_object(&jw);
    key_number(&jw, "connections_open", s->connections_open);
    key_number(&jw, "connections_total", s->connections_total);
    key_number(&jw, "requests_open", s->requests_open);
    key_number(&jw, "requests_total", s->requests_total);
    key_number(&jw, "streams_open", s->streams_open);
    key_number(&jw, "bytes_in", s->bytes_in);
    key_number(&jw, "bytes_out", s->bytes_out);
    key_number(&jw, "refused", s->refused);
    key_number(&jw, "timeouts", s->timeouts);
    key_number(&jw, "gone", s->gone);
    key_number(&jw, "body_bytes", s->body_bytes);
    key_number(&jw, "told_gone", gone_count);
    key_number(&jw, "rooms", room_count);
    key_number(&jw, "answered", answered_count);
    key_number(&jw, "ok", s->answers[2]);
    key_number(&jw, "bad", s->answers[4]);
    hd_jw_object_end(&jw);
    require(hd_jw_finish(&jw), "stats");
    hd_answer_json(ex, 200, &body);
}

static void on_closed(void *arg)
{
    (void)arg;
    printf("closed\n");
    server = NULL;
    uv_stop(&loop);
}

static void close_all(struct hd_exchange *ex, const struct hd_params *params,
                      const struct hd_match *match)
{
    (void)match;
    hd_http_server_close(server, number(params, "grace", 0), on_closed, NULL);
    hd_answer_empty(ex, 202);
}

static const handle_fn handlers[] = {hello,  echo,  inspect,   big,   status, header, later,
                                     stream, stats, close_all, fixed, stream, echo};
static const struct hd_router_entry entries[] = {
    {HD_METHOD_GET, "/hello"},  {HD_METHOD_POST, "/echo"},  {HD_METHOD_POST, "/inspect/{rest*}"},
    {HD_METHOD_GET, "/big"},    {HD_METHOD_GET, "/status"}, {HD_METHOD_GET, "/header"},
    {HD_METHOD_GET, "/later"},  {HD_METHOD_GET, "/stream"}, {HD_METHOD_GET, "/stats"},
    {HD_METHOD_POST, "/close"}, {HD_METHOD_GET, "/fixed"},  {HD_METHOD_POST, "/stream"},
    {HD_METHOD_PUT, "/echo"},
};

static void answer_no_route(struct hd_exchange *ex, const struct hd_match *match)
{
    char list[64];
    size_t len = hd_method_list(match->methods, list);

    if (match->kind == HD_MATCH_OPTIONS || match->kind == HD_MATCH_NO_METHOD)
        hd_answer_header(ex, HD_S("allow"), hd_slice(list, len));
    if (match->kind == HD_MATCH_OPTIONS)
        hd_answer_empty(ex, 204);
    else if (match->kind == HD_MATCH_NO_METHOD)
        hd_answer_error(ex, 405, "Method Not Allowed");
    else if (match->kind == HD_MATCH_NO_PATH)
        hd_answer_error(ex, 404, "Not Found");
    else
        hd_answer_error(ex, 400, "the path is malformed");
}

static void on_request(void *ctx, struct hd_exchange *ex)
{
    const struct hd_http_request *request = hd_exchange_request(ex);
    struct hd_arena *arena = hd_exchange_arena(ex);
    struct heddle_error fault = {0};
    struct hd_params params;
    struct hd_match match;
    int err;

    (void)ctx;
    err = hd_params_parse(&params, request->query, arena, &fault);
    if (err) {
        hd_answer_error(ex, hd_error_http_status(err), "%s", fault.text);
        return;
    }
    err = hd_router_match(router, request->method, request->path, arena, &match);
    if (err)
        hd_answer_error(ex, 503, "no memory");
    else if (match.kind == HD_MATCH_FOUND)
        handlers[match.route](ex, &params, &match);
    else
        answer_no_route(ex, &match);
}

static void on_answered(void *ctx, const struct hd_exchange *ex, int code, size_t bytes,
                        int64_t took_us)
{
    (void)ctx;
    (void)ex;
    (void)code;
    (void)bytes;
    answered_count += took_us >= 0;
}

static struct hd_http_server_config config;
static struct hd_slice origin;
static struct hd_slice own_host;
static struct hd_net proxy;
static const char *certificate, *key;
static long port, next_port;

static bool set_option(const char *name, size_t len, const char *value)
{
    const struct {
        const char *name;
        size_t *size;
        int64_t *ms;
    } options[] = {
        {"connections", &config.limits.connections, NULL},
        {"head", &config.limits.head, NULL},
        {"headers", &config.limits.headers, NULL},
        {"body", &config.limits.body, NULL},
        {"body_total", &config.limits.body_total, NULL},
        {"pipelined", &config.limits.pipelined, NULL},
        {"stream_buffer", &config.limits.stream_buffer, NULL},
        {"stream_kernel", &config.limits.stream_kernel, NULL},
        {"idle_ms", NULL, &config.limits.idle_ms},
        {"head_ms", NULL, &config.limits.head_ms},
        {"body_ms", NULL, &config.limits.body_ms},
        {"write_ms", NULL, &config.limits.write_ms},
        {"linger_ms", NULL, &config.limits.linger_ms},
        {"rate", &config.limits.rate, NULL},
        {"gzip_min", &config.gzip_min, NULL},
    };

    for (size_t i = 0; i < HD_COUNT(options); i++) {
        if (strlen(options[i].name) != len || strncmp(options[i].name, name, len) != 0)
            continue;
        if (options[i].size)
            *options[i].size = strtoul(value, NULL, 10);
        else
            *options[i].ms = strtol(value, NULL, 10);
        return true;
    }
    return false;
}

/* Of tests that have to do with browsers, proxies and TLS. */
static bool read_guard(const char *option, const char *value)
{
    if (strncmp(option, "--loopback=", 11) == 0) {
        config.cors.allows_loopback = value[0] == '1';
    } else if (strncmp(option, "--check_host=", 13) == 0) {
        config.guard.checks_host = value[0] == '1';
    } else if (strncmp(option, "--host=", 7) == 0) {
        own_host = hd_slice_cstr(value);
        config.guard.hosts = &own_host;
        config.guard.host_count = 1;
    } else if (strncmp(option, "--proxy=", 8) == 0) {
        require(hd_net_parse(hd_slice_cstr(value), &proxy) ? 0 : HD_EINVAL, value);
        config.guard.proxies = &proxy;
        config.guard.proxy_count = 1;
    } else if (strncmp(option, "--certificate=", 14) == 0) {
        certificate = value;
    } else if (strncmp(option, "--key=", 6) == 0) {
        key = value;
    } else {
        return false;
    }
    return true;
}

static void read_option(const char *option)
{
    const char *value = strchr(option, '=');

    if (!value || strncmp(option, "--", 2) != 0) {
        fprintf(stderr, "what is %s?\n", option);
        exit(1);
    }
    if (read_guard(option, value + 1))
        return;
    if (strncmp(option, "--port=", 7) == 0)
        port = strtol(value + 1, NULL, 10);
    else if (strncmp(option, "--next=", 7) == 0)
        next_port = strtol(value + 1, NULL, 10);
    else if (strncmp(option, "--gzip_loopback=", 16) == 0)
        config.gzip_on_loopback = value[1] == '1';
    else if (strncmp(option, "--credentials=", 14) == 0)
        config.cors.allow_credentials = value[1] == '1';
    else if (strncmp(option, "--origin=", 9) == 0) {
        origin = hd_slice_cstr(value + 1);
        config.cors.origins = &origin;
        config.cors.origin_count = 1;
    } else if (!set_option(option + 2, (size_t)(value - option - 2), value + 1)) {
        fprintf(stderr, "what is %s?\n", option);
        exit(1);
    }
}

static void on_signal(uv_signal_t *handle, int number_of)
{
    (void)number_of;
    uv_close((uv_handle_t *)handle, NULL);
    if (server)
        hd_http_server_close(server, 0, on_closed, NULL);
    end_waiting();
}

static void on_go(uv_signal_t *handle, int number_of)
{
    (void)handle;
    (void)number_of;
    end_waiting();
}

static void on_reload(uv_signal_t *handle, int number_of)
{
    struct heddle_error fault = {0};

    (void)handle;
    (void)number_of;
    printf("%s\n", hd_tls_reload(config.tls, &fault) ? fault.text : "reloaded");
    (void)fflush(stdout);
}

int main(int argc, char **argv)
{
    struct heddle_error fault = {0};
    uv_signal_t term, hangup, go;
    int bound, err;

    hd_http_server_config_init(&config);
    for (int i = 1; i < argc; i++)
        read_option(argv[i]);
    config.handler = on_request;
    config.answered = on_answered;
    require(uv_loop_init(&loop) ? HD_EIO : 0, "loop");
    (void)uv_signal_init(&loop, &term);
    (void)uv_signal_start(&term, on_signal, SIGTERM);
    uv_unref((uv_handle_t *)&term);
    (void)uv_signal_init(&loop, &hangup);
    (void)uv_signal_start(&hangup, on_reload, SIGHUP);
    uv_unref((uv_handle_t *)&hangup);
    (void)uv_signal_init(&loop, &go);
    (void)uv_signal_start(&go, on_go, SIGUSR1);
    uv_unref((uv_handle_t *)&go);
    if (certificate)
        require(hd_tls_create(certificate, key, &config.tls, &fault), fault.text);
    require(hd_router_create(&router, entries, HD_COUNT(entries), &fault), fault.text);
    require(hd_http_server_create(&server, &loop, &config, &fault), fault.text);
    err = hd_http_server_listen(server, "127.0.0.1", (int)port, next_port != 0, &bound, &fault);
    if (err) {
        printf("%s\n", fault.text);
        hd_http_server_close(server, 0, on_closed, NULL);
    } else {
        printf("port %d\n", bound);
    }
    (void)fflush(stdout);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    /* Timers of calls that are over may still be closing. */
    if (!uv_is_closing((uv_handle_t *)&term))
        uv_close((uv_handle_t *)&term, NULL);
    uv_close((uv_handle_t *)&hangup, NULL);
    uv_close((uv_handle_t *)&go, NULL);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    hd_router_destroy(router);
    hd_tls_destroy(config.tls);
    if (uv_loop_close(&loop) != 0) {
        fprintf(stderr, "handles are left\n");
        return 1;
    }
    return err ? 2 : 0;
}
