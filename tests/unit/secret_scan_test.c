/* Secrets planted in every column of every table, in its encoding, are found there. */
#include <heddle.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "records/recording_internal.h"
#include "store/codec/pack.h"
#include "store/codec/value.h"
#include "store/rows.h"
#include "tests/unit/check.h"
#include "transfer/secret_scan.h"

#define KEY "sk-proj-4Tf9aB27Qx81LmZp0Wv3"
#define PRINCIPAL "sk-HcmIZbNfwGeli3rC3LQ" /* a principal that looks like a secret */

struct world {
    struct heddle *store;
    struct hd_arena arena;
    const char *key; /* the planted secret */
    size_t found[HD_TABLE_COUNT][HD_MAX_COLUMNS];
    size_t count;
};

static int on_found(void *ctx, const struct hd_secret_place *place)
{
    struct world *w = ctx;

    assert_true(place->column < hd_tables[place->table].column_count);
    if (!hd_slice_eq(place->finding->secret, hd_slice_cstr(w->key)))
        return 0; /* the first half of a cut secret looks like one, too */
    w->found[place->table][place->column]++;
    w->count++;
    return 0;
}

static void scan(struct world *w)
{
    struct hd_secret_scan scan = {.found = on_found, .ctx = w};
    struct heddle_error fault = {0};

    memset(w->found, 0, sizeof(w->found));
    w->count = 0;
    assert_err(hd_secret_scan(w->store, &scan, &fault), 0);
}

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof(*w));

    assert_non_null(w);
    hd_arena_init(&w->arena, (size_t)1 << 24);
    w->key = KEY;
    assert_int_equal(heddle_open(&w->store, "sqlite::memory:", NULL), 0);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;

    heddle_close(w->store);
    hd_arena_fini(&w->arena);
    free(w);
    return 0;
}

static struct hd_slice packed(struct world *w, struct hd_slice text)
{
    struct hd_slice out;

    assert_err(hd_pack(&w->arena, text, &out), 0);
    return out;
}

static struct hd_slice kept(struct world *w, const struct hd_buf *buf)
{
    struct hd_slice out;

    assert_err(hd_arena_copy(&w->arena, hd_buf_slice(buf), &out), 0);
    return out;
}

/* The encoding of `text` in columns that are not plain text. */
static struct hd_slice encoded(struct world *w, enum hd_table_id table, unsigned column,
                               struct hd_slice text)
{
    struct hd_kept_exchange exchange = {.body = text};
    struct hd_channel_entry entry = {.channel = HD_S("messages"), .type = HD_S("hd1")};
    struct hd_checkpoint_body body = {.json = HD_S("{}"), .entries = &entry, .entry_count = 1};
    struct hd_buf buf, ref;
    struct hd_slice out = text;

    hd_buf_init(&buf, 100000);
    hd_buf_init(&ref, 100000);
    assert_err(hd_ref_write_inline(&ref, text), 0);
    entry.ref = hd_buf_slice(&ref);
    if (table == HD_CHECKPOINTS && column == HD_CHECKPOINTS_BODY) {
        assert_err(hd_checkpoint_body_write(&buf, &body), 0);
        out = packed(w, hd_buf_slice(&buf));
    } else if (table == HD_WRITES && column == HD_WRITES_VALUE) {
        out = kept(w, &ref);
    } else if (table == HD_CHUNKS && column == HD_CHUNKS_DATA) {
        out = packed(w, text);
    } else if (table == HD_OUTBOX && column == HD_OUTBOX_BODY) {
        out = packed(w, text);
    } else if (table == HD_EXCHANGES && column == HD_EXCHANGES_DATA) {
        assert_err(hd_kept_write(&buf, &exchange), 0);
        out = packed(w, hd_buf_slice(&buf));
    } else if (table == HD_EVENT_PAGES && column == HD_EVENT_PAGES_DATA) {
        assert_err(hd_buf_append_varint(&buf, 1), 0);
        assert_err(hd_buf_append_varint(&buf, 1), 0);
        assert_err(hd_buf_append_byte(&buf, 0), 0);
        assert_err(hd_buf_append_lenslice(&buf, HD_S("values")), 0);
        assert_err(hd_buf_append_lenslice(&buf, text), 0);
        out = packed(w, hd_buf_slice(&buf));
    }
    hd_buf_fini(&ref);
    hd_buf_fini(&buf);
    return out;
}

/* Adds a row with the secret in one column. */
static void plant(struct world *w, enum hd_table_id id, unsigned planted)
{
    const struct hd_table *table = &hd_tables[id];
    struct hd_cell cells[HD_MAX_COLUMNS];
    struct hd_batch_builder batch;
    struct hd_batch view;

    for (unsigned i = 0; i < table->column_count; i++) {
        const char *text = i == planted ? w->key : "{\"harmless\":1}";

        cells[i] = table->columns[i].type == HD_COL_INT
                       ? hd_cell_int(planted)
                       : hd_cell_bytes(encoded(w, id, i, hd_slice_cstr(text)));
    }
    hd_batch_init(&batch);
    assert_err(hd_batch_row(&batch, HD_OP_PUT, id, cells), 0);
    view = hd_batch_view(&batch);
    assert_err(hd_rows_apply(w->store, HD_S(":t"), &view, NULL, NULL), 0);
    hd_batch_fini(&batch);
}

static bool is_of_principals(const char *column)
{
    static const char *const names[] = {"principal", "member", "sender", "reader"};

    for (size_t i = 0; i < HD_COUNT(names); i++) {
        if (strcmp(column, names[i]) == 0)
            return true;
    }
    return false;
}

/* The secret is found in every column; a principal is ignored in columns of principals. */
static void look_everywhere(void **state, const char *key, bool is_principal)
{
    for (int table = 0; table < HD_TABLE_COUNT; table++) {
        for (unsigned i = 0; i < hd_tables[table].column_count; i++) {
            const char *column = hd_tables[table].columns[i].name;
            size_t wanted = is_principal && is_of_principals(column) ? 0 : 1;
            bool is_hash = table == HD_CHUNKS && i == HD_CHUNKS_HASH;
            struct world *w;

            if (hd_tables[table].columns[i].type == HD_COL_INT || is_hash)
                continue;
            tear_down(state);
            set_up(state);
            w = *state;
            w->key = key;
            plant(w, (enum hd_table_id)table, i);
            scan(w);
            if (w->found[table][i] != wanted || w->count != wanted)
                fail_msg("%s.%s: %zu found there, %zu in all", hd_tables[table].name, column,
                         w->found[table][i], w->count);
        }
    }
}

static void every_column_of_every_table(void **state)
{
    look_everywhere(state, KEY, false);
}

static void principals_are_no_secrets(void **state)
{
    look_everywhere(state, PRINCIPAL, true);
}

/* The bodies of rooms and cascades name the people who added agents or edited messages. */
static void actors_of_rooms_are_no_secrets(void **state)
{
    static const struct {
        enum hd_table_id table;
        unsigned column;
        const char *body;
        size_t found;
    } cases[] = {
        {HD_ROOM, HD_ROOM_BODY, "{\"agents\":[{\"name\":\"a\",\"actor\":\"" PRINCIPAL "\"}]}", 0},
        {HD_ROOM_CASCADES, HD_ROOM_CASCADES_BODY, "{\"actor\":\"" PRINCIPAL "\"}", 0},
        {HD_ROOM, HD_ROOM_BODY, "{\"agents\":[{\"name\":\"" PRINCIPAL "\"}]}", 1},
        {HD_ROOM_MESSAGES, HD_ROOM_MESSAGES_BODY, "{\"actor\":\"" PRINCIPAL "\"}", 1},
    };

    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct world *w;

        tear_down(state);
        set_up(state);
        w = *state;
        w->key = cases[i].body;
        plant(w, cases[i].table, cases[i].column);
        w->key = PRINCIPAL;
        scan(w);
        assert_int_equal(w->count, cases[i].found);
    }
}

/* A long text is stored in chunks, which may end within a secret. */
static void secrets_in_pieces(void **state)
{
    struct world *w = *state;

    for (int round = 0; round < 40; round++) {
        struct heddle_value value = {.channel = {"messages", 8}, .type = {"hd1", 3}};
        struct heddle_checkpoint put = {
            .ns = {"", 0},
            .checkpoint = {"{\"channel_versions\":{\"messages\":1}}", 35},
            .metadata = {"{}", 2},
            .new_versions = {"{\"messages\":1}", 14},
            .values = &value,
            .value_count = 1};
        char thread[16], *text = malloc(300000);
        uint32_t seed = (uint32_t)round + 1;
        size_t len = 0;

        assert_non_null(text);
        for (; len < 200000; len++) {
            seed = seed * 1664525 + 1013904223;
            text[len] = seed >> 24 < 40 ? ' ' : (char)('a' + (seed >> 16) % 26);
            if (len % 5000 == 1000 + (size_t)round * 37) {
                memcpy(text + len, " " KEY " ", sizeof(KEY) + 1);
                len += sizeof(KEY);
            }
        }
        put.id = (struct heddle_bytes){"1", 1};
        put.thread.id =
            (struct heddle_bytes){thread, (size_t)snprintf(thread, sizeof(thread), "t%d", round)};
        value.data = (struct heddle_bytes){text, len};
        assert_int_equal(heddle_put(w->store, &put, NULL), 0);
        free(text);
    }
    scan(w);
    assert_int_equal(w->count, (size_t)40 * 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_column_of_every_table, set_up, tear_down),
        cmocka_unit_test_setup_teardown(principals_are_no_secrets, set_up, tear_down),
        cmocka_unit_test_setup_teardown(actors_of_rooms_are_no_secrets, set_up, tear_down),
        cmocka_unit_test_setup_teardown(secrets_in_pieces, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
