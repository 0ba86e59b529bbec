#include "base/buf.h"

#include <string.h>

#include "tests/unit/check.h"

#define LIMIT ((size_t)1 << 20)

static void appends_follow_one_another(void **state)
{
    struct hd_buf buf;

    (void)state;
    hd_buf_init(&buf, LIMIT);
    assert_err(hd_buf_append(&buf, "ab", 2), 0);
    assert_err(hd_buf_append(&buf, NULL, 0), 0);
    assert_err(hd_buf_append_slice(&buf, HD_S("c\0d")), 0);
    assert_err(hd_buf_append_slice(&buf, hd_slice(NULL, 0)), 0);
    assert_err(hd_buf_append_byte(&buf, 'e'), 0);
    assert_err(hd_buf_printf(&buf, "%s-%d", "f", 7), 0);
    assert_slice(hd_buf_slice(&buf), HD_S("abc\0def-7"));
    hd_buf_fini(&buf);
}

static void long_contents_survive_growing(void **state)
{
    struct hd_buf buf;

    (void)state;
    hd_buf_init(&buf, LIMIT);
    for (int i = 0; i < 100000; i++)
        assert_err(hd_buf_append_byte(&buf, (uint8_t)i), 0);
    assert_int_equal(buf.len, 100000);
    for (int i = 0; i < 100000; i++)
        assert_int_equal((uint8_t)buf.ptr[i], i % 256);
    hd_buf_fini(&buf);
}

static int append_five(struct hd_buf *buf, int how)
{
    switch (how) {
    case 0:
        return hd_buf_append(buf, "12345", 5);
    case 1:
        return hd_buf_append_slice(buf, HD_S("12345"));
    case 2:
        return hd_buf_printf(buf, "%d", 12345);
    case 3:
        return hd_buf_append_varint(buf, UINT64_C(1) << 30);
    case 4:
        return hd_buf_append_lenslice(buf, HD_S("1234"));
    default:
        return hd_buf_reserve(buf, 5);
    }
}

static void the_limit_is_exact_and_a_refused_append_changes_nothing(void **state)
{
    (void)state;
    for (int how = 0; how < 6; how++) {
        struct hd_buf buf;

        hd_buf_init(&buf, 12);
        assert_err(hd_buf_append(&buf, "abcdefgh", 8), 0);
        assert_err(append_five(&buf, how), HD_ELIMIT);
        assert_slice(hd_buf_slice(&buf), HD_S("abcdefgh"));
        buf.limit = 13;
        assert_err(append_five(&buf, how), 0);
        assert_int_equal(buf.len, how == 5 ? 8 : 13);
        assert_memory_equal(buf.ptr, "abcdefgh", 8);
        hd_buf_fini(&buf);
    }
}

static void a_length_over_all_memory_is_over_the_limit(void **state)
{
    struct hd_buf buf;

    (void)state;
    hd_buf_init(&buf, LIMIT);
    assert_err(hd_buf_append_byte(&buf, 'a'), 0);
    assert_err(hd_buf_reserve(&buf, SIZE_MAX), HD_ELIMIT);
    assert_err(hd_buf_append_lenslice(&buf, hd_slice("", SIZE_MAX)), HD_ELIMIT);
    assert_slice(hd_buf_slice(&buf), HD_S("a"));
    hd_buf_fini(&buf);
}

static void printf_fits_at_every_length(void **state)
{
    char expected[400];

    (void)state;
    memset(expected, ' ', sizeof(expected));
    for (int width = 1; width < 300; width++) {
        struct hd_buf buf;

        hd_buf_init(&buf, (size_t)width + 1);
        assert_err(hd_buf_printf(&buf, "x"), 0);
        assert_err(hd_buf_printf(&buf, "%*s", width, ""), 0);
        assert_slice(hd_slice(buf.ptr + 1, buf.len - 1), hd_slice(expected, (size_t)width));
        assert_err(hd_buf_printf(&buf, "x"), HD_ELIMIT);
        hd_buf_fini(&buf);
    }
}

static void reserved_room_may_be_written_directly(void **state)
{
    struct hd_buf buf;

    (void)state;
    hd_buf_init(&buf, LIMIT);
    assert_err(hd_buf_reserve(&buf, 0), 0);
    assert_err(hd_buf_reserve(&buf, 1000), 0);
    memset(buf.ptr, 'x', 1000);
    buf.len += 1000;
    assert_err(hd_buf_append_byte(&buf, 'y'), 0);
    assert_int_equal(buf.ptr[999], 'x');
    assert_int_equal(buf.ptr[1000], 'y');
    hd_buf_reset(&buf);
    assert_int_equal(buf.len, 0);
    assert_true(buf.cap >= 1001);
    hd_buf_fini(&buf);
    assert_null(buf.ptr);
}

static void take_moves_the_memory_out(void **state)
{
    struct hd_buf buf;
    size_t len = 99;
    char *bytes;

    (void)state;
    hd_buf_init(&buf, 10);
    assert_null(hd_buf_take(&buf, &len));
    assert_int_equal(len, 0);
    assert_err(hd_buf_append(&buf, "0123456789", 10), 0);
    bytes = hd_buf_take(&buf, &len);
    assert_slice(hd_slice(bytes, len), HD_S("0123456789"));
    assert_err(hd_buf_append(&buf, "0123456789", 10), 0);
    assert_err(hd_buf_append_byte(&buf, 'x'), HD_ELIMIT);
    hd_free(bytes);
    hd_buf_fini(&buf);
}

static void numbers_are_written_as_documented(void **state)
{
    static const struct {
        uint64_t value;
        struct hd_slice varint;
    } cases[] = {
        {0, {"\x00", 1}},
        {1, {"\x01", 1}},
        {127, {"\x7f", 1}},
        {128, {"\x80\x01", 2}},
        {300, {"\xac\x02", 2}},
        {16383, {"\xff\x7f", 2}},
        {16384, {"\x80\x80\x01", 3}},
        {UINT32_MAX, {"\xff\xff\xff\xff\x0f", 5}},
        {INT64_MAX, {"\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 9}},
        {UINT64_MAX, {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10}},
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct hd_buf buf;
        struct hd_reader r;
        uint64_t got = 0;

        hd_buf_init(&buf, LIMIT);
        assert_err(hd_buf_append_varint(&buf, cases[i].value), 0);
        assert_slice(hd_buf_slice(&buf), cases[i].varint);
        assert_err(hd_buf_append_u64(&buf, cases[i].value), 0);
        assert_int_equal(buf.len, cases[i].varint.len + 8);

        r = hd_reader(hd_buf_slice(&buf));
        assert_err(hd_read_varint(&r, &got), 0);
        assert_true(got == cases[i].value);
        assert_err(hd_read_u64(&r, &got), 0);
        assert_true(got == cases[i].value);
        assert_ptr_equal(r.pos, r.end);
        hd_buf_fini(&buf);
    }
}

static void u64_is_little_endian(void **state)
{
    struct hd_buf buf;

    (void)state;
    hd_buf_init(&buf, LIMIT);
    assert_err(hd_buf_append_u64(&buf, UINT64_C(0x0102030405060708)), 0);
    assert_slice(hd_buf_slice(&buf), HD_S("\x08\x07\x06\x05\x04\x03\x02\x01"));
    hd_buf_fini(&buf);
}

static void a_varint_has_one_form(void **state)
{
    static const struct hd_slice bad[] = {
        {NULL, 0},
        {"", 0},
        {"\x80", 1},
        {"\xff\xff\xff", 3},
        {"\x80\x00", 2},
        {"\xff\x80\x00", 3},
        {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10},
        {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x81\x00", 11},
        {"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 11},
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(bad); i++) {
        struct hd_reader r = hd_reader(bad[i]);
        uint64_t out = 77;

        assert_err(hd_read_varint(&r, &out), HD_ECORRUPT);
        assert_ptr_equal(r.pos, bad[i].ptr);
        assert_int_equal(out, 77);
    }
}

static void readers_stop_at_the_end(void **state)
{
    struct hd_reader r = hd_reader(HD_S("\x03"
                                        "abc\x04xyz"));
    struct hd_slice out = HD_S("untouched");
    const char *before;
    uint64_t number;
    uint8_t byte;

    (void)state;
    assert_err(hd_read_lenslice(&r, &out), 0);
    assert_slice(out, HD_S("abc"));
    before = r.pos;
    assert_err(hd_read_lenslice(&r, &out), HD_ECORRUPT);
    assert_ptr_equal(r.pos, before);
    assert_slice(out, HD_S("abc"));
    assert_err(hd_read_u64(&r, &number), HD_ECORRUPT);
    assert_err(hd_read_byte(&r, &byte), 0);
    assert_int_equal(byte, 4);
    assert_err(hd_read_bytes(&r, 4, &out), HD_ECORRUPT);
    assert_err(hd_read_bytes(&r, SIZE_MAX, &out), HD_ECORRUPT);
    assert_err(hd_read_bytes(&r, 3, &out), 0);
    assert_slice(out, HD_S("xyz"));
    assert_err(hd_read_bytes(&r, 0, &out), 0);
    assert_int_equal(out.len, 0);
    assert_err(hd_read_byte(&r, &byte), HD_ECORRUPT);
}

static void a_length_over_all_memory_is_corrupt(void **state)
{
    struct hd_reader r = hd_reader(HD_S("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01x"));
    struct hd_slice out;

    (void)state;
    assert_err(hd_read_lenslice(&r, &out), HD_ECORRUPT);
}

static int fill(void *arg)
{
    struct hd_buf buf;
    int err;

    (void)arg;
    hd_buf_init(&buf, LIMIT);
    err = hd_buf_append_byte(&buf, 'a');
    if (!err)
        err = hd_buf_printf(&buf, "%1000d", 1);
    if (!err)
        err = hd_buf_append_lenslice(&buf, hd_slice(buf.ptr, 0));
    if (!err)
        err = hd_buf_reserve(&buf, 100000);
    hd_buf_fini(&buf);
    return err;
}

static void every_failing_allocation_is_reported(void **state)
{
    (void)state;
    assert_in_range(check_every_allocation(fill, NULL), 3, 10);
}

static void a_failed_append_keeps_the_contents(void **state)
{
    static const char more[100];
    struct hd_buf buf;

    (void)state;
    hd_buf_init(&buf, LIMIT);
    assert_err(hd_buf_append(&buf, "abc", 3), 0);
    for (int i = 0; i < 3; i++) {
        (void)hd_alloc_fail_at(1, 1);
        assert_err(hd_buf_append(&buf, more, sizeof(more)), HD_ENOMEM);
        assert_err(hd_buf_printf(&buf, "%100d", 1), HD_ENOMEM);
        assert_err(hd_buf_append_lenslice(&buf, hd_slice(more, sizeof(more))), HD_ENOMEM);
        (void)hd_alloc_fail_at(0, 0);
        assert_slice(hd_buf_slice(&buf), HD_S("abc"));
    }
    hd_buf_fini(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appends_follow_one_another),
        cmocka_unit_test(long_contents_survive_growing),
        cmocka_unit_test(the_limit_is_exact_and_a_refused_append_changes_nothing),
        cmocka_unit_test(a_length_over_all_memory_is_over_the_limit),
        cmocka_unit_test(printf_fits_at_every_length),
        cmocka_unit_test(reserved_room_may_be_written_directly),
        cmocka_unit_test(take_moves_the_memory_out),
        cmocka_unit_test(numbers_are_written_as_documented),
        cmocka_unit_test(u64_is_little_endian),
        cmocka_unit_test(a_varint_has_one_form),
        cmocka_unit_test(readers_stop_at_the_end),
        cmocka_unit_test(a_length_over_all_memory_is_corrupt),
        cmocka_unit_test(every_failing_allocation_is_reported),
        cmocka_unit_test(a_failed_append_keeps_the_contents),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
