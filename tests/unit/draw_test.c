/* Drawings: Mermaid as LangGraph writes it, and pictures in which nothing overlaps. */
#include "graph/draw/draw.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "tests/unit/check.h"

/* ---- helpers ---------------------------------------------------------- */

static struct hd_graph *read_graph(const char *text)
{
    char *json = strdup(text);
    struct hd_graph_error error = {0};
    struct hd_graph *graph = NULL;

    assert_non_null(json);
    for (char *c = json; *c; c++) {
        if (*c == '\'')
            *c = '"';
    }
    if (hd_graph_read(hd_slice_cstr(json), &graph, &error) != 0)
        fail_msg("%s: %s: %s", json, error.path, error.text);
    free(json);
    return graph;
}

typedef int (*draw_fn)(const struct hd_drawing *drawing, struct hd_buf *out);

/* NUL-terminated; the caller frees the buffer. */
static void draw(const char *text, int levels, draw_fn fn, struct hd_buf *out)
{
    struct hd_graph *graph = read_graph(text);
    struct hd_drawing drawing;

    hd_buf_init(out, (size_t)64 << 20);
    assert_err(hd_drawing_init(&drawing, graph, levels), 0);
    assert_err(fn(&drawing, out), 0);
    assert_err(hd_buf_append_byte(out, 0), 0);
    hd_drawing_fini(&drawing);
    hd_graph_destroy(graph);
}

static void check_drawing(const char *text, int levels, draw_fn fn, const char *expected)
{
    struct hd_buf out;

    draw(text, levels, fn, &out);
    assert_string_equal(out.ptr, expected);
    hd_buf_fini(&out);
}

#define HEAD "---\nconfig:\n  flowchart:\n    curve: linear\n---\ngraph TD;\n"
#define TAIL                                            \
    "\tclassDef default fill:#f2f0ff,line-height:1.2\n" \
    "\tclassDef first fill-opacity:0\n\tclassDef last fill:#bfb6fc\n"

static const char echo[] = "{'name':'echo','state':{'a':{}},'nodes':{'reply':{'kind':'set'}},"
                           "'edges':[['__start__','reply'],['reply','__end__']]}";

static const char routes[] =
    "{'name':'r','state':{'a':{}},'nodes':{'ask':{'kind':'set'},'red':{'kind':'set'},"
    "'blue':{'kind':'set'}},'edges':[['__start__','ask'],['ask','red'],"
    "{'from':'ask','routes':[{'when':'{{a}}','to':['red','blue'],'label':'maybe so'},"
    "{'to':'__end__'}]}],'interrupt_before':['red'],'interrupt_after':['red','blue']}";

static const char nested[] =
    "{'name':'n','state':{'a':{}},'nodes':{'before':{'kind':'set'},"
    "'child':{'kind':'subgraph','graph':'c'},'after':{'kind':'set','defer':true,"
    "'metadata':{'who':['x','y'],'n':1,'on':true,'no':{}}}},"
    "'edges':[['__start__','before'],['before','child'],['child','after']],"
    "'graphs':{'c':{'state':{'a':{}},'nodes':{'one':{'kind':'set'},"
    "'deep':{'kind':'subgraph','graph':'d'}},'edges':[['__start__','one'],['one','deep']]},"
    "'d':{'state':{'a':{}},'nodes':{'p':{'kind':'set'},'q':{'kind':'set'}},"
    "'edges':[['__start__','p'],['__start__','q']]}}}";

/* ---- Mermaid ---------------------------------------------------------- */

static void mermaid_is_that_of_langgraph(void **state)
{
    (void)state;
    check_drawing(echo, 0, hd_draw_mermaid,
                  HEAD "\t__start__([<p>__start__</p>]):::first\n\treply(reply)\n"
                       "\t__end__([<p>__end__</p>]):::last\n\t__start__ --> reply;\n"
                       "\treply --> __end__;\n" TAIL);
    check_drawing(routes, 0, hd_draw_mermaid,
                  HEAD
                  "\t__start__([<p>__start__</p>]):::first\n\task(ask)\n"
                  "\tred(red<hr/><small><em>__interrupt = before,after</em></small>)\n"
                  "\tblue(blue<hr/><small><em>__interrupt = after</em></small>)\n"
                  "\t__end__([<p>__end__</p>]):::last\n\t__start__ --> ask;\n\task -.-> __end__;\n"
                  "\task -. &nbsp;maybe so&nbsp; .-> blue;\n\task --> red;\n"
                  "\tblue --> __end__;\n\tred --> __end__;\n" TAIL);
}

static void subgraphs_are_opened_by_level(void **state)
{
    (void)state;
    check_drawing(
        nested, HD_DRAW_ALL_LEVELS, hd_draw_mermaid,
        HEAD
        "\t__start__([<p>__start__</p>]):::first\n\tbefore(before)\n"
        "\tafter(after<hr/><small><em>who = x, y\nn = 1\non = True\ndefer = True</em></small>)\n"
        "\t__end__([<p>__end__</p>]):::last\n\t__start__ --> before;\n"
        "\tbefore --> child\\3aone;\n\tchild\\3adeep\\3a__end__ --> after;\n"
        "\tafter --> __end__;\n"
        "\tsubgraph child\n\tchild\\3aone(one)\n"
        "\tchild\\3aone --> child\\3adeep\\3a__start__;\n"
        "\tsubgraph deep\n\tchild\\3adeep\\3a__start__(<p>__start__</p>)\n"
        "\tchild\\3adeep\\3ap(p)\n\tchild\\3adeep\\3aq(q)\n"
        "\tchild\\3adeep\\3a__end__(<p>__end__</p>)\n"
        "\tchild\\3adeep\\3a__start__ --> child\\3adeep\\3ap;\n"
        "\tchild\\3adeep\\3a__start__ --> child\\3adeep\\3aq;\n"
        "\tchild\\3adeep\\3ap --> child\\3adeep\\3a__end__;\n"
        "\tchild\\3adeep\\3aq --> child\\3adeep\\3a__end__;\n"
        "\tend\n\tend\n" TAIL);
    check_drawing(
        nested, 1, hd_draw_mermaid,
        HEAD
        "\t__start__([<p>__start__</p>]):::first\n\tbefore(before)\n"
        "\tafter(after<hr/><small><em>who = x, y\nn = 1\non = True\ndefer = True</em></small>)\n"
        "\t__end__([<p>__end__</p>]):::last\n\t__start__ --> before;\n"
        "\tbefore --> child\\3aone;\n\tchild\\3adeep --> after;\n\tafter --> __end__;\n"
        "\tsubgraph child\n\tchild\\3aone(one)\n\tchild\\3adeep(deep)\n"
        "\tchild\\3aone --> child\\3adeep;\n\tend\n" TAIL);
}

static void odd_names_are_escaped(void **state)
{
    (void)state;
    check_drawing("{'name':'o','state':{'a':{}},'nodes':{'é 日<':{'kind':'set'},"
                  "'end':{'kind':'set'},'*x*':{'kind':'set','metadata':{'k':'[#]\\u0022'}}},"
                  "'edges':[['__start__','é 日<'],['é 日<','end'],['end','*x*']]}",
                  0, hd_draw_mermaid,
                  HEAD
                  "\t__start__([<p>__start__</p>]):::first\n\t\\e9\\20\\65e5\\3c(é 日<)\n"
                  "\t\\65\\6e\\64(end)\n"
                  "\t\\2ax\\2a(<p>*x*</p><hr/><small><em>k = #91;#35;#93;#quot;</em></small>)\n"
                  "\t__end__([<p>__end__</p>]):::last\n"
                  "\t__start__ --> \\e9\\20\\65e5\\3c;\n\t\\65\\6e\\64 --> \\2ax\\2a;\n"
                  "\t\\e9\\20\\65e5\\3c --> \\65\\6e\\64;\n\t\\2ax\\2a --> __end__;\n" TAIL);
}

/* ---- JSON ------------------------------------------------------------- */

static void json_is_that_of_the_api(void **state)
{
    (void)state;
    check_drawing(echo, 0, hd_draw_json,
                  "{\"nodes\":[{\"id\":\"__start__\",\"type\":\"schema\",\"data\":\"__start__\"},"
                  "{\"id\":\"reply\",\"type\":\"runnable\",\"data\":{\"id\":[\"heddle\",\"nodes\","
                  "\"set\"],\"name\":\"reply\"}},"
                  "{\"id\":\"__end__\",\"type\":\"schema\",\"data\":\"__end__\"}],"
                  "\"edges\":[{\"source\":\"__start__\",\"target\":\"reply\"},"
                  "{\"source\":\"reply\",\"target\":\"__end__\"}]}");
}

static void json_has_labels_conditions_and_metadata(void **state)
{
    struct hd_buf out;

    (void)state;
    draw(routes, 0, hd_draw_json, &out);
    assert_non_null(strstr(out.ptr, "{\"source\":\"ask\",\"target\":\"blue\",\"data\":\"maybe so\","
                                    "\"conditional\":true}"));
    assert_non_null(strstr(out.ptr, "\"metadata\":{\"__interrupt\":\"before,after\"}"));
    hd_buf_fini(&out);
    draw(nested, HD_DRAW_ALL_LEVELS, hd_draw_json, &out);
    assert_non_null(strstr(out.ptr, "{\"source\":\"before\",\"target\":\"child:one\"}"));
    assert_non_null(strstr(out.ptr, "\"defer\":true"));
    hd_buf_fini(&out);
}

/* ---- pictures --------------------------------------------------------- */

struct rect {
    double x, y, w, h;
};

/* The rectangles of a class, in the order of the file. */
static size_t find_rects(const char *svg, const char *class, struct rect *out, size_t max)
{
    char begin[64];
    size_t count = 0;

    (void)snprintf(begin, sizeof(begin), "<rect class=\"%s", class);
    for (const char *pos = strstr(svg, begin); pos && count < max; pos = strstr(pos + 1, begin)) {
        struct rect *r = &out[count++];

        assert_int_equal(sscanf(strstr(pos, "x="),
                                "x=\"%lf\" y=\"%lf\" width=\"%lf\" height=\"%lf\"", &r->x, &r->y,
                                &r->w, &r->h),
                         4);
    }
    return count;
}

static bool overlap(const struct rect *a, const struct rect *b)
{
    return a->x < b->x + b->w && b->x < a->x + a->w && a->y < b->y + b->h && b->y < a->y + a->h;
}

static void check_apart(const struct rect *rects, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t j = i + 1; j < count; j++) {
            if (overlap(&rects[i], &rects[j]))
                fail_msg("boxes %zu and %zu overlap", i, j);
        }
    }
}

/* Tags are closed in the order in which they were opened. */
static void check_well_formed(const char *svg)
{
    const char *stack[64];
    size_t lens[64], depth = 0;

    for (const char *pos = strchr(svg, '<'); pos; pos = strchr(pos + 1, '<')) {
        const char *end = strchr(pos, '>');
        size_t len = strcspn(pos + 1, " >/");

        assert_non_null(end);
        if (pos[1] == '/') {
            len = strcspn(pos + 2, ">");
            assert_true(depth > 0);
            depth--;
            assert_true(len == lens[depth] && memcmp(pos + 2, stack[depth], len) == 0);
        } else if (end[-1] != '/') {
            assert_true(depth < HD_COUNT(stack));
            stack[depth] = pos + 1;
            lens[depth++] = len;
        }
    }
    assert_int_equal(depth, 0);
}

static const char busy[] =
    "{'name':'busy','description':'<a> & "
    "b','state':{'a':{}},'nodes':{'a1':{'kind':'set'},'a2':{'kind':'set'},"
    "'a3':{'kind':'set'},'hub':{'kind':'branch','routes':[{'when':'{{a}}','to':'a1','label':'one'},"
    "{'when':'{{a}}','to':'a2','label':'a much longer label'},{'to':'__end__','label':'out'}]},"
    "'a4':{'kind':'set'},'a5':{'kind':'set','goto':'hub'}},'edges':[['__start__','hub'],"
    "['a1','a3'],['a2','a3'],['a3','a4'],['a3','a5'],['a1','a5'],{'from':'a4','routes':["
    "{'when':'{{a}}','to':'a4'},{'to':'hub','label':'again'}]}]}";

static void nothing_overlaps_in_a_picture(void **state)
{
    const char *const graphs[] = {echo, routes, nested, busy};
    struct rect rects[64];
    struct hd_buf out;

    (void)state;
    for (size_t i = 0; i < HD_COUNT(graphs); i++) {
        size_t count;

        draw(graphs[i], HD_DRAW_ALL_LEVELS, hd_draw_svg, &out);
        check_well_formed(out.ptr);
        count = find_rects(out.ptr, "box", rects, 40);
        count += find_rects(out.ptr, "end", rects + count, HD_COUNT(rects) - count);
        assert_true(count >= 3);
        count += find_rects(out.ptr, "plate", rects + count, HD_COUNT(rects) - count);
        check_apart(rects, count);
        hd_buf_fini(&out);
    }
}

static bool is_within(const struct rect *in, const struct rect *out)
{
    return in->x >= out->x && in->y >= out->y && in->x + in->w <= out->x + out->w &&
           in->y + in->h <= out->y + out->h;
}

static void clusters_hold_their_nodes(void **state)
{
    struct rect clusters[4], nodes[16];
    struct hd_buf out;
    size_t inside = 0;

    (void)state;
    draw(nested, HD_DRAW_ALL_LEVELS, hd_draw_svg, &out);
    assert_int_equal(find_rects(out.ptr, "cluster", clusters, HD_COUNT(clusters)), 2);
    assert_int_equal(find_rects(out.ptr, "box", nodes, HD_COUNT(nodes)), 5);
    assert_true(is_within(&clusters[1], &clusters[0]));
    for (size_t i = 0; i < 5; i++) {
        inside += is_within(&nodes[i], &clusters[0]);
        assert_true(is_within(&nodes[i], &clusters[0]) || !overlap(&nodes[i], &clusters[0]));
    }
    assert_int_equal(inside, 3);
    hd_buf_fini(&out);
}

/* ---- fragments, and graphs of workers ---------------------------------- */

static void a_part_of_a_page_has_no_styles(void **state)
{
    static const char *const none[] = {"<style", "style=", "paper", "<script", "@media"};
    struct rect rects[64];
    struct hd_buf out;

    (void)state;
    draw(nested, HD_DRAW_ALL_LEVELS, hd_draw_svg_part, &out);
    check_well_formed(out.ptr);
    for (size_t i = 0; i < HD_COUNT(none); i++)
        assert_null(strstr(out.ptr, none[i]));
    assert_int_equal(find_rects(out.ptr, "box", rects, HD_COUNT(rects)), 5);
    assert_non_null(strstr(out.ptr, "<rect class=\"box set\" fill=\"#f8f9fc\" "
                                    "stroke=\"#98a2b3\" stroke-width=\"1.4\" x="));
    assert_non_null(strstr(out.ptr, "<g class=\"node\" data-node=\"__start__\">"));
    hd_buf_fini(&out);
}

/* Returns 0 or the parse error; `out` gets the drawing and belongs to the caller. */
static int draw_read(const char *text, struct hd_buf *out)
{
    struct hd_drawing drawing;
    struct hd_json json;
    int err;

    hd_buf_init(out, (size_t)64 << 20);
    assert_err(hd_json_parse(&json, hd_slice_cstr(text), NULL), 0);
    err = hd_drawing_read(&drawing, HD_S("a \"<name>\""), hd_json_root(&json));
    hd_json_fini(&json);
    if (err)
        return err;
    assert_err(hd_draw_svg_part(&drawing, out), 0);
    assert_err(hd_buf_append_byte(out, 0), 0);
    hd_drawing_fini(&drawing);
    return 0;
}

static const char elsewhere[] =
    "{\"nodes\":[{\"id\":\"__start__\"},{\"id\":\"a\\\" onload=\\\"x\"},{\"id\":\"<b>&\"},"
    "{\"id\":\"in:a\"},{\"id\":\"in:deep:b\"},{\"id\":7},{\"id\":\"__end__\"}],"
    "\"edges\":[{\"source\":\"__start__\",\"target\":\"in:a\"},"
    "{\"source\":\"in:a\",\"target\":\"in:deep:b\",\"conditional\":true,\"data\":\"<yes>\"},"
    "{\"source\":7,\"target\":\"__end__\"}]}";

static void graphs_that_are_elsewhere_are_drawn(void **state)
{
    struct rect rects[16];
    struct hd_buf out;
    size_t count;

    (void)state;
    assert_err(draw_read(elsewhere, &out), 0);
    check_well_formed(out.ptr);
    assert_non_null(strstr(out.ptr, "<title>a &quot;&lt;name&gt;&quot;</title>"));
    assert_non_null(strstr(out.ptr, "data-node=\"a&quot; onload=&quot;x\">"));
    assert_non_null(strstr(out.ptr, "data-node=\"&lt;b&gt;&amp;\">"));
    assert_non_null(strstr(out.ptr, "data-node=\"in:deep:b\">"));
    assert_non_null(strstr(out.ptr, "class=\"edge maybe\""));
    assert_int_equal(find_rects(out.ptr, "cluster", rects, HD_COUNT(rects)), 2);
    count = find_rects(out.ptr, "box code", rects, HD_COUNT(rects));
    assert_int_equal(count, 5);
    count += find_rects(out.ptr, "end", rects + count, HD_COUNT(rects) - count);
    assert_int_equal(count, 7);
    check_apart(rects, count);
    hd_buf_fini(&out);
}

static void an_invalid_drawing_is_refused(void **state)
{
    static const char *const wrong[] = {
        "[]",
        "{}",
        "{\"nodes\":[],\"edges\":[]}",
        "{\"nodes\":{},\"edges\":[]}",
        "{\"nodes\":[{\"id\":\"a\"}]}",
        "{\"nodes\":[{}],\"edges\":[]}",
        "{\"nodes\":[{\"id\":\"\"}],\"edges\":[]}",
        "{\"nodes\":[3],\"edges\":[]}",
        "{\"nodes\":[{\"id\":\"a\"}],\"edges\":[{\"source\":\"a\",\"target\":\"b\"}]}",
        "{\"nodes\":[{\"id\":\"a\"}],\"edges\":[1]}",
        "{\"nodes\":[{\"id\":\"a:a:a:a:a:a:a:a:a:a:a:a:a:a:a:a:a:a\"}],\"edges\":[]}",
    };
    struct hd_buf out;

    (void)state;
    for (size_t i = 0; i < HD_COUNT(wrong); i++) {
        assert_err(draw_read(wrong[i], &out), HD_ECORRUPT);
        hd_buf_fini(&out);
    }
}

static void large_drawings_are_refused(void **state)
{
    struct hd_buf text, out;

    (void)state;
    hd_buf_init(&text, (size_t)1 << 20);
    assert_err(hd_buf_append_slice(&text, HD_S("{\"edges\":[],\"nodes\":[0")), 0);
    for (int i = 0; i < HD_DRAW_MAX_NODES; i++)
        assert_err(hd_buf_append_slice(&text, HD_S(",0")), 0);
    assert_err(hd_buf_append_slice(&text, hd_slice("]}", 3)), 0);
    assert_err(draw_read(text.ptr, &out), HD_ELIMIT);
    hd_buf_fini(&out);
    hd_buf_fini(&text);
}

static int draw_what_is_elsewhere(void *arg)
{
    struct hd_drawing drawing;
    struct hd_buf out;
    int err = hd_drawing_read(&drawing, HD_S("name"), hd_json_root(arg));

    if (err)
        return err;
    hd_buf_init(&out, (size_t)1 << 20);
    err = hd_draw_svg_part(&drawing, &out);
    hd_buf_fini(&out);
    hd_drawing_fini(&drawing);
    return err;
}

static void reading_may_run_out_of_memory(void **state)
{
    struct hd_json json;

    (void)state;
    assert_err(hd_json_parse(&json, hd_slice_cstr(elsewhere), NULL), 0);
    assert_true(check_every_allocation(draw_what_is_elsewhere, &json) > 5);
    hd_json_fini(&json);
}

/* ---- limits ----------------------------------------------------------- */

/* Each graph runs the next one `width` times: width^levels nodes. */
static char *exploding(int levels, int width)
{
    size_t size = (size_t)levels * (size_t)width * 100 + 4096;
    char *text = malloc(size), *pos = text;

    assert_non_null(text);
    pos += snprintf(pos, size,
                    "{'name':'x','state':{'a':{}},'nodes':{'n':{'kind':'subgraph',"
                    "'graph':'g1'}},'edges':[['__start__','n']],'graphs':{");
    for (int i = 1; i < levels; i++) {
        pos += snprintf(pos, size - (size_t)(pos - text), "'g%d':{'state':{'a':{}},'nodes':{", i);
        for (int j = 0; j < width; j++)
            pos += snprintf(pos, size - (size_t)(pos - text),
                            "%s'n%d':{'kind':'subgraph','graph':'g%d'}", j ? "," : "", j, i + 1);
        pos += snprintf(pos, size - (size_t)(pos - text), "},'edges':[");
        for (int j = 0; j < width; j++)
            pos += snprintf(pos, size - (size_t)(pos - text), "%s['__start__','n%d']", j ? "," : "",
                            j);
        pos += snprintf(pos, size - (size_t)(pos - text), "]},");
    }
    (void)snprintf(pos, size - (size_t)(pos - text),
                   "'g%d':{'state':{'a':{}},'nodes':{'e':{'kind':'set'},'f':{'kind':'set'}},"
                   "'edges':[['__start__','e'],['e','f']]}}}",
                   levels);
    return text;
}

static void a_drawing_has_a_limit(void **state)
{
    char *text = exploding(14, 40);
    struct hd_graph *graph = read_graph(text);
    struct hd_drawing drawing;

    (void)state;
    assert_err(hd_drawing_init(&drawing, graph, HD_DRAW_ALL_LEVELS), HD_ELIMIT);
    assert_err(hd_drawing_init(&drawing, graph, 2), 0);
    hd_drawing_fini(&drawing);
    hd_graph_destroy(graph);
    free(text);
}

/* 999 nodes side by side, and 999 in a row with edges over many of them. */
static void large_graphs_are_drawn(void **state)
{
    static char text[200000];
    struct hd_buf out;

    (void)state;
    for (int is_row = 0; is_row < 2; is_row++) {
        char *pos = text;

        pos += snprintf(pos, 100, "{'name':'big','state':{'a':{}},'nodes':{'n0':{'kind':'set'}");
        for (int i = 1; i < 999; i++)
            pos += snprintf(pos, 100, ",'n%d':{'kind':'set'}", i);
        pos += snprintf(pos, 100, "},'edges':[['__start__','n0']");
        for (int i = 1; i < 999 && is_row; i++)
            pos += snprintf(pos, 100, ",['n%d','n%d']", i - 1, i);
        for (int i = 1; i < 999 && !is_row; i++)
            pos += snprintf(pos, 100, ",['__start__','n%d']", i);
        for (int i = 0; i < 900 && is_row; i += 3)
            pos += snprintf(pos, 100, ",['n%d','n998']", i);
        (void)snprintf(pos, 100, "]}");
        draw(text, 0, hd_draw_svg, &out);
        check_well_formed(out.ptr);
        hd_buf_fini(&out);
    }
}

static int draw_everything(void *arg)
{
    const struct hd_graph *graph = arg;
    struct hd_drawing drawing;
    struct hd_buf out;
    int err = hd_drawing_init(&drawing, graph, HD_DRAW_ALL_LEVELS);

    if (err != 0)
        return err;
    hd_buf_init(&out, (size_t)1 << 20);
    err = hd_draw_mermaid(&drawing, &out);
    if (err == 0)
        err = hd_draw_json(&drawing, &out);
    if (err == 0)
        err = hd_draw_svg(&drawing, &out);
    hd_buf_fini(&out);
    hd_drawing_fini(&drawing);
    return err;
}

static void every_allocation_may_fail(void **state)
{
    struct hd_graph *graph = read_graph(nested);

    (void)state;
    assert_true(check_every_allocation(draw_everything, graph) > 5);
    hd_graph_destroy(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mermaid_is_that_of_langgraph),
        cmocka_unit_test(subgraphs_are_opened_by_level),
        cmocka_unit_test(odd_names_are_escaped),
        cmocka_unit_test(json_is_that_of_the_api),
        cmocka_unit_test(json_has_labels_conditions_and_metadata),
        cmocka_unit_test(nothing_overlaps_in_a_picture),
        cmocka_unit_test(clusters_hold_their_nodes),
        cmocka_unit_test(a_part_of_a_page_has_no_styles),
        cmocka_unit_test(graphs_that_are_elsewhere_are_drawn),
        cmocka_unit_test(an_invalid_drawing_is_refused),
        cmocka_unit_test(large_drawings_are_refused),
        cmocka_unit_test(reading_may_run_out_of_memory),
        cmocka_unit_test(a_drawing_has_a_limit),
        cmocka_unit_test(large_graphs_are_drawn),
        cmocka_unit_test(every_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
