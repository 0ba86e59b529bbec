/* `fanout`: one send for each element of a list. */
#include "graph/decl.h"
#include "graph/nodes.h"

static int read(struct hd_decl *decl, const struct hd_at *at, struct hd_node *node)
{
    struct hd_fanout *fanout = hd_arena_calloc(&decl->hold->arena, 1, sizeof(*fanout));
    int err;

    if (!fanout)
        return HD_ENOMEM;
    node->spec = fanout;
    err = hd_decl_read_fanout(decl, at, &hd_node_common, fanout);
    return err == 0 ? hd_decl_add_exit(decl, fanout->to, true, HD_S("")) : err;
}

const struct hd_node_kind hd_node_fanout = {
    .name = "fanout",
    .read = read,
};
