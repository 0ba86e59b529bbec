#include "run/line_touches.h"

#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "records/thread_heads.h"

#define MAX_TOUCHES ((size_t)256 << 20)

/* ---- writing ---------------------------------------------------------- */

static bool has_touch(hd_json_val list, struct hd_slice ns)
{
    struct hd_json_iter it = hd_json_iter(list);

    while (hd_json_next(&it)) {
        if (hd_slice_eq(hd_json_string(hd_json_get(it.val, HD_S("ns"))), ns))
            return true;
    }
    return false;
}

static void put_touch(struct hd_jw *jw, struct hd_slice ns, const struct hd_line_rec *line,
                      struct hd_slice head)
{
    hd_jw_object(jw);
    hd_jw_put_string(jw, "ns", ns);
    if (head.len > 0)
        hd_jw_put_string(jw, "head", head);
    if (line) {
        hd_jw_put_string(jw, "status", hd_slice_cstr(hd_thread_status_name(line->status)));
        hd_jw_put_int(jw, "updated_at", line->updated_at);
    }
    if (line && line->interrupts.len > 0)
        hd_jw_put_raw(jw, "interrupts", line->interrupts);
    if (line && line->error.len > 0)
        hd_jw_put_raw(jw, "error", line->error);
    hd_jw_object_end(jw);
}

static int write_touches(hd_json_val list, struct hd_slice ns, const struct hd_line_rec *line,
                         struct hd_slice head, struct hd_buf *out)
{
    struct hd_json_iter it = hd_json_iter(list);
    struct hd_jw jw;

    hd_jw_init(&jw, out);
    hd_jw_array(&jw);
    while (hd_json_next(&it))
        hd_jw_val(&jw, it.val);
    put_touch(&jw, ns, line, head);
    hd_jw_array_end(&jw);
    return hd_jw_finish(&jw);
}

int hd_line_touches_add(struct hd_slice *touches, struct hd_slice ns,
                        const struct hd_line_rec *line, struct hd_slice head,
                        struct hd_arena *arena)
{
    struct hd_json json = {NULL};
    struct hd_buf out;
    int err = touches->len > 0 ? hd_json_parse(&json, *touches, NULL) : 0;
    bool is_there = !err && has_touch(hd_json_root(&json), ns);

    hd_buf_init(&out, MAX_TOUCHES);
    if (!err && !is_there)
        err = write_touches(hd_json_root(&json), ns, line, head, &out);
    if (!err && !is_there)
        err = hd_arena_copy(arena, hd_buf_slice(&out), touches);
    hd_buf_fini(&out);
    hd_json_fini(&json);
    return err;
}

/* ---- restoring -------------------------------------------------------- */

/* A member as JSON text, in the arena; empty: there is none. */
static int copy_member(hd_json_val touch, struct hd_slice name, struct hd_arena *arena,
                       struct hd_slice *out)
{
    hd_json_val member = hd_json_get(touch, name);
    struct hd_buf text;
    struct hd_jw jw;
    int err;

    *out = hd_slice(NULL, 0);
    if (!member)
        return 0;
    hd_buf_init(&text, MAX_TOUCHES);
    hd_jw_init(&jw, &text);
    hd_jw_val(&jw, member);
    err = hd_jw_finish(&jw);
    if (!err)
        err = hd_arena_copy(arena, hd_buf_slice(&text), out);
    hd_buf_fini(&text);
    return err;
}

/* The line is as the delegate left it. */
static bool is_untouched(const struct hd_line_rec *line, hd_json_val touch)
{
    int64_t updated_at;
    bool had_record = hd_json_int(hd_json_get(touch, HD_S("updated_at")), &updated_at);

    if (!line || !had_record)
        return !line && !had_record;
    return line->status == HD_THREAD_IDLE && line->interrupts.len == 0 &&
           line->updated_at == updated_at;
}

static int restore_line(hd_json_val touch, struct hd_thread_rec *thread, struct hd_lines *lines,
                        struct hd_arena *arena)
{
    struct hd_line_rec *line;
    struct hd_slice ns, head;
    int err = hd_arena_copy(arena, hd_json_string(hd_json_get(touch, HD_S("ns"))), &ns);

    line = err ? NULL : hd_lines_find(lines, ns);
    if (err || !is_untouched(line, touch))
        return err;
    err = hd_arena_copy(arena, hd_json_string(hd_json_get(touch, HD_S("head"))), &head);
    if (!err && head.len > 0)
        err = hd_thread_heads_set(arena, &thread->heads, ns, head);
    if (err || !line)
        return err;
    line->is_changed = true;
    if (!hd_thread_status_find(hd_json_string(hd_json_get(touch, HD_S("status"))), &line->status))
        line->status = HD_THREAD_IDLE;
    err = copy_member(touch, HD_S("interrupts"), arena, &line->interrupts);
    return err ? err : copy_member(touch, HD_S("error"), arena, &line->error);
}

int hd_line_touches_restore(struct hd_slice touches, struct hd_thread_rec *thread,
                            struct hd_lines *lines, struct hd_arena *arena)
{
    struct hd_json json = {NULL};
    struct hd_json_iter it;
    int err = touches.len > 0 ? hd_json_parse(&json, touches, NULL) : 0;

    it = hd_json_iter(hd_json_root(&json));
    while (!err && touches.len > 0 && hd_json_next(&it))
        err = restore_line(it.val, thread, lines, arena);
    hd_json_fini(&json);
    return err;
}
