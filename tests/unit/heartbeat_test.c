#include "api/heartbeat.h"

#include "tests/unit/check.h"

#define INTERVAL 20
#define ENOUGH 3

struct world {
    uv_loop_t loop;
    uv_timer_t sender; /* sends on the busy connection, more often than the interval */
    struct hd_heartbeats *beats;
    struct hd_heartbeat busy, idle, brief;
    int busy_count, idle_count, brief_count;
};

static void on_busy(void *ctx)
{
    struct world *world = ctx;

    world->busy_count++;
}

static void on_idle(void *ctx)
{
    struct world *world = ctx;

    if (++world->idle_count == ENOUGH)
        uv_stop(&world->loop);
}

static void on_brief(void *ctx)
{
    struct world *world = ctx;

    world->brief_count++;
    hd_heartbeat_stop(&world->brief);
}

/* Both timers may be late, but this one is always due before the busy connection's heartbeat. */
static void on_send(uv_timer_t *timer)
{
    struct world *world = timer->data;

    hd_heartbeat_touch(&world->busy);
}

static void open_world(struct world *world, uint64_t interval_ms)
{
    *world = (struct world){0};
    assert_int_equal(uv_loop_init(&world->loop), 0);
    assert_err(hd_heartbeats_create(&world->loop, interval_ms, &world->beats), 0);
    assert_int_equal(uv_timer_init(&world->loop, &world->sender), 0);
    world->sender.data = world;
    hd_heartbeat_start(world->beats, &world->busy, on_busy, world);
    hd_heartbeat_start(world->beats, &world->brief, on_brief, world);
    hd_heartbeat_start(world->beats, &world->idle, on_idle, world);
}

static void close_world(struct world *world)
{
    hd_heartbeat_stop(&world->busy);
    hd_heartbeat_stop(&world->idle);
    hd_heartbeats_destroy(world->beats);
    uv_close((uv_handle_t *)&world->sender, NULL);
    uv_run(&world->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&world->loop), 0);
}

static void only_connections_without_a_send_have_heartbeats(void **state)
{
    struct world world;

    (void)state;
    open_world(&world, INTERVAL);
    uv_timer_start(&world.sender, on_send, INTERVAL / 4, INTERVAL / 4);
    uv_run(&world.loop, UV_RUN_DEFAULT);
    assert_int_equal(world.idle_count, ENOUGH);
    assert_int_equal(world.brief_count, 1);
    assert_int_equal(world.busy_count, 0);
    close_world(&world);
}

static void on_touch(void *ctx)
{
    struct world *world = ctx;

    world->busy_count++;
    hd_heartbeat_touch(&world->busy);
}

static void firing_all_fires_each_once(void **state)
{
    struct world world;

    (void)state;
    open_world(&world, 0);
    world.busy.fn = on_touch;
    hd_heartbeats_fire(world.beats);
    assert_int_equal(world.busy_count, 1);
    assert_int_equal(world.idle_count, 1);
    assert_int_equal(world.brief_count, 1);
    hd_heartbeats_fire(world.beats);
    assert_int_equal(world.busy_count, 2);
    assert_int_equal(world.idle_count, 2);
    assert_int_equal(world.brief_count, 1);
    close_world(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_connections_without_a_send_have_heartbeats),
        cmocka_unit_test(firing_all_fires_each_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
