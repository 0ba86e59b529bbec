#include "room/room_ask.h"

#include <stdio.h>
#include <string.h>

#include "room/mention.h"

#define MAX_CANDIDATES 8 /* in the text of an error */

/* ---- members ---------------------------------------------------------- */

static bool is_same_member(const struct hd_ask_member *a, const struct hd_ask_member *b)
{
    return a->kind == b->kind && hd_slice_eq(a->key, b->key);
}

/* The first entry of a member: all its names have this target. */
static size_t first_entry(const struct hd_ask_question *question, size_t index)
{
    size_t i = 0;

    while (!is_same_member(&question->members[i], &question->members[index]))
        i++;
    return i;
}

static int list_names(const struct hd_ask_question *question, struct hd_arena *arena,
                      struct hd_mention_name **out, size_t *count)
{
    *count = 0;
    *out = hd_arena_calloc(arena, question->member_count + 1, sizeof(**out));
    if (!*out)
        return HD_ENOMEM;
    for (size_t i = 0; i < question->member_count; i++) {
        const struct hd_ask_member *member = &question->members[i];

        if (member->name.len > 0)
            (*out)[(*count)++] = (struct hd_mention_name){
                .name = member->name, .target = first_entry(question, i), .rank = member->rank};
    }
    return 0;
}

/* The agent with this id; false: none. */
static bool find_agent(const struct hd_ask_question *question, struct hd_slice id, size_t *out)
{
    for (size_t i = 0; i < question->member_count; i++) {
        const struct hd_ask_member *member = &question->members[i];

        if (member->kind == HD_ROOM_AGENT && hd_slice_eq(member->key, id)) {
            *out = i;
            return true;
        }
    }
    return false;
}

/* The member with an id as clients see it; false: none. */
static bool find_id(const struct hd_ask_question *question, struct hd_slice id, size_t *out)
{
    for (size_t i = 0; i < question->member_count; i++) {
        if (hd_slice_eq(question->members[i].id, id)) {
            *out = first_entry(question, i);
            return true;
        }
    }
    return false;
}

/* ---- ambiguous names -------------------------------------------------- */

/* Names the members that a mention may mean, by their ids. */
static int refuse_ambiguous(const struct hd_ask_question *question,
                            const struct hd_mention_name *names, size_t name_count,
                            const struct hd_mention *mention, struct heddle_error *fault)
{
    char list[400] = "";
    size_t len = 0, count = 0;
    int rank = -1;

    for (size_t i = 0; i < name_count; i++) {
        if (hd_mention_means(mention, &names[i]) && (rank < 0 || names[i].rank < rank))
            rank = names[i].rank;
    }
    for (size_t i = 0; i < name_count && count < MAX_CANDIDATES; i++) {
        struct hd_slice id = question->members[names[i].target].id;
        int written;

        if (names[i].rank != rank || !hd_mention_means(mention, &names[i]))
            continue;
        written = snprintf(list + len, sizeof(list) - len, "%s%.*s", count++ ? ", " : "",
                           (int)(id.len < 40 ? id.len : 40), id.ptr);
        len += written > 0 ? (size_t)written : 0;
    }
    return hd_error_set(fault, HD_EINVAL, "mentions: \"%.*s\" is ambiguous: %s",
                        (int)(mention->text.len < 60 ? mention->text.len : 60), mention->text.ptr,
                        list);
}

/* ---- mentions --------------------------------------------------------- */

struct mentioning {
    const struct hd_ask_question *question;
    struct hd_mention_name *names;
    size_t name_count;
    struct hd_mention found[HD_ROOM_MAX_MENTIONS];
    size_t count;
};

static int refuse_too_many(struct heddle_error *fault)
{
    return hd_error_set(fault, HD_EINVAL, "mentions: more than %d", HD_ROOM_MAX_MENTIONS);
}

/* Names precede ids. */
static int add_listed(struct mentioning *all, struct hd_slice text, struct heddle_error *fault)
{
    struct hd_mention mention = {.text = text};

    if (!hd_mention_resolve(text, all->names, all->name_count, &mention) &&
        !find_id(all->question, text, &mention.target))
        return hd_error_set(fault, HD_EINVAL, "mentions: \"%.*s\" is unknown",
                            (int)(text.len < 60 ? text.len : 60), text.ptr);
    for (size_t i = 0; i < all->count; i++) {
        if (all->found[i].target == mention.target)
            return 0;
    }
    if (all->count == HD_ROOM_MAX_MENTIONS)
        return refuse_too_many(fault);
    all->found[all->count++] = mention;
    return 0;
}

static int find_mentions(struct mentioning *all, struct heddle_error *fault)
{
    const struct hd_ask_question *question = all->question;
    int err = 0;

    if (question->has_list) {
        for (size_t i = 0; !err && i < question->list_count; i++)
            err = add_listed(all, question->list[i], fault);
        return err;
    }
    for (size_t i = 0; i < question->text_count; i++) {
        if (!hd_mentions_find(question->texts[i], all->names, all->name_count, all->found,
                              HD_ROOM_MAX_MENTIONS, &all->count))
            return refuse_too_many(fault);
    }
    return 0;
}

/* ---- the answer ------------------------------------------------------- */

static int add_asked(struct hd_ask_answer *out, size_t index, struct heddle_error *fault)
{
    if (out->asked_count == HD_ROOM_MAX_ASKED)
        return hd_error_set(fault, HD_EINVAL, "mentions: a message asks at most %d agents",
                            HD_ROOM_MAX_ASKED);
    out->asked[out->asked_count++] = index;
    return 0;
}

static int take_mentions(const struct mentioning *all, struct hd_ask_answer *out,
                         struct heddle_error *fault)
{
    const struct hd_ask_question *question = all->question;
    int err = 0;

    for (size_t i = 0; !err && i < all->count; i++) {
        const struct hd_mention *mention = &all->found[i];

        if (mention->is_ambiguous)
            return refuse_ambiguous(question, all->names, all->name_count, mention, fault);
        out->mentioned[out->mentioned_count++] = mention->target;
        if (question->members[mention->target].kind == HD_ROOM_AGENT)
            err = add_asked(out, mention->target, fault);
    }
    return err;
}

/* A message without a mention. The agent of an answer may have left the room. */
static int ask_by_default(const struct hd_ask_question *question, struct hd_ask_answer *out,
                          struct heddle_error *fault)
{
    size_t index;

    if (question->replied_agent.len > 0) {
        if (!find_agent(question, question->replied_agent, &index))
            return hd_error_set(fault, HD_EINVAL, "reply_to: its agent is not in the room");
        return add_asked(out, index, fault);
    }
    if (question->default_agent.len == 0)
        return 0;
    if (!find_agent(question, question->default_agent, &index))
        return hd_error_set(fault, HD_EINVAL, "the room's default assistant is not there");
    return add_asked(out, index, fault);
}

int hd_room_ask(const struct hd_ask_question *question, struct hd_arena *arena,
                struct hd_ask_answer *out, struct heddle_error *fault)
{
    struct mentioning all = {.question = question};
    int err = list_names(question, arena, &all.names, &all.name_count);

    *out = (struct hd_ask_answer){.asked_count = 0};
    if (!err)
        err = find_mentions(&all, fault);
    if (!err)
        err = take_mentions(&all, out, fault);
    return err || all.count > 0 ? err : ask_by_default(question, out, fault);
}
