/* Checkpoints that workers read and write: worker/worker_saver.c, worker_wire.c and
 * worker_hide.c. */
#include <stdio.h>

#include "store/store.h"
#include "tests/unit/worker_world.h"

#define ID(n) "1ef00000-0000-6000-8000-00000000000" #n
#define MANY 5000 /* values: more than a frame has blobs */

#define PUT(n, parent)                                                                         \
    "{\"op\":\"put\",\"call\":1,\"ns\":\"\",\"id\":\"" ID(                                     \
        n) "\",\"parent\":" parent ",\"checkpoint\":{\"$blob\":0},\"metadata\":{\"$blob\":1}," \
           "\"new_versions\":{\"log\":\"" #n "\"},\"values\":[[\"log\",\"hd1\",2]]}"

static int put(const char *head, const char *version, const char *metadata, const char *value)
{
    char checkpoint[128];
    struct hd_slice blobs[3] = {{NULL, 0}, hd_slice_cstr(metadata), hd_slice_cstr(value)};

    snprintf(checkpoint, sizeof(checkpoint), "{\"v\":4,\"channel_versions\":{\"log\":\"%s\"}}",
             version);
    blobs[0] = hd_slice_cstr(checkpoint);
    return ask_with(&w, "put", head, blobs, 3);
}

static void put_three(void)
{
    assert_err(put(PUT(1, "null"), "1", "{\"step\":-1,\"source\":\"input\"}", "[1]"), 0);
    assert_int_equal(said(&w).len, 0); /* {} */
    assert_err(put(PUT(2, "\"" ID(1) "\""), "2", "{\"step\":0,\"source\":\"loop\"}", "[1,2]"), 0);
    assert_err(put(PUT(3, "\"" ID(2) "\""), "3", "{\"step\":1,\"source\":\"loop\"}", "[1,2,3]"), 0);
}

/* A member of the tuple in the answer. */
static hd_json_val part(const char *name)
{
    return hd_json_get(hd_json_get(hd_json_root(&w.answer), HD_S("tuple")), hd_slice_cstr(name));
}

static struct hd_slice blob(hd_json_val number)
{
    int64_t index = -1;

    assert_true(hd_json_int(number, &index));
    assert_in_range(index, 0, w.request.blob_count - 1);
    return w.request.blobs[index];
}

static struct hd_slice text(const char *name)
{
    return blob(hd_json_get(part(name), HD_S("$blob")));
}

static hd_json_val at(hd_json_val list, size_t index)
{
    struct hd_json_iter it = hd_json_iter(list);

    for (size_t i = 0; i <= index; i++)
        assert_true(hd_json_next(&it));
    return it.val;
}

/* ---- cases ---- */

static void test_get(void **state)
{
    (void)state;
    assert_err(ask(&w, "get", "{\"ns\":\"\",\"id\":\"\"}"), 0);
    assert_slice(said(&w), HD_S("{\"tuple\":null}"));
    put_three();
    assert_err(ask(&w, "get", "{\"ns\":\"\",\"id\":\"\"}"), 0);
    assert_slice(hd_json_string(part("ns")), HD_S(""));
    assert_slice(hd_json_string(part("id")), HD_S(ID(3)));
    assert_slice(hd_json_string(part("parent")), HD_S(ID(2)));
    assert_slice(text("checkpoint"), HD_S("{\"v\":4,\"channel_versions\":{\"log\":\"3\"}}"));
    assert_slice(text("metadata"), HD_S("{\"step\":1,\"source\":\"loop\",\"runtime\":\"python\"}"));
    assert_int_equal(hd_json_size(part("values")), 1);
    assert_slice(hd_json_string(at(at(part("values"), 0), 1)), HD_S("hd1"));
    assert_slice(blob(at(at(part("values"), 0), 2)), HD_S("[1,2,3]"));

    assert_err(ask(&w, "get", "{\"ns\":\"\",\"id\":\"" ID(1) "\"}"), 0);
    assert_true(hd_json_is_null(part("parent")));
    assert_slice(blob(at(at(part("values"), 0), 2)), HD_S("[1]"));
    assert_err(ask(&w, "get", "{\"ns\":\"other\"}"), 0);
    assert_slice(said(&w), HD_S("{\"tuple\":null}"));
}

/* The stored tuple, independent of the worker's view. */
static struct heddle_tuple *stored(const char *ns)
{
    struct heddle_key key = {.thread = {{"ann", 3}, {"t1", 2}}, .ns = {ns, strlen(ns)}};
    struct heddle_tuple *tuple;

    assert_err(heddle_get(w.app.store, &key, &tuple, NULL), 0);
    return tuple;
}

static void test_root(void **state)
{
    struct heddle_tuple *tuple;

    (void)state;
    put_three();
    tuple = stored("assistant:x");
    heddle_tuple_free(tuple);
    assert_err(ask(&w, "put",
                   "{\"ns\":\"sub:1|deep:2\",\"id\":\"" ID(
                       4) "\",\"parent\":null,"
                          "\"checkpoint\":{\"v\":4,\"channel_versions\":{}},\"metadata\":{},"
                          "\"new_versions\":{},\"values\":[]}"),
               0);
    tuple = stored("assistant:x|sub:1|deep:2");
    heddle_tuple_free(tuple);
    assert_err(ask(&w, "get", "{\"ns\":\"sub:1|deep:2\"}"), 0);
    assert_slice(hd_json_string(part("ns")), HD_S("sub:1|deep:2"));

    /* Checkpoints of another agent and threads of another user are not visible. */
    w.scope.root = HD_S("assistant:y");
    assert_err(ask(&w, "get", "{\"ns\":\"\"}"), 0);
    assert_true(hd_json_is_null(hd_json_get(hd_json_root(&w.answer), HD_S("tuple"))));
    w.scope.root = HD_S("assistant:x");
    w.scope.principal = HD_S("eve");
    assert_err(ask(&w, "get", "{\"ns\":\"\"}"), 0);
    assert_true(hd_json_is_null(hd_json_get(hd_json_root(&w.answer), HD_S("tuple"))));
}

static void test_metadata(void **state)
{
    struct hd_val *more;
    struct heddle_tuple *tuple;

    (void)state;
    assert_err(hd_val_parse_json(HD_S("{\"run_id\":\"r1\",\"step\":7}"), &more, NULL), 0);
    w.scope.metadata = more;
    w.language = HD_RT_JS;
    assert_err(put(PUT(1, "null"), "1",
                   "{\"step\":-1,\"run_id\":\"mine\",\"runtime\":\"x\",\"api_key\":\"abc\","
                   "\"n\":1.0,\"deep\":{\"authorization\":\"Bearer abcdefgh\"}}",
                   "[1]"),
               0);
    tuple = stored("assistant:x");
    assert_slice(hd_from_public(tuple->metadata),
                 HD_S("{\"api_key\":\"heddle:secret:api_key\",\"n\":1.0,"
                      "\"deep\":{\"authorization\":\"heddle:secret:deep.authorization\"},"
                      "\"run_id\":\"r1\",\"step\":7,\"runtime\":\"js\"}"));
    heddle_tuple_free(tuple);
    hd_val_unref(more);
}

static void test_secrets(void **state)
{
    static const struct hd_slice blobs[] = {HD_S_INIT("\x81\xa1k\xacsesame\"street"),
                                            HD_S_INIT("{\"k\":\"sesame\\\"street\"}")};
    struct hd_val *secrets;

    (void)state;
    assert_err(
        hd_val_parse_json(
            HD_S(
                "{\"heddle:secret:model.\\\"key\":\"sesame\\\"street\",\"heddle:secret:n\":\"x\"}"),
            &secrets, NULL),
        0);
    w.scope.secrets = secrets;
    assert_err(put(PUT(1, "null"), "1", "{\"note\":\"key sesame\\\"street!\"}",
                   "[\"x\",\"sesame\\\"street\",\"a sesame\\\"street b\"]"),
               0);
    assert_err(ask_with(&w, "writes",
                        "{\"ns\":\"\",\"id\":\"" ID(
                            1) "\",\"task_id\":\"t\",\"task_path\":\"p\","
                               "\"values\":[[\"a\",\"msgpack\",0],[\"b\",\"hd1\",1]]}",
                        blobs, 2),
               0);
    assert_err(ask(&w, "get", "{\"ns\":\"\"}"), 0);
    assert_slice(text("metadata"),
                 HD_S("{\"note\":\"key heddle:secret:model.\\\"key!\",\"runtime\":\"python\"}"));
    assert_slice(
        blob(at(at(part("values"), 0), 2)),
        HD_S("[\"x\",\"heddle:secret:model.\\\"key\",\"a heddle:secret:model.\\\"key b\"]"));
    assert_slice(blob(at(at(part("writes"), 0), 5)), HD_S("\x81\xa1k\xac*************"));
    assert_slice(blob(at(at(part("writes"), 1), 5)),
                 HD_S("{\"k\":\"heddle:secret:model.\\\"key\"}"));
    hd_val_unref(secrets);
}

static void test_writes(void **state)
{
    static const struct hd_slice blobs[] = {HD_S_INIT("1"), HD_S_INIT("{\"$\":\"interrupt\"}")};

    (void)state;
    put_three();
    assert_err(ask_with(&w, "writes",
                        "{\"ns\":\"\",\"id\":\"" ID(
                            3) "\",\"task_id\":\"t1\",\"task_path\":\"~a\","
                               "\"values\":[[\"log\",\"hd1\",0],[\"__interrupt__\",\"hd1\",1],"
                               "[\"c\",\"hd1\",\"in the head\"]]}",
                        blobs, 2),
               0);
    assert_int_equal(said(&w).len, 0);
    assert_err(ask(&w, "get", "{\"ns\":\"\"}"), 0);
    assert_int_equal(hd_json_size(part("writes")), 3);
    /* Ordered by (task, idx): an interrupt is -3. */
    assert_slice(hd_json_string(at(at(part("writes"), 0), 0)), HD_S("t1"));
    assert_slice(hd_json_string(at(at(part("writes"), 0), 1)), HD_S("~a"));
    assert_slice(hd_json_number_text(at(at(part("writes"), 0), 2)), HD_S("-3"));
    assert_slice(hd_json_string(at(at(part("writes"), 0), 3)), HD_S("__interrupt__"));
    assert_slice(blob(at(at(part("writes"), 1), 5)), HD_S("1"));
    assert_slice(blob(at(at(part("writes"), 2), 5)), HD_S("in the head"));
    assert_int_equal(hd_json_size(part("sends")), 0);
}

static void put_record(int64_t created)
{
    struct hd_batch_builder batch;
    struct hd_batch view;
    struct hd_thread_rec thread;

    hd_thread_init(&thread, HD_S("ann"), HD_S("t1"));
    thread.created_at = created;
    hd_batch_init(&batch);
    assert_err(hd_thread_add(&batch, &thread), 0);
    view = hd_batch_view(&batch);
    assert_err(hd_rows_apply(w.app.store, HD_S("ann:t1"), &view, NULL, NULL), 0);
    hd_batch_fini(&batch);
}

/* A deleted thread is not created again. */
static void test_guard(void **state)
{
    static const struct hd_slice one = HD_S_INIT("1");

    (void)state;
    w.scope.guard = 77;
    assert_err(put(PUT(1, "null"), "1", "{}", "[1]"), HD_ECLOSED);
    assert_err(ask_with(&w, "writes",
                        "{\"ns\":\"\",\"id\":\"" ID(1) "\",\"task_id\":\"t\",\"task_path\":\"\","
                                                       "\"values\":[[\"log\",\"hd1\",0]]}",
                        &one, 1),
               HD_ECLOSED);
    put_record(77);
    assert_err(put(PUT(1, "null"), "1", "{}", "[1]"), 0);
    w.scope.guard = 78;
    assert_err(put(PUT(2, "null"), "2", "{}", "[1]"), HD_ECLOSED);
    w.scope.guard = 77;
    w.scope.token = 5; /* there is no such hold */
    assert_err(put(PUT(2, "null"), "2", "{}", "[1]"), HD_ETAKEN);
    assert_err(ask(&w, "get", "{\"ns\":\"\"}"), 0);
    assert_slice(hd_json_string(part("id")), HD_S(ID(1)));
}

/* ---- list ---- */

static size_t tuple_count(void)
{
    return hd_json_size(hd_json_get(hd_json_root(&w.answer), HD_S("tuples")));
}

static struct hd_slice id_at(size_t index)
{
    return hd_json_string(
        hd_json_get(at(hd_json_get(hd_json_root(&w.answer), HD_S("tuples")), index), HD_S("id")));
}

static bool has_more(void)
{
    return hd_json_is_true(hd_json_get(hd_json_root(&w.answer), HD_S("more")));
}

static void test_list(void **state)
{
    (void)state;
    put_three();
    assert_err(ask(&w, "list", "{\"ns\":\"\"}"), 0);
    assert_int_equal(tuple_count(), 3);
    assert_slice(id_at(0), HD_S(ID(3)));
    assert_slice(id_at(2), HD_S(ID(1)));
    assert_false(has_more());
    assert_slice(w.request.blobs[2], HD_S("[1,2,3]"));
    assert_slice(w.request.blobs[8], HD_S("[1]"));

    assert_err(ask(&w, "list", "{\"ns\":null,\"before\":\"" ID(3) "\",\"limit\":1}"), 0);
    assert_int_equal(tuple_count(), 1);
    assert_slice(id_at(0), HD_S(ID(2)));
    assert_err(ask(&w, "list", "{\"ns\":null,\"id\":\"" ID(1) "\",\"limit\":null}"), 0);
    assert_int_equal(tuple_count(), 1);
    assert_err(ask(&w, "list", "{\"filter\":{\"source\":\"loop\"},\"limit\":5}"), 0);
    assert_int_equal(tuple_count(), 2);
    assert_err(ask(&w, "list", "{\"ns\":\"\",\"limit\":0}"), 0);
    assert_int_equal(tuple_count(), 0);
    /* Those of another agent in the thread are not listed. */
    w.scope.root = HD_S("assistant:y");
    assert_err(ask(&w, "list", "{\"ns\":null}"), 0);
    assert_int_equal(tuple_count(), 0);
}

static void test_pages(void **state)
{
    char head[512], last[40] = "";
    size_t seen = 0;

    (void)state;
    for (int i = 0; i < 150; i++) {
        snprintf(head, sizeof(head),
                 "{\"ns\":\"\",\"id\":\"c%04d\",\"checkpoint\":{\"v\":4,\"channel_versions\":{}},"
                 "\"metadata\":{},\"new_versions\":{}}",
                 i);
        assert_err(ask(&w, "put", head), 0);
    }
    do {
        snprintf(head, sizeof(head), "{\"ns\":null,\"before\":\"%s\"}", last);
        assert_err(ask(&w, "list", head), 0);
        seen += tuple_count();
        assert_true(tuple_count() > 0);
        snprintf(last, sizeof(last), "%s", id_at(tuple_count() - 1).ptr);
    } while (has_more());
    assert_int_equal(seen, 150);
    assert_string_equal(last, "c0000");
}

/* With more values than a frame has blobs, the head contains the rest. */
static void test_many_values(void **state)
{
    struct hd_buf head;
    hd_json_val writes;
    size_t in_head = 0;

    (void)state;
    put_three();
    hd_buf_init(&head, 1 << 22);
    assert_err(
        hd_buf_printf(&head, "{\"ns\":\"\",\"id\":\"%s\",\"task_id\":\"t\",\"values\":[", ID(3)),
        0);
    for (int i = 0; i < MANY; i++)
        assert_err(hd_buf_printf(&head, "%s[\"c%d\",\"hd1\",\"%d\"]", i ? "," : "", i, i), 0);
    assert_err(hd_buf_append(&head, "]}", 3), 0);
    assert_err(ask(&w, "writes", head.ptr), 0);
    hd_buf_fini(&head);
    assert_err(ask(&w, "get", "{\"ns\":\"\"}"), 0);
    assert_int_equal(w.request.blob_count, 4096);
    writes = part("writes");
    assert_int_equal(hd_json_size(writes), MANY);
    for (struct hd_json_iter it = hd_json_iter(writes); hd_json_next(&it);) {
        hd_json_val data = at(it.val, 5);

        in_head += hd_json_is_string(data);
        assert_slice(hd_json_is_string(data) ? hd_json_string(data) : blob(data),
                     hd_json_number_text(at(it.val, 2)));
    }
    assert_int_equal(in_head, MANY - (4096 - 3));
}

/* ---- history ---- */

static void test_history(void **state)
{
    static const struct hd_slice blobs[] = {HD_S_INIT("\"w1\"")};
    hd_json_val channel;

    (void)state;
    put_three();
    assert_err(ask_with(&w, "writes",
                        "{\"ns\":\"\",\"id\":\"" ID(
                            2) "\",\"task_id\":\"t1\",\"task_path\":\"~a\","
                               "\"values\":[[\"log\",\"hd1\",0],[\"new\",\"hd1\",0]]}",
                        blobs, 1),
               0);
    assert_err(
        ask(&w, "history", "{\"ns\":\"\",\"id\":\"" ID(3) "\",\"channels\":[\"log\",\"new\"]}"), 0);
    channel = hd_json_get(hd_json_root(&w.answer), HD_S("channels"));
    assert_int_equal(hd_json_size(channel), 2);
    assert_true(hd_json_is_null(hd_json_get(hd_json_get(channel, HD_S("new")), HD_S("seed"))));
    channel = hd_json_get(channel, HD_S("log"));
    assert_slice(blob(at(hd_json_get(channel, HD_S("seed")), 1)), HD_S("[1,2]"));
    assert_int_equal(hd_json_size(hd_json_get(channel, HD_S("writes"))), 1);
    assert_slice(blob(at(at(hd_json_get(channel, HD_S("writes")), 0), 4)), HD_S("\"w1\""));
}

/* ---- errors ---- ------ */

static void test_refused(void **state)
{
    static const struct {
        const char *op, *head;
    } list[] = {
        {"get", "{\"ns\":1}"},
        {"get", "{\"id\":[]}"},
        {"list", "{\"limit\":-1}"},
        {"list", "{\"filter\":[]}"},
        {"put", "{\"id\":\"a\"}"},
        {"put", "{\"checkpoint\":{}}"},
        {"put", "{\"id\":\"a\",\"checkpoint\":{\"$blob\":0}}"},
        {"put", "{\"id\":\"a\",\"checkpoint\":{\"$blob\":-1}}"},
        {"put", "{\"id\":\"a\",\"checkpoint\":{},\"metadata\":[]}"},
        {"put", "{\"id\":\"a\",\"checkpoint\":[]}"},
        {"put", "{\"id\":\"a\",\"checkpoint\":{},\"values\":{}}"},
        {"put", "{\"id\":\"a\",\"checkpoint\":{},\"values\":[[\"a\",\"hd1\"]]}"},
        {"put", "{\"id\":\"a\",\"checkpoint\":{},\"values\":[[\"a\",\"hd1\",0]]}"},
        {"put", "{\"id\":\"a\",\"checkpoint\":{},\"values\":[[1,\"hd1\",\"x\"]]}"},
        {"writes", "{\"values\":[[\"a\",\"hd1\",\"x\"]]}"},
        {"history", "{\"id\":\"a\"}"},
        {"history", "{\"id\":\"a\",\"channels\":[1]}"},
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(list); i++) {
        if (ask(&w, list[i].op, list[i].head) != HD_EINVAL)
            fail_msg("%s %s: %s", list[i].op, list[i].head, hd_error_name(w.request.fault.code));
        assert_true(w.request.fault.text[0]);
        assert_int_equal(w.request.head.len, 0);
    }
    assert_err(ask(&w, "get", "{}"), 0);
    assert_slice(said(&w), HD_S("{\"tuple\":null}"));
    w.scope.thread = HD_S("");
    assert_err(ask(&w, "get", "{}"), HD_EINVAL);
    assert_err(ask(&w, "what", "{}"), HD_EUNSUPPORTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_get, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_root, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_metadata, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_secrets, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_writes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_guard, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_list, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_pages, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_many_values, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_history, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_refused, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
