/* Bodies and field tables: decodes, encodes and copies a record that has every kind of field. */
#include "records/record_fields.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "records/record_internal.h"
#include "tests/unit/check.h"

#define MAX_ARENA ((size_t)1 << 20)

/* ---- bodies ----------------------------------------------------------- */

static void members_come_out_byte_for_byte(void **state)
{
    struct hd_slice a, b, c, none;
    const struct hd_member members[] = {{"a", &a}, {"b", &b}, {"c", &c}, {"none", &none}};

    (void)state;
    assert_err(hd_record_split(HD_S("{\"a\":{\"x\":\"}\\\"]\",\"b\":[1, 2]},\"other\":[{}, \"{\"],"
                                    " \"b\" : 1.50 ,\n\"c\":\"\\u0041\"}"),
                               members, HD_COUNT(members)),
               0);
    assert_slice(a, HD_S("{\"x\":\"}\\\"]\",\"b\":[1, 2]}"));
    assert_slice(b, HD_S("1.50"));
    assert_slice(c, HD_S("\"\\u0041\""));
    assert_slice(none, HD_S(""));
    assert_err(hd_record_split(HD_S(" { } "), members, HD_COUNT(members)), 0);
    assert_slice(a, HD_S(""));
}

/* Splits a copy in memory of exactly this length, so that the sanitizer finds a read past its
 * end. */
static int split_copy(const char *text, size_t len)
{
    char *copy = malloc(len ? len : 1);
    struct hd_slice a;
    const struct hd_member member = {"a", &a};
    int err;

    assert_non_null(copy);
    memcpy(copy, text, len);
    err = hd_record_split(hd_slice(copy, len), &member, 1);
    free(copy);
    return err;
}

static void damaged_bodies_are_rejected(void **state)
{
    static const char whole[] = "{\"a\":{\"b\":[1,\"x\\\\\"]},\"c\":tru}";
    static const char *const bad[] = {
        "",         "null",         "[]",          "{\"a\"}",       "{\"a\":}",
        "{a:1}",    "{\"a\":1,}",   "{\"a\":1 2}", "{\"a\":[1}",    "{,}",
        "{\"a\":,", "{\"a\":\"\\}", "{\"a\" 1}",   "{\"a\":1\"b\"", "{\"a\":{]}",
    };

    (void)state;
    assert_err(split_copy(whole, sizeof(whole) - 1), 0);
    for (size_t len = 0; len < sizeof(whole) - 1; len++)
        assert_err(split_copy(whole, len), HD_ECORRUPT);
    for (size_t i = 0; i < HD_COUNT(bad); i++) {
        /* Brackets are counted, not paired: "{]" and "[}" are detected when the member is read. */
        if (split_copy(bad[i], strlen(bad[i])) != HD_ECORRUPT && !strpbrk(bad[i], "[]"))
            fail_msg("%s was accepted", bad[i]);
    }
}

static void texts_and_numbers_are_read(void **state)
{
    struct hd_arena arena;
    struct hd_slice text;
    int64_t number = 5;

    (void)state;
    hd_arena_init(&arena, MAX_ARENA);
    assert_err(hd_record_text(HD_S("\"plain\""), &arena, &text), 0);
    assert_slice(text, HD_S("plain"));
    assert_err(hd_record_text(HD_S("\"a\\n\\\"\\u00e9\""), &arena, &text), 0);
    assert_slice(text, HD_S("a\n\"\xc3\xa9"));
    assert_err(hd_record_text(HD_S(""), &arena, &text), 0);
    assert_slice(text, HD_S(""));
    assert_err(hd_record_text(HD_S("12"), &arena, &text), HD_ECORRUPT);
    assert_err(hd_record_text(HD_S("\"\\q\""), &arena, &text), HD_ECORRUPT);
    assert_err(hd_record_int(HD_S("-9223372036854775807"), &number), 0);
    assert_int_equal(number, -INT64_MAX);
    assert_err(hd_record_int(HD_S("9223372036854775808"), &number), HD_ECORRUPT);
    assert_err(hd_record_int(HD_S("99999999999999999999"), &number), HD_ECORRUPT);
    assert_err(hd_record_int(HD_S("1.5"), &number), HD_ECORRUPT);
    assert_err(hd_record_int(HD_S(""), &number), 0);
    assert_int_equal(number, 0);
    hd_arena_fini(&arena);
}

/* ---- a record in the table of crons ----------------------------------- */

enum colour { RED, GREEN };

struct probe {
    struct hd_slice principal;
    struct hd_slice id;
    int64_t rev;
    int64_t next_at;
    enum colour colour;
    struct hd_slice text;
    struct hd_slice owner;
    struct hd_slice json;
    int64_t wide;
    int count;
    enum colour word;
    bool is_on, is_shown;
    struct hd_slice x, y;
    bool has_part;
    enum colour part_colour;
    struct hd_slice part_text;
    struct hd_slice secret;
    struct hd_slice unknown;
};

#define REC struct probe

static const char *const colours[] = {"red", "green", NULL};
static const char *const words[] = {"", "1", NULL};

static const struct hd_record_field point_members[] = {
    {HD_RECORD_MEMBER("x", TEXT, REC, x)},
    {HD_RECORD_MEMBER("y", TEXT, REC, y), .flags = HD_RECORD_MINOR},
};

static const struct hd_record_field part_members[] = {
    {HD_RECORD_MEMBER("colour", NAME, REC, part_colour), .names = colours},
    {HD_RECORD_MEMBER("text", TEXT, REC, part_text)},
};

static const struct hd_record_field probe_members[] = {
    {HD_RECORD_MEMBER("text", TEXT, REC, text), .flags = HD_RECORD_REQUIRED},
    {HD_RECORD_MEMBER("owner", TEXT, REC, owner), .flags = HD_RECORD_ELSE,
     .other = offsetof(REC, principal)},
    {HD_RECORD_MEMBER("json", JSON, REC, json)},
    {HD_RECORD_MEMBER("wide", INT, REC, wide)},
    {HD_RECORD_MEMBER("count", INT, REC, count)},
    {HD_RECORD_MEMBER("word", WORD, REC, word), .names = words},
    {HD_RECORD_MEMBER("on", WORD, REC, is_on), .names = hd_record_true},
    {HD_RECORD_MEMBER("shown", WORD, REC, is_shown), .names = hd_record_bool},
    {.name = HD_S_INIT("point"), .kind = HD_RECORD_OBJECT, HD_RECORD_MEMBERS(point_members)},
    {.name = HD_S_INIT("part"),
     .kind = HD_RECORD_OBJECT,
     .flags = HD_RECORD_IF,
     .other = offsetof(REC, has_part),
     HD_RECORD_MEMBERS(part_members)},
    {HD_RECORD_COLUMN(MEMORY, REC, secret)},
};

static const struct hd_record_type probe_type = {
    .table = HD_CRONS,
    .size = sizeof(REC),
    .id = HD_CRONS_ID,
    .rev = HD_CRONS_REV,
    .columns =
        {
            [HD_CRONS_PRINCIPAL] = {HD_RECORD_COLUMN(TEXT, REC, principal)},
            [HD_CRONS_ID] = {HD_RECORD_COLUMN(TEXT, REC, id)},
            [HD_CRONS_REV] = {HD_RECORD_COLUMN(INT, REC, rev)},
            [HD_CRONS_NEXT] = {HD_RECORD_COLUMN(INT, REC, next_at)},
            [HD_CRONS_CREATED] = {HD_RECORD_COLUMN(NAME, REC, colour), .names = colours},
            [HD_CRONS_BODY] = {.kind = HD_RECORD_BODY},
        },
    HD_RECORD_MEMBERS(probe_members),
    .unknown = offsetof(REC, unknown),
};

static const struct probe full = {
    .principal = HD_S_INIT("ada"),
    .id = HD_S_INIT("p1"),
    .rev = 7,
    .next_at = 8,
    .colour = GREEN,
    .text = HD_S_INIT("a \"b\""),
    .owner = HD_S_INIT("bob"),
    .json = HD_S_INIT("{\"k\": 1.0}"),
    .wide = -INT64_MAX,
    .count = 3,
    .word = GREEN,
    .is_on = true,
    .is_shown = true,
    .x = HD_S_INIT("left"),
    .y = HD_S_INIT("top"),
    .has_part = true,
    .part_colour = GREEN,
    .part_text = HD_S_INIT("piece"),
    .secret = HD_S_INIT("hidden"),
    .unknown = HD_S_INIT("\"new\":[1, {}],\"\\u00e9\":null"),
};

static const char full_body[] =
    "{\"text\":\"a \\\"b\\\"\",\"owner\":\"bob\",\"json\":{\"k\": 1.0},"
    "\"wide\":-9223372036854775807,\"count\":3,\"word\":1,\"on\":true,\"shown\":true,"
    "\"point\":{\"x\":\"left\",\"y\":\"top\"},\"part\":{\"colour\":\"green\",\"text\":\"piece\"},"
    "\"new\":[1, {}],\"\\u00e9\":null}";

static void assert_same_fields(const struct probe *got, const struct probe *expected)
{
    assert_slice(got->principal, expected->principal);
    assert_slice(got->id, expected->id);
    assert_int_equal(got->rev, expected->rev);
    assert_int_equal(got->next_at, expected->next_at);
    assert_int_equal(got->colour, expected->colour);
    assert_slice(got->text, expected->text);
    assert_slice(got->owner, expected->owner);
    assert_slice(got->json, expected->json);
    assert_int_equal(got->wide, expected->wide);
    assert_int_equal(got->count, expected->count);
    assert_int_equal(got->word, expected->word);
    assert_int_equal(got->is_on, expected->is_on);
    assert_int_equal(got->is_shown, expected->is_shown);
    assert_slice(got->x, expected->x);
    assert_slice(got->y, expected->y);
    assert_int_equal(got->has_part, expected->has_part);
    assert_int_equal(got->part_colour, expected->part_colour);
    assert_slice(got->part_text, expected->part_text);
    assert_slice(got->unknown, expected->unknown);
}

/* ---- helpers ---------------------------------------------------------- */

static int setup_arena(void **state)
{
    static struct hd_arena arena;

    hd_arena_init(&arena, MAX_ARENA);
    *state = &arena;
    return 0;
}

static int teardown_arena(void **state)
{
    hd_arena_fini(*state);
    return 0;
}

static int decode_text(struct hd_arena *arena, const char *body, struct probe *out)
{
    const struct hd_cell cells[HD_MAX_COLUMNS] = {
        [HD_CRONS_PRINCIPAL] = hd_cell_bytes(HD_S("ada")),
        [HD_CRONS_ID] = hd_cell_bytes(HD_S("p1")),
        [HD_CRONS_REV] = hd_cell_int(7),
        [HD_CRONS_NEXT] = hd_cell_int(8),
        [HD_CRONS_CREATED] = hd_cell_bytes(HD_S("green")),
        [HD_CRONS_BODY] = hd_cell_bytes(hd_slice_cstr(body)),
    };

    return hd_record_decode(&probe_type, cells, arena, out, NULL);
}

static struct hd_slice encode_text(struct hd_arena *arena, const struct probe *probe)
{
    struct hd_cell cells[HD_MAX_COLUMNS];

    assert_err(hd_record_encode(&probe_type, probe, arena, cells), 0);
    assert_int_equal(cells[HD_CRONS_BODY].kind, HD_CELL_BYTES);
    return cells[HD_CRONS_BODY].bytes;
}

/* ---- tests ------------------------------------------------------------ */

static void every_kind_comes_back_as_it_was(void **state)
{
    struct hd_cell cells[HD_MAX_COLUMNS];
    struct probe back;

    assert_err(hd_record_encode(&probe_type, &full, *state, cells), 0);
    assert_slice(cells[HD_CRONS_PRINCIPAL].bytes, HD_S("ada"));
    assert_slice(cells[HD_CRONS_CREATED].bytes, HD_S("green"));
    assert_slice(cells[HD_CRONS_BODY].bytes, hd_slice_cstr(full_body));
    assert_err(hd_record_decode(&probe_type, cells, *state, &back, NULL), 0);
    assert_same_fields(&back, &full);
    assert_slice(back.secret, HD_S(""));
}

static void zero_and_empty_are_not_written(void **state)
{
    const struct probe bare = {.principal = HD_S("ada"), .id = HD_S("p1"), .owner = HD_S("ada")};
    struct hd_cell cells[HD_MAX_COLUMNS];

    assert_err(hd_record_encode(&probe_type, &bare, *state, cells), 0);
    assert_int_equal(cells[HD_CRONS_REV].kind, HD_CELL_INT);
    assert_int_equal(cells[HD_CRONS_NEXT].kind, HD_CELL_NULL); /* the column is nullable */
    assert_slice(cells[HD_CRONS_BODY].bytes, HD_S("{\"shown\":false}"));
}

static void absent_members_have_their_defaults(void **state)
{
    struct probe back;

    assert_err(decode_text(*state, "{\"text\":\"t\",\"unknown\":[{}]}", &back), 0);
    assert_slice(back.owner, HD_S("ada"));
    assert_slice(back.json, HD_S(""));
    assert_int_equal(back.wide, 0);
    assert_false(back.is_on || back.is_shown || back.has_part);
    assert_non_null(back.text.ptr);
}

static void members_are_found_in_any_order(void **state)
{
    struct probe back;

    assert_err(
        decode_text(
            *state,
            "{\"new\":[1, {}], \"part\":{\"text\":\"piece\",\"colour\":\"green\"},"
            "\"point\":{\"y\":\"top\",\"x\":\"left\"},\"shown\":true,\"on\":true,"
            "\"word\":1,\"count\":3,\"wide\":-9223372036854775807,"
            "\"json\":{\"k\": 1.0},\"owner\":\"bob\",\"\\u00e9\":null,\"text\":\"a \\\"b\\\"\"}",
            &back),
        0);
    assert_same_fields(&back, &full);
}

/* A newer version wrote them; those of an object in the body go with the object. */
static void unknown_members_are_written_back(void **state)
{
    struct probe probe, copy;

    assert_err(decode_text(*state,
                           "{ \"a\" : [\"}\"] ,\"text\":\"t\",\"b\":\"\\\"\", \"c\":-1,"
                           "\"point\":{\"x\":\"left\",\"z\":1}}",
                           &probe),
               0);
    probe.text = HD_S("changed");
    assert_err(hd_record_copy(&probe_type, *state, &probe, &copy), 0);
    assert_slice(encode_text(*state, &copy),
                 HD_S("{\"text\":\"changed\",\"shown\":false,\"point\":{\"x\":\"left\"},"
                      "\"a\" : [\"}\"],\"b\":\"\\\"\",\"c\":-1}"));
}

static void an_object_needs_a_major_member(void **state)
{
    struct probe probe = {.text = HD_S("t"), .y = HD_S("top")};

    assert_slice(encode_text(*state, &probe), HD_S("{\"text\":\"t\",\"shown\":false}"));
    probe.x = HD_S("left");
    assert_slice(encode_text(*state, &probe),
                 HD_S("{\"text\":\"t\",\"shown\":false,\"point\":{\"x\":\"left\",\"y\":\"top\"}}"));
}

static void damaged_members_are_found(void **state)
{
    static const char *const bad[] = {
        "{}",
        "{\"text\":\"\"}",
        "{\"text\":1}",
        "{\"text\":\"t\",\"count\":-1}",
        "{\"text\":\"t\",\"count\":2147483648}",
        "{\"text\":\"t\",\"wide\":true}",
        "{\"text\":\"t\",\"point\":[]}",
        "{\"text\":\"t\",\"part\":{}}",
        "{\"text\":\"t\",\"part\":{\"colour\":\"blue\"}}",
        "{\"text\":\"t\"",
    };
    struct probe back;

    for (size_t i = 0; i < HD_COUNT(bad); i++) {
        if (decode_text(*state, bad[i], &back) != HD_ECORRUPT)
            fail_msg("%s was accepted", bad[i]);
    }
}

static void a_damaged_record_is_named(void **state)
{
    const struct hd_cell cells[HD_MAX_COLUMNS] = {
        [HD_CRONS_ID] = hd_cell_bytes(HD_S("p1")),
        [HD_CRONS_CREATED] = hd_cell_bytes(HD_S("blue")),
        [HD_CRONS_BODY] = hd_cell_bytes(HD_S("{\"text\":\"t\"}")),
    };
    struct heddle_error fault = {0};
    struct probe back;

    assert_err(hd_record_decode(&probe_type, cells, *state, &back, &fault), HD_ECORRUPT);
    assert_non_null(strstr(fault.text, "p1"));
    assert_non_null(strstr(fault.text, "crons"));
}

static void a_copy_has_its_own_memory(void **state)
{
    struct hd_arena first;
    struct probe back, copy;

    hd_arena_init(&first, MAX_ARENA);
    assert_err(hd_record_copy(&probe_type, &first, &full, &back), 0);
    assert_err(hd_record_copy(&probe_type, *state, &back, &copy), 0);
    hd_arena_fini(&first);
    assert_same_fields(&copy, &full);
    assert_slice(copy.secret, full.secret);
}

static int make_all(void *arg)
{
    struct hd_cell cells[HD_MAX_COLUMNS];
    struct hd_arena arena;
    struct probe copy, back;
    int err;

    (void)arg;
    hd_arena_init(&arena, MAX_ARENA);
    err = hd_record_copy(&probe_type, &arena, &full, &copy);
    if (!err)
        err = hd_record_encode(&probe_type, &copy, &arena, cells);
    if (!err)
        err = hd_record_decode(&probe_type, cells, &arena, &back, NULL);
    hd_arena_fini(&arena);
    return err;
}

static void a_failed_allocation_is_reported(void **state)
{
    (void)state;
    assert_true(check_every_allocation(make_all, NULL) > 0);
}

int main(void)
{
#define WITH_ARENA(function) cmocka_unit_test_setup_teardown(function, setup_arena, teardown_arena)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_come_out_byte_for_byte),
        cmocka_unit_test(damaged_bodies_are_rejected),
        cmocka_unit_test(texts_and_numbers_are_read),
        WITH_ARENA(every_kind_comes_back_as_it_was),
        WITH_ARENA(zero_and_empty_are_not_written),
        WITH_ARENA(absent_members_have_their_defaults),
        WITH_ARENA(members_are_found_in_any_order),
        WITH_ARENA(unknown_members_are_written_back),
        WITH_ARENA(an_object_needs_a_major_member),
        WITH_ARENA(damaged_members_are_found),
        WITH_ARENA(a_damaged_record_is_named),
        WITH_ARENA(a_copy_has_its_own_memory),
        cmocka_unit_test(a_failed_allocation_is_reported),
    };
#undef WITH_ARENA

    return cmocka_run_group_tests(tests, NULL, NULL);
}
