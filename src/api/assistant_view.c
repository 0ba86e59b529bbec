#include "api/assistant_view.h"

#include "api/request/authorize.h"
#include "run/assistant_lookup.h"

/* ---- members ---------------------------------------------------------- */

static void put_assistant_id(struct hd_jw *jw, const struct hd_assistant_rec *assistant)
{
    hd_jw_string(jw, assistant->id);
}

static void put_graph_id(struct hd_jw *jw, const struct hd_assistant_rec *assistant)
{
    hd_jw_string(jw, assistant->graph_id);
}

static void put_name(struct hd_jw *jw, const struct hd_assistant_rec *assistant)
{
    hd_jw_string(jw, assistant->name);
}

static void put_description(struct hd_jw *jw, const struct hd_assistant_rec *assistant)
{
    hd_jw_raw_or(jw, assistant->description, "null");
}

static void put_assistant_config(struct hd_jw *jw, const struct hd_assistant_rec *assistant)
{
    hd_jw_raw_or(jw, assistant->config, "{}");
}

static void put_context(struct hd_jw *jw, const struct hd_assistant_rec *assistant)
{
    hd_jw_raw_or(jw, assistant->context, "{}");
}

static void put_assistant_created_at(struct hd_jw *jw, const struct hd_assistant_rec *assistant)
{
    hd_jw_timestamp(jw, assistant->created_at);
}

static void put_assistant_updated_at(struct hd_jw *jw, const struct hd_assistant_rec *assistant)
{
    hd_jw_timestamp(jw, assistant->updated_at);
}

static void put_assistant_metadata(struct hd_jw *jw, const struct hd_assistant_rec *assistant)
{
    hd_jw_raw_or(jw, assistant->metadata, "{}");
}

static void put_version(struct hd_jw *jw, const struct hd_assistant_rec *assistant)
{
    hd_jw_int(jw, assistant->version);
}

static const struct {
    const char *name;
    void (*put)(struct hd_jw *jw, const struct hd_assistant_rec *assistant);
} all_members[] = {
    {"assistant_id", put_assistant_id},
    {"graph_id", put_graph_id},
    {"name", put_name},
    {"description", put_description},
    {"config", put_assistant_config},
    {"context", put_context},
    {"created_at", put_assistant_created_at},
    {"updated_at", put_assistant_updated_at},
    {"metadata", put_assistant_metadata},
    {"version", put_version},
};

static unsigned find_member(struct hd_slice name)
{
    for (unsigned i = 0; i < HD_COUNT(all_members); i++) {
        if (hd_slice_eq(name, hd_slice_cstr(all_members[i].name)))
            return 1u << i;
    }
    return 0;
}

int hd_assistant_view_select(struct hd_call *call, const struct hd_slice *names, size_t count,
                             unsigned *members)
{
    *members = count == 0 ? HD_ASSISTANT_VIEW_ALL : 0;
    for (size_t i = 0; i < count; i++) {
        unsigned member = find_member(names[i]);

        if (member == 0)
            return hd_error_set(&call->fault, HD_EINVAL, "select: assistants have no \"%.*s\"",
                                (int)(names[i].len < 80 ? names[i].len : 80), names[i].ptr);
        *members |= member;
    }
    return 0;
}

void hd_assistant_view(struct hd_jw *jw, const struct hd_assistant_rec *assistant, unsigned members)
{
    hd_jw_object(jw);
    for (unsigned i = 0; i < HD_COUNT(all_members); i++) {
        if (!(members & 1u << i))
            continue;
        hd_jw_key(jw, hd_slice_cstr(all_members[i].name));
        all_members[i].put(jw, assistant);
    }
    hd_jw_object_end(jw);
}

/* ---- the assistant of the path ---------------------------------------- */

int hd_call_assistant(struct hd_call *call, struct hd_assistant_rec *out)
{
    struct hd_slice id = call->params[0];
    struct hd_slice uuid;
    struct heddle_error none = {0};
    bool is_seen = true;
    int err;

    /* The id of a graph need not be a UUID; one that is may be written in upper case. */
    if (!hd_app_graph(call->app, id) && hd_call_uuid(call, "assistant_id", id, &uuid) == 0)
        id = uuid;
    call->fault = none;
    err = hd_assistant_lookup(call->app, call->actor, id, call->arena, out, &call->fault);
    if (!err)
        err = hd_call_sees(call, HD_OF_ASSISTANTS, out->metadata, &is_seen);
    if (is_seen && err != HD_ENOTFOUND)
        return err;
    call->fault = none;
    return hd_error_set(&call->fault, HD_ENOTFOUND, "Assistant not found");
}

int hd_call_graph(struct hd_call *call, struct hd_slice graph_id, const struct hd_app_graph **out)
{
    *out = hd_app_graph(call->app, graph_id);
    if (*out)
        return 0;
    return hd_error_set(&call->fault, HD_ENOTFOUND, "Graph with id \"%.*s\" not found",
                        (int)(graph_id.len < 80 ? graph_id.len : 80), graph_id.ptr);
}
