/* Items that graphs in workers read and write: worker/worker_items.c, items.c and
 * item_service_search.c. */
#include <stdio.h>

#include "tests/unit/worker_world.h"

#define PUT(key, value) \
    "{\"op\":\"put\",\"namespace\":[\"a\",\"b\"],\"key\":\"" key "\",\"value\":" value "}"
#define GET(key) "{\"op\":\"get\",\"namespace\":[\"a\",\"b\"],\"key\":\"" key "\"}"

static void items(const char *ops)
{
    char head[2048];

    snprintf(head, sizeof(head), "{\"op\":\"items\",\"call\":1,\"ops\":[%s]}", ops);
    if (ask(&w, "items", head))
        fail_msg("%s: %s", ops, w.request.fault.text);
}

static hd_json_val result(size_t index)
{
    struct hd_json_iter it = hd_json_iter(hd_json_get(hd_json_root(&w.answer), HD_S("results")));

    for (size_t i = 0; i <= index; i++)
        assert_true(hd_json_next(&it));
    return it.val;
}

/* The keys of a search result, in its order. */
static void assert_keys(hd_json_val list, const char *expected)
{
    struct hd_json_iter it = hd_json_iter(list);
    struct hd_buf keys;

    assert_true(hd_json_is_array(list));
    hd_buf_init(&keys, 1024);
    while (hd_json_next(&it))
        assert_err(hd_buf_append_slice(&keys, hd_json_string(hd_json_get(it.val, HD_S("key")))), 0);
    assert_slice(hd_buf_slice(&keys), hd_slice_cstr(expected));
    hd_buf_fini(&keys);
}

static void assert_json(hd_json_val val, const char *expected)
{
    struct hd_buf text;

    hd_buf_init(&text, 1 << 16);
    assert_err(hd_json_write_val(&text, val), 0);
    assert_slice(hd_buf_slice(&text), hd_slice_cstr(expected));
    hd_buf_fini(&text);
}

static void test_put_and_get(void **state)
{
    hd_json_val item;

    (void)state;
    items(PUT("k", "{\"n\":1.0}") "," GET("k"));
    assert_slice(said(&w), HD_S("{\"results\":[null,null]}")); /* the value before the put */
    items(GET("k") "," GET("l"));
    item = result(0);
    assert_json(hd_json_get(item, HD_S("namespace")), "[\"a\",\"b\"]");
    assert_json(hd_json_get(item, HD_S("key")), "\"k\"");
    assert_json(hd_json_get(item, HD_S("value")), "{\"n\":1.0}");
    assert_true(hd_json_is_string(hd_json_get(item, HD_S("created_at"))));
    assert_true(hd_json_is_string(hd_json_get(item, HD_S("updated_at"))));
    assert_null(hd_json_get(item, HD_S("score")));
    assert_true(hd_json_is_null(result(1)));
    items(PUT("k", "{\"n\":2}") "," PUT("k", "{\"n\":3}"));
    items(GET("k"));
    assert_json(hd_json_get(result(0), HD_S("value")), "{\"n\":3}");
    items(PUT("k", "null"));
    items(GET("k"));
    assert_true(hd_json_is_null(result(0)));
}

/* Items belong to the actor, not to the owner of the thread. */
static void items_belong_to_their_principal(void **state)
{
    (void)state;
    items(PUT("k", "{\"n\":1}"));
    w.scope.principal = HD_S("carl");
    items(GET("k"));
    assert_false(hd_json_is_null(result(0)));
    w.scope.actor = HD_S("ann");
    items(GET("k") ",{\"op\":\"search\",\"namespace_prefix\":[]},{\"op\":\"list_namespaces\"}");
    assert_slice(said(&w), HD_S("{\"results\":[null,[],[]]}"));
    w.scope.thread = HD_S(""); /* items need no thread */
    items(GET("k"));
}

static void test_search(void **state)
{
    (void)state;
    items(PUT("x", "{\"n\":1,\"c\":\"red\"}") "," PUT("y", "{\"n\":2}") "," PUT("z", "{\"n\":3}"));
    items("{\"op\":\"search\",\"namespace_prefix\":[\"a\"]}");
    assert_int_equal(hd_json_size(result(0)), 3);
    items("{\"op\":\"search\",\"namespace_prefix\":[\"a\",\"b\"],\"filter\":{\"n\":{\"$gte\":2}},"
          "\"limit\":10,\"offset\":0,\"query\":null,\"refresh_ttl\":true}");
    assert_int_equal(hd_json_size(result(0)), 2);
    items("{\"op\":\"search\",\"namespace_prefix\":[\"a\"],\"filter\":{\"c\":\"red\"}}");
    assert_keys(result(0), "x");
    items("{\"op\":\"search\",\"namespace_prefix\":[\"b\"]}");
    assert_keys(result(0), "");
    items("{\"op\":\"search\",\"namespace_prefix\":[],\"limit\":2,\"offset\":2}");
    assert_int_equal(hd_json_size(result(0)), 1);
}

static void test_namespaces(void **state)
{
    (void)state;
    items("{\"op\":\"put\",\"namespace\":[\"u\",\"1\",\"m\"],\"key\":\"k\",\"value\":{}},"
          "{\"op\":\"put\",\"namespace\":[\"u\",\"2\",\"m\"],\"key\":\"k\",\"value\":{}},"
          "{\"op\":\"put\",\"namespace\":[\"u\",\"2\",\"n\"],\"key\":\"k\",\"value\":{}},"
          "{\"op\":\"put\",\"namespace\":[\"v\"],\"key\":\"k\",\"value\":{}}");
    items("{\"op\":\"list_namespaces\",\"max_depth\":null,\"limit\":100,\"offset\":0}");
    assert_json(result(0), "[[\"u\",\"1\",\"m\"],[\"u\",\"2\",\"m\"],[\"u\",\"2\",\"n\"],[\"v\"]]");
    items("{\"op\":\"list_namespaces\",\"match_conditions\":["
          "{\"match_type\":\"suffix\",\"path\":[\"m\"]},"
          "{\"match_type\":\"prefix\",\"path\":[\"u\",\"*\"]},"
          "{\"match_type\":\"prefix\",\"path\":[\"*\",\"2\"]}]}");
    assert_json(result(0), "[[\"u\",\"2\",\"m\"]]");
    items("{\"op\":\"list_namespaces\",\"max_depth\":2,\"limit\":1,\"offset\":1}");
    assert_json(result(0), "[[\"u\",\"2\"]]");
}

static void test_secrets(void **state)
{
    struct hd_val *secrets;

    (void)state;
    assert_err(hd_val_parse_json(HD_S("{\"heddle:secret:key\":\"open-sesame\"}"), &secrets, NULL),
               0);
    w.scope.secrets = secrets;
    items(PUT("k", "{\"key\":\"open-sesame\"}"));
    items(GET("k"));
    assert_json(hd_json_get(result(0), HD_S("value")), "{\"key\":\"heddle:secret:key\"}");
    hd_val_unref(secrets);
}

/* A batch with an error is not applied at all. */
static void test_refused(void **state)
{
    static const char *const list[] = {
        "{}",
        "{\"ops\":{}}",
        "{\"ops\":[" PUT("good", "{}") ",1]}",
        "{\"ops\":[" PUT("good", "{}") ",{\"op\":\"swim\"}]}",
        "{\"ops\":[" PUT("good", "{}") "," PUT("", "{}") "]}",
        "{\"ops\":[" PUT("good", "{}") "," PUT("k", "[]") "]}",
        "{\"ops\":[" PUT("good",
                         "{}") ",{\"op\":\"put\",\"namespace\":[],\"key\":\"k\",\"value\":{}}]}",
        "{\"ops\":[" PUT("good", "{}") ",{\"op\":\"get\",\"namespace\":[\"a.b\"],\"key\":\"k\"}]}",
        "{\"ops\":[" PUT("good", "{}") ",{\"op\":\"get\",\"namespace\":[\"a\"],\"key\":7}]}",
        "{\"ops\":[" PUT("good", "{}") ",{\"op\":\"search\",\"limit\":-1}]}",
        "{\"ops\":[" PUT("good", "{}") ",{\"op\":\"search\",\"filter\":3}]}",
        "{\"ops\":[" PUT("good", "{}") ",{\"op\":\"search\",\"namespace_prefix\":\"a\"}]}",
        "{\"ops\":[" PUT("good", "{}") ",{\"op\":\"list_namespaces\",\"max_depth\":0}]}",
        "{\"ops\":[" PUT("good", "{}") ",{\"op\":\"list_namespaces\",\"match_conditions\":[{}]}]}",
        "{\"ops\":[" PUT("good", "{}") ",{\"op\":\"put\",\"namespace\":[\"a\"],\"key\":\"k\","
                                       "\"value\":{},\"ttl\":\"soon\"}]}",
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(list); i++) {
        if (ask(&w, "items", list[i]) != HD_EINVAL)
            fail_msg("%s: %s", list[i], hd_error_name(w.request.fault.code));
        assert_int_equal(w.request.head.len, 0);
    }
    items(GET("good"));
    assert_true(hd_json_is_null(result(0)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_put_and_get, set_up, tear_down),
        cmocka_unit_test_setup_teardown(items_belong_to_their_principal, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_search, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_namespaces, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_secrets, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_refused, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
