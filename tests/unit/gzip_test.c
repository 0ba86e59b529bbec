#include <zlib.h>

#include "http/gzip.h"
#include "http/internal.h"
#include "tests/unit/check.h"

static void check_round_trip(struct hd_slice in)
{
    z_stream z = {0};
    struct hd_buf packed, back;

    hd_buf_init(&packed, in.len);
    hd_buf_init(&back, in.len + 1);
    assert_err(hd_gzip(in, &packed), 0);
    assert_true(packed.len < in.len);
    assert_err(hd_buf_reserve(&back, in.len + 1), 0);
    assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
    z.next_in = (Bytef *)packed.ptr;
    z.avail_in = (uInt)packed.len;
    z.next_out = (Bytef *)back.ptr;
    z.avail_out = (uInt)in.len + 1;
    assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
    back.len = z.total_out;
    (void)inflateEnd(&z);
    assert_slice(hd_buf_slice(&back), in);
    hd_buf_fini(&packed);
    hd_buf_fini(&back);
}

static void text_comes_back(void **state)
{
    char text[20000];

    (void)state;
    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = "{\"messages\": [1, 2, 3]}"[i * i % 23];
    check_round_trip(hd_slice(text, sizeof(text)));
    check_round_trip(hd_slice(text, 1000));
}

static void incompressible_bodies_are_left(void **state)
{
    char noise[4096];
    struct hd_buf out;

    (void)state;
    hd_random(noise, sizeof(noise));
    hd_buf_init(&out, sizeof(noise));
    assert_err(hd_gzip(hd_slice(noise, sizeof(noise)), &out), HD_ELIMIT);
    assert_int_equal(out.len, 0);
    hd_buf_fini(&out);
}

static void only_text_is_worth_it(void **state)
{
    (void)state;
    assert_true(hd_gzip_is_worth(HD_S("application/json")));
    assert_true(hd_gzip_is_worth(HD_S("application/json; charset=utf-8")));
    assert_true(hd_gzip_is_worth(HD_S("text/html")));
    assert_false(hd_gzip_is_worth(HD_S("image/png")));
    assert_false(hd_gzip_is_worth(HD_S("")));
}

static void compressed_bodies_are_decompressed(void **state)
{
    struct hd_slice text =
        HD_S("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    struct hd_buf packed, out;

    (void)state;
    hd_buf_init(&packed, 1000);
    assert_err(hd_gzip(text, &packed), 0);
    hd_buf_init(&out, text.len);
    assert_err(hd_gunzip(hd_buf_slice(&packed), &out), 0);
    assert_slice(hd_buf_slice(&out), text);
    hd_buf_fini(&out);
    /* Over the limit, truncated, and not gzip at all. */
    hd_buf_init(&out, text.len - 1);
    assert_err(hd_gunzip(hd_buf_slice(&packed), &out), HD_EINVAL);
    assert_int_equal(out.len, 0);
    hd_buf_fini(&out);
    hd_buf_init(&out, text.len);
    assert_err(hd_gunzip(hd_slice(packed.ptr, packed.len - 1), &out), HD_EINVAL);
    assert_err(hd_gunzip(text, &out), HD_EINVAL);
    assert_err(hd_gunzip(HD_S(""), &out), HD_EINVAL);
    assert_int_equal(out.len, 0);
    hd_buf_fini(&out);
    hd_buf_fini(&packed);
}

static int pack(void *arg)
{
    char text[2000] = {0};
    struct hd_buf out;
    int err;

    (void)arg;
    hd_buf_init(&out, sizeof(text));
    err = hd_gzip(hd_slice(text, sizeof(text)), &out);
    hd_buf_fini(&out);
    return err;
}

static int unpack(void *arg)
{
    struct hd_buf out;
    int err;

    hd_buf_init(&out, 2000);
    err = hd_gunzip(hd_buf_slice(arg), &out);
    hd_buf_fini(&out);
    return err;
}

static void memory_may_end(void **state)
{
    char text[2000] = {0};
    struct hd_buf packed;

    (void)state;
    assert_true(check_every_allocation(pack, NULL) > 2);
    hd_buf_init(&packed, sizeof(text));
    assert_err(hd_gzip(hd_slice(text, sizeof(text)), &packed), 0);
    assert_true(check_every_allocation(unpack, &packed) > 1);
    hd_buf_fini(&packed);
}

static void dates_are_in_english(void **state)
{
    char date[HD_DATE_SIZE];

    (void)state;
    hd_date_format(784111777, date);
    assert_string_equal(date, "Sun, 06 Nov 1994 08:49:37 GMT");
    hd_date_format(0, date);
    assert_string_equal(date, "Thu, 01 Jan 1970 00:00:00 GMT");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_comes_back),
        cmocka_unit_test(incompressible_bodies_are_left),
        cmocka_unit_test(only_text_is_worth_it),
        cmocka_unit_test(memory_may_end),
        cmocka_unit_test(dates_are_in_english),
        cmocka_unit_test(compressed_bodies_are_decompressed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
