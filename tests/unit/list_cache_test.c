/* The list cache: the next run on a thread neither reads nor writes its lists again, and never uses
 * one that differs from the stored value. */
#include "graph/engine/list_cache.h"

#include "graph/engine/engine.h"
#include "store/store.h"
#include "tests/unit/engine_world.h"

#define LISTS                                                                       \
    "{\"name\":\"lists\",\"state\":{\"a\":{\"reducer\":\"add\",\"type\":\"list\"}," \
    "\"b\":{\"reducer\":\"add\",\"type\":\"list\"}},"                               \
    "\"nodes\":{\"n\":{\"kind\":\"set\",\"update\":{\"a\":[\"%s\"]}}},"             \
    "\"edges\":[[\"__start__\",\"n\"],[\"n\",\"__end__\"]]}"

/* ---- the cache -------------------------------------------------------- */

static struct hd_list_cache_key key_of(const char *thread, const char *ns)
{
    return (struct hd_list_cache_key){hd_slice_cstr("me"), hd_slice_cstr(thread),
                                      hd_slice_cstr(ns)};
}

static size_t find(const struct hd_graph *graph, const char *channel)
{
    return hd_graph_find_channel(graph, hd_slice_cstr(channel));
}

/* A tracked list of `count` numbers, as a run leaves it. */
static void grow(struct hd_list_tracker *growing, int count)
{
    struct hd_val *list = hd_val_list();
    struct hd_growth *growth;

    for (int i = 0; i < count; i++)
        list = hd_val_append(list, hd_val_int(i));
    assert_int_equal(hd_list_tracker_save(growing, list, &growth), 0);
    assert_non_null(growth);
    hd_growth_destroy(growth);
    hd_val_unref(list);
}

static void keep(struct hd_list_cache *list_cache, const struct hd_graph *graph, const char *thread,
                 const char *ns, int count)
{
    struct hd_list_cache_key key = key_of(thread, ns);
    struct hd_list_tracker *growing = hd_calloc(graph->channel_count, sizeof(*growing));

    assert_non_null(growing);
    grow(&growing[find(graph, "b")], count);
    hd_list_cache_keep(list_cache, &key, graph, growing);
    for (size_t i = 0; i < graph->channel_count; i++)
        assert_null(growing[i].listing);
    hd_free(growing);
}

/* The number of cached elements; 0: not cached. */
static size_t take(struct hd_list_cache *list_cache, const struct hd_graph *graph,
                   const char *thread, const char *ns)
{
    struct hd_list_cache_key key = key_of(thread, ns);
    struct hd_list_tracker *growing = hd_calloc(graph->channel_count, sizeof(*growing));
    size_t count;

    assert_non_null(growing);
    hd_list_cache_take(list_cache, &key, graph, growing);
    count = hd_val_count(growing[find(graph, "b")].list);
    for (size_t i = 0; i < graph->channel_count; i++)
        hd_list_tracker_fini(&growing[i]);
    hd_free(growing);
    return count;
}

static void a_kept_list_is_taken_once(void **state)
{
    struct hd_list_cache *list_cache = hd_list_cache_create(1 << 20);
    struct hd_graph *graph = read_graph(LISTS);

    (void)state;
    assert_non_null(list_cache);
    assert_int_equal(take(list_cache, graph, "t", ""), 0);
    keep(list_cache, graph, "t", "", 20);
    keep(list_cache, graph, "t", "sub", 30);
    keep(list_cache, graph, "u", "", 40);
    keep(list_cache, graph, "u", "", 41); /* replaces the one before */
    assert_int_equal(take(list_cache, graph, "", "t"), 0);
    assert_int_equal(take(list_cache, graph, "t", ""), 20);
    assert_int_equal(take(list_cache, graph, "t", ""), 0);
    assert_int_equal(take(list_cache, graph, "u", ""), 41);
    assert_int_equal(take(list_cache, graph, "t", "sub"), 30);
    keep(list_cache, graph, "t", "", 20);
    hd_list_cache_destroy(list_cache);
    hd_graph_destroy(graph);
}

static void the_oldest_go_first(void **state)
{
    struct hd_list_cache *list_cache = hd_list_cache_create(40000);
    struct hd_graph *graph = read_graph(LISTS);
    char thread[16];
    int kept = 0;

    (void)state;
    assert_non_null(list_cache);
    for (int i = 0; i < 100; i++) {
        snprintf(thread, sizeof(thread), "t%d", i);
        keep(list_cache, graph, thread, "", 500);
    }
    for (int i = 99; i >= 0; i--) {
        snprintf(thread, sizeof(thread), "t%d", i);
        if (take(list_cache, graph, thread, "") == 0)
            break;
        kept++;
    }
    assert_in_range(kept, 2, 10);
    for (int i = 0; i < 100; i++) {
        snprintf(thread, sizeof(thread), "t%d", i);
        assert_int_equal(take(list_cache, graph, thread, ""), 0);
    }
    keep(list_cache, graph, "huge", "", 100000); /* more than the cache holds */
    assert_int_equal(take(list_cache, graph, "huge", ""), 0);
    hd_list_cache_destroy(list_cache);
    hd_graph_destroy(graph);
}

/* ---- runs ------------------------------------------------------------- */

static struct hd_graph *graph_that_adds(const char *text)
{
    char decl[sizeof(LISTS) + 1024];

    snprintf(decl, sizeof(decl), LISTS, text);
    return read_graph(decl);
}

static void run_on(struct world *w, struct hd_engine *engine, const struct hd_graph *graph,
                   const char *input)
{
    struct hd_val *val = json(input);
    struct hd_engine *own = w->engine;

    w->engine = engine;
    assert_int_equal(start(w, graph, val, NULL), 0);
    uv_run(&w->uv, UV_RUN_DEFAULT);
    assert_int_equal(w->ends, 1);
    assert_int_equal(w->status, HD_ENGINE_RUN_DONE);
    w->engine = own;
    hd_val_unref(val);
}

/* The thread's list has `count` elements, the last of which is `last`. */
static void assert_list(struct world *w, const struct hd_graph *graph, size_t count,
                        const char *last)
{
    struct hd_val *state = state_of(w, graph);
    const struct hd_val *list = hd_val_get(hd_val_get(state, HD_S("values")), HD_S("a"));

    assert_int_equal(hd_val_count(list), count);
    assert_true(hd_slice_eq(hd_val_get_string(hd_val_at(list, count - 1)), hd_slice_cstr(last)));
    hd_val_unref(state);
}

/* Two engines on one store: each continues the lists that the other wrote. */
static void others_may_write_in_between(struct world *w)
{
    static const char text[] = "some text that is long enough to be stored as chunks, and more";
    struct hd_graph *graph = graph_that_adds(text);
    struct hd_engine *other;
    size_t count = 0;

    assert_int_equal(hd_engine_create(w->store, &w->uv, w->engine->is_direct, &other), 0);
    for (int i = 0; i < 40; i++) {
        run_on(w, i % 7 < 4 ? w->engine : other, graph, "{\"a\":[\"input\"]}");
        count += 2;
        assert_list(w, graph, count, text);
    }
    hd_engine_destroy(other);
    uv_run(&w->uv, UV_RUN_DEFAULT);
    hd_graph_destroy(graph);
}

static void others_may_write_in_between_in_memory(void **state)
{
    struct world w;

    (void)state;
    open_world(&w, true);
    others_may_write_in_between(&w);
    close_world(&w);
}

static void others_may_write_in_between_on_disk(void **state)
{
    struct world w;

    (void)state;
    open_world(&w, false);
    others_may_write_in_between(&w);
    close_world(&w);
}

/* ---- reads of the database -------------------------------------------- */

/* Wraps the backend and counts the chunks that it returns. */
struct counter {
    struct hd_backend base;
    struct hd_backend *inner;
    struct hd_backend_ops ops;
    long chunks;
    const struct hd_query *queries;
    hd_row_fn fn;
    void *arg;
};

static int count_row(void *arg, size_t which, const struct hd_cell *cells)
{
    struct counter *counter = arg;

    counter->chunks += counter->queries[which].table == HD_CHUNKS;
    return counter->fn(counter->arg, which, cells);
}

static int read_counted(struct hd_backend *backend, const struct hd_query *queries, size_t count,
                        hd_row_fn fn, void *arg, struct heddle_error *fault)
{
    struct counter *counter = (struct counter *)backend;

    counter->queries = queries;
    counter->fn = fn;
    counter->arg = arg;
    return hd_backend_read(counter->inner, queries, count, count_row, counter, fault);
}

static int apply_through(struct hd_backend *backend, const struct hd_batch *batch, size_t *failed,
                         struct heddle_error *fault)
{
    return hd_backend_apply(((struct counter *)backend)->inner, batch, failed, fault);
}

static void the_second_run_reads_no_chunks(void **state)
{
    struct hd_graph *graph = graph_that_adds("some text that is long enough for chunks");
    struct counter counter = {.ops = {.read = read_counted, .apply = apply_through}};
    struct hd_store *store;
    struct hd_engine *fresh;
    struct world w;

    (void)state;
    open_world(&w, true);
    store = hd_store_of(w.store);
    counter.inner = store->backend;
    counter.base = (struct hd_backend){.ops = &counter.ops, .lanes = store->backend->lanes};
    store->backend = &counter.base;
    for (int i = 0; i < 100; i++)
        run_on(&w, w.engine, graph, "{\"a\":[\"input\"]}");
    counter.chunks = 0;
    run_on(&w, w.engine, graph, "{\"a\":[\"input\"]}");
    assert_int_equal(counter.chunks, 0);
    assert_int_equal(hd_engine_create(w.store, &w.uv, true, &fresh), 0);
    run_on(&w, fresh, graph, "{\"a\":[\"input\"]}");
    assert_true(counter.chunks > 0);
    counter.chunks = 0;
    run_on(&w, fresh, graph, "{\"a\":[\"input\"]}");
    assert_int_equal(counter.chunks, 0);
    store->backend = counter.inner;
    assert_list(&w, graph, 206, "some text that is long enough for chunks");
    hd_engine_destroy(fresh);
    uv_run(&w.uv, UV_RUN_DEFAULT);
    close_world(&w);
    hd_graph_destroy(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kept_list_is_taken_once),
        cmocka_unit_test(the_oldest_go_first),
        cmocka_unit_test(others_may_write_in_between_in_memory),
        cmocka_unit_test(others_may_write_in_between_on_disk),
        cmocka_unit_test(the_second_run_reads_no_chunks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
