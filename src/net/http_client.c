/* libcurl's multi interface on a uv loop. */
#include "net/http_client.h"

#include <curl/curl.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/list.h"
#include "net/outgoing.h"

#define MAX_BODY ((size_t)64 << 20)
#define MAX_HEADERS ((size_t)1 << 20)
#define MAX_CONNECTIONS 2048L /* active; further requests wait */
#define MAX_SPARE 256L        /* idle, kept for reuse */
#define CONNECT_SECONDS 30L

struct hd_client {
    uv_loop_t *loop;
    const struct hd_outgoing *outgoing; /* NULL: no restriction */
    CURLM *multi;
    uv_timer_t timer; /* drives libcurl's timeouts */
    uv_timer_t idler; /* checks for idle requests */
    uv_timer_t later; /* runs work deferred from callbacks */
    unsigned open_handles;
    bool is_closing;
    bool is_frozen;                     /* hd_client_freeze() */
    struct socket_watch *watches;       /* all of them */
    unsigned inside;                    /* depth of libcurl calls that may call back */
    struct hd_client_request *requests; /* all of them */
    struct hd_client_request *todo;     /* requests with work to do outside of libcurl */
};

struct hd_client_request {
    struct hd_client *http;
    HD_DLINK(struct hd_client_request) all;
    struct hd_client_request *next_todo;
    CURL *easy;
    struct curl_slist *headers;
    char *sent;
    struct hd_buf head, body;
    char error[CURL_ERROR_SIZE];
    hd_client_response_fn done;
    void *ctx;
    bool ignores_answer;
    bool (*allows)(void *ctx, const struct sockaddr *address);
    void *allows_ctx;
    char *trusted; /* the URL, if its host is allowed; else NULL */
    bool is_direct;
    bool is_refused; /* a connection was refused */
    bool (*on_head)(void *ctx, const struct hd_client_response *head);
    void (*on_data)(void *ctx, struct hd_slice data);
    size_t max_given, given; /* bytes passed to on_data; 0: no limit */

    bool follows;
    bool is_added;     /* added to the multi handle */
    bool is_todo;      /* is in http->todo */
    bool is_cancelled; /* freed when libcurl returns */
    bool is_ending;    /* in finish_request() */
    bool has_head;     /* on_head was called */
    bool is_given;     /* the body goes to on_data */
    bool is_paused;
    bool wants_resume;
    enum hd_client_failure failure; /* set here; otherwise derived from libcurl's code */

    int64_t timeout_ms;
    int64_t idle_ms;
    uint64_t heard_at; /* uv_now() of the last byte sent or received */
    curl_off_t uploaded;
    bool is_late; /* the timeout has passed; data that arrived in time may still be read */
};

/* A socket that libcurl polls. */
struct socket_watch {
    HD_DLINK(struct socket_watch) all;
    int events; /* that libcurl waits for */
    uv_poll_t poll;
    curl_socket_t socket;
    struct hd_client *http;
};

static void forget_todo(struct hd_client_request *request)
{
    struct hd_client_request **at = &request->http->todo;

    while (request->is_todo && *at != request)
        at = &(*at)->next_todo;
    if (request->is_todo)
        *at = request->next_todo;
    request->is_todo = false;
}

static void free_request(struct hd_client_request *request)
{
    forget_todo(request);
    hd_dlist_remove(request, all);
    curl_easy_cleanup(request->easy);
    curl_slist_free_all(request->headers);
    hd_free(request->sent);
    hd_free(request->trusted);
    hd_buf_fini(&request->head);
    hd_buf_fini(&request->body);
    hd_free(request);
}

/* ---- results ---------------------------------------------------------- */

static bool was_connected(const struct hd_client_request *request)
{
    curl_off_t connected = 0;

    curl_easy_getinfo(request->easy, CURLINFO_PRETRANSFER_TIME_T, &connected);
    return connected > 0;
}

/* libcurl has one code for both timeouts; connecting has a separate limit. */
static enum hd_client_failure timeout_failure(const struct hd_client_request *request)
{
    curl_off_t took = 0;

    curl_easy_getinfo(request->easy, CURLINFO_TOTAL_TIME_T, &took);
    if (was_connected(request) || (request->timeout_ms > 0 && took / 1000 >= request->timeout_ms))
        return HD_CLIENT_TIMEOUT;
    return HD_CLIENT_CONNECT_TIME;
}

static enum hd_client_failure failure_of(const struct hd_client_request *request, CURLcode code)
{
    if (request->failure)
        return request->failure;
    /*
     * A refused address matters only if the request failed: another address of the host may be
     * allowed.
     */
    if (request->is_refused && (code == CURLE_COULDNT_CONNECT || code == CURLE_ABORTED_BY_CALLBACK))
        return HD_CLIENT_REFUSED;
    switch (code) {
    case CURLE_OK:
        return HD_CLIENT_FINE;
    case CURLE_URL_MALFORMAT:
        return HD_CLIENT_URL;
    case CURLE_UNSUPPORTED_PROTOCOL:
        return was_connected(request) ? HD_CLIENT_STRANGE : HD_CLIENT_URL;
    case CURLE_WEIRD_SERVER_REPLY:
        return HD_CLIENT_STRANGE;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
        return HD_CLIENT_RESOLVE;
    case CURLE_COULDNT_CONNECT:
        return HD_CLIENT_CONNECT;
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
        return HD_CLIENT_TLS;
    case CURLE_OPERATION_TIMEDOUT:
        return timeout_failure(request);
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_PARTIAL_FILE:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
        return request->head.len > 0 ? HD_CLIENT_CUT : HD_CLIENT_CLOSED;
    default:
        return HD_CLIENT_OTHER;
    }
}

static struct hd_client_response respond(const struct hd_client_request *request)
{
    struct hd_client_response response = {.headers = hd_buf_slice(&request->head),
                                          .body = hd_buf_slice(&request->body)};

    curl_easy_getinfo(request->easy, CURLINFO_RESPONSE_CODE, &response.status);
    response.has_head = response.status >= 200 && request->head.len > 0;
    return response;
}

static void notify_head(struct hd_client_request *request)
{
    struct hd_client_response head = respond(request);

    request->has_head = true;
    if (request->on_head && !request->is_cancelled)
        request->is_given = request->on_head(request->ctx, &head);
}

static void remove_request(struct hd_client_request *request)
{
    if (request->is_added)
        curl_multi_remove_handle(request->http->multi, request->easy);
    request->is_added = false;
}

static void finish_request(struct hd_client_request *request, CURLcode code)
{
    struct hd_client_response response;

    request->is_ending = true;
    remove_request(request);
    response = respond(request);
    response.failure = failure_of(request, code);
    if (response.failure) {
        long number = 0;

        curl_easy_getinfo(request->easy, CURLINFO_OS_ERRNO, &number);
        response.os_error = (int)number;
        response.error = request->error[0] ? request->error : curl_easy_strerror(code);
    } else if (!request->has_head) {
        notify_head(request);
    }
    if (!request->is_cancelled)
        request->done(request->ctx, &response);
    free_request(request);
}

static void read_completions(struct hd_client *http)
{
    CURLMsg *message;
    int left;

    while ((message = curl_multi_info_read(http->multi, &left))) {
        struct hd_client_request *request;

        if (message->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &request);
        finish_request(request, message->data.result);
    }
}

/* ---- deferred work ---------------------------------------------------- */

static uint64_t now_ms(void)
{
    return uv_hrtime() / 1000000;
}

static void put_todo(struct hd_client_request *request)
{
    if (request->is_todo)
        return;
    request->is_todo = true;
    request->next_todo = request->http->todo;
    request->http->todo = request;
}

/* False: the paused data could not be delivered. */
static bool resume(struct hd_client_request *request, CURLcode *code)
{
    request->wants_resume = false;
    request->heard_at = now_ms();
    request->http->inside++;
    *code = curl_easy_pause(request->easy, CURLPAUSE_CONT);
    request->http->inside--;
    /* A request that has ended in the meantime has no connection; its result is processed next. */
    return *code == CURLE_OK || *code == CURLE_BAD_FUNCTION_ARGUMENT || request->is_cancelled;
}

static void add_to_multi(struct hd_client_request *request)
{
    request->is_added = curl_multi_add_handle(request->http->multi, request->easy) == CURLM_OK;
}

/* Runs work requested in callbacks, which libcurl cannot do while it calls back. */
static void run_todo(struct hd_client *http)
{
    while (http->todo && !http->is_frozen) {
        struct hd_client_request *request = http->todo;
        CURLcode code = CURLE_OUT_OF_MEMORY;

        forget_todo(request);
        if (request->is_cancelled) {
            remove_request(request);
            free_request(request);
            continue;
        }
        if (!request->is_added)
            add_to_multi(request);
        if (!request->is_added || (request->wants_resume && !resume(request, &code)))
            finish_request(request, code);
    }
}

static void enter_client(struct hd_client *http)
{
    http->inside++;
}

static void leave_client(struct hd_client *http)
{
    http->inside--;
    run_todo(http);
    read_completions(http);
}

static void on_later(uv_timer_t *timer)
{
    struct hd_client *http = timer->data;

    run_todo(http);
    read_completions(http);
}

/* ---- idle timeout ----------------------------------------------------- */

static void on_idle(uv_timer_t *timer);

static void watch_silence(struct hd_client_request *request)
{
    struct hd_client *http = request->http;
    uint64_t ms = (uint64_t)request->idle_ms;

    if (!uv_is_active((uv_handle_t *)&http->idler) || uv_timer_get_due_in(&http->idler) > ms)
        uv_timer_start(&http->idler, on_idle, ms, 0);
}

static void hear(struct hd_client_request *request)
{
    request->heard_at = now_ms();
    request->is_late = false;
}

static int on_transfer_progress(void *ctx, curl_off_t down_total, curl_off_t down,
                                curl_off_t up_total, curl_off_t up)
{
    struct hd_client_request *request = ctx;

    (void)down_total;
    (void)down;
    (void)up_total;
    if (up != request->uploaded)
        hear(request);
    request->uploaded = up;
    return 0;
}

/*
 * Data that arrived while the loop was busy is read after timers run: a request times out only if
 * it is still idle in the next loop iteration.
 */
static bool is_silent(struct hd_client_request *request, uint64_t now, uint64_t *next)
{
    uint64_t due = request->heard_at + (uint64_t)request->idle_ms;
    bool was_late = request->is_late;

    if (request->idle_ms <= 0 || request->is_paused || request->is_cancelled)
        return false;
    request->is_late = now >= due;
    if (request->is_late && was_late)
        return true;
    due = request->is_late ? 1 : due - now;
    if (due < *next)
        *next = due;
    return false;
}

static void on_idle(uv_timer_t *timer)
{
    struct hd_client *http = timer->data;
    uint64_t now = now_ms(), next = UINT64_MAX;
    struct hd_client_request *request = http->requests;

    while (request) {
        struct hd_client_request *following = request->all.next;

        if (is_silent(request, now, &next)) {
            request->failure = HD_CLIENT_IDLE;
            finish_request(request, CURLE_OPERATION_TIMEDOUT);
            /* The callback may have cancelled other requests. */
            following = http->requests;
            next = UINT64_MAX;
        }
        request = following;
    }
    if (next != UINT64_MAX)
        uv_timer_start(timer, on_idle, next, 0);
}

/* ---- sockets and timers ----------------------------------------------- */

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct socket_watch *watch = poll->data;
    struct hd_client *http = watch->http;
    int flags = 0, running;

    if (status < 0)
        flags = CURL_CSELECT_ERR;
    if (events & UV_READABLE)
        flags |= CURL_CSELECT_IN;
    if (events & UV_WRITABLE)
        flags |= CURL_CSELECT_OUT;
    enter_client(http);
    curl_multi_socket_action(http->multi, watch->socket, flags, &running);
    leave_client(http);
}

static void on_watch_closed(uv_handle_t *handle)
{
    hd_free(handle->data);
}

static int on_socket(CURL *easy, curl_socket_t socket, int what, void *ctx, void *data)
{
    struct hd_client *http = ctx;
    struct socket_watch *watch = data;
    int events = 0;

    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        if (watch) {
            hd_dlist_remove(watch, all);
            uv_poll_stop(&watch->poll);
            uv_close((uv_handle_t *)&watch->poll, on_watch_closed);
            curl_multi_assign(http->multi, socket, NULL);
        }
        return 0;
    }
    if (!watch) {
        watch = hd_calloc(1, sizeof(*watch));
        if (!watch)
            return -1;
        watch->socket = socket;
        watch->http = http;
        if (uv_poll_init_socket(http->loop, &watch->poll, socket) != 0) {
            hd_free(watch);
            return -1;
        }
        watch->poll.data = watch;
        hd_dlist_insert(&http->watches, watch, all);
        curl_multi_assign(http->multi, socket, watch);
    }
    events |= what != CURL_POLL_OUT ? UV_READABLE : 0;
    events |= what != CURL_POLL_IN ? UV_WRITABLE : 0;
    watch->events = events;
    if (http->is_frozen)
        return 0;
    return uv_poll_start(&watch->poll, events, on_poll) == 0 ? 0 : -1;
}

static void on_multi_timer(uv_timer_t *timer)
{
    struct hd_client *http = timer->data;
    int running;

    enter_client(http);
    curl_multi_socket_action(http->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    leave_client(http);
}

static int on_timeout(CURLM *multi, long ms, void *ctx)
{
    struct hd_client *http = ctx;

    (void)multi;
    if (http->is_closing || http->is_frozen)
        return 0;
    if (ms < 0)
        uv_timer_stop(&http->timer);
    else
        uv_timer_start(&http->timer, on_multi_timer, (uint64_t)ms, 0);
    return 0;
}

/* ---- requests --------------------------------------------------------- */

static bool is_too_large(struct hd_client_request *request, size_t len)
{
    if (request->is_given) {
        request->given += len;
        return request->max_given > 0 && request->given > request->max_given;
    }
    return len > request->body.limit - request->body.len;
}

static size_t on_response_body(char *bytes, size_t size, size_t count, void *ctx)
{
    struct hd_client_request *request = ctx;
    size_t len = size * count;

    hear(request);
    if (!request->has_head)
        notify_head(request);
    if (request->is_cancelled)
        return 0;
    if (request->ignores_answer)
        return len;
    if (is_too_large(request, len)) {
        request->failure = HD_CLIENT_LARGE;
        return 0;
    }
    if (!request->is_given)
        return hd_buf_append(&request->body, bytes, len) == 0 ? len : 0;
    request->on_data(request->ctx, hd_slice(bytes, len));
    return request->is_cancelled ? 0 : len;
}

/* The empty line after the headers, unless libcurl continues: a redirect, or a 100 response. */
static bool ends_head(const struct hd_client_request *request, const char *bytes, size_t len)
{
    long status = 0;

    if (request->has_head || (len != 1 && len != 2) || bytes[len - 1] != '\n')
        return false;
    curl_easy_getinfo(request->easy, CURLINFO_RESPONSE_CODE, &status);
    return status >= 200 && !(request->follows && status >= 300 && status < 400);
}

static size_t on_header(char *bytes, size_t size, size_t count, void *ctx)
{
    struct hd_client_request *request = ctx;
    size_t len = size * count;

    hear(request);
    /* A status line begins a new response: only the last one counts. */
    if (len > 5 && memcmp(bytes, "HTTP/", 5) == 0)
        hd_buf_reset(&request->head);
    if (hd_buf_append(&request->head, bytes, len))
        return 0;
    if (ends_head(request, bytes, len))
        notify_head(request);
    return request->is_cancelled ? 0 : len;
}

static int add_header(struct hd_client_request *request, const char *line)
{
    struct curl_slist *list;

    if (strpbrk(line, "\r\n"))
        return HD_EINVAL; /* a line break would inject a header */
    list = curl_slist_append(request->headers, line);
    if (!list)
        return HD_ENOMEM;
    request->headers = list;
    return 0;
}

static int add_headers(struct hd_client_request *request, const char *const *headers, size_t count)
{
    int err = add_header(request, "Expect:"); /* no 100-continue round trip before large bodies */

    for (size_t i = 0; i < count && !err; i++)
        err = add_header(request, headers[i]);
    return err;
}

static int set_body(struct hd_client_request *request, struct hd_slice body)
{
    if (!body.ptr)
        return 0;
    request->sent = hd_malloc(body.len + 1);
    if (!request->sent)
        return HD_ENOMEM;
    memcpy(request->sent, body.ptr, body.len);
    curl_easy_setopt(request->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.len);
    curl_easy_setopt(request->easy, CURLOPT_POSTFIELDS, request->sent);
    return 0;
}

/* Checks the current URL, which changes with a redirect. */
static bool is_permitted(const struct hd_client_request *request, const struct sockaddr *address)
{
    struct hd_outgoing_target target = {
        .trusted = request->trusted, .is_direct = request->is_direct, .address = address};
    char *url = NULL;

    if (!request->http->outgoing || !request->http->outgoing->is_strict)
        return true;
    curl_easy_getinfo(request->easy, CURLINFO_EFFECTIVE_URL, &url);
    target.url = url;
    return hd_outgoing_permits(request->http->outgoing, &target);
}

static bool may_connect(struct hd_client_request *request, const struct sockaddr *address)
{
    bool is_fine = (!request->allows || request->allows(request->allows_ctx, address)) &&
                   is_permitted(request, address);

    request->is_refused |= !is_fine;
    return is_fine;
}

/* Called with the resolved address, whatever name led to it. */
static curl_socket_t on_open(void *ctx, curlsocktype purpose, struct curl_sockaddr *address)
{
    (void)purpose;
    if (!may_connect(ctx, &address->addr))
        return CURL_SOCKET_BAD;
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

/*
 * Called before sending. A reused connection may have been opened for a request with more rights.
 */
/* NOLINTNEXTLINE(readability-non-const-parameter): libcurl defines the types. */
static int on_peer_ready(void *ctx, char *peer, char *own, int peer_port, int own_port)
{
    struct sockaddr_storage address = {0};
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)&address;
    struct hd_ip bytes;

    (void)own;
    (void)own_port;
    if (!hd_ip_parse(hd_slice_cstr(peer), &bytes))
        return CURL_PREREQFUNC_ABORT;
    six->sin6_family = AF_INET6;
    six->sin6_port = htons((uint16_t)peer_port);
    memcpy(&six->sin6_addr, bytes.bytes, sizeof(bytes.bytes));
    return may_connect(ctx, (struct sockaddr *)&address) ? CURL_PREREQFUNC_OK
                                                         : CURL_PREREQFUNC_ABORT;
}

static void set_route(struct hd_client_request *request, const struct hd_client_options *options)
{
    CURL *easy = request->easy;

    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, request->follows ? 1L : 0L);
    curl_easy_setopt(easy, CURLOPT_MAXREDIRS, 5L);
    if (options->connect_ms > 0)
        curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)options->connect_ms);
    else
        curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, CONNECT_SECONDS);
    if (options->is_direct)
        curl_easy_setopt(easy, CURLOPT_PROXY, "");
    if (options->is_own) {
        curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
        curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
    }
    if (options->timeout_ms > 0)
        curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)options->timeout_ms);
    if (options->allows || request->http->outgoing) {
        curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_open);
        curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, request);
        curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_peer_ready);
        curl_easy_setopt(easy, CURLOPT_PREREQDATA, request);
    }
}

static void set_options(struct hd_client_request *request, const struct hd_client_options *options)
{
    CURL *easy = request->easy;

    curl_easy_setopt(easy, CURLOPT_URL, options->url);
    curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, (long)options->is_verbatim);
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, options->method);
    curl_easy_setopt(easy, CURLOPT_NOBODY, (long)(strcmp(options->method, "HEAD") == 0));
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
#if CURL_AT_LEAST_VERSION(7, 87, 0)
    /* A request that ends during a name lookup does not block the loop on it. */
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
#endif
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, request->error);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, request);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_response_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, request);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, request);
    curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    if (request->headers)
        curl_easy_setopt(easy, CURLOPT_HTTPHEADER, request->headers);
    if (request->idle_ms > 0) {
        curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, on_transfer_progress);
        curl_easy_setopt(easy, CURLOPT_XFERINFODATA, request);
        curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
    }
    /*
     * A pause must reach the peer: use a separate HTTP/1.1 connection without compression, which
     * would expand few bytes to many.
     */
    if (request->on_head)
        curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    else
        curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, "");
}

static struct hd_client_request *new_request(struct hd_client *http,
                                             const struct hd_client_options *options)
{
    struct hd_client_request *request = hd_calloc(1, sizeof(*request));

    if (!request)
        return NULL;
    request->http = http;
    request->ignores_answer = options->ignores_answer;
    request->follows = !options->is_direct && !options->is_final;
    request->allows = options->allows;
    request->allows_ctx = options->allows_ctx;
    request->is_direct = options->is_direct;
    request->on_head = options->on_head;
    request->on_data = options->on_data;
    request->max_given = options->max_given;
    request->timeout_ms = options->timeout_ms;
    request->idle_ms = options->idle_ms;
    request->heard_at = now_ms();
    hd_buf_init(&request->head, MAX_HEADERS);
    hd_buf_init(&request->body, options->max_body > 0 ? options->max_body : MAX_BODY);
    hd_dlist_insert(&http->requests, request, all);
    return request;
}

int hd_client_send(struct hd_client *http, const struct hd_client_options *options,
                   hd_client_response_fn done, void *ctx, struct hd_client_request **out)
{
    struct hd_client_request *request = new_request(http, options);
    int err;

    if (!request)
        return HD_ENOMEM;
    request->done = done;
    request->ctx = ctx;
    request->easy = curl_easy_init();
    err = request->easy ? add_headers(request, options->headers, options->header_count) : HD_ENOMEM;
    if (!err && options->is_trusted) {
        request->trusted = hd_malloc(strlen(options->url) + 1);
        err = request->trusted ? 0 : HD_ENOMEM;
        if (!err)
            memcpy(request->trusted, options->url, strlen(options->url) + 1);
    }
    if (!err) {
        set_options(request, options);
        set_route(request, options);
        err = set_body(request, options->body);
    }
    if (!err && (http->inside > 0 || http->is_frozen))
        put_todo(request);
    else if (!err)
        add_to_multi(request);
    if (!err && !request->is_added && !request->is_todo)
        err = HD_EIO;
    if (err) {
        free_request(request);
        return err;
    }
    if (request->idle_ms > 0)
        watch_silence(request);
    *out = request;
    return 0;
}

int hd_client_start(struct hd_client *http, const char *method, const char *url,
                    const char *const *headers, size_t header_count, struct hd_slice body,
                    hd_client_response_fn done, void *ctx, struct hd_client_request **out)
{
    const struct hd_client_options options = {.method = method,
                                              .url = url,
                                              .headers = headers,
                                              .header_count = header_count,
                                              .body = body};

    return hd_client_send(http, &options, done, ctx, out);
}

void hd_client_cancel(struct hd_client_request *request)
{
    if (request->is_ending || request->is_cancelled) {
        request->is_cancelled = true;
        return;
    }
    if (request->http->inside > 0) {
        request->is_cancelled = true;
        put_todo(request);
        return;
    }
    remove_request(request);
    free_request(request);
}

void hd_client_pause(struct hd_client_request *request)
{
    if (!request->has_head || request->is_ending || request->is_cancelled)
        return;
    request->is_paused = true;
    if (request->wants_resume)
        request->wants_resume = false; /* not done yet */
    else
        curl_easy_pause(request->easy, CURLPAUSE_RECV);
}

void hd_client_resume(struct hd_client_request *request)
{
    struct hd_client *http = request->http;

    if (!request->is_paused || request->is_ending || request->is_cancelled)
        return;
    request->is_paused = false;
    request->wants_resume = true;
    request->heard_at = now_ms();
    put_todo(request);
    uv_timer_start(&http->later, on_later, 0, 0);
    if (request->idle_ms > 0)
        watch_silence(request);
}

/* ---- freezing --------------------------------------------------------- */

static void freeze(struct hd_client *http)
{
    uv_timer_stop(&http->timer);
    uv_timer_stop(&http->idler);
    uv_timer_stop(&http->later);
    for (struct socket_watch *watch = http->watches; watch; watch = watch->all.next)
        uv_poll_stop(&watch->poll);
}

/* libcurl sets its timer again when it is called. */
static void thaw(struct hd_client *http)
{
    struct hd_client_request *request = http->requests;

    for (; request; request = request->all.next) {
        hear(request);
        if (request->idle_ms > 0)
            watch_silence(request);
    }
    for (struct socket_watch *watch = http->watches; watch; watch = watch->all.next)
        (void)uv_poll_start(&watch->poll, watch->events, on_poll);
    uv_timer_start(&http->timer, on_multi_timer, 0, 0);
    uv_timer_start(&http->later, on_later, 0, 0);
}

void hd_client_freeze(struct hd_client *http, bool is_frozen)
{
    if (http->is_frozen == is_frozen)
        return;
    http->is_frozen = is_frozen;
    if (is_frozen)
        freeze(http);
    else
        thaw(http);
}

/* ---- the client ------------------------------------------------------- */

static void init_timer(struct hd_client *http, uv_timer_t *timer)
{
    uv_timer_init(http->loop, timer);
    timer->data = http;
    http->open_handles++;
}

int hd_client_create(uv_loop_t *loop, struct hd_client **out)
{
    struct hd_client *http = hd_calloc(1, sizeof(*http));

    if (!http)
        return HD_ENOMEM;
    http->loop = loop;
    if (curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK)
        http->multi = curl_multi_init();
    if (!http->multi) {
        hd_free(http);
        return HD_ENOMEM;
    }
    init_timer(http, &http->timer);
    init_timer(http, &http->idler);
    uv_unref((uv_handle_t *)&http->idler); /* it may outlast the requests that started it */
    init_timer(http, &http->later);
    curl_multi_setopt(http->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, MAX_CONNECTIONS);
    curl_multi_setopt(http->multi, CURLMOPT_MAXCONNECTS, MAX_SPARE);
    curl_multi_setopt(http->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(http->multi, CURLMOPT_SOCKETDATA, http);
    curl_multi_setopt(http->multi, CURLMOPT_TIMERFUNCTION, on_timeout);
    curl_multi_setopt(http->multi, CURLMOPT_TIMERDATA, http);
    *out = http;
    return 0;
}

void hd_client_set_outgoing(struct hd_client *http, const struct hd_outgoing *outgoing)
{
    http->outgoing = outgoing;
}

void hd_client_set_connections(struct hd_client *http, long count)
{
    curl_multi_setopt(http->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, count);
}

static void on_client_closed(uv_handle_t *handle)
{
    struct hd_client *http = handle->data;

    if (--http->open_handles == 0)
        hd_free(http);
}

void hd_client_destroy(struct hd_client *http)
{
    if (!http)
        return;
    http->is_closing = true;
    while (http->requests)
        finish_request(http->requests, CURLE_ABORTED_BY_CALLBACK);
    curl_multi_cleanup(http->multi);
    uv_close((uv_handle_t *)&http->timer, on_client_closed);
    uv_close((uv_handle_t *)&http->idler, on_client_closed);
    uv_close((uv_handle_t *)&http->later, on_client_closed);
}
