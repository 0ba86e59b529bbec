#include "value/diff.h"

#include <string.h>

#include "base/uuid.h"

#define MAX_IDS ((size_t)1 << 20)
#define MAX_PATH ((size_t)1 << 16)

void hd_diff_init(struct hd_diff *diff)
{
    memset(diff, 0, sizeof(*diff));
    hd_arena_init(&diff->arena, (size_t)64 << 20);
    hd_map_init(&diff->left, MAX_IDS);
    hd_map_init(&diff->right, MAX_IDS);
    hd_buf_init(&diff->path, MAX_PATH);
}

void hd_diff_fini(struct hd_diff *diff)
{
    hd_map_fini(&diff->left);
    hd_map_fini(&diff->right);
    hd_buf_fini(&diff->path);
    hd_arena_fini(&diff->arena);
}

/* ---- ids -------------------------------------------------------------- */

/* Pairs `id` with `other`, if it has no pair yet. *out is false if it is paired with another id. */
static int relate(struct hd_diff *diff, struct hd_map *map, struct hd_slice id,
                  struct hd_slice other, bool *out)
{
    const char *known = hd_map_get(map, id);
    struct hd_slice copy;
    int err;

    *out = true;
    if (known) {
        *out = memcmp(known, other.ptr, HD_UUID_LEN) == 0;
        return 0;
    }
    err = hd_arena_copy(&diff->arena, other, &copy);
    return err ? err : hd_map_put(map, id, (char *)(uintptr_t)copy.ptr);
}

static bool is_id(struct hd_slice text, size_t at)
{
    uint8_t bytes[16];

    return at + HD_UUID_LEN <= text.len &&
           hd_uuid_parse(hd_slice(text.ptr + at, HD_UUID_LEN), bytes);
}

static int compare_ids(struct hd_diff *diff, struct hd_slice a, struct hd_slice b, bool *same)
{
    int err = relate(diff, &diff->left, a, b, same);

    return err || !*same ? err : relate(diff, &diff->right, b, a, same);
}

static int compare_texts(struct hd_diff *diff, struct hd_slice a, struct hd_slice b, bool *same)
{
    size_t at = 0;
    int err = 0;

    *same = a.len == b.len;
    while (!err && *same && at < a.len) {
        if (is_id(a, at) && is_id(b, at)) {
            err = compare_ids(diff, hd_slice(a.ptr + at, HD_UUID_LEN),
                              hd_slice(b.ptr + at, HD_UUID_LEN), same);
            at += HD_UUID_LEN;
        } else {
            *same = a.ptr[at] == b.ptr[at];
            at++;
        }
    }
    return err;
}

/* ---- values ----------------------------------------------------------- */

static int differ(struct hd_diff *diff, const struct hd_val *a, const struct hd_val *b, bool *out)
{
    diff->a = a;
    diff->b = b;
    *out = true;
    return hd_buf_append_byte(&diff->path, 0);
}

static int walk(struct hd_diff *diff, const struct hd_val *a, const struct hd_val *b, bool *out);

/* Walks into a child. Its step stays in the path if the difference is there. */
static int walk_into(struct hd_diff *diff, const struct hd_val *a, const struct hd_val *b,
                     bool *out, size_t before)
{
    int err = a && b ? walk(diff, a, b, out) : differ(diff, a, b, out);

    if (!err && !*out)
        diff->path.len = before;
    return err;
}

static int walk_list(struct hd_diff *diff, const struct hd_val *a, const struct hd_val *b,
                     bool *out)
{
    size_t count = hd_val_count(a) > hd_val_count(b) ? hd_val_count(a) : hd_val_count(b);
    int err = 0;

    for (size_t i = 0; i < count && !err && !*out; i++) {
        size_t before = diff->path.len;

        err = hd_buf_printf(&diff->path, "[%zu]", i);
        if (!err)
            err = walk_into(diff, hd_val_at(a, i), hd_val_at(b, i), out, before);
    }
    return err;
}

static int walk_member(struct hd_diff *diff, struct hd_slice key, const struct hd_val *a,
                       const struct hd_val *b, bool *out)
{
    size_t before = diff->path.len;
    int err = hd_buf_printf(&diff->path, ".%.*s", (int)(key.len < 256 ? key.len : 256), key.ptr);

    return err ? err : walk_into(diff, a, b, out, before);
}

static int walk_object(struct hd_diff *diff, const struct hd_val *a, const struct hd_val *b,
                       bool *out)
{
    struct hd_val *key;
    int err = 0;

    for (size_t i = 0; i < hd_val_count(a) && !err && !*out; i++) {
        const struct hd_val *member = hd_val_member(a, i, &key);
        struct hd_slice name = hd_val_get_string(key);

        err = walk_member(diff, name, member, hd_val_get(b, name), out);
    }
    for (size_t i = 0; i < hd_val_count(b) && !err && !*out; i++) {
        const struct hd_val *member = hd_val_member(b, i, &key);
        struct hd_slice name = hd_val_get_string(key);

        if (!hd_val_get(a, name))
            err = walk_member(diff, name, NULL, member, out);
    }
    return err;
}

static int walk(struct hd_diff *diff, const struct hd_val *a, const struct hd_val *b, bool *out)
{
    bool same;
    int err;

    if (hd_val_is_list(a) && hd_val_is_list(b))
        return walk_list(diff, a, b, out);
    if (hd_val_is_object(a) && hd_val_is_object(b) && hd_val_kind(a) == hd_val_kind(b))
        return walk_object(diff, a, b, out);
    if (hd_val_is_string(a) && hd_val_is_string(b)) {
        err = compare_texts(diff, hd_val_get_string(a), hd_val_get_string(b), &same);
        return err || same ? err : differ(diff, a, b, out);
    }
    return hd_val_equal(a, b) ? 0 : differ(diff, a, b, out);
}

int hd_diff_find(struct hd_diff *diff, const struct hd_val *a, const struct hd_val *b, bool *out)
{
    hd_buf_reset(&diff->path);
    diff->a = diff->b = NULL;
    *out = false;
    return walk(diff, a, b, out);
}
