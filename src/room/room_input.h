/*
 * The input of a run that a chat message makes. Pure.
 *
 * It is a list of messages: removals of messages that were deleted or replaced, messages that the
 * line did not have or has in an older version, then the trigger. A chat message enters the line
 * under its own id, so that a new version replaces the old one in its place. All of them are human
 * messages: those of others have `name` and additional_kwargs.heddle {"sender", "message_id",
 * "version", "context": true}, and their text begins with the speaker's name, because most
 * providers have no field for it; the trigger has additional_kwargs.heddle without "context". The
 * line has the messages of its own agent already.
 *
 * The newest messages are chosen within the room's context.messages and context.bytes, which do not
 * count the trigger. A message that does not fit ends the choice, unless its attachments are the
 * cause: these are named in place of their data. Older ones are passed over.
 */
#ifndef HD_ROOM_ROOM_INPUT_H
#define HD_ROOM_ROOM_INPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "room/room.h"

/* A message and the content of its current version, which is zeroed without one. */
struct hd_room_item {
    const struct hd_room_message_rec *message;
    const struct hd_room_content_rec *content;
};

struct hd_room_input_question {
    const struct hd_room_rec *room; /* the limits of the context */
    struct hd_slice agent;          /* the assistant of the line */
    struct hd_room_mark mark;       /* of the line */
    /*
     * By seq, in all states: the newest messages behind the mark, and those before it that changed
     * since. Others are ignored, and the trigger may be there too.
     */
    const struct hd_room_item *items;
    size_t count;
    struct hd_room_item trigger;
    bool names_trigger; /* its text begins with the name of its sender: the agent hears several */
    /*
     * The ids of the messages at the head of the line: changed ones that it does not have stay out.
     * Needed for messages before the mark, and for those of the agent.
     */
    const struct hd_slice *held;
    size_t held_count;
};

struct hd_room_input {
    struct hd_slice messages; /* JSON list */
    struct hd_slice given;    /* JSON: hd_room_run_rec.given; the trigger is the last */
};

/* True if the message is given to agents: `ok` or `stopped`, not replaced, with content. */
bool hd_room_input_has(const struct hd_room_item *item);
/* The id of the message in the line of `agent`. */
struct hd_slice hd_room_input_id(const struct hd_room_message_rec *message, struct hd_slice agent);

/* The result is in the arena. HD_EINVAL: a stored content is no string and no list. */
HD_MUST_CHECK int hd_room_input_make(const struct hd_room_input_question *question,
                                     struct hd_arena *arena, struct hd_room_input *out,
                                     struct heddle_error *fault);

/* ---- contents: room_content.c ----------------------------------------- */

/* True if the content, JSON, has a text that is not blank, or a block that is no text. */
bool hd_room_content_is_said(struct hd_slice content);

/*
 * The content of an answer without the blocks that are not shown to readers: calls of tools,
 * reasoning. In the arena.
 */
HD_MUST_CHECK int hd_room_content_said(struct hd_slice content, struct hd_arena *arena,
                                       struct hd_slice *out);

/* The texts of a content, for mentions; in the arena. */
HD_MUST_CHECK int hd_room_content_texts(struct hd_slice content, struct hd_arena *arena,
                                        struct hd_slice **out, size_t *count);

#endif
