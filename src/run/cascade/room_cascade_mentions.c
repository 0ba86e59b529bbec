/*
 * Mentions follow the text of an edited message: those that the edit adds or removes. The others
 * stay, because the request that posted the message may have listed them.
 */
#include "base/buf.h"
#include "base/json.h"
#include "room/room_ask.h"
#include "room/room_input.h"
#include "run/cascade/room_cascade_internal.h"
#include "run/room/room_members.h"

#define MAX_MENTIONS_TEXT ((size_t)1 << 20)

struct mention_change {
    struct hd_room_cascade_try *t;
    struct hd_room_members members;
    struct hd_ask_answer before, after; /* the mentions in the texts */
};

static int find_in_content(struct mention_change *c, struct hd_slice content,
                           struct hd_ask_answer *out)
{
    struct hd_ask_question question = {.members = c->members.list,
                                       .member_count = c->members.count};
    struct hd_arena *arena = c->t->op->arena;
    struct hd_slice *texts;
    int err = hd_room_content_texts(content, arena, &texts, &question.text_count);

    question.texts = texts;
    return err ? err : hd_room_ask(&question, arena, out, c->t->fault);
}

/* Names in the old text may be ambiguous by now: such a text counts as one without mentions. */
static int find_before(struct mention_change *c, struct hd_slice content)
{
    int err = find_in_content(c, content, &c->before);

    if (err != HD_EINVAL)
        return err;
    c->before = (struct hd_ask_answer){.asked_count = 0};
    *c->t->fault = (struct heddle_error){0};
    return 0;
}

static int find_after(struct mention_change *c)
{
    int err = find_in_content(c, c->t->op->content, &c->after);
    struct heddle_error cause = *c->t->fault;

    return err == HD_EINVAL ? hd_admit_refuse(c->t->group, c->t->fault, 422, "%s", cause.text)
                            : err;
}

static int read_mentionable(struct mention_change *c)
{
    const struct hd_room_cascade *op = c->t->op;
    const struct hd_room_members_query query = {.app = op->app,
                                                .arena = op->arena,
                                                .room = &c->t->past.room,
                                                .people = op->people,
                                                .people_count = op->people_count,
                                                .actor = op->editor.key};

    return hd_room_members_read(&query, &c->members, c->t->fault);
}

/* ---- the change ------------------------------------------------------- */

static bool has_member(const struct mention_change *c, const struct hd_ask_answer *text,
                       const struct hd_ask_member *member)
{
    for (size_t i = 0; i < text->mentioned_count; i++) {
        const struct hd_ask_member *found = &c->members.list[text->mentioned[i]];

        if (found->kind == member->kind && hd_slice_eq(found->key, member->key))
            return true;
    }
    return false;
}

static bool is_item_of(hd_json_val item, const struct hd_ask_member *member)
{
    return hd_slice_eq(hd_json_string(hd_json_get(item, HD_S("id"))), member->id) &&
           hd_slice_eq(hd_json_string(hd_json_get(item, HD_S("type"))),
                       hd_slice_cstr(hd_room_senders[member->kind]));
}

static bool has_item(hd_json_val list, const struct hd_ask_member *member)
{
    struct hd_json_iter it = hd_json_iter(list);

    while (hd_json_next(&it)) {
        if (is_item_of(it.val, member))
            return true;
    }
    return false;
}

/* The edit has removed the mention from the text. */
static bool is_removed(const struct mention_change *c, hd_json_val item)
{
    for (size_t i = 0; i < c->before.mentioned_count; i++) {
        const struct hd_ask_member *member = &c->members.list[c->before.mentioned[i]];

        if (is_item_of(item, member))
            return !has_member(c, &c->after, member);
    }
    return false;
}

/* Keeps the entry of the inbox for the batch. */
static void note_inbox(struct mention_change *c, const struct hd_ask_member *member, bool is_added)
{
    struct hd_room_cascade_try *t = c->t;

    if (member->kind == HD_ROOM_PERSON && !hd_slice_eq(member->key, t->op->editor.key))
        t->inbox[t->inbox_count++] = (struct hd_room_cascade_inbox){member->key, is_added};
}

static int write_mention_list(struct mention_change *c, hd_json_val old, struct hd_slice *out)
{
    struct hd_json_iter it = hd_json_iter(old);
    struct hd_buf text;
    struct hd_jw jw;

    hd_buf_init(&text, MAX_MENTIONS_TEXT);
    hd_jw_init(&jw, &text);
    hd_jw_array(&jw);
    while (hd_json_next(&it)) {
        if (!is_removed(c, it.val))
            hd_jw_val(&jw, it.val);
    }
    for (size_t i = 0; i < c->after.mentioned_count; i++) {
        const struct hd_ask_member *member = &c->members.list[c->after.mentioned[i]];
        const struct hd_room_person shown = {
            .kind = member->kind, .id = member->id, .name = member->name};

        if (has_member(c, &c->before, member) || has_item(old, member))
            continue;
        hd_room_view_person(&jw, &shown);
        note_inbox(c, member, true);
    }
    hd_jw_array_end(&jw);
    return hd_jw_finish_in(&jw, c->t->op->arena, out);
}

static void note_removed(struct mention_change *c, hd_json_val old)
{
    for (size_t i = 0; i < c->before.mentioned_count; i++) {
        const struct hd_ask_member *member = &c->members.list[c->before.mentioned[i]];

        if (has_item(old, member) && !has_member(c, &c->after, member))
            note_inbox(c, member, false);
    }
}

static int change_mentions(struct mention_change *c)
{
    struct hd_room_cascade_try *t = c->t;
    struct hd_slice *list = &t->op->message.mentions;
    struct hd_json old = {NULL};
    int err = list->len > 0 ? hd_json_parse(&old, *list, t->fault) : 0;

    t->inbox = hd_arena_calloc(t->op->arena, 2 * HD_ROOM_MAX_MENTIONS, sizeof(*t->inbox));
    t->inbox_count = 0;
    if (!err && !t->inbox)
        err = HD_ENOMEM;
    if (!err) {
        note_removed(c, hd_json_root(&old));
        err = write_mention_list(c, hd_json_root(&old), list);
    }
    hd_json_fini(&old);
    return err;
}

int hd_room_cascade_mention(struct hd_room_cascade_try *t, struct hd_slice before)
{
    struct mention_change c = {.t = t};
    int err = read_mentionable(&c);

    if (!err)
        err = find_before(&c, before);
    if (!err)
        err = find_after(&c);
    return err ? err : change_mentions(&c);
}

/* ---- the inbox -------------------------------------------------------- */

int hd_room_cascade_put_inbox(const struct hd_room_cascade_try *t, struct hd_batch_builder *batch)
{
    const struct hd_room_cascade *op = t->op;
    int err = 0;

    for (size_t i = 0; !err && i < t->inbox_count; i++) {
        const struct hd_mention_rec mention = {.member = t->inbox[i].member,
                                               .created_at = op->message.updated_at,
                                               .principal = op->principal,
                                               .thread_id = op->thread_id,
                                               .message_id = op->message.id,
                                               .seq = op->message.seq};

        err = t->inbox[i].is_added ? hd_mention_add(batch, &mention)
                                   : hd_mention_remove(op->app->store, batch, &mention, t->fault);
    }
    return err;
}
