/* The events of a batch of a cascade, when there are more changes than fit. */
#include "run/cascade/room_cascade_internal.h"

#include <stdlib.h>
#include <string.h>

#include "events/event_batch.h"
#include "events/event_log_internal.h"
#include "store/batch.h"
#include "tests/unit/check.h"

#define OWNER HD_S("ada")
#define THREAD HD_S("00000000-0000-4000-8000-00000000000a")
#define MAX_MEMORY ((size_t)64 << 20)
#define LARGE ((size_t)5 << 20)

struct fixture {
    struct hd_arena arena;
    struct hd_room_cascade op;
    struct hd_room_cascade_try attempt;
    struct hd_thread_rec thread;
    struct heddle_error fault;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    hd_arena_init(&f->arena, MAX_MEMORY);
    hd_thread_init(&f->thread, OWNER, THREAD);
    f->op = (struct hd_room_cascade){.arena = &f->arena,
                                     .principal = OWNER,
                                     .thread_id = THREAD,
                                     .events = hd_event_batch_apart(0, HD_ROOM_CASCADE_EVENTS),
                                     .cascade = {.principal = OWNER,
                                                 .thread_id = THREAD,
                                                 .id = HD_S("cascade"),
                                                 .message_id = HD_S("edited"),
                                                 .status = HD_CASCADE_DONE}};
    assert_non_null(f->op.events);
    f->attempt = (struct hd_room_cascade_try){.op = &f->op, .cascade = &f->op.cascade};
    hd_room_init(&f->attempt.past.room, OWNER, THREAD);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    hd_event_batch_end(f->op.events, false);
    hd_arena_fini(&f->arena);
    free(f);
    return 0;
}

/* Notes as many messages with this content. */
static void note_messages(struct fixture *f, int count, struct hd_slice text)
{
    for (int i = 0; i < count; i++) {
        struct hd_room_message_rec message = {.principal = OWNER,
                                              .thread_id = THREAD,
                                              .seq = i + 1,
                                              .id = HD_S("answer"),
                                              .version = 1,
                                              .state = HD_ROOM_STALE};
        const struct hd_room_content_rec content = {.principal = OWNER,
                                                    .thread_id = THREAD,
                                                    .message_id = message.id,
                                                    .version = 1,
                                                    .content = text};
        struct hd_room_cascade_message *note;

        assert_err(hd_room_cascade_note(&f->attempt, &message, &content, &note), 0);
    }
}

/* Makes the batch, whose last event must be that of the cascade; returns the number of others. */
static uint64_t count_messages(struct fixture *f)
{
    struct hd_batch_builder batch;
    struct hd_event_page_reader reader;
    struct hd_event_page_item event;
    uint64_t count;

    hd_batch_init(&batch);
    assert_err(hd_room_cascade_extend(&f->attempt, &batch, &f->thread, &f->fault), 0);
    hd_batch_fini(&batch);
    count = f->op.events->page.count;
    reader = hd_event_page_reader(hd_slice("", 0), hd_buf_slice(&f->op.events->page.data));
    for (uint64_t i = 0; i < count; i++) {
        assert_err(hd_event_page_reader_next(&reader, &event), 0);
        assert_slice(event.name, i + 1 < count ? HD_S("room/message") : HD_S("room/cascade"));
    }
    return count - 1;
}

static void test_a_cascade_ends_with_more_messages_than_events(void **state)
{
    struct fixture *f = *state;

    note_messages(f, (int)HD_ROOM_CASCADE_EVENTS + 10, HD_S("\"yes\""));
    assert_int_equal(count_messages(f), HD_ROOM_CASCADE_EVENTS - 1);
    assert_int_equal(count_messages(f), HD_ROOM_CASCADE_EVENTS - 1); /* another attempt */
}

static void test_a_cascade_ends_with_more_text_than_a_page_has(void **state)
{
    struct fixture *f = *state;
    char *text = malloc(LARGE);

    assert_non_null(text);
    memset(text, '1', LARGE);
    note_messages(f, 16, hd_slice(text, LARGE));
    assert_int_equal(count_messages(f), 6);
    free(text);
}

static void test_a_small_cascade_has_all_events(void **state)
{
    struct fixture *f = *state;

    note_messages(f, 3, HD_S("\"yes\""));
    assert_int_equal(count_messages(f), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_cascade_ends_with_more_messages_than_events, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_cascade_ends_with_more_text_than_a_page_has, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_small_cascade_has_all_events, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
