/* Shared by the tests of background tasks of the server: an app on a loop, with a store and one
 * graph. The functions are inline because not every test uses all of them. */
#ifndef TESTS_UNIT_APP_WORLD_H
#define TESTS_UNIT_APP_WORLD_H

#include <heddle.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <uv.h>

#include "app/app.h"
#include "app/defer.h"
#include "base/clock.h"
#include "base/log.h"
#include "config/config.h"
#include "graph/decl/graph.h"
#include "records/record.h"
#include "run/assistant_lookup.h"
#include "run/queue.h"
#include "server/open.h"
#include "store/rows.h"
#include "tests/unit/check.h"

#ifndef APP_GRAPH /* a test may have its own, which is called "line" */
#define APP_GRAPH                                                                     \
    "{\"name\":\"line\",\"state\":{\"log\":{\"reducer\":\"add\",\"type\":\"list\"}}," \
    "\"nodes\":{\"a\":{\"kind\":\"set\",\"update\":{\"log\":[\"a\"]}}},"              \
    "\"edges\":[[\"__start__\",\"a\"],[\"a\",\"__end__\"]]}"
#endif

struct app_world {
    uv_loop_t loop;
    struct hd_config config;
    struct hd_app_graph graph;
    struct hd_app app;
    char path[64];
    struct hd_arena arena;
    struct heddle_error fault;
    bool is_drained;
};

static inline void world_silence(void *arg, enum hd_log_level level, const char *line)
{
    (void)arg;
    (void)level;
    (void)line;
}

/* `store` NULL: a separate SQLite file. `option` may be NULL. */
static inline struct app_world *world_open(const char *store, const char *option)
{
    struct app_world *w = calloc(1, sizeof(*w));
    char url[128], name[] = "serve", flag[] = "--store", empty[] = "--metrics";
    char *argv[] = {name, flag, url, empty};
    char given[64];
    struct hd_config_source source = {.argc = 4, .argv = argv};
    struct hd_graph_error error;

    assert_non_null(w);
    hd_log_set_sink(world_silence, NULL);
    hd_arena_init(&w->arena, (size_t)1 << 26);
    snprintf(w->path, sizeof(w->path), "/tmp/app-test-%d.db", (int)getpid());
    (void)unlink(w->path);
    if (store)
        snprintf(url, sizeof(url), "%s", store);
    else
        snprintf(url, sizeof(url), "sqlite:%s?durability=relaxed", w->path);
    if (option) {
        snprintf(given, sizeof(given), "%s", option);
        argv[3] = given;
    }
    if (hd_config_load(&w->config, &source, &w->fault))
        fail_msg("%s", w->fault.text);
    assert_int_equal(uv_loop_init(&w->loop), 0);
    w->graph.id = HD_S("line");
    assert_err(hd_system_assistant_id(w->graph.id, w->graph.assistant_id), 0);
    if (hd_graph_read(hd_slice_cstr(APP_GRAPH), &w->graph.graph, &error))
        fail_msg("%s: %s", error.path, error.text);
    w->app.loop = &w->loop;
    w->app.config = &w->config;
    w->app.graphs = &w->graph;
    w->app.graph_count = 1;
    if (hd_server_open(&w->app, &w->fault))
        fail_msg("%s", w->fault.text);
    /* Waits for the deferred work of the start. */
    while (hd_defer_count(w->app.defer) > 0)
        uv_run(&w->loop, UV_RUN_ONCE);
    return w;
}

static inline void world_drained(void *ctx)
{
    struct app_world *w = ctx;

    w->is_drained = true;
    hd_server_close(&w->app);
}

static inline void world_close(struct app_world *w)
{
    hd_clock_set_for_test(0);
    hd_server_drain(&w->app, world_drained, w);
    assert_false(w->is_drained);
    uv_run(&w->loop, UV_RUN_DEFAULT);
    assert_true(w->is_drained);
    hd_server_close_store(&w->app);
    uv_run(&w->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&w->loop), 0);
    hd_graph_destroy(w->graph.graph);
    hd_config_fini(&w->config);
    hd_arena_fini(&w->arena);
    (void)unlink(w->path);
    hd_log_set_sink(NULL, NULL);
    free(w);
}

/* Applies and ends the batch. */
static inline int world_apply(struct app_world *w, struct hd_batch_builder *builder)
{
    struct hd_batch batch = hd_batch_view(builder);
    int err = hd_rows_apply(w->app.store, HD_S(":test"), &batch, NULL, NULL);

    hd_batch_fini(builder);
    return err;
}

#define APPLY(w, call)                         \
    do {                                       \
        struct hd_batch_builder batch;         \
                                               \
        hd_batch_init(&batch);                 \
        assert_err(call, 0);                   \
        assert_err(world_apply(w, &batch), 0); \
    } while (0)

#define NOBODY HD_S("")

#endif
