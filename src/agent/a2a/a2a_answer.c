/*
 * Responses of an agent: a message, or a task, whole or as updates. A struct hd_a2a_answer
 * accumulates them. The text of an artifact that arrives in pieces is collected in a buffer, so
 * that many small pieces cost linear time.
 */
#include "agent/a2a/a2a_proto.h"

#include "base/alloc.h"
#include "base/utf8.h"

/* ---- states --------------------------------------------------------------- */

static const char *const states[] = {
    [HD_A2A_UNKNOWN] = "unknown",
    [HD_A2A_SUBMITTED] = "submitted",
    [HD_A2A_WORKING] = "working",
    [HD_A2A_COMPLETED] = "completed",
    [HD_A2A_FAILED] = "failed",
    [HD_A2A_CANCELED] = "canceled",
    [HD_A2A_REJECTED] = "rejected",
    [HD_A2A_INPUT_REQUIRED] = "input-required",
    [HD_A2A_AUTH_REQUIRED] = "auth-required",
};

const char *hd_a2a_state_name(enum hd_a2a_state state)
{
    return states[state];
}

/* "TASK_STATE_INPUT_REQUIRED" and "input-required" are the same. */
static bool is_state(struct hd_slice name, const char *state)
{
    size_t len = strlen(state);

    if (hd_slice_starts(name, HD_S("TASK_STATE_"))) {
        name.ptr += 11;
        name.len -= 11;
    }
    for (size_t i = 0; i < name.len && i < len; i++) {
        char c = name.ptr[i];

        c = c == '_' ? '-' : c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
        if (c != state[i])
            return false;
    }
    return name.len == len;
}

enum hd_a2a_state hd_a2a_state_read(struct hd_slice name)
{
    for (size_t i = 0; i < sizeof(states) / sizeof(*states); i++) {
        if (is_state(name, states[i]))
            return (enum hd_a2a_state)i;
    }
    return is_state(name, "cancelled") ? HD_A2A_CANCELED : HD_A2A_UNKNOWN;
}

bool hd_a2a_state_ends(enum hd_a2a_state state)
{
    return state == HD_A2A_COMPLETED || state == HD_A2A_FAILED || state == HD_A2A_CANCELED ||
           state == HD_A2A_REJECTED;
}

bool hd_a2a_state_asks(enum hd_a2a_state state)
{
    return state == HD_A2A_INPUT_REQUIRED || state == HD_A2A_AUTH_REQUIRED;
}

/* ---- artifacts ------------------------------------------------------------ */

static void artifact_fini(struct hd_a2a_artifact *artifact)
{
    hd_val_unref(artifact->about);
    hd_val_unref(artifact->parts);
    hd_buf_fini(&artifact->tail);
    *artifact = (struct hd_a2a_artifact){0};
}

static void drop_artifacts(struct hd_a2a_answer *answer)
{
    for (size_t i = 0; i < answer->artifact_count; i++)
        artifact_fini(&answer->artifacts[i]);
    hd_free(answer->artifacts);
    answer->artifacts = NULL;
    answer->artifact_count = 0;
}

/* Turns the accumulated text into a part. */
static int flush_artifact_tail(struct hd_a2a_artifact *artifact)
{
    struct hd_val *part;

    if (artifact->tail.len == 0)
        return 0;
    part = hd_val_with(hd_val_object(), HD_S("type"), hd_val_cstr("text"));
    part = hd_val_with(part, HD_S("text"), hd_val_string(hd_buf_slice(&artifact->tail)));
    hd_buf_reset(&artifact->tail);
    artifact->parts = hd_val_append(artifact->parts, part);
    return artifact->parts ? 0 : HD_ENOMEM;
}

static int add_part(struct hd_a2a_artifact *artifact, const struct hd_val *part, bool continues)
{
    struct hd_val *text = hd_val_get(part, HD_S("text"));
    int err = text && continues ? 0 : flush_artifact_tail(artifact);

    if (err)
        return err;
    if (text)
        return hd_buf_append_slice(&artifact->tail, hd_val_get_string(text));
    artifact->parts = hd_val_append(artifact->parts, hd_val_ref(part));
    return artifact->parts ? 0 : HD_ENOMEM;
}

static struct hd_a2a_artifact *find_artifact(const struct hd_a2a_answer *answer, struct hd_slice id)
{
    for (size_t i = 0; i < answer->artifact_count; i++) {
        struct hd_val *own = hd_val_get(answer->artifacts[i].about, HD_S("artifact_id"));

        if (hd_slice_eq(hd_val_get_string(own), id))
            return &answer->artifacts[i];
    }
    return NULL;
}

static struct hd_val *read_about(hd_json_val json)
{
    static const char *const keys[][2] = {
        {"artifactId", "artifact_id"}, {"name", "name"}, {"description", "description"}};
    struct hd_val *about = hd_val_object();

    for (size_t i = 0; i < 3; i++) {
        struct hd_slice text = hd_json_string(hd_json_get(json, hd_slice_cstr(keys[i][0])));

        if (text.len || i == 0)
            about = hd_val_with(about, hd_slice_cstr(keys[i][1]), hd_val_string(text));
    }
    return about;
}

static int new_artifact(struct hd_a2a_answer *answer, struct hd_a2a_artifact **out,
                        struct heddle_error *fault)
{
    struct hd_a2a_artifact *list;

    if (answer->artifact_count >= HD_A2A_MAX_ARTIFACTS)
        return hd_error_set(fault, HD_ELIMIT, "it sent more than %d artifacts",
                            HD_A2A_MAX_ARTIFACTS);
    list = hd_realloc(answer->artifacts, (answer->artifact_count + 1) * sizeof(*list));
    if (!list)
        return HD_ENOMEM;
    answer->artifacts = list;
    *out = &list[answer->artifact_count++];
    **out = (struct hd_a2a_artifact){0};
    return 0;
}

/* `appends`: its parts are added to those received before; else they replace them. */
static int read_artifact(struct hd_a2a_answer *answer, hd_json_val json, bool appends,
                         struct hd_a2a_progress *progress, struct heddle_error *fault)
{
    struct hd_slice id = hd_json_string(hd_json_get(json, HD_S("artifactId")));
    struct hd_a2a_artifact *artifact = find_artifact(answer, id);
    struct hd_val *parts = NULL;
    int err;

    if (!hd_json_is_object(json))
        return hd_error_set(fault, HD_EINVAL, "it sent an invalid artifact");
    err = hd_a2a_parts_read(hd_json_get(json, HD_S("parts")), &parts, fault);
    if (!err && !artifact)
        err = new_artifact(answer, &artifact, fault);
    if (!err && !(appends && artifact->about)) {
        artifact_fini(artifact);
        hd_buf_init(&artifact->tail, HD_A2A_MAX_ANSWER);
        artifact->about = read_about(json);
        artifact->parts = hd_val_list();
        err = artifact->about && artifact->parts ? 0 : HD_ENOMEM;
    }
    for (size_t i = 0; i < hd_val_count(parts) && !err; i++)
        err = add_part(artifact, hd_val_at(parts, i), appends && i == 0);
    if (err || !progress) {
        hd_val_unref(parts);
        return err;
    }
    progress->parts = parts;
    progress->artifact = hd_val_get(artifact->about, HD_S("name"));
    if (!progress->artifact)
        progress->artifact = hd_val_get(artifact->about, HD_S("artifact_id"));
    return 0;
}

/* ---- tasks and messages ---------------------------------------------------- */

static int set_id(struct hd_val **at, hd_json_val json, struct heddle_error *fault)
{
    struct hd_slice id = hd_json_string(json);

    if (id.len == 0)
        return 0;
    if (id.len > HD_A2A_MAX_ID)
        return hd_error_set(fault, HD_ELIMIT, "it sent an id that is too long");
    hd_val_unref(*at);
    *at = hd_val_string(id);
    return *at ? 0 : HD_ENOMEM;
}

static int set_ids(struct hd_a2a_answer *answer, hd_json_val json, const char *task_key,
                   struct heddle_error *fault)
{
    int err = set_id(&answer->task_id, hd_json_get(json, hd_slice_cstr(task_key)), fault);

    return err ? err : set_id(&answer->context_id, hd_json_get(json, HD_S("contextId")), fault);
}

/*
 * Some agents send neither artifacts nor a last message: the status texts sent while working are
 * then the result. A text that begins with all earlier text replaces it, any other one is appended.
 */
static int hear(struct hd_a2a_answer *answer, const struct hd_val *parts)
{
    struct hd_buf text;
    int err;

    hd_buf_init(&text, HD_A2A_MAX_ANSWER);
    err = hd_a2a_parts_text(&text, parts);
    if (!err && hd_slice_starts(hd_buf_slice(&text), hd_buf_slice(&answer->heard)))
        hd_buf_reset(&answer->heard);
    if (!err)
        err = hd_buf_append_slice(&answer->heard, hd_buf_slice(&text));
    hd_buf_fini(&text);
    return err;
}

static int read_status(struct hd_a2a_answer *answer, hd_json_val status,
                       struct hd_a2a_progress *progress, struct heddle_error *fault)
{
    hd_json_val message = hd_json_get(status, HD_S("message"));
    struct hd_val *parts = NULL;
    int err = 0;

    if (!hd_json_is_object(status))
        return hd_error_set(fault, HD_EINVAL, "it sent a task without a status");
    if (hd_json_is_object(message))
        err = hd_a2a_parts_read(hd_json_get(message, HD_S("parts")), &parts, fault);
    if (err)
        return err;
    answer->state = hd_a2a_state_read(hd_json_string(hd_json_get(status, HD_S("state"))));
    hd_val_unref(answer->message);
    answer->message = parts;
    if (parts && !hd_a2a_state_ends(answer->state) && !hd_a2a_state_asks(answer->state))
        err = hear(answer, parts);
    if (progress)
        progress->parts = hd_val_ref(parts);
    return err;
}

/* The agent's last message in the history, when a task has nothing else. */
static int hear_history(struct hd_a2a_answer *answer, hd_json_val history,
                        struct heddle_error *fault)
{
    struct hd_json_iter it = hd_json_iter(history);
    struct hd_val *parts = NULL;
    hd_json_val last = NULL;
    int err;

    while (hd_json_is_array(history) && hd_json_next(&it)) {
        struct hd_slice role = hd_json_string(hd_json_get(it.val, HD_S("role")));

        if (hd_slice_eq(role, HD_S("agent")) || hd_slice_eq(role, HD_S("ROLE_AGENT")))
            last = it.val;
    }
    if (!last || answer->message || answer->artifact_count)
        return 0;
    err = hd_a2a_parts_read(hd_json_get(last, HD_S("parts")), &parts, fault);
    if (err)
        return err;
    hd_buf_reset(&answer->heard);
    err = hear(answer, parts);
    hd_val_unref(parts);
    return err;
}

static int read_task(struct hd_a2a_answer *answer, hd_json_val task,
                     struct hd_a2a_progress *progress, struct heddle_error *fault)
{
    hd_json_val artifacts = hd_json_get(task, HD_S("artifacts"));
    struct hd_json_iter it = hd_json_iter(artifacts);
    int err = set_ids(answer, task, "id", fault);

    if (!err)
        err = read_status(answer, hd_json_get(task, HD_S("status")), progress, fault);
    if (!err && hd_json_is_array(artifacts) && hd_json_size(artifacts) > 0)
        drop_artifacts(answer);
    while (!err && hd_json_is_array(artifacts) && hd_json_next(&it))
        err = read_artifact(answer, it.val, false, NULL, fault);
    return err ? err : hear_history(answer, hd_json_get(task, HD_S("history")), fault);
}

static int read_a2a_message(struct hd_a2a_answer *answer, hd_json_val message,
                            struct hd_a2a_progress *progress, struct heddle_error *fault)
{
    struct hd_val *parts = NULL;
    int err = set_ids(answer, message, "taskId", fault);

    if (!err)
        err = hd_a2a_parts_read(hd_json_get(message, HD_S("parts")), &parts, fault);
    if (err)
        return err;
    hd_val_unref(answer->message);
    answer->message = parts;
    answer->is_message = true;
    progress->parts = hd_val_ref(parts);
    return 0;
}

static int read_update(struct hd_a2a_answer *answer, hd_json_val update,
                       struct hd_a2a_progress *progress, struct heddle_error *fault)
{
    bool appends = hd_json_is_true(hd_json_get(update, HD_S("append")));
    int err = set_ids(answer, update, "taskId", fault);

    if (err)
        return err;
    if (progress->kind == HD_A2A_ARTIFACT)
        return read_artifact(answer, hd_json_get(update, HD_S("artifact")), appends, progress,
                             fault);
    answer->is_final = hd_json_is_true(hd_json_get(update, HD_S("final")));
    return read_status(answer, hd_json_get(update, HD_S("status")), progress, fault);
}

/* ---- kind of response ------------------------------------------------- */

/* Finds the object and its kind: by its `kind`, by the enclosing member, or by its own members. */
static hd_json_val find_kind(hd_json_val val, enum hd_a2a_kind *out)
{
    static const struct {
        const char *kind, *member;
        enum hd_a2a_kind is;
    } kinds[] = {
        {"task", "task", HD_A2A_TASK},
        {"message", "message", HD_A2A_MESSAGE},
        {"status-update", "statusUpdate", HD_A2A_STATUS},
        {"artifact-update", "artifactUpdate", HD_A2A_ARTIFACT},
    };
    struct hd_slice kind = hd_json_string(hd_json_get(val, HD_S("kind")));

    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        hd_json_val member = hd_json_get(val, hd_slice_cstr(kinds[i].member));

        *out = kinds[i].is;
        if (hd_slice_eq(kind, hd_slice_cstr(kinds[i].kind)))
            return val;
        if (kind.len == 0 && hd_json_is_object(member))
            return member;
    }
    *out = hd_json_get(val, HD_S("messageId")) ? HD_A2A_MESSAGE : HD_A2A_TASK;
    return *out == HD_A2A_MESSAGE || hd_json_get(val, HD_S("status")) ? val : NULL;
}

bool hd_a2a_error_read(hd_json_val body, struct heddle_error *fault)
{
    hd_json_val error = hd_json_get(body, HD_S("error"));
    struct hd_slice text, code;

    if (!hd_json_is_object(error))
        error = hd_json_is_number(hd_json_get(body, HD_S("code"))) ? body : NULL;
    if (!error)
        return false;
    text = hd_json_string(hd_json_get(error, HD_S("message")));
    code = hd_json_number_text(hd_json_get(error, HD_S("code")));
    if (text.len > 200)
        text.len = hd_utf8_cut(text.ptr, 200);
    if (code.len > 20)
        code.len = 20;
    hd_error_set(fault, HD_EIO, "%.*s%s%.*s%s", (int)text.len, text.ptr, text.len ? " (" : "error ",
                 (int)code.len, code.ptr ? code.ptr : "", text.len ? ")" : "");
    return true;
}

static int read_answer_root(struct hd_a2a_answer *answer, hd_json_val root,
                            struct hd_a2a_progress *progress, struct heddle_error *fault)
{
    hd_json_val result = hd_json_get(root, HD_S("result")), val;

    if (hd_a2a_error_read(root, fault))
        return HD_EIO;
    val = find_kind(result ? result : root, &progress->kind);
    if (!val)
        return hd_error_set(fault, HD_EINVAL, "its response has neither a message nor a task");
    if (progress->kind == HD_A2A_TASK)
        return read_task(answer, val, progress, fault);
    if (progress->kind == HD_A2A_MESSAGE)
        return read_a2a_message(answer, val, progress, fault);
    return read_update(answer, val, progress, fault);
}

int hd_a2a_answer_read(struct hd_a2a_answer *answer, struct hd_slice text,
                       struct hd_a2a_progress *progress, struct heddle_error *fault)
{
    struct hd_json json;
    int err;

    *progress = (struct hd_a2a_progress){0};
    if (text.len > HD_A2A_MAX_ANSWER - answer->bytes)
        return hd_error_set(fault, HD_ELIMIT, "it sent more than %zu MiB", HD_A2A_MAX_ANSWER >> 20);
    answer->bytes += text.len;
    err = hd_json_parse(&json, text, NULL);
    if (err)
        return err == HD_EINVAL ? hd_error_set(fault, err, "its response is not JSON") : err;
    err = read_answer_root(answer, hd_json_root(&json), progress, fault);
    hd_json_fini(&json);
    if (err) {
        hd_val_unref(progress->parts);
        *progress = (struct hd_a2a_progress){0};
    }
    return err;
}

/* ---- whole responses -------------------------------------------------- */

void hd_a2a_answer_init(struct hd_a2a_answer *answer)
{
    *answer = (struct hd_a2a_answer){0};
    hd_buf_init(&answer->heard, HD_A2A_MAX_ANSWER);
}

void hd_a2a_answer_fini(struct hd_a2a_answer *answer)
{
    drop_artifacts(answer);
    hd_val_unref(answer->task_id);
    hd_val_unref(answer->context_id);
    hd_val_unref(answer->message);
    hd_buf_fini(&answer->heard);
    *answer = (struct hd_a2a_answer){0};
}

/* The message comes first, unless an artifact has the same text. */
static int put_content(struct hd_a2a_answer *answer, struct hd_buf *out)
{
    struct hd_buf said;
    int err = 0;

    for (size_t i = 0; i < answer->artifact_count && !err; i++) {
        err = flush_artifact_tail(&answer->artifacts[i]);
        if (!err)
            err = hd_a2a_parts_text(out, answer->artifacts[i].parts);
    }
    hd_buf_init(&said, out->limit);
    if (!err)
        err = hd_a2a_parts_text(&said, answer->message);
    if (!err && said.len && out->len && memmem(out->ptr, out->len, said.ptr, said.len))
        hd_buf_reset(&said);
    if (!err && said.len && out->len)
        err = hd_buf_append_byte(&said, '\n');
    if (!err && said.len) {
        err = hd_buf_append_slice(&said, hd_buf_slice(out));
        hd_buf_reset(out);
        if (!err)
            err = hd_buf_append_slice(out, hd_buf_slice(&said));
    }
    hd_buf_fini(&said);
    if (!err && out->len == 0)
        err = hd_buf_append_slice(out, hd_buf_slice(&answer->heard));
    return err;
}

struct hd_val *hd_a2a_answer_content(struct hd_a2a_answer *answer)
{
    struct hd_val *content = NULL;
    struct hd_buf text;

    hd_buf_init(&text, 2 * HD_A2A_MAX_ANSWER);
    if (put_content(answer, &text) == 0)
        content = hd_val_string(hd_buf_slice(&text));
    hd_buf_fini(&text);
    return content;
}

struct hd_val *hd_a2a_answer_said(const struct hd_a2a_answer *answer)
{
    struct hd_val *said = NULL;
    struct hd_buf text;

    hd_buf_init(&text, 2 * HD_A2A_MAX_ANSWER);
    if (hd_a2a_parts_text(&text, answer->message) == 0)
        said = hd_val_string(hd_buf_slice(&text));
    hd_buf_fini(&text);
    return said;
}

static struct hd_val *list_artifacts(struct hd_a2a_answer *answer)
{
    struct hd_val *list = hd_val_list();

    for (size_t i = 0; i < answer->artifact_count && list; i++) {
        struct hd_a2a_artifact *artifact = &answer->artifacts[i];

        if (flush_artifact_tail(artifact) != 0) {
            hd_val_unref(list);
            return NULL;
        }
        list = hd_val_append(list, hd_val_with(hd_val_ref(artifact->about), HD_S("parts"),
                                               hd_val_ref(artifact->parts)));
    }
    return list;
}

struct hd_val *hd_a2a_answer_artifact(struct hd_a2a_answer *answer)
{
    struct hd_val *val = hd_val_object();

    if (answer->task_id)
        val = hd_val_with(val, HD_S("task_id"), hd_val_ref(answer->task_id));
    if (answer->context_id)
        val = hd_val_with(val, HD_S("context_id"), hd_val_ref(answer->context_id));
    if (answer->is_message)
        return hd_val_with(val, HD_S("parts"),
                           answer->message ? hd_val_ref(answer->message) : hd_val_list());
    val = hd_val_with(val, HD_S("state"), hd_val_cstr(hd_a2a_state_name(answer->state)));
    return hd_val_with(val, HD_S("artifacts"), list_artifacts(answer));
}
