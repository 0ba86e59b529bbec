/* Picks the matching rule and makes its reply: fills in texts, creates calls. */
#include <string.h>

#include "mock/mock_internal.h"

#define MAX_FILLED HD_MOCK_MAX_REQUEST

/* ---- conditions ------------------------------------------------------- */

static bool text_contains(struct hd_slice whole, struct hd_slice part)
{
    return part.len == 0 ||
           (whole.len >= part.len && memmem(whole.ptr, whole.len, part.ptr, part.len));
}

static bool contains_all(struct hd_slice whole, hd_json_val parts)
{
    struct hd_json_iter it = hd_json_iter(parts);

    if (hd_json_is_string(parts))
        return text_contains(whole, hd_json_string(parts));
    while (hd_json_next(&it)) {
        if (!text_contains(whole, hd_json_string(it.val)))
            return false;
    }
    return true;
}

static bool equals(hd_json_val wanted, struct hd_slice got)
{
    return !wanted || hd_slice_eq(hd_json_string(wanted), got);
}

static bool offers(const struct hd_mock_seen *seen, struct hd_slice wanted)
{
    struct hd_slice name;
    hd_json_val schema;

    for (size_t i = 0; hd_mock_offered(seen, i, &name, &schema); i++) {
        if (hd_slice_eq(name, wanted))
            return true;
    }
    return false;
}

static bool holds(const struct hd_mock *mock, const struct hd_mock_rule *rule,
                  const struct hd_mock_seen *seen)
{
    if (rule->times > 0 && rule->used >= rule->times)
        return false;
    if (rule->call > 0 && rule->call != mock->calls)
        return false;
    if (rule->has_results >= 0 && (rule->has_results > 0) != (seen->result_count > 0))
        return false;
    if (rule->results >= 0 && (size_t)rule->results != seen->result_count)
        return false;
    if (rule->tool && !offers(seen, hd_json_string(rule->tool)))
        return false;
    return contains_all(seen->last, rule->contains) && contains_all(seen->user, rule->user) &&
           contains_all(hd_buf_slice(&seen->system), rule->system) &&
           equals(rule->equals, seen->last) && equals(rule->role, seen->last_role) &&
           equals(rule->model, seen->model);
}

/* ---- texts ------------------------------------------------------------ */

static int put_placeholder(struct hd_buf *out, struct hd_slice text, bool in_json)
{
    struct hd_buf quoted;
    int err;

    if (!in_json)
        return hd_buf_append_slice(out, text);
    hd_buf_init(&quoted, MAX_FILLED);
    err = hd_json_write_string(&quoted, text);
    if (!err)
        err = hd_buf_append(out, quoted.ptr + 1, quoted.len - 2);
    hd_buf_fini(&quoted);
    return err;
}

static int put_named(struct hd_buf *out, const struct hd_mock_seen *seen, int64_t call,
                     struct hd_slice name, bool in_json, bool *is_known)
{
    const struct {
        struct hd_slice name, text;
    } names[] = {
        {HD_S("last"), seen->last},
        {HD_S("user"), seen->user},
        {HD_S("model"), seen->model},
        {HD_S("system"), hd_buf_slice(&seen->system)},
        {HD_S("results"), hd_buf_slice(&seen->results)},
    };

    *is_known = true;
    if (hd_slice_eq(name, HD_S("call")))
        return hd_buf_append_int(out, call);
    for (size_t i = 0; i < HD_COUNT(names); i++) {
        if (hd_slice_eq(names[i].name, name))
            return put_placeholder(out, names[i].text, in_json);
    }
    *is_known = false;
    return 0;
}

/* Replaces {{name}}; unknown names stay unchanged. */
static int fill_template(struct hd_mock_seen *seen, int64_t call, struct hd_slice text,
                         bool in_json, struct hd_slice *out)
{
    struct hd_buf buf;
    size_t pos = 0;
    int err = 0;

    hd_buf_init(&buf, MAX_FILLED);
    while (!err && pos < text.len) {
        const char *from = text.ptr + pos;
        const char *open = memmem(from, text.len - pos, "{{", 2);
        const char *close =
            open ? memmem(open, (size_t)(text.ptr + text.len - open), "}}", 2) : NULL;
        bool is_known = false;

        if (!close)
            break;
        err = hd_buf_append(&buf, from, (size_t)(open - from));
        if (!err)
            err = put_named(&buf, seen, call, hd_slice(open + 2, (size_t)(close - open - 2)),
                            in_json, &is_known);
        if (!err && !is_known)
            err = hd_buf_append(&buf, open, 2);
        pos = (size_t)((is_known ? close : open) - text.ptr) + 2;
    }
    if (!err && pos < text.len)
        err = hd_buf_append(&buf, text.ptr + pos, text.len - pos);
    if (!err)
        err = hd_arena_copy(&seen->arena, hd_buf_slice(&buf), out);
    hd_buf_fini(&buf);
    return err;
}

/* ---- calls ------------------------------------------------------------ */

static int args_text(struct hd_mock_seen *seen, int64_t number, hd_json_val args,
                     struct hd_slice *out)
{
    struct hd_buf buf;
    int err;

    if (hd_json_is_string(args))
        return hd_arena_copy(&seen->arena, hd_json_string(args), out);
    hd_buf_init(&buf, MAX_FILLED);
    err = args ? hd_json_write_val(&buf, args) : hd_buf_append(&buf, "{}", 2);
    if (!err)
        err = fill_template(seen, number, hd_buf_slice(&buf), true, out);
    hd_buf_fini(&buf);
    return err;
}

static int listed_calls(struct hd_mock_seen *seen, int64_t number, hd_json_val list,
                        struct hd_mock_reply *out)
{
    struct hd_json_iter it = hd_json_iter(list);
    int err = 0;

    out->calls = hd_arena_calloc(&seen->arena, hd_json_size(list) + 1, sizeof(*out->calls));
    if (!out->calls)
        return HD_ENOMEM;
    while (!err && hd_json_next(&it)) {
        struct hd_mock_call *call = &out->calls[out->call_count++];

        call->name = hd_json_string(hd_json_get(it.val, HD_S("name")));
        call->id = hd_json_string(hd_json_get(it.val, HD_S("id")));
        err = args_text(seen, number, hd_json_get(it.val, HD_S("args")), &call->args);
        if (!err && call->id.len == 0)
            err = hd_mock_call_id(&seen->arena, &call->id);
    }
    return err;
}

static int make_calls(struct hd_mock *mock, struct hd_mock_seen *seen,
                      const struct hd_mock_rule *rule, struct hd_mock_reply *out)
{
    switch (rule->calls) {
    case HD_CALLS_LISTED:
        return listed_calls(seen, mock->calls, rule->call_list, out);
    case HD_CALLS_ASKED:
        return hd_mock_calls_asked(seen, out);
    case HD_CALLS_OFFERED:
        return hd_mock_calls_offered(seen, rule->call_count, out);
    default:
        return 0;
    }
}

/* ---- the reply -------------------------------------------------------- */

static void choose_pace(const struct hd_mock *mock, const struct hd_mock_rule *rule,
                        struct hd_mock_pace *out)
{
    *out = rule->pace.size > 0 ? rule->pace : mock->pace;
    out->latency_ms = rule->pace.latency_ms >= 0 ? rule->pace.latency_ms : mock->pace.latency_ms;
    out->delay_ms = rule->pace.delay_ms >= 0 ? rule->pace.delay_ms : mock->pace.delay_ms;
}

static void count_tokens(const struct hd_mock_seen *seen, struct hd_mock_reply *out)
{
    const struct hd_mock_rule *rule = out->rule;

    out->input_tokens = rule->input_tokens >= 0 ? rule->input_tokens : seen->words;
    out->output_tokens = rule->output_tokens;
    if (out->output_tokens >= 0)
        return;
    out->output_tokens = hd_mock_words(out->content) + hd_mock_words(out->reasoning);
    for (size_t i = 0; i < out->call_count; i++)
        out->output_tokens += 1 + hd_mock_words(out->calls[i].args);
}

static int make_reply(struct hd_mock *mock, struct hd_mock_seen *seen,
                      const struct hd_mock_rule *rule, struct hd_mock_reply *out)
{
    int err;

    *out = (struct hd_mock_reply){.rule = rule};
    choose_pace(mock, rule, &out->pace);
    out->finish_reason = hd_json_string(rule->finish_reason);
    err = make_calls(mock, seen, rule, out);
    if (!err)
        err = fill_template(seen, mock->calls, hd_json_string(rule->content), false, &out->content);
    if (!err)
        err = fill_template(seen, mock->calls, hd_json_string(rule->reasoning), false,
                            &out->reasoning);
    if (!err)
        count_tokens(seen, out);
    return err;
}

int hd_mock_pick(struct hd_mock *mock, struct hd_mock_seen *seen, struct hd_mock_reply *out)
{
    mock->calls++;
    for (size_t i = 0; i < mock->rule_count; i++) {
        struct hd_mock_rule *rule = &mock->rules[i];
        int err;

        if (!holds(mock, rule, seen))
            continue;
        err = make_reply(mock, seen, rule, out);
        if (err)
            return err;
        /* A rule that takes its calls from the text does not match a text without calls. */
        if ((rule->calls == HD_CALLS_ASKED || rule->calls == HD_CALLS_OFFERED) &&
            out->call_count == 0)
            continue;
        rule->used++;
        return 0;
    }
    return HD_ENOTFOUND;
}
