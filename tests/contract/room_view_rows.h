/* Rows of a room, and what the views chat_messages and message_runs show of them. */
#ifndef HD_TESTS_CONTRACT_ROOM_VIEW_ROWS_H
#define HD_TESTS_CONTRACT_ROOM_VIEW_ROWS_H

#include "store/backend.h"

#define VIEW_TEXT(literal) hd_cell_bytes(HD_S(literal))
#define VIEW_ROW(id, ...)                                                 \
    {                                                                     \
        .kind = HD_OP_PUT, .table = id, .cells = (const struct hd_cell[]) \
        {                                                                 \
            __VA_ARGS__                                                   \
        }                                                                 \
    }

#define VIEW_MESSAGE(seq, id, state, version, sender, body)                                        \
    VIEW_ROW(HD_ROOM_MESSAGES, VIEW_TEXT("ada"), VIEW_TEXT("t"), hd_cell_int(seq), VIEW_TEXT(id),  \
             VIEW_TEXT(state), hd_cell_int(version), hd_cell_int(0), hd_cell_int(1000000 * (seq)), \
             VIEW_TEXT(sender), VIEW_TEXT(body))
#define VIEW_CONTENT(id, version, content, body)                                \
    VIEW_ROW(HD_ROOM_CONTENTS, VIEW_TEXT("ada"), VIEW_TEXT("t"), VIEW_TEXT(id), \
             hd_cell_int(version), hd_cell_int(1), VIEW_TEXT(content), VIEW_TEXT(body))

/* Two versions of a question, an answer in blocks, a deleted message, and what cannot be shown. */
#define ROOM_VIEW_ROWS                                                                           \
    {                                                                                            \
        VIEW_MESSAGE(1, "m1", "ok", 2, "ada",                                                    \
                     "{\"kind\":\"person\",\"sender_id\":\"Ada\","                               \
                     "\"updated_at\":9500000}"),                                                 \
            VIEW_CONTENT("m1", 1, "\"old\"", "{}"),                                              \
            VIEW_CONTENT("m1", 2, "\"caf\\u00e9\"", "{\"metadata\":{\"a\":1}}"),                 \
            VIEW_MESSAGE(2, "m2", "stopped", 1, "a1",                                            \
                         "{\"kind\":\"agent\",\"sender_id\":\"a1\",\"reply_to\":\"m1\"}"),       \
            VIEW_CONTENT("m2", 1,                                                                \
                         "[{\"type\":\"text\",\"text\":\"tw\"},{\"type\":\"image\"},\"o\"]",     \
                         "{}"),                                                                  \
            VIEW_MESSAGE(3, "m3", "deleted", 1, "mail",                                          \
                         "{\"kind\":\"service\",\"sender_id\":\"mail\"}"),                       \
            VIEW_CONTENT("m3", 1, "\"gone\"", "{\"metadata\":{\"b\":2}}"),                       \
            VIEW_MESSAGE(4, "m4", "pending", 1, "a1", "{\"kind\":\"agent\"}"),                   \
            VIEW_ROW(HD_ROOM_RUNS, VIEW_TEXT("ada"), VIEW_TEXT("t"), VIEW_TEXT("r1"),            \
                     VIEW_TEXT("m1"), hd_cell_int(2000000),                                      \
                     VIEW_TEXT("{\"answer\":\"m2\",\"assistant_id\":\"a1\","                     \
                               "\"runtime\":\"native\",\"head_after\":\"c9\"}")),                \
            VIEW_ROW(HD_RUNS, VIEW_TEXT("ada"), VIEW_TEXT("t"), VIEW_TEXT("r1"), hd_cell_int(1), \
                     VIEW_TEXT("timeout"), hd_cell_int(1), hd_cell_int(1), hd_cell_null(),       \
                     VIEW_TEXT("{}")),                                                           \
            VIEW_ROW(HD_ROOM_RUNS, VIEW_TEXT("ada"), VIEW_TEXT("t"), VIEW_TEXT("r2"),            \
                     VIEW_TEXT(""), hd_cell_int(2000000), VIEW_TEXT("{}")),                      \
    }

#define SHOWN_MESSAGE                                                                             \
    "coalesce(sender_id, '-') || ' ' || coalesce(agent_id, '-') || ' ' || coalesce(content, '-')" \
    " || ' ' || metadata || ' ' || coalesce(parent_message_id, '-') || ' ' || thread_id ||"       \
    " CASE WHEN is_deleted THEN ' deleted' ELSE '' END"
#define SHOWN_RUN                                                                                \
    "coalesce(message_id, '-') || ' ' || run_id || ' ' || coalesce(assistant_id, '-') || ' ' ||" \
    " coalesce(runtime, '-') || ' ' || thread_id || ' ' || coalesce(trigger_message_id, '-') ||" \
    " ' ' || coalesce(checkpoint_id, '-') || ' ' || status || ' ' || principal"

static const struct {
    const char *view, *id, *columns, *expected;
} room_view_cases[] = {
    {"chat_messages", "m1", SHOWN_MESSAGE, "Ada - caf\xc3\xa9 {\"a\":1} - t"},
    {"chat_messages", "m2", SHOWN_MESSAGE, "- a1 two {} m1 t"},
    {"chat_messages", "m3", SHOWN_MESSAGE, "mail - - {} - t deleted"},
    {"chat_messages", "m4", SHOWN_MESSAGE, "- a1 - {} - t"},
    {"message_runs", "r1", SHOWN_RUN, "m2 r1 a1 native t m1 c9 error ada"},
    {"message_runs", "r2", SHOWN_RUN, "- r2 - - t - - completed ada"},
};

#endif
