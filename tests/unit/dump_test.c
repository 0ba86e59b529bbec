/* Lines of exports: the line of each row, and the row read from it. */
#include <stdio.h>
#include <string.h>

#include "records/recording_internal.h"
#include "store/codec/value.h"
#include "tests/unit/check.h"
#include "transfer/dump.h"

#define SIZE 100000

struct world {
    struct hd_arena arena;
    struct hd_buf text;
    struct hd_dump_line line;
    struct heddle_error fault;
};

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof(*w));

    assert_non_null(w);
    hd_arena_init(&w->arena, (size_t)1 << 26);
    hd_buf_init(&w->text, SIZE);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;

    hd_buf_fini(&w->text);
    hd_arena_fini(&w->arena);
    free(w);
    return 0;
}

/* Writes the row, reads it again, and compares all columns but the omitted ones. */
static void round_trip(struct world *w, enum hd_table_id table, struct hd_cell *cells)
{
    hd_buf_reset(&w->text);
    for (unsigned i = 0; i < hd_tables[table].column_count; i++) {
        if (hd_dump_column(table, i) == HD_DUMP_LEFT_OUT)
            cells[i] = hd_cell_null();
    }
    assert_err(hd_dump_write_row(&w->text, table, cells, &w->arena), 0);
    assert_int_equal(w->text.ptr[w->text.len - 1], '\n');
    w->text.len--;
    assert_err(hd_dump_read(hd_buf_slice(&w->text), &w->arena, &w->line, &w->fault), 0);
    assert_int_equal(w->line.kind, HD_DUMP_ROW);
    assert_int_equal(w->line.table, table);
    assert_int_equal(hd_cells_cmp(w->line.cells, cells, hd_tables[table].column_count), 0);
}

static struct hd_slice kept(struct world *w, struct hd_buf *buf)
{
    struct hd_slice out;

    assert_err(hd_arena_copy(&w->arena, hd_buf_slice(buf), &out), 0);
    hd_buf_fini(buf);
    return out;
}

/* A reference of literals and chunk sequences. */
static struct hd_slice long_ref(struct world *w, struct hd_slice own)
{
    struct hd_ref_builder builder;
    struct hd_buf buf;

    hd_buf_init(&buf, SIZE);
    hd_ref_builder_init(&builder, own);
    assert_err(hd_ref_builder_literal(&builder, HD_S("["), false), 0);
    assert_err(hd_ref_builder_chunk(&builder, own, 7, false), 0);
    assert_err(hd_ref_builder_chunk(&builder, own, 8, true), 0);
    assert_err(hd_ref_builder_chunk(&builder, HD_S("other\xff"), 1, true), 0);
    assert_err(hd_ref_builder_chunk(&builder, own, 3, true), 0);
    assert_err(hd_ref_builder_literal(&builder, HD_S("]"), false), 0);
    assert_err(hd_ref_builder_finish(&builder, 4711, UINT64_C(0x8badf00d00000001), &buf), 0);
    hd_ref_builder_fini(&builder);
    return kept(w, &buf);
}

static struct hd_slice body_of(struct world *w, struct hd_slice json)
{
    struct hd_channel_entry entries[2] = {{.channel = HD_S("a"), .type = HD_S("hd1")},
                                          {.channel = HD_S("messages"), .type = HD_S("msgpack")}};
    struct hd_checkpoint_body body = {.v = 4, .json = json, .entries = entries, .entry_count = 2};
    struct hd_buf ref, buf;

    hd_buf_init(&ref, SIZE);
    hd_buf_init(&buf, SIZE);
    assert_err(hd_ref_write_inline(&ref, HD_S("\"short\"")), 0);
    entries[0].ref = kept(w, &ref);
    entries[1].ref = long_ref(w, HD_S("messages"));
    assert_err(hd_checkpoint_body_write(&buf, &body), 0);
    return kept(w, &buf);
}

static void checkpoints_come_back(void **state)
{
    static const char *const texts[] = {"{\"v\":4,\"n\":1.50}", "{ \"v\" :4}", "{\"v\":\n4}",
                                        "no JSON \xff", ""};

    for (size_t i = 0; i < HD_COUNT(texts); i++) {
        struct hd_cell cells[HD_MAX_COLUMNS] = {
            [HD_CHECKPOINTS_NS] = hd_cell_bytes(HD_S("assistant:x|\"y\"")),
            [HD_CHECKPOINTS_ID] = hd_cell_bytes(HD_S("1\xff")),
            [HD_CHECKPOINTS_RUN] = hd_cell_null(),
            [HD_CHECKPOINTS_METADATA] = hd_cell_bytes(hd_slice_cstr(texts[i])),
            [HD_CHECKPOINTS_BODY] = hd_cell_bytes(body_of(*state, hd_slice_cstr(texts[i]))),
        };

        round_trip(*state, HD_CHECKPOINTS, cells);
    }
}

static void json_is_readable(void **state)
{
    struct world *w = *state;
    struct hd_cell cells[HD_MAX_COLUMNS] = {[HD_CHUNKS_STREAM] = hd_cell_bytes(HD_S("messages")),
                                            [HD_CHUNKS_SEQ] = hd_cell_int(9007199254740993),
                                            [HD_CHUNKS_DATA] =
                                                hd_cell_bytes(HD_S("{\"content\": \"hi\"}"))};

    round_trip(w, HD_CHUNKS, cells);
    assert_slice(hd_buf_slice(&w->text),
                 HD_S("{\"table\":\"chunks\",\"row\":{\"stream\":\"messages\",\"seq\":"
                      "9007199254740993,\"data\":{\"json\":{\"content\": \"hi\"}}}}"));
}

static void writes_come_back(void **state)
{
    struct world *w = *state;
    struct hd_slice refs[] = {long_ref(w, HD_S("m")), HD_S("\x01{}"), HD_S("\x01\xff\xfe"),
                              HD_S("\x07 not a reference"), HD_S("")};

    for (size_t i = 0; i < HD_COUNT(refs); i++) {
        struct hd_cell cells[HD_MAX_COLUMNS] = {
            [HD_WRITES_NS] = hd_cell_bytes(HD_S("")),
            [HD_WRITES_CHECKPOINT] = hd_cell_bytes(HD_S("1")),
            [HD_WRITES_TASK] = hd_cell_bytes(HD_S("t")),
            [HD_WRITES_IDX] = hd_cell_int(-4),
            [HD_WRITES_PATH] = hd_cell_bytes(HD_S("~\xff\x00")),
            [HD_WRITES_CHANNEL] = hd_cell_bytes(HD_S("m")),
            [HD_WRITES_TYPE] = hd_cell_bytes(HD_S("hd1")),
            [HD_WRITES_VALUE] = hd_cell_bytes(refs[i]),
        };

        round_trip(w, HD_WRITES, cells);
    }
}

static void events_and_exchanges_come_back(void **state)
{
    struct hd_kept_exchange exchange = {.place = HD_S("1/a"),
                                        .url = HD_S("http://x"),
                                        .headers = HD_S("a: b\r\n"),
                                        .body = HD_S("\xff"),
                                        .status = 200,
                                        .tries = 2,
                                        .is_partial = true};
    struct hd_cell pages[HD_MAX_COLUMNS] = {
        [HD_EVENT_PAGES_FIRST] = hd_cell_int(1),
        [HD_EVENT_PAGES_LAST] = hd_cell_int(2),
        [HD_EVENT_PAGES_RUN] = hd_cell_bytes(HD_S("r")),
        [HD_EVENT_PAGES_CREATED] = hd_cell_int(3),
        [HD_EVENT_PAGES_DATA] =
            hd_cell_bytes(HD_S("\x01\x02\x00\x06values\x02{}\x02\x02\x01\x00\x00")),
    };
    struct hd_cell exchanges[HD_MAX_COLUMNS] = {
        [HD_EXCHANGES_SEQ] = hd_cell_int(1),
        [HD_EXCHANGES_RUN] = hd_cell_bytes(HD_S("r")),
        [HD_EXCHANGES_CREATED] = hd_cell_int(3),
    };
    struct hd_buf buf;

    round_trip(*state, HD_EVENT_PAGES, pages);
    pages[HD_EVENT_PAGES_DATA] = hd_cell_bytes(HD_S("\x01 damaged"));
    round_trip(*state, HD_EVENT_PAGES, pages);
    hd_buf_init(&buf, SIZE);
    assert_err(hd_kept_write(&buf, &exchange), 0);
    exchanges[HD_EXCHANGES_DATA] = hd_cell_bytes(kept(*state, &buf));
    round_trip(*state, HD_EXCHANGES, exchanges);
}

static void lines_that_are_none(void **state)
{
    static const struct {
        const char *text, *why;
    } lines[] = {
        {"", ""},
        {"{", ""},
        {"[]", "not a row of an export"},
        {"{}", "not a row of an export"},
        {"{\"end\":-1}", "not a row of an export"},
        {"{\"end\":\"1\"}", "not a row of an export"},
        {"{\"thread\":\"\"}", "not a row of an export"},
        {"{\"heddle\":\"import\",\"version\":1}", "not the header"},
        {"{\"heddle\":\"export\"}", "not the header"},
        {"{\"heddle\":\"export\",\"version\":2}", "version 2"},
        {"{\"table\":\"api_keys\",\"row\":{}}", "unknown table api_keys"},
        {"{\"table\":\"principals\",\"row\":{}}", "unknown table principals"},
        {"{\"table\":\"nonsense\",\"row\":{}}", "unknown table nonsense"},
        {"{\"table\":\"threads\"}", "a row is missing"},
        {"{\"table\":\"threads\",\"row\":[]}", "a row is missing"},
        {"{\"table\":\"threads\",\"row\":{\"created_at\":1}}", "updated_at of threads"},
        {"{\"table\":\"threads\",\"row\":{\"created_at\":1,\"updated_at\":null}}", "updated_at"},
        {"{\"table\":\"threads\",\"row\":{\"created_at\":1,\"updated_at\":1.5}}", "updated_at"},
        {"{\"table\":\"threads\",\"row\":{\"created_at\":1,\"updated_at\":1,\"x\":1}}",
         "does not match the columns"},
        {"{\"table\":\"chunks\",\"row\":{\"stream\":\"a\",\"seq\":1,\"data\":\"x\"}}",
         "data of chunks"},
        {"{\"table\":\"chunks\",\"row\":{\"stream\":\"a\",\"seq\":1,\"data\":{\"json\":1}}}",
         "data"},
        {"{\"table\":\"chunks\",\"row\":{\"stream\":\"a\",\"seq\":1,\"data\":{\"base64\":\"!\"}}}",
         "data"},
        {"{\"table\":\"chunks\",\"row\":{\"stream\":\"a\",\"seq\":1,\"data\":{\"text\":\"a\","
         "\"base64\":\"YQ\"}}}",
         "data"},
    };
    struct world *w = *state;

    for (size_t i = 0; i < HD_COUNT(lines); i++) {
        w->fault = (struct heddle_error){0};
        assert_int_not_equal(
            hd_dump_read(hd_slice_cstr(lines[i].text), &w->arena, &w->line, &w->fault), 0);
        if (!strstr(w->fault.text, lines[i].why) || !w->fault.code)
            fail_msg("%s: %s", lines[i].text, w->fault.text);
    }
}

static void lines_that_are_good(void **state)
{
    struct world *w = *state;

    assert_err(hd_dump_read(HD_S("{\"heddle\":\"export\",\"version\":1,\"more\":{}}"), &w->arena,
                            &w->line, &w->fault),
               0);
    assert_int_equal(w->line.kind, HD_DUMP_HEADER);
    assert_err(hd_dump_read(HD_S("{\"thread\":\"\\u00fc\"}"), &w->arena, &w->line, &w->fault), 0);
    assert_int_equal(w->line.kind, HD_DUMP_THREAD);
    assert_slice(w->line.thread, HD_S("ü"));
    assert_err(hd_dump_read(HD_S("{\"end\":12}"), &w->arena, &w->line, &w->fault), 0);
    assert_int_equal(w->line.kind, HD_DUMP_END);
    assert_int_equal(w->line.rows, 12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(checkpoints_come_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(json_is_readable, set_up, tear_down),
        cmocka_unit_test_setup_teardown(writes_come_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(events_and_exchanges_come_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(lines_that_are_none, set_up, tear_down),
        cmocka_unit_test_setup_teardown(lines_that_are_good, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
