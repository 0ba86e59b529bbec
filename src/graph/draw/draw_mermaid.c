/*
 * Writes a drawing as Mermaid, as LangGraph's draw_mermaid() does: the same front matter, shapes,
 * arrows and styles in the same order, so that the text of a graph does not depend on the server.
 */
#include <string.h>

#include "base/utf8.h"
#include "graph/draw/draw.h"
#include "graph/draw/draw_internal.h"

/* Words per line of a label. */
#define WORDS_PER_LINE 9

struct mermaid {
    const struct hd_drawing *drawing;
    struct hd_buf *out;
    size_t first, last;
    bool *is_drawn; /* clusters */
    int err;
};

/* ---- text ------------------------------------------------------------- */

static void put_slice(struct mermaid *m, struct hd_slice text)
{
    if (m->err == 0)
        m->err = hd_buf_append_slice(m->out, text);
}

static bool is_safe(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
}

/* The code point of the character at `pos`. */
static unsigned code_point(const char *pos, size_t len)
{
    unsigned code = (unsigned char)pos[0];

    if (len > 1)
        code &= 0x7fu >> len;
    for (size_t i = 1; i < len; i++)
        code = code << 6 | ((unsigned char)pos[i] & 0x3f);
    return code;
}

/*
 * Writes an id. Characters that Mermaid does not allow in ids become a backslash and their code
 * point.
 */
static void put_id(struct mermaid *m, struct hd_slice id)
{
    const char *pos = id.ptr, *end = id.ptr + id.len;
    /* Mermaid reserves this word. */
    bool is_keyword = hd_slice_eq(id, HD_S("end"));

    while (pos < end && m->err == 0) {
        size_t len = hd_utf8_char(pos, end);

        len = len ? len : 1;
        if (is_safe(*pos) && !is_keyword)
            m->err = hd_buf_append(m->out, pos, 1);
        else
            m->err = hd_buf_printf(m->out, "\\%x", code_point(pos, len));
        pos += len;
    }
}

static void put_escaped(struct mermaid *m, struct hd_slice text)
{
    static const char special[] = "#[](){}\"<>|";

    for (size_t i = 0; i < text.len && m->err == 0; i++) {
        char c = text.ptr[i];

        if (c == '"')
            put_slice(m, HD_S("#quot;"));
        else if (c && strchr(special, c))
            m->err = hd_buf_printf(m->out, "#%d;", c);
        else
            m->err = hd_buf_append(m->out, &c, 1);
    }
}

/* ---- nodes ------------------------------------------------------------ */

static bool is_markdown(char c)
{
    return c == '*' || c == '_' || c == '`';
}

static void put_scalar(struct mermaid *m, const struct hd_val *val)
{
    struct hd_buf text;

    if (hd_val_is_string(val)) {
        put_escaped(m, hd_val_get_string(val));
    } else if (hd_val_type(val) == HD_VAL_BOOL) {
        put_slice(m, hd_val_is_true(val) ? HD_S("True") : HD_S("False"));
    } else {
        hd_buf_init(&text, 4096);
        if (m->err == 0)
            m->err = hd_val_write_text(&text, val);
        put_escaped(m, hd_buf_slice(&text));
        hd_buf_fini(&text);
    }
}

static bool is_scalar(const struct hd_val *val)
{
    return hd_val_is_number(val) || hd_val_is_string(val) || hd_val_type(val) == HD_VAL_BOOL;
}

static bool is_shown(const struct hd_val *val)
{
    for (size_t i = 0; i < hd_val_count(val); i++) {
        if (!hd_val_is_list(val) || !is_scalar(hd_val_at(val, i)))
            return false;
    }
    return is_scalar(val) || hd_val_is_list(val);
}

/* Starts a line of metadata. */
static void begin_line(struct mermaid *m, bool *has_lines, struct hd_slice key)
{
    put_slice(m, *has_lines ? HD_S("\n") : HD_S("<hr/><small><em>"));
    *has_lines = true;
    put_escaped(m, key);
    put_slice(m, HD_S(" = "));
}

static void put_metadata(struct mermaid *m, const struct hd_node *node)
{
    const char *stop = hd_draw_breakpoint(node);
    bool has_lines = false;

    for (size_t i = 0; i < hd_val_count(node->metadata); i++) {
        struct hd_val *key = NULL;
        struct hd_val *val = hd_val_member(node->metadata, i, &key);

        if (!is_shown(val))
            continue;
        begin_line(m, &has_lines, hd_val_get_string(key));
        if (!hd_val_is_list(val))
            put_scalar(m, val);
        for (size_t j = 0; j < hd_val_count(val); j++) {
            put_slice(m, j > 0 ? HD_S(", ") : HD_S(""));
            put_scalar(m, hd_val_at(val, j));
        }
    }
    if (node->is_deferred) {
        begin_line(m, &has_lines, HD_S("defer"));
        put_slice(m, HD_S("True"));
    }
    if (stop) {
        begin_line(m, &has_lines, HD_S("__interrupt"));
        put_slice(m, hd_slice_cstr(stop));
    }
    if (has_lines)
        put_slice(m, HD_S("</em></small>"));
}

static void put_name(struct mermaid *m, struct hd_slice name)
{
    bool is_plain = !is_markdown(name.ptr[0]) || !is_markdown(name.ptr[name.len - 1]);

    put_slice(m, is_plain ? HD_S("") : HD_S("<p>"));
    put_slice(m, name);
    put_slice(m, is_plain ? HD_S("") : HD_S("</p>"));
}

static void put_node(struct mermaid *m, size_t index)
{
    const struct hd_drawing_node *node = &m->drawing->nodes[index];
    bool is_end = index == m->first || index == m->last;

    put_slice(m, HD_S("\t"));
    put_id(m, node->id);
    put_slice(m, is_end ? HD_S("([") : HD_S("("));
    put_name(m, node->name);
    if (node->node && node->node->kind)
        put_metadata(m, node->node);
    put_slice(m, is_end ? HD_S("])") : HD_S(")"));
    if (is_end)
        put_slice(m, index == m->last ? HD_S(":::last") : HD_S(":::first"));
    put_slice(m, HD_S("\n"));
}

static void put_nodes_of(struct mermaid *m, size_t cluster)
{
    for (size_t i = 0; i < m->drawing->node_count && m->err == 0; i++) {
        if (m->drawing->nodes[i].cluster == cluster)
            put_node(m, i);
    }
}

/* ---- edges ------------------------------------------------------------ */

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static size_t count_words(struct hd_slice text)
{
    size_t count = 0;

    for (size_t i = 0; i < text.len; i++)
        count += !is_space(text.ptr[i]) && (i == 0 || is_space(text.ptr[i - 1]));
    return count;
}

/* Breaks the label after WORDS_PER_LINE words. */
static void put_wrapped(struct mermaid *m, struct hd_slice text)
{
    size_t words = 0;

    for (size_t i = 0; i < text.len && m->err == 0; i++) {
        bool begins = !is_space(text.ptr[i]) && (i == 0 || is_space(text.ptr[i - 1]));

        if (begins && words > 0)
            put_slice(m, words % WORDS_PER_LINE == 0 ? HD_S("&nbsp<br>&nbsp") : HD_S(" "));
        words += begins;
        if (!is_space(text.ptr[i]))
            m->err = hd_buf_append(m->out, text.ptr + i, 1);
    }
}

static void put_label(struct mermaid *m, const struct hd_drawing_edge *edge)
{
    if (edge->label.len == 0) {
        put_slice(m, edge->is_conditional ? HD_S(" -.-> ") : HD_S(" --> "));
        return;
    }
    put_slice(m, edge->is_conditional ? HD_S(" -. &nbsp;") : HD_S(" -- &nbsp;"));
    if (count_words(edge->label) > WORDS_PER_LINE)
        put_wrapped(m, edge->label);
    else
        put_slice(m, edge->label);
    put_slice(m, edge->is_conditional ? HD_S("&nbsp; .-> ") : HD_S("&nbsp; --> "));
}

static void put_edge(struct mermaid *m, const struct hd_drawing_edge *edge)
{
    put_slice(m, HD_S("\t"));
    put_id(m, m->drawing->nodes[edge->from].id);
    put_label(m, edge);
    put_id(m, m->drawing->nodes[edge->to].id);
    put_slice(m, HD_S(";\n"));
}

/* ---- clusters --------------------------------------------------------- */

static bool is_inside(const struct hd_drawing *drawing, size_t cluster, size_t outer)
{
    while (cluster != outer && cluster != 0)
        cluster = drawing->clusters[cluster].parent;
    return cluster == outer;
}

/* The innermost cluster that contains both ends. */
static size_t common_cluster(const struct hd_drawing *drawing, const struct hd_drawing_edge *edge)
{
    size_t cluster = drawing->nodes[edge->from].cluster;

    while (!is_inside(drawing, drawing->nodes[edge->to].cluster, cluster))
        cluster = drawing->clusters[cluster].parent;
    return cluster;
}

/* The direct child of `outer` that contains `cluster`. */
static size_t child_of(const struct hd_drawing *drawing, size_t outer, size_t cluster)
{
    while (drawing->clusters[cluster].parent != outer)
        cluster = drawing->clusters[cluster].parent;
    return cluster;
}

static bool is_name_free(const struct hd_drawing *drawing, size_t cluster)
{
    for (size_t i = 1; i < drawing->cluster_count; i++) {
        if (i != cluster && hd_slice_eq(drawing->clusters[i].name, drawing->clusters[cluster].name))
            return false;
    }
    return true;
}

/* The name is also the id, unless another cluster has it or Mermaid cannot parse it. */
static void put_cluster_name(struct mermaid *m, size_t index)
{
    const struct hd_drawing_cluster *cluster = &m->drawing->clusters[index];
    bool is_plain = is_name_free(m->drawing, index);

    for (size_t i = 0; i < cluster->name.len && is_plain; i++)
        is_plain = is_safe(cluster->name.ptr[i]);
    put_slice(m, HD_S("\tsubgraph "));
    if (is_plain) {
        put_slice(m, cluster->name);
    } else {
        put_id(m, cluster->path);
        put_slice(m, HD_S("[\""));
        put_escaped(m, cluster->name);
        put_slice(m, HD_S("\"]"));
    }
    put_slice(m, HD_S("\n"));
}

static void put_inside(struct mermaid *m, size_t cluster);

static void put_cluster(struct mermaid *m, size_t cluster)
{
    if (m->is_drawn[cluster])
        return;
    m->is_drawn[cluster] = true;
    put_cluster_name(m, cluster);
    put_nodes_of(m, cluster);
    put_inside(m, cluster);
    put_slice(m, HD_S("\tend\n"));
}

/*
 * Writes the edges between its nodes; then loops and nested clusters, in the order of the edges;
 * then nested clusters without edges.
 */
static void put_inside(struct mermaid *m, size_t cluster)
{
    const struct hd_drawing *drawing = m->drawing;

    for (size_t i = 0; i < drawing->edge_count && m->err == 0; i++) {
        const struct hd_drawing_edge *edge = &drawing->edges[i];

        if (edge->from != edge->to && common_cluster(drawing, edge) == cluster)
            put_edge(m, edge);
    }
    for (size_t i = 0; i < drawing->edge_count && m->err == 0; i++) {
        const struct hd_drawing_edge *edge = &drawing->edges[i];
        size_t common = common_cluster(drawing, edge);

        if (common == cluster && edge->from == edge->to)
            put_edge(m, edge);
        else if (common != cluster && is_inside(drawing, common, cluster))
            put_cluster(m, child_of(drawing, cluster, common));
    }
    for (size_t i = 1; i < drawing->cluster_count && m->err == 0; i++) {
        if (drawing->clusters[i].parent == cluster)
            put_cluster(m, i);
    }
}

int hd_draw_mermaid(const struct hd_drawing *drawing, struct hd_buf *out)
{
    struct mermaid m = {.drawing = drawing, .out = out};
    struct hd_arena arena;

    hd_arena_init(&arena, (size_t)1 << 20);
    m.is_drawn = hd_arena_calloc(&arena, drawing->cluster_count, sizeof(*m.is_drawn));
    m.err = m.is_drawn ? 0 : HD_ENOMEM;
    m.first = hd_drawing_first(drawing);
    m.last = hd_drawing_last(drawing);
    put_slice(&m, HD_S("---\nconfig:\n  flowchart:\n    curve: linear\n---\ngraph TD;\n"));
    put_nodes_of(&m, 0);
    if (m.err == 0)
        put_inside(&m, 0);
    put_slice(&m, HD_S("\tclassDef default fill:#f2f0ff,line-height:1.2\n"
                       "\tclassDef first fill-opacity:0\n"
                       "\tclassDef last fill:#bfb6fc\n"));
    hd_arena_fini(&arena);
    return m.err;
}
