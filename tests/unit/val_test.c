/* Values: ownership, lists as views, members, text. */
#include "value/val.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/check.h"
#include "value/val_internal.h"

/* ---- helpers ---------------------------------------------------------- */

static struct hd_val *parse(const char *text)
{
    struct heddle_error fault = {0};
    struct hd_val *val = NULL;

    if (hd_val_parse(hd_slice_cstr(text), &val, &fault) != 0)
        fail_msg("%s: %s", text, fault.text);
    return val;
}

static struct hd_val *plain(const char *text)
{
    struct heddle_error fault = {0};
    struct hd_val *val = NULL;

    if (hd_val_parse_json(hd_slice_cstr(text), &val, &fault) != 0)
        fail_msg("%s: %s", text, fault.text);
    return val;
}

static void check_text(const struct hd_val *val, struct hd_slice expected, const char *file,
                       int line)
{
    struct hd_buf out;

    hd_buf_init(&out, 16 << 20);
    assert_err(hd_val_write(&out, val), 0);
    check_slice(hd_slice(out.ptr ? out.ptr : "", out.len), expected, file, line);
    hd_buf_fini(&out);
}

#define assert_text(val, expected) check_text((val), hd_slice_cstr(expected), __FILE__, __LINE__)

static void check_rendered(const struct hd_val *val, struct hd_slice expected, const char *file,
                           int line)
{
    struct hd_buf out;

    hd_buf_init(&out, 16 << 20);
    assert_err(hd_val_render(&out, val), 0);
    check_slice(hd_slice(out.ptr ? out.ptr : "", out.len), expected, file, line);
    hd_buf_fini(&out);
}

#define assert_rendered(val, expected) \
    check_rendered((val), hd_slice_cstr(expected), __FILE__, __LINE__)

static struct hd_val *numbers(int64_t from, int64_t to)
{
    struct hd_val *list = hd_val_list();

    for (int64_t i = from; i < to; i++)
        list = hd_val_append(list, hd_val_int(i));
    assert_non_null(list);
    return list;
}

static void assert_numbers(const struct hd_val *list, int64_t from, int64_t to)
{
    int64_t n;

    assert_int_equal(hd_val_count(list), to - from);
    for (int64_t i = from; i < to; i++) {
        assert_true(hd_val_get_int(hd_val_at(list, (size_t)(i - from)), &n));
        assert_int_equal(n, i);
    }
}

static const struct hd_val_buffer *buffer_of(const struct hd_val *list)
{
    return ((const struct hd_val_array *)list)->buffer;
}

/* ---- scalars ---------------------------------------------------------- */

static void scalars_keep_their_value(void **state)
{
    struct hd_val *s = hd_val_string(hd_slice("a\0b", 3)), *f = hd_val_float(0.5),
                  *i = hd_val_int(-7), *p = hd_val_printf("%s-%d", "n", 3);
    double real;
    int64_t integer = 0;

    (void)state;
    assert_slice(hd_val_get_string(s), hd_slice("a\0b", 3));
    assert_int_equal(hd_val_get_string(s).ptr[3], 0);
    assert_true(hd_val_get_double(f, &real) && real == 0.5);
    assert_true(hd_val_get_int(i, &integer) && integer == -7);
    assert_true(hd_val_get_double(i, &real) && real == -7);
    assert_false(hd_val_get_int(f, &integer));
    assert_int_equal(integer, -7);
    assert_slice(hd_val_get_string(p), HD_S("n-3"));
    assert_true(hd_val_is_true(hd_val_bool(true)));
    assert_false(hd_val_is_true(hd_val_bool(false)));
    assert_false(hd_val_is_true(i));
    assert_slice(hd_val_get_string(i), HD_S(""));
    hd_val_unref(s);
    hd_val_unref(f);
    hd_val_unref(i);
    hd_val_unref(p);
}

static void missing_members_read_as_null(void **state)
{
    (void)state;
    assert_true(hd_val_is_null(NULL));
    assert_int_equal(hd_val_count(NULL), 0);
    assert_null(hd_val_get(NULL, HD_S("x")));
    assert_null(hd_val_at(NULL, 0));
    assert_null(hd_val_at_signed(hd_val_null(), -1));
    assert_false(hd_val_truth(NULL));
    assert_true(hd_val_equal(NULL, hd_val_null()));
    assert_text(NULL, "null");
    hd_val_unref(NULL);
    assert_null(hd_val_ref(NULL));
}

static void floats_are_written_as_python_writes_them(void **state)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {
        {1, "1.0"},
        {0, "0.0"},
        {0.1, "0.1"},
        {-2.5, "-2.5"},
        {1e15, "1000000000000000.0"},
        {1e16, "1e+16"},
        {123456789012345680.0, "1.2345678901234568e+17"},
        {1e-4, "0.0001"},
        {1e-5, "1e-05"},
        {1.5e-7, "1.5e-07"},
        {5e-324, "5e-324"},
        {2.225073858507201e-308, "2.225073858507201e-308"},
        {1.7976931348623157e308, "1.7976931348623157e+308"},
        {0.1 + 0.2, "0.30000000000000004"},
        {1152921504606846976.0, "1.152921504606847e+18"},
        {100, "100.0"},
        {1e22, "1e+22"},
        {123.456, "123.456"},
        {9007199254740993.0, "9007199254740992.0"},
        {(double)NAN, "{\"$\":\"float\",\"v\":\"nan\"}"},
        {(double)INFINITY, "{\"$\":\"float\",\"v\":\"inf\"}"},
        {-(double)INFINITY, "{\"$\":\"float\",\"v\":\"-inf\"}"},
        {-0.0, "{\"$\":\"float\",\"v\":\"-0\"}"},
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct hd_val *val = hd_val_float(cases[i].value);

        assert_text(val, cases[i].text);
        hd_val_unref(val);
    }
}

static void integers_that_are_not_safe_are_records(void **state)
{
    static const struct {
        int64_t value;
        const char *text;
    } cases[] = {
        {9007199254740991, "9007199254740991"},
        {-9007199254740991, "-9007199254740991"},
        {9007199254740992, "{\"$\":\"int\",\"v\":\"9007199254740992\"}"},
        {INT64_MIN, "{\"$\":\"int\",\"v\":\"-9223372036854775808\"}"},
        {INT64_MAX, "{\"$\":\"int\",\"v\":\"9223372036854775807\"}"},
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct hd_val *val = hd_val_int(cases[i].value), *again = parse(cases[i].text);
        int64_t integer;

        assert_text(val, cases[i].text);
        assert_true(hd_val_get_int(again, &integer));
        assert_int_equal(integer, cases[i].value);
        hd_val_unref(val);
        hd_val_unref(again);
    }
}

/* ---- lists ------------------------------------------------------------ */

static void older_views_keep_their_length(void **state)
{
    struct hd_val *list = numbers(0, 3), *views[50];

    (void)state;
    for (int i = 0; i < 50; i++) {
        views[i] = hd_val_ref(list);
        list = hd_val_append(list, hd_val_int(3 + i));
        assert_ptr_equal(buffer_of(list), buffer_of(views[i]));
    }
    for (int i = 0; i < 50; i++)
        assert_numbers(views[i], 0, 3 + i);
    assert_numbers(list, 0, 53);
    assert_int_equal(hd_val_common(views[4], list), 7);
    for (int i = 0; i < 50; i++)
        hd_val_unref(views[i]);
    hd_val_unref(list);
}

static void the_second_append_to_a_view_gets_its_own_buffer(void **state)
{
    struct hd_val *base = numbers(0, 5), *a, *b;

    (void)state;
    a = hd_val_append(hd_val_ref(base), hd_val_int(5));
    b = hd_val_append(hd_val_ref(base), hd_val_cstr("other"));
    assert_ptr_equal(buffer_of(a), buffer_of(base));
    assert_ptr_not_equal(buffer_of(b), buffer_of(base));
    assert_numbers(a, 0, 6);
    assert_numbers(base, 0, 5);
    assert_text(b, "[0,1,2,3,4,\"other\"]");
    assert_int_equal(hd_val_common(a, b), 0);
    hd_val_unref(base);
    hd_val_unref(a);
    hd_val_unref(b);
}

/* A dropped append must not make the next append copy. */
static void a_dropped_view_gives_its_end_back(void **state)
{
    struct hd_val *base = numbers(0, 5), *snapshot, *a, *b;

    (void)state;
    snapshot = hd_val_ref(base);
    base = hd_val_append(base, hd_val_int(5));
    a = hd_val_append(hd_val_append(hd_val_ref(base), hd_val_cstr("x")), hd_val_cstr("y"));
    hd_val_unref(a);
    assert_int_equal(buffer_of(base)->used, 6);
    b = hd_val_append(hd_val_ref(base), hd_val_int(6));
    assert_ptr_equal(buffer_of(b), buffer_of(base));
    assert_numbers(b, 0, 7);
    assert_numbers(snapshot, 0, 5);
    hd_val_unref(base); /* while `b` and `snapshot` are in use */
    assert_numbers(b, 0, 7);
    hd_val_unref(b);
    assert_numbers(snapshot, 0, 5);
    snapshot = hd_val_append(snapshot, hd_val_int(5));
    assert_numbers(snapshot, 0, 6);
    hd_val_unref(snapshot);
}

/* Leaks are found by the sanitizer. */
static void a_list_may_hold_itself_as_it_was(void **state)
{
    struct hd_val *list = numbers(0, 2), *deep, *held;

    (void)state;
    list = hd_val_append(hd_val_ref(list), list);
    assert_text(list, "[0,1,[0,1]]");
    deep = hd_val_with(hd_val_object(), HD_S("was"), hd_val_ref(list));
    held = hd_val_append(hd_val_ref(list), deep);
    assert_text(held, "[0,1,[0,1],{\"was\":[0,1,[0,1]]}]");
    held = hd_val_append(held, hd_val_int(9));
    hd_val_unref(list);
    list = hd_val_extend(hd_val_ref(held), held);
    hd_val_unref(held);
    assert_int_equal(hd_val_count(list), 10);
    hd_val_unref(list);
}

static void extend_takes_all_elements(void **state)
{
    struct hd_val *a = numbers(0, 3), *b = numbers(3, 20), *twice;

    (void)state;
    a = hd_val_extend(a, b);
    assert_numbers(a, 0, 20);
    twice = hd_val_extend(hd_val_ref(a), a);
    assert_int_equal(hd_val_count(twice), 40);
    assert_numbers(a, 0, 20);
    hd_val_unref(twice);
    twice = hd_val_extend(hd_val_list(), a);
    assert_numbers(twice, 0, 20);
    hd_val_unref(twice);
    hd_val_unref(b);
    b = hd_val_list();
    a = hd_val_extend(a, b);
    assert_numbers(a, 0, 20);
    assert_null(hd_val_extend(hd_val_ref(a), hd_val_null()));
    hd_val_unref(a);
    hd_val_unref(b);
}

static void replace_and_slice_leave_the_list_alone(void **state)
{
    struct hd_val *list = numbers(0, 5), *other, *part;

    (void)state;
    other = hd_val_replace(hd_val_ref(list), 1, hd_val_cstr("one"));
    assert_text(other, "[0,\"one\",2,3,4]");
    assert_numbers(list, 0, 5);
    part = hd_val_slice(list, 1, 3);
    assert_numbers(part, 1, 3);
    hd_val_unref(part);
    part = hd_val_slice(list, 4, 99);
    assert_numbers(part, 4, 5);
    part = hd_val_append(part, hd_val_int(5));
    assert_numbers(part, 4, 6);
    hd_val_unref(part);
    part = hd_val_slice(list, 3, 2);
    assert_text(part, "[]");
    hd_val_unref(part);
    part = hd_val_slice(list, 0, 5);
    assert_ptr_equal(part, list);
    hd_val_unref(part);
    assert_true(hd_val_at_signed(list, -1) == hd_val_at(list, 4));
    assert_null(hd_val_at_signed(list, -6));
    assert_null(hd_val_at(list, 5));
    hd_val_unref(list);
    other = hd_val_replace(other, 4, hd_val_null()); /* in place now */
    assert_text(other, "[0,\"one\",2,3,null]");
    hd_val_unref(other);
}

/* ---- objects ---------------------------------------------------------- */

static void members_keep_their_order(void **state)
{
    struct hd_val *object = plain("{\"b\":1,\"a\":2,\"c\":3}"), *other;

    (void)state;
    other = hd_val_with(hd_val_ref(object), HD_S("a"), hd_val_int(9));
    assert_text(other, "{\"b\":1,\"a\":9,\"c\":3}");
    assert_text(object, "{\"b\":1,\"a\":2,\"c\":3}");
    other = hd_val_without(other, HD_S("b"));
    other = hd_val_with(other, HD_S("b"), hd_val_null());
    assert_text(other, "{\"a\":9,\"c\":3,\"b\":null}");
    other = hd_val_merge(other, object);
    assert_text(other, "{\"a\":2,\"c\":3,\"b\":1}");
    other = hd_val_without(other, HD_S("none"));
    assert_true(hd_val_equal(object, other));
    hd_val_unref(object);
    hd_val_unref(other);
}

static void large_objects_find_their_members(void **state)
{
    struct hd_val *object = hd_val_object(), *copy;
    char key[16];
    int64_t n;

    (void)state;
    for (int i = 0; i < 2000; i++) {
        snprintf(key, sizeof(key), "k%d", i);
        object = hd_val_with(object, hd_slice_cstr(key), hd_val_int(i));
    }
    copy = hd_val_ref(object);
    for (int i = 0; i < 1995; i += 2) {
        snprintf(key, sizeof(key), "k%d", i);
        object = hd_val_without(object, hd_slice_cstr(key));
    }
    for (int i = 0; i < 2000; i++) {
        snprintf(key, sizeof(key), "k%d", i);
        assert_true(hd_val_get_int(hd_val_get(copy, hd_slice_cstr(key)), &n));
        assert_int_equal(n, i);
        assert_true((hd_val_get(object, hd_slice_cstr(key)) != NULL) == (i % 2 == 1 || i > 1995));
    }
    assert_int_equal(hd_val_count(object), 1002);
    hd_val_unref(copy);
    for (int i = 1; i < 2000; i += 2) {
        snprintf(key, sizeof(key), "k%d", i);
        object = hd_val_without(object, hd_slice_cstr(key));
    }
    assert_text(object, "{\"k1996\":1996,\"k1998\":1998}");
    hd_val_unref(object);
}

static void members_of_messages_go_where_they_belong(void **state)
{
    struct hd_val *message = hd_val_message("ai", hd_val_cstr("hi"), NULL);

    (void)state;
    message = hd_val_with(message, HD_S("usage_metadata"), hd_val_object());
    message = hd_val_with(message, HD_S("tool_calls"), hd_val_list());
    message = hd_val_with(message, HD_S("name"), hd_val_cstr("n"));
    message = hd_val_with(message, HD_S("id"), hd_val_cstr("i"));
    assert_text(message, "{\"$\":\"message\",\"type\":\"ai\",\"content\":\"hi\",\"id\":\"i\","
                         "\"name\":\"n\",\"tool_calls\":[],\"usage_metadata\":{}}");
    assert_int_equal(hd_val_kind(message), HD_KIND_MESSAGE);
    assert_null(hd_val_get(message, HD_S("$")));
    hd_val_unref(message);
}

static void records_are_written(void **state)
{
    struct hd_val *val = hd_val_list();

    (void)state;
    val = hd_val_append(val, hd_val_send(HD_S("n"), hd_val_int(1)));
    val = hd_val_append(val, hd_val_interrupt(hd_val_cstr("?"), HD_S("id")));
    val = hd_val_append(val, hd_val_overwrite(hd_val_null()));
    val = hd_val_append(val, hd_val_set(hd_val_list()));
    val = hd_val_append(val, hd_val_remove(HD_S("m")));
    assert_text(val, "[{\"$\":\"send\",\"node\":\"n\",\"arg\":1},"
                     "{\"$\":\"interrupt\",\"value\":\"?\",\"id\":\"id\"},"
                     "{\"$\":\"overwrite\",\"value\":null},{\"$\":\"set\",\"items\":[]},"
                     "{\"$\":\"message\",\"type\":\"remove\",\"content\":\"\",\"id\":\"m\"}]");
    hd_val_unref(val);
}

/* ---- truth, equality, order ------------------------------------------- */

static void truth_is_as_documented(void **state)
{
    static const char *const falses[] = {"null",
                                         "false",
                                         "0",
                                         "0.0",
                                         "\"\"",
                                         "[]",
                                         "{}",
                                         "{\"$\":\"set\",\"items\":[]}",
                                         "{\"$\":\"int\",\"v\":\"0\"}",
                                         "{\"$\":\"float\",\"v\":\"-0\"}",
                                         "{\"$\":\"undefined\"}",
                                         "{\"$\":\"map\",\"items\":[]}",
                                         "{\"$\":\"bytes\",\"v\":\"\"}"};
    static const char *const trues[] = {"true",
                                        "1",
                                        "-0.5",
                                        "\"a\"",
                                        "[0]",
                                        "{\"a\":0}",
                                        "{\"$\":\"set\",\"items\":[0]}",
                                        "{\"$\":\"int\",\"v\":\"5\"}",
                                        "{\"$\":\"float\",\"v\":\"nan\"}",
                                        "{\"$\":\"send\",\"node\":\"\",\"arg\":null}",
                                        "{\"$\":\"strange\"}"};

    (void)state;
    for (size_t i = 0; i < HD_COUNT(falses); i++) {
        struct hd_val *val = parse(falses[i]);

        if (hd_val_truth(val))
            fail_msg("%s is true", falses[i]);
        hd_val_unref(val);
    }
    for (size_t i = 0; i < HD_COUNT(trues); i++) {
        struct hd_val *val = parse(trues[i]);

        if (!hd_val_truth(val))
            fail_msg("%s is false", trues[i]);
        hd_val_unref(val);
    }
}

static void equality_is_by_value(void **state)
{
    static const struct {
        const char *a, *b;
        bool is_equal;
    } cases[] = {
        {"1", "1.0", true},
        {"true", "1", false},
        {"null", "false", false},
        {"9007199254740991", "9007199254740991.0", true},
        {"{\"$\":\"int\",\"v\":\"9007199254740993\"}", "9007199254740992.0", false},
        {"{\"$\":\"float\",\"v\":\"nan\"}", "{\"$\":\"float\",\"v\":\"nan\"}", false},
        {"{\"$\":\"float\",\"v\":\"-0\"}", "0", true},
        {"\"a\"", "\"a\"", true},
        {"\"a\"", "\"b\"", false},
        {"[1,2]", "[1.0,2]", true},
        {"[1,2]", "[1,2,3]", false},
        {"{\"a\":1,\"b\":2}", "{\"b\":2,\"a\":1}", true},
        {"{\"a\":1,\"b\":2}", "{\"b\":2,\"c\":1}", false},
        {"{\"$\":\"strange\",\"a\":1}", "{\"$\":\"strange\",\"a\":1}", true},
        {"{\"$\":\"strange\",\"a\":1}", "{\"$\":\"other\",\"a\":1}", false},
        {"{\"$\":\"overwrite\",\"value\":1}", "{\"value\":1}", false},
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct hd_val *a = parse(cases[i].a), *b = parse(cases[i].b);

        if (hd_val_equal(a, b) != cases[i].is_equal || hd_val_equal(b, a) != cases[i].is_equal)
            fail_msg("%s and %s", cases[i].a, cases[i].b);
        hd_val_unref(a);
        hd_val_unref(b);
    }
}

static void sums_and_order_are_pythons(void **state)
{
    static const struct {
        const char *a, *b, *sum; /* canonical text or Python's error */
        int order;               /* 9: not comparable */
    } cases[] = {
        {"1", "2", "3", -1},
        {"1", "2.5", "3.5", -1},
        {"true", "1", "2", 0},
        {"\"a\"", "\"b\"", "\"ab\"", -1},
        {"\"\"", "\"\"", "\"\"", 0},
        {"[1]", "[0,3]", "[1,0,3]", 1},
        {"[1]", "[1,3]", "[1,1,3]", -1},
        {"{\"$\":\"int\",\"v\":\"9223372036854775807\"}", "-1",
         "{\"$\":\"int\",\"v\":\"9223372036854775806\"}", 1},
        {"{\"$\":\"int\",\"v\":\"9223372036854775807\"}", "1",
         "the sum of two integers does not fit into 64 bits", 1},
        {"{\"$\":\"int\",\"v\":\"9007199254740993\"}", "9007199254740992.0",
         "1.8014398509481984e+16", 1},
        {"{\"$\":\"float\",\"v\":\"nan\"}", "1", "{\"$\":\"float\",\"v\":\"nan\"}", 2},
        {"1", "{\"$\":\"float\",\"v\":\"inf\"}", "{\"$\":\"float\",\"v\":\"inf\"}", -1},
        {"\"a\"", "1", "can only concatenate str (not \"int\") to str", 9},
        {"[]", "{}", "can only concatenate list (not \"dict\") to list", 9},
        {"1", "null", "unsupported operand type(s) for +: 'int' and 'NoneType'", 9},
        {"{}", "{}", "unsupported operand type(s) for +: 'dict' and 'dict'", 9},
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct hd_val *a = parse(cases[i].a), *b = parse(cases[i].b), *sum = NULL;
        struct heddle_error fault = {0};
        int order = 9;

        if (hd_val_compare(a, b, &order, NULL) == 0)
            assert_int_equal(order, cases[i].order);
        else
            assert_int_equal(9, cases[i].order);
        if (hd_val_add(a, b, &sum, &fault) == 0)
            assert_text(sum, cases[i].sum);
        else
            assert_string_equal(fault.text, cases[i].sum);
        hd_val_unref(b);
        hd_val_unref(sum);
    }
}

/* ---- text ------------------------------------------------------------- */

static void read_vectors(struct hd_json *json)
{
    const char *dir = getenv("HD_TEST_DATA");
    char path[4096];
    struct hd_buf text;
    FILE *file;

    snprintf(path, sizeof(path), "%s/encoding.json", dir ? dir : "tests/data");
    hd_buf_init(&text, 16 << 20);
    file = fopen(path, "rb");
    assert_non_null(file);
    assert_err(hd_buf_reserve(&text, 1 << 20), 0);
    text.len = fread(text.ptr, 1, 1 << 20, file);
    fclose(file);
    assert_err(hd_json_parse(json, hd_buf_slice(&text), NULL), 0);
    hd_buf_fini(&text);
}

static void vectors_read_write_and_render(void **state)
{
    struct hd_json json;
    struct hd_json_iter it;
    size_t count = 0;

    (void)state;
    read_vectors(&json);
    it = hd_json_iter(hd_json_get(hd_json_root(&json), HD_S("valid")));
    while (hd_json_next(&it)) {
        struct hd_slice text = hd_json_string(hd_json_get(it.val, HD_S("hd1")));
        struct hd_buf rendered;
        struct hd_val *val;

        assert_err(hd_val_parse(text, &val, NULL), 0);
        check_text(val, text, __FILE__, __LINE__);
        hd_buf_init(&rendered, 1 << 20);
        assert_err(hd_json_write_val(&rendered, hd_json_get(it.val, HD_S("render"))), 0);
        check_rendered(val, hd_buf_slice(&rendered), __FILE__, __LINE__);
        hd_buf_fini(&rendered);
        hd_val_unref(val);
        count++;
    }
    assert_true(count >= 80);
    hd_json_fini(&json);
}

static void invalid_vectors_are_refused(void **state)
{
    struct hd_json json;
    struct hd_json_iter it;
    size_t count = 0;

    (void)state;
    read_vectors(&json);
    it = hd_json_iter(hd_json_get(hd_json_root(&json), HD_S("invalid")));
    while (hd_json_next(&it)) {
        hd_json_val text = hd_json_get(it.val, HD_S("hd1"));
        struct hd_val *val = NULL;

        if (!text)
            continue;
        if (hd_val_parse(hd_json_string(text), &val, NULL) != HD_EINVAL)
            fail_msg("%.*s", (int)hd_json_string(text).len, hd_json_string(text).ptr);
        assert_null(val);
        count++;
    }
    assert_true(count >= 30);
    hd_json_fini(&json);
}

static void plain_json_becomes_canonical(void **state)
{
    static const char *const cases[][2] = {
        {"{\"$\":\"send\",\"x\":1}", "{\"$\":\"map\",\"items\":[[\"$\",\"send\"],[\"x\",1]]}"},
        {"9007199254740993", "{\"$\":\"int\",\"v\":\"9007199254740993\"}"},
        {"123456789012345678901234567890",
         "{\"$\":\"int\",\"v\":\"123456789012345678901234567890\"}"},
        {"-0", "0"},
        {"-0.0", "{\"$\":\"float\",\"v\":\"-0\"}"},
        {"1e999", "{\"$\":\"float\",\"v\":\"inf\"}"},
        {"-1e999", "{\"$\":\"float\",\"v\":\"-inf\"}"},
        {"1.50", "1.50"},
        {"1E3", "1E3"},
        {" [ true , \"\\u00e9\\n\" ] ", "[true,\"\u00e9\\n\"]"},
    };
    struct heddle_error fault = {0};
    struct hd_val *val;

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct hd_val *again;

        val = plain(cases[i][0]);
        assert_text(val, cases[i][1]);
        again = parse(cases[i][1]);
        assert_text(again, cases[i][1]);
        hd_val_unref(again);
        hd_val_unref(val);
    }
    assert_err(hd_val_parse_json(HD_S("{\"a\":1,\"a\":2}"), &val, &fault), HD_EINVAL);
    assert_string_equal(fault.text, "the name \"a\" occurs twice in an object");
}

static void a_key_named_dollar_is_a_member(void **state)
{
    struct hd_val *val = parse("{\"$\":\"map\",\"items\":[[\"$\",\"x\"],[\"a\",[1]]]}");

    (void)state;
    assert_int_equal(hd_val_kind(val), HD_KIND_NONE);
    assert_slice(hd_val_get_string(hd_val_get(val, HD_S("$"))), HD_S("x"));
    assert_rendered(val, "{\"$\":\"x\",\"a\":[1]}");
    val = hd_val_without(val, HD_S("$"));
    assert_text(val, "{\"a\":[1]}");
    hd_val_unref(val);
}

static void messages_come_in_many_forms(void **state)
{
    static const char *const cases[][2] = {
        {"\"hi\"", "{\"$\":\"message\",\"type\":\"human\",\"content\":\"hi\"}"},
        {"[\"ai\",\"yo\"]", "{\"$\":\"message\",\"type\":\"ai\",\"content\":\"yo\"}"},
        {"{\"role\":\"user\",\"content\":\"x\",\"id\":\"1\"}",
         "{\"$\":\"message\",\"type\":\"human\",\"content\":\"x\",\"id\":\"1\"}"},
        {"{\"$\":\"message\",\"type\":\"system\",\"content\":\"s\"}",
         "{\"$\":\"message\",\"type\":\"system\",\"content\":\"s\"}"},
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct hd_val *form = parse(cases[i][0]), *message;

        assert_err(hd_val_to_message(form, &message, NULL), 0);
        assert_text(message, cases[i][1]);
        hd_val_unref(form);
        hd_val_unref(message);
    }
    for (size_t i = 0; i < 3; i++) {
        static const char *const bad[] = {"5", "{\"content\":\"x\"}", "[\"nobody\",\"x\"]"};
        struct hd_val *form = parse(bad[i]), *message;
        struct heddle_error fault = {0};

        assert_err(hd_val_to_message(form, &message, &fault), HD_EINVAL);
        assert_true(strlen(fault.text) > 0);
        hd_val_unref(form);
    }
}

static void templates_show_strings_as_they_are(void **state)
{
    struct hd_val *val = plain("[\"a\",{\"b\":1.50}]");
    struct hd_buf out;

    (void)state;
    hd_buf_init(&out, 100);
    assert_err(hd_val_write_text(&out, hd_val_at(val, 0)), 0);
    assert_err(hd_val_write_text(&out, hd_val_at(val, 1)), 0);
    assert_slice(hd_buf_slice(&out), HD_S("a{\"b\":1.50}"));
    hd_buf_fini(&out);
    hd_val_unref(val);
}

static struct hd_val *nest(int depth)
{
    struct hd_val *val = hd_val_int(1);

    for (int i = 0; i < depth; i++)
        val = hd_val_append(hd_val_list(), val);
    return val;
}

static void depth_is_bounded(void **state)
{
    struct hd_val *val = nest(HD_JSON_MAX_DEPTH);
    struct hd_buf out;

    (void)state;
    hd_buf_init(&out, 1 << 20);
    assert_int_equal(hd_val_depth(val), HD_JSON_MAX_DEPTH);
    assert_err(hd_val_write(&out, val), 0);
    hd_buf_reset(&out);
    val = hd_val_with(hd_val_object(), HD_S("k"), val);
    assert_err(hd_val_write(&out, val), HD_ELIMIT);
    assert_err(hd_val_render(&out, val), HD_ELIMIT);
    assert_int_equal(out.len, 0);
    hd_val_unref(val);
    val = nest(HD_VAL_MAX_DEPTH);
    assert_non_null(val);
    assert_null(hd_val_append(hd_val_list(), hd_val_ref(val)));
    assert_null(hd_val_with(hd_val_object(), HD_S("k"), hd_val_ref(val)));
    assert_null(hd_val_replace(numbers(0, 2), 0, hd_val_ref(val)));
    hd_val_unref(val);
    hd_buf_fini(&out);
}

/* ---- no memory -------------------------------------------------------- */

static const char everything[] =
    "[{\"$\":\"message\",\"type\":\"ai\",\"content\":[{\"type\":\"text\",\"text\":\"x\"}],"
    "\"id\":\"1\"},{\"$\":\"map\",\"items\":[[\"$\",1],[\"b\",[2,3,4,5,6]]]},"
    "{\"$\":\"strange\",\"q\":1.50},{\"$\":\"int\",\"v\":\"99999999999999999999\"},"
    "{\"a\":1,\"b\":2,\"c\":3,\"d\":4,\"e\":5,\"f\":6,\"g\":7,\"h\":8,\"i\":9,\"j\":10}]";

static int read_change_and_write(void *arg)
{
    struct hd_val *val = NULL, *other = NULL, *message = NULL, *keep;
    struct hd_buf out;
    int err = hd_val_parse(HD_S(everything), &val, NULL);

    (void)arg;
    hd_buf_init(&out, 1 << 20);
    if (!err) {
        keep = hd_val_ref(val);
        other = hd_val_append(hd_val_ref(val), hd_val_cstr("more"));
        other = hd_val_extend(other, keep);
        other = hd_val_replace(other, 0, hd_val_cstr("first"));
        other = hd_val_append(
            other, hd_val_with(hd_val_ref(hd_val_at(keep, 4)), HD_S("k"), hd_val_int(11)));
        hd_val_unref(keep);
        err = other ? hd_val_render(&out, other) : HD_ENOMEM;
    }
    if (!err)
        err = hd_val_write(&out, other);
    hd_val_unref(other);
    other = NULL;
    if (!err)
        err = hd_val_parse_json(HD_S("{\"role\":\"user\",\"content\":\"x\"}"), &other, NULL);
    if (!err)
        err = hd_val_to_message(other, &message, NULL);
    hd_val_unref(message);
    hd_val_unref(other);
    hd_val_unref(val);
    hd_buf_fini(&out);
    return err;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    assert_true(check_every_allocation(read_change_and_write, NULL) > 50);
}

/* ---- frozen values ---------------------------------------------------- */

#define FROZEN_ROOM 64

struct frozen {
    struct hd_val *list[FROZEN_ROOM];
    size_t count, room;
};

static int keep_frozen(void *ctx, struct hd_val *val)
{
    struct frozen *frozen = ctx;

    if (frozen->count == frozen->room)
        return HD_ENOMEM;
    frozen->list[frozen->count++] = val;
    return 0;
}

static void release_all(struct frozen *frozen)
{
    for (size_t i = 0; i < frozen->count; i++)
        hd_val_release(frozen->list[i]);
}

static void values_made_of_frozen_values_are_new(void **unused)
{
    struct frozen frozen = {.room = FROZEN_ROOM};
    struct hd_val *val = NULL, *list, *object;

    (void)unused;
    /* The key "a" occurs twice and is one value. */
    assert_int_equal(hd_val_parse(HD_S("{\"a\":[1,\"x\",[2]],\"b\":{\"a\":1.5}}"), &val, NULL), 0);
    assert_int_equal(hd_val_freeze(val, keep_frozen, &frozen), 0);
    assert_int_equal(hd_val_freeze(val, keep_frozen, &frozen), 0); /* has no effect */
    assert_int_equal(frozen.count, 10);
    list = hd_val_append(hd_val_ref(hd_val_get(val, HD_S("a"))), hd_val_int(3));
    object = hd_val_with(hd_val_ref(val), HD_S("c"), hd_val_ref(list));
    assert_int_equal(hd_val_count(list), 4);
    assert_int_equal(hd_val_count(object), 3);
    list = hd_val_replace(hd_val_extend(list, hd_val_get(val, HD_S("a"))), 0, hd_val_null());
    assert_int_equal(hd_val_count(list), 7);
    hd_val_unref(list);
    hd_val_unref(object);
    hd_val_unref(val); /* has no effect */
    assert_int_equal(hd_val_count(val), 2);
    assert_int_equal(hd_val_count(hd_val_get(val, HD_S("a"))), 3);
    release_all(&frozen);
}

/* A lasting copy does not depend on the frozen values and is written as they were. */
static void a_lasting_copy_is_equal(void **unused)
{
    static const char text[] =
        "[1,\"x\",{\"a\":[true,null,\"\"],\"b\":1.5},{\"$\":\"message\",\"type\":\"ai\","
        "\"content\":[\"y\"]},{\"$\":\"int\",\"v\":\"123456789012345678901\"},"
        "{\"$\":\"set\",\"items\":[{\"$\":\"send\",\"node\":\"n\",\"arg\":{\"k\":2}}]}]";
    struct hd_val *val = NULL, *mixed, *copy, *again;
    struct frozen frozen = {.room = FROZEN_ROOM};
    struct hd_buf before, after;

    (void)unused;
    hd_buf_init(&before, 4096);
    hd_buf_init(&after, 4096);
    assert_int_equal(hd_val_parse(hd_slice_cstr(text), &val, NULL), 0);
    mixed = hd_val_lasting(val);
    assert_ptr_equal(mixed, val); /* unchanged */
    hd_val_unref(mixed);
    assert_int_equal(hd_val_freeze(val, keep_frozen, &frozen), 0);
    mixed = hd_val_append(hd_val_append(hd_val_list(), hd_val_int(7)), hd_val_ref(val));
    assert_int_equal(hd_val_write(&before, mixed), 0);
    copy = hd_val_lasting(mixed);
    assert_non_null(copy);
    assert_ptr_equal(hd_val_at(copy, 0), hd_val_at(mixed, 0));
    hd_val_unref(mixed);
    release_all(&frozen);
    assert_int_equal(hd_val_write(&after, copy), 0);
    assert_int_equal(after.len, before.len);
    assert_memory_equal(after.ptr, before.ptr, after.len);
    again = hd_val_lasting(copy);
    assert_ptr_equal(again, copy);
    hd_val_unref(again);
    hd_val_unref(copy);
    hd_buf_fini(&before);
    hd_buf_fini(&after);
}

/* At any failure: frozen values are released, the others keep their reference counts. */
static void freezing_can_be_given_up(void **unused)
{
    (void)unused;
    for (size_t room = 0; room < 10; room++) {
        struct frozen frozen = {.room = room};
        struct hd_val *val = NULL;

        assert_int_equal(hd_val_parse(HD_S("{\"a\":[1,\"x\",[2]],\"b\":{\"a\":1.5}}"), &val, NULL),
                         0);
        assert_int_equal(hd_val_freeze(val, keep_frozen, &frozen), HD_ENOMEM);
        assert_int_equal(frozen.count, room);
        hd_val_unref(val);
        release_all(&frozen);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scalars_keep_their_value),
        cmocka_unit_test(missing_members_read_as_null),
        cmocka_unit_test(floats_are_written_as_python_writes_them),
        cmocka_unit_test(integers_that_are_not_safe_are_records),
        cmocka_unit_test(older_views_keep_their_length),
        cmocka_unit_test(the_second_append_to_a_view_gets_its_own_buffer),
        cmocka_unit_test(a_dropped_view_gives_its_end_back),
        cmocka_unit_test(a_list_may_hold_itself_as_it_was),
        cmocka_unit_test(extend_takes_all_elements),
        cmocka_unit_test(replace_and_slice_leave_the_list_alone),
        cmocka_unit_test(members_keep_their_order),
        cmocka_unit_test(large_objects_find_their_members),
        cmocka_unit_test(members_of_messages_go_where_they_belong),
        cmocka_unit_test(records_are_written),
        cmocka_unit_test(truth_is_as_documented),
        cmocka_unit_test(equality_is_by_value),
        cmocka_unit_test(sums_and_order_are_pythons),
        cmocka_unit_test(vectors_read_write_and_render),
        cmocka_unit_test(invalid_vectors_are_refused),
        cmocka_unit_test(plain_json_becomes_canonical),
        cmocka_unit_test(a_key_named_dollar_is_a_member),
        cmocka_unit_test(messages_come_in_many_forms),
        cmocka_unit_test(templates_show_strings_as_they_are),
        cmocka_unit_test(depth_is_bounded),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(values_made_of_frozen_values_are_new),
        cmocka_unit_test(a_lasting_copy_is_equal),
        cmocka_unit_test(freezing_can_be_given_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
