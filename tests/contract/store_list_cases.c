/* Listing: the selection, its order, its limit, and the contents of each checkpoint. */
#include "tests/contract/store_cases.h"

static const struct heddle_bytes *b(struct heddle_bytes *slot, const char *s)
{
    *slot = text(s);
    return slot;
}

/* Three threads, two namespaces, ids that interleave. */
static void fill(struct fixture *f)
{
    PUT(f->store, .thread = "t", .id = "1", .metadata = "{\"step\":1,\"source\":\"input\"}");
    PUT(f->store, .thread = "t", .id = "5", .metadata = "{\"step\":2,\"source\":\"loop\"}");
    PUT(f->store, .thread = "t", .ns = "n", .id = "3", .metadata = "{\"step\":1}");
    PUT(f->store, .thread = "u", .id = "2", .metadata = "{\"step\":2}");
    PUT(f->store, .thread = "u", .id = "4", .metadata = "{\"step\":3}");
    PUT(f->store, .thread = "u", .ns = "n", .id = "5", .metadata = "{}");
    PUT(f->store, .principal = "p", .thread = "t", .id = "9", .metadata = "{\"step\":1}");
}

static void everything_of_a_principal_is_listed_newest_first(struct fixture *f)
{
    assert_list(f->store, "");
    fill(f);
    assert_list(f->store, "t//5 u/n/5 u//4 t/n/3 u//2 t//1");
    reopen(f);
    assert_list(f->store, "t//5 u/n/5 u//4 t/n/3 u//2 t//1");
    assert_query(f->store, "t//9", .principal = text("p"));
    assert_query(f->store, "", .principal = text("q"));
}

static void a_namespace_given_differs_from_none(struct fixture *f)
{
    struct heddle_bytes t, ns;

    fill(f);
    assert_query(f->store, "t//5 t/n/3 t//1", .thread = b(&t, "t"));
    assert_query(f->store, "t//5 t//1", .thread = b(&t, "t"), .ns = b(&ns, ""));
    assert_query(f->store, "t/n/3", .thread = b(&t, "t"), .ns = b(&ns, "n"));
    assert_query(f->store, "", .thread = b(&t, "t"), .ns = b(&ns, "m"));
    assert_query(f->store, "u/n/5 t/n/3", .ns = b(&ns, "n"));
    assert_query(f->store, "t//5 u//4 u//2 t//1", .ns = b(&ns, ""));
    assert_query(f->store, "", .thread = b(&t, "unknown"));
    assert_query(f->store, "", .thread = b(&t, ""));
}

static void one_checkpoint_can_be_asked_for(struct fixture *f)
{
    struct heddle_bytes t, ns, id;

    fill(f);
    assert_query(f->store, "t//5", .thread = b(&t, "t"), .ns = b(&ns, ""), .id = b(&id, "5"));
    assert_query(f->store, "t//5", .thread = b(&t, "t"), .id = b(&id, "5"));
    assert_query(f->store, "t//5 u/n/5", .id = b(&id, "5"));
    assert_query(f->store, "", .id = b(&id, "7"));
}

static void before_is_strict_and_crosses_threads(struct fixture *f)
{
    struct heddle_bytes t, ns, before, id;

    fill(f);
    assert_query(f->store, "t/n/3 u//2 t//1", .before = b(&before, "4"));
    assert_query(f->store, "t//1", .thread = b(&t, "t"), .ns = b(&ns, ""),
                 .before = b(&before, "5"));
    assert_query(f->store, "t//5 t//1", .thread = b(&t, "t"), .ns = b(&ns, ""),
                 .before = b(&before, "50"));
    assert_query(f->store, "t/n/3 t//1", .thread = b(&t, "t"), .before = b(&before, "5"));
    assert_query(f->store, "", .before = b(&before, "1"));
    assert_query(f->store, "", .before = b(&before, ""));
    assert_query(f->store, "", .thread = b(&t, "t"), .ns = b(&ns, ""), .id = b(&id, "5"),
                 .before = b(&before, "5"));
    assert_query(f->store, "t//5", .thread = b(&t, "t"), .ns = b(&ns, ""), .id = b(&id, "5"),
                 .before = b(&before, "6"));
}

static void the_limit_counts_what_is_left(struct fixture *f)
{
    struct heddle_bytes t, ns, before;

    fill(f);
    assert_limited(f->store, 0, "", .flags = 0);
    assert_limited(f->store, 1, "t//5", .flags = 0);
    assert_limited(f->store, 3, "t//5 u/n/5 u//4", .flags = 0);
    assert_limited(f->store, 100, "t//5 u/n/5 u//4 t/n/3 u//2 t//1", .flags = 0);
    assert_limited(f->store, INT64_MIN, "t//5 u/n/5 u//4 t/n/3 u//2 t//1", .flags = 0);
    assert_limited(f->store, 1, "t//5", .thread = b(&t, "t"), .ns = b(&ns, ""));
    assert_limited(f->store, 0, "", .thread = b(&t, "t"), .ns = b(&ns, ""));
    assert_limited(f->store, 1, "t/n/3", .before = b(&before, "4"));
    /* After the filter. */
    assert_limited(f->store, 1, "t/n/3", .filter = text("{\"step\":1}"));
    assert_limited(f->store, 1, "t//1", .thread = b(&t, "t"), .ns = b(&ns, ""),
                   .filter = text("{\"step\":1}"));
}

/* 1, 2 and 8 with a clock that is ahead; then the clock steps back, and 3, 4 and 5 follow on 8. */
static void fill_after_a_step_back(struct fixture *f)
{
    PUT(f->store, .thread = "t", .id = "1");
    PUT(f->store, .thread = "t", .id = "2", .parent = "1");
    PUT(f->store, .thread = "t", .id = "8", .parent = "2");
    PUT(f->store, .thread = "t", .id = "3", .parent = "8");
    PUT(f->store, .thread = "t", .id = "4", .parent = "3");
    PUT(f->store, .thread = "t", .id = "5", .parent = "4", .metadata = "{\"step\":1}");
}

static void a_child_is_newer_than_its_parent_whatever_the_clock_said(struct fixture *f)
{
    struct heddle_bytes t, ns;

    fill_after_a_step_back(f);
    assert_get(f->store, "t", "", "", "5<4");
    assert_query(f->store, "t//5 t//4 t//3 t//8 t//2 t//1", .thread = b(&t, "t"), .ns = b(&ns, ""));
    assert_list(f->store, "t//5 t//4 t//3 t//8 t//2 t//1");
    assert_limited(f->store, 1, "t//5", .thread = b(&t, "t"), .ns = b(&ns, ""));
    assert_limited(f->store, 4, "t//5 t//4 t//3 t//8", .thread = b(&t, "t"), .ns = b(&ns, ""));
    reopen(f);
    assert_get(f->store, "t", "", "", "5<4");
    /* The clock has caught up. */
    PUT(f->store, .thread = "t", .id = "9", .parent = "5");
    assert_get(f->store, "t", "", "", "9<5");
    assert_query(f->store, "t//9 t//5 t//4 t//3 t//8 t//2 t//1", .thread = b(&t, "t"),
                 .ns = b(&ns, ""));
}

static void before_follows_the_order_of_a_namespace(struct fixture *f)
{
    struct heddle_bytes t, ns, before;

    fill_after_a_step_back(f);
    PUT(f->store, .thread = "t", .id = "9", .parent = "5");
    assert_query(f->store, "t//8 t//2 t//1", .thread = b(&t, "t"), .ns = b(&ns, ""),
                 .before = b(&before, "3"));
    assert_query(f->store, "t//2 t//1", .thread = b(&t, "t"), .ns = b(&ns, ""),
                 .before = b(&before, "8"));
    assert_query(f->store, "t//5 t//4 t//3 t//8 t//2 t//1", .thread = b(&t, "t"), .ns = b(&ns, ""),
                 .before = b(&before, "9"));
    assert_limited(f->store, 2, "t//4 t//3", .thread = b(&t, "t"), .ns = b(&ns, ""),
                   .before = b(&before, "5"));
    assert_query(f->store, "t//1", .thread = b(&t, "t"), .ns = b(&ns, ""),
                 .before = b(&before, "2"));
    assert_query(f->store, "t//2 t//1", .thread = b(&t, "t"), .ns = b(&ns, ""),
                 .before = b(&before, "6")); /* which is not there: its id alone counts */
    assert_query(f->store, "t//5", .thread = b(&t, "t"), .ns = b(&ns, ""),
                 .filter = text("{\"step\":1}"), .before = b(&before, "9"));
}

static void what_a_stray_followed_may_be_gone(struct fixture *f)
{
    struct heddle_bytes run = text("r");

    PUT(f->store, .thread = "t", .id = "1");
    PUT(f->store, .thread = "t", .id = "8", .parent = "1", .metadata = "{\"run_id\":\"r\"}");
    PUT(f->store, .thread = "t", .id = "3", .parent = "8");
    PUT(f->store, .thread = "t", .id = "5", .parent = "1");
    assert_get(f->store, "t", "", "", "3<8");
    assert_ok(heddle_delete_runs(f->store, text(""), &run, 1, NULL));
    assert_get(f->store, "t", "", "", "3<8");
    assert_list(f->store, "t//3 t//5 t//1");
}

static void the_filter_asks_for_containment(struct fixture *f)
{
    PUT(f->store, .thread = "t", .id = "1",
        .metadata = "{\"a\":1,\"s\":\"x\",\"o\":{\"p\":1,\"q\":[1,2]},\"n\":null,\"b\":true}");
    PUT(f->store, .thread = "t", .id = "2", .metadata = "{\"a\":1.0,\"s\":\"y\",\"o\":{\"p\":2}}");
    PUT(f->store, .thread = "t", .id = "3", .metadata = "{\"step\":-2}");
    PUT(f->store, .thread = "t", .id = "4", .metadata = "{\"\\u0061\":\"1\"}");
    assert_query(f->store, "t//4 t//3 t//2 t//1", .filter = text("{}"));
    assert_query(f->store, "t//2 t//1", .filter = text("{\"a\":1}"));
    assert_query(f->store, "t//4", .filter = text("{\"a\":\"1\"}"));
    assert_query(f->store, "t//1", .filter = text("{\"a\":1,\"s\":\"x\"}"));
    assert_query(f->store, "t//1", .filter = text("{\"o\":{\"p\":1}}"));
    assert_query(f->store, "t//2 t//1", .filter = text("{\"o\":{}}"));
    assert_query(f->store, "t//1", .filter = text("{\"o\":{\"q\":[2]}}"));
    assert_query(f->store, "t//1", .filter = text("{\"n\":null}"));
    assert_query(f->store, "t//1", .filter = text("{\"b\":true}"));
    assert_query(f->store, "", .filter = text("{\"b\":false}"));
    assert_query(f->store, "", .filter = text("{\"source\":\"loop\"}"));
    assert_query(f->store, "t//3", .filter = text("{\"step\":-2}"));
    assert_query(f->store, "filter is an array, not an object", .filter = text("[]"));
}

static void items_equal_what_get_returns(struct fixture *f)
{
    struct heddle_query query = {.limit = -1};
    const struct heddle_tuple *tuple;
    struct heddle_list *list;
    char *big = long_json(2000, 1);
    struct put put = {.thread = "t", .id = "1", .versions = "{\"a\":1,\"b\":1}"};
    int count = 0;

    put.values[0] = (struct heddle_value){text("a"), text("json"), text(big)};
    put.values[1] = (struct heddle_value)VALUE("b", "1");
    assert_ok(try_put(f->store, &put, NULL));
    WRITES(f->store, .thread = "t", .id = "1", .task = "k", .values = {VALUE("a", "1")});
    PUT(f->store, .thread = "t", .id = "2", .parent = "1", .versions = "{\"a\":1,\"b\":2}",
        .changed = "{\"b\":2}", .values = {VALUE("b", "2")});
    PUT(f->store, .thread = "t", .ns = "n", .id = "1");
    assert_ok(heddle_list_open(f->store, &query, &list, NULL));
    while (heddle_list_next(list, &tuple, NULL) == 0) {
        char ns[8], id[8];
        char *got = render_tuple(tuple);

        snprintf(ns, sizeof(ns), "%.*s", (int)tuple->ns.len, (const char *)tuple->ns.data);
        snprintf(id, sizeof(id), "%.*s", (int)tuple->id.len, (const char *)tuple->id.data);
        assert_text(render_get(f->store, "t", ns, id), got);
        free(got);
        count++;
    }
    assert_int_equal(count, 3);
    heddle_list_close(list);
    free(big);
}

static void headers_have_no_values_and_no_writes(struct fixture *f)
{
    struct heddle_query query = {.limit = -1, .flags = HEDDLE_LIST_HEADERS};
    const struct heddle_tuple *tuple;
    struct heddle_list *list;

    PUT(f->store, .thread = "t", .id = "2", .parent = "1", .versions = "{\"a\":1}",
        .metadata = "{\"x\":1}", .values = {VALUE("a", "1")});
    WRITES(f->store, .thread = "t", .id = "2", .task = "k", .values = {VALUE("a", "1")});
    assert_ok(heddle_list_open(f->store, &query, &list, NULL));
    assert_ok(heddle_list_next(list, &tuple, NULL));
    assert_text(render_tuple(tuple), "2<1");
    assert_memory_equal(tuple->metadata.data, "{\"x\":1}", 7);
    assert_int_equal(tuple->checkpoint.len,
                     strlen("{\"v\":4,\"id\":\"2\",\"channel_versions\":{\"a\":1}}"));
    assert_code(heddle_list_next(list, &tuple, NULL), HEDDLE_ENOTFOUND);
    assert_code(heddle_list_next(list, &tuple, NULL), HEDDLE_ENOTFOUND);
    heddle_list_close(list);
}

enum { LONG = 700 };

static void put_many(struct heddle *store, const char *thread, const char *ns, int count)
{
    for (int i = 0; i < count; i++) {
        char id[16], metadata[40];

        snprintf(id, sizeof(id), "%05d", i);
        snprintf(metadata, sizeof(metadata), "{\"even\":%s}", i % 2 ? "false" : "true");
        PUT(store, .thread = thread, .ns = ns, .id = id, .metadata = metadata);
    }
}

static int count_list(struct heddle *store, const struct heddle_query *query)
{
    const struct heddle_tuple *tuple;
    struct heddle_list *list;
    char last[8] = "99999";
    int count = 0;

    assert_ok(heddle_list_open(store, query, &list, NULL));
    while (heddle_list_next(list, &tuple, NULL) == 0) {
        assert_true(memcmp(tuple->id.data, last, 5) <= 0);
        memcpy(last, tuple->id.data, 5);
        count++;
    }
    heddle_list_close(list);
    return count;
}

static void long_lists_are_complete(struct fixture *f)
{
    struct heddle_bytes t = text("t"), ns = text("");

    put_many(f->store, "t", "", LONG);
    put_many(f->store, "t", "n", 40);
    assert_int_equal(count_list(f->store, &(struct heddle_query){.limit = -1}), LONG + 40);
    assert_int_equal(
        count_list(f->store, &(struct heddle_query){.limit = -1, .thread = &t, .ns = &ns}), LONG);
    assert_int_equal(
        count_list(f->store,
                   &(struct heddle_query){
                       .limit = 300, .thread = &t, .ns = &ns, .filter = text("{\"even\":true}")}),
        300);
    assert_int_equal(count_list(f->store, &(struct heddle_query){.limit = -1,
                                                                 .filter = text("{\"even\":true}"),
                                                                 .flags = HEDDLE_LIST_HEADERS}),
                     LONG / 2 + 20);
}

static void what_is_deleted_meanwhile_is_left_out(struct fixture *f)
{
    struct heddle_query query = {.limit = -1};
    struct heddle_thread u = thread_of("u");
    const struct heddle_tuple *tuple;
    struct heddle_list *list;
    int t_count = 0, u_count = 0;

    put_many(f->store, "t", "", 60);
    put_many(f->store, "u", "", 60);
    assert_ok(heddle_list_open(f->store, &query, &list, NULL));
    assert_ok(heddle_list_next(list, &tuple, NULL));
    assert_ok(heddle_delete_thread(f->store, &u, NULL));
    do {
        t_count += *(const char *)tuple->thread.id.data == 't';
        u_count += *(const char *)tuple->thread.id.data == 'u';
    } while (heddle_list_next(list, &tuple, NULL) == 0);
    heddle_list_close(list);
    assert_int_equal(t_count, 60);
    assert_true(u_count < 20); /* only those already read */
}

static void threads_are_listed_page_by_page(struct fixture *f)
{
    fill(f);
    WRITES(f->store, .thread = "", .id = "1", .task = "k", .values = {VALUE("a", "1")});
    PUT(f->store, .thread = "t\xff", .id = "1");
    PUT(f->store, .thread = "tt", .id = "1");
    assert_text(render_threads(f->store, "", "", 10), " t tt t\\xff u");
    assert_text(render_threads(f->store, "", "", 0), "");
    assert_text(render_threads(f->store, "", "", 2), " t");
    assert_text(render_threads(f->store, "", "t", 2), "tt t\\xff");
    assert_text(render_threads(f->store, "", "t\xff", 2), "u");
    assert_text(render_threads(f->store, "", "tz", 2), "t\\xff u");
    assert_text(render_threads(f->store, "", "u", 2), "");
    assert_text(render_threads(f->store, "p", "", 10), "t");
    assert_text(render_threads(f->store, "pp", "", 10), "");
}

static void many_threads_are_all_listed(struct fixture *f)
{
    struct heddle_threads *threads;

    for (int i = 0; i < 600; i++) {
        char name[24];

        snprintf(name, sizeof(name), "t%05d", i);
        PUT(f->store, .thread = name, .id = "1");
    }
    assert_ok(heddle_list_threads(f->store, text(""), text(""), SIZE_MAX, &threads, NULL));
    assert_int_equal(threads->count, 600);
    assert_memory_equal(threads->threads[599].thread.id.data, "t00599", 6);
    heddle_threads_free(threads);
    assert_ok(heddle_list_threads(f->store, text(""), text("t00299"), 257, &threads, NULL));
    assert_int_equal(threads->count, 257);
    assert_memory_equal(threads->threads[256].thread.id.data, "t00556", 6);
    heddle_threads_free(threads);
}

const struct store_case list_cases[] = {
    STORE_CASE(everything_of_a_principal_is_listed_newest_first),
    STORE_CASE(a_namespace_given_differs_from_none),
    STORE_CASE(one_checkpoint_can_be_asked_for),
    STORE_CASE(before_is_strict_and_crosses_threads),
    STORE_CASE(the_limit_counts_what_is_left),
    STORE_CASE(the_filter_asks_for_containment),
    STORE_CASE(items_equal_what_get_returns),
    STORE_CASE(headers_have_no_values_and_no_writes),
    STORE_CASE(long_lists_are_complete),
    STORE_CASE(a_child_is_newer_than_its_parent_whatever_the_clock_said),
    STORE_CASE(before_follows_the_order_of_a_namespace),
    STORE_CASE(what_a_stray_followed_may_be_gone),
    STORE_CASE(what_is_deleted_meanwhile_is_left_out),
    STORE_CASE(threads_are_listed_page_by_page),
    STORE_CASE(many_threads_are_all_listed),
    {NULL, NULL},
};
