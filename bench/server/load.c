/*
 * The client of bench/server: sends requests over a number of connections and prints the response
 * times as one line of JSON.
 *
 *   bench-load PORT CONNECTIONS SECONDS [--repeat] [--expect TEXT] [--headers FILE] <REQUESTS
 *
 * A line of REQUESTS is `METHOD PATH BODY`. They are sent in order, one at a time on each
 * keep-alive connection; with --repeat they start again after the last. After SECONDS no request is
 * sent. A response counts when its status is 2xx and its body contains TEXT. The lines of FILE are
 * headers: each request has the next one, and the first follows the last.
 *
 * One thread and epoll: a request takes a few microseconds, which leaves the rest of a small
 * machine to the server. The CPU time of the client is printed as well (client_cpu_s).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <llhttp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"

#define MAX_CONNECTIONS 1024
#define MAX_BODY ((size_t)256 * 1024 * 1024)
#define READ_SIZE ((size_t)256 * 1024)
#define PATIENCE_MS 60000 /* without data for this time the server hangs */

struct request {
    char *method;
    char *path;
    char *body;
};

struct samples {
    double *at;
    size_t count;
    size_t capacity;
};

struct load {
    int epoll;
    uint16_t port;
    double stop_at;
    bool repeats;
    const char *expected;

    struct request *requests;
    size_t count;
    size_t next;
    size_t under_way;
    char **headers;
    size_t header_count;
    size_t next_header;

    struct samples whole; /* seconds until the end of the response */
    struct samples first; /* seconds until its first event, of streams */
    size_t failed;
    size_t bytes;
};

struct conn {
    struct load *load;
    int fd;
    llhttp_t parser;
    struct hd_buf out;
    struct hd_buf body;
    double began;
    bool has_event;
    bool is_done;
};

static double now(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static _Noreturn void die(const char *what, const char *why)
{
    (void)fprintf(stderr, "bench-load: %s: %s\n", what, why);
    exit(1);
}

static void must(int err)
{
    if (err)
        die("memory", "exhausted");
}

static void *need(void *ptr)
{
    must(!ptr);
    return ptr;
}

static void keep(struct samples *samples, double value)
{
    if (samples->count == samples->capacity) {
        samples->capacity = samples->capacity ? samples->capacity * 2 : 1024;
        samples->at = need(hd_realloc(samples->at, samples->capacity * sizeof(*samples->at)));
    }
    samples->at[samples->count++] = value;
}

/* ---- requests ----------------------------------------------------------- */

static char *copy_of(const char *text, size_t len)
{
    char *copy = need(hd_malloc(len + 1));

    memcpy(copy, text, len);
    copy[len] = '\0';
    return copy;
}

static void read_requests(struct load *load, FILE *file)
{
    char *line = NULL;
    size_t size = 0, capacity = 0;
    ssize_t len;

    while ((len = getline(&line, &size, file)) > 0) {
        if (line[len - 1] == '\n')
            line[--len] = '\0';
        char *path = strchr(line, ' ');
        char *body = path ? strchr(path + 1, ' ') : NULL;
        if (!body)
            die("a request", "is not METHOD PATH BODY");
        if (load->count == capacity) {
            capacity = capacity ? capacity * 2 : 256;
            load->requests = need(hd_realloc(load->requests, capacity * sizeof(*load->requests)));
        }
        struct request *r = &load->requests[load->count++];
        r->method = copy_of(line, (size_t)(path - line));
        r->path = copy_of(path + 1, (size_t)(body - path - 1));
        r->body = copy_of(body + 1, strlen(body + 1));
    }
    free(line);
    if (load->count == 0)
        die("requests", "none");
}

static void read_headers(struct load *load, const char *path)
{
    FILE *file = fopen(path, "r");
    char *line = NULL;
    size_t size = 0;
    ssize_t len;

    if (!file)
        die(path, strerror(errno));
    while ((len = getline(&line, &size, file)) > 0) {
        if (line[len - 1] == '\n')
            len--;
        load->headers =
            need(hd_realloc(load->headers, (load->header_count + 1) * sizeof(*load->headers)));
        load->headers[load->header_count++] = copy_of(line, (size_t)len);
    }
    free(line);
    (void)fclose(file);
}

static void close_conn(struct conn *c)
{
    if (c->fd >= 0)
        (void)close(c->fd);
    c->fd = -1;
}

static void open_conn(struct conn *c)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(c->load->port)};
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
    int on = 1;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&address, sizeof(address)) != 0)
        die("connect", strerror(errno));
    (void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (epoll_ctl(c->load->epoll, EPOLL_CTL_ADD, c->fd, &event) != 0)
        die("epoll_ctl", strerror(errno));
}

/* Blocking writes are fine: requests are small enough for the socket's buffer. */
static void send_request(struct conn *c, const struct request *r)
{
    size_t len = strlen(r->body);

    if (c->fd < 0)
        open_conn(c);
    hd_buf_reset(&c->out);
    must(hd_buf_printf(&c->out, "%s %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n", r->method, r->path,
                       c->load->port));
    if (len > 0)
        must(hd_buf_printf(&c->out, "Content-Type: application/json\r\nContent-Length: %zu\r\n",
                           len));
    if (c->load->header_count > 0)
        must(hd_buf_printf(&c->out, "%s\r\n",
                           c->load->headers[c->load->next_header++ % c->load->header_count]));
    must(hd_buf_append(&c->out, "\r\n", 2));
    must(hd_buf_append(&c->out, r->body, len));
    hd_buf_reset(&c->body);
    c->is_done = c->has_event = false;
    c->began = now(CLOCK_MONOTONIC);

    struct hd_slice rest = hd_buf_slice(&c->out);
    while (rest.len > 0) {
        ssize_t sent = send(c->fd, rest.ptr, rest.len, MSG_NOSIGNAL);
        if (sent < 0)
            die("send", strerror(errno));
        rest.ptr += sent;
        rest.len -= (size_t)sent;
    }
    c->load->under_way++;
}

static void send_next(struct conn *c)
{
    struct load *load = c->load;

    if (load->next == load->count && load->repeats)
        load->next = 0;
    if (load->next < load->count && now(CLOCK_MONOTONIC) < load->stop_at)
        send_request(c, &load->requests[load->next++]);
}

/* ---- responses ---------------------------------------------------------- */

static bool contains(struct hd_slice text, const char *part)
{
    return memmem(text.ptr, text.len, part, strlen(part)) != NULL;
}

static int on_body(llhttp_t *parser, const char *bytes, size_t len)
{
    struct conn *c = parser->data;

    must(hd_buf_append(&c->body, bytes, len));
    if (!c->has_event && contains(hd_buf_slice(&c->body), "event: ")) {
        c->has_event = true;
        keep(&c->load->first, now(CLOCK_MONOTONIC) - c->began);
    }
    return 0;
}

static int on_complete(llhttp_t *parser)
{
    struct conn *c = parser->data;
    struct load *load = c->load;
    bool good = parser->status_code >= 200 && parser->status_code < 300;

    if (good && load->expected)
        good = contains(hd_buf_slice(&c->body), load->expected);
    if (good) {
        keep(&load->whole, now(CLOCK_MONOTONIC) - c->began);
    } else if (load->failed++ == 0) {
        struct hd_slice body = hd_buf_slice(&c->body);
        (void)fprintf(stderr, "bench-load: status %d: %.*s\n", parser->status_code,
                      (int)(body.len < 400 ? body.len : 400), (const char *)body.ptr);
    }
    load->bytes += hd_buf_slice(&c->body).len;
    load->under_way--;
    c->is_done = true;
    if (!llhttp_should_keep_alive(parser))
        close_conn(c);
    return 0;
}

static const llhttp_settings_t settings = {.on_body = on_body, .on_message_complete = on_complete};

static void read_some(struct conn *c)
{
    static char bytes[READ_SIZE];
    ssize_t got = recv(c->fd, bytes, sizeof(bytes), 0);

    if (got <= 0) {
        if (!c->is_done)
            die("an answer", got == 0 ? "ended too early" : strerror(errno));
        close_conn(c);
        return;
    }
    enum llhttp_errno err = llhttp_execute(&c->parser, bytes, (size_t)got);
    if (err != HPE_OK)
        die("an answer", llhttp_errno_name(err));
    if (c->is_done) {
        if (c->fd < 0)
            llhttp_reset(&c->parser);
        send_next(c);
    }
}

static void work(struct load *load, struct conn *conns, size_t count)
{
    struct epoll_event events[64];

    for (size_t i = 0; i < count; i++)
        send_next(&conns[i]);
    while (load->under_way > 0) {
        int ready = epoll_wait(load->epoll, events, 64, PATIENCE_MS);
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0)
            die("the server", ready == 0 ? "does not answer" : strerror(errno));
        for (int i = 0; i < ready; i++)
            read_some(events[i].data.ptr);
    }
}

/* ---- figures ------------------------------------------------------------ */

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;

    return (left > right) - (left < right);
}

static double at_share(const struct samples *samples, double share)
{
    if (samples->count == 0)
        return 0;
    return samples->at[(size_t)((double)(samples->count - 1) * share)] * 1e3;
}

static void tell(struct load *load, double elapsed)
{
    double per_s = elapsed > 0 ? (double)load->whole.count / elapsed : 0;

    qsort(load->whole.at, load->whole.count, sizeof(double), compare);
    qsort(load->first.at, load->first.count, sizeof(double), compare);
    printf("{\"requests\": %zu, \"failed\": %zu, \"seconds\": %.3f, \"per_s\": %.2f, "
           "\"p50_ms\": %.3f, \"p99_ms\": %.3f, \"first_p50_ms\": %.3f, \"first_p99_ms\": %.3f, "
           "\"bytes\": %zu, \"client_cpu_s\": %.3f}\n",
           load->whole.count, load->failed, elapsed, per_s, at_share(&load->whole, 0.5),
           at_share(&load->whole, 0.99), at_share(&load->first, 0.5), at_share(&load->first, 0.99),
           load->bytes, now(CLOCK_PROCESS_CPUTIME_ID));
}

static unsigned long number(const char *text, unsigned long max)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);

    if (*end != '\0' || value == 0 || value > max)
        die(text, "is not a number that makes sense here");
    return value;
}

int main(int argc, char **argv)
{
    struct load load = {0};
    static struct conn conns[MAX_CONNECTIONS];

    if (argc < 4)
        die("usage", "bench-load PORT CONNECTIONS SECONDS [--repeat] [--expect TEXT] "
                     "[--headers FILE] <REQUESTS");
    load.port = (uint16_t)number(argv[1], UINT16_MAX);
    size_t count = number(argv[2], MAX_CONNECTIONS);
    unsigned long seconds = number(argv[3], 3600);
    for (int i = 4; i < argc; i++) {
        if (strcmp(argv[i], "--repeat") == 0)
            load.repeats = true;
        else if (strcmp(argv[i], "--expect") == 0 && i + 1 < argc)
            load.expected = argv[++i];
        else if (strcmp(argv[i], "--headers") == 0 && i + 1 < argc)
            read_headers(&load, argv[++i]);
        else
            die(argv[i], "unknown");
    }
    read_requests(&load, stdin);
    load.epoll = epoll_create1(EPOLL_CLOEXEC);
    if (load.epoll < 0)
        die("epoll", strerror(errno));
    for (size_t i = 0; i < count; i++) {
        conns[i] = (struct conn){.load = &load, .fd = -1};
        hd_buf_init(&conns[i].out, MAX_BODY);
        hd_buf_init(&conns[i].body, MAX_BODY);
        llhttp_init(&conns[i].parser, HTTP_RESPONSE, &settings);
        conns[i].parser.data = &conns[i];
        open_conn(&conns[i]);
    }
    double began = now(CLOCK_MONOTONIC);
    load.stop_at = began + (double)seconds;
    work(&load, conns, count);
    tell(&load, now(CLOCK_MONOTONIC) - began);
    return load.failed == 0 ? 0 : 1;
}
