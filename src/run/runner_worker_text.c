#include "run/runner_worker_text.h"

#include <string.h>

#include "base/json.h"
#include "gate/worker_access.h"
#include "secret/secret.h"
#include "store/store.h"
#include "worker/worker_hide.h"

#define MAX_TEXT ((size_t)1 << 30)

/* ---- the run message -------------------------------------------------- */

static const struct {
    const char *name;
    enum hd_stream_mode mode;
} modes[] = {
    {"values", HD_STREAM_VALUES},
    {"updates", HD_STREAM_UPDATES},
    {"messages", HD_STREAM_MESSAGES},
    {"custom", HD_STREAM_CUSTOM},
    {"tasks", HD_STREAM_TASKS},
    {"debug", HD_STREAM_DEBUG},
    {"checkpoints", HD_STREAM_CHECKPOINTS},
    {"events", HD_STREAM_EVENTS},
    {"tools", HD_STREAM_TOOLS},
};

/* Skips null. */
static void put_val(struct hd_jw *jw, const char *name, const struct hd_val *val)
{
    if (hd_val_is_null(val))
        return;
    hd_jw_key(jw, hd_slice_cstr(name));
    hd_val_put_rendered(jw, val);
}

static void put_modes(struct hd_jw *jw, unsigned wanted)
{
    hd_jw_put_array(jw, "modes");
    for (size_t i = 0; i < HD_COUNT(modes); i++) {
        if (wanted & (unsigned)modes[i].mode)
            hd_jw_string(jw, hd_slice_cstr(modes[i].name));
    }
    hd_jw_array_end(jw);
}

struct hd_val *hd_runner_text_config(const struct hd_val *config, const struct hd_val *secrets)
{
    static const char *const places[] = {"checkpoint_ns", "checkpoint_id", "checkpoint_map"};
    struct hd_val *shown = hd_secrets_reveal(config, secrets);

    if (shown && !hd_val_is_object(shown)) {
        hd_val_unref(shown);
        shown = hd_val_object();
    }
    for (size_t i = 0; i < HD_COUNT(places) && shown; i++) {
        if (hd_val_get(shown, hd_slice_cstr(places[i])))
            shown = hd_val_without(shown, hd_slice_cstr(places[i]));
    }
    return shown;
}

/*
 * When a run has the `run_id` of the last checkpoint, LangGraph treats it as a continuation of the
 * run that made it. A called run has the `run_id` of the run that waits for it, in each of its
 * calls, so it is sent without.
 */
static int put_metadata(struct hd_jw *jw, const struct hd_runner_options *options)
{
    struct hd_val *metadata = hd_val_ref(options->metadata);

    if (options->caller && hd_val_get(metadata, HD_S("run_id"))) {
        metadata = hd_val_without(metadata, HD_S("run_id"));
        if (!metadata)
            return HD_ENOMEM;
    }
    put_val(jw, "metadata", metadata);
    hd_val_unref(metadata);
    return 0;
}

/* Writes `config` in the form of LangGraph. */
static int put_config(struct hd_jw *jw, const struct hd_runner_options *options)
{
    const struct hd_val *config = options->config;
    struct hd_val *configurable =
        hd_runner_text_config(hd_val_get(config, HD_S("configurable")), options->secrets);
    int err;

    configurable = hd_val_with(configurable, HD_S("thread_id"), hd_val_string(options->thread));
    if (options->caller && hd_val_get(configurable, HD_S("run_id")))
        configurable = hd_val_without(configurable, HD_S("run_id"));
    if (!configurable)
        return HD_ENOMEM;
    hd_jw_put_object(jw, "config");
    put_val(jw, "configurable", configurable);
    err = put_metadata(jw, options);
    put_val(jw, "tags", hd_val_get(config, HD_S("tags")));
    put_val(jw, "recursion_limit", hd_val_get(config, HD_S("recursion_limit")));
    put_val(jw, "max_concurrency", hd_val_get(config, HD_S("max_concurrency")));
    put_val(jw, "run_name", hd_val_get(config, HD_S("run_name")));
    hd_jw_object_end(jw);
    hd_val_unref(configurable);
    return err;
}

static int put_context(struct hd_jw *jw, const struct hd_runner_options *options)
{
    struct hd_val *context;

    if (hd_val_is_null(options->context))
        return 0;
    context = hd_secrets_reveal(options->context, options->secrets);
    if (!context)
        return HD_ENOMEM;
    put_val(jw, "context", context);
    hd_val_unref(context);
    return 0;
}

/* Writes what the run starts with. Not needed for a run that continues. */
static int put_beginning(struct hd_jw *jw, const struct hd_runner_options *options,
                         struct hd_buf *input)
{
    if (options->checkpoint_id.len > 0)
        hd_jw_put_string(jw, "checkpoint_id", options->checkpoint_id);
    put_val(jw, "checkpoint_map", options->checkpoint_map);
    if (!hd_val_is_null(options->command)) {
        put_val(jw, "command", options->command);
    } else if (!hd_val_is_null(options->input)) {
        hd_jw_put_raw(jw, "input", HD_S("{\"$blob\":0}"));
        return hd_val_render(input, options->input);
    }
    return 0;
}

int hd_runner_text_write_run(const struct hd_runner_options *options, const struct hd_app *app,
                             const struct hd_worker_access *pass, struct hd_buf *head,
                             struct hd_buf *input)
{
    struct hd_jw jw;
    int err;

    hd_jw_init(&jw, head);
    hd_jw_object(&jw);
    hd_jw_put_string(&jw, "op", HD_S("run"));
    hd_jw_put_string(&jw, "graph", options->graph->id);
    hd_jw_put_string(&jw, "run_id", options->run_id);
    hd_jw_put_string(&jw, "thread_id", options->thread);
    hd_jw_put_string(&jw, "assistant_id", options->assistant_id);
    hd_jw_put_int(&jw, "attempt", options->attempt);
    put_modes(&jw, options->modes);
    hd_jw_put_bool(&jw, "subgraphs", options->subgraphs);
    if (options->is_quiet)
        hd_jw_put_bool(&jw, "quiet", true);
    put_val(&jw, "interrupt_before", options->before);
    put_val(&jw, "interrupt_after", options->after);
    hd_jw_put_string(&jw, "durability",
                     options->durability.len > 0 ? options->durability : HD_S("async"));
    hd_jw_put_string(&jw, "checkpoint_ns", HD_S(""));
    if (app)
        hd_worker_access_put(&jw, app, pass);
    err = put_config(&jw, options);
    if (!err)
        err = put_context(&jw, options);
    if (!err && !options->is_continued)
        err = put_beginning(&jw, options, input);
    else if (!err && options->continue_at.len > 0)
        hd_jw_put_string(&jw, "checkpoint_id", options->continue_at);
    hd_jw_object_end(&jw);
    return err ? err : hd_jw_finish(&jw);
}

/* ---- pieces ----------------------------------------------------------- */

int hd_runner_text_read_piece(struct hd_slice head, struct hd_json *json, enum hd_stream_mode *mode,
                              struct hd_slice *ns)
{
    struct hd_slice name;
    int err = hd_json_parse(json, head, NULL);

    if (err)
        return err;
    name = hd_json_string(hd_json_get(hd_json_root(json), HD_S("mode")));
    *ns = hd_json_string(hd_json_get(hd_json_root(json), HD_S("ns")));
    for (size_t i = 0; i < HD_COUNT(modes); i++) {
        if (hd_slice_eq(name, hd_slice_cstr(modes[i].name))) {
            *mode = modes[i].mode;
            return 0;
        }
    }
    return HD_EINVAL;
}

/* ---- secrets ---------------------------------------------------------- */

int hd_runner_text_redact(struct hd_slice text, const struct hd_val *secrets, struct hd_buf *out)
{
    struct heddle_value value = {.type = hd_to_public(HD_S("json")), .data = hd_to_public(text)};
    struct hd_hidden hidden;
    struct hd_arena arena;
    int err;

    if (hd_val_count(secrets) == 0 || text.len == 0)
        return hd_buf_append_slice(out, text);
    hd_arena_init(&arena, MAX_TEXT);
    err = hd_hidden_init(&hidden, secrets, &arena);
    if (!err)
        err = hd_hidden_hide(&hidden, &value, &arena);
    if (!err)
        err = hd_buf_append_slice(out, hd_from_public(value.data));
    hd_arena_fini(&arena);
    return err;
}

/* ---- the result ------------------------------------------------------- */

static void put_member(struct hd_jw *jw, const char *name, hd_json_val val)
{
    if (!val || hd_json_is_null(val))
        return;
    hd_jw_put_val(jw, name, val);
}

/* Leaves out the folder if paths are hidden. */
static void put_file(struct hd_jw *jw, struct hd_slice file)
{
    const char *slash = file.len > 0 ? memrchr(file.ptr, '/', file.len) : NULL;

    if (slash && hd_errors_are_hidden())
        file = hd_slice(slash + 1, (size_t)(file.ptr + file.len - slash - 1));
    if (file.len > 0)
        hd_jw_put_string(jw, "file", file);
}

/* Writes {"error", "message", …}, as in the event for clients. */
static int write_error(hd_json_val error, struct hd_slice type, struct hd_slice message,
                       struct hd_buf *out)
{
    struct hd_jw jw;

    hd_jw_init(&jw, out);
    hd_jw_object(&jw);
    hd_jw_put_string(&jw, "error", type);
    hd_jw_put_string(&jw, "message", message);
    if (!hd_errors_are_hidden()) /* the log has it */
        put_member(&jw, "traceback", hd_json_get(error, HD_S("traceback")));
    put_file(&jw, hd_json_string(hd_json_get(error, HD_S("file"))));
    put_member(&jw, "line", hd_json_get(error, HD_S("line")));
    hd_jw_object_end(&jw);
    return hd_jw_finish(&jw);
}

static int set_where(hd_json_val error, struct hd_arena *arena, struct hd_slice *out)
{
    struct hd_slice file = hd_json_string(hd_json_get(error, HD_S("file")));
    int64_t line = 0;
    char *text;

    *out = hd_slice(NULL, 0);
    if (file.len == 0)
        return 0;
    (void)hd_json_int(hd_json_get(error, HD_S("line")), &line);
    text = hd_arena_printf(arena, "%.*s:%lld", (int)file.len, file.ptr, (long long)line);
    if (!text)
        return HD_ENOMEM;
    *out = hd_slice_cstr(text);
    return 0;
}

static int copy_redacted(struct hd_slice text, const struct hd_val *secrets, struct hd_arena *arena,
                         struct hd_slice *out)
{
    struct hd_buf buf;
    int err;

    hd_buf_init(&buf, MAX_TEXT);
    err = hd_runner_text_redact(text, secrets, &buf);
    if (!err)
        err = hd_arena_copy(arena, hd_buf_slice(&buf), out);
    hd_buf_fini(&buf);
    return err;
}

/* Copies the message from the redacted text. */
static int copy_message(struct hd_slice error, struct hd_arena *arena, struct hd_slice *out)
{
    struct hd_json json = {NULL};
    int err = hd_json_parse(&json, error, NULL);

    if (!err)
        err = hd_arena_copy(arena,
                            hd_json_string(hd_json_get(hd_json_root(&json), HD_S("message"))), out);
    hd_json_fini(&json);
    return err;
}

static int hide_paths(struct hd_arena *arena, struct hd_slice *text)
{
    char *copy = hd_arena_printf(arena, "%.*s", (int)text->len, text->len > 0 ? text->ptr : "");

    if (!copy)
        return HD_ENOMEM;
    hd_error_hide_paths(copy);
    *text = hd_slice_cstr(copy);
    return 0;
}

static int take_error(hd_json_val error, const struct hd_val *secrets, struct hd_arena *arena,
                      struct hd_runner_text_answer *out)
{
    struct hd_slice type = hd_json_string(hd_json_get(error, HD_S("type")));
    struct hd_slice message = hd_json_string(hd_json_get(error, HD_S("message")));
    struct hd_buf text;
    int err;

    if (type.len == 0)
        type = HD_S("RuntimeError");
    err = hide_paths(arena, &message);
    if (err)
        return err;
    hd_buf_init(&text, MAX_TEXT);
    err = write_error(error, type, message, &text);
    if (!err)
        err = copy_redacted(hd_buf_slice(&text), secrets, arena, &out->error);
    if (!err)
        err = copy_message(out->error, arena, &out->message);
    if (!err)
        err = hd_arena_copy(arena, type, &out->type);
    if (!err)
        err = hd_arena_copy(arena, hd_json_string(hd_json_get(error, HD_S("code"))), &out->code);
    if (!err)
        err = set_where(error, arena, &out->where);
    hd_buf_fini(&text);
    return err;
}

static int status_of(struct hd_slice name, enum hd_engine_run_status *out)
{
    static const char *const names[] = {[HD_ENGINE_RUN_DONE] = "done",
                                        [HD_ENGINE_RUN_INTERRUPTED] = "interrupted",
                                        [HD_ENGINE_RUN_FAILED] = "failed",
                                        [HD_ENGINE_RUN_CANCELLED] = "cancelled"};

    for (size_t i = 0; i < HD_COUNT(names); i++) {
        if (hd_slice_eq(name, hd_slice_cstr(names[i]))) {
            *out = (enum hd_engine_run_status)i;
            return 0;
        }
    }
    return HD_EINVAL;
}

static int read_answer_parts(hd_json_val root, const struct hd_val *secrets, struct hd_arena *arena,
                             struct hd_runner_text_answer *out)
{
    hd_json_val tools = hd_json_get(root, HD_S("tools"));
    int err = status_of(hd_json_string(hd_json_get(root, HD_S("status"))), &out->status);

    (void)hd_json_int(hd_json_get(root, HD_S("tokens")), &out->tokens);
    if (!err && out->status == HD_ENGINE_RUN_FAILED)
        err = take_error(hd_json_get(root, HD_S("error")), secrets, arena, out);
    if (!err && hd_json_is_array(tools))
        err = hd_val_from_json(tools, &out->tools, NULL);
    return err;
}

int hd_runner_text_read_answer(struct hd_slice head, const struct hd_val *secrets,
                               struct hd_arena *arena, struct hd_runner_text_answer *out)
{
    struct hd_json json = {NULL};
    int err = hd_json_parse(&json, head, NULL);

    *out = (struct hd_runner_text_answer){.status = HD_ENGINE_RUN_FAILED};
    if (!err)
        err = read_answer_parts(hd_json_root(&json), secrets, arena, out);
    hd_json_fini(&json);
    return err;
}

int hd_runner_text_read_error(struct hd_slice head, const struct hd_val *secrets,
                              struct hd_arena *arena, struct hd_runner_text_answer *out)
{
    struct hd_json json = {NULL};
    int err = hd_json_parse(&json, head.len > 0 ? head : HD_S("{}"), NULL);

    *out = (struct hd_runner_text_answer){.status = HD_ENGINE_RUN_FAILED};
    if (!err)
        err = take_error(hd_json_root(&json), secrets, arena, out);
    hd_json_fini(&json);
    return err;
}

/* ---- the output ------------------------------------------------------- */

static int add_interrupts(hd_json_val output, const struct hd_val *interrupts, struct hd_buf *out)
{
    struct hd_json_iter it = hd_json_iter(output);
    struct hd_jw jw;

    hd_jw_init(&jw, out);
    hd_jw_object(&jw);
    while (hd_json_next(&it)) {
        if (hd_slice_eq(it.key, HD_S("__interrupt__")))
            continue;
        hd_jw_key(&jw, it.key);
        hd_jw_val(&jw, it.val);
    }
    hd_jw_key(&jw, HD_S("__interrupt__"));
    hd_val_put_rendered(&jw, interrupts);
    hd_jw_object_end(&jw);
    return hd_jw_finish(&jw);
}

int hd_runner_text_output(struct hd_slice output, const struct hd_val *interrupts,
                          struct hd_buf *out)
{
    struct hd_json json = {NULL};
    int err;

    if (output.len == 0 || hd_val_count(interrupts) == 0)
        return hd_buf_append_slice(out, output);
    err = hd_json_parse(&json, output, NULL);
    if (!err && hd_json_is_object(hd_json_root(&json)))
        err = add_interrupts(hd_json_root(&json), interrupts, out);
    else if (!err)
        err = hd_buf_append_slice(out, output);
    hd_json_fini(&json);
    return err;
}
