/*
 * Pruning against a model, on random trees: forks, several namespaces, those of subgraphs, delta
 * channels, old checkpoints whose sends are in their parent's writes, named heads.
 *
 * The model is as simple as possible: the rules of heddle.h, one after the other, until nothing
 * changes. And every remaining checkpoint must read as before.
 *
 *   HEDDLE_TEST_SEED    the first seed (1)
 *   HEDDLE_KEEP_TREES   how many trees each case prunes (12)
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "store/prune.h"
#include "tests/contract/store_help.h"

enum { SPACES = 4, NODES = 40, DELTAS = 2, NONE = -1, ID_SIZE = 16 };

/* The last one belongs to tasks of the first, the one before it to none. */
static const char *const spaces[SPACES] = {"", "assistant:x", "n", "n:task"};
static const char *const deltas[DELTAS] = {"d", "e"};

struct node {
    char id[ID_SIZE];
    int parent;
    int owner; /* a node of space 0, or NONE */
    int v;
    unsigned open;  /* delta channels that are counted and have no value here */
    unsigned seeds; /* … that have a value here */
    bool has_sends;
    bool is_named;
    bool is_kept;
    char *before; /* how it read: without its parent */
    char *histories[DELTAS];
};

struct tree {
    struct fixture *f;
    uint64_t random;
    struct node nodes[SPACES][NODES];
    int counts[SPACES];
    size_t last;
};

static unsigned pick(struct tree *t, unsigned count)
{
    t->random = t->random * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)((t->random >> 33) % count);
}

/* ---- growing ---- */

static void put_node(struct tree *t, int space, int n)
{
    struct node *node = &t->nodes[space][n];
    char checkpoint[400], metadata[300], counters[60] = "", versions[200], parents[60] = "";
    char *big = long_json(300 + pick(t, 3000), pick(t, 8));
    struct put put = {.thread = "t", .ns = spaces[space], .id = node->id};
    int values = 0;

    snprintf(versions, sizeof(versions), "{\"a\":\"%s\",\"d\":\"%s\",\"e\":\"%s\"}", node->id,
             node->id, node->id);
    snprintf(checkpoint, sizeof(checkpoint), "{\"v\":%d,\"id\":\"%s\",\"channel_versions\":%s}",
             node->v, node->id, versions);
    for (int c = 0; c < DELTAS; c++) {
        if (node->open >> c & 1)
            snprintf(counters + strlen(counters), sizeof(counters) - strlen(counters),
                     "%s\"%s\":[1,1]", counters[0] ? "," : "", deltas[c]);
        if (node->seeds >> c & 1)
            put.values[values++] =
                (struct heddle_value){text(deltas[c]), text("json"), text(node->id)};
    }
    if (node->owner != NONE)
        snprintf(parents, sizeof(parents), "\"\":\"%s\"", t->nodes[0][node->owner].id);
    snprintf(metadata, sizeof(metadata),
             "{\"parents\":{%s},\"counters_since_delta_snapshot\":{%s}}", parents, counters);
    put.values[values] = (struct heddle_value){text("a"), text("json"), text(big)};
    put.parent = node->parent == NONE ? "" : t->nodes[space][node->parent].id;
    put.checkpoint = checkpoint;
    put.versions = versions;
    put.metadata = metadata;
    assert_ok(try_put(t->f->store, &put, NULL));
    free(big);
}

static void put_writes(struct tree *t, int space, int n)
{
    struct node *node = &t->nodes[space][n];
    char *big = long_json(200, pick(t, 1000));

    WRITES(t->f->store, .thread = "t", .ns = spaces[space], .id = node->id, .task = "k",
           .values = {VALUE("d", "[1]"), VALUE("e", "[2]"), {text("a"), text("json"), text(big)}});
    if (node->has_sends)
        WRITES(t->f->store, .thread = "t", .ns = spaces[space], .id = node->id, .task = "s",
               .values = {VALUE("__pregel_tasks", "\"send\"")});
    free(big);
}

static void add_node(struct tree *t, int space)
{
    int n = t->counts[space]++;
    struct node *node = &t->nodes[space][n];
    int length = t->counts[0];

    memset(node, 0, sizeof(*node));
    /* Ids mostly grow with time, and need not. */
    snprintf(node->id, sizeof(node->id), "%03u-%02d",
             pick(t, 10) ? 100u + (unsigned)n : pick(t, 99), n);
    node->parent = n == 0 || pick(t, 30) == 0 ? NONE : n - 1;
    if (n > 1 && pick(t, 6) == 0)
        node->parent = (int)pick(t, (unsigned)n);
    node->owner = space == 3 && length > 0 && pick(t, 10) ? (int)pick(t, (unsigned)length) : NONE;
    node->v = pick(t, 4) ? 4 : 3;
    node->has_sends = pick(t, 4) == 0;
    node->is_named = pick(t, 12) == 0;
    for (int c = 0; c < DELTAS; c++) {
        if (space == 2 || pick(t, 3) == 0) /* a value now and then; the others go back to one */
            node->seeds |= 1u << c;
        else if (space != 1 || c == 0)
            node->open |= 1u << c;
    }
    put_node(t, space, n);
    put_writes(t, space, n);
}

static void grow(struct tree *t, struct fixture *f, unsigned seed)
{
    memset(t, 0, sizeof(*t));
    t->f = f;
    t->random = seed * 7919u + 17;
    t->last = 1 + pick(t, 4);
    for (int space = 0; space < SPACES; space++) {
        int count = 3 + (int)pick(t, NODES - 3);

        while (t->counts[space] < count)
            add_node(t, space);
    }
}

/* ---- the model ---- */

static int above(const struct node *nodes, int n)
{
    do
        n = nodes[n].parent;
    while (n != NONE && !nodes[n].is_kept);
    return n;
}

static bool keep(struct node *nodes, int n)
{
    bool is_new = n != NONE && !nodes[n].is_kept;

    if (is_new)
        nodes[n].is_kept = true;
    return is_new;
}

/* Everything that a node which stays needs; true: something came to it. */
static bool keep_needs(struct node *nodes, int n)
{
    bool has_changed = false;
    int parent = nodes[n].parent, greater = nodes[n].parent;

    while (greater != NONE && strcmp(nodes[greater].id, nodes[n].id) < 0)
        greater = nodes[greater].parent;
    has_changed |= keep(nodes, greater);
    for (int c = 0; c < DELTAS; c++) {
        for (int at = n; nodes[n].open >> c & 1 && at != NONE && !(nodes[at].seeds >> c & 1);) {
            at = nodes[at].parent;
            has_changed |= keep(nodes, at);
        }
    }
    if (nodes[n].v < 4 && parent != NONE && nodes[parent].has_sends)
        has_changed |= keep(nodes, parent);
    parent = above(nodes, n);
    if (nodes[n].v < 4 && parent != NONE && parent != nodes[n].parent && nodes[parent].has_sends) {
        while (nodes[n].parent != parent)
            n = nodes[n].parent;
        has_changed |= keep(nodes, n);
    }
    return has_changed;
}

static bool is_orphan(const struct tree *t, int space, int n)
{
    int owner = t->nodes[space][n].owner;

    return !t->nodes[space][n].is_named && owner != NONE && !t->nodes[0][owner].is_kept;
}

static void model_space(struct tree *t, int space)
{
    struct node *nodes = t->nodes[space];
    bool has_changed = true;

    for (int n = 0; n < t->counts[space]; n++) {
        int children = 0, at = n;

        if (is_orphan(t, space, n))
            continue;
        for (int child = 0; child < t->counts[space]; child++)
            children += nodes[child].parent == n && !is_orphan(t, space, child);
        if (children > 1)
            nodes[n].is_kept = true;
        for (size_t i = 0; (children == 0 || nodes[n].is_named) && i < t->last && at != NONE; i++) {
            if (is_orphan(t, space, at))
                break;
            nodes[at].is_kept = true;
            at = nodes[at].parent;
        }
    }
    while (has_changed) {
        has_changed = false;
        for (int n = 0; n < t->counts[space]; n++)
            has_changed |= nodes[n].is_kept && keep_needs(nodes, n);
    }
}

/* ---- comparing ---- */

/* Without the parent: "id<parent rest" is "id rest". */
static char *read_node(struct tree *t, int space, const struct node *node)
{
    char *got = render_get(t->f->store, "t", spaces[space], node->id);
    char *from = strchr(got, '<'), *to = from ? from + strcspn(from, " ") : NULL;

    if (from)
        memmove(from, to, strlen(to) + 1);
    return got;
}

static void remember(struct tree *t)
{
    for (int space = 0; space < SPACES; space++) {
        for (int n = 0; n < t->counts[space]; n++) {
            struct node *node = &t->nodes[space][n];

            node->before = read_node(t, space, node);
            for (int c = 0; c < DELTAS; c++)
                node->histories[c] =
                    render_history(t->f->store, "t", spaces[space], node->id, deltas[c]);
        }
    }
}

static void check_node(struct tree *t, int space, int n)
{
    const struct node *node = &t->nodes[space][n];
    int parent = node->parent == NONE ? NONE : above(t->nodes[space], n);
    struct heddle_tuple *tuple;

    if (!node->is_kept) {
        assert_get(t->f->store, "t", spaces[space], node->id, "none");
        return;
    }
    tuple = must_get(t->f->store, "t", spaces[space], node->id);
    if (parent == NONE)
        assert_int_equal(tuple->parent.len, 0);
    else
        assert_memory_equal(tuple->parent.data, t->nodes[space][parent].id, tuple->parent.len);
    heddle_tuple_free(tuple);
    assert_text(read_node(t, space, node), node->before);
    for (int c = 0; c < DELTAS; c++) {
        if (node->open >> c & 1)
            assert_text(render_history(t->f->store, "t", spaces[space], node->id, deltas[c]),
                        node->histories[c]);
    }
}

static void check_all(struct tree *t)
{
    for (int space = 0; space < SPACES; space++) {
        for (int n = 0; n < t->counts[space]; n++)
            check_node(t, space, n);
    }
}

static void forget(struct tree *t)
{
    for (int space = 0; space < SPACES; space++) {
        for (int n = 0; n < t->counts[space]; n++) {
            free(t->nodes[space][n].before);
            for (int c = 0; c < DELTAS; c++)
                free(t->nodes[space][n].histories[c]);
        }
    }
}

static void assert_usage(struct heddle_usage a, struct heddle_usage b)
{
    assert_int_equal(a.checkpoints, b.checkpoints);
    assert_int_equal(a.writes, b.writes);
    assert_int_equal(a.chunks, b.chunks);
    assert_int_equal(a.bytes, b.bytes);
}

static struct heddle_usage less(struct heddle_usage a, struct heddle_usage b)
{
    return (struct heddle_usage){a.checkpoints - b.checkpoints, a.writes - b.writes,
                                 a.chunks - b.chunks, a.bytes - b.bytes};
}

/* ---- cases ---- */

static long number_from(const char *name, long standard)
{
    const char *text_of = getenv(name);

    return text_of ? strtol(text_of, NULL, 10) : standard;
}

static struct heddle_usage prune(struct tree *t, enum heddle_prune strategy, int dry_run)
{
    static struct heddle_key heads[SPACES * NODES];
    struct heddle_prune_options options = {
        .strategy = strategy, .keep_last = t->last, .heads = heads, .dry_run = dry_run};
    struct heddle_thread thread = thread_of("t");
    struct heddle_usage removed = {0};

    for (int space = 0; space < SPACES; space++) {
        for (int n = 0; n < t->counts[space]; n++) {
            if (t->nodes[space][n].is_named)
                heads[options.head_count++] =
                    (struct heddle_key){thread, text(spaces[space]), text(t->nodes[space][n].id)};
        }
    }
    heads[options.head_count++] = (struct heddle_key){thread, text("none"), text("none")};
    assert_ok(heddle_prune_with(t->f->store, &thread, 1, &options, &removed, NULL));
    return removed;
}

/* The remaining checkpoints match the model, and the thread has no rows in the end. */
static void check_and_forget(struct tree *t, struct fixture *f, bool is_reopened)
{
    struct heddle_thread thread = thread_of("t");

    check_all(t);
    if (is_reopened)
        reopen(f);
    check_all(t);
    forget(t);
    assert_ok(heddle_delete_thread(f->store, &thread, NULL));
    assert_int_equal(usage_of(f->store, "t").bytes, 0);
}

/* Prunes one tree after the other, each in a thread that is deleted then. */
static void prune_trees(struct fixture *f, enum heddle_prune strategy, void (*model)(struct tree *))
{
    unsigned seed = (unsigned)number_from("HEDDLE_TEST_SEED", 1);
    long trees = number_from("HEDDLE_KEEP_TREES", 12);

    for (long i = 0; i < trees; i++, seed++) {
        static struct tree t;
        struct heddle_usage before, foreseen, removed;

        grow(&t, f, seed);
        remember(&t);
        before = usage_of(f->store, "t");
        model(&t);
        foreseen = prune(&t, strategy, 1);
        assert_usage(usage_of(f->store, "t"), before);
        removed = prune(&t, strategy, 0);
        assert_usage(foreseen, removed);
        assert_usage(less(before, usage_of(f->store, "t")), removed);
        check_and_forget(&t, f, i % 3 == 0);
    }
}

static void model_branches(struct tree *t)
{
    for (int space = 0; space < SPACES; space++)
        model_space(t, space);
}

static void branches_are_kept_as_the_model_says(struct fixture *f)
{
    prune_trees(f, HEDDLE_KEEP_BRANCHES, model_branches);
}

/*
 * Its parent keeps its id and may be gone; so only the removed ones are compared with the counts.
 */
static void what_would_go_is_what_goes(struct fixture *f)
{
    struct heddle_thread thread = thread_of("t");

    for (unsigned seed = 1; seed <= 3; seed++) {
        static const enum heddle_prune strategies[] = {HEDDLE_KEEP_LATEST, HEDDLE_KEEP_BRANCHES,
                                                       HEDDLE_DELETE_ALL};

        for (size_t i = 0; i < COUNT_OF(strategies); i++) {
            static struct tree t;
            struct heddle_usage before, foreseen;

            grow(&t, f, seed);
            before = usage_of(f->store, "t");
            foreseen = prune(&t, strategies[i], 1);
            assert_usage(usage_of(f->store, "t"), before);
            assert_usage(prune(&t, strategies[i], 0), foreseen);
            assert_usage(less(before, usage_of(f->store, "t")), foreseen);
            assert_true(foreseen.bytes > 0 && foreseen.checkpoints > 0);
            assert_ok(heddle_delete_thread(f->store, &thread, NULL));
        }
    }
}

/* ---- branches that fall ---- */

/* hd_prune_thread() with `fall`, and an operation that is applied with it; returns its code. */
static int try_fall(struct fixture *f, const char *ns, const char *id, bool is_dry,
                    const struct hd_batch *also, struct heddle_usage *removed)
{
    struct heddle_thread thread = thread_of("t");
    struct hd_key key = {.ns = hd_slice_cstr(ns), .id = hd_slice_cstr(id)};
    struct hd_prune_options how = {
        .fall = &key, .is_dry = is_dry, .also = also, .removed = removed};
    struct heddle_error fault = {0};
    struct hd_arena arena;
    int err;

    hd_arena_init(&arena, 4096);
    assert_int_equal(hd_store_thread_key(&thread, &arena, &key.thread, &fault), 0);
    err = hd_prune_thread(hd_store_of(f->store), key.thread, &how, &fault);
    hd_arena_fini(&arena);
    return err;
}

static void model_fall(struct tree *t, int fallen_space, int fallen)
{
    for (int space = 0; space < SPACES; space++) {
        struct node *nodes = t->nodes[space];
        bool has_changed = true;

        for (int n = 0; n < t->counts[space]; n++) {
            int owner = nodes[n].owner, at = n;

            nodes[n].is_kept = owner == NONE || t->nodes[0][owner].is_kept;
            while (space == fallen_space && at != NONE && at != fallen)
                at = nodes[at].parent;
            nodes[n].is_kept &= space != fallen_space || at == NONE;
        }
        while (has_changed) {
            has_changed = false;
            for (int n = 0; n < t->counts[space]; n++)
                has_changed |= nodes[n].is_kept && keep_needs(nodes, n);
        }
    }
}

static void branches_fall_as_the_model_says(struct fixture *f)
{
    unsigned seed = (unsigned)number_from("HEDDLE_TEST_SEED", 1);
    long trees = number_from("HEDDLE_KEEP_TREES", 12);

    for (long i = 0; i < trees; i++, seed++) {
        static struct tree t;
        struct heddle_usage before, foreseen = {0}, removed = {0};
        int space, n;

        grow(&t, f, seed);
        space = i % 2 ? 0 : (int)pick(&t, SPACES);
        n = (int)pick(&t, (unsigned)t.counts[space]);
        remember(&t);
        before = usage_of(f->store, "t");
        model_fall(&t, space, n);
        assert_int_equal(try_fall(f, spaces[space], t.nodes[space][n].id, true, NULL, &foreseen),
                         0);
        assert_usage(usage_of(f->store, "t"), before);
        assert_int_equal(try_fall(f, spaces[space], t.nodes[space][n].id, false, NULL, &removed),
                         0);
        assert_usage(foreseen, removed);
        assert_true(removed.checkpoints > 0);
        assert_usage(less(before, usage_of(f->store, "t")), removed);
        check_and_forget(&t, f, i % 3 == 0);
    }
}

/* ---- paths ---- */

static void keep_path(struct fixture *f, const char *id, struct heddle_usage *removed)
{
    struct heddle_thread thread = thread_of("t");
    struct hd_key head = {.ns = HD_S(""), .id = hd_slice_cstr(id)};
    const struct hd_prune_options how = {
        .keeps_paths = true, .heads = &head, .head_count = 1, .removed = removed};
    struct heddle_error fault = {0};
    struct hd_arena arena;

    hd_arena_init(&arena, 4096);
    assert_int_equal(hd_store_thread_key(&thread, &arena, &head.thread, &fault), 0);
    assert_int_equal(hd_prune_thread(hd_store_of(f->store), head.thread, &how, &fault), 0);
    hd_arena_fini(&arena);
}

static void model_path(struct tree *t, int head)
{
    for (int space = 0; space < SPACES; space++) {
        struct node *nodes = t->nodes[space];
        bool has_changed = true;

        for (int n = 0; n < t->counts[space]; n++) {
            int owner = nodes[n].owner;

            nodes[n].is_kept = space > 0 && owner != NONE && t->nodes[0][owner].is_kept;
        }
        for (int at = head; space == 0 && at != NONE; at = nodes[at].parent)
            nodes[at].is_kept = true;
        while (has_changed) {
            has_changed = false;
            for (int n = 0; n < t->counts[space]; n++)
                has_changed |= nodes[n].is_kept && keep_needs(nodes, n);
        }
    }
}

static void a_path_is_kept_as_the_model_says(struct fixture *f)
{
    unsigned seed = (unsigned)number_from("HEDDLE_TEST_SEED", 1);
    long trees = number_from("HEDDLE_KEEP_TREES", 12);

    for (long i = 0; i < trees; i++, seed++) {
        static struct tree t;
        struct heddle_usage before, removed = {0};
        int head;

        grow(&t, f, seed);
        head = (int)pick(&t, (unsigned)t.counts[0]);
        remember(&t);
        before = usage_of(f->store, "t");
        model_path(&t, head);
        keep_path(f, t.nodes[0][head].id, &removed);
        assert_usage(less(before, usage_of(f->store, "t")), removed);
        check_and_forget(&t, f, i % 3 == 0);
    }
}

static void only_the_path_to_the_head_stays(struct fixture *f)
{
    static const char *const parents[][2] = {{"1", ""},  {"2", "1"}, {"3", "2"}, {"4", "3"},
                                             {"5", "2"}, {"6", "5"}, {"7", "1"}, {"8", ""}};

    for (size_t i = 0; i < COUNT_OF(parents); i++)
        PUT(f->store, .thread = "t", .id = parents[i][0], .parent = parents[i][1]);
    PUT(f->store, .thread = "t", .ns = "other", .id = "9");
    keep_path(f, "5", NULL);
    assert_list(f->store, "t//5 t//2 t//1");
    keep_path(f, "5", NULL);
    assert_list(f->store, "t//5 t//2 t//1");
}

/* ---- what falls ---- */

static void what_fell_already_is_no_error(struct fixture *f)
{
    struct heddle_usage before, removed = {0};

    PUT(f->store, .thread = "t", .id = "1", .versions = "{\"a\":1}", .values = {VALUE("a", "1")});
    PUT(f->store, .thread = "t", .id = "2", .parent = "1");
    PUT(f->store, .thread = "t", .id = "3", .parent = "1");
    before = usage_of(f->store, "t");
    assert_int_equal(try_fall(f, "", "4", false, NULL, &removed), 0);
    assert_int_equal(try_fall(f, "n", "2", false, NULL, &removed), 0);
    assert_int_equal(removed.checkpoints + removed.bytes, 0);
    assert_usage(usage_of(f->store, "t"), before);
    assert_int_equal(try_fall(f, "", "2", false, NULL, &removed), 0);
    assert_int_equal(try_fall(f, "", "2", false, NULL, &removed), 0);
    assert_int_equal(removed.checkpoints, 1);
    assert_list(f->store, "t//3 t//1");
    assert_int_equal(try_fall(f, "", "1", false, NULL, NULL), 0);
    assert_list(f->store, "");
}

/* More than one portion, all or nothing: the additional expectation fails, or holds. */
static void a_branch_falls_at_once(struct fixture *f)
{
    const struct hd_cell key[] = {hd_cell_bytes(HD_S("")), hd_cell_bytes(HD_S("none"))};
    struct hd_batch_builder batch;
    struct heddle_usage before, removed = {0};
    struct hd_batch also;
    char id[ID_SIZE], parent[ID_SIZE] = "";

    for (int i = 0; i < 1100; i++) {
        snprintf(id, sizeof(id), "%05d", i);
        PUT(f->store, .thread = "t", .id = id, .parent = parent, .versions = "{\"a\":1}",
            .values = {VALUE("a", "1")});
        snprintf(parent, sizeof(parent), "%s", id);
    }
    before = usage_of(f->store, "t");
    hd_batch_init(&batch);
    assert_int_equal(hd_batch_expect(&batch, HD_THREAD_INFO, key, HD_THREAD_INFO_REV, 7), 0);
    also = hd_batch_view(&batch);
    assert_int_equal(try_fall(f, "", "00002", false, &also, NULL), HD_ECONFLICT);
    hd_batch_fini(&batch);
    assert_usage(usage_of(f->store, "t"), before);
    assert_int_equal(try_fall(f, "", "00002", false, NULL, &removed), 0);
    assert_int_equal(removed.checkpoints, 1098);
    assert_list(f->store, "t//00001 t//00000");
}

static void circles_lose_only_what_falls(struct fixture *f)
{
    PUT(f->store, .thread = "t", .id = "1", .parent = "3");
    PUT(f->store, .thread = "t", .id = "2", .parent = "1");
    PUT(f->store, .thread = "t", .id = "3", .parent = "2");
    PUT(f->store, .thread = "t", .id = "4", .parent = "1");
    PUT(f->store, .thread = "t", .id = "6", .parent = "6");
    PUT(f->store, .thread = "t", .id = "7", .parent = "6");
    assert_int_equal(try_fall(f, "", "1", false, NULL, NULL), 0);
    assert_list(f->store, "t//7 t//6 t//3 t//2");
    assert_int_equal(try_fall(f, "", "6", false, NULL, NULL), 0);
    assert_list(f->store, "t//3 t//2");
}

static void long_lines_go_in_portions(struct fixture *f)
{
    struct heddle_thread thread = thread_of("t");
    struct heddle_prune_options options = {.strategy = HEDDLE_KEEP_BRANCHES, .keep_last = 2};
    struct heddle_usage removed;
    char id[ID_SIZE], parent[ID_SIZE] = "";

    for (int i = 0; i < 1300; i++) {
        snprintf(id, sizeof(id), "%05d", i);
        PUT(f->store, .thread = "t", .id = id, .parent = parent, .versions = "{\"a\":1}",
            .values = {VALUE("a", "1")});
        snprintf(parent, sizeof(parent), "%s", id);
    }
    PUT(f->store, .thread = "t", .id = "x", .parent = "00700", .versions = "{\"a\":2}",
        .values = {VALUE("a", "2")});
    assert_ok(heddle_prune_with(f->store, &thread, 1, &options, &removed, NULL));
    assert_int_equal(removed.checkpoints, 1300 + 1 - 4);
    assert_ok(heddle_prune_with(f->store, &thread, 1, &options, &removed, NULL));
    assert_int_equal(removed.checkpoints, 0); /* once is enough */
    assert_get(f->store, "t", "", "x", "x<00700 a=json:2");
    assert_get(f->store, "t", "", "00700", "00700< a=json:1");
    assert_get(f->store, "t", "", "01298", "01298<00700 a=json:1");
    assert_get(f->store, "t", "", "01299", "01299<01298 a=json:1");
}

/* 9 is the parent of strays: 4 and its descendants are newer than 7 as long as 9 exists. */
static void the_latest_stays_the_latest(struct fixture *f)
{
    struct heddle_thread thread = thread_of("t");

    PUT(f->store, .thread = "t", .id = "1");
    PUT(f->store, .thread = "t", .id = "9", .parent = "1");
    PUT(f->store, .thread = "t", .id = "3", .parent = "9");
    PUT(f->store, .thread = "t", .id = "4", .parent = "3");
    PUT(f->store, .thread = "t", .id = "5", .parent = "4");
    PUT(f->store, .thread = "t", .id = "7", .parent = "1");
    assert_get(f->store, "t", "", "", "5<4");
    assert_ok(heddle_prune(f->store, &thread, 1, HEDDLE_KEEP_BRANCHES, NULL));
    assert_list(f->store, "t//5 t//9 t//7 t//1");
    assert_get(f->store, "t", "", "", "5<9");
    assert_ok(heddle_prune(f->store, &thread, 1, HEDDLE_KEEP_LATEST, NULL));
    assert_list(f->store, "t//5");
}

static void circles_stay(struct fixture *f)
{
    struct heddle_thread thread = thread_of("t");

    PUT(f->store, .thread = "t", .id = "1", .parent = "3");
    PUT(f->store, .thread = "t", .id = "2", .parent = "1");
    PUT(f->store, .thread = "t", .id = "3", .parent = "2");
    PUT(f->store, .thread = "t", .id = "4", .parent = "3");
    PUT(f->store, .thread = "t", .id = "5", .parent = "4");
    PUT(f->store, .thread = "t", .id = "6", .parent = "6");
    assert_ok(heddle_prune(f->store, &thread, 1, HEDDLE_KEEP_BRANCHES, NULL));
    assert_list(f->store, "t//6 t//5 t//3 t//2 t//1");
    assert_get(f->store, "t", "", "5", "5<3");
}

static void wrong_strategies_are_refused(struct fixture *f)
{
    struct heddle_thread thread = thread_of("t");
    struct heddle_prune_options options = {.strategy = (enum heddle_prune)7};

    PUT(f->store, .thread = "t", .id = "1");
    assert_code(heddle_prune_with(f->store, &thread, 1, &options, NULL, NULL), HEDDLE_EINVAL);
    assert_list(f->store, "t//1");
}

/* ---- while others write ---- */

enum { TURNS = 60 };

struct writer {
    struct heddle *store;
    const char *ns;
    const char *from; /* the checkpoint at which its line begins */
    char prefix;
    atomic_bool is_done;
};

/* A run: each checkpoint takes the value of channel `a` on, and has a list that grows. */
static void *write_line(void *arg)
{
    struct writer *w = arg;
    char id[ID_SIZE], parent[ID_SIZE], versions[80], list[TURNS * 120] = "[\"\"";

    snprintf(parent, sizeof(parent), "%s", w->from);
    for (int i = 0; i < TURNS; i++) {
        struct put put = {.thread = "t", .ns = w->ns, .id = id, .parent = parent};
        char changed[40];
        int len = (int)strlen(list);

        snprintf(list + len, sizeof(list) - (size_t)len, ",\"%c %d %080d\"]", w->prefix, i, i);
        snprintf(id, sizeof(id), "%c%04d", w->prefix, i);
        snprintf(versions, sizeof(versions), "{\"a\":1,\"list\":\"%s\"}", id);
        snprintf(changed, sizeof(changed), "{\"list\":\"%s\"}", id);
        put.versions = versions;
        put.changed = changed;
        put.values[0] = (struct heddle_value){text("list"), text("json"), text(list)};
        assert_ok(try_put(w->store, &put, NULL));
        assert_ok(try_writes(w->store,
                             &(struct writes){.thread = "t",
                                              .ns = w->ns,
                                              .id = id,
                                              .task = "k",
                                              .values = {VALUE("list", "[1]")}},
                             NULL));
        list[strlen(list) - 1] = '\0';
        snprintf(parent, sizeof(parent), "%s", id);
    }
    atomic_store(&w->is_done, true);
    return NULL;
}

static void check_line(struct fixture *f, const struct writer *w)
{
    char id[ID_SIZE], start[40];
    struct heddle_tuple *tuple;
    const struct heddle_value *list, *a;

    snprintf(id, sizeof(id), "%c%04d", w->prefix, TURNS - 1);
    snprintf(start, sizeof(start), "[\"\",\"%c 0 ", w->prefix);
    tuple = must_get(f->store, "t", w->ns, id);
    list = value_of(tuple, "list");
    a = value_of(tuple, "a");
    assert_non_null(list);
    assert_non_null(a); /* carried on from the first to the last */
    assert_int_equal(a->data.len, 1000);
    assert_memory_equal(list->data.data, start, strlen(start));
    assert_int_equal(tuple->write_count, 1);
    heddle_tuple_free(tuple);
}

static void runs_go_on_while_their_thread_is_pruned(struct fixture *f)
{
    struct heddle *other = is_shared(f->base) ? open_store(f->url) : f->store;
    struct writer writers[] = {{.store = f->store, .ns = "", .from = "2", .prefix = 'p'},
                               {.store = other, .ns = "", .from = "3", .prefix = 'q'},
                               {.store = other, .ns = "m", .from = "1", .prefix = 'r'}};
    struct heddle_key fork = {thread_of("t"), text(""), text("2")};
    struct heddle_prune_options options = {
        .strategy = HEDDLE_KEEP_BRANCHES, .keep_last = 2, .heads = &fork, .head_count = 1};
    struct heddle_thread thread = thread_of("t");
    pthread_t threads[COUNT_OF(writers)];
    char *big = long_json(1000, 1);
    struct heddle_value a = {text("a"), text("json"), text(big)};
    bool is_done = false;

    PUT(f->store, .thread = "t", .id = "1", .versions = "{\"a\":1}", .values = {a});
    PUT(f->store, .thread = "t", .id = "2", .parent = "1", .versions = "{\"a\":1}",
        .changed = "{}");
    PUT(f->store, .thread = "t", .id = "3", .parent = "2", .versions = "{\"a\":1}",
        .changed = "{}");
    PUT(f->store, .thread = "t", .ns = "m", .id = "1", .versions = "{\"a\":1}", .values = {a});
    for (size_t i = 0; i < COUNT_OF(writers); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_line, &writers[i]), 0);
    while (!is_done) {
        is_done = true;
        for (size_t i = 0; i < COUNT_OF(writers); i++)
            is_done &= atomic_load(&writers[i].is_done);
        assert_ok(heddle_prune_with(f->store, &thread, 1, &options, NULL, NULL));
    }
    for (size_t i = 0; i < COUNT_OF(writers); i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < COUNT_OF(writers); i++)
        check_line(f, &writers[i]);
    /* The last two of each line, where they part, and nothing else. */
    assert_ok(heddle_prune_with(f->store, &thread, 1, &options, NULL, NULL));
    assert_list(f->store, "t/m/r0059 t/m/r0058 t//q0059 t//q0058 t//p0059 t//p0058 t//2 t//1");
    for (size_t i = 0; i < COUNT_OF(writers); i++)
        check_line(f, &writers[i]);
    if (other != f->store)
        heddle_close(other);
    free(big);
}

static const struct store_case cases[] = {
    STORE_CASE(branches_are_kept_as_the_model_says),
    STORE_CASE(what_would_go_is_what_goes),
    STORE_CASE(branches_fall_as_the_model_says),
    STORE_CASE(a_path_is_kept_as_the_model_says),
    STORE_CASE(only_the_path_to_the_head_stays),
    STORE_CASE(what_fell_already_is_no_error),
    STORE_CASE(a_branch_falls_at_once),
    STORE_CASE(circles_lose_only_what_falls),
    STORE_CASE(long_lines_go_in_portions),
    STORE_CASE(circles_stay),
    STORE_CASE(the_latest_stays_the_latest),
    STORE_CASE(wrong_strategies_are_refused),
    STORE_CASE(runs_go_on_while_their_thread_is_pruned),
    {NULL, NULL},
};

int main(void)
{
    static const struct store_case *const tables[] = {cases};

    return run_cases("keep", tables, COUNT_OF(tables), "timeout=60&durability=relaxed");
}
