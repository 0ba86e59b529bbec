/* `interrupt`: asks, waits, and goes on with the answers. */
#include "graph/decl.h"
#include "graph/nodes.h"

#define MAX_QUESTIONS 100

struct interrupt_spec {
    struct hd_exprs ask; /* each sees the answers to those before */
    const struct hd_expr *update;
    const struct hd_expr *go_to;
    struct hd_at go_to_at;
};

static const struct hd_field fields[] = {
    {"ask", hd_read_exprs, offsetof(struct interrupt_spec, ask), true, 1, MAX_QUESTIONS,
     HD_PLACE(ANSWERS)},
    {"update", hd_read_update, offsetof(struct interrupt_spec, update), false, 0, 0,
     HD_PLACE(ANSWERS)},
    {"goto", hd_read_raw, offsetof(struct interrupt_spec, go_to_at), false, 0, 0, 0},
};

static int read(struct hd_decl *decl, const struct hd_at *at, struct hd_node *node)
{
    struct interrupt_spec *spec = hd_arena_calloc(&decl->hold->arena, 1, sizeof(*spec));
    int err;

    if (!spec)
        return HD_ENOMEM;
    node->spec = spec;
    node->may_stop = true;
    err = hd_decl_node_fields(decl, at, fields, HD_COUNT(fields), spec);
    if (err == 0 && hd_raw(&spec->go_to_at))
        err = hd_decl_read_goto(decl, &spec->go_to_at, HD_PLACE(ANSWERS), &spec->go_to);
    spec->go_to_at = (struct hd_at){0};
    return err;
}

const struct hd_node_kind hd_node_interrupt = {
    .name = "interrupt",
    .read = read,
};
