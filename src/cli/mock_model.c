/*
 * heddle mock-model: a server that responds like language models, by a script. src/mock makes the
 * responses; this file has the sockets and the timing.
 *
 * A job is an incomplete response: it waits before its first byte, then sends its pieces one by
 * one. The exchange belongs to the job until it ends or the client disconnects.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

#include "base/alloc.h"
#include "cli/cli.h"
#include "cli/mock_log.h"
#include "http/router.h"
#include "http/server.h"
#include "mock/mock.h"

#define DEFAULT_PORT 4010
#define GRACE_MS 2000
#define BREAK_MS 20 /* lets sent data arrive before the connection closes */
#define MAX_LOG ((size_t)256 << 20)

struct mocking {
    uv_loop_t loop;
    uv_signal_t signals[2];
    size_t signal_count;
    struct hd_http_server *server;
    struct hd_router *router;
    struct hd_mock *mock;
    struct hd_cli_mock_log log;
    int port;
    bool port_is_given, is_ending;
};

struct job {
    struct mocking *m;
    struct hd_exchange *ex;
    struct hd_mock_answer answer;
    uv_timer_t timer;
    int64_t number;  /* in the log */
    size_t released; /* pieces that may be sent */
    size_t written;  /* bytes */
};

/* ---- a job ------------------------------------------------------------ */

static void free_job(uv_handle_t *handle)
{
    struct job *job = handle->data;

    hd_mock_answer_fini(&job->answer);
    hd_free(job);
}

/* The exchange has ended, too. */
static void end_job(struct job *job, bool is_gone)
{
    hd_cli_mock_log_end(&job->m->log, job->number, is_gone, job->released);
    uv_close((uv_handle_t *)&job->timer, free_job);
}

static void on_gone(void *ctx)
{
    end_job(ctx, true);
}

static size_t last_piece(const struct job *job)
{
    const struct hd_mock_answer *answer = &job->answer;

    return answer->cut > 0 && answer->cut < answer->count ? answer->cut : answer->count;
}

static void break_off(uv_timer_t *timer)
{
    struct job *job = timer->data;

    hd_http_stream_abort(job->ex);
    end_job(job, false);
}

static void finish_job(struct job *job)
{
    if (job->answer.cut > 0) {
        /* The timer is stopped: all pieces are sent. */
        (void)uv_timer_start(&job->timer, break_off, BREAK_MS, 0);
        return;
    }
    hd_http_stream_end(job->ex);
    end_job(job, false);
}

/* Writes the released pieces; on_room continues when the socket buffer is full. */
static void pump(struct job *job)
{
    size_t end = job->released > 0 ? job->answer.ends[job->released - 1] : 0;
    struct hd_slice part = hd_slice(job->answer.text.ptr + job->written, end - job->written);

    if (part.len > 0)
        job->written += hd_http_stream_write(job->ex, &part, 1);
    if (job->written == end && job->released == last_piece(job) &&
        !uv_is_active((uv_handle_t *)&job->timer))
        finish_job(job);
}

static void on_room(void *ctx)
{
    struct job *job = ctx;

    /* Wait only if something is left to write. */
    if (job->written < job->answer.ends[job->released - 1])
        pump(job);
}

static void release_piece(uv_timer_t *timer)
{
    struct job *job = timer->data;

    job->released++;
    if (job->released == last_piece(job))
        (void)uv_timer_stop(timer);
    pump(job);
}

static void stream(struct job *job)
{
    uint64_t delay = (uint64_t)job->answer.delay_ms;

    hd_http_stream_begin_sse(job->ex, 200, on_room, on_gone, job);
    job->released = delay > 0 ? 1 : last_piece(job);
    if (job->released < last_piece(job))
        (void)uv_timer_start(&job->timer, release_piece, delay, delay);
    pump(job);
}

static void answer_whole(struct job *job)
{
    struct hd_mock_answer *answer = &job->answer;
    char seconds[32];

    if (answer->retry_after >= 0) {
        (void)snprintf(seconds, sizeof(seconds), "%lld", (long long)answer->retry_after);
        hd_answer_header(job->ex, HD_S("Retry-After"), hd_slice_cstr(seconds));
    }
    job->released = 1;
    hd_answer_json(job->ex, answer->status, &answer->text);
    end_job(job, false);
}

static void begin_job(struct job *job)
{
    if (job->answer.is_stream)
        stream(job);
    else
        answer_whole(job);
}

static void on_latency(uv_timer_t *timer)
{
    begin_job(timer->data);
}

/* Takes the answer. */
static void start_job(struct mocking *m, struct hd_exchange *ex, struct hd_mock_answer *answer)
{
    struct job *job = hd_calloc(1, sizeof(*job));

    if (!job || uv_timer_init(&m->loop, &job->timer)) {
        hd_free(job);
        hd_mock_answer_fini(answer);
        hd_answer_error(ex, 503, "out of memory");
        return;
    }
    job->m = m;
    job->ex = ex;
    job->answer = *answer;
    job->timer.data = job;
    job->number =
        hd_cli_mock_log_add(&m->log, hd_exchange_request(ex), answer->status, answer->rule);
    if (answer->hangs || answer->latency_ms > 0)
        hd_exchange_on_gone(ex, on_gone, job);
    if (answer->hangs)
        return;
    if (answer->latency_ms > 0)
        (void)uv_timer_start(&job->timer, on_latency, (uint64_t)answer->latency_ms, 0);
    else
        begin_job(job);
}

/* ---- endpoints -------------------------------------------------------- */

/* The client's key, from any of the headers. */
static struct hd_slice shown_key(const struct hd_http_request *request)
{
    struct hd_slice key = hd_request_value(request, HD_S("authorization"));

    if (hd_slice_starts(key, HD_S("Bearer ")))
        return hd_slice(key.ptr + 7, key.len - 7);
    key = hd_request_value(request, HD_S("x-api-key"));
    return key.len > 0 ? key : hd_request_value(request, HD_S("x-goog-api-key"));
}

static void answer_exchange(struct mocking *m, struct hd_exchange *ex, int err,
                            struct hd_mock_answer *a)
{
    if (err)
        hd_answer_error(ex, hd_error_http_status(err), "%s", hd_error_text(err));
    else
        start_job(m, ex, a);
}

static void chat(struct mocking *m, struct hd_exchange *ex, struct hd_mock_ask *ask)
{
    const struct hd_http_request *request = hd_exchange_request(ex);
    struct hd_mock_answer a;
    int err;

    ask->body = request->body;
    if (hd_mock_admits(m->mock, shown_key(request)))
        err = hd_mock_chat(m->mock, ask, &a);
    else
        err = hd_mock_refuse(ask->form, 401, "wrong API key", &a);
    answer_exchange(m, ex, err, &a);
}

typedef void (*endpoint_fn)(struct mocking *m, struct hd_exchange *ex,
                            const struct hd_match *match);

static void completions(struct mocking *m, struct hd_exchange *ex, const struct hd_match *match)
{
    struct hd_mock_ask ask = {.form = HD_MOCK_OPENAI};

    (void)match;
    chat(m, ex, &ask);
}

static void messages(struct mocking *m, struct hd_exchange *ex, const struct hd_match *match)
{
    struct hd_mock_ask ask = {.form = HD_MOCK_ANTHROPIC};

    (void)match;
    chat(m, ex, &ask);
}

/* "MODEL:generateContent" or "MODEL:streamGenerateContent". */
static void generate(struct mocking *m, struct hd_exchange *ex, const struct hd_match *match)
{
    struct hd_slice name = match->params[0];
    const char *colon = memchr(name.ptr, ':', name.len);
    struct hd_mock_ask ask = {.form = HD_MOCK_GEMINI};
    struct hd_slice verb;

    ask.model = hd_slice(name.ptr, colon ? (size_t)(colon - name.ptr) : 0);
    verb = colon ? hd_slice(colon + 1, name.len - ask.model.len - 1) : hd_slice("", 0);
    ask.is_stream = hd_slice_eq(verb, HD_S("streamGenerateContent"));
    if (ask.is_stream || hd_slice_eq(verb, HD_S("generateContent")))
        chat(m, ex, &ask);
    else
        hd_answer_error(ex, 404, "only generateContent and streamGenerateContent are supported");
}

static void embeddings(struct mocking *m, struct hd_exchange *ex, const struct hd_match *match)
{
    const struct hd_http_request *request = hd_exchange_request(ex);
    struct hd_mock_answer a;
    int err;

    (void)match;
    if (hd_mock_admits(m->mock, shown_key(request)))
        err = hd_mock_embed(request->body, &a);
    else
        err = hd_mock_refuse(HD_MOCK_OPENAI, 401, "wrong API key", &a);
    answer_exchange(m, ex, err, &a);
}

static void models(struct mocking *m, struct hd_exchange *ex, const struct hd_match *match)
{
    struct hd_mock_answer a;

    (void)match;
    answer_exchange(m, ex, hd_mock_models(m->mock, &a), &a);
}

static void show_log(struct mocking *m, struct hd_exchange *ex, const struct hd_match *match)
{
    struct hd_buf text;
    int err;

    (void)match;
    hd_buf_init(&text, MAX_LOG);
    err = hd_cli_mock_log_write(&m->log, &text);
    if (err)
        hd_answer_error(ex, hd_error_http_status(err), "%s", hd_error_text(err));
    else
        hd_answer_json(ex, 200, &text);
    hd_buf_fini(&text);
}

static void reset_log(struct mocking *m, struct hd_exchange *ex, const struct hd_match *match)
{
    (void)match;
    hd_cli_mock_log_reset(&m->log);
    hd_mock_reset(m->mock);
    hd_answer_empty(ex, 204);
}

static const struct hd_router_entry routes[] = {
    {HD_METHOD_POST, "/v1/chat/completions"},
    {HD_METHOD_POST, "/chat/completions"},
    {HD_METHOD_POST, "/v1/messages"},
    {HD_METHOD_POST, "/v1beta/models/{call}"},
    {HD_METHOD_POST, "/v1/embeddings"},
    {HD_METHOD_POST, "/embeddings"},
    {HD_METHOD_GET, "/v1/models"},
    {HD_METHOD_GET, "/models"},
    {HD_METHOD_GET, "/mock/requests"},
    {HD_METHOD_DELETE, "/mock/requests"},
};

static const endpoint_fn endpoints[] = {
    completions, completions, messages, generate, embeddings,
    embeddings,  models,      models,   show_log, reset_log,
};

static void handle(void *ctx, struct hd_exchange *ex)
{
    const struct hd_http_request *request = hd_exchange_request(ex);
    struct mocking *m = ctx;
    struct hd_match match;

    if (hd_router_match(m->router, request->method, request->path, hd_exchange_arena(ex), &match))
        hd_answer_error(ex, 503, "out of memory");
    else if (match.kind == HD_MATCH_FOUND)
        endpoints[match.route](m, ex, &match);
    else if (match.kind == HD_MATCH_OPTIONS)
        hd_answer_empty(ex, 204);
    else
        hd_answer_error(ex, match.kind == HD_MATCH_NO_METHOD ? 405 : 404,
                        "no such endpoint; heddle help mock-model lists them");
}

/* ---- the command ------------------------------------------------------ */

static void on_mock_closed(void *arg)
{
    struct mocking *m = arg;

    m->server = NULL;
    for (size_t i = 0; i < m->signal_count; i++)
        uv_close((uv_handle_t *)&m->signals[i], NULL);
}

static void on_signal(uv_signal_t *handle, int signum)
{
    struct mocking *m = handle->data;

    (void)signum;
    if (!m->is_ending)
        hd_http_server_close(m->server, GRACE_MS, on_mock_closed, m);
    m->is_ending = true;
}

static int open_signals(struct mocking *m)
{
    static const int numbers[] = {SIGINT, SIGTERM};

    for (size_t i = 0; i < HD_COUNT(numbers); i++) {
        if (uv_signal_init(&m->loop, &m->signals[i]))
            return HD_EIO;
        m->signals[i].data = m;
        m->signal_count++;
        if (uv_signal_start(&m->signals[i], on_signal, numbers[i]))
            return HD_EIO;
    }
    return 0;
}

static int open_server(struct mocking *m, struct heddle_error *fault)
{
    struct hd_http_server_config config;
    int err = hd_router_create(&m->router, routes, HD_COUNT(routes), fault);

    if (err)
        return err;
    hd_http_server_config_init(&config);
    config.limits.body = HD_MOCK_MAX_REQUEST;
    config.handler = handle;
    config.ctx = m;
    err = hd_http_server_create(&m->server, &m->loop, &config, fault);
    if (!err)
        err = hd_http_server_listen(m->server, "127.0.0.1", m->port, !m->port_is_given, &m->port,
                                    fault);
    return err ? err : open_signals(m);
}

static int serve(struct mocking *m)
{
    struct heddle_error fault = {0};
    int err;

    if (uv_loop_init(&m->loop))
        return HD_EXIT_FAILED;
    err = open_server(m, &fault);
    if (err) {
        (void)fprintf(stderr, "heddle mock-model: %s\n",
                      fault.code ? fault.text : hd_error_text(err));
        if (m->server)
            hd_http_server_close(m->server, 0, on_mock_closed, m);
    } else {
        printf("A scripted model listens at http://localhost:%d/v1. Press Ctrl-C to stop.\n",
               m->port);
        (void)fflush(stdout);
    }
    uv_run(&m->loop, UV_RUN_DEFAULT);
    if (uv_loop_close(&m->loop))
        (void)fprintf(stderr, "heddle mock-model: the event loop was closed with open handles\n");
    hd_router_destroy(m->router);
    return err ? HD_EXIT_FAILED : HD_EXIT_OK;
}

static bool read_script(struct mocking *m, const char *path)
{
    struct heddle_error fault = {0};
    struct hd_buf text;
    int err;

    hd_buf_init(&text, HD_MOCK_MAX_SCRIPT);
    if (path && !hd_cli_read_file(path, HD_MOCK_MAX_SCRIPT, &text))
        return false;
    if (path && text.len == 0)
        err = hd_error_set(&fault, HD_EINVAL, "the file is empty");
    else
        err = hd_mock_create(&m->mock, hd_buf_slice(&text), &fault);
    if (err)
        (void)fprintf(stderr, "%s: %s\n", path ? path : "the built-in script",
                      fault.code ? fault.text : hd_error_text(err));
    hd_buf_fini(&text);
    return !err;
}

static int read_port(struct mocking *m, const char *text)
{
    char *end = NULL;
    long port = text && *text ? strtol(text, &end, 10) : -1;

    if (port < 0 || port > 65535 || *end != '\0')
        return hd_usage_error(&hd_command_mock_model, "--port needs a number up to 65535");
    m->port = (int)port;
    m->port_is_given = true;
    return 0;
}

static int mock_model_run(int argc, char **argv)
{
    struct mocking m = {.port = DEFAULT_PORT};
    const char *path = NULL, *value;
    int status = 0;

    for (int i = 1; i < argc && !status; i++) {
        if (hd_option_value(argc, argv, &i, "--port", &value))
            status = read_port(&m, value);
        else if (argv[i][0] == '-' && argv[i][1] != '\0')
            status = hd_usage_error(&hd_command_mock_model, "unknown option %s", argv[i]);
        else if (path)
            status = hd_usage_error(&hd_command_mock_model, "expected one SCRIPT.json");
        else
            path = argv[i];
    }
    if (status)
        return status;
    status = read_script(&m, path) ? serve(&m) : HD_EXIT_FAILED;
    hd_cli_mock_log_reset(&m.log);
    hd_mock_destroy(m.mock);
    return status;
}

const struct hd_command hd_command_mock_model = {
    .name = "mock-model",
    .arguments = "[--port N] [SCRIPT.json]",
    .summary = "serve a scripted model, to test agents without a key",
    .help = "Serves OpenAI's chat completions, Anthropic's messages and Google's Gemini API at\n"
            "http://localhost:4010/v1 (the next free port unless --port is given), whole and "
            "streamed;\n"
            "also GET /v1/models, POST /v1/embeddings and GET /mock/requests, which lists the "
            "requests\n"
            "received. No network, no key.\n"
            "\n"
            "Without SCRIPT.json it repeats the user's message, and\n"
            "  use NAME with {\"a\": 1}   calls that tool, once per occurrence\n"
            "  five tools               calls five of the offered tools, at once\n"
            "  think, slowly            reasons first; sends word by word\n"
            "  fail with 429            fails with that status (400, 401, 429, 500, 503)\n"
            "\n"
            "docs/mock-model.md has the form of scripts. To use it:\n"
            "  heddle mock-model &\n"
            "  OPENAI_BASE_URL=http://localhost:4010/v1 OPENAI_API_KEY=any heddle serve\n",
    .run = mock_model_run,
};
