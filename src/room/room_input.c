#include "room/room_input.h"

#include "base/json.h"
#include "room/room_view.h"

#define MAX_MESSAGES_TEXT ((size_t)256 << 20)
#define MAX_CONTENT_TEXT ((size_t)16 << 20)

bool hd_room_input_has(const struct hd_room_item *item)
{
    const struct hd_room_message_rec *message = item->message;

    return (message->state == HD_ROOM_OK || message->state == HD_ROOM_STOPPED) &&
           message->replaced_by.len == 0 && item->content && item->content->content.len > 0;
}

static bool is_by_agent(const struct hd_room_message_rec *message, struct hd_slice agent)
{
    return message->kind == HD_ROOM_AGENT && hd_slice_eq(message->sender, agent);
}

struct hd_slice hd_room_input_id(const struct hd_room_message_rec *message, struct hd_slice agent)
{
    bool is_other = is_by_agent(message, agent) && message->source_id.len > 0;

    return is_other ? message->source_id : message->id;
}

/* ---- contents --------------------------------------------------------- */

/* How a content is written into the input. */
struct wording {
    struct hd_slice speaker; /* the text begins with this name; empty: with none */
    bool names_attachments;  /* in place of their data */
};

static bool is_text_part(hd_json_val block)
{
    return hd_json_is_string(block) ||
           hd_slice_eq(hd_json_string(hd_json_get(block, HD_S("type"))), HD_S("text"));
}

static bool has_attachments(hd_json_val content)
{
    struct hd_json_iter it = hd_json_iter(content);

    while (hd_json_is_array(content) && hd_json_next(&it)) {
        if (!is_text_part(it.val))
            return true;
    }
    return false;
}

/* A text after the name of its speaker. */
static void put_spoken(struct hd_jw *jw, const struct wording *how, struct hd_slice text)
{
    struct hd_buf buf;
    int err = 0;

    hd_buf_init(&buf, MAX_CONTENT_TEXT);
    if (how->speaker.len > 0) {
        err = hd_buf_append_slice(&buf, how->speaker);
        if (!err)
            err = hd_buf_append(&buf, ": ", 2);
    }
    if (!err)
        err = hd_buf_append_slice(&buf, text);
    if (!jw->err)
        jw->err = err;
    hd_jw_string(jw, hd_buf_slice(&buf));
    hd_buf_fini(&buf);
}

static void put_text_block(struct hd_jw *jw, const struct wording *how, struct hd_slice text)
{
    hd_jw_object(jw);
    hd_jw_put_string(jw, "type", HD_S("text"));
    hd_jw_key(jw, HD_S("text"));
    put_spoken(jw, how, text);
    hd_jw_object_end(jw);
}

/* The file name that a block gives; or its type. */
static struct hd_slice attachment_name(hd_json_val block)
{
    static const char *const holders[] = {"metadata", "extras", "file", NULL};
    static const char *const names[] = {"filename", "name", "title", NULL};

    for (size_t h = 0; h < HD_COUNT(holders); h++) {
        hd_json_val from = h == 0 ? block : hd_json_get(block, hd_slice_cstr(holders[h - 1]));

        for (size_t n = 0; names[n]; n++) {
            struct hd_slice name = hd_json_string(hd_json_get(from, hd_slice_cstr(names[n])));

            if (name.len > 0 && name.len <= HD_ROOM_MAX_NAME)
                return name;
        }
    }
    return hd_json_string(hd_json_get(block, HD_S("type")));
}

static void put_named(struct hd_jw *jw, hd_json_val block)
{
    static const struct wording plain = {.names_attachments = true};
    struct hd_buf buf;
    int err;

    hd_buf_init(&buf, MAX_CONTENT_TEXT);
    err = hd_buf_append(&buf, "[attachment, not included: ", 27);
    if (!err)
        err = hd_buf_append_slice(&buf, attachment_name(block));
    if (!err)
        err = hd_buf_append_byte(&buf, ']');
    if (!jw->err)
        jw->err = err;
    put_text_block(jw, &plain, hd_buf_slice(&buf));
    hd_buf_fini(&buf);
}

/* The first text names the speaker; without a text an own block does. */
static void put_blocks(struct hd_jw *jw, hd_json_val list, struct wording how)
{
    struct hd_json_iter it = hd_json_iter(list);
    hd_json_val text;

    hd_jw_array(jw);
    if (how.speaker.len > 0 && hd_json_size(list) > 0) {
        struct hd_json_iter first = hd_json_iter(list);

        if (hd_json_next(&first) && !is_text_part(first.val)) {
            put_text_block(jw, &how, hd_slice(NULL, 0));
            how.speaker.len = 0;
        }
    }
    while (hd_json_next(&it)) {
        text = hd_json_is_string(it.val) ? it.val : hd_json_get(it.val, HD_S("text"));
        if (is_text_part(it.val) && how.speaker.len > 0) {
            put_text_block(jw, &how, hd_json_string(text));
            how.speaker.len = 0;
        } else if (!is_text_part(it.val) && how.names_attachments) {
            put_named(jw, it.val);
        } else {
            hd_jw_val(jw, it.val);
        }
    }
    hd_jw_array_end(jw);
}

/* HD_EINVAL: neither a string nor a list. */
static int write_content(hd_json_val content, const struct wording *how, struct hd_arena *arena,
                         struct hd_slice *out)
{
    struct hd_buf buf;
    struct hd_jw jw;

    if (!hd_json_is_string(content) && !hd_json_is_array(content))
        return HD_EINVAL;
    hd_buf_init(&buf, MAX_CONTENT_TEXT);
    hd_jw_init(&jw, &buf);
    if (hd_json_is_string(content))
        put_spoken(&jw, how, hd_json_string(content));
    else
        put_blocks(&jw, content, *how);
    return hd_jw_finish_in(&jw, arena, out);
}

/* ---- the choice ------------------------------------------------------- */

/* What becomes of an item. */
struct chosen_item {
    enum { ITEM_PASSED, ITEM_GIVEN, ITEM_REMOVED } fate;
    struct hd_slice content; /* as it is given */
};

struct choosing {
    const struct hd_room_input_question *question;
    struct hd_arena *arena;
    struct chosen_item *chosen; /* one for each item */
    int64_t messages, bytes;    /* that still fit */
};

/* Lines must not have it any more. */
static bool is_gone(const struct hd_room_message_rec *message)
{
    return message->state == HD_ROOM_DELETED || message->state == HD_ROOM_STALE ||
           message->replaced_by.len > 0;
}

static bool line_holds(const struct hd_room_input_question *question,
                       const struct hd_room_message_rec *message)
{
    struct hd_slice id = hd_room_input_id(message, question->agent);

    for (size_t i = 0; i < question->held_count; i++) {
        if (hd_slice_eq(question->held[i], id))
            return true;
    }
    return false;
}

/* The line has neither the message nor was it passed over; or it has an older version. */
static bool is_new_to_line(const struct hd_room_input_question *question,
                           const struct hd_room_message_rec *message)
{
    if (message->seq > question->mark.seq)
        return true;
    return message->changed > question->mark.changes && line_holds(question, message);
}

static bool fits_input(const struct choosing *all, struct hd_slice content)
{
    return content.len <= (size_t)all->bytes;
}

/* *out is empty when the message does not fit. */
static int word_item(const struct choosing *all, const struct hd_room_item *item,
                     struct hd_slice *out)
{
    struct wording how = {.speaker = item->message->sender_name};
    struct hd_json json = {NULL};
    int err = hd_json_parse(&json, item->content->content, NULL);

    if (!err)
        err = write_content(hd_json_root(&json), &how, all->arena, out);
    if (!err && !fits_input(all, *out) && has_attachments(hd_json_root(&json))) {
        how.names_attachments = true;
        err = write_content(hd_json_root(&json), &how, all->arena, out);
    }
    if (!err && !fits_input(all, *out))
        *out = hd_slice(NULL, 0);
    hd_json_fini(&json);
    return err;
}

/* Sets messages to 0 when the item does not fit: it ends the choice. */
static int choose_item(struct choosing *all, size_t index)
{
    const struct hd_room_item *item = &all->question->items[index];
    struct chosen_item *chosen = &all->chosen[index];
    int err = all->messages > 0 ? word_item(all, item, &chosen->content) : 0;

    if (err)
        return err;
    if (chosen->content.len == 0) {
        all->messages = 0;
        return 0;
    }
    chosen->fate = ITEM_GIVEN;
    all->messages--;
    all->bytes -= (int64_t)chosen->content.len;
    return 0;
}

/* Newest first. */
static int choose_items(struct choosing *all)
{
    const struct hd_room_input_question *question = all->question;
    int err = 0;

    for (size_t i = question->count; !err && i-- > 0;) {
        const struct hd_room_item *item = &question->items[i];

        if (hd_slice_eq(item->message->id, question->trigger.message->id))
            continue;
        if (is_gone(item->message) && line_holds(question, item->message))
            all->chosen[i].fate = ITEM_REMOVED;
        else if (hd_room_input_has(item) && !is_by_agent(item->message, question->agent) &&
                 is_new_to_line(question, item->message))
            err = choose_item(all, i);
    }
    return err;
}

/* ---- writing ---------------------------------------------------------- */

static void put_removals(struct hd_jw *jw, const struct choosing *all)
{
    const struct hd_room_input_question *question = all->question;

    for (size_t i = 0; i < question->count; i++) {
        if (all->chosen[i].fate != ITEM_REMOVED)
            continue;
        hd_jw_object(jw);
        hd_jw_put_string(jw, "type", HD_S("remove"));
        hd_jw_put_string(jw, "content", HD_S(""));
        hd_jw_put_string(jw, "id", hd_room_input_id(question->items[i].message, question->agent));
        hd_jw_object_end(jw);
    }
}

static void put_origin(struct hd_jw *jw, const struct hd_room_message_rec *message, bool is_context)
{
    hd_jw_put_object(jw, "additional_kwargs");
    hd_jw_put_object(jw, "heddle");
    hd_jw_key(jw, HD_S("sender"));
    hd_room_view_sender(jw, message);
    hd_jw_put_string(jw, "message_id", message->id);
    hd_jw_put_int(jw, "version", message->version);
    if (is_context)
        hd_jw_put_bool(jw, "context", true);
    hd_jw_object_end(jw);
    hd_jw_object_end(jw);
}

static void put_input_message(struct hd_jw *jw, const struct hd_room_message_rec *message,
                              struct hd_slice content, bool has_name, bool is_context)
{
    hd_jw_object(jw);
    hd_jw_put_string(jw, "type", HD_S("human"));
    hd_jw_put_string(jw, "id", message->id);
    if (has_name)
        hd_jw_put_string(jw, "name", message->sender_name);
    hd_jw_put_raw(jw, "content", content);
    put_origin(jw, message, is_context);
    hd_jw_object_end(jw);
}

static int word_trigger(const struct choosing *all, struct hd_slice *out)
{
    const struct hd_room_input_question *question = all->question;
    struct wording how = {.speaker = {NULL, 0}};
    struct hd_json json = {NULL};
    int err = hd_json_parse(&json, question->trigger.content->content, NULL);

    if (question->names_trigger)
        how.speaker = question->trigger.message->sender_name;
    if (!err)
        err = write_content(hd_json_root(&json), &how, all->arena, out);
    hd_json_fini(&json);
    return err;
}

static int write_messages(const struct choosing *all, struct hd_slice *out)
{
    const struct hd_room_input_question *question = all->question;
    struct hd_slice content = {NULL, 0};
    struct hd_buf buf;
    struct hd_jw jw;
    int err = word_trigger(all, &content);

    if (err)
        return err;
    hd_buf_init(&buf, MAX_MESSAGES_TEXT);
    hd_jw_init(&jw, &buf);
    hd_jw_array(&jw);
    put_removals(&jw, all);
    for (size_t i = 0; i < question->count; i++) {
        if (all->chosen[i].fate == ITEM_GIVEN)
            put_input_message(&jw, question->items[i].message, all->chosen[i].content, true, true);
    }
    put_input_message(&jw, question->trigger.message, content, question->names_trigger, false);
    hd_jw_array_end(&jw);
    return hd_jw_finish_in(&jw, all->arena, out);
}

static void put_pair(struct hd_jw *jw, const struct hd_room_message_rec *message)
{
    hd_jw_array(jw);
    hd_jw_string(jw, message->id);
    hd_jw_int(jw, message->version);
    hd_jw_array_end(jw);
}

static int write_given(const struct choosing *all, struct hd_slice *out)
{
    const struct hd_room_input_question *question = all->question;
    struct hd_buf buf;
    struct hd_jw jw;

    hd_buf_init(&buf, MAX_MESSAGES_TEXT);
    hd_jw_init(&jw, &buf);
    hd_jw_array(&jw);
    for (size_t i = 0; i < question->count; i++) {
        if (all->chosen[i].fate == ITEM_GIVEN)
            put_pair(&jw, question->items[i].message);
    }
    put_pair(&jw, question->trigger.message);
    hd_jw_array_end(&jw);
    return hd_jw_finish_in(&jw, all->arena, out);
}

int hd_room_input_make(const struct hd_room_input_question *question, struct hd_arena *arena,
                       struct hd_room_input *out, struct heddle_error *fault)
{
    struct choosing all = {.question = question,
                           .arena = arena,
                           .messages = question->room->context_messages,
                           .bytes = question->room->context_bytes};
    int err = 0;

    all.chosen = hd_arena_calloc(arena, question->count + 1, sizeof(*all.chosen));
    if (!all.chosen)
        return HD_ENOMEM;
    err = choose_items(&all);
    if (!err)
        err = write_messages(&all, &out->messages);
    if (!err)
        err = write_given(&all, &out->given);
    if (err == HD_EINVAL)
        return hd_error_set(fault, HD_EINVAL, "a chat message has no text and no list of blocks");
    return err;
}
