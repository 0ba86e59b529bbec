/* The commit at the end of a run, when its thread was deleted meanwhile. */
#include "run/run_commit.h"

#include "graph/engine/origin.h"
#include "tests/unit/app_world.h"

static struct heddle_bytes bytes(const char *text)
{
    return (struct heddle_bytes){text, strlen(text)};
}

/* Another process that deletes the thread does not wait for the thread's runs here. */
static void a_thread_that_is_gone_gets_nothing_back(void **state)
{
    struct app_world *w = world_open("memory:", NULL);
    const struct heddle_thread thread = {.id = bytes("t")};
    const struct heddle_write asked = {
        .task_id = bytes("task"),
        .idx = -3,
        .value = {bytes("__interrupt__"), bytes("hd1"), bytes("\"yes?\"")}};
    const struct heddle_tuple tuple = {.id = bytes("1"), .writes = &asked, .write_count = 1};
    const struct heddle_key key = {.thread = thread, .id = bytes("1")};
    const struct hd_run_rec run = {
        .thread_id = HD_S("t"), .run_id = HD_S("r"), .guard = {.created_at = 1}};
    struct hd_run_commit outcome = {.run = &run, .has_begun = true, .is_rolled_back = true};
    struct hd_origin *origin = NULL;
    struct heddle_tuple *found;

    (void)state;
    assert_err(hd_origin_add(&origin, &tuple, hd_slice("", 0)), 0);
    origin->is_touched = true;
    outcome.origins = origin;
    assert_err(hd_run_commit_store(&w->app, &outcome, &w->fault), 0);
    assert_err(heddle_get(w->app.store, &key, &found, NULL), HEDDLE_ENOTFOUND);
    hd_origins_free(origin);
    world_close(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_that_is_gone_gets_nothing_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
