/* Rooms in deletions, exports, imports, checks and moves of principals, in memory and on SQLite. */
#include <stdio.h>
#include <stdlib.h>

#include "records/principals.h"
#include "run/run_commit.h"
#include "tests/unit/room_rows.h"
#include "transfer/dump.h"
#include "transfer/rekey_internal.h"
#include "transfer/row_check.h"

struct world {
    struct heddle *store;
    struct hd_arena arena;
    struct heddle_error fault;
};

static int open_world(void **state, const char *url)
{
    struct world *w = calloc(1, sizeof(*w));

    assert_non_null(w);
    hd_arena_init(&w->arena, (size_t)1 << 26);
    assert_int_equal(heddle_open(&w->store, url, NULL), 0);
    room_fill(w->store, &w->arena);
    *state = w;
    return 0;
}

static int open_memory(void **state)
{
    return open_world(state, "memory:");
}

static int open_sqlite(void **state)
{
    return open_world(state, "sqlite::memory:");
}

static int close_world(void **state)
{
    struct world *w = *state;

    heddle_close(w->store);
    hd_arena_fini(&w->arena);
    free(w);
    return 0;
}

static void assert_no_room(struct world *w)
{
    for (int table = HD_ROOM; table <= HD_ROOM_MENTIONS; table++) {
        if (room_count(w->store, (enum hd_table_id)table) != 0)
            fail_msg("rows are left in %s", hd_tables[table].name);
    }
}

/* ---- deletion --------------------------------------------------------- */

static void a_deleted_thread_leaves_no_room(void **state)
{
    struct world *w = *state;

    for (int table = HD_ROOM; table <= HD_ROOM_MENTIONS; table++)
        assert_true(room_count(w->store, (enum hd_table_id)table) > 0);
    assert_err(hd_run_commit_delete_thread(w->store, ROOM_OWNER, ROOM_THREAD, &w->fault), 0);
    assert_no_room(w);
}

static void an_expired_thread_leaves_no_room(void **state)
{
    struct world *w = *state;
    struct hd_thread_rec thread;

    assert_err(hd_thread_read(w->store, ROOM_OWNER, ROOM_THREAD, &w->arena, &thread, &w->fault), 0);
    assert_err(hd_run_commit_expire_thread(w->store, &thread, &w->fault), 0);
    assert_no_room(w);
}

/* ---- export and import ------------------------------------------------ */

static FILE *export_room(struct world *w, struct hd_slice principal)
{
    struct hd_export export = {.store = w->store, .principal = principal, .out = tmpfile()};

    assert_non_null(export.out);
    assert_err(hd_export_thread(&export, ROOM_THREAD, &w->fault), 0);
    return export.out;
}

static int import_room(struct world *w, FILE *file, struct hd_slice principal, bool replaces)
{
    struct hd_import import = {
        .store = w->store, .principal = principal, .in = file, .replaces = replaces};

    w->fault = (struct heddle_error){0};
    return hd_import(&import, &w->fault);
}

/* The text of a file behind its first line, which has a time. */
static struct hd_slice text_of(struct world *w, FILE *file)
{
    char *text = hd_arena_alloc(&w->arena, 100000), *end;
    size_t len;

    assert_non_null(text);
    rewind(file);
    len = fread(text, 1, 99999, file);
    text[len] = '\0';
    end = strchr(text, '\n');
    assert_non_null(end);
    return hd_slice(end, len - (size_t)(end - text));
}

static void a_room_comes_back(void **state)
{
    struct world *w = *state;
    size_t counts[HD_TABLE_COUNT];
    FILE *file = export_room(w, ROOM_OWNER), *again;
    struct hd_cascade_rec cascade;
    struct hd_slice text = text_of(w, file);

    for (int table = HD_ROOM; table <= HD_ROOM_MENTIONS; table++)
        counts[table] = room_count(w->store, (enum hd_table_id)table);
    assert_non_null(strstr(text.ptr, "{\"text\":\"\\\"three @ada\\\"\"}"));
    assert_err(import_room(w, file, ROOM_OWNER, false), HD_EEXISTS);
    assert_err(import_room(w, file, ROOM_OWNER, true), 0);
    for (int table = HD_ROOM; table <= HD_ROOM_MENTIONS; table++)
        assert_int_equal(room_count(w->store, (enum hd_table_id)table), counts[table]);
    assert_err(hd_cascade_read(w->store, ROOM_OWNER, ROOM_THREAD, HD_S("k1"), &w->arena, &cascade,
                               &w->fault),
               0);
    assert_int_equal(cascade.status, HD_CASCADE_FAILED);
    /* The second import changes nothing more. */
    again = export_room(w, ROOM_OWNER);
    text = text_of(w, again);
    assert_err(import_room(w, again, ROOM_OWNER, true), 0);
    (void)fclose(file);
    file = export_room(w, ROOM_OWNER);
    assert_slice(text_of(w, file), text);
    (void)fclose(file);
    (void)fclose(again);
}

static struct hd_slice sender_of(struct world *w, struct hd_slice principal, const char *id)
{
    struct hd_room_message_rec message;

    assert_err(hd_room_message_read(w->store, principal, ROOM_THREAD, hd_slice_cstr(id), &w->arena,
                                    &message, &w->fault),
               0);
    return message.sender;
}

static size_t inbox_size(struct world *w, struct hd_slice member)
{
    struct hd_mention_rec *mentions = NULL;
    size_t count = 0;

    assert_err(hd_mentions_read(w->store, member, 0, 0, &w->arena, &mentions, &count, &w->fault),
               0);
    return count;
}

static void messages_of_the_owner_become_those_of_the_new_owner(void **state)
{
    struct world *w = *state;
    FILE *file = export_room(w, ROOM_OWNER);
    struct hd_room_read_rec mark;

    assert_err(import_room(w, file, HD_S("eve"), false), 0);
    (void)fclose(file);
    assert_slice(sender_of(w, HD_S("eve"), "m1"), HD_S("eve"));
    assert_slice(sender_of(w, HD_S("eve"), "m2"), ROOM_AGENT);
    assert_slice(sender_of(w, HD_S("eve"), "m3"), ROOM_GUEST);
    assert_err(hd_room_read_mark(w->store, HD_S("eve"), ROOM_THREAD, HD_S("eve"), &w->arena, &mark,
                                 &w->fault),
               0);
    assert_int_equal(mark.seq, 6);
    assert_int_equal(inbox_size(w, HD_S("eve")), 1);
    assert_int_equal(inbox_size(w, ROOM_GUEST), 2);
}

static FILE *write_file(const char *text)
{
    FILE *file = tmpfile();

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    return file;
}

static void unknown_states_are_refused(void **state)
{
    struct world *w = *state;
    FILE *file = write_file(
        "{\"heddle\":\"export\",\"version\":1}\n{\"thread\":\"t\"}\n"
        "{\"table\":\"room_messages\",\"row\":{\"seq\":1,\"message_id\":\"m\",\"state\":\"odd\","
        "\"version\":1,\"changed\":0,\"created_at\":1,\"sender\":\"a\",\"body\":{\"json\":{}}}}\n"
        "{\"end\":1}\n");

    assert_err(import_room(w, file, HD_S("eve"), false), HD_EINVAL);
    assert_string_equal(w->fault.text, "unknown state of a chat message");
    (void)fclose(file);
    file = write_file(
        "{\"heddle\":\"export\",\"version\":1}\n{\"thread\":\"t\"}\n"
        "{\"table\":\"room_cascades\",\"row\":{\"cascade_id\":\"k\",\"rev\":1,\"status\":\"odd\","
        "\"created_at\":1,\"updated_at\":1,\"body\":{\"json\":{}}}}\n"
        "{\"end\":1}\n");
    assert_err(import_room(w, file, HD_S("eve"), false), HD_EINVAL);
    assert_string_equal(w->fault.text, "unknown status of a cascade");
    (void)fclose(file);
}

/* ---- checks ----------------------------------------------------------- */

static void a_damaged_content_is_found(void **state)
{
    struct world *w = *state;
    struct hd_batch_builder batch;
    const struct hd_cell row[] = {
        hd_cell_bytes(ROOM_OWNER),
        hd_cell_bytes(ROOM_THREAD),
        hd_cell_bytes(HD_S("m1")),
        hd_cell_int(1),
        hd_cell_int(1),
        hd_cell_bytes(HD_S("no JSON")),
        hd_cell_bytes(HD_S("{}")),
    };
    uint64_t rows;

    assert_err(hd_row_check(w->store, &rows, &w->fault), 0);
    hd_batch_init(&batch);
    assert_err(hd_batch_row(&batch, HD_OP_PUT, HD_ROOM_CONTENTS, row), 0);
    room_apply(w->store, &batch);
    assert_err(hd_row_check(w->store, &rows, &w->fault), HD_ECORRUPT);
    assert_string_equal(w->fault.text,
                        "table room_contents: the content of 'ada', 'job', 'm1' is not JSON");
}

/* ---- moves of principals ---------------------------------------------- */

static void add_moved(struct world *w, struct hd_slice from, struct hd_slice to)
{
    struct hd_principal_rec principal = {.id = from,
                                         .key_id = HD_S("old"),
                                         .issuer = HD_S("main"),
                                         .subject = from,
                                         .state = HD_PRINCIPAL_MOVED,
                                         .moved_to = to};
    struct hd_batch_builder batch;

    hd_batch_init(&batch);
    assert_err(hd_principal_add(&batch, &principal), 0);
    room_apply(w->store, &batch);
}

static void a_room_moves_with_its_owner(void **state)
{
    struct world *w = *state;
    struct hd_rekey rekey = {.store = w->store};
    struct hd_mover mover = {
        .rekey = &rekey, .from = ROOM_OWNER, .to = HD_S("eve"), .fault = &w->fault};
    struct hd_room_rec room;

    do
        assert_err(hd_mover_pass(&mover), 0);
    while (mover.moved > 0);
    assert_err(hd_room_read(w->store, ROOM_OWNER, ROOM_THREAD, &w->arena, &room, &w->fault),
               HD_ENOTFOUND);
    assert_err(hd_room_read(w->store, HD_S("eve"), ROOM_THREAD, &w->arena, &room, &w->fault), 0);
    assert_int_equal(room.last_seq, 6);
    assert_slice(sender_of(w, HD_S("eve"), "m3"), ROOM_GUEST);
    assert_int_equal(inbox_size(w, HD_S("eve")), 1);
    assert_int_equal(inbox_size(w, ROOM_OWNER), 0);
    assert_int_equal(inbox_size(w, ROOM_GUEST), 1);
    assert_err(hd_run_commit_delete_thread(w->store, HD_S("eve"), ROOM_THREAD, &w->fault), 0);
    assert_no_room(w);
}

static void people_are_followed_in_rooms_of_others(void **state)
{
    struct world *w = *state;
    struct hd_rekey rekey = {.store = w->store};
    struct hd_room_agent *agents = NULL;
    struct hd_cascade_rec cascade;
    struct hd_room_read_rec mark;
    struct hd_room_rec room;
    size_t count;

    add_moved(w, ROOM_GUEST, HD_S("bobby"));
    assert_err(hd_mover_follow_people(&rekey, &w->fault), 0);
    assert_int_equal(rekey.rows, 5); /* m3, m4, the mark, the agent, the cascade */
    assert_slice(sender_of(w, ROOM_OWNER, "m3"), HD_S("bobby"));
    assert_slice(sender_of(w, ROOM_OWNER, "m1"), ROOM_OWNER);
    assert_err(hd_room_read_mark(w->store, ROOM_OWNER, ROOM_THREAD, HD_S("bobby"), &w->arena, &mark,
                                 &w->fault),
               0);
    assert_int_equal(mark.seq, 3);
    assert_int_equal(room_count(w->store, HD_ROOM_READS), 2);
    assert_err(hd_room_read(w->store, ROOM_OWNER, ROOM_THREAD, &w->arena, &room, &w->fault), 0);
    assert_err(hd_room_agents_read(&room, &w->arena, &agents, &count, &w->fault), 0);
    assert_slice(agents[0].actor, ROOM_OWNER);
    assert_slice(agents[1].actor, HD_S("bobby"));
    assert_err(hd_cascade_read(w->store, ROOM_OWNER, ROOM_THREAD, HD_S("k1"), &w->arena, &cascade,
                               &w->fault),
               0);
    assert_slice(cascade.actor, HD_S("bobby"));
    rekey.rows = 0;
    assert_err(hd_mover_follow_people(&rekey, &w->fault), 0);
    assert_int_equal(rekey.rows, 0);
}

/* More rows than one batch has. */
static void a_long_chat_is_followed_to_its_end(void **state)
{
    struct world *w = *state;
    struct hd_rekey rekey = {.store = w->store};
    char ids[1200][8];
    struct hd_batch_builder batch;

    hd_batch_init(&batch);
    for (size_t i = 0; i < HD_COUNT(ids); i++) {
        const struct room_line line = {
            ids[i], HD_ROOM_PERSON, ROOM_GUEST, HD_ROOM_OK, "\"hi\"", "", "", ""};

        (void)snprintf(ids[i], sizeof(ids[i]), "n%zu", i);
        room_add_line(&batch, (int64_t)i + 10, &line);
    }
    room_apply(w->store, &batch);
    add_moved(w, ROOM_GUEST, HD_S("bobby"));
    assert_err(hd_mover_follow_people(&rekey, &w->fault), 0);
    assert_int_equal(rekey.rows, 1205);
    assert_slice(sender_of(w, ROOM_OWNER, "n1199"), HD_S("bobby"));
}

int main(void)
{
#define BOTH(function)                                                   \
    cmocka_unit_test_setup_teardown(function, open_memory, close_world), \
    {                                                                    \
        "sqlite " #function, function, open_sqlite, close_world, NULL    \
    }
    const struct CMUnitTest tests[] = {
        BOTH(a_deleted_thread_leaves_no_room),
        BOTH(an_expired_thread_leaves_no_room),
        BOTH(a_room_comes_back),
        BOTH(messages_of_the_owner_become_those_of_the_new_owner),
        BOTH(unknown_states_are_refused),
        BOTH(a_damaged_content_is_found),
        BOTH(a_room_moves_with_its_owner),
        BOTH(people_are_followed_in_rooms_of_others),
        BOTH(a_long_chat_is_followed_to_its_end),
    };
#undef BOTH

    return cmocka_run_group_tests(tests, NULL, NULL);
}
