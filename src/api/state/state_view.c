#include "api/state/state_view.h"

#include "graph/state/state.h"

#define MAX_STATE ((size_t)1 << 30)

static const char *const state_members[] = {"values",
                                            "next",
                                            "tasks",
                                            "metadata",
                                            "created_at",
                                            "checkpoint",
                                            "parent_checkpoint",
                                            "interrupts",
                                            "checkpoint_id",
                                            "parent_checkpoint_id"};
static const struct hd_slice values_prefix = HD_S_INIT("values.");

/* ---- selection -------------------------------------------------------- */

static bool state_view_is_member(struct hd_slice name)
{
    for (size_t i = 0; i < HD_COUNT(state_members); i++) {
        if (hd_slice_eq(name, hd_slice_cstr(state_members[i])))
            return true;
    }
    return hd_slice_starts(name, values_prefix);
}

static int state_view_check(struct hd_call *call, struct hd_state_view_select *select)
{
    hd_buf_init(&select->scratch, MAX_STATE);
    for (size_t i = 0; i < select->count; i++) {
        struct hd_slice name = select->names[i];

        if (!state_view_is_member(name))
            return hd_error_set(&call->fault, HD_EINVAL, "select: states have no \"%.*s\"",
                                (int)(name.len < 80 ? name.len : 80), name.ptr);
    }
    return 0;
}

int hd_state_view_select_query(struct hd_call *call, struct hd_state_view_select *out)
{
    int err = hd_params_list(&call->query, HD_S("select"), call->arena, &out->names, &out->count,
                             &call->fault);

    return err ? err : state_view_check(call, out);
}

int hd_state_view_select_body(struct hd_call *call, struct hd_state_view_select *out)
{
    int err = hd_body_strings(call, "select", &out->names, &out->count);

    return err ? err : state_view_check(call, out);
}

void hd_state_view_select_fini(struct hd_state_view_select *select)
{
    hd_buf_fini(&select->scratch);
}

bool hd_state_view_select_has_values(const struct hd_state_view_select *select)
{
    bool is_found = select->count == 0;

    for (size_t i = 0; i < select->count && !is_found; i++)
        is_found = hd_slice_eq(select->names[i], HD_S("values")) ||
                   hd_slice_starts(select->names[i], values_prefix);
    return is_found;
}

/* ---- writing ---------------------------------------------------------- */

static bool is_selected(const struct hd_state_view_select *select, struct hd_slice name)
{
    for (size_t i = 0; i < select->count; i++) {
        if (hd_slice_eq(select->names[i], name))
            return true;
    }
    return false;
}

static bool is_first(const struct hd_state_view_select *select, size_t index)
{
    for (size_t i = 0; i < index; i++) {
        if (hd_slice_eq(select->names[i], select->names[index]))
            return false;
    }
    return true;
}

/* The individually selected values. */
static void put_some_values(struct hd_jw *jw, const struct hd_state_view_select *select,
                            hd_json_val values)
{
    bool is_begun = false;

    for (size_t i = 0; i < select->count; i++) {
        struct hd_slice name = select->names[i];
        hd_json_val val;

        if (!hd_slice_starts(name, values_prefix) || !is_first(select, i))
            continue;
        if (!is_begun) {
            hd_jw_put_object(jw, "values");
            is_begun = true;
        }
        name = hd_slice(name.ptr + values_prefix.len, name.len - values_prefix.len);
        val = hd_json_get(values, name);
        if (!val)
            continue;
        hd_jw_key(jw, name);
        hd_jw_val(jw, val);
    }
    if (is_begun)
        hd_jw_object_end(jw);
}

static void put_selected(struct hd_jw *jw, const struct hd_state_view_select *select,
                         hd_json_val state)
{
    hd_jw_object(jw);
    if (!is_selected(select, HD_S("values")))
        put_some_values(jw, select, hd_json_get(state, HD_S("values")));
    for (size_t i = 0; i < HD_COUNT(state_members); i++) {
        struct hd_slice name = hd_slice_cstr(state_members[i]);

        if (!is_selected(select, name))
            continue;
        hd_jw_key(jw, name);
        hd_jw_val(jw, hd_json_get(state, name));
    }
    hd_jw_object_end(jw);
}

static void put_whole(struct hd_call *call, struct hd_jw *jw,
                      const struct hd_checkpoint_target *target, const struct hd_val *state)
{
    if (state)
        hd_state_put(jw, state, target->thread.id, hd_checkpoint_target_shown_root(call, target));
    else
        hd_jw_raw(jw, HD_S("{\"values\":{},\"next\":[],\"tasks\":[],\"metadata\":{},"
                           "\"created_at\":null,\"checkpoint\":null,\"parent_checkpoint\":null,"
                           "\"interrupts\":[],\"checkpoint_id\":null,"
                           "\"parent_checkpoint_id\":null}"));
}

/* Selections are rare, so they are taken from the whole rendered state. */
int hd_state_view(struct hd_call *call, const struct hd_checkpoint_target *target,
                  struct hd_state_view_select *select, const struct hd_val *state)
{
    struct hd_json json = {NULL};
    struct hd_jw jw;
    int err;

    if (select->count == 0) {
        put_whole(call, &call->jw, target, state);
        return call->jw.err;
    }
    hd_buf_reset(&select->scratch);
    hd_jw_init(&jw, &select->scratch);
    put_whole(call, &jw, target, state);
    err = hd_jw_finish(&jw);
    if (!err)
        err = hd_json_parse(&json, hd_buf_slice(&select->scratch), &call->fault);
    if (!err)
        put_selected(&call->jw, select, hd_json_root(&json));
    hd_json_fini(&json);
    return err ? err : call->jw.err;
}
