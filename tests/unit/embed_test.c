/* Texts of items at paths, selected as in LangGraph, and vectors: search/embed_text.c, embed.c. */
#include <math.h>

#include "base/json.h"
#include "search/embed.h"
#include "search/embed_text.h"
#include "tests/unit/check.h"

static const char value[] = "{\"a\": {\"b\": \"x\", \"n\": 1, \"f\": 1.5, \"t\": true, \"z\": "
                            "null}, \"l\": [{\"c\": \"p\"}, {\"c\": \"q\", \"d\": [1, 2]}, \"r\"], "
                            "\"k\": \"ü\\\"\", \"o\": {\"y\": 2, \"b\": {\"q\": 1, \"a\": []}}}";

static int find(const char *path, struct hd_embed_texts *texts)
{
    struct hd_json json;
    int err;

    assert_err(hd_json_parse(&json, hd_slice_cstr(value), NULL), 0);
    err = hd_embed_find(texts, hd_json_root(&json), hd_slice_cstr(path));
    hd_json_fini(&json);
    return err;
}

static void test_paths(void **state)
{
    static const struct {
        const char *path, *texts; /* with bars between them */
    } list[] = {
        {"$", "{\"a\": {\"b\": \"x\", \"f\": 1.5, \"n\": 1, \"t\": true, \"z\": null}, \"k\": "
              "\"ü\\\"\", \"l\": [{\"c\": \"p\"}, {\"c\": \"q\", \"d\": [1, 2]}, \"r\"], \"o\": "
              "{\"b\": {\"a\": [], \"q\": 1}, \"y\": 2}}"},
        {"", "{\"a\": {\"b\": \"x\", \"f\": 1.5, \"n\": 1, \"t\": true, \"z\": null}, \"k\": "
             "\"ü\\\"\", \"l\": [{\"c\": \"p\"}, {\"c\": \"q\", \"d\": [1, 2]}, \"r\"], \"o\": "
             "{\"b\": {\"a\": [], \"q\": 1}, \"y\": 2}}"},
        {"a.b", "x"},
        {"a.n", "1"},
        {"a.f", "1.5"},
        {"a.t", "True"},
        {"a.z", ""},
        {"a", "{\"b\": \"x\", \"f\": 1.5, \"n\": 1, \"t\": true, \"z\": null}"},
        {"l[0].c", "p"},
        {"l[-1]", "r"},
        {"l[*].c", "p|q"},
        {"l[5]", ""},
        {"l[x]", ""},
        {"l", "[{\"c\": \"p\"}, {\"c\": \"q\", \"d\": [1, 2]}, \"r\"]"},
        {"*", "{\"b\": \"x\", \"f\": 1.5, \"n\": 1, \"t\": true, \"z\": null}|[{\"c\": \"p\"}, "
              "{\"c\": \"q\", \"d\": [1, 2]}, \"r\"]|ü\"|{\"b\": {\"a\": [], \"q\": 1}, \"y\": 2}"},
        {"a.*", "x|1|1.5|True"},
        {"{k,a.b, a.n}", "ü\"|x|1"},
        {"o{y,b}", "2|{\"a\": [], \"q\": 1}"},
        {"l[1].d[*]", "1|2"},
        {"missing.x", ""},
        {"a..b", "x"},
        {".k", "ü\""},
        {"l[*]", "{\"c\": \"p\"}|{\"c\": \"q\", \"d\": [1, 2]}|r"},
        {"a.b.c", ""},
        {"{a.z,q}", ""},
        {"o.b", "{\"a\": [], \"q\": 1}"},
        {"l[-9]", ""},
        {"{l}", "[{\"c\": \"p\"}, {\"c\": \"q\", \"d\": [1, 2]}, \"r\"]"},
        {"l[[0]]", ""},
        {"k[0]", ""},
        {"{}", ""},
        {"[*]", ""},
        {"l.*.c", "p|q"},
        {"{a", ""},
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(list); i++) {
        struct hd_embed_texts texts = {.arena = NULL};
        struct hd_arena arena;
        struct hd_buf joined;

        hd_arena_init(&arena, 1 << 20);
        hd_buf_init(&joined, 1 << 20);
        texts.arena = &arena;
        assert_err(find(list[i].path, &texts), 0);
        for (size_t k = 0; k < texts.count; k++) {
            assert_err(hd_buf_append(&joined, "|", k > 0), 0);
            assert_err(hd_buf_append_slice(&joined, texts.list[k]), 0);
        }
        if (!hd_slice_eq(hd_buf_slice(&joined), hd_slice_cstr(list[i].texts)))
            print_error("%s\n", list[i].path);
        assert_slice(hd_buf_slice(&joined), hd_slice_cstr(list[i].texts));
        hd_buf_fini(&joined);
        hd_arena_fini(&arena);
    }
}

static void test_limits(void **state)
{
    struct hd_embed_texts texts = {.arena = NULL};
    char path[HD_EMBED_MAX_PATH + 2];
    struct hd_arena arena;
    int err = 0;

    (void)state;
    hd_arena_init(&arena, 1 << 20);
    texts.arena = &arena;
    memset(path, 'a', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    assert_err(find(path, &texts), HD_ELIMIT);
    path[sizeof(path) - 2] = '\0';
    assert_err(find(path, &texts), 0);
    assert_int_equal(texts.count, 0);
    while (!err)
        err = find("k", &texts);
    assert_err(err, HD_ELIMIT);
    assert_int_equal(texts.count, HD_EMBED_MAX_TEXTS);
    assert_err(find("$", &texts), HD_ELIMIT);
    hd_arena_fini(&arena);
}

/* The nearest of an item's vectors counts. */
static void test_nearness(void **state)
{
    float query[11] = {0.6f, [10] = 0.8f}, vectors[33] = {0};
    struct hd_slice packed;
    struct hd_arena arena;

    (void)state;
    hd_arena_init(&arena, 1 << 16);
    assert_true(isnan(hd_embed_nearness(query, 11, HD_S(""))));
    vectors[0] = -1;      /* the first: -0.6 */
    vectors[11 + 10] = 1; /* the second: 0.8 */
    vectors[22] = 1;      /* the third: 0.6 */
    assert_err(hd_embed_pack(vectors, 33, &arena, &packed), 0);
    assert_int_equal(packed.len, 33 * 4);
    assert_true(fabs(hd_embed_nearness(query, 11, packed) - 0.8) < 1e-6);
    packed.len = 11 * 4;
    assert_true(fabs(hd_embed_nearness(query, 11, packed) + 0.6) < 1e-6);
    hd_arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_nearness),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
