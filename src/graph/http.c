/* libcurl's multi interface on a uv loop. */
#include "graph/http.h"

#include <curl/curl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"

#define MAX_BODY ((size_t)64 << 20)
#define MAX_HEADERS ((size_t)1 << 20)
#define CONNECT_SECONDS 30L

struct hd_http {
    uv_loop_t *loop;
    CURLM *multi;
    uv_timer_t timer;
    bool is_closing;
};

struct hd_request {
    struct hd_http *http;
    CURL *easy;
    struct curl_slist *headers;
    char *sent;
    struct hd_buf head, body;
    char error[CURL_ERROR_SIZE];
    hd_response_fn done;
    void *ctx;
    bool ignores_answer;
    bool (*allows)(void *ctx, const struct sockaddr *address);
    void *allows_ctx;
};

/* A connection that libcurl wants to know about. */
struct watch {
    uv_poll_t poll;
    curl_socket_t socket;
    struct hd_http *http;
};

static void free_request(struct hd_request *request)
{
    curl_easy_cleanup(request->easy);
    curl_slist_free_all(request->headers);
    hd_free(request->sent);
    hd_buf_fini(&request->head);
    hd_buf_fini(&request->body);
    hd_free(request);
}

static void finish(struct hd_request *request, CURLcode code)
{
    struct hd_response response = {.headers = hd_buf_slice(&request->head),
                                   .body = hd_buf_slice(&request->body)};

    if (code != CURLE_OK)
        response.error = request->error[0] ? request->error : curl_easy_strerror(code);
    else
        curl_easy_getinfo(request->easy, CURLINFO_RESPONSE_CODE, &response.status);
    curl_multi_remove_handle(request->http->multi, request->easy);
    request->done(request->ctx, &response);
    free_request(request);
}

static void look(struct hd_http *http)
{
    CURLMsg *message;
    int left;

    while ((message = curl_multi_info_read(http->multi, &left))) {
        struct hd_request *request;

        if (message->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &request);
        finish(request, message->data.result);
    }
}

/* ---- sockets and time ------------------------------------------------- */

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct watch *watch = poll->data;
    struct hd_http *http = watch->http;
    int flags = 0, running;

    if (status < 0)
        flags = CURL_CSELECT_ERR;
    if (events & UV_READABLE)
        flags |= CURL_CSELECT_IN;
    if (events & UV_WRITABLE)
        flags |= CURL_CSELECT_OUT;
    curl_multi_socket_action(http->multi, watch->socket, flags, &running);
    look(http);
}

static void on_watch_closed(uv_handle_t *handle)
{
    hd_free(handle->data);
}

static int on_socket(CURL *easy, curl_socket_t socket, int what, void *ctx, void *data)
{
    struct hd_http *http = ctx;
    struct watch *watch = data;
    int events = 0;

    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        if (watch) {
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
        curl_multi_assign(http->multi, socket, watch);
    }
    events |= what != CURL_POLL_OUT ? UV_READABLE : 0;
    events |= what != CURL_POLL_IN ? UV_WRITABLE : 0;
    return uv_poll_start(&watch->poll, events, on_poll) == 0 ? 0 : -1;
}

static void on_timer(uv_timer_t *timer)
{
    struct hd_http *http = timer->data;
    int running;

    curl_multi_socket_action(http->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    look(http);
}

static int on_timeout(CURLM *multi, long ms, void *ctx)
{
    struct hd_http *http = ctx;

    (void)multi;
    if (http->is_closing)
        return 0;
    if (ms < 0)
        uv_timer_stop(&http->timer);
    else
        uv_timer_start(&http->timer, on_timer, (uint64_t)ms, 0);
    return 0;
}

/* ---- requests --------------------------------------------------------- */

static size_t on_body(char *bytes, size_t size, size_t count, void *ctx)
{
    struct hd_request *request = ctx;

    if (request->ignores_answer)
        return size * count;
    return hd_buf_append(&request->body, bytes, size * count) == 0 ? size * count : 0;
}

static size_t on_header(char *bytes, size_t size, size_t count, void *ctx)
{
    struct hd_request *request = ctx;

    /* A status line begins a new answer: only the last one counts. */
    if (size * count > 5 && memcmp(bytes, "HTTP/", 5) == 0)
        hd_buf_reset(&request->head);
    return hd_buf_append(&request->head, bytes, size * count) == 0 ? size * count : 0;
}

static int add_headers(struct hd_request *request, const char *const *headers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct curl_slist *list = curl_slist_append(request->headers, headers[i]);

        if (!list)
            return HD_ENOMEM;
        request->headers = list;
    }
    return 0;
}

static int set_body(struct hd_request *request, struct hd_slice body)
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

/* The address is known here, whatever name led to it. */
static curl_socket_t on_open(void *ctx, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct hd_request *request = ctx;

    (void)purpose;
    if (!request->allows(request->allows_ctx, &address->addr))
        return CURL_SOCKET_BAD;
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static void set_route(struct hd_request *request, const struct hd_http_what *what)
{
    CURL *easy = request->easy;

    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, what->is_direct ? 0L : 1L);
    curl_easy_setopt(easy, CURLOPT_MAXREDIRS, 5L);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, CONNECT_SECONDS);
    if (what->is_direct)
        curl_easy_setopt(easy, CURLOPT_PROXY, "");
    if (what->timeout_ms > 0)
        curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)what->timeout_ms);
    if (what->allows) {
        curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_open);
        curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, request);
    }
}

static void set_options(struct hd_request *request, const struct hd_http_what *what)
{
    CURL *easy = request->easy;

    curl_easy_setopt(easy, CURLOPT_URL, what->url);
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, what->method);
    curl_easy_setopt(easy, CURLOPT_NOBODY, (long)(strcmp(what->method, "HEAD") == 0));
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, "");
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, request->error);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, request);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, request);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, request);
    if (request->headers)
        curl_easy_setopt(easy, CURLOPT_HTTPHEADER, request->headers);
}

int hd_http_send(struct hd_http *http, const struct hd_http_what *what, hd_response_fn done,
                 void *ctx, struct hd_request **out)
{
    struct hd_request *request = hd_calloc(1, sizeof(*request));
    int err;

    if (!request)
        return HD_ENOMEM;
    request->http = http;
    request->done = done;
    request->ctx = ctx;
    request->ignores_answer = what->ignores_answer;
    request->allows = what->allows;
    request->allows_ctx = what->allows_ctx;
    hd_buf_init(&request->head, MAX_HEADERS);
    hd_buf_init(&request->body, MAX_BODY);
    request->easy = curl_easy_init();
    err = request->easy ? add_headers(request, what->headers, what->header_count) : HD_ENOMEM;
    if (!err) {
        set_options(request, what);
        set_route(request, what);
        err = set_body(request, what->body);
    }
    if (!err && curl_multi_add_handle(http->multi, request->easy) != CURLM_OK)
        err = HD_EIO;
    if (err) {
        free_request(request);
        return err;
    }
    *out = request;
    return 0;
}

int hd_http_start(struct hd_http *http, const char *method, const char *url,
                  const char *const *headers, size_t header_count, struct hd_slice body,
                  hd_response_fn done, void *ctx, struct hd_request **out)
{
    const struct hd_http_what what = {.method = method,
                                      .url = url,
                                      .headers = headers,
                                      .header_count = header_count,
                                      .body = body};

    return hd_http_send(http, &what, done, ctx, out);
}

void hd_http_cancel(struct hd_request *request)
{
    curl_multi_remove_handle(request->http->multi, request->easy);
    free_request(request);
}

/* ---- the client ------------------------------------------------------- */

int hd_http_create(uv_loop_t *loop, struct hd_http **out)
{
    struct hd_http *http = hd_calloc(1, sizeof(*http));

    if (!http)
        return HD_ENOMEM;
    http->loop = loop;
    if (curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK)
        http->multi = curl_multi_init();
    if (!http->multi) {
        hd_free(http);
        return HD_ENOMEM;
    }
    uv_timer_init(loop, &http->timer);
    http->timer.data = http;
    curl_multi_setopt(http->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(http->multi, CURLMOPT_SOCKETDATA, http);
    curl_multi_setopt(http->multi, CURLMOPT_TIMERFUNCTION, on_timeout);
    curl_multi_setopt(http->multi, CURLMOPT_TIMERDATA, http);
    *out = http;
    return 0;
}

static void on_closed(uv_handle_t *handle)
{
    hd_free(handle->data);
}

void hd_http_destroy(struct hd_http *http)
{
    if (!http)
        return;
    http->is_closing = true;
    curl_multi_cleanup(http->multi);
    uv_close((uv_handle_t *)&http->timer, on_closed);
}
