/* Putting checkpoints and getting them back: ids, versions, values. */
#include "tests/contract/store_cases.h"

static void what_was_put_comes_back(struct fixture *f)
{
    struct heddle_tuple *tuple;

    PUT(f->store, .thread = "t", .ns = "child:abc", .id = "1", .versions = "{\"a\":1,\"b\":1}",
        .metadata = "{\"source\": \"input\",\"step\":-1 }",
        .values = {VALUE("b", "{\"x\":1}"), VALUE("a", "[1, 2]")});
    for (int round = 0; round < 2; round++, reopen(f)) {
        tuple = must_get(f->store, "t", "child:abc", "1");
        assert_text(render_tuple(tuple), "1< a=json:[1, 2] b=json:{\"x\":1}");
        assert_memory_equal(tuple->thread.id.data, "t", 1);
        assert_int_equal(tuple->thread.principal.len, 0);
        assert_memory_equal(tuple->ns.data, "child:abc", 9);
        assert_int_equal(tuple->metadata.len, 30);
        assert_memory_equal(tuple->metadata.data, "{\"source\": \"input\",\"step\":-1 }", 30);
        heddle_tuple_free(tuple);
    }
}

static void the_checkpoint_is_kept_to_the_byte(struct fixture *f)
{
    static const char json[] = "{ \"v\": 4, \"ts\": \"\", \"\": {\"\": 1e2}, \"id\": \"1\",\n"
                               "\"channel_versions\": {\"a\": 9007199254740993, \"f\": 1.50} }";
    struct heddle_tuple *tuple;

    PUT(f->store, .thread = "t", .id = "1", .checkpoint = json, .changed = "{}");
    tuple = must_get(f->store, "t", "", "1");
    assert_int_equal(tuple->checkpoint.len, sizeof(json) - 1);
    assert_memory_equal(tuple->checkpoint.data, json, sizeof(json) - 1);
    heddle_tuple_free(tuple);
}

static void what_is_not_there_is_not_found(struct fixture *f)
{
    assert_get(f->store, "t", "", "", "none");
    PUT(f->store, .thread = "t", .id = "1");
    assert_get(f->store, "t", "", "2", "none");
    assert_get(f->store, "t", "x", "", "none");
    assert_get(f->store, "u", "", "", "none");
    assert_get(f->store, "", "", "", "none");
}

static void latest_is_the_greatest_id_in_byte_order(struct fixture *f)
{
    static const char *const ids[] = {"b", "z", "a", "ba", "Z", "aa"};

    for (size_t i = 0; i < COUNT_OF(ids); i++)
        PUT(f->store, .thread = "t", .id = ids[i]);
    PUT(f->store, .thread = "t", .ns = "other", .id = "zz");
    PUT(f->store, .thread = "u", .id = "zzz");
    assert_get(f->store, "t", "", "", "z<");
    /* Bytes above 0x7f come after all ASCII, whatever a collation thinks. */
    PUT(f->store, .thread = "t", .id = "\xc3\xa4");
    assert_get(f->store, "t", "", "", "\\xc3\\xa4<");
    reopen(f);
    assert_get(f->store, "t", "", "", "\\xc3\\xa4<");
}

static void parents_are_kept(struct fixture *f)
{
    PUT(f->store, .thread = "t", .id = "1");
    PUT(f->store, .thread = "t", .id = "2", .parent = "1");
    PUT(f->store, .thread = "t", .id = "3", .parent = "never seen");
    assert_get(f->store, "t", "", "1", "1<");
    assert_get(f->store, "t", "", "2", "2<1");
    assert_get(f->store, "t", "", "3", "3<never seen");
}

static void threads_and_namespaces_do_not_mix(struct fixture *f)
{
    PUT(f->store, .thread = "t", .id = "1", .versions = "{\"a\":1}", .values = {VALUE("a", "1")});
    PUT(f->store, .thread = "u", .id = "1", .versions = "{\"a\":1}", .values = {VALUE("a", "2")});
    PUT(f->store, .thread = "t", .ns = "n", .id = "1", .versions = "{\"a\":1}",
        .values = {VALUE("a", "3")});
    PUT(f->store, .thread = "t", .ns = "n|m:1", .id = "1", .versions = "{\"a\":1}",
        .values = {VALUE("a", "4")});
    assert_get(f->store, "t", "", "", "1< a=json:1");
    assert_get(f->store, "u", "", "", "1< a=json:2");
    assert_get(f->store, "t", "n", "", "1< a=json:3");
    assert_get(f->store, "t", "n|m:1", "", "1< a=json:4");
    /* Not even to find a value that was not changed. */
    PUT(f->store, .thread = "u", .ns = "x", .id = "2", .versions = "{\"a\":1}", .changed = "{}");
    assert_get(f->store, "u", "x", "2", "2<");
}

static void principals_are_sealed(struct fixture *f)
{
    struct heddle_key key = {{text("alice"), text("t")}, text(""), text("")};
    struct heddle_tuple *tuple;
    char *got;

    PUT(f->store, .principal = "alice", .thread = "t", .id = "1", .versions = "{\"a\":1}",
        .values = {VALUE("a", "1")});
    PUT(f->store, .principal = "bob", .thread = "t", .id = "2");
    PUT(f->store, .thread = "alice:t", .id = "3");
    assert_ok(heddle_get(f->store, &key, &tuple, NULL));
    got = render_tuple(tuple);
    assert_int_equal(tuple->thread.principal.len, 5);
    assert_memory_equal(tuple->thread.principal.data, "alice", 5);
    assert_int_equal(tuple->thread.id.len, 1);
    heddle_tuple_free(tuple);
    assert_text(got, "1< a=json:1");
    assert_get(f->store, "t", "", "", "none");
    assert_get(f->store, "alice:t", "", "", "3<");
}

static void versions_are_exact(struct fixture *f)
{
    static const char *const versions[] = {
        "{\"a\":1}",       "{\"a\":\"1\"}", "{\"a\":1.0}",  "{\"a\":1e0}",
        "{\"a\":\"1.0\"}", "{\"a\":0}",     "{\"a\":\"\"}", "{\"a\":18446744073709551617}"};
    char id[16], parent[16] = "";

    for (size_t i = 0; i < COUNT_OF(versions); i++) {
        struct heddle_value value = {text("a"), text("json"), text(versions[i])};
        struct put put = {.thread = "t", .id = id, .parent = parent, .versions = versions[i]};

        snprintf(id, sizeof(id), "1%zu", i);
        put.values[0] = value;
        assert_ok(try_put(f->store, &put, NULL));
        snprintf(parent, sizeof(parent), "%s", id);
    }
    reopen(f);
    /* Each is found again by its own version and by no other. */
    for (size_t i = 0; i < COUNT_OF(versions); i++) {
        char expected[80];

        snprintf(id, sizeof(id), "2%zu", i);
        PUT(f->store, .thread = "t", .id = id, .versions = versions[i], .changed = "{}");
        snprintf(expected, sizeof(expected), "%s< a=json:%s", id, versions[i]);
        assert_get(f->store, "t", "", id, expected);
    }
    PUT(f->store, .thread = "t", .id = "30", .versions = "{\"a\":1.00}", .changed = "{}");
    assert_get(f->store, "t", "", "30", "30<");
}

static void escaped_versions_and_channels_are_the_same(struct fixture *f)
{
    PUT(f->store, .thread = "t", .id = "1", .versions = "{\"\\u0061\":\"x\\u002ey\"}",
        .values = {VALUE("a", "1")});
    PUT(f->store, .thread = "t", .id = "2", .parent = "1", .versions = "{\"a\":\"x.y\"}",
        .changed = "{}");
    assert_get(f->store, "t", "", "1", "1< a=json:1");
    assert_get(f->store, "t", "", "2", "2<1 a=json:1");
}

static void only_changed_channels_are_stored(struct fixture *f)
{
    PUT(f->store, .thread = "t", .id = "1", .versions = "{\"a\":1,\"b\":1}", .changed = "{\"a\":1}",
        .values = {VALUE("a", "1"), VALUE("b", "2"), VALUE("c", "3")});
    assert_get(f->store, "t", "", "1", "1< a=json:1");
    /* Named as changed, but not among the versions: not visible. */
    PUT(f->store, .thread = "t", .id = "2", .versions = "{\"a\":2}", .changed = "{\"a\":2,\"d\":1}",
        .values = {VALUE("a", "4"), VALUE("d", "5")});
    assert_get(f->store, "t", "", "2", "2< a=json:4");
}

static void unchanged_values_come_from_the_parent(struct fixture *f)
{
    PUT(f->store, .thread = "t", .id = "1", .versions = "{\"a\":1,\"b\":1}",
        .values = {VALUE("a", "1"), VALUE("b", "2")});
    PUT(f->store, .thread = "t", .id = "2", .parent = "1", .versions = "{\"a\":2,\"b\":1,\"c\":2}",
        .changed = "{\"a\":2,\"c\":2}", .values = {VALUE("a", "3"), VALUE("c", "4")});
    reopen(f);
    PUT(f->store, .thread = "t", .id = "3", .parent = "2", .versions = "{\"a\":2,\"b\":1}",
        .changed = "{}");
    assert_get(f->store, "t", "", "1", "1< a=json:1 b=json:2");
    assert_get(f->store, "t", "", "2", "2<1 a=json:3 b=json:2 c=json:4");
    assert_get(f->store, "t", "", "3", "3<2 a=json:3 b=json:2"); /* c was dropped */
}

static void unchanged_values_are_found_elsewhere(struct fixture *f)
{
    PUT(f->store, .thread = "t", .id = "1", .versions = "{\"a\":1}", .values = {VALUE("a", "1")});
    PUT(f->store, .thread = "t", .id = "2", .parent = "1", .versions = "{\"a\":2}",
        .values = {VALUE("a", "2")});
    /* Without a parent, with one that lacks the version, with one that does not exist. */
    PUT(f->store, .thread = "t", .id = "3", .versions = "{\"a\":1}", .changed = "{}");
    PUT(f->store, .thread = "t", .id = "4", .parent = "2", .versions = "{\"a\":1}",
        .changed = "{}");
    reopen(f);
    PUT(f->store, .thread = "t", .id = "5", .parent = "none", .versions = "{\"a\":2}",
        .changed = "{}");
    PUT(f->store, .thread = "t", .id = "6", .parent = "5", .versions = "{\"a\":7}",
        .changed = "{}");
    assert_get(f->store, "t", "", "3", "3< a=json:1");
    assert_get(f->store, "t", "", "4", "4<2 a=json:1");
    assert_get(f->store, "t", "", "5", "5<none a=json:2");
    assert_get(f->store, "t", "", "6", "6<5");
}

static void forks_keep_apart_under_equal_versions(struct fixture *f)
{
    PUT(f->store, .thread = "t", .id = "1", .versions = "{\"a\":1}", .values = {VALUE("a", "0")});
    PUT(f->store, .thread = "t", .id = "2", .parent = "1", .versions = "{\"a\":2}",
        .values = {VALUE("a", "\"main\"")});
    PUT(f->store, .thread = "t", .id = "3", .parent = "1", .versions = "{\"a\":2}",
        .values = {VALUE("a", "\"fork\"")});
    PUT(f->store, .thread = "t", .id = "4", .parent = "2", .versions = "{\"a\":2,\"b\":3}",
        .changed = "{\"b\":3}", .values = {VALUE("b", "1")});
    PUT(f->store, .thread = "t", .id = "5", .parent = "3", .versions = "{\"a\":2,\"b\":3}",
        .changed = "{\"b\":3}", .values = {VALUE("b", "2")});
    for (int round = 0; round < 2; round++, reopen(f)) {
        assert_get(f->store, "t", "", "2", "2<1 a=json:\"main\"");
        assert_get(f->store, "t", "", "3", "3<1 a=json:\"fork\"");
        assert_get(f->store, "t", "", "4", "4<2 a=json:\"main\" b=json:1");
        assert_get(f->store, "t", "", "5", "5<3 a=json:\"fork\" b=json:2");
    }
    PUT(f->store, .thread = "t", .id = "6", .parent = "4", .versions = "{\"a\":2}",
        .changed = "{}");
    assert_get(f->store, "t", "", "6", "6<4 a=json:\"main\"");
}

static void null_empty_and_absent_differ(struct fixture *f)
{
    PUT(f->store, .thread = "t", .id = "1",
        .versions = "{\"absent\":1,\"empty\":1,\"null\":1,\"nothing\":1}",
        .values = {VALUE("empty", "\"\""), VALUE("null", "null"), VALUE("nothing", "")});
    assert_get(f->store, "t", "", "1", "1< empty=json:\"\" nothing=json: null=json:null");
    /* Named as changed without a value: empty from here on. */
    PUT(f->store, .thread = "t", .id = "2", .parent = "1", .versions = "{\"empty\":1,\"null\":2}",
        .changed = "{\"null\":2}");
    assert_get(f->store, "t", "", "2", "2<1 empty=json:\"\"");
    PUT(f->store, .thread = "t", .id = "3", .parent = "2", .versions = "{\"null\":2}",
        .changed = "{}");
    assert_get(f->store, "t", "", "3", "3<2");
    /* And the old version still has its value. */
    PUT(f->store, .thread = "t", .id = "4", .parent = "3", .versions = "{\"null\":1}",
        .changed = "{}");
    assert_get(f->store, "t", "", "4", "4<3 null=json:null");
}

static void the_empty_channel_is_a_channel(struct fixture *f)
{
    struct heddle_value value = {RAW(""), RAW(""), RAW("x")};
    struct put put = {.thread = "", .id = "1", .versions = "{\"\":\"\"}"};

    put.values[0] = value;
    assert_ok(try_put(f->store, &put, NULL));
    assert_get(f->store, "", "", "", "1< =:x");
}

static void a_second_put_replaces_the_first(struct fixture *f)
{
    char *big = long_json(5000, 1), *bigger = long_json(6000, 2);
    struct put put = {.thread = "t", .id = "2", .parent = "1", .versions = "{\"a\":2,\"b\":2}"};
    char expected[8000];

    PUT(f->store, .thread = "t", .id = "1", .versions = "{\"a\":1}", .values = {VALUE("a", "0")});
    put.values[0] = (struct heddle_value){text("a"), text("json"), text(big)};
    put.values[1] = (struct heddle_value)VALUE("b", "1");
    assert_ok(try_put(f->store, &put, NULL));
    put = (struct put){
        .thread = "t", .id = "2", .parent = "0", .versions = "{\"a\":2}", .metadata = "{\"x\":1}"};
    put.values[0] = (struct heddle_value){text("a"), text("json"), text(bigger)};
    assert_ok(try_put(f->store, &put, NULL));
    snprintf(expected, sizeof(expected), "2<0 a=json:%s", bigger);
    assert_get(f->store, "t", "", "2", expected);
    reopen(f);
    assert_get(f->store, "t", "", "2", expected);
    assert_list(f->store, "t//2 t//1");
    assert_query(f->store, "t//2", .filter = text("{\"x\":1}"));
    free(big);
    free(bigger);
}

static void a_second_put_keeps_its_own_unchanged_values(struct fixture *f)
{
    PUT(f->store, .thread = "t", .id = "1", .versions = "{\"a\":1}", .values = {VALUE("a", "1")});
    PUT(f->store, .thread = "t", .id = "2", .versions = "{\"a\":1}", .values = {VALUE("a", "2")});
    for (int round = 0; round < 2; round++, reopen(f)) {
        PUT(f->store, .thread = "t", .id = "1", .versions = "{\"a\":1}", .changed = "{}",
            .metadata = "{\"again\":true}");
        assert_get(f->store, "t", "", "1", "1< a=json:1");
    }
}

static void a_checkpoint_may_be_its_own_parent(struct fixture *f)
{
    PUT(f->store, .thread = "t", .id = "1", .versions = "{\"a\":1}", .values = {VALUE("a", "1")});
    PUT(f->store, .thread = "t", .id = "1", .parent = "1", .versions = "{\"a\":1}",
        .changed = "{}");
    assert_get(f->store, "t", "", "", "1<1 a=json:1");
}

static void one_content_under_two_types_stays_apart(struct fixture *f)
{
    char *big = long_json(3000, 3);
    struct put put = {.thread = "t", .id = "1", .versions = "{\"a\":1,\"b\":1}"};
    struct heddle_tuple *tuple;

    put.values[0] = (struct heddle_value){text("a"), text("json"), text(big)};
    put.values[1] = (struct heddle_value){text("b"), RAW("m\0s"), text(big)};
    assert_ok(try_put(f->store, &put, NULL));
    tuple = must_get(f->store, "t", "", "1");
    assert_int_equal(tuple->value_count, 2);
    assert_int_equal(tuple->values[1].type.len, 3);
    assert_memory_equal(tuple->values[1].type.data, "m\0s", 3);
    assert_int_equal(tuple->values[1].data.len, 3000);
    assert_memory_equal(tuple->values[1].data.data, big, 3000);
    heddle_tuple_free(tuple);
    free(big);
}

/* A list of `count` JSON strings of 300 bytes each. */
static char *list_of(size_t count, size_t *len)
{
    char *list = malloc(count * 301 + 2), *end = list;

    assert_non_null(list);
    *end++ = '[';
    for (size_t i = 0; i < count; i++) {
        char *element = long_json(300, (unsigned)i);

        if (i)
            *end++ = ',';
        memcpy(end, element, 300);
        end += 300;
        free(element);
    }
    *end++ = ']';
    *len = (size_t)(end - list);
    return list;
}

static void a_conversation_costs_what_was_said(struct fixture *f)
{
    enum { TURNS = 60 };
    size_t len;

    for (size_t i = 1; i <= TURNS; i++) {
        char id[24], parent[24], versions[32];
        char *list = list_of(i, &len);
        struct put put = {.thread = "t", .id = id, .parent = parent, .versions = versions};

        snprintf(id, sizeof(id), "%05zu", i);
        snprintf(parent, sizeof(parent), "%05zu", i - 1);
        snprintf(versions, sizeof(versions), "{\"m\":%zu}", i);
        put.values[0] = (struct heddle_value){text("m"), text("json"), bytes(list, len)};
        assert_ok(try_put(f->store, &put, NULL));
        free(list);
    }
    for (size_t i = 1; i <= TURNS; i += 7) {
        char id[24];
        char *list = list_of(i, &len);
        struct heddle_tuple *tuple;

        snprintf(id, sizeof(id), "%05zu", i);
        tuple = must_get(f->store, "t", "", id);
        assert_int_equal(tuple->values[0].data.len, len);
        assert_memory_equal(tuple->values[0].data.data, list, len);
        heddle_tuple_free(tuple);
        free(list);
    }
    /* The messages are 18 kB; storing every turn whole would take 550 kB. */
    assert_true(usage_of(f->store, "t").bytes < 40000);
    assert_int_equal(usage_of(f->store, "t").checkpoints, TURNS);
    assert_in_range(usage_of(f->store, "t").chunks, TURNS - 1, TURNS);
}

static void values_of_every_size_come_back(struct fixture *f)
{
    static const size_t sizes[] = {0,    1,    47,    48,    127,    128,    129,     1023,
                                   1024, 4095, 16384, 16385, 100000, 999999, 1 << 20, 3000001};
    static const char *const types[] = {"json", "msgpack", "hd1", "bytes", ""};
    char *data = malloc(3000001);
    uint64_t x = 7;

    assert_non_null(data);
    for (size_t i = 0; i < 3000001; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        data[i] = (char)(x >> 57); /* 0 to 127: shrinks a little */
    }
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        struct put put = {.thread = "t", .id = "1", .versions = "{\"a\":1}"};
        struct heddle_tuple *tuple;

        put.values[0] = (struct heddle_value){text("a"), text(types[i % COUNT_OF(types)]),
                                              bytes(data, sizes[i])};
        assert_ok(try_put(f->store, &put, NULL));
        tuple = must_get(f->store, "t", "", "1");
        assert_int_equal(tuple->value_count, 1);
        assert_int_equal(tuple->values[0].data.len, sizes[i]);
        if (sizes[i])
            assert_memory_equal(tuple->values[0].data.data, data, sizes[i]);
        heddle_tuple_free(tuple);
    }
    free(data);
}

/* The memory that a large put needs temporarily must be available afterwards. */
static void puts_go_on_after_a_large_checkpoint(struct fixture *f)
{
    char *filler = long_json(3 << 20, 8), *json = malloc((3 << 20) + 100);
    struct heddle_checkpoint put = {.thread = thread_of("t"),
                                    .id = text("1"),
                                    .metadata = text("{}"),
                                    .new_versions = text("{}")};
    struct heddle_tuple *tuple;

    assert_non_null(json);
    snprintf(json, (3 << 20) + 100, "{\"v\":4,\"filler\":%s}", filler);
    put.checkpoint = text(json);
    assert_ok(heddle_put(f->store, &put, NULL));
    PUT(f->store, .thread = "t", .id = "2", .versions = "{\"a\":1}", .values = {VALUE("a", "1")});
    WRITES(f->store, .thread = "t", .id = "2", .task = "k", .values = {VALUE("a", "1")});
    assert_get(f->store, "t", "", "2", "2< a=json:1 | k/0 a=json:1");
    tuple = must_get(f->store, "t", "", "1");
    assert_int_equal(tuple->checkpoint.len, strlen(json));
    assert_memory_equal(tuple->checkpoint.data, json, strlen(json));
    heddle_tuple_free(tuple);
    free(filler);
    free(json);
}

/* More than one batch takes; twice, with a small change, and something small in between. */
static void very_large_values_come_back(struct fixture *f)
{
    enum { SIZE = 40 << 20 };
    char *data = malloc(SIZE);
    uint64_t x = 3;
    struct heddle_tuple *tuple;

    assert_non_null(data);
    for (size_t i = 0; i < SIZE; i += 8) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        memcpy(data + i, &x, 8);
    }
    for (int i = 0; i < 2; i++) {
        struct put put = {
            .thread = "t", .id = i ? "2" : "1", .versions = i ? "{\"a\":2}" : "{\"a\":1}"};

        data[SIZE / 2] = (char)i;
        put.values[0] = (struct heddle_value){text("a"), text("raw"), bytes(data, SIZE)};
        assert_ok(try_put(f->store, &put, NULL));
        PUT(f->store, .thread = "u", .id = put.id);
    }
    tuple = must_get(f->store, "t", "", "2");
    assert_int_equal(tuple->values[0].data.len, SIZE);
    assert_memory_equal(tuple->values[0].data.data, data, SIZE);
    heddle_tuple_free(tuple);
    assert_true(usage_of(f->store, "t").bytes < SIZE + SIZE / 10); /* shared but for the change */
    free(data);
}

/* More threads than a writer remembers, each visited again when it was forgotten. */
static void forgotten_threads_are_read_again(struct fixture *f)
{
    enum { THREADS = 48, ROUNDS = 9, FILLER = 100000 };
    char *filler = long_json(FILLER, 8), *json = malloc(FILLER + 200), *big = long_json(1000, 9);
    char thread[16], id[16], parent[16];

    assert_non_null(json);
    for (int round = 0; round < ROUNDS; round++) {
        for (int t = 0; t < THREADS; t++) {
            struct put put = {.thread = thread,
                              .id = id,
                              .parent = round ? parent : "",
                              .checkpoint = json,
                              .changed = round ? "{}" : "{\"a\":1}"};

            snprintf(thread, sizeof(thread), "t%d", t);
            snprintf(id, sizeof(id), "%02d", round);
            snprintf(parent, sizeof(parent), "%02d", round - 1);
            snprintf(json, FILLER + 200, "{\"v\":4,\"channel_versions\":{\"a\":1},\"x\":%s}",
                     filler);
            put.values[0] = (struct heddle_value){text("a"), text("json"), text(big)};
            assert_ok(try_put(f->store, &put, NULL));
        }
    }
    for (int t = 0; t < THREADS; t++) {
        struct heddle_tuple *tuple;

        snprintf(thread, sizeof(thread), "t%d", t);
        tuple = must_get(f->store, thread, "", "");
        assert_int_equal(tuple->value_count, 1);
        assert_memory_equal(tuple->values[0].data.data, big, 1000);
        heddle_tuple_free(tuple);
        assert_int_equal(usage_of(f->store, thread).checkpoints, ROUNDS);
        assert_in_range(usage_of(f->store, thread).chunks, 1, 4);
    }
    free(filler);
    free(json);
    free(big);
}

static void many_channels_come_in_byte_order(struct fixture *f)
{
    enum { CHANNELS = 300 };
    static struct heddle_value values[CHANNELS];
    static char names[CHANNELS][12], json[CHANNELS * 20 + 100];
    struct heddle_checkpoint put = {.thread = thread_of("t"), .id = text("1")};
    struct heddle_tuple *tuple;
    size_t len = 0;

    json[len++] = '{';
    for (int i = 0; i < CHANNELS; i++) {
        snprintf(names[i], sizeof(names[i]), "c%d", i * 7919 % CHANNELS);
        values[i] = (struct heddle_value){text(names[i]), text("t"), text(names[i])};
        len +=
            (size_t)snprintf(json + len, sizeof(json) - len, "%s\"%s\":1", i ? "," : "", names[i]);
    }
    json[len++] = '}';
    put.new_versions = bytes(json, len);
    memmove(json + 20, json, len);
    memcpy(json, "{\"channel_versions\":", 20);
    json[len + 20] = '}';
    put.checkpoint = bytes(json, len + 21);
    put.new_versions = bytes(json + 20, len);
    put.metadata = text("{}");
    put.values = values;
    put.value_count = CHANNELS;
    assert_ok(heddle_put(f->store, &put, NULL));
    tuple = must_get(f->store, "t", "", "1");
    assert_int_equal(tuple->value_count, CHANNELS);
    for (int i = 0; i < CHANNELS; i++) {
        const struct heddle_value *value = &tuple->values[i];

        assert_int_equal(value->channel.len, value->data.len);
        assert_memory_equal(value->channel.data, value->data.data, value->data.len);
        if (i) {
            size_t shorter = value[-1].channel.len < value->channel.len ? value[-1].channel.len
                                                                        : value->channel.len;
            int order = memcmp(value[-1].channel.data, value->channel.data, shorter);

            assert_true(order < 0 || (order == 0 && value[-1].channel.len < value->channel.len));
        }
    }
    heddle_tuple_free(tuple);
}

static void the_thread_list_says_when(struct fixture *f)
{
    struct heddle_threads *threads;
    int64_t created;

    PUT(f->store, .thread = "t", .id = "1");
    assert_ok(heddle_list_threads(f->store, text(""), text(""), 10, &threads, NULL));
    assert_int_equal(threads->count, 1);
    created = threads->threads[0].created_at_us;
    assert_true(created > 1700000000000000);
    assert_int_equal(threads->threads[0].updated_at_us, created);
    heddle_threads_free(threads);
    PUT(f->store, .thread = "t", .id = "2");
    assert_ok(heddle_list_threads(f->store, text(""), text(""), 10, &threads, NULL));
    assert_int_equal(threads->threads[0].created_at_us, created);
    assert_true(threads->threads[0].updated_at_us > created);
    heddle_threads_free(threads);
}

const struct store_case put_cases[] = {
    STORE_CASE(what_was_put_comes_back),
    STORE_CASE(the_checkpoint_is_kept_to_the_byte),
    STORE_CASE(what_is_not_there_is_not_found),
    STORE_CASE(latest_is_the_greatest_id_in_byte_order),
    STORE_CASE(parents_are_kept),
    STORE_CASE(threads_and_namespaces_do_not_mix),
    STORE_CASE(principals_are_sealed),
    STORE_CASE(versions_are_exact),
    STORE_CASE(escaped_versions_and_channels_are_the_same),
    STORE_CASE(only_changed_channels_are_stored),
    STORE_CASE(unchanged_values_come_from_the_parent),
    STORE_CASE(unchanged_values_are_found_elsewhere),
    STORE_CASE(forks_keep_apart_under_equal_versions),
    STORE_CASE(null_empty_and_absent_differ),
    STORE_CASE(the_empty_channel_is_a_channel),
    STORE_CASE(a_second_put_replaces_the_first),
    STORE_CASE(a_second_put_keeps_its_own_unchanged_values),
    STORE_CASE(a_checkpoint_may_be_its_own_parent),
    STORE_CASE(one_content_under_two_types_stays_apart),
    STORE_CASE(a_conversation_costs_what_was_said),
    STORE_CASE(values_of_every_size_come_back),
    STORE_CASE(puts_go_on_after_a_large_checkpoint),
    STORE_CASE(very_large_values_come_back),
    STORE_CASE(forgotten_threads_are_read_again),
    STORE_CASE(many_channels_come_in_byte_order),
    STORE_CASE(the_thread_list_says_when),
    {NULL, NULL},
};
