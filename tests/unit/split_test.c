#include "tests/unit/split_help.h"

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
    put_str(&t, "{\"note\":");
    put_message(&t, 1, 100000);
    put_str(&t, "}");
    pieces = split("hd1", &t);
    assert_true(pieces.count > 50 && pieces.count < 400);
    assert_int_equal(chunk_count(&pieces), pieces.count);
    drop(&pieces, &t);
}

/* A task often writes one message, which then becomes the end of the list. */
static void a_message_alone_is_the_chunk_it_is_in_a_list(void **state)
{
    struct text list = messages("[", 1, 4, 1000, ",", "]"), alone = {0};
    struct hd_pieces whole = split("hd1", &list), pieces;

    (void)state;
    put_message(&alone, 2, 1000);
    pieces = split("hd1", &alone);
    assert_int_equal(pieces.count, 1);
    assert_true(has_chunk(&whole, pieces.items[0].hash));
    drop(&pieces, &alone);
    drop(&whole, &list);
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

        /* The last group of small elements may still grow; all others are reused. */
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

/* With any hash, equal elements are neither one chunk each nor a single unbounded chunk. */
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
        /* A copy of exactly that size, so that the sanitizer detects a read past its end. */
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

/* A value that grows past the size where the average doubles keeps its existing boundaries. */
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
        cmocka_unit_test(a_message_alone_is_the_chunk_it_is_in_a_list),
        cmocka_unit_test(long_glue_between_arrays_is_chunked),
        cmocka_unit_test(appending_changes_the_tail_only),
        cmocka_unit_test(removing_the_first_changes_the_head_only),
        cmocka_unit_test(ten_thousand_small_ints_make_few_groups),
        cmocka_unit_test(equal_elements_are_grouped),
        cmocka_unit_test(a_huge_element_is_cut_by_content),
        cmocka_unit_test(deep_nesting_needs_no_stack),
        cmocka_unit_test(every_prefix_of_a_text_is_safe),
        cmocka_unit_test(short_values_are_one_chunk),
        cmocka_unit_test(pieces_keep_their_bounds),
        cmocka_unit_test(an_edit_changes_the_pieces_around_it_only),
        cmocka_unit_test(a_larger_average_keeps_some_cuts),
        cmocka_unit_test(the_list_is_reused),
        cmocka_unit_test(out_of_memory_is_reported_at_every_allocation),
    };

    return cmocka_run_group_tests_name("split", tests, NULL, NULL);
}
