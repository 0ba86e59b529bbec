/*
 * Listening, the hub's part on the loop, and shutdown. Ready connections are handled at the end of
 * each loop iteration (uv_check_t); the idle handle is active while any is ready, so that the loop
 * does not block.
 */
#include "http/server.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "http/internal.h"

#define READ_BUFFER ((size_t)64 * 1024)
#define MOST_LISTENERS 16
#define MOST_ADDRESSES 8
#define PORTS_TO_TRY 100
#define BACKLOG 1024
#define LONGEST_TICK_MS 1000
#define SHORTEST_TICK_MS 10
#define WARN_EVERY_MS 60000

struct listener {
    struct hd_http_server *server;
    uv_tcp_t tcp;
    bool is_waiting; /* a connection was announced and not accepted yet */
};

struct hd_http_server {
    struct hd_hub hub; /* must be first */
    uv_loop_t *loop;
    struct listener *listeners[MOST_LISTENERS];
    size_t listener_count;
    size_t open_listeners;
    uv_check_t check;
    uv_idle_t idle;
    uv_timer_t tick;
    unsigned open_handles; /* of the three above */
    int64_t deadline_ms;
    int64_t ticked_ms; /* time of the last tick */
    int64_t warned_ms; /* last warning about file descriptors; 0: never */
    bool is_excused;   /* the last tick was skipped */
    void (*done)(void *arg);
    void *arg;
    char *read_buffer;
};

static struct hd_http_server *server_of(const struct hd_hub *hub)
{
    return (struct hd_http_server *)hub;
}

uv_loop_t *hd_http_server_loop(const struct hd_hub *hub)
{
    return server_of(hub)->loop;
}

uv_buf_t hd_http_server_read_buffer(struct hd_hub *hub)
{
    return uv_buf_init(server_of(hub)->read_buffer, (unsigned)READ_BUFFER);
}

static void run(struct hd_http_server *server)
{
    hd_hub_run(&server->hub);
    if (!server->hub.ready.first)
        (void)uv_idle_stop(&server->idle);
}

static void on_check(uv_check_t *handle)
{
    struct hd_http_server *server = handle->data;

    if (server->hub.ready.first)
        run(server);
}

static void on_idle(uv_idle_t *handle)
{
    run(handle->data);
}

void hd_http_server_wake(struct hd_hub *hub)
{
    (void)uv_idle_start(&server_of(hub)->idle, on_idle);
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct hd_http_server *server = handle->data;
    void (*done)(void *arg) = server->done;
    void *arg = server->arg;

    if (--server->open_handles > 0)
        return;
    hd_hub_fini(&server->hub);
    hd_free(server->read_buffer);
    hd_free(server);
    if (done)
        done(arg);
}

/* Ends when there are no listeners, no connections and no held exchanges. */
static void close_when_empty(struct hd_http_server *server)
{
    if (!server->hub.is_closing || server->open_listeners > 0 || server->hub.conns ||
        uv_is_closing((uv_handle_t *)&server->check))
        return;
    uv_close((uv_handle_t *)&server->check, on_handle_closed);
    uv_close((uv_handle_t *)&server->idle, on_handle_closed);
    uv_close((uv_handle_t *)&server->tick, on_handle_closed);
}

/* Calls on_gone, through the ready list, where it is set. */
static void break_all(struct hd_http_server *server)
{
    struct hd_conn *conn = server->hub.conns, *next;

    for (; conn; conn = next) {
        next = conn->all.next;
        hd_conn_break(conn);
    }
}

static int64_t least_ms(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* A quarter of the shortest timeout. */
static uint64_t tick_ms(const struct hd_http_server *server)
{
    const struct hd_http_server_limits *limits = &server->hub.config.limits;
    int64_t shortest =
        least_ms(least_ms(limits->idle_ms, limits->head_ms),
                 least_ms(limits->body_ms, least_ms(limits->write_ms, limits->linger_ms)));
    int64_t ms = least_ms(shortest / 4, LONGEST_TICK_MS);

    return (uint64_t)(ms > SHORTEST_TICK_MS ? ms : SHORTEST_TICK_MS);
}

/*
 * After the process was suspended, for example with its machine, the loop runs timers before it
 * reads data that arrived meanwhile: do not time out clients then. Never twice in a row, so that a
 * loop that is always late still enforces timeouts.
 */
static bool has_stood_still(struct hd_http_server *server)
{
    int64_t now = (int64_t)uv_now(server->loop);
    bool is_late = now - server->ticked_ms > 2 * (int64_t)tick_ms(server);

    server->ticked_ms = now;
    server->is_excused = is_late && !server->is_excused;
    return server->is_excused;
}

/* libuv silently closes connections when file descriptors run out. */
static void check_files(struct hd_http_server *server)
{
    int64_t now = (int64_t)uv_now(server->loop);
    int fd;

    if (server->warned_ms != 0 && now - server->warned_ms < WARN_EVERY_MS)
        return;
    fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        (void)close(fd);
    } else if (errno == EMFILE) {
        server->warned_ms = now;
        hd_log(HD_LOG_ERROR, "http",
               "out of file descriptors: new connections are closed; raise ulimit -n");
    }
}

static void on_server_tick(uv_timer_t *handle)
{
    struct hd_http_server *server = handle->data;

    check_files(server);

    if (!has_stood_still(server))
        hd_hub_tick(&server->hub);
    if (server->hub.is_crowded)
        hd_http_server_has_room(&server->hub);
    if (server->hub.is_closing && (int64_t)uv_now(server->loop) >= server->deadline_ms)
        break_all(server);
}

/* Runs only while there are connections, so that an idle server sleeps. */
static void start_ticking(struct hd_http_server *server, uint64_t first_ms)
{
    server->ticked_ms = (int64_t)uv_now(server->loop);
    (void)uv_timer_start(&server->tick, on_server_tick, first_ms, tick_ms(server));
}

static void accept_one(struct listener *listener)
{
    struct hd_http_server *server = listener->server;
    int err;

    listener->is_waiting = false;
    if (!server->hub.conns)
        start_ticking(server, tick_ms(server));
    err = hd_http_wire_accept(&server->hub, (uv_stream_t *)&listener->tcp);
    if (err) {
        hd_log(HD_LOG_WARN, "http", "cannot accept a connection: %s", hd_error_text(err));
        /* The next tick retries. */
        listener->is_waiting = server->hub.is_crowded = true;
    }
}

/* At the limit the connection waits; libuv reports no other until it is accepted. */
static void on_connection(uv_stream_t *stream, int status)
{
    struct listener *listener = stream->data;
    struct hd_http_server *server = listener->server;

    if (status != 0) {
        hd_log(HD_LOG_WARN, "http", "cannot accept a connection: %s", uv_strerror(status));
        return;
    }
    if (server->hub.stats.connections_open < server->hub.config.limits.connections) {
        accept_one(listener);
        return;
    }
    listener->is_waiting = server->hub.is_crowded = true;
    (void)hd_hub_evict(&server->hub);
}

void hd_http_server_has_room(struct hd_hub *hub)
{
    struct hd_http_server *server = server_of(hub);

    hub->is_crowded = false;
    for (size_t i = 0; i < server->listener_count; i++) {
        struct listener *listener = server->listeners[i];

        if (listener->is_waiting && hub->stats.connections_open < hub->config.limits.connections)
            accept_one(listener);
        hub->is_crowded |= listener->is_waiting;
    }
}

void hd_http_server_released(struct hd_hub *hub)
{
    struct hd_http_server *server = server_of(hub);

    if (!hub->conns && !hub->is_crowded)
        (void)uv_timer_stop(&server->tick);
    close_when_empty(server);
}

/* Writing to a closed connection must be an error, not end the process. */
static void ignore_broken_pipes(void)
{
    struct sigaction action;

    if (sigaction(SIGPIPE, NULL, &action) == 0 && action.sa_handler == SIG_DFL)
        (void)signal(SIGPIPE, SIG_IGN);
}

static int check_config(const struct hd_http_server_config *config, struct heddle_error *fault)
{
    const struct hd_http_server_limits *l = &config->limits;

    if (!config->handler)
        return hd_error_set(fault, HD_EINVAL, "the server has no handler");
    if (l->head < 256 || l->head > (size_t)16 << 20 || l->headers == 0 || l->connections == 0 ||
        l->rate == 0 || l->stream_buffer < 64 || l->stream_buffer > (size_t)1 << 24 ||
        l->stream_kernel > (size_t)1 << 30 || l->pipelined > (size_t)1 << 30)
        return hd_error_set(fault, HD_EINVAL, "a size limit of the HTTP server is out of range");
    if (l->idle_ms <= 0 || l->head_ms <= 0 || l->body_ms <= 0 || l->write_ms <= 0 ||
        l->linger_ms <= 0)
        return hd_error_set(fault, HD_EINVAL, "a time limit of the HTTP server is not positive");
    return 0;
}

int hd_http_server_create(struct hd_http_server **out, uv_loop_t *loop,
                          const struct hd_http_server_config *config, struct heddle_error *fault)
{
    struct hd_http_server *server;
    int err;

    err = check_config(config, fault);
    if (err)
        return err;
    server = hd_calloc(1, sizeof(*server));
    if (!server)
        return HD_ENOMEM;
    server->read_buffer = hd_malloc(READ_BUFFER);
    if (!server->read_buffer) {
        hd_free(server);
        return HD_ENOMEM;
    }
    ignore_broken_pipes();
    hd_hub_init(&server->hub, config->tls ? &hd_http_wire_tls : &hd_http_wire_uv, config);
    server->loop = loop;
    /* None of these can fail. */
    (void)uv_check_init(loop, &server->check);
    (void)uv_idle_init(loop, &server->idle);
    (void)uv_timer_init(loop, &server->tick);
    server->check.data = server->idle.data = server->tick.data = server;
    server->open_handles = 3;
    (void)uv_check_start(&server->check, on_check);
    uv_unref((uv_handle_t *)&server->check);
    uv_unref((uv_handle_t *)&server->tick);
    *out = server;
    return 0;
}

static void on_listener_closed(uv_handle_t *handle)
{
    struct listener *listener = handle->data;
    struct hd_http_server *server = listener->server;

    hd_free(listener);
    server->open_listeners--;
    close_when_empty(server);
}

static void close_listener(struct listener *listener)
{
    uv_close((uv_handle_t *)&listener->tcp, on_listener_closed);
}

/* 0 or a libuv error. Adds the listener to the server when it listens. */
static int listen_on(struct hd_http_server *server, const struct sockaddr *address)
{
    struct listener *listener;
    int err;

    if (server->listener_count == MOST_LISTENERS)
        return UV_EMFILE;
    listener = hd_calloc(1, sizeof(*listener));
    if (!listener)
        return UV_ENOMEM;
    listener->server = server;
    err = uv_tcp_init(server->loop, &listener->tcp);
    if (err) {
        hd_free(listener);
        return err;
    }
    listener->tcp.data = listener;
    server->open_listeners++;
    err = uv_tcp_bind(&listener->tcp, address, 0);
    if (!err)
        err = uv_listen((uv_stream_t *)&listener->tcp, BACKLOG, on_connection);
    if (err) {
        close_listener(listener);
        return err;
    }
    server->listeners[server->listener_count++] = listener;
    return 0;
}

static void set_port(struct sockaddr_storage *address, int port)
{
    if (address->ss_family == AF_INET6)
        ((struct sockaddr_in6 *)address)->sin6_port = htons((uint16_t)port);
    else
        ((struct sockaddr_in *)address)->sin_port = htons((uint16_t)port);
}

static int port_of(const struct listener *listener)
{
    struct sockaddr_storage address = {0};
    int len = sizeof(address);

    if (uv_tcp_getsockname(&listener->tcp, (struct sockaddr *)&address, &len) != 0)
        return 0;
    return ntohs(address.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&address)->sin6_port
                                               : ((struct sockaddr_in *)&address)->sin_port);
}

/* An address family that this machine does not support. */
static bool is_missing(int err)
{
    return err == UV_EADDRNOTAVAIL || err == UV_EAFNOSUPPORT;
}

/*
 * All addresses with one port, or none. Unsupported address families are skipped if at least one
 * works.
 */
static int listen_on_all(struct hd_http_server *server, struct sockaddr_storage *addresses,
                         size_t count, int port)
{
    size_t before = server->listener_count;
    int err, missing = 0;

    for (size_t i = 0; i < count; i++) {
        set_port(&addresses[i], port);
        err = listen_on(server, (struct sockaddr *)&addresses[i]);
        if (err && !is_missing(err)) {
            while (server->listener_count > before)
                close_listener(server->listeners[--server->listener_count]);
            return err;
        }
        if (err)
            missing = err;
        else if (port == 0)
            port = port_of(server->listeners[server->listener_count - 1]);
    }
    return server->listener_count > before ? 0 : missing;
}

static int resolve(uv_loop_t *loop, const char *host, struct sockaddr_storage *out, size_t *count)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    uv_getaddrinfo_t req;
    int err;

    *count = 0;
    err = uv_getaddrinfo(loop, &req, NULL, host, NULL, &hints);
    if (err)
        return err;
    for (struct addrinfo *info = req.addrinfo; info && *count < MOST_ADDRESSES;
         info = info->ai_next) {
        if (info->ai_family == AF_INET || info->ai_family == AF_INET6) {
            memset(&out[*count], 0, sizeof(*out));
            memcpy(&out[(*count)++], info->ai_addr, info->ai_addrlen);
        }
    }
    uv_freeaddrinfo(req.addrinfo);
    return *count > 0 ? 0 : UV_EAI_NODATA;
}

int hd_http_server_listen(struct hd_http_server *server, const char *host, int port, bool or_next,
                          int *port_out, struct heddle_error *fault)
{
    struct sockaddr_storage addresses[MOST_ADDRESSES];
    int err, tried = port;
    size_t count;

    if (port < 0 || port > 65535)
        return hd_error_set(fault, HD_EINVAL, "%d is not a port (0 to 65535)", port);
    err = resolve(server->loop, host, addresses, &count);
    if (err)
        return hd_error_set(fault, HD_EINVAL, "unknown address '%s': %s", host, uv_strerror(err));
    err = listen_on_all(server, addresses, count, tried);
    /* Also retries port 0 when the chosen port was free for the first address only. */
    for (int i = 0; i < PORTS_TO_TRY && err == UV_EADDRINUSE && tried < 65535; i++) {
        if (port > 0 && !or_next)
            break;
        tried += port > 0;
        err = listen_on_all(server, addresses, count, tried);
    }
    if (err == UV_EADDRINUSE)
        return hd_error_set(fault, HD_EEXISTS, "port %d on %s is in use", port, host);
    if (err)
        return hd_error_set(fault, err == UV_EACCES ? HD_EACCESS : HD_EIO,
                            "cannot listen on %s port %d: %s", host, tried, uv_strerror(err));
    if (port_out)
        *port_out = port_of(server->listeners[server->listener_count - 1]);
    return 0;
}

const struct hd_http_server_stats *hd_http_server_stats(const struct hd_http_server *server)
{
    return &server->hub.stats;
}

bool hd_http_server_is_closing(const struct hd_http_server *server)
{
    return server->hub.is_closing;
}

void hd_http_server_close(struct hd_http_server *server, int64_t grace_ms, void (*done)(void *arg),
                          void *arg)
{
    int64_t deadline = (int64_t)uv_now(server->loop) + (grace_ms > 0 ? grace_ms : 0);
    struct hd_conn *conn, *next;

    server->done = done;
    server->arg = arg;
    if (server->hub.is_closing) {
        server->deadline_ms = least_ms(server->deadline_ms, deadline);
    } else {
        server->hub.is_closing = true;
        server->deadline_ms = deadline;
        while (server->listener_count > 0)
            close_listener(server->listeners[--server->listener_count]);
    }
    for (conn = server->hub.conns; conn; conn = next) {
        next = conn->all.next;
        hd_conn_finish(conn);
    }
    if (server->hub.conns)
        start_ticking(server, grace_ms > 0 ? tick_ms(server) : 0);
    close_when_empty(server);
}
