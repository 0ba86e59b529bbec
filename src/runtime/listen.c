/*
 * Accepts worker connections. Connections that have not sent hello have a short timeout and a small
 * frame limit.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/net.h"
#include "runtime/runtime_internal.h"

#define MAX_GUESTS 256 /* over TCP */
#define MAX_FRAME ((size_t)64 * 1024)
#define HELLO_US INT64_C(10000000)
#define BACKLOG 128

struct hd_rt_guest {
    struct hd_runtime *runtime;
    struct hd_rt_guest *next;
    struct hd_link *link;
    bool is_remote;
    int64_t since_us;
};

/* Closes its link too, unless the link was handed over. */
static void see_off(struct hd_rt_guest *guest)
{
    struct hd_rt_guest **at = &guest->runtime->guests;

    while (*at != guest)
        at = &(*at)->next;
    *at = guest->next;
    guest->runtime->remote_guests -= guest->is_remote;
    hd_link_close(guest->link);
    hd_free(guest);
}

static bool is_hello(hd_json_val head)
{
    return hd_slice_eq(hd_json_string(hd_json_get(head, HD_S("op"))), HD_S("hello"));
}

static void greet_guest(struct hd_rt_guest *guest, hd_json_val hello, uint32_t id)
{
    struct hd_runtime *runtime = guest->runtime;
    struct hd_rt_worker *worker = NULL;
    struct heddle_error fault = {0};

    if (hd_rt_worker_greet(runtime, hello, guest->is_remote, &worker, &fault)) {
        hd_log(HD_LOG_WARN, "runtime", "a worker was refused: %s", fault.text);
        if (hd_rt_request_refuse(guest->link, id, fault.code, fault.text))
            hd_log(HD_LOG_WARN, "runtime", "the error could not be sent");
    } else {
        struct hd_link *link = guest->link;

        guest->link = NULL;
        hd_rt_worker_adopt(worker, link, id);
    }
    see_off(guest);
}

/* Frees the guest in any case. */
static bool on_frame(void *ctx, const struct hd_frame *frame)
{
    struct hd_rt_guest *guest = ctx;
    struct hd_json json = {0};
    bool is_fine = frame->type == HD_FRAME_CALL && hd_json_parse(&json, frame->head, NULL) == 0 &&
                   is_hello(hd_json_root(&json));

    if (is_fine)
        greet_guest(guest, hd_json_root(&json), frame->id);
    else
        see_off(guest);
    hd_json_fini(&json);
    return true;
}

static void on_guest_end(void *ctx, const char *why)
{
    (void)why;
    see_off(ctx);
}

static void on_sent(void *ctx)
{
    (void)ctx;
}

static const struct hd_link_events guest_events = {on_frame, on_guest_end, on_sent};

static void on_connection(uv_stream_t *listener, int status)
{
    struct hd_runtime *runtime = listener->data;
    struct hd_rt_guest *guest;

    if (status < 0 || runtime->is_destroyed)
        return;
    guest = hd_calloc(1, sizeof(*guest));
    if (!guest)
        return;
    if (hd_link_accept(listener, &guest_events, guest, hd_runtime_closed, runtime, &guest->link)) {
        hd_free(guest);
        return;
    }
    runtime->open_handles++;
    guest->runtime = runtime;
    guest->is_remote = listener->type == UV_TCP;
    guest->since_us = hd_runtime_now(runtime);
    guest->next = runtime->guests;
    runtime->guests = guest;
    hd_link_set_limit(guest->link, MAX_FRAME);
    /* Remote connections cannot keep the server's own workers out. */
    runtime->remote_guests += guest->is_remote;
    if (runtime->remote_guests > MAX_GUESTS)
        see_off(guest);
}

void hd_listen_tick(struct hd_runtime *runtime, int64_t now)
{
    struct hd_rt_guest *guest = runtime->guests;

    while (guest) {
        struct hd_rt_guest *next = guest->next;

        if (now - guest->since_us >= HELLO_US)
            see_off(guest);
        guest = next;
    }
}

/* ---- sockets ---------------------------------------------------------------- */

static int make_folder(struct hd_runtime *runtime, struct heddle_error *fault)
{
    const char *base = getenv("XDG_RUNTIME_DIR");

    if (!base || strlen(base) > 64 || access(base, W_OK))
        base = getenv("TMPDIR");
    if (!base || strlen(base) > 64 || access(base, W_OK))
        base = "/tmp";
    (void)snprintf(runtime->folder, sizeof(runtime->folder), "%s/heddle-XXXXXX", base);
    if (!mkdtemp(runtime->folder)) {
        runtime->folder[0] = '\0';
        return hd_error_set(fault, HD_EIO, "cannot create a folder in %s: %s", base,
                            strerror(errno));
    }
    (void)snprintf(runtime->path, sizeof(runtime->path), "%.90s/runtime", runtime->folder);
    return 0;
}

static int open_pipe(struct hd_runtime *runtime, struct heddle_error *fault)
{
    int err = make_folder(runtime, fault);

    if (err)
        return err;
    err = uv_pipe_init(runtime->loop, &runtime->pipe, 0);
    if (!err) {
        runtime->pipe.data = runtime;
        runtime->has_pipe = true;
        runtime->open_handles++;
        err = uv_pipe_bind(&runtime->pipe, runtime->path);
    }
    if (!err)
        err = uv_listen((uv_stream_t *)&runtime->pipe, BACKLOG, on_connection);
    if (err)
        return hd_error_set(fault, HD_EIO, "cannot listen on %s: %s", runtime->path,
                            uv_strerror(err));
    return 0;
}

/* The first address of the host that can be bound. */
static int bind_tcp(struct hd_runtime *runtime, const struct addrinfo *list)
{
    int err = UV_EADDRNOTAVAIL;

    for (; list; list = list->ai_next) {
        err = uv_tcp_bind(&runtime->tcp, list->ai_addr, 0);
        if (!err)
            err = uv_listen((uv_stream_t *)&runtime->tcp, BACKLOG, on_connection);
        if (!err)
            break;
    }
    return err;
}

/* Splits host:port or [::1]:port; port 0 is any. */
static bool split_address(const char *text, char *host, size_t size, const char **port)
{
    const char *colon = strrchr(text, ':');
    size_t len = colon ? (size_t)(colon - text) : 0;

    if (len >= 2 && text[0] == '[' && text[len - 1] == ']') {
        text++;
        len -= 2;
    } else if (memchr(text, ':', len)) {
        return false;
    }
    if (len == 0 || len >= size || strspn(colon + 1, "0123456789") != strlen(colon + 1) ||
        strlen(colon + 1) > 5 || !colon[1])
        return false;
    memcpy(host, text, len);
    host[len] = '\0';
    *port = colon + 1;
    return true;
}

static int open_tcp(struct hd_runtime *runtime, struct heddle_error *fault)
{
    const char *text = runtime->settings->listen, *port;
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    uv_getaddrinfo_t query;
    char host[256];
    int err;

    if (!split_address(text, host, sizeof(host), &port))
        return hd_error_set(fault, HD_EINVAL, "runtime.listen: `%s` is not host:port", text);
    if (!runtime->settings->key || !runtime->settings->key[0])
        return hd_error_set(fault, HD_EINVAL, "runtime.listen needs a runtime.key");
    err = uv_tcp_init(runtime->loop, &runtime->tcp);
    if (!err) {
        runtime->tcp.data = runtime;
        runtime->has_tcp = true;
        runtime->open_handles++;
        err = uv_getaddrinfo(runtime->loop, &query, NULL, host, port, &hints);
    }
    if (!err) {
        err = bind_tcp(runtime, query.addrinfo);
        uv_freeaddrinfo(query.addrinfo);
    }
    if (err)
        return hd_error_set(fault, HD_EIO, "cannot listen on %s: %s", text, uv_strerror(err));
    return 0;
}

int hd_listen_open(struct hd_runtime *runtime, struct heddle_error *fault)
{
    int err = open_pipe(runtime, fault);

    if (!err && runtime->settings->listen)
        err = open_tcp(runtime, fault);
    return err;
}

int hd_runtime_port(const struct hd_runtime *runtime)
{
    struct sockaddr_storage name;
    int len = sizeof(name);

    if (!runtime->has_tcp || uv_tcp_getsockname(&runtime->tcp, (struct sockaddr *)&name, &len))
        return 0;
    return hd_ip_port((struct sockaddr *)&name);
}

void hd_listen_close(struct hd_runtime *runtime, uv_close_cb closed)
{
    while (runtime->guests)
        see_off(runtime->guests);
    if (runtime->has_pipe)
        uv_close((uv_handle_t *)&runtime->pipe, closed);
    if (runtime->has_tcp)
        uv_close((uv_handle_t *)&runtime->tcp, closed);
    runtime->has_pipe = runtime->has_tcp = false;
    if (runtime->folder[0]) {
        (void)unlink(runtime->path);
        (void)rmdir(runtime->folder);
    }
    runtime->folder[0] = '\0';
}
