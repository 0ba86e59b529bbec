#include "store/split.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/error.h"
#include "tests/split_check.h"

/* ---- values to cut ---------------------------------------------------- */

struct text {
    char *ptr;
    size_t len;
    size_t cap;
};

static void put(struct text *t, const void *bytes, size_t len)
{
    if (t->len + len > t->cap) {
        t->cap = (t->len + len) * 2;
        t->ptr = realloc(t->ptr, t->cap);
        assert_non_null(t->ptr);
    }
    if (len > 0)
        memcpy(t->ptr + t->len, bytes, len);
    t->len += len;
}

static void put_str(struct text *t, const char *s)
{
    put(t, s, strlen(s));
}

static void put_byte(struct text *t, unsigned byte)
{
    unsigned char b = (unsigned char)byte;

    put(t, &b, 1);
}

static void put_be(struct text *t, uint64_t number, int size)
{
    while (size-- > 0)
        put_byte(t, (unsigned)(number >> (8 * size)) & 0xff);
}

static void put_fill(struct text *t, char byte, size_t count)
{
    while (count-- > 0)
        put(t, &byte, 1);
}

static uint64_t random_state;

static uint32_t next_random(void)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 32);
}

/* Bytes that differ for each `seed`. */
static void put_random(struct text *t, uint32_t seed, size_t count)
{
    random_state = seed;
    while (count-- > 0)
        put_byte(t, next_random() >> 24);
}

/* A message whose content has `size` bytes. */
static void put_message(struct text *t, uint32_t seed, size_t size)
{
    char head[96];

    random_state = seed;
    snprintf(head, sizeof(head), "{\"$\":\"message\",\"type\":\"%s\",\"id\":\"m%u\",\"content\":\"",
             seed % 2 ? "human" : "ai", seed);
    put_str(t, head);
    while (size-- > 0)
        put_byte(t, 'a' + next_random() % 26);
    put_str(t, "\"}");
}

/* Messages from..to (exclusive) joined by `separator`, within `open` and `close`. */
static struct text messages(const char *open, uint32_t from, uint32_t to, size_t size,
                            const char *separator, const char *close)
{
    struct text t = {0};
    uint32_t i;

    put_str(&t, open);
    for (i = from; i < to; i++) {
        if (i > from)
            put_str(&t, separator);
        put_message(&t, i, size);
    }
    put_str(&t, close);
    return t;
}

static struct text numbers(const char *open, int from, int to, const char *close)
{
    struct text t = {0};
    char number[32];
    int i;

    put_str(&t, open);
    for (i = from; i < to; i++) {
        snprintf(number, sizeof(number), i > from ? ",%d" : "%d", i);
        put_str(&t, number);
    }
    put_str(&t, close);
    return t;
}

static void put_ext(struct text *t, uint32_t seed, size_t size)
{
    put_byte(t, 0xc8);
    put_be(t, size, 2);
    put_byte(t, 5);
    put_random(t, seed, size);
}

/* ---- cutting them ----------------------------------------------------- */

/* Cuts and checks; the caller frees with drop(). */
static struct hd_pieces split(const char *type, const struct text *t)
{
    struct hd_pieces pieces;
    const char *fault;

    hd_pieces_init(&pieces);
    assert_true(hd_split(hd_slice_cstr(type), hd_slice(t->ptr, t->len), &pieces) == 0);
    fault = hd_check_pieces(hd_slice(t->ptr, t->len), &pieces);
    if (fault)
        fail_msg("%s (type %s, %zu bytes)", fault, type, t->len);
    return pieces;
}

static void drop(struct hd_pieces *pieces, struct text *t)
{
    hd_pieces_fini(pieces);
    free(t->ptr);
}

static struct hd_pieces split_str(const char *type, const char *s)
{
    struct text t = {(char *)(uintptr_t)s, strlen(s), 0};

    return split(type, &t);
}

static size_t chunk_count(const struct hd_pieces *pieces)
{
    size_t count = 0;
    size_t i;

    for (i = 0; i < pieces->count; i++)
        count += pieces->items[i].is_chunk;
    return count;
}

static bool has_chunk(const struct hd_pieces *pieces, struct hd_hash128 hash)
{
    size_t i;

    for (i = 0; i < pieces->count; i++)
        if (pieces->items[i].is_chunk && pieces->items[i].hash.lo == hash.lo &&
            pieces->items[i].hash.hi == hash.hi)
            return true;
    return false;
}

static bool has_chunk_of(const struct hd_pieces *pieces, struct hd_slice bytes)
{
    XXH128_hash_t hash = XXH3_128bits(bytes.ptr, bytes.len);

    return has_chunk(pieces, (struct hd_hash128){hash.low64, hash.high64});
}

/* How many chunks of `a` are not in `b`. */
static size_t missing(const struct hd_pieces *a, const struct hd_pieces *b)
{
    size_t count = 0;
    size_t i;

    for (i = 0; i < a->count; i++)
        count += a->items[i].is_chunk && !has_chunk(b, a->items[i].hash);
    return count;
}

static bool is_piece(const struct hd_piece *piece, bool is_chunk, bool comma, const char *bytes)
{
    return piece->is_chunk == is_chunk && piece->comma == comma &&
           hd_slice_eq(piece->bytes, hd_slice_cstr(bytes));
}

/* ---- JSON ------------------------------------------------------------- */

static void nothing_gives_no_pieces(void **state)
{
    static const char *const types[] = {"hd1", "json", "msgpack", "bytes", ""};
    struct hd_pieces pieces;
    size_t i;

    (void)state;
    hd_pieces_init(&pieces);
    for (i = 0; i < HD_COUNT(types); i++) {
        assert_true(hd_split(hd_slice_cstr(types[i]), hd_slice(NULL, 0), &pieces) == 0);
        assert_int_equal(pieces.count, 0);
    }
    hd_pieces_fini(&pieces);
}

static void any_text_joins_to_itself(void **state)
{
    static const char *const texts[] = {
        "null",
        "0",
        "\"\"",
        "[]",
        "{}",
        "[ ]",
        " [\n] ",
        "[1]",
        "[1,2,3]",
        "[1, 2 ,3 ]",
        "[[],{},\"\",[[[]]]]",
        "{\"a\":[]}",
        "{\"a\":[1,2],\"b\":{\"c\":[3]}}",
        "[\"a\\\"b\",\"c\\\\\",\"\\\\\\\"],[\"]",
        "[\"],[\",\"}{\"]",
        "[\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\",\"\\ud83d\\ude00\"]",
        /* Not JSON: */
        "[",
        "]",
        "{",
        "}",
        "[1",
        "[1,",
        "[1,]",
        "[,1]",
        "[1,,2]",
        "[1}",
        "{1]",
        "[\"",
        "[\"\\",
        "[\"\\\"",
        "{\"",
        "{\"a",
        "{\"a\"",
        "{\"a\":",
        "{\"a\":[",
        "{\"a\":1,",
        "{\"a\":1,}",
        "{\"a\" 1}",
        "{a:1}",
        "{,}",
        "[1]]",
        "[1] x",
        "{}{}",
        ",",
        " ",
        "\"",
        "[]]",
        "[[]",
        "{\"a\":[1,2}",
        "{\"a\":[}",
        "\xff\xfe",
        "[\xff]",
    };
    size_t i;

    (void)state;
    for (i = 0; i < HD_COUNT(texts); i++) {
        static const char *const types[] = {"hd1", "json", "msgpack", "bytes"};
        size_t k;

        for (k = 0; k < HD_COUNT(types); k++) {
            struct hd_pieces pieces = split_str(types[k], texts[i]);

            assert_true(pieces.count > 0);
            hd_pieces_fini(&pieces);
        }
    }
}

static void big_elements_are_chunks_of_their_own(void **state)
{
    struct text t = messages("[", 0, 3, 300, ",", "]");
    struct hd_pieces pieces = split("hd1", &t);
    struct text one = {0};

    (void)state;
    assert_int_equal(pieces.count, 5);
    assert_true(is_piece(&pieces.items[0], false, false, "["));
    assert_true(pieces.items[1].is_chunk && !pieces.items[1].comma);
    assert_true(pieces.items[2].is_chunk && pieces.items[2].comma);
    assert_true(pieces.items[3].is_chunk && pieces.items[3].comma);
    assert_true(is_piece(&pieces.items[4], false, false, "]"));
    put_message(&one, 1, 300);
    assert_true(hd_slice_eq(pieces.items[2].bytes, hd_slice(one.ptr, one.len)));
    free(one.ptr);
    drop(&pieces, &t);
}

static void an_element_of_256_bytes_is_big(void **state)
{
    struct text t = {0};
    struct hd_pieces pieces;

    (void)state;
    put_str(&t, "[1,\"");
    put_fill(&t, 'x', 254);
    put_str(&t, "\",2]");
    pieces = split("json", &t);
    assert_int_equal(pieces.count, 5);
    assert_true(is_piece(&pieces.items[1], true, false, "1"));
    assert_int_equal(pieces.items[2].bytes.len, 256);
    assert_true(is_piece(&pieces.items[3], true, true, "2"));
    drop(&pieces, &t);

    t = (struct text){0};
    put_str(&t, "[1,\"");
    put_fill(&t, 'x', 253);
    put_str(&t, "\"]");
    pieces = split("json", &t);
    assert_int_equal(pieces.count, 3);
    assert_true(hd_slice_starts(pieces.items[1].bytes, HD_S("1,\"xx")));
    drop(&pieces, &t);
}

static void whitespace_is_kept_and_does_not_hide_elements(void **state)
{
    struct text tight = messages("[", 0, 5, 300, ",", "]");
    struct text loose = messages(" [\n  ", 0, 5, 300, " ,\n  ", "\n]\n");
    struct text python = messages("[", 0, 5, 300, ", ", "]");
    struct hd_pieces a = split("json", &tight);
    struct hd_pieces b = split("json", &loose);
    struct hd_pieces c = split("json", &python);

    (void)state;
    assert_int_equal(missing(&a, &b), 0);
    assert_int_equal(missing(&b, &a), 0);
    assert_int_equal(missing(&a, &c), 0);
    assert_true(is_piece(&b.items[0], false, false, " [\n  "));
    assert_true(is_piece(&b.items[2], false, false, " ,\n  "));
    assert_true(is_piece(&b.items[b.count - 1], false, false, "\n]\n"));
    drop(&a, &tight);
    drop(&b, &loose);
    drop(&c, &python);
}

static void long_whitespace_becomes_a_chunk(void **state)
{
    struct text t = {0};
    struct hd_pieces pieces;

    (void)state;
    put_str(&t, "[1,");
    put_fill(&t, ' ', 70000);
    put_str(&t, "2]");
    pieces = split("json", &t);
    assert_true(has_chunk_of(&pieces, HD_S("1")));
    assert_true(has_chunk_of(&pieces, HD_S("2")));
    drop(&pieces, &t);
}

static void quotes_and_escapes_do_not_end_an_element(void **state)
{
    static const char *const strings[] = {
        "\\\"", "\\\\",        "\\\\\\\"", "\\\\\\\\",     "],[",
        "},{",  "\\\"],[\\\"", "\\u0022",  "\\\\\\\\\\\"",
    };
    size_t i;

    (void)state;
    for (i = 0; i < HD_COUNT(strings); i++) {
        struct text element = {0};
        struct text t = {0};
        struct hd_pieces pieces;

        put_str(&element, "{\"k");
        put_str(&element, strings[i]);
        put_str(&element, "\":\"");
        put_fill(&element, 'x', 300);
        put_str(&element, strings[i]);
        put_str(&element, "\"}");
        put_str(&t, "[0,");
        put(&t, element.ptr, element.len);
        put_str(&t, ",1]");
        pieces = split("hd1", &t);
        assert_int_equal(pieces.count, 5);
        assert_true(has_chunk_of(&pieces, hd_slice(element.ptr, element.len)));
        free(element.ptr);
        drop(&pieces, &t);
    }
}

static void an_element_is_the_same_chunk_everywhere(void **state)
{
    static const char *const open[] = {"[", "{\"messages\":[", "{\"a\":1,\"messages\": [",
                                       "{\"$\":\"delta\",\"value\":["};
    static const char *const close[] = {"]", "]}", "],\"b\":[2]}", "]}"};
    struct text alone = messages("[", 7, 8, 400, ",", "]");
    struct hd_pieces one = split("hd1", &alone);
    size_t i;

    (void)state;
    assert_int_equal(chunk_count(&one), 1);
    for (i = 0; i < HD_COUNT(open); i++) {
        struct text t = messages(open[i], 7, 8, 400, ",", close[i]);
        struct text more = messages(open[i], 0, 20, 400, ",", close[i]);
        struct hd_pieces a = split("hd1", &t);
        struct hd_pieces b = split("json", &more);

        assert_int_equal(missing(&one, &a), 0);
        assert_int_equal(missing(&one, &b), 0);
        assert_int_equal(chunk_count(&a), 1);
        assert_int_equal(chunk_count(&b), 20);
        drop(&a, &t);
        drop(&b, &more);
    }
    drop(&one, &alone);
}

static void small_elements_share_groups_with_the_object_form(void **state)
{
    struct text array = numbers("[", 0, 10000, "]");
    struct text object = numbers("{\"items\":[", 0, 10000, "]}");
    struct hd_pieces a = split("json", &array);
    struct hd_pieces b = split("json", &object);

    (void)state;
    assert_int_equal(missing(&a, &b), 0);
    assert_int_equal(missing(&b, &a), 0);
    drop(&a, &array);
    drop(&b, &object);
}

static void objects_without_long_arrays_are_cut_by_content(void **state)
{
    static const char *const small[] = {"{}", "{\"a\":[1,2,3],\"b\":\"x\"}"};
    struct text t = {0};
    struct hd_pieces pieces;
    size_t i;

    (void)state;
    for (i = 0; i < HD_COUNT(small); i++) {
        pieces = split_str("hd1", small[i]);
        assert_int_equal(pieces.count, 1);
        assert_true(is_piece(&pieces.items[0], true, false, small[i]));
        hd_pieces_fini(&pieces);
    }
    put_message(&t, 1, 100000);
    pieces = split("hd1", &t);
    assert_true(pieces.count > 50 && pieces.count < 400);
    assert_int_equal(chunk_count(&pieces), pieces.count);
    drop(&pieces, &t);
}

static void long_glue_between_arrays_is_chunked(void **state)
{
    struct text t = messages("{\"a\":[", 0, 4, 300, ",", "],\"note\":\"");
    struct text tail = messages("\",\"b\":[", 4, 8, 300, ",", "]}");
    struct hd_pieces pieces;

    (void)state;
    put_fill(&t, 'n', 200);
    put(&t, tail.ptr, tail.len);
    free(tail.ptr);
    pieces = split("hd1", &t);
    assert_int_equal(chunk_count(&pieces), 9);
    assert_int_equal(pieces.count, 11);
    drop(&pieces, &t);
}

static void appending_changes_the_tail_only(void **state)
{
    static const size_t sizes[] = {1, 40, 190, 220, 500, 3000};
    size_t i;

    (void)state;
    for (i = 0; i < HD_COUNT(sizes); i++) {
        struct text t = messages("[", 0, 200, sizes[i], ",", "]");
        struct text more = messages("[", 0, 201, sizes[i], ",", "]");
        struct hd_pieces a = split("hd1", &t);
        struct hd_pieces b = split("hd1", &more);

        /* The last group of small elements may still grow; all others are there again. */
        assert_true(missing(&a, &b) <= (sizes[i] < 200));
        assert_true(missing(&b, &a) <= 2);
        drop(&a, &t);
        drop(&b, &more);
    }
}

static void removing_the_first_changes_the_head_only(void **state)
{
    static const size_t sizes[] = {1, 40, 190, 220, 500, 3000};
    size_t i;

    (void)state;
    for (i = 0; i < HD_COUNT(sizes); i++) {
        struct text t = messages("[", 0, 400, sizes[i], ",", "]");
        struct text fewer = messages("[", 1, 400, sizes[i], ",", "]");
        struct hd_pieces a = split("hd1", &t);
        struct hd_pieces b = split("hd1", &fewer);

        if (sizes[i] >= 256)
            assert_int_equal(missing(&b, &a), 0);
        else
            assert_true(missing(&b, &a) <= 8);
        drop(&a, &t);
        drop(&b, &fewer);
    }
}

static void ten_thousand_small_ints_make_few_groups(void **state)
{
    struct text t = numbers("[", 0, 10000, "]");
    struct text fewer = numbers("[", 1, 10000, "]");
    struct text more = numbers("[", 0, 10001, "]");
    struct hd_pieces a = split("json", &t);
    struct hd_pieces b = split("json", &fewer);
    struct hd_pieces c = split("json", &more);
    size_t i;

    (void)state;
    assert_true(a.count > 20 && a.count < 100);
    for (i = 0; i < a.count; i++)
        assert_true(a.items[i].bytes.len <= 4096);
    assert_true(missing(&b, &a) <= 8);
    assert_true(missing(&a, &c) <= 1);
    drop(&a, &t);
    drop(&b, &fewer);
    drop(&c, &more);
}

/* Whatever their hash says, equal elements are neither a chunk each nor one endless chunk. */
static void equal_elements_are_grouped(void **state)
{
    char element[32];
    int k;

    (void)state;
    for (k = 0; k < 2000; k++) {
        struct text t = {0};
        struct hd_pieces pieces;
        int i;

        snprintf(element, sizeof(element), "%d,", k);
        put_str(&t, "[");
        for (i = 0; i < 1000; i++)
            put_str(&t, element);
        put_str(&t, "0]");
        pieces = split("json", &t);
        assert_true(pieces.count < t.len / 200);
        drop(&pieces, &t);
    }
}

static void a_huge_element_is_cut_by_content(void **state)
{
    struct text t = {0};
    struct text edited = {0};
    struct hd_pieces a, b;
    size_t i;

    (void)state;
    put_str(&t, "[1,");
    put_message(&t, 5, 3 << 20);
    put_str(&t, ",2]");
    put(&edited, t.ptr, t.len);
    edited.ptr[1 << 20] = 'X';
    a = split("hd1", &t);
    b = split("hd1", &edited);
    assert_true(a.items[2].comma && a.items[2].is_chunk);
    for (i = 3; i < a.count - 2; i++)
        assert_true(a.items[i].is_chunk && !a.items[i].comma);
    assert_true(a.items[a.count - 2].comma);
    assert_true(missing(&a, &b) >= 1 && missing(&a, &b) <= 3);
    drop(&a, &t);
    drop(&b, &edited);
}

static void deep_nesting_needs_no_stack(void **state)
{
    static const char *const inside[] = {"[", "{\"a\":", NULL};
    size_t i;

    (void)state;
    for (i = 0; inside[i]; i++) {
        struct text t = {0};
        struct hd_pieces pieces;
        int depth;

        put_str(&t, "[");
        for (depth = 0; depth < 1000000; depth++)
            put_str(&t, inside[i]);
        pieces = split("json", &t); /* never closed */
        hd_pieces_fini(&pieces);
        put_str(&t, "1");
        for (depth = 0; depth < 1000000; depth++)
            put_str(&t, i == 0 ? "]" : "}");
        put_str(&t, "]");
        pieces = split("json", &t);
        assert_true(is_piece(&pieces.items[0], false, false, "["));
        assert_true(is_piece(&pieces.items[pieces.count - 1], false, false, "]"));
        drop(&pieces, &t);
    }
}

static void every_prefix_of_a_text_is_safe(void **state)
{
    struct text t = messages(" {\"a\":[1, {\"b\":[\"\\\"\"]}],\"messages\":[", 0, 3, 260, ", ",
                             "], \"n\" : [ ] , \"z\":null} ");
    size_t len;

    (void)state;
    for (len = 1; len <= t.len; len++) {
        /* A copy of exactly that size, so that the sanitizer sees a read behind it. */
        struct text prefix = {0};
        struct hd_pieces pieces;

        prefix.ptr = malloc(len);
        assert_non_null(prefix.ptr);
        memcpy(prefix.ptr, t.ptr, len);
        prefix.len = len;
        pieces = split("hd1", &prefix);
        drop(&pieces, &prefix);
    }
    free(t.ptr);
}

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
            /* 0x01 is a fixint: right inside of arrays and maps as well. */
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
        /* The last element stands alone only if all heads before it were measured right. */
        assert_true(
            hd_slice_eq(pieces.items[pieces.count - 1].bytes, hd_slice(t.ptr + mid, t.len - mid)));
        assert_int_equal(pieces.items[0].bytes.len, heads[i] == 0xdc ? 3 : 5);
        assert_false(pieces.items[0].is_chunk);
        assert_int_equal(pieces.items[1].bytes.len, 304);
        drop(&pieces, &t);
    }
}

static struct text msgpack_messages(unsigned head, uint64_t count, uint32_t from, uint32_t to,
                                    size_t size)
{
    struct text t = {0};

    put_byte(&t, head);
    put_be(&t, count, head == 0xdd ? 4 : head == 0xdc ? 2 : 0);
    while (from < to)
        put_ext(&t, from++, size);
    return t;
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

/* ---- by content ------------------------------------------------------- */

static void short_values_are_one_chunk(void **state)
{
    size_t len;

    (void)state;
    for (len = 1; len < 256; len++) {
        struct text t = {0};
        struct hd_pieces pieces;

        put_random(&t, 1, len);
        pieces = split("bytes", &t);
        assert_int_equal(pieces.count, 1);
        assert_true(pieces.items[0].is_chunk);
        drop(&pieces, &t);
    }
}

static void pieces_keep_their_bounds(void **state)
{
    static const struct {
        size_t size, avg;
    } cases[] = {{300, 1 << 10},       {100 << 10, 1 << 10}, {256 << 10, 1 << 10},
                 {512 << 10, 2 << 10}, {4 << 20, 16 << 10},  {16 << 20, 64 << 10},
                 {40 << 20, 64 << 10}};
    size_t k, i;

    (void)state;
    for (k = 0; k < HD_COUNT(cases); k++) {
        struct text t = {0};
        struct text same = {0};
        struct hd_pieces pieces;

        put_random(&t, 1, cases[k].size);
        pieces = split("bytes", &t);
        for (i = 0; i + 1 < pieces.count; i++) {
            assert_true(pieces.items[i].bytes.len >= cases[k].avg / 4);
            assert_true(pieces.items[i].bytes.len <= cases[k].avg * 4);
        }
        assert_true(pieces.count <= cases[k].size / cases[k].avg * 2 + 1);
        drop(&pieces, &t);
        put_fill(&same, 'a', cases[k].size);
        pieces = split("bytes", &same);
        assert_true(pieces.count <= cases[k].size / (cases[k].avg / 4) + 1);
        drop(&pieces, &same);
    }
}

static void an_edit_changes_the_pieces_around_it_only(void **state)
{
    struct text t = {0};
    struct text inserted = {0};
    struct text appended = {0};
    struct hd_pieces a, b, c;

    (void)state;
    put_random(&t, 3, 200000);
    put(&inserted, t.ptr, 50000);
    put_str(&inserted, "something new");
    put(&inserted, t.ptr + 50000, t.len - 50000);
    put(&appended, t.ptr, t.len);
    put_str(&appended, "something new");
    a = split("pickle", &t);
    b = split("pickle", &inserted);
    c = split("pickle", &appended);
    assert_true(a.count > 100);
    assert_true(missing(&a, &b) <= 4);
    assert_true(missing(&a, &c) <= 1);
    drop(&a, &t);
    drop(&b, &inserted);
    drop(&c, &appended);
}

/* A value that grows past the size where the average doubles still ends pieces where it did. */
static void a_larger_average_keeps_some_cuts(void **state)
{
    struct text t = {0};
    struct text larger = {0};
    struct hd_pieces a, b;
    size_t i, k, kept = 0;

    (void)state;
    put_random(&t, 4, (512 << 10) - 1);
    put(&larger, t.ptr, t.len);
    put_str(&larger, "x");
    a = split("bytes", &t);
    b = split("bytes", &larger);
    assert_true(b.count < a.count * 3 / 4);
    for (i = 0, k = 0; i < b.count; i++) {
        size_t cut = (size_t)(b.items[i].bytes.ptr - larger.ptr);

        while (k < a.count && (size_t)(a.items[k].bytes.ptr - t.ptr) < cut)
            k++;
        kept += k < a.count && (size_t)(a.items[k].bytes.ptr - t.ptr) == cut;
    }
    assert_true(kept > b.count / 2);
    drop(&a, &t);
    drop(&b, &larger);
}

/* ---- everything ------------------------------------------------------- */

static void the_list_is_reused(void **state)
{
    struct text large = messages("[", 0, 100, 300, ",", "]");
    struct hd_pieces pieces = split("hd1", &large);
    struct hd_piece *items = pieces.items;

    (void)state;
    assert_true(hd_split(HD_S("hd1"), HD_S("[1]"), &pieces) == 0);
    assert_int_equal(pieces.count, 3);
    assert_ptr_equal(pieces.items, items);
    drop(&pieces, &large);
}

static void out_of_memory_is_reported_at_every_allocation(void **state)
{
    static const char *const types[] = {"hd1", "msgpack", "bytes"};
    struct text values[] = {
        messages("{\"note\":\"a long key in front of the list, so that it is no literal ......\""
                 ",\"m\":[",
                 0, 200, 300, ", ", "]}"),
        msgpack_messages(0xdc, 200, 0, 200, 400),
        {0},
    };
    size_t i;

    (void)state;
    put_random(&values[2], 1, 300000);
    for (i = 0; i < HD_COUNT(types); i++) {
        long n;
        int err = HD_ENOMEM;

        for (n = 1; err != 0; n++) {
            struct hd_pieces pieces;

            hd_pieces_init(&pieces);
            hd_alloc_fail_at(n, 0);
            err =
                hd_split(hd_slice_cstr(types[i]), hd_slice(values[i].ptr, values[i].len), &pieces);
            hd_alloc_fail_at(0, 0);
            assert_true(err == 0 || (err == HD_ENOMEM && pieces.count == 0));
            hd_pieces_fini(&pieces);
        }
        assert_true(n > 3);
        free(values[i].ptr);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_gives_no_pieces),
        cmocka_unit_test(any_text_joins_to_itself),
        cmocka_unit_test(big_elements_are_chunks_of_their_own),
        cmocka_unit_test(an_element_of_256_bytes_is_big),
        cmocka_unit_test(whitespace_is_kept_and_does_not_hide_elements),
        cmocka_unit_test(long_whitespace_becomes_a_chunk),
        cmocka_unit_test(quotes_and_escapes_do_not_end_an_element),
        cmocka_unit_test(an_element_is_the_same_chunk_everywhere),
        cmocka_unit_test(small_elements_share_groups_with_the_object_form),
        cmocka_unit_test(objects_without_long_arrays_are_cut_by_content),
        cmocka_unit_test(long_glue_between_arrays_is_chunked),
        cmocka_unit_test(appending_changes_the_tail_only),
        cmocka_unit_test(removing_the_first_changes_the_head_only),
        cmocka_unit_test(ten_thousand_small_ints_make_few_groups),
        cmocka_unit_test(equal_elements_are_grouped),
        cmocka_unit_test(a_huge_element_is_cut_by_content),
        cmocka_unit_test(deep_nesting_needs_no_stack),
        cmocka_unit_test(every_prefix_of_a_text_is_safe),
        cmocka_unit_test(msgpack_of_every_head),
        cmocka_unit_test(msgpack_lists_share_their_elements),
        cmocka_unit_test(msgpack_small_elements_are_grouped),
        cmocka_unit_test(malformed_msgpack_is_cut_by_content),
        cmocka_unit_test(deep_msgpack_needs_no_stack),
        cmocka_unit_test(short_values_are_one_chunk),
        cmocka_unit_test(pieces_keep_their_bounds),
        cmocka_unit_test(an_edit_changes_the_pieces_around_it_only),
        cmocka_unit_test(a_larger_average_keeps_some_cuts),
        cmocka_unit_test(the_list_is_reused),
        cmocka_unit_test(out_of_memory_is_reported_at_every_allocation),
    };

    return cmocka_run_group_tests_name("split", tests, NULL, NULL);
}
