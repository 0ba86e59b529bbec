/*
 * Writes a drawing as SVG: a file with its own styles, light or dark by the viewer's preference, or
 * a part of a page that has styles. Text widths are estimates, because the font is unknown.
 */
#include <math.h>
#include <string.h>

#include "base/utf8.h"
#include "graph/draw/draw.h"
#include "graph/draw/draw_internal.h"

#define NODE_H 44.0
#define END_H 30.0
#define LABEL_H 20.0
#define MAX_TEXT 40 /* visible characters of a name */

struct svg {
    struct hd_drawing *drawing;
    struct hd_layout layout;
    struct hd_buf *out;
    bool is_part; /* of a page */
    int err;
};

/* ---- text ------------------------------------------------------------- */

static void put_markup(struct svg *s, const char *text)
{
    if (s->err == 0)
        s->err = hd_buf_append_slice(s->out, hd_slice_cstr(text));
}

static void put_xml_text(struct svg *s, struct hd_slice text)
{
    for (size_t i = 0; i < text.len && s->err == 0; i++) {
        switch (text.ptr[i]) {
        case '&':
            put_markup(s, "&amp;");
            break;
        case '<':
            put_markup(s, "&lt;");
            break;
        case '>':
            put_markup(s, "&gt;");
            break;
        case '"':
            put_markup(s, "&quot;");
            break;
        default:
            /* XML allows no control characters. */
            s->err = hd_buf_append_byte(
                s->out, (unsigned char)text.ptr[i] < 0x20 ? ' ' : (unsigned char)text.ptr[i]);
        }
    }
}

/* Cuts the text to MAX_TEXT characters. */
static struct hd_slice shorten(struct hd_slice text, bool *is_cut)
{
    const char *pos = text.ptr, *end = text.ptr + text.len;

    for (size_t i = 0; i < MAX_TEXT && pos < end; i++) {
        size_t len = hd_utf8_char(pos, end);

        pos += len ? len : 1;
    }
    *is_cut = pos < end;
    return hd_slice(text.ptr, (size_t)(pos - text.ptr));
}

static void put_short(struct svg *s, struct hd_slice text)
{
    bool is_cut;
    struct hd_slice shown = shorten(text, &is_cut);

    put_xml_text(s, shown);
    put_markup(s, is_cut ? "…" : "");
}

/* A Latin letter is about 0.58 of the size wide; a character of three bytes is as wide as high. */
static double text_width(struct hd_slice text, double size)
{
    bool is_cut;
    struct hd_slice shown = shorten(text, &is_cut);
    double width = is_cut ? size : 0;

    for (size_t i = 0; i < shown.len; i++) {
        unsigned char c = (unsigned char)shown.ptr[i];

        if (c >= 0xe0)
            width += size;
        else if (c < 0x80 || c >= 0xc0)
            width += strchr("iljtf.,:;|!'()[]- ", c) && c ? size * 0.36 : size * 0.6;
    }
    return width;
}

/* ---- sizes ------------------------------------------------------------ */

static bool is_end(const struct hd_drawing_node *node)
{
    return !node->node || !node->node->kind;
}

/* Writes the line below the name of a node. */
static void write_detail(const struct hd_node *node, char *out, size_t size)
{
    const char *stop = hd_draw_breakpoint(node);

    (void)snprintf(out, size, "%s%s%s%s", node->kind->name, node->is_deferred ? " · deferred" : "",
                   stop ? " · stops " : "",
                   stop ? (node->stops_before && node->stops_after ? "before and after" : stop)
                        : "");
}

static struct hd_box node_size(const struct hd_drawing_node *node)
{
    char detail[96];
    double width;

    if (is_end(node))
        return (struct hd_box){.w = text_width(node->name, 13) + 34, .h = END_H};
    write_detail(node->node, detail, sizeof(detail));
    width = fmax(text_width(node->name, 14), text_width(hd_slice_cstr(detail), 11));
    return (struct hd_box){.w = fmax(width + 34, 84), .h = NODE_H};
}

static int make_layout(struct svg *s, struct hd_arena *arena)
{
    struct hd_drawing *d = s->drawing;
    struct hd_layout *layout = &s->layout;

    layout->nodes = hd_arena_calloc(arena, d->node_count + 1, sizeof(*layout->nodes));
    layout->labels = hd_arena_calloc(arena, d->edge_count + 1, sizeof(*layout->labels));
    layout->clusters = hd_arena_calloc(arena, d->cluster_count, sizeof(*layout->clusters));
    layout->edges = hd_arena_calloc(arena, d->edge_count + 1, sizeof(*layout->edges));
    if (!layout->nodes || !layout->labels || !layout->clusters || !layout->edges)
        return HD_ENOMEM;
    for (size_t i = 0; i < d->node_count; i++)
        layout->nodes[i] = node_size(&d->nodes[i]);
    for (size_t i = 1; i < d->cluster_count; i++)
        layout->clusters[i].w = text_width(d->clusters[i].name, 12) + 40;
    for (size_t i = 0; i < d->edge_count; i++) {
        if (d->edges[i].label.len > 0 && d->edges[i].from != d->edges[i].to)
            layout->labels[i] =
                (struct hd_box){.w = text_width(d->edges[i].label, 12) + 14, .h = LABEL_H};
    }
    return hd_layout_make(d, arena, layout);
}

/* ---- looks ------------------------------------------------------------ */

/* The styles below as attributes, for a part of a page. */
static const struct {
    const char *class;
    const char *attributes;
} looks[] = {
    {"plate", "fill=\"#ffffff\""},
    {"cluster",
     "fill=\"#8b98ad\" fill-opacity=\"0.09\" stroke=\"#98a2b3\" stroke-dasharray=\"2 3\""},
    {"end first", "fill=\"#ffffff\" stroke=\"#98a2b3\" stroke-width=\"1.4\""},
    {"end last", "fill=\"#e4e0fb\" stroke=\"#8b7fe0\" stroke-width=\"1.4\""},
    {"box", "fill=\"#f8f9fc\" stroke=\"#98a2b3\""},
    {"box script", "fill=\"#f4f0ff\" stroke=\"#8b6fe8\""},
    {"box branch", "fill=\"#fff6e5\" stroke=\"#d99a1c\""},
    {"box fanout", "fill=\"#fff6e5\" stroke=\"#d99a1c\""},
    {"box interrupt", "fill=\"#e9f9ef\" stroke=\"#2f9e5f\""},
    {"box http", "fill=\"#e8f3ff\" stroke=\"#3b82d0\""},
    {"box subgraph", "fill=\"#eef2f6\" stroke=\"#5b6b82\""},
    {"box fail", "fill=\"#fdeeee\" stroke=\"#d0524f\""},
    {"name", "font-size=\"14\" font-weight=\"600\" fill=\"#1f2430\""},
    {"kind", "font-size=\"11\" fill=\"#667085\""},
    {"terminal", "font-size=\"13\" fill=\"#475467\""},
    {"label", "font-size=\"12\" fill=\"#475467\""},
    {"group", "font-size=\"12\" font-weight=\"600\" text-anchor=\"start\" fill=\"#475467\""},
    {"edge", "fill=\"none\" stroke=\"#667085\" stroke-width=\"1.5\""},
    {"edge maybe",
     "fill=\"none\" stroke=\"#667085\" stroke-width=\"1.5\" stroke-dasharray=\"5 4\""},
    {"head", "fill=\"#667085\""},
};

/* The attributes of the longest entry that is a prefix of the class, in whole words. */
static const char *find_look(const char *class)
{
    const char *found = "";
    size_t best = 0;

    for (size_t i = 0; i < HD_COUNT(looks); i++) {
        size_t len = strlen(looks[i].class);

        if (len > best && strncmp(class, looks[i].class, len) == 0 &&
            (class[len] == '\0' || class[len] == ' ')) {
            best = len;
            found = looks[i].attributes;
        }
    }
    return found;
}

static void put_class(struct svg *s, const char *class)
{
    if (s->err == 0)
        s->err = hd_buf_printf(s->out, " class=\"%s\"", class);
    if (!s->is_part)
        return;
    put_markup(s, " ");
    put_markup(s, find_look(class));
    if (strncmp(class, "box", 3) == 0)
        put_markup(s, strstr(class, " stop") ? " stroke-width=\"2.4\"" : " stroke-width=\"1.4\"");
}

/* ---- shapes ----------------------------------------------------------- */

static void put_rect(struct svg *s, const char *class, const struct hd_box *box, double radius)
{
    put_markup(s, "<rect");
    put_class(s, class);
    if (s->err == 0)
        s->err = hd_buf_printf(
            s->out, " x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"%.1f\"/>",
            box->x - box->w / 2, box->y - box->h / 2, box->w, box->h, radius);
}

static void put_line(struct svg *s, const char *class, double x, double y, struct hd_slice text)
{
    put_markup(s, "<text");
    put_class(s, class);
    if (s->err == 0)
        s->err = hd_buf_printf(s->out, " x=\"%.1f\" y=\"%.1f\">", x, y);
    put_short(s, text);
    put_markup(s, "</text>");
}

/* ---- edges ------------------------------------------------------------ */

/* Vertical at every point, so that bends have no corners. */
static void put_curve(struct svg *s, const struct hd_point *points, size_t count)
{
    struct hd_point at = points[0];

    if (s->err == 0)
        s->err = hd_buf_printf(s->out, "M%.1f,%.1f", at.x, at.y);
    for (size_t i = 1; i < count && s->err == 0; i++) {
        double middle = (at.y + points[i].y) / 2;

        if (fabs(at.x - points[i].x) < 0.5 && fabs(at.y - points[i].y) < 0.5)
            continue;
        if (fabs(at.x - points[i].x) < 0.5)
            s->err = hd_buf_printf(s->out, " L%.1f,%.1f", points[i].x, points[i].y);
        else
            s->err = hd_buf_printf(s->out, " C%.1f,%.1f %.1f,%.1f %.1f,%.1f", at.x, middle,
                                   points[i].x, middle, points[i].x, points[i].y);
        at = points[i];
    }
}

/* A loop from the node to itself, around its right side. */
static void put_loop(struct svg *s, const struct hd_box *box)
{
    double right = box->x + box->w / 2;

    if (s->err == 0)
        s->err =
            hd_buf_printf(s->out, "M%.1f,%.1f C%.1f,%.1f %.1f,%.1f %.1f,%.1f", right, box->y - 9,
                          right + 26, box->y - 18, right + 26, box->y + 18, right + 1, box->y + 9);
}

/* Puts the label on a plate, so that the line does not cross the text. */
static void put_label(struct svg *s, size_t index)
{
    struct hd_box plate = s->layout.labels[index];
    const struct hd_route_line *line = &s->layout.edges[index];

    plate.x = line->label.x;
    plate.y = line->label.y;
    put_rect(s, "plate", &plate, 5);
    put_line(s, "label", plate.x, plate.y + 4, s->drawing->edges[index].label);
    put_markup(s, "\n");
}

static void put_edge(struct svg *s, size_t index)
{
    const struct hd_drawing_edge *edge = &s->drawing->edges[index];
    const struct hd_route_line *line = &s->layout.edges[index];

    put_markup(s, "<path");
    put_class(s, edge->is_conditional ? "edge maybe" : "edge");
    put_markup(s, " d=\"");
    if (line->count > 0)
        put_curve(s, line->points, line->count);
    else
        put_loop(s, &s->layout.nodes[edge->from]);
    put_markup(s, "\" marker-end=\"url(#graph-arrow)\"><title>");
    put_xml_text(s, s->drawing->nodes[edge->from].id);
    put_markup(s, " → ");
    put_xml_text(s, s->drawing->nodes[edge->to].id);
    put_markup(s, "</title></path>\n");
    if (line->has_label)
        put_label(s, index);
}

/* ---- boxes ------------------------------------------------------------ */

static void put_title(struct svg *s, const struct hd_drawing_node *node)
{
    put_markup(s, "<title>");
    put_xml_text(s, node->id);
    if (!is_end(node)) {
        put_markup(s, " (");
        put_markup(s, node->node->kind->name);
        put_markup(s, ")");
    }
    put_markup(s, "</title>");
}

static void put_node(struct svg *s, size_t index)
{
    const struct hd_drawing_node *node = &s->drawing->nodes[index];
    const struct hd_box *box = &s->layout.nodes[index];
    char detail[96], class[64];

    put_markup(s, "<g class=\"node\" data-node=\"");
    put_xml_text(s, node->id);
    put_markup(s, "\">");
    put_title(s, node);
    if (is_end(node)) {
        put_rect(s, node->node ? "end first" : "end last", box, END_H / 2);
        put_line(s, "terminal", box->x, box->y + 4.5, node->name);
    } else {
        write_detail(node->node, detail, sizeof(detail));
        (void)snprintf(class, sizeof(class), "box %s%s", node->node->kind->name,
                       node->node->stops_before || node->node->stops_after ? " stop" : "");
        put_rect(s, class, box, 9);
        put_line(s, "name", box->x, box->y - 2.5, node->name);
        put_line(s, "kind", box->x, box->y + 13.5, hd_slice_cstr(detail));
    }
    put_markup(s, "</g>\n");
}

static void put_cluster(struct svg *s, size_t index)
{
    const struct hd_box *box = &s->layout.clusters[index];

    put_markup(s, "<g>");
    put_rect(s, "cluster", box, 14);
    put_line(s, "group", box->x - box->w / 2 + 14, box->y - box->h / 2 + 20,
             s->drawing->clusters[index].name);
    put_markup(s, "</g>\n");
}

/* ---- the picture ------------------------------------------------------ */

static const char style[] =
    "<style>\n"
    ".paper{fill:#ffffff}\n"
    "text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;"
    "text-anchor:middle;fill:#1f2430}\n"
    ".name{font-size:14px;font-weight:600}\n"
    ".kind{font-size:11px;fill:#667085}\n"
    ".terminal{font-size:13px;fill:#475467}\n"
    ".label{font-size:12px;fill:#475467}\n"
    ".plate{fill:#ffffff}\n"
    ".group{font-size:12px;font-weight:600;text-anchor:start;fill:#475467}\n"
    ".box{fill:#f8f9fc;stroke:#98a2b3;stroke-width:1.4}\n"
    ".script{fill:#f4f0ff;stroke:#8b6fe8}\n"
    ".branch,.fanout{fill:#fff6e5;stroke:#d99a1c}\n"
    ".interrupt{fill:#e9f9ef;stroke:#2f9e5f}\n"
    ".http{fill:#e8f3ff;stroke:#3b82d0}\n"
    ".subgraph{fill:#eef2f6;stroke:#5b6b82;stroke-width:2}\n"
    ".fail{fill:#fdeeee;stroke:#d0524f}\n"
    ".stop{stroke-width:2.4}\n"
    ".end{fill:#ffffff;stroke:#98a2b3;stroke-width:1.4}\n"
    ".last{fill:#e4e0fb;stroke:#8b7fe0}\n"
    ".cluster{fill:#8b98ad;fill-opacity:.09;stroke:#98a2b3;stroke-dasharray:2 3}\n"
    ".edge{fill:none;stroke:#667085;stroke-width:1.5}\n"
    ".maybe{stroke-dasharray:5 4}\n"
    ".head{fill:#667085}\n"
    "@media (prefers-color-scheme:dark){\n"
    ".paper{fill:#14171d}\n"
    "text{fill:#e6e9ef}\n"
    ".kind,.terminal,.group{fill:#9aa5b8}\n"
    ".label{fill:#c3cbd9}\n"
    ".plate{fill:#14171d}\n"
    ".box{fill:#1e232c;stroke:#5c6779}\n"
    ".script{fill:#282140;stroke:#8f78e6}\n"
    ".branch,.fanout{fill:#332914;stroke:#c8932f}\n"
    ".interrupt{fill:#16301f;stroke:#3fa96d}\n"
    ".http{fill:#15293d;stroke:#4a8fd6}\n"
    ".subgraph{fill:#212936;stroke:#7d8ea8}\n"
    ".fail{fill:#3a1d1d;stroke:#d76a67}\n"
    ".end{fill:#14171d;stroke:#5c6779}\n"
    ".last{fill:#2a2650;stroke:#8b7fe0}\n"
    ".cluster{fill:#9aa5b8;fill-opacity:.07;stroke:#5c6779}\n"
    ".edge{stroke:#8c97a9}\n"
    ".head{fill:#8c97a9}\n"
    "}\n"
    "</style>\n";

static void put_head(struct svg *s)
{
    const struct hd_box *all = &s->layout.clusters[0];

    if (s->err == 0)
        s->err = hd_buf_printf(s->out,
                               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" "
                               "height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" role=\"img\"%s>\n<title>",
                               all->w, all->h, all->w, all->h,
                               s->is_part ? " text-anchor=\"middle\"" : "");
    put_xml_text(s, s->drawing->graph->name);
    put_markup(s, "</title>\n");
    if (s->drawing->graph->description.len > 0) {
        put_markup(s, "<desc>");
        put_xml_text(s, s->drawing->graph->description);
        put_markup(s, "</desc>\n");
    }
    if (!s->is_part)
        put_markup(s, style);
    put_markup(s, "<defs><marker id=\"graph-arrow\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" "
                  "markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\"><path");
    put_class(s, "head");
    put_markup(s, " d=\"M0,1 L10,5 L0,9 z\"/></marker></defs>\n");
    if (!s->is_part)
        put_markup(s, "<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n");
}

static void put_all(struct svg *s)
{
    put_head(s);
    for (size_t i = 1; i < s->drawing->cluster_count && s->err == 0; i++)
        put_cluster(s, i);
    for (size_t i = 0; i < s->drawing->edge_count && s->err == 0; i++)
        put_edge(s, i);
    for (size_t i = 0; i < s->drawing->node_count && s->err == 0; i++)
        put_node(s, i);
    put_markup(s, "</svg>\n");
}

static int draw(const struct hd_drawing *drawing, bool is_part, struct hd_buf *out)
{
    struct hd_drawing copy = *drawing;
    struct svg s = {.drawing = &copy, .out = out, .is_part = is_part};
    struct hd_arena arena;

    hd_arena_init(&arena, (size_t)512 << 20);
    s.err = make_layout(&s, &arena);
    if (s.err == 0)
        put_all(&s);
    hd_arena_fini(&arena);
    return s.err;
}

int hd_draw_svg(const struct hd_drawing *drawing, struct hd_buf *out)
{
    return draw(drawing, false, out);
}

int hd_draw_svg_part(const struct hd_drawing *drawing, struct hd_buf *out)
{
    return draw(drawing, true, out);
}
