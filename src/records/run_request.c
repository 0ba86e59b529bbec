#include "records/run_request.h"

#include <math.h>

#include "graph/engine/ns.h"
#include "records/stream_modes.h"

#define MAX_WEBHOOK 65536
#define MAX_DELAY_S (366.0 * 24 * 3600)

const char *const hd_multitask_names[] = {"enqueue", "reject", "interrupt", "rollback", NULL};
static const char *const durabilities[] = {"async", "sync", "exit", NULL};

const char *hd_multitask_name(enum hd_multitask multitask)
{
    return hd_multitask_names[multitask];
}

/* ---- members by type -------------------------------------------------- */

/* The member, NULL when it is null or not there. */
static hd_json_val given_member(hd_json_val object, const char *name)
{
    hd_json_val val = hd_json_get(object, hd_slice_cstr(name));

    return hd_json_is_null(val) ? NULL : val;
}

static int refuse_member_type(struct heddle_error *fault, const char *name, const char *wanted,
                              hd_json_val val)
{
    return hd_error_set(fault, HD_EINVAL, "%s: expected %s, not %s", name, wanted,
                        hd_json_type_name(val));
}

static int read_object_member(hd_json_val body, const char *name, hd_json_val *out,
                              struct heddle_error *fault)
{
    hd_json_val val = given_member(body, name);

    if (val && !hd_json_is_object(val))
        return refuse_member_type(fault, name, "an object", val);
    *out = val;
    return 0;
}

static int read_string(hd_json_val body, const char *name, struct hd_slice *out,
                       struct heddle_error *fault)
{
    hd_json_val val = given_member(body, name);

    if (val && !hd_json_is_string(val))
        return refuse_member_type(fault, name, "a string", val);
    if (val)
        *out = hd_json_string(val);
    return 0;
}

static int read_bool(hd_json_val body, const char *name, bool *out, struct heddle_error *fault)
{
    hd_json_val val = given_member(body, name);

    if (val && !hd_json_is_bool(val))
        return refuse_member_type(fault, name, "true or false", val);
    if (val)
        *out = hd_json_is_true(val);
    return 0;
}

/* One of some words; *out stays unchanged without a match. */
static int read_word(hd_json_val body, const char *name, const char *const *words, int *out,
                     struct heddle_error *fault)
{
    hd_json_val val = given_member(body, name);
    struct hd_slice word = hd_json_string(val);

    if (!val)
        return 0;
    for (int i = 0; hd_json_is_string(val) && words[i]; i++) {
        if (hd_slice_eq(word, hd_slice_cstr(words[i]))) {
            *out = i;
            return 0;
        }
    }
    if (words[2])
        return hd_error_set(fault, HD_EINVAL, "%s: expected \"%s\", \"%s\", \"%s\"%s%s%s", name,
                            words[0], words[1], words[2], words[3] ? " or \"" : "",
                            words[3] ? words[3] : "", words[3] ? "\"" : "");
    return hd_error_set(fault, HD_EINVAL, "%s: expected \"%s\" or \"%s\"", name, words[0],
                        words[1]);
}

/* A list of strings, or "*" where that is allowed. */
static int read_names(hd_json_val body, const char *name, bool allows_all, hd_json_val *out,
                      struct heddle_error *fault)
{
    hd_json_val val = given_member(body, name);
    struct hd_json_iter it = hd_json_iter(val);

    *out = val;
    if (!val || (allows_all && hd_slice_eq(hd_json_string(val), HD_S("*"))))
        return 0;
    if (!hd_json_is_array(val))
        return refuse_member_type(
            fault, name, allows_all ? "\"*\" or a list of names" : "a list of strings", val);
    while (hd_json_next(&it)) {
        if (!hd_json_is_string(it.val))
            return refuse_member_type(fault, name, "a list of strings", it.val);
    }
    return 0;
}

/* ---- the groups of members -------------------------------------------- */

/* The root namespace of the run. With a `|` it would look like a subgraph of another root. */
static int read_root(struct hd_run_request *request, struct heddle_error *fault)
{
    hd_json_val val = given_member(request->configurable, "checkpoint_ns");

    if (!val)
        return 0;
    if (!hd_json_is_string(val))
        return refuse_member_type(fault, "config.configurable.checkpoint_ns", "a string", val);
    request->root = hd_json_string(val);
    request->has_root = true;
    if (!hd_ns_is_root(request->root))
        return hd_error_set(fault, HD_EINVAL,
                            "config.configurable.checkpoint_ns: the root namespace of a run must "
                            "not contain \"|\"");
    return 0;
}

static int read_what(struct hd_run_request *request, hd_json_val body, struct heddle_error *fault)
{
    int err;

    err = read_string(body, "assistant_id", &request->assistant_id, fault);
    if (err)
        return err;
    if (request->assistant_id.len == 0)
        return hd_error_set(fault, HD_EINVAL, "assistant_id: required");
    request->input = given_member(body, "input");
    err = read_object_member(body, "command", &request->command, fault);
    if (!err)
        err = read_object_member(body, "metadata", &request->metadata, fault);
    if (!err)
        err = read_object_member(body, "config", &request->config, fault);
    if (!err && request->config) {
        err = read_object_member(request->config, "configurable", &request->configurable, fault);
        if (err && fault)
            hd_error_set(fault, err, "config.configurable: expected an object");
    }
    if (!err)
        err = read_root(request, fault);
    request->context = given_member(body, "context");
    return err;
}

static int read_limit(const struct hd_run_request *request, struct heddle_error *fault)
{
    hd_json_val val = given_member(request->config, "recursion_limit");
    int64_t limit;

    if (!val)
        return 0;
    if (!hd_json_whole(val, &limit) || limit < 1 || limit > 1000000)
        return hd_error_set(fault, HD_EINVAL,
                            "config.recursion_limit: expected an integer from 1 to 1000000");
    return 0;
}

static int read_checkpoint(struct hd_run_request *request, hd_json_val body,
                           struct heddle_error *fault)
{
    hd_json_val checkpoint = NULL;
    int err;

    err = read_string(body, "checkpoint_id", &request->checkpoint_id, fault);
    if (!err)
        err = read_object_member(body, "checkpoint", &checkpoint, fault);
    if (err || !checkpoint)
        return err;
    err = read_string(checkpoint, "checkpoint_id", &request->checkpoint_id, fault);
    if (!err)
        err = read_string(checkpoint, "checkpoint_ns", &request->checkpoint_ns, fault);
    request->has_checkpoint_ns = given_member(checkpoint, "checkpoint_ns") != NULL;
    if (!err)
        err = read_object_member(checkpoint, "checkpoint_map", &request->checkpoint_map, fault);
    return err;
}

static int read_modes(struct hd_run_request *request, hd_json_val body, struct heddle_error *fault)
{
    hd_json_val val = given_member(body, "stream_mode");
    struct hd_json_iter it = hd_json_iter(val);
    int err = 0;

    if (hd_json_is_string(val))
        err = hd_mode_add(hd_json_string(val), &request->modes, fault);
    else if (val && !hd_json_is_array(val))
        return refuse_member_type(fault, "stream_mode", "a string or a list of strings", val);
    while (!err && hd_json_is_array(val) && hd_json_next(&it)) {
        if (!hd_json_is_string(it.val))
            return refuse_member_type(fault, "stream_mode", "a list of strings", it.val);
        err = hd_mode_add(hd_json_string(it.val), &request->modes, fault);
    }
    if (!err && request->modes == 0)
        request->modes = HD_MODE_VALUES;
    return err;
}

static int read_delay(struct hd_run_request *request, hd_json_val body, struct heddle_error *fault)
{
    hd_json_val val = given_member(body, "after_seconds");
    double seconds = 0;

    if (!val)
        return 0;
    if (!hd_json_double(val, &seconds) || seconds < 0 || seconds > MAX_DELAY_S)
        return hd_error_set(fault, HD_EINVAL, "after_seconds: expected a number from 0 to %.0f",
                            MAX_DELAY_S);
    request->delay_us = (int64_t)llround(seconds * 1e6);
    return 0;
}

static int read_durability(struct hd_run_request *request, hd_json_val body,
                           struct heddle_error *fault)
{
    int durability = HD_DURABLE_ASYNC;
    bool during = true;
    int err = read_bool(body, "checkpoint_during", &during, fault);

    if (!during)
        durability = HD_DURABLE_EXIT;
    if (!err)
        err = read_word(body, "durability", durabilities, &durability, fault);
    request->durability = (enum hd_durability)durability;
    return err;
}

static int read_how(struct hd_run_request *request, hd_json_val body, struct heddle_error *fault)
{
    int multitask = HD_MULTITASK_ENQUEUE;
    int disconnect = 0, completion = 0, missing = 0;
    int err;

    err = read_word(body, "multitask_strategy", hd_multitask_names, &multitask, fault);
    if (!err)
        err =
            read_word(body, "on_disconnect",
                      (const char *const[]){"cancel", "continue", NULL, NULL}, &disconnect, fault);
    if (!err)
        err = read_word(body, "on_completion", (const char *const[]){"delete", "keep", NULL, NULL},
                        &completion, fault);
    if (!err)
        err = read_word(body, "if_not_exists",
                        (const char *const[]){"reject", "create", NULL, NULL}, &missing, fault);
    if (!err)
        err = read_bool(body, "stream_subgraphs", &request->subgraphs, fault);
    if (!err)
        err = read_bool(body, "stream_resumable", &request->is_resumable, fault);
    request->multitask = (enum hd_multitask)multitask;
    request->cancels_on_disconnect = disconnect == 0;
    request->keeps_thread = completion == 1;
    request->creates_thread = missing == 1;
    return err;
}

int hd_run_request_read(struct hd_run_request *request, hd_json_val body,
                        struct heddle_error *fault)
{
    int err;

    *request = (struct hd_run_request){.modes = 0};
    if (!hd_json_is_object(body))
        return hd_error_set(fault, HD_EINVAL, "the body must be an object, not %s",
                            hd_json_type_name(body));
    err = read_what(request, body, fault);
    if (!err)
        err = read_limit(request, fault);
    if (!err)
        err = read_checkpoint(request, body, fault);
    if (!err)
        err = read_string(body, "webhook", &request->webhook, fault);
    if (!err && request->webhook.len > MAX_WEBHOOK)
        err = hd_error_set(fault, HD_EINVAL, "webhook: longer than %d bytes", MAX_WEBHOOK);
    if (!err)
        err = read_names(body, "interrupt_before", true, &request->interrupt_before, fault);
    if (!err)
        err = read_names(body, "interrupt_after", true, &request->interrupt_after, fault);
    if (!err)
        err = read_names(body, "feedback_keys", false, &request->feedback_keys, fault);
    if (!err)
        err = read_modes(request, body, fault);
    if (!err)
        err = read_how(request, body, fault);
    if (!err)
        err = read_durability(request, body, fault);
    if (!err)
        err = read_delay(request, body, fault);
    return err;
}
