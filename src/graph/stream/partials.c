#include "graph/stream/partials.h"

#include <stdint.h>

#include "base/buf.h"

#define PIECE HD_S("AIMessageChunk")
#define MAX_TEXT ((size_t)256 << 20)

void hd_partials_fini(struct hd_partials *partials)
{
    hd_val_unref(partials->messages);
    *partials = (struct hd_partials){NULL};
}

/* ---- joining pieces --------------------------------------------------- */

static struct hd_val *join_text(const struct hd_val *a, const struct hd_val *b)
{
    struct hd_val *text = NULL;
    struct hd_buf out;

    hd_buf_init(&out, MAX_TEXT);
    if (hd_buf_append_slice(&out, hd_val_get_string(a)) == 0 &&
        hd_buf_append_slice(&out, hd_val_get_string(b)) == 0)
        text = hd_val_string(hd_buf_slice(&out));
    hd_buf_fini(&out);
    return text;
}

static struct hd_val *as_list(const struct hd_val *content)
{
    struct hd_val *list = hd_val_list();

    if (hd_val_is_list(content)) {
        hd_val_unref(list);
        return hd_val_ref(content);
    }
    if (hd_val_get_string(content).len == 0)
        return list;
    return hd_val_append(list, hd_val_ref(content));
}

/* True for pieces of the same call or block. */
static bool is_same_block(const struct hd_val *a, const struct hd_val *b)
{
    const struct hd_val *index = hd_val_get(a, HD_S("index"));

    return !hd_val_is_null(index) && hd_val_equal(index, hd_val_get(b, HD_S("index")));
}

/* Takes `whole`. Joins texts; replaces other members by those of the piece. */
static struct hd_val *join_texts(struct hd_val *whole, const struct hd_val *chunk)
{
    for (size_t i = 0; i < hd_val_count(chunk) && whole; i++) {
        struct hd_val *key, *val = hd_val_member(chunk, i, &key);
        const struct hd_val *old = hd_val_get(whole, hd_val_get_string(key));
        bool is_text = hd_val_is_string(old) && hd_val_is_string(val) &&
                       !hd_slice_eq(hd_val_get_string(key), HD_S("type"));

        whole = hd_val_with_key(whole, hd_val_ref(key),
                                is_text ? join_text(old, val) : hd_val_ref(val));
    }
    return whole;
}

/* Takes `list`. Joins the block to the one with the same index, or appends it. */
static struct hd_val *join_block(struct hd_val *list, struct hd_val *block)
{
    size_t at = 0;

    while (at < hd_val_count(list) && !is_same_block(hd_val_at(list, at), block))
        at++;
    if (at == hd_val_count(list))
        return hd_val_append(list, hd_val_ref(block));
    return hd_val_replace(list, at, join_texts(hd_val_ref(hd_val_at(list, at)), block));
}

/* Two texts become one text; any other pair becomes a list of blocks. */
static struct hd_val *join_content(const struct hd_val *a, const struct hd_val *b)
{
    struct hd_val *list, *more;

    if (hd_val_is_string(a) && hd_val_is_string(b))
        return join_text(a, b);
    list = as_list(a);
    more = as_list(b);
    if (!more) {
        hd_val_unref(list);
        return NULL;
    }
    for (size_t i = 0; i < hd_val_count(more) && list; i++)
        list = join_block(list, hd_val_at(more, i));
    hd_val_unref(more);
    return list;
}

/* Takes `call`. The arguments arrive as pieces of text, the name and the id once. */
static struct hd_val *join_call(struct hd_val *call, const struct hd_val *chunk)
{
    static const char *const once[] = {"name", "id"};

    for (size_t i = 0; i < HD_COUNT(once) && call; i++) {
        struct hd_val *val = hd_val_get(chunk, hd_slice_cstr(once[i]));

        if (hd_val_truth(val) && !hd_val_truth(hd_val_get(call, hd_slice_cstr(once[i]))))
            call = hd_val_with(call, hd_slice_cstr(once[i]), hd_val_ref(val));
    }
    if (!call)
        return NULL;
    return hd_val_with(call, HD_S("args"),
                       join_text(hd_val_get(call, HD_S("args")), hd_val_get(chunk, HD_S("args"))));
}

/* Takes `calls`. */
static struct hd_val *join_calls(struct hd_val *calls, const struct hd_val *chunks)
{
    for (size_t i = 0; i < hd_val_count(chunks) && calls; i++) {
        const struct hd_val *chunk = hd_val_at(chunks, i);
        size_t at = 0;

        while (at < hd_val_count(calls) && !is_same_block(hd_val_at(calls, at), chunk))
            at++;
        if (at == hd_val_count(calls))
            calls = hd_val_append(calls, hd_val_ref(chunk));
        else
            calls = hd_val_replace(calls, at, join_call(hd_val_ref(hd_val_at(calls, at)), chunk));
    }
    return calls;
}

/* Incomplete arguments become an empty object. NULL: HD_ENOMEM. */
static struct hd_val *parse_args(const struct hd_val *chunk)
{
    struct hd_slice text = hd_val_get_string(hd_val_get(chunk, HD_S("args")));
    struct hd_val *args = NULL;
    int err = hd_val_parse_json(text, &args, NULL);

    if (err == HD_ENOMEM)
        return NULL;
    if (!err && hd_val_is_object(args))
        return args;
    if (!err)
        hd_val_unref(args);
    return hd_val_object();
}

/* Converts joined pieces to tool calls. */
static struct hd_val *made_calls(const struct hd_val *chunks)
{
    struct hd_val *calls = hd_val_list();

    for (size_t i = 0; i < hd_val_count(chunks); i++) {
        const struct hd_val *chunk = hd_val_at(chunks, i), *name = hd_val_get(chunk, HD_S("name"));
        const struct hd_val *id = hd_val_get(chunk, HD_S("id"));
        struct hd_val *call = hd_val_object();

        call = hd_val_with(call, HD_S("name"), name ? hd_val_ref(name) : hd_val_cstr(""));
        call = hd_val_with(call, HD_S("args"), parse_args(chunk));
        call = hd_val_with(call, HD_S("id"), id ? hd_val_ref(id) : hd_val_null());
        call = hd_val_with(call, HD_S("type"), hd_val_cstr("tool_call"));
        calls = hd_val_append(calls, call);
    }
    return calls;
}

/* Adds numbers, also those in nested objects. */
static struct hd_val *add_usage(const struct hd_val *a, const struct hd_val *b)
{
    struct hd_val *sum = hd_val_ref(a);

    for (size_t i = 0; i < hd_val_count(b) && sum; i++) {
        struct hd_val *key, *more = hd_val_member(b, i, &key);
        const struct hd_val *old = hd_val_get(sum, hd_val_get_string(key));
        int64_t x, y;

        if (hd_val_get_int(old, &x) && hd_val_get_int(more, &y))
            more = hd_val_int((int64_t)((uint64_t)x + (uint64_t)y));
        else if (hd_val_is_object(old) && hd_val_is_object(more))
            more = add_usage(old, more);
        else
            more = hd_val_ref(more);
        sum = hd_val_with_key(sum, hd_val_ref(key), more);
    }
    return sum;
}

/* Takes `whole`. */
static struct hd_val *join_member(struct hd_val *whole, struct hd_slice key,
                                  const struct hd_val *more)
{
    const struct hd_val *old = hd_val_get(whole, key);
    struct hd_val *joined;

    if (hd_slice_eq(key, HD_S("type")) || hd_slice_eq(key, HD_S("id")) ||
        hd_slice_eq(key, HD_S("tool_calls")) || hd_val_is_null(more))
        return whole;
    if (hd_val_is_null(old))
        joined = hd_val_ref(more);
    else if (hd_slice_eq(key, HD_S("content")))
        joined = join_content(old, more);
    else if (hd_slice_eq(key, HD_S("tool_call_chunks")))
        joined = join_calls(hd_val_ref(old), more);
    else if (hd_slice_eq(key, HD_S("usage_metadata")))
        joined = add_usage(old, more);
    else if (hd_slice_eq(key, HD_S("additional_kwargs")))
        joined = join_texts(hd_val_ref(old), more);
    else if (hd_val_is_object(old) && hd_val_is_object(more))
        joined = hd_val_merge(hd_val_ref(old), more);
    else
        joined = hd_val_ref(more);
    return hd_val_with(whole, key, joined);
}

static struct hd_val *join_chunk(const struct hd_val *whole, const struct hd_val *chunk)
{
    struct hd_val *joined = hd_val_ref(whole);

    for (size_t i = 0; i < hd_val_count(chunk) && joined; i++) {
        struct hd_val *key, *val = hd_val_member(chunk, i, &key);

        joined = join_member(joined, hd_val_get_string(key), val);
    }
    return joined;
}

/* Converts joined pieces to a message. */
static struct hd_val *as_message(const struct hd_val *chunks)
{
    const struct hd_val *calls = hd_val_get(chunks, HD_S("tool_call_chunks"));
    struct hd_val *message = hd_val_with(hd_val_ref(chunks), HD_S("type"), hd_val_cstr("ai"));

    if (hd_val_count(calls) > 0)
        message = hd_val_with(message, HD_S("tool_calls"), made_calls(calls));
    message = hd_val_without(message, HD_S("tool_call_chunks"));
    return hd_val_without(message, HD_S("chunk_position"));
}

/* ---- sending ---------------------------------------------------------- */

/* Takes `data`; NULL is HD_ENOMEM. */
static int emit_event(const char *event, struct hd_val *data, hd_partials_fn fn, void *ctx)
{
    if (!data)
        return HD_ENOMEM;
    fn(ctx, event, data);
    hd_val_unref(data);
    return 0;
}

static int emit_message(const char *event, const struct hd_val *message, hd_partials_fn fn,
                        void *ctx)
{
    return emit_event(event, hd_val_append(hd_val_list(), hd_val_ref(message)), fn, ctx);
}

/* Takes `known`. */
static int remember(struct hd_partials *partials, struct hd_slice id, struct hd_val *known)
{
    struct hd_val *messages = partials->messages ? partials->messages : hd_val_object();

    partials->messages = hd_val_with(messages, id, known);
    return partials->messages ? 0 : HD_ENOMEM;
}

static int take_chunk(struct hd_partials *partials, struct hd_slice id, const struct hd_val *chunk,
                      hd_partials_fn fn, void *ctx)
{
    const struct hd_val *known = hd_val_get(partials->messages, id);
    bool is_last =
        hd_slice_eq(hd_val_get_string(hd_val_get(chunk, HD_S("chunk_position"))), HD_S("last"));
    struct hd_val *whole = hd_val_is_object(known) ? join_chunk(known, chunk) : hd_val_ref(chunk);
    struct hd_val *message = whole ? as_message(whole) : NULL;
    int err = message ? emit_message("messages/partial", message, fn, ctx) : HD_ENOMEM;

    if (!err && is_last)
        err = emit_message("messages/complete", message, fn, ctx);
    if (!err)
        err = remember(partials, id, is_last ? hd_val_bool(true) : hd_val_ref(whole));
    hd_val_unref(message);
    hd_val_unref(whole);
    return err;
}

int hd_partials_message(struct hd_partials *partials, const struct hd_val *pair, hd_partials_fn fn,
                        void *ctx)
{
    const struct hd_val *message = hd_val_at(pair, 0), *metadata = hd_val_at(pair, 1);
    struct hd_slice id = hd_val_get_string(hd_val_get(message, HD_S("id")));
    struct hd_slice type = hd_val_get_string(hd_val_get(message, HD_S("type")));
    const struct hd_val *known = hd_val_get(partials->messages, id);
    int err = 0;

    if (hd_val_is_true(known) || hd_slice_eq(type, HD_S("remove")))
        return 0;
    if (!known && id.len > 0) {
        struct hd_val *about = hd_val_with(hd_val_object(), HD_S("metadata"),
                                           metadata ? hd_val_ref(metadata) : hd_val_object());

        err = emit_event("messages/metadata", hd_val_with(hd_val_object(), id, about), fn, ctx);
    }
    if (!err && hd_slice_eq(type, PIECE))
        return take_chunk(partials, id, message, fn, ctx);
    if (!err)
        err = emit_message("messages/complete", message, fn, ctx);
    return !err && id.len > 0 ? remember(partials, id, hd_val_bool(true)) : err;
}

/* True for a message record, and for its JSON form. */
static bool is_message(const struct hd_val *val)
{
    static const char *const types[] = {"human", "ai",       "system", "tool",
                                        "chat",  "function", "remove", "developer"};
    struct hd_slice type;

    if (hd_val_kind(val) == HD_KIND_MESSAGE)
        return true;
    if (!hd_val_is_object(val) || !hd_val_get(val, HD_S("content")))
        return false;
    type = hd_val_get_string(hd_val_get(val, HD_S("type")));
    for (size_t i = 0; i < HD_COUNT(types); i++) {
        if (hd_slice_eq(type, hd_slice_cstr(types[i])))
            return true;
    }
    return false;
}

static int take_whole(struct hd_partials *partials, const struct hd_val *message, hd_partials_fn fn,
                      void *ctx)
{
    struct hd_slice id = hd_val_get_string(hd_val_get(message, HD_S("id")));
    int err;

    if (!is_message(message) || id.len == 0 || hd_val_is_true(hd_val_get(partials->messages, id)))
        return 0;
    err = emit_message("messages/complete", message, fn, ctx);
    return err ? err : remember(partials, id, hd_val_bool(true));
}

int hd_partials_values(struct hd_partials *partials, const struct hd_val *values, hd_partials_fn fn,
                       void *ctx)
{
    int err = 0;

    for (size_t i = 0; i < hd_val_count(values) && !err; i++) {
        const struct hd_val *val = hd_val_member(values, i, NULL);

        if (is_message(val))
            err = take_whole(partials, val, fn, ctx);
        for (size_t j = 0; hd_val_is_list(val) && j < hd_val_count(val) && !err; j++)
            err = take_whole(partials, hd_val_at(val, j), fn, ctx);
    }
    return err;
}
