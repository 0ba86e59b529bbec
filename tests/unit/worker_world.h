/* Shared by the tests of workers' operations: a store, and requests made directly. */
#ifndef TESTS_UNIT_WORKER_WORLD_H
#define TESTS_UNIT_WORKER_WORLD_H

#include <heddle.h>
#include <string.h>

#include "app/app.h"
#include "base/arena.h"
#include "base/json.h"
#include "config/config.h"
#include "records/record.h"
#include "store/rows.h"
#include "tests/unit/check.h"
#include "value/val.h"
#include "worker/worker_internal.h"

struct world {
    struct hd_config config;
    struct hd_app app;
    struct hd_rt_scope scope;
    enum hd_rt_language language;

    /* The last request. */
    struct hd_json json;
    struct hd_arena arena;
    struct hd_rt_request request;
    struct hd_json answer;
};

static inline void forget(struct world *w)
{
    if (w->request.free_blobs)
        w->request.free_blobs(w->request.free_arg);
    hd_buf_fini(&w->request.head);
    hd_json_fini(&w->json);
    hd_json_fini(&w->answer);
    hd_arena_fini(&w->arena);
    w->json = w->answer = (struct hd_json){NULL};
    memset(&w->request, 0, sizeof(w->request));
}

static inline void world_init(struct world *w)
{
    struct heddle_error error;

    memset(w, 0, sizeof(*w));
    if (heddle_open(&w->app.store, "memory:", &error))
        fail_msg("%s", error.text);
    w->app.config = &w->config;
    w->scope = (struct hd_rt_scope){.principal = HD_S("ann"),
                                    .actor = HD_S("bob"),
                                    .thread = HD_S("t1"),
                                    .root = HD_S("assistant:x")};
}

static inline void world_fini(struct world *w)
{
    forget(w);
    heddle_close(w->app.store);
}

/* Executes an operation; its answer is in w->request, parsed in w->answer. */
static inline int ask_with(struct world *w, const char *op, const char *head,
                           const struct hd_slice *blobs, size_t blob_count)
{
    forget(w);
    hd_arena_init(&w->arena, (size_t)1 << 26);
    hd_buf_init(&w->request.head, (size_t)1 << 26);
    assert_err(hd_json_parse(&w->json, hd_slice_cstr(head), NULL), 0);
    w->request.language = w->language;
    w->request.scope = &w->scope;
    w->request.op = op;
    w->request.message = (struct hd_rt_message){
        .head = hd_slice_cstr(head), .blobs = blobs, .blob_count = blob_count};
    w->request.root = hd_json_root(&w->json);
    w->request.arena = &w->arena;
    w->request.ctx = &w->app;
    hd_worker_work(&w->request);
    if (w->request.fault.code == 0 && w->request.head.len > 0)
        assert_err(hd_json_parse(&w->answer, hd_buf_slice(&w->request.head), NULL), 0);
    return w->request.fault.code;
}

static inline int ask(struct world *w, const char *op, const char *head)
{
    return ask_with(w, op, head, NULL, 0);
}

/* The answer's head as text. */
static inline struct hd_slice said(const struct world *w)
{
    return hd_buf_slice(&w->request.head);
}

/* ---- setup of each test ----  */

static struct world w;

static inline int set_up(void **state)
{
    (void)state;
    world_init(&w);
    return 0;
}

static inline int tear_down(void **state)
{
    (void)state;
    world_fini(&w);
    return 0;
}

#endif
