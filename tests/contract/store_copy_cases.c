/* Copying threads: everything comes along, and from then on each goes its own way. */
#include "tests/contract/store_cases.h"

static int copy(struct fixture *f, const char *source, const char *target)
{
    struct heddle_thread from = thread_of(source), to = thread_of(target);

    return heddle_copy_thread(f->store, &from, &to, NULL);
}

static char *text_of(struct fixture *f, const char *thread)
{
    struct heddle_bytes id = text(thread);
    struct heddle_query query = {.thread = &id, .limit = -1};
    const struct heddle_tuple *tuple;
    struct heddle_list *list;
    char *all = NULL;
    size_t size;
    FILE *out = open_memstream(&all, &size);

    assert_non_null(out);
    assert_ok(heddle_list_open(f->store, &query, &list, NULL));
    while (heddle_list_next(list, &tuple, NULL) == 0) {
        char *one = render_tuple(tuple);

        fprintf(out, "%.*s: %s %.*s %.*s\n", (int)tuple->ns.len, (const char *)tuple->ns.data, one,
                (int)tuple->metadata.len, (const char *)tuple->metadata.data,
                (int)tuple->checkpoint.len, (const char *)tuple->checkpoint.data);
        free(one);
    }
    heddle_list_close(list);
    fclose(out);
    return all;
}

/* Three namespaces, long and short values, writes of both kinds, writes without checkpoint. */
static void fill(struct fixture *f, const char *thread)
{
    char *big = long_json(6000, 1);
    struct put put = {.thread = thread,
                      .id = "2",
                      .parent = "1",
                      .versions = "{\"a\":2,\"b\":1}",
                      .changed = "{\"a\":2}",
                      .metadata = "{\"run_id\":\"r\"}"};
    struct writes batch = {.thread = thread, .id = "3", .task = "k", .path = "p"};

    PUT(f->store, .thread = thread, .id = "1", .versions = "{\"a\":1,\"b\":1}",
        .values = {VALUE("a", "1"), VALUE("b", "2")});
    put.values[0] = (struct heddle_value){text("a"), text("json"), text(big)};
    assert_ok(try_put(f->store, &put, NULL));
    put.id = "3";
    put.changed = "{}";
    put.parent = "2";
    assert_ok(try_put(f->store, &put, NULL));
    put.ns = "n";
    put.changed = put.versions;
    assert_ok(try_put(f->store, &put, NULL));
    PUT(f->store, .thread = thread, .ns = "n|m:x", .id = "3");
    batch.values[0] = (struct heddle_value){text("a"), text("json"), text(big)};
    batch.values[1] = (struct heddle_value)VALUE("__resume__", "1");
    assert_ok(try_writes(f->store, &batch, NULL));
    batch.id = "9";
    assert_ok(try_writes(f->store, &batch, NULL));
    free(big);
}

static void expect_metadata(struct fixture *f, const char *thread, const char *id,
                            const char *expected)
{
    struct heddle_key key = {.thread = thread_of(thread), .id = text(id)};
    struct heddle_tuple *tuple;

    assert_ok(heddle_get(f->store, &key, &tuple, NULL));
    assert_int_equal(tuple->metadata.len, strlen(expected));
    assert_memory_equal(tuple->metadata.data, expected, tuple->metadata.len);
    heddle_tuple_free(tuple);
}

static void metadata_that_name_the_thread_name_the_copy(struct fixture *f)
{
    PUT(f->store, .thread = "t", .id = "1", .metadata = "{\"n\":1.0,\"thread_id\":\"t\",\"x\":{}}");
    PUT(f->store, .thread = "t", .id = "2", .metadata = "{\"thread_id\": \"other\"}");
    assert_ok(copy(f, "t", "u"));
    expect_metadata(f, "u", "1", "{\"n\":1.0,\"thread_id\":\"u\",\"x\":{}}");
    expect_metadata(f, "u", "2", "{\"thread_id\": \"other\"}");
    expect_metadata(f, "t", "1", "{\"n\":1.0,\"thread_id\":\"t\",\"x\":{}}");
}

static void a_copy_has_everything(struct fixture *f)
{
    char *source;

    fill(f, "s");
    source = text_of(f, "s");
    assert_ok(copy(f, "s", "t"));
    for (int round = 0; round < 2; round++, reopen(f)) {
        assert_text(text_of(f, "t"), source);
        assert_text(text_of(f, "s"), source);
    }
    assert_int_equal(usage_of(f->store, "s").chunks, usage_of(f->store, "t").chunks);
    assert_int_equal(usage_of(f->store, "s").bytes, usage_of(f->store, "t").bytes);
    assert_text(render_threads(f->store, "", "", 9), "s t");
    /* The writes that came before their checkpoint too. */
    PUT(f->store, .thread = "s", .id = "9");
    PUT(f->store, .thread = "t", .id = "9");
    free(source);
    source = render_get(f->store, "s", "", "9");
    assert_non_null(strstr(source, "k/0@p a=json"));
    assert_text(render_get(f->store, "t", "", "9"), source);
    free(source);
}

static void source_and_copy_go_their_own_ways(struct fixture *f)
{
    struct heddle_thread s = thread_of("s");
    char *before, *big = long_json(5000, 7);
    struct put put = {.thread = "t", .id = "4", .parent = "3", .versions = "{\"a\":3}"};

    fill(f, "s");
    before = text_of(f, "s");
    assert_ok(copy(f, "s", "t"));
    put.values[0] = (struct heddle_value){text("a"), text("json"), text(big)};
    assert_ok(try_put(f->store, &put, NULL));
    assert_text(text_of(f, "s"), before);
    put.thread = "s";
    put.id = "5";
    assert_ok(try_put(f->store, &put, NULL));
    assert_get(f->store, "t", "", "5", "none");
    assert_get(f->store, "s", "", "4", "none");
    assert_ok(heddle_delete_thread(f->store, &s, NULL));
    assert_ok(copy(f, "t", "s"));
    {
        char *copied = text_of(f, "t");

        assert_text(text_of(f, "s"), copied);
        assert_ok(heddle_prune(f->store, &s, 1, HEDDLE_KEEP_LATEST, NULL));
        assert_text(text_of(f, "t"), copied);
        free(copied);
    }
    free(before);
    free(big);
}

static void a_target_that_exists_is_left_alone(struct fixture *f)
{
    fill(f, "s");
    PUT(f->store, .thread = "t", .id = "1");
    assert_code(copy(f, "s", "t"), HEDDLE_EEXISTS);
    assert_query(f->store, "t//1", .thread = &(struct heddle_bytes){"t", 1});
    WRITES(f->store, .thread = "u", .id = "1", .task = "k", .values = {VALUE("a", "1")});
    assert_code(copy(f, "s", "u"), HEDDLE_EEXISTS);
    assert_int_equal(usage_of(f->store, "u").writes, 1);
    assert_code(copy(f, "s", "s"), HEDDLE_EEXISTS);
    assert_get(f->store, "s", "", "1", "1< a=json:1 b=json:2");
}

static void a_source_that_does_not_exist_copies_nothing(struct fixture *f)
{
    assert_ok(copy(f, "none", "t"));
    assert_text(render_threads(f->store, "", "", 9), "");
    PUT(f->store, .thread = "t", .id = "1");
    assert_list(f->store, "t//1");
}

static void a_copy_crosses_principals(struct fixture *f)
{
    struct heddle_thread from = thread_of("s"), to = {text("p"), text("s")};

    fill(f, "s");
    assert_ok(heddle_copy_thread(f->store, &from, &to, NULL));
    assert_query(f->store, "s//3 s/n/3 s/n|m:x/3 s//2 s//1", .principal = text("p"));
}

static void a_run_is_deleted_in_source_and_copy(struct fixture *f)
{
    struct heddle_bytes run = text("r");

    fill(f, "s");
    assert_ok(copy(f, "s", "t"));
    assert_ok(heddle_delete_runs(f->store, text(""), &run, 1, NULL));
    assert_list(f->store, "s/n|m:x/3 t/n|m:x/3 s//1 t//1");
}

static void a_large_thread_is_copied_whole(struct fixture *f)
{
    enum { COUNT = 700 };
    char id[16];

    /* More chunks than one batch takes, more rows than one page. */
    for (unsigned i = 0; i < COUNT; i++) {
        char *value = long_json(i % 50 ? 150 : 200000, i);
        struct put put = {.thread = "s", .id = id, .versions = "{\"a\":1}"};

        snprintf(id, sizeof(id), "%05u", i);
        put.values[0] = (struct heddle_value){text("a"), text("json"), text(value)};
        assert_ok(try_put(f->store, &put, NULL));
        free(value);
    }
    assert_ok(copy(f, "s", "t"));
    assert_int_equal(usage_of(f->store, "t").checkpoints, COUNT);
    for (unsigned i = 0; i < COUNT; i += 25) {
        char *value = long_json(i % 50 ? 150 : 200000, i);
        struct heddle_tuple *tuple;

        snprintf(id, sizeof(id), "%05u", i);
        tuple = must_get(f->store, "t", "", id);
        assert_int_equal(tuple->values[0].data.len, strlen(value));
        assert_memory_equal(tuple->values[0].data.data, value, strlen(value));
        heddle_tuple_free(tuple);
        free(value);
    }
}

const struct store_case copy_cases[] = {
    STORE_CASE(a_copy_has_everything),
    STORE_CASE(metadata_that_name_the_thread_name_the_copy),
    STORE_CASE(source_and_copy_go_their_own_ways),
    STORE_CASE(a_target_that_exists_is_left_alone),
    STORE_CASE(a_source_that_does_not_exist_copies_nothing),
    STORE_CASE(a_copy_crosses_principals),
    STORE_CASE(a_run_is_deleted_in_source_and_copy),
    STORE_CASE(a_large_thread_is_copied_whole),
    {NULL, NULL},
};
