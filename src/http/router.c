/*
 * A tree of segments. Each node has its fixed children sorted by text (binary search), at most one
 * child that matches any segment, and at most one that matches the rest of the path. A walk tries
 * them in that order and backtracks when a branch lacks the method; the route table bounds the
 * work.
 */
#include "http/router.h"

#include "base/alloc.h"
#include "http/query.h"

#define NO_ROUTE ((size_t)-1)
#define METHODS (HD_METHOD_OPTIONS + 1)

struct node {
    struct hd_slice text; /* of a fixed segment */
    struct node **fixed;  /* sorted by text */
    size_t fixed_count;
    struct node *any;
    struct node *rest;
    unsigned methods;
    size_t routes[METHODS];
};

struct route {
    struct hd_slice names[HD_ROUTER_MAX_PARAMS];
    size_t name_count;
};

struct hd_router {
    struct node root;
    struct route *routes;
    size_t count;
    struct hd_arena arena; /* all nodes, names and texts */
};

static void node_init(struct node *node, struct hd_slice text)
{
    *node = (struct node){.text = text};
    for (size_t i = 0; i < METHODS; i++)
        node->routes[i] = NO_ROUTE;
}

static struct node *node_create(struct hd_router *router, struct hd_slice text)
{
    struct node *node = hd_arena_alloc(&router->arena, sizeof(*node));

    if (node)
        node_init(node, text);
    return node;
}

/* Splits off the next segment; false at the end. `path` has no leading slash. */
static bool next_segment(struct hd_slice *path, struct hd_slice *segment)
{
    const char *slash;

    if (!path->ptr)
        return false;
    slash = path->len ? memchr(path->ptr, '/', path->len) : NULL;
    *segment = hd_slice(path->ptr, slash ? (size_t)(slash - path->ptr) : path->len);
    *path = slash ? hd_slice(slash + 1, path->len - segment->len - 1) : hd_slice(NULL, 0);
    return true;
}

/* Removes leading slashes and one trailing slash; ptr is NULL when nothing is left. */
static struct hd_slice strip(struct hd_slice path)
{
    while (path.len > 0 && path.ptr[0] == '/')
        path = hd_slice(path.ptr + 1, path.len - 1);
    if (path.len > 0 && path.ptr[path.len - 1] == '/')
        path.len--;
    return path.len > 0 ? path : hd_slice(NULL, 0);
}

/* The index of a fixed child with this text, or its insertion point. */
static size_t find_fixed_child(const struct node *node, struct hd_slice text, bool *found)
{
    size_t low = 0, high = node->fixed_count;

    *found = false;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = hd_slice_cmp(node->fixed[middle]->text, text);

        if (order == 0) {
            *found = true;
            return middle;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int fixed_child(struct hd_router *router, struct node *node, struct hd_slice text,
                       struct node **out)
{
    struct node **children, *child;
    bool found;
    size_t at = find_fixed_child(node, text, &found);

    if (found) {
        *out = node->fixed[at];
        return 0;
    }
    children = hd_arena_alloc(&router->arena, (node->fixed_count + 1) * sizeof(struct node *));
    child = node_create(router, text);
    if (!children || !child)
        return HD_ENOMEM;
    for (size_t i = 0; i < node->fixed_count; i++)
        children[i + (i >= at)] = node->fixed[i];
    children[at] = child;
    node->fixed = children;
    node->fixed_count++;
    *out = child;
    return 0;
}

static int open_child(struct hd_router *router, struct node **child, struct node **out)
{
    if (!*child)
        *child = node_create(router, hd_slice(NULL, 0));
    *out = *child;
    return *child ? 0 : HD_ENOMEM;
}

/* One segment of a pattern: "{name}", "{name*}" (last only) or fixed text. */
static int add_segment(struct hd_router *router, struct route *route, struct hd_slice segment,
                       bool is_last, struct node **node)
{
    struct hd_slice name;
    bool is_rest;

    if (segment.len == 0)
        return HD_EINVAL;
    if (segment.ptr[0] != '{')
        return memchr(segment.ptr, '{', segment.len) ? HD_EINVAL
                                                     : fixed_child(router, *node, segment, node);
    if (segment.len < 3 || segment.ptr[segment.len - 1] != '}')
        return HD_EINVAL;
    name = hd_slice(segment.ptr + 1, segment.len - 2);
    is_rest = name.ptr[name.len - 1] == '*';
    name.len -= is_rest;
    if (name.len == 0 || (is_rest && !is_last) || route->name_count == HD_ROUTER_MAX_PARAMS)
        return HD_EINVAL;
    route->names[route->name_count++] = name;
    return open_child(router, is_rest ? &(*node)->rest : &(*node)->any, node);
}

static int add_route(struct hd_router *router, size_t index, const struct hd_router_entry *entry)
{
    struct node *node = &router->root;
    struct hd_slice path, segment;
    size_t segments = 0;
    int err;

    if (!entry->pattern || entry->pattern[0] != '/' || entry->method == HD_METHOD_OTHER ||
        entry->method == HD_METHOD_HEAD || entry->method == HD_METHOD_OPTIONS)
        return HD_EINVAL;
    err = hd_arena_copy(&router->arena, hd_slice_cstr(entry->pattern + 1), &path);
    if (err)
        return err;
    if (path.len == 0)
        path.ptr = NULL;
    while (next_segment(&path, &segment)) {
        if (++segments > HD_ROUTER_MAX_SEGMENTS)
            return HD_EINVAL;
        err = add_segment(router, &router->routes[index], segment, !path.ptr, &node);
        if (err)
            return err;
    }
    if (node->routes[entry->method] != NO_ROUTE)
        return HD_EINVAL;
    node->routes[entry->method] = index;
    node->methods |= HD_METHOD_BIT(entry->method);
    if (entry->method == HD_METHOD_GET)
        node->methods |= HD_METHOD_BIT(HD_METHOD_HEAD);
    return 0;
}

int hd_router_create(struct hd_router **out, const struct hd_router_entry *entries, size_t count,
                     struct heddle_error *fault)
{
    struct hd_router *router = hd_calloc(1, sizeof(*router));
    int err = 0;

    if (!router)
        return HD_ENOMEM;
    hd_arena_init(&router->arena, (size_t)16 << 20);
    node_init(&router->root, hd_slice(NULL, 0));
    router->count = count;
    router->routes = hd_arena_calloc(&router->arena, count, sizeof(*router->routes));
    if (!router->routes)
        err = HD_ENOMEM;
    for (size_t i = 0; !err && i < count; i++) {
        err = add_route(router, i, &entries[i]);
        if (err == HD_EINVAL)
            (void)hd_error_set(fault, err, "route %s %s is malformed or a duplicate",
                               hd_method_name(entries[i].method),
                               entries[i].pattern ? entries[i].pattern : "(none)");
    }
    if (err) {
        hd_router_destroy(router);
        return err;
    }
    *out = router;
    return 0;
}

void hd_router_destroy(struct hd_router *router)
{
    if (!router)
        return;
    hd_arena_fini(&router->arena);
    hd_free(router);
}

/* The state of a match. */
struct route_walk {
    enum hd_method method;
    struct hd_slice raw[HD_ROUTER_MAX_SEGMENTS + 1];
    struct hd_slice text[HD_ROUTER_MAX_SEGMENTS + 1]; /* decoded */
    size_t count;
    const char *end; /* end of the path, for the parameter that takes the rest */
    bool takes_rest;
    struct hd_match *match;
};

static bool arrive(struct route_walk *walk, const struct node *node)
{
    enum hd_method method = walk->method == HD_METHOD_HEAD ? HD_METHOD_GET : walk->method;

    walk->match->methods |= node->methods;
    if (node->routes[method] == NO_ROUTE)
        return false;
    walk->match->route = node->routes[method];
    return true;
}

static bool arrive_with_rest(struct route_walk *walk, const struct node *node, size_t depth)
{
    struct hd_match *match = walk->match;
    const char *begin = walk->raw[depth].ptr;

    match->params[match->param_count++] = hd_slice(begin, (size_t)(walk->end - begin));
    walk->takes_rest = arrive(walk, node);
    match->param_count -= !walk->takes_rest;
    return walk->takes_rest;
}

static bool descend(struct route_walk *walk, const struct node *node, size_t depth)
{
    struct hd_match *match = walk->match;
    bool found;
    size_t at;

    if (depth == walk->count)
        return arrive(walk, node);
    at = find_fixed_child(node, walk->text[depth], &found);
    if (found && descend(walk, node->fixed[at], depth + 1))
        return true;
    if (walk->text[depth].len == 0)
        return false;
    if (node->any) {
        match->params[match->param_count++] = walk->text[depth];
        if (descend(walk, node->any, depth + 1))
            return true;
        match->param_count--;
    }
    return node->rest && arrive_with_rest(walk, node->rest, depth);
}

/*
 * Segments are decoded after splitting: a %2F does not separate them. If there are more segments
 * than in any pattern, only a "{name*}" can match, which needs the start of its first one.
 */
static int cut_segments(struct route_walk *walk, struct hd_slice path, struct hd_arena *arena)
{
    int err;

    while (walk->count < HD_COUNT(walk->raw) && next_segment(&path, &walk->raw[walk->count])) {
        err = hd_percent_decode(walk->raw[walk->count], false, arena, &walk->text[walk->count]);
        if (err)
            return err;
        walk->count++;
    }
    return 0;
}

static enum hd_match_kind match_kind(bool is_found, enum hd_method method, unsigned methods)
{
    if (is_found)
        return HD_MATCH_FOUND;
    if (methods == 0)
        return HD_MATCH_NO_PATH;
    return method == HD_METHOD_OPTIONS ? HD_MATCH_OPTIONS : HD_MATCH_NO_METHOD;
}

int hd_router_match(const struct hd_router *router, enum hd_method method, struct hd_slice path,
                    struct hd_arena *arena, struct hd_match *out)
{
    struct route_walk walk = {.method = method, .match = out};
    bool is_found;
    int err;

    *out = (struct hd_match){.route = NO_ROUTE};
    path = strip(path);
    walk.end = path.ptr ? path.ptr + path.len : NULL;
    err = cut_segments(&walk, path, arena);
    if (!err) {
        is_found = descend(&walk, &router->root, 0);
        out->kind = match_kind(is_found, method, out->methods);
        if (out->methods)
            out->methods |= HD_METHOD_BIT(HD_METHOD_OPTIONS);
    }
    if (!err && walk.takes_rest) {
        struct hd_slice *rest = &out->params[out->param_count - 1];

        err = hd_percent_decode(*rest, false, arena, rest);
    }
    if (err == HD_EINVAL) {
        out->kind = HD_MATCH_MALFORMED;
        err = 0;
    }
    return err;
}

struct hd_slice hd_router_param_name(const struct hd_router *router, size_t route, size_t n)
{
    if (route >= router->count || n >= router->routes[route].name_count)
        return hd_slice("", 0);
    return router->routes[route].names[n];
}
