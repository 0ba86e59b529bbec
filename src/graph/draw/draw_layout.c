/*
 * Layered layout of a drawing, from top to bottom.
 *
 * Each cluster is laid out separately, innermost first, and is then one box in the enclosing
 * cluster. Edges that would go up are reversed during the layout; the layer of a box is its longest
 * path from the top. An edge that crosses layers has a small box in each of them, and one of these
 * carries its label, so that nothing overlaps. Several sweeps order each layer by the mean position
 * of the neighbours above and below, and then place the boxes in the same way.
 *
 * The work is bounded: after MAX_BENDS boxes, edges cross layers without boxes.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/draw/draw_internal.h"

#define MAX_BENDS 20000
#define MAX_COUNTED 500 /* limit of steps of a layer; above it, crossings are not counted */
#define SWEEPS 12
#define GAP_X 28.0
#define GAP_Y 46.0
#define BEND_W 14.0
#define PAD 22.0
#define TITLE_H 20.0
#define PORT_GAP 20.0

enum { NOTHING = -1 };

/* An object to place: a node, a cluster, or a bend of an edge. */
struct layout_item {
    struct hd_box box;
    size_t layer;
    size_t order;
    double wish;
    int node, cluster, edge;
    bool is_visited, is_open;
};

/* An edge between items, reversed if necessary so that it goes down. */
struct link {
    size_t from, to;
    size_t edge;
    size_t length; /* minimum, in layers */
    bool is_turned;
    size_t *bends; /* items, from the top */
    size_t bend_count;
};

/* The layout of one cluster. */
struct level {
    struct hd_drawing *drawing;
    struct hd_arena *arena;
    struct hd_layout *layout;
    size_t cluster;
    struct layout_item *items;
    size_t item_count, item_cap;
    struct link *links;
    size_t link_count;
    size_t **layers;
    size_t *layer_sizes;
    size_t layer_count;
    double *tops, *bottoms; /* of layers */
    size_t *bends_left;
};

/* ---- neighbours ------------------------------------------------------- */

/*
 * Steps from item to item: links split at their bends. Sorted by `from`, so that the steps of an
 * item are adjacent; those of item i start at `first[i]`.
 */
struct steps {
    size_t *first;
    size_t *other;
};

static void count_step(size_t from, size_t to, struct steps *s, bool is_filling)
{
    if (is_filling)
        s->other[s->first[from + 1]++] = to;
    else
        s->first[from + 2]++;
}

/* Counts or stores the steps of a link, downwards or upwards. */
static void walk_link(const struct link *link, bool is_up, struct steps *s, bool is_filling)
{
    size_t at = link->from;

    for (size_t i = 0; i <= link->bend_count; i++) {
        size_t next = i < link->bend_count ? link->bends[i] : link->to;

        if (is_up)
            count_step(next, at, s, is_filling);
        else
            count_step(at, next, s, is_filling);
        at = next;
    }
}

static int find_steps(const struct level *l, bool is_up, struct steps *s)
{
    size_t total = 0;

    for (size_t i = 0; i < l->link_count; i++)
        total += l->links[i].bend_count + 1;
    s->first = hd_arena_calloc(l->arena, l->item_count + 3, sizeof(*s->first));
    s->other = hd_arena_calloc(l->arena, total + 1, sizeof(*s->other));
    if (!s->first || !s->other)
        return HD_ENOMEM;
    for (size_t i = 0; i < l->link_count; i++)
        walk_link(&l->links[i], is_up, s, false);
    for (size_t i = 2; i < l->item_count + 3; i++)
        s->first[i] += s->first[i - 1];
    for (size_t i = 0; i < l->link_count; i++)
        walk_link(&l->links[i], is_up, s, true);
    return 0;
}

/* ---- contents of a cluster -------------------------------------------- */

static size_t child_cluster(const struct hd_drawing *d, size_t outer, size_t cluster)
{
    while (d->clusters[cluster].parent != outer)
        cluster = d->clusters[cluster].parent;
    return cluster;
}

static bool is_inside(const struct hd_drawing *d, size_t cluster, size_t outer)
{
    while (cluster != outer && cluster != 0)
        cluster = d->clusters[cluster].parent;
    return cluster == outer;
}

static struct layout_item *add_item(struct level *l, struct hd_box box)
{
    struct layout_item *items;

    if (l->item_count == l->item_cap) {
        size_t cap = l->item_cap ? 2 * l->item_cap : 32;

        items = hd_arena_calloc(l->arena, cap, sizeof(*items));
        if (!items)
            return NULL;
        if (l->item_count)
            memcpy(items, l->items, l->item_count * sizeof(*items));
        l->items = items;
        l->item_cap = cap;
    }
    items = &l->items[l->item_count++];
    *items = (struct layout_item){.box = box, .node = NOTHING, .cluster = NOTHING, .edge = NOTHING};
    return items;
}

/* Sets `places`: the item of each node and, after the nodes, of each cluster. */
static int add_items(struct level *l, size_t *places)
{
    const struct hd_drawing *d = l->drawing;
    struct layout_item *item;

    for (size_t i = 0; i < d->node_count; i++) {
        if (d->nodes[i].cluster != l->cluster)
            continue;
        places[i] = l->item_count;
        item = add_item(l, l->layout->nodes[i]);
        if (!item)
            return HD_ENOMEM;
        item->node = (int)i;
    }
    for (size_t i = 1; i < d->cluster_count; i++) {
        if (d->clusters[i].parent != l->cluster)
            continue;
        places[d->node_count + i] = l->item_count;
        item = add_item(l, l->layout->clusters[i]);
        if (!item)
            return HD_ENOMEM;
        item->cluster = (int)i;
    }
    return 0;
}

static size_t item_of_node(const struct level *l, const size_t *places, size_t node)
{
    const struct hd_drawing *d = l->drawing;
    size_t cluster = d->nodes[node].cluster;

    if (cluster == l->cluster)
        return places[node];
    return places[d->node_count + child_cluster(d, l->cluster, cluster)];
}

/* Adds the edges inside the cluster that connect different items. */
static int add_links(struct level *l, const size_t *places)
{
    const struct hd_drawing *d = l->drawing;

    l->links = hd_arena_calloc(l->arena, d->edge_count + 1, sizeof(*l->links));
    if (!l->links)
        return HD_ENOMEM;
    for (size_t i = 0; i < d->edge_count; i++) {
        const struct hd_drawing_edge *edge = &d->edges[i];
        size_t from, to;

        if (!is_inside(d, d->nodes[edge->from].cluster, l->cluster) ||
            !is_inside(d, d->nodes[edge->to].cluster, l->cluster))
            continue;
        from = item_of_node(l, places, edge->from);
        to = item_of_node(l, places, edge->to);
        if (from != to)
            l->links[l->link_count++] =
                (struct link){.from = from, .to = to, .edge = i, .length = 1};
    }
    return 0;
}

/* ---- layers ----------------------------------------------------------- */

/* Links by source item: those of item i are list[first[i]] … list[first[i + 1] - 1]. */
struct by_source {
    size_t *first;
    size_t *list;
};

static int sort_links(const struct level *l, struct by_source *out)
{
    out->first = hd_arena_calloc(l->arena, l->item_count + 3, sizeof(*out->first));
    out->list = hd_arena_calloc(l->arena, l->link_count + 1, sizeof(*out->list));
    if (!out->first || !out->list)
        return HD_ENOMEM;
    for (size_t i = 0; i < l->link_count; i++)
        out->first[l->links[i].from + 2]++;
    for (size_t i = 2; i < l->item_count + 3; i++)
        out->first[i] += out->first[i - 1];
    for (size_t i = 0; i < l->link_count; i++)
        out->list[out->first[l->links[i].from + 1]++] = i;
    return 0;
}

/* The state of a depth-first walk through the links. */
struct link_walk {
    struct by_source links;
    size_t *stack;
    size_t depth;
    size_t *next; /* by item: number of its links followed so far */
};

static void enter_item(struct level *l, struct link_walk *w, size_t item)
{
    l->items[item].is_visited = true;
    l->items[item].is_open = true;
    w->stack[w->depth++] = item;
}

/* Makes one step of the walk. A link to an item that is still open goes up and is reversed. */
static void walk_on(struct level *l, struct link_walk *w)
{
    size_t at = w->stack[w->depth - 1];
    size_t place = w->links.first[at] + w->next[at]++;
    struct link *link;

    if (place >= w->links.first[at + 1]) {
        l->items[at].is_open = false;
        w->depth--;
        return;
    }
    link = &l->links[w->links.list[place]];
    if (!l->items[link->to].is_visited)
        enter_item(l, w, link->to);
    else if (l->items[link->to].is_open)
        link->is_turned = true;
}

static int turn_links(struct level *l)
{
    struct link_walk w = {0};
    int err = sort_links(l, &w.links);

    w.stack = hd_arena_calloc(l->arena, l->item_count + 1, sizeof(*w.stack));
    w.next = hd_arena_calloc(l->arena, l->item_count + 1, sizeof(*w.next));
    if (err != 0 || !w.stack || !w.next)
        return HD_ENOMEM;
    for (size_t i = 0; i < l->item_count; i++) {
        if (!l->items[i].is_visited)
            enter_item(l, &w, i);
        while (w.depth > 0)
            walk_on(l, &w);
    }
    return 0;
}

/*
 * Reverses the marked links. Reversed and labelled links span two layers or more, so that they have
 * a box in between.
 */
static void apply_turns(struct level *l)
{
    for (size_t i = 0; i < l->link_count; i++) {
        struct link *link = &l->links[i];
        size_t from = link->from;

        if (link->is_turned) {
            link->from = link->to;
            link->to = from;
        }
        if (link->is_turned || l->layout->labels[link->edge].w > 0)
            link->length = 2;
    }
}

/* Kahn's topological order: each item is at least one layer below its predecessors. */
static int find_layers(struct level *l)
{
    size_t *waits = hd_arena_calloc(l->arena, l->item_count + 1, sizeof(*waits));
    size_t *queue = hd_arena_calloc(l->arena, l->item_count + 1, sizeof(*queue));
    struct by_source links;
    size_t count = 0;
    int err = sort_links(l, &links);

    if (err != 0 || !waits || !queue)
        return HD_ENOMEM;
    for (size_t i = 0; i < l->link_count; i++)
        waits[l->links[i].to]++;
    for (size_t i = 0; i < l->item_count; i++) {
        if (waits[i] == 0)
            queue[count++] = i;
    }
    for (size_t at = 0; at < count; at++) {
        for (size_t i = links.first[queue[at]]; i < links.first[queue[at] + 1]; i++) {
            const struct link *link = &l->links[links.list[i]];
            size_t layer = l->items[queue[at]].layer + link->length;

            if (layer > l->items[link->to].layer)
                l->items[link->to].layer = layer;
            if (--waits[link->to] == 0)
                queue[count++] = link->to;
        }
    }
    return 0;
}

/* Moves items without predecessors down, to just above their nearest successor. */
static void lower_sources(struct level *l)
{
    for (size_t i = 0; i < l->item_count; i++) {
        size_t nearest = SIZE_MAX;
        bool has_above = false;

        for (size_t j = 0; j < l->link_count; j++) {
            const struct link *link = &l->links[j];

            has_above = has_above || link->to == i;
            if (link->from == i && l->items[link->to].layer - link->length < nearest)
                nearest = l->items[link->to].layer - link->length;
        }
        if (!has_above && nearest != SIZE_MAX)
            l->items[i].layer = nearest;
    }
}

/* ---- bends ------------------------------------------------------------ */

static int add_bends(struct level *l, struct link *link)
{
    size_t top = l->items[link->from].layer, bottom = l->items[link->to].layer;
    size_t count = bottom - top - 1;
    struct hd_box label = l->layout->labels[link->edge];

    if (count == 0 || count > *l->bends_left)
        return 0;
    *l->bends_left -= count;
    link->bends = hd_arena_calloc(l->arena, count, sizeof(*link->bends));
    if (!link->bends)
        return HD_ENOMEM;
    for (size_t i = 0; i < count; i++) {
        bool has_label = label.w > 0 && i == (link->is_turned ? count - 1 : 0);
        struct hd_box box = has_label ? label : (struct hd_box){.w = BEND_W};
        struct layout_item *item = add_item(l, box);

        if (!item)
            return HD_ENOMEM;
        item->layer = top + 1 + i;
        item->edge = (int)link->edge;
        link->bends[link->bend_count++] = l->item_count - 1;
    }
    return 0;
}

static int fill_layers(struct level *l)
{
    for (size_t i = 0; i < l->item_count; i++) {
        if (l->items[i].layer + 1 > l->layer_count)
            l->layer_count = l->items[i].layer + 1;
    }
    l->layers = hd_arena_calloc(l->arena, l->layer_count + 1, sizeof(*l->layers));
    l->layer_sizes = hd_arena_calloc(l->arena, l->layer_count + 1, sizeof(*l->layer_sizes));
    l->tops = hd_arena_calloc(l->arena, l->layer_count + 1, sizeof(*l->tops));
    l->bottoms = hd_arena_calloc(l->arena, l->layer_count + 1, sizeof(*l->bottoms));
    if (!l->layers || !l->layer_sizes || !l->tops || !l->bottoms)
        return HD_ENOMEM;
    for (size_t i = 0; i < l->item_count; i++)
        l->layer_sizes[l->items[i].layer]++;
    for (size_t i = 0; i < l->layer_count; i++) {
        l->layers[i] = hd_arena_calloc(l->arena, l->layer_sizes[i] + 1, sizeof(**l->layers));
        if (!l->layers[i])
            return HD_ENOMEM;
        l->layer_sizes[i] = 0;
    }
    for (size_t i = 0; i < l->item_count; i++) {
        struct layout_item *item = &l->items[i];

        item->order = l->layer_sizes[item->layer];
        l->layers[item->layer][l->layer_sizes[item->layer]++] = i;
    }
    return 0;
}

/* ---- order ------------------------------------------------------------ */

struct wished {
    double wish;
    size_t order;
    size_t item;
};

static int compare_wishes(const void *a, const void *b)
{
    const struct wished *x = a, *y = b;

    if (x->wish != y->wish)
        return x->wish < y->wish ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

/*
 * The mean position of an item's neighbours in the given direction; without neighbours, its own
 * position.
 */
static double neighbours_middle(const struct level *l, const struct steps *s, size_t item,
                                bool by_order)
{
    double sum = 0;
    size_t begin = s->first[item], end = s->first[item + 1];

    for (size_t i = begin; i < end; i++) {
        const struct layout_item *other = &l->items[s->other[i]];

        sum += by_order ? (double)other->order : other->box.x;
    }
    if (begin == end)
        return by_order ? (double)l->items[item].order : l->items[item].box.x;
    return sum / (double)(end - begin);
}

static void order_layer(struct level *l, const struct steps *s, size_t layer, struct wished *room)
{
    size_t count = l->layer_sizes[layer];

    for (size_t i = 0; i < count; i++) {
        size_t item = l->layers[layer][i];

        room[i] = (struct wished){neighbours_middle(l, s, item, true), i, item};
    }
    if (count > 1)
        qsort(room, count, sizeof(*room), compare_wishes);
    for (size_t i = 0; i < count; i++) {
        l->layers[layer][i] = room[i].item;
        l->items[room[i].item].order = i;
    }
}

/* Counts the steps of two items that cross each other, if `left` is left of `right`. */
static size_t cross(const struct level *l, const struct steps *down, size_t left, size_t right)
{
    size_t count = 0;

    for (size_t a = down->first[left]; a < down->first[left + 1]; a++) {
        for (size_t b = down->first[right]; b < down->first[right + 1]; b++)
            count += l->items[down->other[a]].order > l->items[down->other[b]].order;
    }
    return count;
}

static size_t count_crossings(const struct level *l, const struct steps *down)
{
    size_t crossings = 0;

    for (size_t layer = 0; layer + 1 < l->layer_count; layer++) {
        const size_t *list = l->layers[layer];
        size_t count = l->layer_sizes[layer], steps = 0;

        for (size_t i = 0; i < count; i++)
            steps += down->first[list[i] + 1] - down->first[list[i]];
        /* Counting the crossings of a large layer is too slow: assume one per step. */
        if (steps > MAX_COUNTED) {
            crossings += steps;
            continue;
        }
        for (size_t i = 0; i < count; i++) {
            for (size_t j = i + 1; j < count; j++)
                crossings += cross(l, down, list[i], list[j]);
        }
    }
    return crossings;
}

static void keep_order(const struct level *l, size_t *saved)
{
    for (size_t i = 0; i < l->item_count; i++)
        saved[i] = l->items[i].order;
}

static void restore_order(struct level *l, const size_t *saved)
{
    for (size_t i = 0; i < l->item_count; i++) {
        l->items[i].order = saved[i];
        l->layers[l->items[i].layer][saved[i]] = i;
    }
}

static int order_items(struct level *l, const struct steps *down, const struct steps *up)
{
    struct wished *room = hd_arena_calloc(l->arena, l->item_count + 1, sizeof(*room));
    size_t *best = hd_arena_calloc(l->arena, l->item_count + 1, sizeof(*best));
    size_t fewest;

    if (!room || !best)
        return HD_ENOMEM;
    keep_order(l, best);
    fewest = count_crossings(l, down);
    for (int sweep = 0; sweep < SWEEPS && fewest > 0; sweep++) {
        size_t crossings;

        for (size_t i = 1; i < l->layer_count; i++)
            order_layer(l, up, i, room);
        for (size_t i = l->layer_count; i-- > 1;)
            order_layer(l, down, i - 1, room);
        crossings = count_crossings(l, down);
        if (crossings < fewest || l->item_count > MAX_COUNTED) {
            fewest = crossings;
            keep_order(l, best);
        }
    }
    restore_order(l, best);
    return 0;
}

/* ---- places ----------------------------------------------------------- */

static double distance(const struct layout_item *a, const struct layout_item *b)
{
    return (a->box.w + b->box.w) / 2 + GAP_X;
}

/*
 * Moves each item of a layer as close to its wish as the others allow: one pass pushes to the
 * right, one to the left, and the mean of both keeps all distances.
 */
static void place_layer(struct level *l, size_t layer)
{
    size_t count = l->layer_sizes[layer];
    const size_t *list = l->layers[layer];

    for (size_t i = 0; i < count; i++) {
        struct layout_item *item = &l->items[list[i]];

        item->box.x = item->wish;
        if (i > 0) {
            const struct layout_item *before = &l->items[list[i - 1]];

            item->box.x = fmax(item->wish, before->box.x + distance(before, item));
        }
    }
    for (size_t i = count; i-- > 0;) {
        struct layout_item *item = &l->items[list[i]];

        if (i + 1 < count) {
            const struct layout_item *after = &l->items[list[i + 1]];

            item->wish = fmin(item->wish, after->wish - distance(item, after));
        }
    }
    for (size_t i = 0; i < count; i++) {
        struct layout_item *item = &l->items[list[i]];

        item->box.x = (item->box.x + item->wish) / 2;
    }
}

static void wish_layer(struct level *l, const struct steps *s, size_t layer)
{
    for (size_t i = 0; i < l->layer_sizes[layer]; i++) {
        struct layout_item *item = &l->items[l->layers[layer][i]];

        item->wish = neighbours_middle(l, s, l->layers[layer][i], false);
    }
    place_layer(l, layer);
}

static void place_x(struct level *l, const struct steps *down, const struct steps *up)
{
    for (size_t i = 0; i < l->layer_count; i++) {
        for (size_t j = 0; j < l->layer_sizes[i]; j++)
            l->items[l->layers[i][j]].wish = 0;
        place_layer(l, i);
    }
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        for (size_t i = 1; i < l->layer_count; i++)
            wish_layer(l, up, i);
        for (size_t i = l->layer_count; i-- > 1;)
            wish_layer(l, down, i - 1);
    }
}

/* Sets the cluster's box, and the items relative to its top left corner. */
static void place_y(struct level *l)
{
    double y = l->cluster == 0 ? PAD : PAD + TITLE_H, left = 0, right = 0;
    struct hd_box *box = &l->layout->clusters[l->cluster];

    for (size_t i = 0; i < l->layer_count; i++) {
        double height = 0;

        for (size_t j = 0; j < l->layer_sizes[i]; j++)
            height = fmax(height, l->items[l->layers[i][j]].box.h);
        for (size_t j = 0; j < l->layer_sizes[i]; j++)
            l->items[l->layers[i][j]].box.y = y + height / 2;
        l->tops[i] = y;
        l->bottoms[i] = y + height;
        y += height + (i + 1 < l->layer_count ? GAP_Y : PAD);
    }
    for (size_t i = 0; i < l->item_count; i++) {
        const struct hd_box *b = &l->items[i].box;

        left = i == 0 ? b->x - b->w / 2 : fmin(left, b->x - b->w / 2);
        right = i == 0 ? b->x + b->w / 2 : fmax(right, b->x + b->w / 2);
    }
    for (size_t i = 0; i < l->item_count; i++)
        l->items[i].box.x += PAD - left;
    box->w = fmax(right - left + 2 * PAD, box->w);
    box->h = y;
}

/* ---- results ---------------------------------------------------------- */

/* Adds the vertical line through a layer, from its top to its bottom. */
static void pass_layer(const struct level *l, const struct layout_item *item,
                       struct hd_point *points)
{
    points[0] = (struct hd_point){item->box.x, l->tops[item->layer]};
    points[1] = (struct hd_point){item->box.x, l->bottoms[item->layer]};
}

static void reverse(struct hd_point *points, size_t count)
{
    for (size_t i = 0; i < count / 2; i++) {
        struct hd_point point = points[i];

        points[i] = points[count - 1 - i];
        points[count - 1 - i] = point;
    }
}

/*
 * Edges are vertical inside layers and bend between them. connect() sets their ends, when all
 * positions are final.
 */
static int keep_line(const struct level *l, const struct link *link)
{
    struct hd_route_line *line = &l->layout->edges[link->edge];
    const struct layout_item *from = &l->items[link->from], *to = &l->items[link->to];
    size_t count = 2 * link->bend_count + 4;

    line->points = hd_arena_calloc(l->arena, count, sizeof(*line->points));
    if (!line->points)
        return HD_ENOMEM;
    line->count = count;
    line->points[1] = (struct hd_point){from->box.x, l->bottoms[from->layer]};
    line->points[count - 2] = (struct hd_point){to->box.x, l->tops[to->layer]};
    for (size_t i = 0; i < link->bend_count; i++) {
        const struct layout_item *item = &l->items[link->bends[i]];

        pass_layer(l, item, line->points + 2 + 2 * i);
        if (item->box.h > 0) {
            line->has_label = true;
            line->label = (struct hd_point){item->box.x, item->box.y};
        }
    }
    if (link->is_turned)
        reverse(line->points, count);
    return 0;
}

static int keep_places(const struct level *l)
{
    int err = 0;

    for (size_t i = 0; i < l->item_count; i++) {
        const struct layout_item *item = &l->items[i];

        if (item->node != NOTHING)
            l->layout->nodes[item->node] = item->box;
        if (item->cluster != NOTHING)
            l->layout->clusters[item->cluster] = item->box;
    }
    for (size_t i = 0; i < l->link_count && err == 0; i++)
        err = keep_line(l, &l->links[i]);
    return err;
}

static int lay_out(struct level *l)
{
    size_t *places = hd_arena_calloc(l->arena, l->drawing->node_count + l->drawing->cluster_count,
                                     sizeof(*places));
    struct steps down, up;
    size_t link_count;
    int err = places ? add_items(l, places) : HD_ENOMEM;

    if (err == 0)
        err = add_links(l, places);
    if (err == 0)
        err = turn_links(l);
    if (err != 0)
        return err;
    apply_turns(l);
    err = find_layers(l);
    if (err != 0)
        return err;
    if (l->item_count < 1000)
        lower_sources(l);
    link_count = l->link_count;
    for (size_t i = 0; i < link_count && err == 0; i++)
        err = add_bends(l, &l->links[i]);
    if (err == 0)
        err = fill_layers(l);
    if (err == 0)
        err = find_steps(l, false, &down);
    if (err == 0)
        err = find_steps(l, true, &up);
    if (err == 0)
        err = order_items(l, &down, &up);
    if (err != 0)
        return err;
    place_x(l, &down, &up);
    place_y(l);
    return keep_places(l);
}

/* ---- the whole picture ------------------------------------------------ */

/*
 * Boxes are relative to the enclosing cluster. A cluster precedes the clusters inside it, so one
 * pass is enough.
 */
static void make_absolute(const struct hd_drawing *d, struct hd_layout *layout)
{
    struct hd_box *clusters = layout->clusters;

    clusters[0].x = clusters[0].w / 2;
    clusters[0].y = clusters[0].h / 2;
    for (size_t i = 1; i < d->cluster_count; i++) {
        const struct hd_box *outer = &clusters[d->clusters[i].parent];

        clusters[i].x += outer->x - outer->w / 2;
        clusters[i].y += outer->y - outer->h / 2;
    }
    for (size_t i = 0; i < d->node_count; i++) {
        const struct hd_box *outer = &clusters[d->nodes[i].cluster];

        layout->nodes[i].x += outer->x - outer->w / 2;
        layout->nodes[i].y += outer->y - outer->h / 2;
    }
}

static size_t common_cluster(const struct hd_drawing *d, const struct hd_drawing_edge *edge)
{
    size_t cluster = d->nodes[edge->from].cluster;

    while (!is_inside(d, d->nodes[edge->to].cluster, cluster))
        cluster = d->clusters[cluster].parent;
    return cluster;
}

static void move_line(const struct hd_box *outer, struct hd_route_line *line)
{
    double x = outer->x - outer->w / 2, y = outer->y - outer->h / 2;

    for (size_t i = 0; i < line->count; i++) {
        line->points[i].x += x;
        line->points[i].y += y;
    }
    line->label.x += x;
    line->label.y += y;
}

/* ---- ends of edges ---------------------------------------------------- */

/* An end of an edge at a box; sorted by box, side and direction. */
struct port {
    size_t owner; /* a node, or a cluster plus the number of nodes */
    bool is_below;
    double toward;
    struct hd_point *end, *next;
};

static int compare_ports(const void *a, const void *b)
{
    const struct port *x = a, *y = b;

    if (x->owner != y->owner)
        return x->owner < y->owner ? -1 : 1;
    if (x->is_below != y->is_below)
        return (int)x->is_below - (int)y->is_below;
    if (x->toward != y->toward)
        return x->toward < y->toward ? -1 : 1;
    return 0;
}

/* Moves an end, and the point next to it, to its position at the border of the box. */
static void set_port(const struct port *port, const struct hd_box *box, double x)
{
    port->end->x = x;
    port->end->y = box->y + (port->is_below ? box->h : -box->h) / 2;
    port->next->x = x;
}

/*
 * Spreads ends around the centre of a node. At a cluster, keeps them away from the centre, which
 * the edges into it cross.
 */
static void spread(const struct hd_drawing *d, const struct hd_layout *layout,
                   const struct port *ports, size_t count)
{
    bool is_node = ports[0].owner < d->node_count;
    const struct hd_box *box = is_node ? &layout->nodes[ports[0].owner]
                                       : &layout->clusters[ports[0].owner - d->node_count];
    double gap = count > 1 ? fmin(PORT_GAP, (box->w - 24) / (double)(count - 1)) : 0;

    for (size_t i = 0; i < count; i++) {
        double x = box->x + gap * ((double)i - (double)(count - 1) / 2);

        if (!is_node)
            x = box->x + (ports[i].toward > box->x ? 1 : -1) * (box->w / 4 + gap * (double)i / 2);
        set_port(&ports[i], box, x);
    }
}

static void spread_ports(const struct hd_drawing *d, const struct hd_layout *layout,
                         struct port *ports, size_t count)
{
    size_t begin = 0;

    if (count > 1)
        qsort(ports, count, sizeof(*ports), compare_ports);
    for (size_t i = 1; i <= count; i++) {
        if (i < count && ports[i].owner == ports[begin].owner &&
            ports[i].is_below == ports[begin].is_below)
            continue;
        spread(d, layout, ports + begin, i - begin);
        begin = i;
    }
}

/*
 * An edge that goes up would cross the nodes above or below in its cluster, so it starts or ends at
 * the border of the cluster.
 */
static size_t owner_of(const struct hd_drawing *d, size_t node, size_t common, bool goes_down)
{
    size_t cluster = d->nodes[node].cluster;

    if (goes_down || cluster == common)
        return node;
    return d->node_count + child_cluster(d, common, cluster);
}

static int connect(struct hd_drawing *d, struct hd_arena *arena, struct hd_layout *layout)
{
    struct port *ports = hd_arena_calloc(arena, 2 * d->edge_count + 1, sizeof(*ports));
    size_t count = 0;

    if (!ports)
        return HD_ENOMEM;
    for (size_t i = 0; i < d->edge_count; i++) {
        const struct hd_drawing_edge *edge = &d->edges[i];
        struct hd_route_line *line = &layout->edges[i];
        bool goes_down = layout->nodes[edge->from].y < layout->nodes[edge->to].y;
        size_t common = common_cluster(d, edge);
        struct hd_point *first = line->points, *last;

        if (line->count == 0)
            continue;
        last = first + line->count - 1;
        ports[count++] = (struct port){owner_of(d, edge->from, common, goes_down), goes_down,
                                       first[2].x, first, first + 1};
        ports[count++] = (struct port){owner_of(d, edge->to, common, goes_down), !goes_down,
                                       last[-2].x, last, last - 1};
    }
    spread_ports(d, layout, ports, count);
    return 0;
}

int hd_layout_make(struct hd_drawing *drawing, struct hd_arena *arena, struct hd_layout *layout)
{
    size_t bends_left = MAX_BENDS;
    int err = 0;

    /* A cluster follows the one around it in the list, so this is innermost first. */
    for (size_t i = drawing->cluster_count; i-- > 0 && err == 0;) {
        struct level level = {.drawing = drawing,
                              .arena = arena,
                              .layout = layout,
                              .cluster = i,
                              .bends_left = &bends_left};

        err = lay_out(&level);
    }
    if (err != 0)
        return err;
    make_absolute(drawing, layout);
    for (size_t i = 0; i < drawing->edge_count; i++)
        move_line(&layout->clusters[common_cluster(drawing, &drawing->edges[i])],
                  &layout->edges[i]);
    return connect(drawing, arena, layout);
}
