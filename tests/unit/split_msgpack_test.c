#include "tests/unit/split_help.h"

/* ---- msgpack ---------------------------------------------------------- */

/* One object of every head, each with a body of the least and of a larger size. */
static void put_every_object(struct text *t)
{
    static const struct {
        unsigned tag, length_size, body, length_unit;
    } heads[] = {
        {0xc0, 0, 0, 0}, {0xc2, 0, 0, 0}, {0xc3, 0, 0, 0}, {0xc4, 1, 0, 1},  {0xc5, 2, 0, 1},
        {0xc6, 4, 0, 1}, {0xc7, 1, 1, 1}, {0xc8, 2, 1, 1}, {0xc9, 4, 1, 1},  {0xca, 0, 4, 0},
        {0xcb, 0, 8, 0}, {0xcc, 0, 1, 0}, {0xcd, 0, 2, 0}, {0xce, 0, 4, 0},  {0xcf, 0, 8, 0},
        {0xd0, 0, 1, 0}, {0xd1, 0, 2, 0}, {0xd2, 0, 4, 0}, {0xd3, 0, 8, 0},  {0xd4, 0, 2, 0},
        {0xd5, 0, 3, 0}, {0xd6, 0, 5, 0}, {0xd7, 0, 9, 0}, {0xd8, 0, 17, 0}, {0xd9, 1, 0, 1},
        {0xda, 2, 0, 1}, {0xdb, 4, 0, 1}, {0xdc, 2, 0, 1}, {0xdd, 4, 0, 1},  {0xde, 2, 0, 2},
        {0xdf, 4, 0, 2},
    };
    size_t i, length;

    for (i = 0; i < HD_COUNT(heads); i++)
        for (length = 0; length <= 100; length += 100) {
            put_byte(t, heads[i].tag);
            put_be(t, length, (int)heads[i].length_size);
            /* 0x01 is a fixint: valid inside of arrays and maps as well. */
            put_fill(t, 1,
                     heads[i].body + (heads[i].length_size ? length * heads[i].length_unit : 0));
        }
    put_str(t, "\x01\x7f\xe0\xff"); /* fixints */
    put_str(t, "\xa0\xa1x\xa3xyz"); /* fixstr */
    put_str(t, "\x90\x92\x01\x02"); /* fixarray */
    put_str(t, "\x80\x81\x01\x02"); /* fixmap */
}

enum { EVERY_OBJECT = 62 + 4 + 3 + 2 + 2 };

static void msgpack_of_every_head(void **state)
{
    static const unsigned heads[] = {0xdc, 0xdd};
    size_t i;

    (void)state;
    for (i = 0; i < HD_COUNT(heads); i++) {
        struct text t = {0};
        struct hd_pieces pieces;
        size_t mid;

        put_byte(&t, heads[i]);
        put_be(&t, EVERY_OBJECT + 2, heads[i] == 0xdc ? 2 : 4);
        put_ext(&t, 1, 300);
        put_every_object(&t);
        mid = t.len;
        put_ext(&t, 2, 300);
        pieces = split("msgpack", &t);
        /* The last element is a separate piece only if all heads before it were measured right. */
        assert_true(
            hd_slice_eq(pieces.items[pieces.count - 1].bytes, hd_slice(t.ptr + mid, t.len - mid)));
        assert_int_equal(pieces.items[0].bytes.len, heads[i] == 0xdc ? 3 : 5);
        assert_false(pieces.items[0].is_chunk);
        assert_int_equal(pieces.items[1].bytes.len, 304);
        drop(&pieces, &t);
    }
}

static void msgpack_lists_share_their_elements(void **state)
{
    struct text fix = msgpack_messages(0x9f, 15, 0, 15, 400);
    struct text a16 = msgpack_messages(0xdc, 16, 0, 16, 400);
    struct text a32 = msgpack_messages(0xdd, 15, 1, 16, 400);
    struct text map = {0};
    struct text delta = {0};
    struct hd_pieces a = split("msgpack", &fix);
    struct hd_pieces b = split("msgpack", &a16);
    struct hd_pieces c = split("msgpack", &a32);
    struct hd_pieces d, e;

    (void)state;
    put_str(&map, "\x83\xa1x\xc0\xa8messages");
    put(&map, a16.ptr, a16.len);
    put_str(&map, "\xa1y\x92\x01\x02");
    d = split("msgpack", &map);
    put_byte(&delta, 0xc9);
    put_be(&delta, a16.len, 4);
    put_byte(&delta, 7);
    put(&delta, a16.ptr, a16.len);
    e = split("msgpack", &delta);

    assert_int_equal(chunk_count(&a), 15);
    assert_int_equal(chunk_count(&b), 16);
    assert_int_equal(missing(&a, &b), 0);
    assert_int_equal(missing(&c, &b), 0);
    assert_int_equal(missing(&b, &d), 0);
    assert_int_equal(missing(&d, &b), 0);
    assert_int_equal(missing(&b, &e), 0);
    assert_int_equal(missing(&e, &b), 0);
    drop(&a, &fix);
    drop(&b, &a16);
    drop(&c, &a32);
    drop(&d, &map);
    drop(&e, &delta);
}

static void msgpack_small_elements_are_grouped(void **state)
{
    struct text t = {0};
    struct text more = {0};
    struct hd_pieces a, b;
    int i;

    (void)state;
    put_str(&t, "\xdd");
    put_be(&t, 10000, 4);
    put_str(&more, "\xdd");
    put_be(&more, 10001, 4);
    for (i = 0; i < 10001; i++) {
        if (i < 10000)
            put_byte(&t, 0xcd), put_be(&t, (uint64_t)i, 2);
        put_byte(&more, 0xcd), put_be(&more, (uint64_t)i, 2);
    }
    a = split("msgpack", &t);
    b = split("msgpack", &more);
    assert_true(a.count > 10 && a.count < 60);
    assert_true(missing(&a, &b) <= 1);
    drop(&a, &t);
    drop(&b, &more);
}

static void malformed_msgpack_is_cut_by_content(void **state)
{
    struct text whole = msgpack_messages(0x94, 4, 0, 4, 400);
    struct text trailing = msgpack_messages(0x93, 3, 0, 4, 400);
    struct text missing_one = msgpack_messages(0x95, 5, 0, 4, 400);
    struct text reserved = msgpack_messages(0x94, 4, 0, 3, 400);
    struct text endless = msgpack_messages(0xdd, UINT32_MAX, 0, 4, 400);
    struct text *const bad[] = {&trailing, &missing_one, &reserved, &endless};
    struct hd_pieces good = split("msgpack", &whole);
    size_t i, len;

    (void)state;
    put_byte(&reserved, 0xc1);
    assert_int_equal(chunk_count(&good), 4);
    for (i = 0; i < HD_COUNT(bad); i++) {
        struct hd_pieces pieces = split("msgpack", bad[i]);
        struct hd_pieces opaque = split("bytes", bad[i]);

        assert_int_equal(pieces.count, opaque.count);
        assert_int_equal(missing(&pieces, &opaque), 0);
        hd_pieces_fini(&opaque);
        drop(&pieces, bad[i]);
    }
    for (len = 1; len < whole.len; len++) {
        struct text prefix = {whole.ptr, len, 0};
        struct hd_pieces pieces = split("msgpack", &prefix);

        hd_pieces_fini(&pieces);
    }
    drop(&good, &whole);
}

static void deep_msgpack_needs_no_stack(void **state)
{
    struct text t = {0};
    struct hd_pieces pieces;

    (void)state;
    put_str(&t, "\x92\x01");
    put_fill(&t, (char)0x91, 1000000);
    put_byte(&t, 1);
    pieces = split("msgpack", &t);
    assert_true(is_piece(&pieces.items[0], false, false, "\x92"));
    assert_true(is_piece(&pieces.items[1], true, false, "\x01"));
    drop(&pieces, &t);
}

static void a_msgpack_message_alone_is_one_chunk(void **state)
{
    struct text list = msgpack_messages(0x93, 3, 1, 4, 1000), alone = {0};
    struct hd_pieces whole = split("msgpack", &list), pieces;

    (void)state;
    put_ext(&alone, 2, 1000);
    pieces = split("msgpack", &alone);
    assert_int_equal(pieces.count, 1);
    assert_true(has_chunk(&whole, pieces.items[0].hash));
    drop(&pieces, &alone);
    drop(&whole, &list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(msgpack_of_every_head),
        cmocka_unit_test(msgpack_lists_share_their_elements),
        cmocka_unit_test(msgpack_small_elements_are_grouped),
        cmocka_unit_test(malformed_msgpack_is_cut_by_content),
        cmocka_unit_test(deep_msgpack_needs_no_stack),
        cmocka_unit_test(a_msgpack_message_alone_is_one_chunk),
    };

    return cmocka_run_group_tests_name("split_msgpack", tests, NULL, NULL);
}
