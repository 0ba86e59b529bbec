/* External input: any bytes in ids, and input that is rejected with nothing changed. */
#include "tests/contract/store_cases.h"

/* Ids that break code that joins, splits, terminates or pads. */
static const struct heddle_bytes odd_ids[] = {
    {"\0", 1},
    {"\0\0", 2},
    {"\xff", 1},
    {"\xff\xff", 2},
    {":", 1},
    {"::", 2},
    {"|", 1},
    {"a", 1},
    {"a\0", 2},
    {"a\0b", 3},
    {"a:b", 3},
    {"a|b:c", 5},
    {"%", 1},
    {"_", 1},
    {"'", 1},
    {"\\x00", 4},
    {"\\", 1},
    {"\xc3\x28", 2},
    {"\xed\xa0\x80", 3},
    {"\n", 1},
    {" ", 1},
    {"a ", 2},
    {"A", 1},
    {"\xf4\x90\x80\x80", 4},
};

static void any_bytes_serve_as_ids(struct fixture *f)
{
    size_t count = COUNT_OF(odd_ids);

    for (size_t i = 0; i < count; i++) {
        struct heddle_bytes a = odd_ids[i], c = odd_ids[(i + 1) % count];
        struct heddle_value value = {c, a, odd_ids[(i + 2) % count]};
        struct heddle_checkpoint put = {.thread = {text(""), a},
                                        .ns = c,
                                        .id = a,
                                        .parent = c,
                                        .checkpoint = text("{}"),
                                        .metadata = text("{}"),
                                        .new_versions = text("{}")};
        struct heddle_writes writes = {.thread = {text(""), a},
                                       .ns = c,
                                       .checkpoint_id = a,
                                       .task_id = c,
                                       .task_path = a,
                                       .values = &value,
                                       .value_count = 1};

        assert_ok(heddle_put(f->store, &put, NULL));
        assert_ok(heddle_put_writes(f->store, &writes, NULL));
    }
    reopen(f);
    for (size_t i = 0; i < count; i++) {
        struct heddle_bytes a = odd_ids[i], c = odd_ids[(i + 1) % count];
        struct heddle_key key = {{text(""), a}, c, text("")};
        struct heddle_tuple *tuple;

        assert_ok(heddle_get(f->store, &key, &tuple, NULL));
        assert_int_equal(tuple->id.len, a.len);
        assert_memory_equal(tuple->id.data, a.data, a.len);
        assert_int_equal(tuple->thread.id.len, a.len);
        assert_memory_equal(tuple->thread.id.data, a.data, a.len);
        assert_int_equal(tuple->ns.len, c.len);
        assert_memory_equal(tuple->ns.data, c.data, c.len);
        assert_int_equal(tuple->parent.len, c.len);
        assert_memory_equal(tuple->parent.data, c.data, c.len);
        assert_int_equal(tuple->write_count, 1);
        assert_int_equal(tuple->writes[0].value.channel.len, c.len);
        assert_memory_equal(tuple->writes[0].value.channel.data, c.data, c.len);
        assert_int_equal(tuple->writes[0].task_path.len, a.len);
        heddle_tuple_free(tuple);
    }
}

static void any_bytes_are_in_byte_order(struct fixture *f)
{
    struct heddle_query query = {.limit = -1};
    const struct heddle_tuple *tuple;
    struct heddle_list *list;
    char last[8];
    size_t last_len = SIZE_MAX, seen = 0;

    for (size_t i = 0; i < COUNT_OF(odd_ids); i++) {
        struct heddle_checkpoint put = {.thread = thread_of("t"),
                                        .id = odd_ids[i],
                                        .checkpoint = text("{}"),
                                        .metadata = text("{}"),
                                        .new_versions = text("{}")};

        assert_ok(heddle_put(f->store, &put, NULL));
    }
    assert_get(f->store, "t", "", "", "\\xff\\xff<");
    assert_ok(heddle_list_open(f->store, &query, &list, NULL));
    for (; heddle_list_next(list, &tuple, NULL) == 0; seen++) {
        if (last_len != SIZE_MAX) {
            size_t shorter = last_len < tuple->id.len ? last_len : tuple->id.len;
            int order = memcmp(last, tuple->id.data, shorter);

            assert_true(order > 0 || (order == 0 && last_len > tuple->id.len));
        }
        last_len = tuple->id.len;
        memcpy(last, tuple->id.data, last_len);
    }
    assert_int_equal(seen, COUNT_OF(odd_ids));
    heddle_list_close(list);
}

static void any_bytes_can_be_deleted_and_copied(struct fixture *f)
{
    for (size_t i = 0; i < COUNT_OF(odd_ids); i++) {
        struct heddle_thread from = {text(""), odd_ids[i]}, to = {text("p"), odd_ids[i]};
        struct heddle_value value = {RAW("c"), RAW("t"), odd_ids[i]};
        struct heddle_writes writes = {.thread = from,
                                       .ns = odd_ids[i],
                                       .checkpoint_id = odd_ids[i],
                                       .values = &value,
                                       .value_count = 1};
        struct heddle_usage usage;

        assert_ok(heddle_put_writes(f->store, &writes, NULL));
        assert_ok(heddle_copy_thread(f->store, &from, &to, NULL));
        assert_ok(heddle_prune(f->store, &to, 1, HEDDLE_KEEP_LATEST, NULL));
        assert_ok(heddle_delete_thread(f->store, &from, NULL));
        assert_ok(heddle_thread_usage(f->store, &from, &usage, NULL));
        assert_int_equal(usage.bytes, 0);
        assert_ok(heddle_thread_usage(f->store, &to, &usage, NULL));
        assert_int_equal(usage.writes, 1);
    }
}

static void run_ids_may_have_any_bytes(struct fixture *f)
{
    struct heddle_bytes run = RAW("a\0b");

    PUT(f->store, .thread = "t", .id = "1", .metadata = "{\"run_id\":\"a\\u0000b\"}");
    PUT(f->store, .thread = "t", .id = "2", .metadata = "{\"run_id\":\"a\"}");
    assert_ok(heddle_delete_runs(f->store, text(""), &run, 1, NULL));
    assert_list(f->store, "t//2");
}

/* ---- refusals ---- */

static void refuse(struct fixture *f, const struct put *put, int code, const char *cause)
{
    struct heddle_error error = {0};

    assert_code(try_put(f->store, put, &error), code);
    assert_int_equal(error.code, code);
    if (!strstr(error.text, cause))
        fail_msg("\"%s\" does not say \"%s\"", error.text, cause);
    assert_text(render_threads(f->store, "", "", 9), ""); /* nothing was made */
}

static void bad_json_is_refused(struct fixture *f)
{
    struct put put = {.thread = "t", .id = "1"};

    put.checkpoint = "{";
    refuse(f, &put, HEDDLE_EINVAL, "checkpoint is not JSON");
    put.checkpoint = "";
    refuse(f, &put, HEDDLE_EINVAL, "checkpoint");
    put.checkpoint = "[]";
    refuse(f, &put, HEDDLE_EINVAL, "checkpoint is an array");
    put.checkpoint = "{\"a\":NaN}";
    refuse(f, &put, HEDDLE_EINVAL, "checkpoint is not JSON");
    put.checkpoint = "{\"a\":\"\xff\"}";
    refuse(f, &put, HEDDLE_EINVAL, "checkpoint is not JSON");
    put.checkpoint = "{} {}";
    refuse(f, &put, HEDDLE_EINVAL, "checkpoint is not JSON");
    put.checkpoint = NULL;
    put.metadata = "null";
    refuse(f, &put, HEDDLE_EINVAL, "metadata is null");
    put.metadata = "";
    refuse(f, &put, HEDDLE_EINVAL, "metadata");
    put.metadata = NULL;
    put.changed = "1";
    refuse(f, &put, HEDDLE_EINVAL, "new_versions is a number");
    put.changed = "{\"a\" 1}";
    refuse(f, &put, HEDDLE_EINVAL, "new_versions is not JSON");
}

static void versions_of_the_wrong_type_are_refused(struct fixture *f)
{
    struct put put = {.thread = "t", .id = "1"};

    put.versions = "{\"a\":null}";
    refuse(f, &put, HEDDLE_EINVAL, "'a' in channel_versions is null");
    put.versions = "{\"a\":{}}";
    refuse(f, &put, HEDDLE_EINVAL, "'a' in channel_versions is an object");
    put.versions = "{\"a\":true}";
    refuse(f, &put, HEDDLE_EINVAL, "'a' in channel_versions");
    put.versions = "[]";
    put.changed = "{}";
    refuse(f, &put, HEDDLE_EINVAL, "channel_versions is an array");
    put.versions = "{\"a\":1}";
    put.changed = "{\"a\":[1]}";
    refuse(f, &put, HEDDLE_EINVAL, "'a' in new_versions is an array");
    put.versions = "{\"a\":1,\"a\":2}";
    put.changed = "{\"a\":1}";
    refuse(f, &put, HEDDLE_EINVAL, "duplicate");
}

static void ids_that_are_missing_or_too_long_are_refused(struct fixture *f)
{
    char *longer = long_json(70000, 1);
    struct put put = {.thread = "t", .id = ""};
    struct writes batch = {.thread = "t", .id = "", .values = {VALUE("a", "1")}};
    struct heddle_error error = {0};

    refuse(f, &put, HEDDLE_EINVAL, "checkpoint_id is empty");
    assert_code(try_writes(f->store, &batch, &error), HEDDLE_EINVAL);
    longer[3000] = '\0';
    put.id = longer;
    put.checkpoint = "{}";
    refuse(f, &put, HEDDLE_ELIMIT, "checkpoint_id has 3000 bytes");
    put.id = "1";
    put.thread = longer;
    refuse(f, &put, HEDDLE_ELIMIT, "thread_id has 3000 bytes");
    put.thread = "t";
    put.ns = longer;
    refuse(f, &put, HEDDLE_ELIMIT, "checkpoint_ns has 3000 bytes");
    put.ns = "";
    put.parent = longer;
    refuse(f, &put, HEDDLE_ELIMIT, "parent checkpoint_id has 3000 bytes");
    put.parent = "";
    put.principal = longer;
    refuse(f, &put, HEDDLE_ELIMIT, "principal has 3000 bytes");
    put.principal = "";
    put.values[0] = (struct heddle_value){text(longer), text("t"), text("x")};
    refuse(f, &put, HEDDLE_ELIMIT, "channel has 3000 bytes");
    put.values[0] = (struct heddle_value){text("a"), text(longer), text("x")};
    refuse(f, &put, HEDDLE_ELIMIT, "type has 3000 bytes");
    batch.id = "1";
    batch.task = longer;
    assert_code(try_writes(f->store, &batch, &error), HEDDLE_ELIMIT);
    longer[3000] = 'x';
    batch.task = "k";
    batch.path = longer;
    assert_code(try_writes(f->store, &batch, &error), HEDDLE_ELIMIT);
    assert_text(render_threads(f->store, "", "", 9), "");
    free(longer);
}

/* Everything as long as it may be, at once: the database's keys must hold it. */
static void the_longest_ids_work(struct fixture *f)
{
    static char principal[128], thread[512], ns[1024], id[256], channel[1024], run[256], json[800];
    struct heddle_value value = {bytes(channel, 1024), text("t"), text("x")};
    struct heddle_checkpoint put = {.thread = {bytes(principal, 128), bytes(thread, 512)},
                                    .ns = bytes(ns, 1024),
                                    .id = bytes(id, 256),
                                    .parent = bytes(id, 256),
                                    .checkpoint = text("{}"),
                                    .new_versions = text("{}")};
    struct heddle_writes writes = {.thread = put.thread,
                                   .ns = put.ns,
                                   .checkpoint_id = put.id,
                                   .task_id = put.id,
                                   .values = &value,
                                   .value_count = 1};
    struct heddle_key key = {put.thread, put.ns, put.id};
    struct heddle_bytes run_id = bytes(run, 256);
    struct heddle_tuple *tuple;
    uint64_t x = 99;
    char *big = long_json(3000, 1);

    for (size_t i = 0; i < 1024; i++) { /* random, or the database would compress it */
        x = x * 6364136223846793005u + 1442695040888963407u;
        principal[i % 128] = (char)('a' + (x >> 60));
        thread[i % 512] = (char)(x >> 56);
        ns[i] = (char)(x >> 48);
        id[i % 256] = (char)(x >> 40);
        channel[i] = (char)(x >> 32);
        run[i % 256] = (char)('0' + (x >> 58));
    }
    snprintf(json, sizeof(json), "{\"run_id\":\"");
    for (size_t i = 0, len = strlen(json); i < 256; i++) {
        if (run[i] == '\\')
            run[i] = '/';
        json[len + i] = run[i];
        memcpy(json + len + i + 1, "\"}", 3);
    }
    put.metadata = text(json);
    assert_ok(heddle_put(f->store, &put, NULL));
    value.data = text(big); /* long enough for a stream of chunks */
    assert_ok(heddle_put_writes(f->store, &writes, NULL));
    assert_ok(heddle_get(f->store, &key, &tuple, NULL));
    assert_int_equal(tuple->write_count, 1);
    assert_int_equal(tuple->writes[0].value.data.len, 3000);
    heddle_tuple_free(tuple);
    assert_ok(heddle_delete_runs(f->store, bytes(principal, 128), &run_id, 1, NULL));
    assert_code(heddle_get(f->store, &key, &tuple, NULL), HEDDLE_ENOTFOUND);
    free(big);
}

static void a_run_id_that_is_too_long_is_refused(struct fixture *f)
{
    char *big = long_json(3000, 1);
    char metadata[3100];
    struct put put = {.thread = "t", .id = "1", .metadata = metadata};

    snprintf(metadata, sizeof(metadata), "{\"run_id\":%s}", big);
    refuse(f, &put, HEDDLE_ELIMIT, "run_id has 2998 bytes");
    free(big);
}

static void a_principal_must_not_contain_a_colon(struct fixture *f)
{
    struct heddle_thread bad = {text("a:b"), text("t")}, good = thread_of("t");
    struct heddle_key key = {bad, text(""), text("")};
    struct put put = {.principal = "a:b", .thread = "t", .id = "1"};
    struct writes batch = {
        .principal = "a:b", .thread = "t", .id = "1", .values = {VALUE("a", "1")}};
    struct heddle_bytes run = text("r");
    struct heddle_tuple *tuple;
    struct heddle_threads *threads;
    struct heddle_histories *histories;
    struct heddle_usage usage;

    refuse(f, &put, HEDDLE_EINVAL, "principal must not contain ':'");
    assert_code(try_writes(f->store, &batch, NULL), HEDDLE_EINVAL);
    /* Thread b:t of principal a has the same stored key: these calls must not reach it. */
    PUT(f->store, .principal = "a", .thread = "b:t", .id = "1", .metadata = "{\"run_id\":\"r\"}");
    assert_code(heddle_get(f->store, &key, &tuple, NULL), HEDDLE_EINVAL);
    assert_code(heddle_delta_history(f->store, &key, &run, 1, &histories, NULL), HEDDLE_EINVAL);
    assert_code(heddle_list_threads(f->store, text("a:b"), text(""), 9, &threads, NULL),
                HEDDLE_EINVAL);
    assert_code(heddle_thread_usage(f->store, &bad, &usage, NULL), HEDDLE_EINVAL);
    assert_code(heddle_delete_thread(f->store, &bad, NULL), HEDDLE_EINVAL);
    assert_code(heddle_prune(f->store, &bad, 1, HEDDLE_DELETE_ALL, NULL), HEDDLE_EINVAL);
    assert_code(heddle_copy_thread(f->store, &bad, &good, NULL), HEDDLE_EINVAL);
    assert_code(heddle_copy_thread(f->store, &good, &bad, NULL), HEDDLE_EINVAL);
    assert_code(heddle_delete_runs(f->store, text("a:b"), &run, 1, NULL), HEDDLE_EINVAL);
    assert_query(f->store, "principal must not contain ':'", .principal = text("a:b"));
    assert_query(f->store, "principal must not contain ':'", .principal = text("a:b"),
                 .thread = &run);
    assert_query(f->store, "b:t//1", .principal = text("a"));
}

static void values_over_the_limit_are_refused(struct fixture *f)
{
    char *url = fresh_url(f->base, "max_value=1000");
    struct heddle *store = open_store(url);
    char *big = long_json(1001, 1);
    struct put put = {.thread = "t", .id = "1", .versions = "{\"a\":1}"};
    struct writes batch = {.thread = "t", .id = "1", .task = "k"};
    struct heddle_error error = {0};

    put.values[0] = (struct heddle_value){text("a"), text("json"), text(big)};
    assert_code(try_put(store, &put, &error), HEDDLE_ELIMIT);
    assert_string_equal(error.text,
                        "the value of channel 'a' has 1001 bytes, more than max_value=1000");
    batch.values[0] = put.values[0];
    assert_code(try_writes(store, &batch, NULL), HEDDLE_ELIMIT);
    assert_text(render_threads(store, "", "", 9), "");
    put.values[0].data.len = 1000;
    batch.values[0].data.len = 1000;
    assert_ok(try_put(store, &put, NULL));
    assert_ok(try_writes(store, &batch, NULL));
    heddle_close(store);
    remove_database(url);
    free(url);
    free(big);
}

static void success_leaves_no_error_behind(struct fixture *f)
{
    struct heddle_error error = {.code = 7, .text = "old"};
    struct heddle_key key = {thread_of("t"), text(""), text("")};
    struct heddle_tuple *tuple;

    PUT(f->store, .thread = "t", .id = "1");
    assert_ok(heddle_get(f->store, &key, &tuple, &error));
    assert_int_equal(error.code, 0);
    assert_string_equal(error.text, "");
    heddle_tuple_free(tuple);
    key.id = text("2");
    assert_code(heddle_get(f->store, &key, &tuple, &error), HEDDLE_ENOTFOUND);
    assert_int_equal(error.code, HEDDLE_ENOTFOUND);
    assert_string_equal(error.text, "no such object");
}

static void bad_urls_are_refused(struct fixture *f)
{
    static const char *const urls[] = {"",
                                       "nothing",
                                       "redis://x",
                                       "memory:x",
                                       "memory:?a=b",
                                       "memory:?pool=0",
                                       "sqlite:/nonexistent/x.db",
                                       "sqlite:",
                                       "memory:?max_value=-1"};
    struct heddle *store = NULL;

    (void)f;
    for (size_t i = 0; i < COUNT_OF(urls); i++) {
        struct heddle_error error = {0};

        if (heddle_open(&store, urls[i], &error) == 0)
            fail_msg("\"%s\" was opened", urls[i]);
        assert_true(error.code < 0);
        assert_true(strlen(error.text) > 5);
        assert_null(store);
    }
}

static void nothing_is_freed_like_something(struct fixture *f)
{
    (void)f;
    heddle_close(NULL);
    heddle_tuple_free(NULL);
    heddle_list_close(NULL);
    heddle_histories_free(NULL);
    heddle_threads_free(NULL);
}

const struct store_case input_cases[] = {
    STORE_CASE(any_bytes_serve_as_ids),
    STORE_CASE(any_bytes_are_in_byte_order),
    STORE_CASE(any_bytes_can_be_deleted_and_copied),
    STORE_CASE(run_ids_may_have_any_bytes),
    STORE_CASE(bad_json_is_refused),
    STORE_CASE(versions_of_the_wrong_type_are_refused),
    STORE_CASE(ids_that_are_missing_or_too_long_are_refused),
    STORE_CASE(the_longest_ids_work),
    STORE_CASE(a_run_id_that_is_too_long_is_refused),
    STORE_CASE(a_principal_must_not_contain_a_colon),
    STORE_CASE(values_over_the_limit_are_refused),
    STORE_CASE(success_leaves_no_error_behind),
    STORE_CASE(bad_urls_are_refused),
    STORE_CASE(nothing_is_freed_like_something),
    {NULL, NULL},
};
