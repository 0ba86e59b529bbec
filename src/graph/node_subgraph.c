/* `subgraph`: runs a graph as a node. What it shares with it is checked in decl_check.c. */
#include "graph/decl.h"
#include "graph/nodes.h"
#include "graph/subgraph.h"

static int read_memory(struct hd_decl *decl, const struct hd_at *at, const struct hd_field *field,
                       void *out)
{
    static const char *const names[] = {
        [HD_MEMORY_INHERIT] = "inherit",
        [HD_MEMORY_OWN] = "own",
        [HD_MEMORY_NONE] = "none",
    };

    (void)field;
    for (size_t i = 0; i < HD_COUNT(names); i++) {
        if (hd_slice_eq(hd_json_string(at->val), hd_slice_cstr(names[i]))) {
            *(enum hd_memory *)out = (enum hd_memory)i;
            return 0;
        }
    }
    return hd_decl_fail(decl, at, "must be \"inherit\", \"own\" or \"none\"");
}

/* Only its own subgraphs and those of the graphs around it can be meant. */
static int read_graph(struct hd_decl *decl, const struct hd_at *at, const struct hd_field *field,
                      void *out)
{
    struct hd_slice name = hd_json_string(at->val);
    struct hd_draft *draft;

    (void)field;
    (void)out;
    if (!hd_json_is_string(at->val))
        return hd_decl_fail_type(decl, at, "the name of a graph");
    draft = hd_decl_find_graph(decl->draft, name);
    if (!draft)
        return hd_decl_fail(decl, at, "unknown graph \"%.*s\"", HD_SHOW(name));
    draft->is_used = true;
    decl->node->graph = draft->graph;
    return 0;
}

static int read_input(struct hd_decl *decl, const struct hd_at *at, const struct hd_field *field,
                      void *out)
{
    if (hd_json_is_array(at->val)) /* the channels that it reads, as for all kinds */
        return 0;
    if (!hd_json_is_object(at->val) && !hd_slice_starts(hd_json_string(at->val), HD_S("{{")))
        return hd_decl_fail_type(decl, at, "an object of channels to values");
    return hd_read_expr(decl, at, field, out);
}

static const struct hd_field fields[] = {
    {"graph", read_graph, 0, true, 0, 0, 0},
    {"input", read_input, offsetof(struct hd_subgraph_spec, input), false, 0, 0, 0},
    {"update", hd_read_update, offsetof(struct hd_subgraph_spec, update), false, 0, 0,
     HD_PLACE(RESULT)},
    {"memory", read_memory, offsetof(struct hd_subgraph_spec, memory), false, 0, 0, 0},
};

static int read(struct hd_decl *decl, const struct hd_at *at, struct hd_node *node)
{
    struct hd_subgraph_spec *spec = hd_arena_calloc(&decl->hold->arena, 1, sizeof(*spec));

    if (!spec)
        return HD_ENOMEM;
    node->spec = spec;
    return hd_decl_node_fields(decl, at, fields, HD_COUNT(fields), spec);
}

const struct hd_node_kind hd_node_subgraph = {
    .name = "subgraph",
    .read = read,
};
