/* Messages to a worker: when their memory is released. */
#include "runtime/link.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"
#include "tests/unit/check.h"

#define LARGE ((size_t)4 << 20) /* more than the socket takes at once */

struct peer {
    uv_loop_t loop;
    uv_pipe_t listener;
    struct hd_link *link;
    char path[64];
    int fd; /* the worker's end */
    bool is_sending;
    int releases, closes;
};

static bool on_frame(void *ctx, const struct hd_frame *frame)
{
    (void)ctx;
    (void)frame;
    return true;
}

static void on_end(void *ctx, const char *why)
{
    (void)ctx;
    (void)why;
}

static void on_sent(void *ctx)
{
    (void)ctx;
}

static const struct hd_link_events events = {on_frame, on_end, on_sent};

static void on_closed(void *arg)
{
    ((struct peer *)arg)->closes++;
}

static void on_release(void *arg)
{
    struct peer *peer = arg;

    assert_false(peer->is_sending);
    peer->releases++;
}

static void on_connection(uv_stream_t *listener, int status)
{
    struct peer *peer = listener->data;

    assert_int_equal(status, 0);
    assert_err(hd_link_accept(listener, &events, peer, on_closed, peer, &peer->link), 0);
}

static void open_peer(struct peer *peer)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    *peer = (struct peer){.fd = socket(AF_UNIX, SOCK_STREAM, 0)};
    snprintf(peer->path, sizeof(peer->path), "/tmp/rt-link-test-%d", (int)getpid());
    memcpy(address.sun_path, peer->path, strlen(peer->path) + 1);
    (void)unlink(peer->path);
    assert_int_equal(uv_loop_init(&peer->loop), 0);
    assert_int_equal(uv_pipe_init(&peer->loop, &peer->listener, 0), 0);
    peer->listener.data = peer;
    assert_int_equal(uv_pipe_bind(&peer->listener, peer->path), 0);
    assert_int_equal(uv_listen((uv_stream_t *)&peer->listener, 1, on_connection), 0);
    assert_int_equal(connect(peer->fd, (struct sockaddr *)&address, sizeof(address)), 0);
    while (!peer->link)
        uv_run(&peer->loop, UV_RUN_ONCE);
}

static void close_peer(struct peer *peer)
{
    hd_link_close(peer->link);
    uv_close((uv_handle_t *)&peer->listener, NULL);
    uv_run(&peer->loop, UV_RUN_DEFAULT);
    assert_int_equal(peer->closes, 1);
    assert_int_equal(uv_loop_close(&peer->loop), 0);
    (void)close(peer->fd);
    (void)unlink(peer->path);
}

static int send_bytes(struct peer *peer, char *bytes, size_t len)
{
    const struct hd_slice blob = hd_slice(bytes, len);
    const struct hd_rt_message message = {.head = HD_S("{}"), .blobs = &blob, .blob_count = 1};
    int err;

    peer->is_sending = true;
    err = hd_link_send(peer->link, HD_FRAME_ANSWER, 2, &message, on_release, peer);
    peer->is_sending = false;
    return err;
}

static void a_small_message_is_copied(void **state)
{
    struct peer peer;
    char bytes[100] = {0};

    (void)state;
    open_peer(&peer);
    assert_int_equal(send_bytes(&peer, bytes, sizeof(bytes)), HD_READY);
    close_peer(&peer);
    assert_int_equal(peer.releases, 0);
}

static void a_large_message_is_borrowed_until_it_is_written(void **state)
{
    char *bytes = calloc(1, LARGE), got[65536];
    struct peer peer;

    (void)state;
    assert_non_null(bytes);
    open_peer(&peer);
    assert_int_equal(send_bytes(&peer, bytes, LARGE), 0);
    assert_int_equal(peer.releases, 0);
    while (peer.releases == 0) {
        (void)recv(peer.fd, got, sizeof(got), MSG_DONTWAIT);
        uv_run(&peer.loop, UV_RUN_NOWAIT);
    }
    close_peer(&peer);
    assert_int_equal(peer.releases, 1);
    free(bytes);
}

static void after_an_error_nothing_is_released(void **state)
{
    char *bytes = calloc(1, LARGE);
    struct peer peer;

    (void)state;
    assert_non_null(bytes);
    open_peer(&peer);
    hd_link_close(peer.link);
    assert_int_equal(send_bytes(&peer, bytes, LARGE), HD_ECLOSED);
    assert_int_equal(send_bytes(&peer, bytes, 1), HD_ECLOSED);
    close_peer(&peer);
    assert_int_equal(peer.releases, 0);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_small_message_is_copied),
        cmocka_unit_test(a_large_message_is_borrowed_until_it_is_written),
        cmocka_unit_test(after_an_error_nothing_is_released),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
