/* Reads a script. Rules refer to the parsed document, which is kept. */
#include <stdio.h>

#include "base/alloc.h"
#include "mock/mock_internal.h"

#define MAX_RULES 1000
#define MAX_MS INT64_C(3600000)
#define MAX_TIMES INT64_C(1000000000)
#define MAX_TOKENS INT64_C(1000000000)
#define MAX_CALLS 64
#define MAX_PIECE 65536

static const char default_script[] =
    "{\"rules\": ["
    "{\"when\": {\"tool_results\": true}, \"content\": \"The tools said: {{results}}\"},"
    "{\"when\": {\"contains\": \"five tools\"}, \"content\": \"Five at once.\", \"tool_calls\": 5},"
    "{\"when\": {\"contains\": \"fail with 400\"}, \"error\": {\"status\": 400}},"
    "{\"when\": {\"contains\": \"fail with 401\"}, \"error\": {\"status\": 401}},"
    "{\"when\": {\"contains\": \"fail with 429\"},"
    " \"error\": {\"status\": 429, \"retry_after\": 1}},"
    "{\"when\": {\"contains\": \"fail with 500\"}, \"error\": {\"status\": 500}},"
    "{\"when\": {\"contains\": \"fail with 503\"}, \"error\": {\"status\": 503}},"
    "{\"when\": {\"contains\": \"slowly\"}, \"content\": \"You said, slowly: {{last}}\","
    " \"delay_ms\": 200},"
    "{\"when\": {\"contains\": \"think\"}, \"reasoning\": \"They want me to think.\","
    " \"content\": \"I have thought about this: {{last}}\"},"
    "{\"tool_calls\": \"asked\"},"
    "{\"content\": \"You said: {{last}}\"}"
    "]}";

struct script_reader {
    char path[96];
    struct heddle_error *fault;
};

static int bad(const struct script_reader *r, const char *name, const char *what)
{
    return hd_error_set(r->fault, HD_EINVAL, "%s%s%s: %s", r->path, *name ? "/" : "", name, what);
}

/* Every member of the object must be one of the names. */
static int check_members(const struct script_reader *r, hd_json_val object,
                         const char *const *names)
{
    struct hd_json_iter it = hd_json_iter(object);

    if (!hd_json_is_object(object))
        return bad(r, "", "must be an object");
    while (hd_json_next(&it)) {
        bool is_known = false;

        for (size_t i = 0; names[i] && !is_known; i++)
            is_known = hd_slice_eq(hd_slice_cstr(names[i]), it.key);
        if (!is_known)
            return hd_error_set(r->fault, HD_EINVAL, "%s/%.*s: unknown member", r->path,
                                (int)(it.key.len < 64 ? it.key.len : 64), it.key.ptr);
    }
    return 0;
}

static int read_int(const struct script_reader *r, hd_json_val object, const char *name,
                    int64_t min, int64_t max, int64_t *out)
{
    hd_json_val val = hd_json_get(object, hd_slice_cstr(name));
    char text[96];

    if (!val || (hd_json_whole(val, out) && *out >= min && *out <= max))
        return 0;
    (void)snprintf(text, sizeof(text), "must be an integer from %lld to %lld", (long long)min,
                   (long long)max);
    return bad(r, name, text);
}

static int read_string_member(const struct script_reader *r, hd_json_val object, const char *name,
                              hd_json_val *out)
{
    *out = hd_json_get(object, hd_slice_cstr(name));
    return !*out || hd_json_is_string(*out) ? 0 : bad(r, name, "must be a string");
}

static int read_bool(const struct script_reader *r, hd_json_val object, const char *name, bool *out)
{
    hd_json_val val = hd_json_get(object, hd_slice_cstr(name));

    if (val && !hd_json_is_bool(val))
        return bad(r, name, "must be true or false");
    *out = hd_json_is_true(val);
    return 0;
}

/* A text, or a list of texts that must all match. */
static int read_texts(const struct script_reader *r, hd_json_val object, const char *name,
                      hd_json_val *out)
{
    struct hd_json_iter it;

    *out = hd_json_get(object, hd_slice_cstr(name));
    if (!*out || hd_json_is_string(*out))
        return 0;
    if (!hd_json_is_array(*out))
        return bad(r, name, "must be a string or a list of strings");
    it = hd_json_iter(*out);
    while (hd_json_next(&it)) {
        if (!hd_json_is_string(it.val))
            return bad(r, name, "must be a string or a list of strings");
    }
    return 0;
}

/* "word", "whole", {"characters": N} or {"chunks": N}. */
static int read_pieces(const struct script_reader *r, hd_json_val object, struct hd_mock_pace *pace)
{
    static const char what[] =
        "must be \"word\", \"whole\", {\"characters\": N} or {\"chunks\": N}";
    hd_json_val val = hd_json_get(object, HD_S("pieces"));
    hd_json_val characters = hd_json_get(val, HD_S("characters"));

    if (!val)
        return 0;
    pace->size = 1;
    if (hd_slice_eq(hd_json_string(val), HD_S("word")))
        pace->cut = HD_CUT_WORDS;
    else if (hd_slice_eq(hd_json_string(val), HD_S("whole")))
        pace->cut = HD_CUT_WHOLE;
    else if (hd_json_size(val) != 1 || !hd_json_is_object(val))
        return bad(r, "pieces", what);
    else
        pace->cut = characters ? HD_CUT_CHARACTERS : HD_CUT_CHUNKS;
    if (pace->cut == HD_CUT_WORDS || pace->cut == HD_CUT_WHOLE)
        return 0;
    if (!hd_json_whole(characters ? characters : hd_json_get(val, HD_S("chunks")), &pace->size) ||
        pace->size < 1 || pace->size > MAX_PIECE)
        return bad(r, "pieces", what);
    return 0;
}

static int read_pace(const struct script_reader *r, hd_json_val object, struct hd_mock_pace *pace)
{
    int err = read_int(r, object, "latency_ms", 0, MAX_MS, &pace->latency_ms);

    if (!err)
        err = read_int(r, object, "delay_ms", 0, MAX_MS, &pace->delay_ms);
    return err ? err : read_pieces(r, object, pace);
}

static int read_results(const struct script_reader *r, hd_json_val when, struct hd_mock_rule *rule)
{
    hd_json_val val = hd_json_get(when, HD_S("tool_results"));

    rule->results = rule->has_results = -1;
    if (hd_json_is_bool(val))
        rule->has_results = hd_json_is_true(val);
    else if (val && (!hd_json_whole(val, &rule->results) || rule->results < 0))
        return bad(r, "tool_results", "must be true, false or a number of results");
    return 0;
}

static int read_when(const struct script_reader *r, hd_json_val when, struct hd_mock_rule *rule)
{
    static const char *const names[] = {"contains", "equals",       "role", "user", "system",
                                        "model",    "tool_results", "tool", "call", NULL};
    int err = when ? check_members(r, when, names) : 0;

    if (!err)
        err = read_texts(r, when, "contains", &rule->contains);
    if (!err)
        err = read_texts(r, when, "user", &rule->user);
    if (!err)
        err = read_texts(r, when, "system", &rule->system);
    if (!err)
        err = read_string_member(r, when, "equals", &rule->equals);
    if (!err)
        err = read_string_member(r, when, "role", &rule->role);
    if (!err)
        err = read_string_member(r, when, "model", &rule->model);
    if (!err)
        err = read_string_member(r, when, "tool", &rule->tool);
    if (!err)
        err = read_int(r, when, "call", 1, MAX_TIMES, &rule->call);
    return err ? err : read_results(r, when, rule);
}

static int check_call(const struct script_reader *r, hd_json_val call)
{
    static const char *const names[] = {"name", "args", "id", NULL};
    struct script_reader inner = *r;
    hd_json_val args = hd_json_get(call, HD_S("args")), unused;
    int err;

    (void)snprintf(inner.path, sizeof(inner.path), "%.70s/tool_calls", r->path);
    err = check_members(&inner, call, names);
    if (!err && hd_json_string(hd_json_get(call, HD_S("name"))).len == 0)
        err = bad(&inner, "name", "is required");
    if (!err && args && !hd_json_is_object(args) && !hd_json_is_string(args))
        err = bad(&inner, "args", "must be an object, or a string that is sent as it is");
    return err ? err : read_string_member(&inner, call, "id", &unused);
}

/* A list of calls, "asked", or the number of offered tools to call. */
static int read_calls(const struct script_reader *r, hd_json_val object, struct hd_mock_rule *rule)
{
    hd_json_val val = hd_json_get(object, HD_S("tool_calls"));
    struct hd_json_iter it = hd_json_iter(val);
    int err = 0;

    rule->call_list = val;
    if (hd_json_is_array(val) && hd_json_size(val) <= MAX_CALLS) {
        rule->calls = HD_CALLS_LISTED;
        while (!err && hd_json_next(&it))
            err = check_call(r, it.val);
    } else if (hd_slice_eq(hd_json_string(val), HD_S("asked"))) {
        rule->calls = HD_CALLS_ASKED;
    } else if (hd_json_whole(val, &rule->call_count) && rule->call_count >= 1 &&
               rule->call_count <= MAX_CALLS) {
        rule->calls = HD_CALLS_OFFERED;
    } else if (val) {
        err = bad(r, "tool_calls", "must be a list of at most 64, \"asked\" or a number up to 64");
    }
    return err;
}

static int read_error(const struct script_reader *r, hd_json_val error, struct hd_mock_rule *rule)
{
    static const char *const names[] = {"status", "message", "type", "retry_after", NULL};
    struct script_reader inner = *r;
    int err;

    rule->status = 200;
    rule->retry_after = -1;
    if (!error)
        return 0;
    rule->status = 500;
    (void)snprintf(inner.path, sizeof(inner.path), "%.70s/error", r->path);
    err = check_members(&inner, error, names);
    if (!err)
        err = read_int(&inner, error, "status", 400, 599, &rule->status);
    if (!err)
        err = read_string_member(&inner, error, "message", &rule->error_message);
    if (!err)
        err = read_string_member(&inner, error, "type", &rule->error_type);
    return err ? err : read_int(&inner, error, "retry_after", 0, MAX_MS, &rule->retry_after);
}

static int read_rule_usage(const struct script_reader *r, hd_json_val usage,
                           struct hd_mock_rule *rule)
{
    static const char *const names[] = {"input_tokens", "output_tokens", NULL};
    struct script_reader inner = *r;
    int err;

    rule->input_tokens = rule->output_tokens = -1;
    if (!usage)
        return 0;
    (void)snprintf(inner.path, sizeof(inner.path), "%.70s/usage", r->path);
    err = check_members(&inner, usage, names);
    if (!err)
        err = read_int(&inner, usage, "input_tokens", 0, MAX_TOKENS, &rule->input_tokens);
    if (!err)
        err = read_int(&inner, usage, "output_tokens", 0, MAX_TOKENS, &rule->output_tokens);
    return err;
}

static int read_reply(const struct script_reader *r, hd_json_val val, struct hd_mock_rule *rule)
{
    int err = read_string_member(r, val, "content", &rule->content);

    if (!err)
        err = read_string_member(r, val, "reasoning", &rule->reasoning);
    if (!err)
        err = read_string_member(r, val, "finish_reason", &rule->finish_reason);
    if (!err)
        err = read_calls(r, val, rule);
    if (!err)
        err = read_error(r, hd_json_get(val, HD_S("error")), rule);
    if (!err)
        err = read_rule_usage(r, hd_json_get(val, HD_S("usage")), rule);
    if (!err)
        err = read_bool(r, val, "hang", &rule->hangs);
    if (!err)
        err = read_int(r, val, "cut", 1, MAX_TIMES, &rule->cut_after);
    return err;
}

static int read_rule(const struct script_reader *r, hd_json_val val, struct hd_mock_rule *rule)
{
    static const char *const names[] = {
        "when", "times", "content", "reasoning", "tool_calls", "usage",         "error",
        "hang", "cut",   "pieces",  "delay_ms",  "latency_ms", "finish_reason", NULL};
    int err = check_members(r, val, names);
    struct script_reader inner = *r;

    rule->pace = (struct hd_mock_pace){-1, -1, HD_CUT_WORDS, 0};
    (void)snprintf(inner.path, sizeof(inner.path), "%.70s/when", r->path);
    if (!err)
        err = read_when(&inner, hd_json_get(val, HD_S("when")), rule);
    if (!err)
        err = read_int(r, val, "times", 1, MAX_TIMES, &rule->times);
    if (!err)
        err = read_pace(r, val, &rule->pace);
    if (!err)
        err = read_reply(r, val, rule);
    if (!err && !rule->content && !rule->reasoning && !rule->calls && rule->status == 200 &&
        !rule->hangs)
        err = bad(r, "", "needs one of content, reasoning, tool_calls, error, hang");
    return err;
}

static int read_rules(struct hd_mock *mock, hd_json_val rules, struct heddle_error *fault)
{
    struct hd_json_iter it = hd_json_iter(rules);
    struct script_reader r = {.fault = fault};
    int err = 0;

    if (!hd_json_is_array(rules) || hd_json_size(rules) == 0 || hd_json_size(rules) > MAX_RULES)
        return hd_error_set(fault, HD_EINVAL, "/rules: must be a list of 1 to %d rules", MAX_RULES);
    mock->rules = hd_calloc(hd_json_size(rules), sizeof(*mock->rules));
    if (!mock->rules)
        return HD_ENOMEM;
    while (!err && hd_json_next(&it)) {
        (void)snprintf(r.path, sizeof(r.path), "/rules/%zu", mock->rule_count);
        err = read_rule(&r, it.val, &mock->rules[mock->rule_count++]);
    }
    return err;
}

static int read_script(struct hd_mock *mock, struct heddle_error *fault)
{
    static const char *const names[] = {"rules",    "models", "key", "latency_ms",
                                        "delay_ms", "pieces", NULL};
    hd_json_val root = hd_json_root(&mock->json), key;
    const struct script_reader r = {.fault = fault};
    int err;

    mock->pace = (struct hd_mock_pace){0, 0, HD_CUT_WORDS, 1};
    err = check_members(&r, root, names);
    if (!err)
        err = read_pace(&r, root, &mock->pace);
    if (!err)
        err = read_texts(&r, root, "models", &mock->models);
    if (!err)
        err = read_string_member(&r, root, "key", &key);
    if (err)
        return err;
    mock->key = hd_json_string(key);
    return read_rules(mock, hd_json_get(root, HD_S("rules")), fault);
}

int hd_mock_create(struct hd_mock **out, struct hd_slice text, struct heddle_error *fault)
{
    struct hd_mock *mock = hd_calloc(1, sizeof(*mock));
    int err;

    if (!mock)
        return HD_ENOMEM;
    if (text.len == 0)
        text = hd_slice_cstr(default_script);
    err = hd_json_parse(&mock->json, text, fault);
    if (!err)
        err = read_script(mock, fault);
    if (err)
        hd_mock_destroy(mock);
    else
        *out = mock;
    return err;
}

void hd_mock_destroy(struct hd_mock *mock)
{
    if (!mock)
        return;
    hd_free(mock->rules);
    hd_json_fini(&mock->json);
    hd_free(mock);
}

void hd_mock_reset(struct hd_mock *mock)
{
    mock->calls = 0;
    for (size_t i = 0; i < mock->rule_count; i++)
        mock->rules[i].used = 0;
}

bool hd_mock_admits(const struct hd_mock *mock, struct hd_slice key)
{
    return mock->key.len == 0 || hd_slice_eq(mock->key, key);
}
