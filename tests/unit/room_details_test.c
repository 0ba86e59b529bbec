/* What is read with many chat messages at once. */
#include "room/room_details.h"

#include <heddle.h>
#include <stdlib.h>

#include "base/arena.h"
#include "records/record.h"
#include "store/rows.h"
#include "tests/unit/check.h"

#define ADA HD_S("ada")
#define JOB HD_S("job")

struct world {
    struct heddle *store;
    struct hd_arena arena;
    struct heddle_error fault;
};

static int open_memory(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    struct heddle_error error = {0};

    assert_non_null(w);
    hd_arena_init(&w->arena, (size_t)1 << 26);
    if (heddle_open(&w->store, "memory:", &error))
        fail_msg("%s", error.text);
    *state = w;
    return 0;
}

static int close_world(void **state)
{
    struct world *w = *state;

    heddle_close(w->store);
    hd_arena_fini(&w->arena);
    free(w);
    return 0;
}

static void apply(struct world *w, struct hd_batch_builder *builder)
{
    struct hd_batch batch = hd_batch_view(builder);

    assert_err(hd_rows_apply(w->store, HD_S("ada:job"), &batch, NULL, NULL), 0);
    hd_batch_fini(builder);
}

static struct hd_room_message_rec message_of(int64_t seq, const char *id, enum hd_room_state state)
{
    return (struct hd_room_message_rec){.principal = ADA,
                                        .thread_id = JOB,
                                        .seq = seq,
                                        .id = hd_slice_cstr(id),
                                        .state = state,
                                        .version = 1,
                                        .created_at = 5};
}

static void add_content(struct hd_batch_builder *batch, const char *id, const char *content)
{
    const struct hd_room_content_rec rec = {.principal = ADA,
                                            .thread_id = JOB,
                                            .message_id = hd_slice_cstr(id),
                                            .version = 1,
                                            .content = hd_slice_cstr(content)};

    assert_err(hd_room_content_add(batch, &rec), 0);
}

static void add_triggered(struct hd_batch_builder *batch, const char *id, const char *trigger)
{
    const struct hd_room_run_rec rec = {.principal = ADA,
                                        .thread_id = JOB,
                                        .run_id = hd_slice_cstr(id),
                                        .trigger = hd_slice_cstr(trigger),
                                        .assistant_id = HD_S("agent"),
                                        .answer = HD_S("answer")};

    assert_err(hd_room_run_put(batch, &rec), 0);
}

static void add_stored(struct hd_batch_builder *batch, const char *id, enum hd_run_state status)
{
    struct hd_run_rec rec = {.principal = ADA,
                             .thread_id = JOB,
                             .run_id = hd_slice_cstr(id),
                             .status = status,
                             .assistant_id = HD_S("agent"),
                             .kwargs = HD_S("{}"),
                             .metadata = HD_S("{}")};

    assert_err(hd_run_add(batch, &rec), 0);
}

static void messages_have_their_contents_and_runs(void **state)
{
    struct world *w = *state;
    const struct hd_room_message_rec messages[] = {message_of(1, "m1", HD_ROOM_OK),
                                                   message_of(2, "m2", HD_ROOM_OK),
                                                   message_of(3, "m3", HD_ROOM_DELETED)};
    struct hd_room_details details[3];
    struct hd_batch_builder batch;

    hd_batch_init(&batch);
    add_content(&batch, "m1", "\"one\"");
    add_content(&batch, "m3", "\"three\"");
    add_triggered(&batch, "r1", "m1");
    add_triggered(&batch, "r2", "m1");
    add_triggered(&batch, "r3", "m3");
    add_stored(&batch, "r1", HD_RUN_STATE_SUCCESS);
    add_stored(&batch, "r3", HD_RUN_STATE_RUNNING);
    apply(w, &batch);
    assert_err(hd_room_details_read(w->store, messages, 3, &w->arena, details, &w->fault), 0);
    assert_slice(details[0].content.content, HD_S("\"one\""));
    assert_int_equal(details[0].run_count, 2);
    assert_slice(details[0].runs[0].status, HD_S("success"));
    assert_slice(details[0].runs[1].run_id, HD_S("r2"));
    assert_int_equal(details[0].runs[1].status.len, 0); /* its record is gone */
    assert_int_equal(details[1].content.content.len, 0);
    assert_int_equal(details[1].run_count, 0);
    assert_int_equal(details[2].content.content.len, 0); /* kept, and not shown */
    assert_slice(details[2].runs[0].status, HD_S("running"));
}

static void no_messages_have_no_details(void **state)
{
    struct world *w = *state;
    struct hd_room_message_rec none = {.id = HD_S("m")};
    struct hd_room_details details;

    assert_err(hd_room_details_read(w->store, &none, 0, &w->arena, &details, &w->fault), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(messages_have_their_contents_and_runs, open_memory,
                                        close_world),
        cmocka_unit_test_setup_teardown(no_messages_have_no_details, open_memory, close_world),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
