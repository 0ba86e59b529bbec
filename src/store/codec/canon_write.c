/*
 * Converts plain JSON, as clients send it, into canonical text; and writes all records but
 * messages.
 */
#include "store/codec/canon.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "store/codec/canon_internal.h"

#define MAX_SAFE_INTEGER ((INT64_C(1) << 53) - 1)

int hd_canon_fail(struct hd_jw *jw, int err)
{
    if (jw->err == 0)
        jw->err = err;
    return jw->err;
}

static void plain_put_key(struct hd_jw *jw, const char *key)
{
    hd_jw_key(jw, hd_slice_cstr(key));
}

void hd_canon_open_record(struct hd_jw *jw, const char *kind)
{
    hd_jw_object(jw);
    plain_put_key(jw, "$");
    hd_jw_string(jw, hd_slice_cstr(kind));
}

static hd_json_val plain_get(hd_json_val object, const char *name)
{
    return hd_json_get(object, hd_slice_cstr(name));
}

static bool plain_is_kind(struct hd_slice s, const char *name)
{
    return hd_slice_eq(s, hd_slice_cstr(name));
}

/* ---- plain values ----------------------------------------------------- */

struct hd_canon_object hd_canon_open_object(struct hd_jw *jw, bool has_dollar)
{
    if (has_dollar) {
        hd_canon_open_record(jw, "map");
        plain_put_key(jw, "items");
        hd_jw_array(jw);
    } else {
        hd_jw_object(jw);
    }
    return (struct hd_canon_object){jw, has_dollar};
}

void hd_canon_open_member(struct hd_canon_object *m, struct hd_slice key)
{
    if (!m->is_map) {
        hd_jw_key(m->jw, key);
        return;
    }
    hd_jw_array(m->jw);
    hd_jw_string(m->jw, key);
}

void hd_canon_close_member(struct hd_canon_object *m)
{
    if (m->is_map)
        hd_jw_array_end(m->jw);
}

void hd_canon_close_object(struct hd_canon_object *m)
{
    if (m->is_map)
        hd_jw_array_end(m->jw);
    hd_jw_object_end(m->jw);
}

int hd_canon_put_member(struct hd_canon_object *m, struct hd_slice key, hd_json_val val,
                        struct heddle_error *fault)
{
    int err;

    hd_canon_open_member(m, key);
    err = hd_canon_write_plain(m->jw, val, fault);
    hd_canon_close_member(m);
    return err;
}

static void put_v_record(struct hd_jw *jw, const char *kind, struct hd_slice v)
{
    hd_canon_open_record(jw, kind);
    plain_put_key(jw, "v");
    hd_jw_string(jw, v);
    hd_jw_object_end(jw);
}

static void put_integer(struct hd_jw *jw, hd_json_val number)
{
    struct hd_slice text = hd_json_number_text(number);
    int64_t value;

    if (plain_is_kind(text, "-0"))
        hd_jw_raw(jw, HD_S("0"));
    else if (hd_json_int(number, &value) && value >= -MAX_SAFE_INTEGER && value <= MAX_SAFE_INTEGER)
        hd_jw_raw(jw, text);
    else
        put_v_record(jw, "int", text);
}

static void put_number(struct hd_jw *jw, hd_json_val number)
{
    struct hd_slice text = hd_json_number_text(number);
    bool is_negative = text.ptr[0] == '-';
    double value;

    if (!memchr(text.ptr, '.', text.len) && !memchr(text.ptr, 'e', text.len) &&
        !memchr(text.ptr, 'E', text.len))
        put_integer(jw, number);
    else if (!hd_json_double(number, &value) || !isfinite(value))
        put_v_record(jw, "float", is_negative ? HD_S("-inf") : HD_S("inf"));
    else if (is_negative && value == 0)
        put_v_record(jw, "float", HD_S("-0"));
    else
        hd_jw_raw(jw, text);
}

int hd_canon_refuse_twice(struct hd_jw *jw, hd_json_val object, struct heddle_error *fault)
{
    struct hd_slice twice;
    int err = hd_canon_find_twice(object, &twice);

    if (err > 0)
        err = hd_error_set(fault, HD_EINVAL, "the name \"%.*s\" occurs twice in an object",
                           (int)(twice.len < 100 ? twice.len : 100), twice.ptr);
    return err == 0 ? 0 : hd_canon_fail(jw, err);
}

static int plain_put_object(struct hd_jw *jw, hd_json_val object, struct heddle_error *fault)
{
    struct hd_json_iter it = hd_json_iter(object);
    struct hd_canon_object m;
    int err = hd_canon_refuse_twice(jw, object, fault);

    if (err != 0)
        return err;
    m = hd_canon_open_object(jw, plain_get(object, "$") != NULL);
    while (err == 0 && hd_json_next(&it))
        err = hd_canon_put_member(&m, it.key, it.val, fault);
    hd_canon_close_object(&m);
    return err;
}

static int put_array(struct hd_jw *jw, hd_json_val array, struct heddle_error *fault)
{
    struct hd_json_iter it = hd_json_iter(array);
    int err = 0;

    hd_jw_array(jw);
    while (err == 0 && hd_json_next(&it))
        err = hd_canon_write_plain(jw, it.val, fault);
    hd_jw_array_end(jw);
    return err;
}

int hd_canon_write_plain(struct hd_jw *jw, hd_json_val val, struct heddle_error *fault)
{
    int err = 0;

    if (jw->err != 0)
        return jw->err;
    if (hd_json_is_object(val))
        err = plain_put_object(jw, val, fault);
    else if (hd_json_is_array(val))
        err = put_array(jw, val, fault);
    else if (hd_json_is_number(val))
        put_number(jw, val);
    else
        hd_jw_val(jw, val);
    return err == 0 ? jw->err : hd_canon_fail(jw, err);
}

int hd_canon_put_or_null(struct hd_jw *jw, const char *key, hd_json_val val,
                         struct heddle_error *fault)
{
    plain_put_key(jw, key);
    if (val)
        return hd_canon_write_plain(jw, val, fault);
    hd_jw_null(jw);
    return jw->err;
}

int hd_canon_from_json(struct hd_buf *out, struct hd_slice text, struct heddle_error *fault)
{
    size_t before = out->len;
    struct hd_json json;
    struct hd_jw jw;
    int err = hd_json_parse(&json, text, fault);

    if (err != 0)
        return err;
    hd_jw_init(&jw, out);
    err = hd_canon_write_plain(&jw, hd_json_root(&json), fault);
    hd_json_fini(&json);
    if (err != 0)
        out->len = before;
    return err;
}

/* ---- Send, Interrupt, Command ----------------------------------------- */

int hd_canon_write_send(struct hd_jw *jw, struct hd_slice node, struct hd_slice arg)
{
    hd_canon_open_record(jw, "send");
    plain_put_key(jw, "node");
    hd_jw_string(jw, node);
    plain_put_key(jw, "arg");
    hd_jw_raw(jw, arg);
    hd_jw_object_end(jw);
    return jw->err;
}

int hd_canon_write_interrupt(struct hd_jw *jw, struct hd_slice value, struct hd_slice id)
{
    hd_canon_open_record(jw, "interrupt");
    plain_put_key(jw, "value");
    hd_jw_raw(jw, value);
    plain_put_key(jw, "id");
    hd_jw_string(jw, id);
    hd_jw_object_end(jw);
    return jw->err;
}

/* "node" or {"node":…,"input":…} */
static int put_target(struct hd_jw *jw, hd_json_val target, struct heddle_error *fault)
{
    hd_json_val node = plain_get(target, "node");
    hd_json_val input = plain_get(target, "input");
    int err;

    if (hd_json_is_string(target)) {
        hd_jw_string(jw, hd_json_string(target));
        return jw->err;
    }
    if (!input)
        input = plain_get(target, "arg");
    if (!hd_json_is_string(node))
        return hd_error_set(fault, HD_EINVAL,
                            "goto: a node's name or {\"node\":…,\"input\":…} expected");
    hd_canon_open_record(jw, "send");
    plain_put_key(jw, "node");
    hd_jw_string(jw, hd_json_string(node));
    err = hd_canon_put_or_null(jw, "arg", input, fault);
    hd_jw_object_end(jw);
    return err;
}

static int put_goto(struct hd_jw *jw, hd_json_val targets, struct heddle_error *fault)
{
    struct hd_json_iter it = hd_json_iter(targets);
    int err = 0;

    if (hd_json_is_array(targets) && hd_json_size(targets) == 0)
        return 0;
    plain_put_key(jw, "goto");
    hd_jw_array(jw);
    if (!hd_json_is_array(targets))
        err = put_target(jw, targets, fault);
    else
        while (err == 0 && hd_json_next(&it))
            err = put_target(jw, it.val, fault);
    hd_jw_array_end(jw);
    return err;
}

static int put_command(struct hd_jw *jw, hd_json_val command, struct heddle_error *fault)
{
    static const char *const names[] = {"graph", "update", "resume"};
    hd_json_val targets = plain_get(command, "goto");
    size_t i;
    int err = 0;

    hd_canon_open_record(jw, "command");
    for (i = 0; err == 0 && i < HD_COUNT(names); i++) {
        hd_json_val val = plain_get(command, names[i]);

        if (!val || hd_json_is_null(val))
            continue;
        plain_put_key(jw, names[i]);
        err = hd_canon_write_plain(jw, val, fault);
    }
    if (err == 0 && targets && !hd_json_is_null(targets))
        err = put_goto(jw, targets, fault);
    hd_jw_object_end(jw);
    return err;
}

int hd_canon_write_command(struct hd_jw *jw, hd_json_val command, struct heddle_error *fault)
{
    const struct hd_canon_kind *kind = hd_canon_kind_find(HD_S("command"));
    hd_json_val graph = plain_get(command, "graph");
    struct hd_json_iter it = hd_json_iter(command);
    int err;

    if (!hd_json_is_object(command))
        return hd_canon_fail(jw, hd_error_set(fault, HD_EINVAL, "a command is an object, not %s",
                                              hd_json_type_name(command)));
    if (graph && !hd_json_is_string(graph) && !hd_json_is_null(graph))
        return hd_canon_fail(jw, hd_error_set(fault, HD_EINVAL, "graph: a string expected"));
    while (hd_json_next(&it))
        if (!hd_canon_member_find(kind->members, it.key))
            return hd_canon_fail(
                jw, hd_error_set(fault, HD_EINVAL, "a command has no member \"%.*s\"",
                                 (int)(it.key.len < 100 ? it.key.len : 100), it.key.ptr));
    err = hd_canon_refuse_twice(jw, command, fault);
    if (err == 0)
        err = put_command(jw, command, fault);
    return err == 0 ? jw->err : hd_canon_fail(jw, err);
}
