#include "api/state/branch_names.h"

#include "records/thread_heads.h"

#define MAX_METADATA ((size_t)256 << 20)
#define MAX_NAMES 1000 /* of a thread */

#define MEMBER HD_S(HD_BRANCH_NAMES)

/* ---- reading ---------------------------------------------------------- */

static struct hd_tree_branch *branch_of(const struct hd_branch_tree *tree, struct hd_slice id,
                                        const struct hd_checkpoint_node **point)
{
    const struct hd_checkpoint_index *points = &tree->points;

    *point = points->count > 0 ? hd_checkpoint_index_find(points, points->list[0].ns, id) : NULL;
    return *point ? (*point)->branch : NULL;
}

int hd_branch_names_read(struct hd_branch_tree *tree)
{
    struct hd_slice metadata = tree->target.thread.metadata;
    struct hd_json json = {NULL};
    struct hd_json_iter it;
    int err = metadata.len > 0 ? hd_json_parse(&json, metadata, &tree->call->fault) : 0;

    it = hd_json_iter(hd_json_get(hd_json_root(&json), MEMBER));
    while (!err && it.is_object && hd_json_next(&it)) {
        const struct hd_checkpoint_node *point;
        struct hd_tree_branch *branch = branch_of(tree, it.key, &point);

        if (!branch || (branch->named && branch->named > point) || hd_json_string(it.val).len == 0)
            continue;
        branch->named = point;
        err = hd_arena_copy(&tree->points.arena, hd_json_string(it.val), &branch->name);
    }
    hd_json_fini(&json);
    return err;
}

static size_t count_characters(struct hd_slice text)
{
    size_t count = 0;

    for (size_t i = 0; i < text.len; i++)
        count += ((unsigned char)text.ptr[i] & 0xc0) != 0x80;
    return count;
}

int hd_branch_name_of_body(struct hd_call *call, struct hd_slice *out)
{
    hd_json_val val = hd_json_get(call->body, HD_S("name"));

    *out = hd_json_string(val);
    if (val && hd_json_is_null(val))
        return 0;
    if (!hd_json_is_string(val) || out->len == 0 || count_characters(*out) > HD_BRANCH_NAME_MAX)
        return hd_error_set(&call->fault, HD_EINVAL,
                            "name: expected null or a string of 1 to %d characters",
                            HD_BRANCH_NAME_MAX);
    return hd_call_refuse_secrets(call, "name", val, true);
}

/* ---- changing --------------------------------------------------------- */

struct names {
    const struct hd_branch_tree *tree;
    const struct hd_tree_branch *branch;
    struct hd_slice name;
    size_t count;
    size_t dropped;
};

static bool is_dropped(const struct names *names, struct hd_slice id)
{
    const struct hd_checkpoint_node *point;
    const struct hd_tree_branch *branch = branch_of(names->tree, id, &point);

    return branch && (branch == names->branch || branch->is_gone);
}

static void put_names(struct hd_jw *jw, struct names *names, hd_json_val old)
{
    struct hd_json_iter it = hd_json_iter(old);

    hd_jw_object(jw);
    while (it.is_object && hd_json_next(&it)) {
        if (is_dropped(names, it.key)) {
            names->dropped++;
            continue;
        }
        hd_jw_key(jw, it.key);
        hd_jw_val(jw, it.val);
        names->count++;
    }
    if (names->name.len > 0) {
        hd_jw_key(jw, names->branch->first->id);
        hd_jw_string(jw, names->name);
        names->count++;
    }
    hd_jw_object_end(jw);
}

static int write_names(struct names *names, hd_json_val old, struct hd_buf *out)
{
    struct hd_jw jw;

    if (names->name.len > 0 && old && !hd_json_is_object(old) && !hd_json_is_null(old))
        return hd_error_set(&names->tree->call->fault, HD_EINVAL,
                            "name: metadata.branch_names of the thread is not an object");
    hd_jw_init(&jw, out);
    put_names(&jw, names, old);
    if (names->count > MAX_NAMES && names->name.len > 0)
        return hd_error_set(&names->tree->call->fault, HD_EINVAL,
                            "name: at most %d branches of a thread may have names", MAX_NAMES);
    return hd_jw_finish(&jw);
}

static int write_metadata(struct hd_slice names, hd_json_val old, struct hd_buf *out)
{
    struct hd_json_iter it = hd_json_iter(old);
    struct hd_jw jw;

    hd_jw_init(&jw, out);
    hd_jw_object(&jw);
    while (hd_json_next(&it)) {
        if (hd_slice_eq(it.key, MEMBER))
            continue;
        hd_jw_key(&jw, it.key);
        hd_jw_val(&jw, it.val);
    }
    if (names.len > 0) {
        hd_jw_key(&jw, MEMBER);
        hd_jw_raw(&jw, names);
    }
    hd_jw_object_end(&jw);
    return hd_jw_finish(&jw);
}

int hd_branch_names_change(const struct hd_branch_tree *tree, const struct hd_tree_branch *branch,
                           struct hd_slice name, struct hd_slice *metadata)
{
    struct names names = {.tree = tree, .branch = branch, .name = name};
    struct hd_json json = {NULL};
    struct hd_buf list, out;
    hd_json_val root;
    int err = metadata->len > 0 ? hd_json_parse(&json, *metadata, &tree->call->fault) : 0;

    root = hd_json_root(&json);
    hd_buf_init(&list, MAX_METADATA);
    hd_buf_init(&out, MAX_METADATA);
    if (!err)
        err = write_names(&names, hd_json_get(root, MEMBER), &list);
    /* Metadata without branch names stays unchanged, whatever else a client stores there. */
    if (!err && (names.dropped > 0 || name.len > 0)) {
        err = write_metadata(names.count > 0 ? hd_buf_slice(&list) : hd_slice(NULL, 0), root, &out);
        if (!err)
            err = hd_arena_copy(tree->call->arena, hd_buf_slice(&out), metadata);
    }
    hd_buf_fini(&out);
    hd_buf_fini(&list);
    hd_json_fini(&json);
    return err;
}
