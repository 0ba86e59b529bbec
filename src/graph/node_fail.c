/* `fail`: fails, always or the first few times. */
#include "graph/decl.h"
#include "graph/nodes.h"

#define MAX_TIMES 1000000

struct fail_spec {
    const struct hd_expr *error;
    struct hd_slice type;
    int64_t times; /* 0: always */
    int64_t delay_ms;
};

static const struct hd_field fields[] = {
    {"error", hd_read_expr, offsetof(struct fail_spec, error), true, 0, 0, 0},
    {"type", hd_read_string, offsetof(struct fail_spec, type), false, 0, HD_GRAPH_MAX_NAME, 0},
    {"times", hd_read_int, offsetof(struct fail_spec, times), false, 1, MAX_TIMES, 0},
    {"delay_ms", hd_read_int, offsetof(struct fail_spec, delay_ms), false, 0, HD_GRAPH_MAX_WAIT_MS,
     0},
};

static int read(struct hd_decl *decl, const struct hd_at *at, struct hd_node *node)
{
    struct fail_spec *spec = hd_arena_calloc(&decl->hold->arena, 1, sizeof(*spec));

    if (!spec)
        return HD_ENOMEM;
    spec->type = HD_S("RuntimeError");
    node->spec = spec;
    node->may_stop = true;
    return hd_decl_node_fields(decl, at, fields, HD_COUNT(fields), spec);
}

const struct hd_node_kind hd_node_fail = {
    .name = "fail",
    .read = read,
};
