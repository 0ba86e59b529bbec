#include "search/thread_texts.h"

#include <stdlib.h>
#include <string.h>

#include "app/app.h"
#include "base/utf8.h"
#include "records/record_internal.h"
#include "search/words.h"
#include "store/rows.h"

#define MAX_VALUES ((size_t)1 << 30)
#define MAX_ARENA ((size_t)256 << 20)
#define MAX_TEXT ((size_t)1 << 20) /* bytes of messages that are split into words */
#define MAX_FOUND ((size_t)1 << 24)
#define MAX_ROWS 4000 /* of the index, with one term; a term with more is too common to collect */
#define FEW 64        /* threads that are checked one by one instead of reading all with a term */

/* ---- texts of messages ------------------------------------------------- */

/* Hands over each text of a message's content: a string, or blocks of which some are texts. */
static int each_text(hd_json_val content, int (*fn)(void *arg, struct hd_slice text), void *arg)
{
    struct hd_json_iter it = hd_json_iter(hd_json_is_array(content) ? content : NULL);
    int err = hd_json_is_string(content) ? fn(arg, hd_json_string(content)) : 0;

    while (!err && hd_json_next(&it)) {
        hd_json_val text = hd_json_is_string(it.val) ? it.val : hd_json_get(it.val, HD_S("text"));

        if (hd_json_is_string(text))
            err = fn(arg, hd_json_string(text));
    }
    return err;
}

static bool is_human(hd_json_val message)
{
    struct hd_slice type = hd_json_string(hd_json_get(message, HD_S("type")));
    struct hd_slice role = hd_json_string(hd_json_get(message, HD_S("role")));

    return hd_slice_eq(type, HD_S("human")) || hd_slice_eq(type, HD_S("user")) ||
           hd_slice_eq(role, HD_S("user")) || hd_slice_eq(role, HD_S("human"));
}

struct label {
    char text[HD_THREAD_TEXTS_MAX_LABEL];
    size_t len;
};

/* White space becomes one space. */
static int add_to_label(void *arg, struct hd_slice text)
{
    struct label *label = arg;
    bool is_full = false;

    for (size_t i = 0; i < text.len && !is_full; i++) {
        bool is_space = (unsigned char)text.ptr[i] <= ' ';

        if (is_space && (label->len == 0 || label->text[label->len - 1] == ' '))
            continue;
        is_full = label->len == sizeof(label->text);
        if (!is_full)
            label->text[label->len++] = is_space ? ' ' : text.ptr[i];
    }
    if (is_full)
        label->len = hd_utf8_cut(label->text, label->len);
    while (label->len > 0 && label->text[label->len - 1] == ' ')
        label->len--;
    return label->len > 0; /* the first text that is not empty */
}

/* Of a list of messages, or one message, or one text. */
static void make_label(hd_json_val messages, struct label *label)
{
    struct hd_json_iter it = hd_json_iter(hd_json_is_array(messages) ? messages : NULL);

    label->len = 0;
    if (hd_json_is_string(messages))
        (void)add_to_label(label, hd_json_string(messages));
    else if (hd_json_is_object(messages) && is_human(messages))
        (void)each_text(hd_json_get(messages, HD_S("content")), add_to_label, label);
    while (label->len == 0 && hd_json_next(&it)) {
        if (hd_json_is_string(it.val))
            (void)add_to_label(label, hd_json_string(it.val));
        else if (is_human(it.val))
            (void)each_text(hd_json_get(it.val, HD_S("content")), add_to_label, label);
    }
}

static int put_texts(struct hd_batch_builder *batch, enum hd_op_kind kind,
                     struct hd_slice principal, struct hd_slice thread_id, int64_t rev,
                     const struct label *label)
{
    struct hd_slice text;
    int err = hd_arena_copy(&batch->arena, hd_slice(label->text, label->len), &text);
    const struct hd_cell row[] = {[HD_THREAD_TEXTS_PRINCIPAL] = hd_cell_bytes(principal),
                                  [HD_THREAD_TEXTS_ID] = hd_cell_bytes(thread_id),
                                  [HD_THREAD_TEXTS_REV] = hd_cell_int(rev),
                                  [HD_THREAD_TEXTS_LABEL] = hd_cell_bytes(text)};

    return err ? err : hd_batch_row(batch, kind, HD_THREAD_TEXTS, row);
}

int hd_thread_texts_add_label(struct hd_batch_builder *batch, struct hd_slice principal,
                              struct hd_slice thread_id, hd_json_val input)
{
    struct label label;

    make_label(hd_json_get(input, HD_S("messages")), &label);
    return label.len > 0 ? put_texts(batch, HD_OP_PUT_NEW, principal, thread_id, 0, &label) : 0;
}

int hd_thread_texts_label(struct heddle *store, struct hd_slice principal,
                          struct hd_slice thread_id, struct hd_arena *arena, struct hd_slice *out,
                          struct heddle_error *fault)
{
    const struct hd_cell key[] = {hd_cell_bytes(principal), hd_cell_bytes(thread_id)};
    struct hd_cell cells[HD_MAX_COLUMNS];
    int err = hd_record_get(store, HD_THREAD_TEXTS, key, HD_COUNT(key), arena, cells, fault);

    *out = err ? hd_slice("", 0) : cells[HD_THREAD_TEXTS_LABEL].bytes;
    return err == HD_ENOTFOUND ? 0 : err;
}

/* ---- updating ---------------------------------------------------------- */

/* A thread that is being indexed. */
struct update {
    struct hd_app *app;
    struct hd_arena arena;
    struct hd_map words; /* that it has: values are not used */
    size_t bytes;        /* of texts so far */
    struct hd_thread_rec thread;
    struct label label;
    struct hd_batch_builder batch;
    struct heddle_error *fault;
};

static int on_word(void *arg, struct hd_slice word)
{
    struct update *u = arg;

    if (u->words.count >= HD_THREAD_TEXTS_MAX_WORDS || hd_map_get(&u->words, word))
        return 0;
    return hd_map_put(&u->words, word, u);
}

static int on_text(void *arg, struct hd_slice text)
{
    struct update *u = arg;
    size_t left = MAX_TEXT - u->bytes;

    if (text.len > left)
        text.len = hd_utf8_cut(text.ptr, left);
    u->bytes += text.len;
    return hd_words_of_text(text, on_word, u);
}

static bool is_full(const struct update *u)
{
    return u->words.count >= HD_THREAD_TEXTS_MAX_WORDS || u->bytes >= MAX_TEXT;
}

/* The newest first: they are what a long thread is looked for by. System messages are left out. */
static int add_messages(struct update *u, hd_json_val messages)
{
    size_t count = hd_json_is_array(messages) ? hd_json_size(messages) : 0;
    hd_json_val *list = hd_arena_calloc(&u->arena, count + 1, sizeof(hd_json_val));
    struct hd_json_iter it = hd_json_iter(count > 0 ? messages : NULL);
    size_t at = 0;
    int err = list ? 0 : HD_ENOMEM;

    while (!err && hd_json_next(&it))
        list[at++] = it.val;
    while (!err && at > 0 && !is_full(u)) {
        hd_json_val message = list[--at];
        struct hd_slice type = hd_json_string(hd_json_get(message, HD_S("type")));

        if (!hd_slice_eq(type, HD_S("system")))
            err = each_text(hd_json_get(message, HD_S("content")), on_text, u);
    }
    return err;
}

static int add_title(struct update *u)
{
    struct hd_json json = {NULL};
    hd_json_val title;
    int err = 0;

    if (u->thread.metadata.len > 0)
        err = hd_json_parse(&json, u->thread.metadata, u->fault);
    title = hd_json_get(hd_json_root(&json), HD_S("title"));
    if (!err && hd_json_is_string(title))
        err = on_text(u, hd_json_string(title));
    hd_json_fini(&json);
    return err;
}

/* Reading the state again would fail again: the thread is indexed by its title alone. */
static bool is_lasting(int err)
{
    return err == HD_ECORRUPT || err == HD_EINVAL || err == HD_ELIMIT || err == HD_EVERSION ||
           err == HD_EUNSUPPORTED;
}

static int add_all(struct update *u)
{
    struct hd_json json = {NULL};
    struct hd_buf values;
    hd_json_val root, room, messages;
    int err;

    hd_buf_init(&values, MAX_VALUES);
    err = hd_thread_indexer_reader(u->app->texts)(u->app, &u->thread, &u->arena, &values, u->fault);
    if (!err)
        err = hd_json_parse(&json, hd_buf_slice(&values), u->fault);
    hd_buf_fini(&values);
    if (is_lasting(err)) {
        *u->fault = (struct heddle_error){0};
        err = 0;
    }
    root = hd_json_root(&json);
    room = hd_json_get(root, HD_S("room"));
    messages = hd_json_get(room ? hd_json_get(root, HD_S("state")) : root, HD_S("messages"));
    make_label(room, &u->label);
    if (u->label.len == 0)
        make_label(messages, &u->label);
    if (!err)
        err = add_title(u);
    if (!err)
        err = on_text(u, hd_slice(u->label.text, u->label.len));
    if (!err)
        err = add_messages(u, room);
    if (!err)
        err = add_messages(u, messages);
    hd_json_fini(&json);
    return err;
}

/* A word that is stored: it stays, or goes. */
static int on_stored_word(void *arg, size_t which, const struct hd_cell *cells)
{
    struct update *u = arg;
    struct hd_slice word;
    int err;

    (void)which;
    if (hd_map_remove(&u->words, cells[HD_THREAD_WORDS_WORD].bytes))
        return 0;
    err = hd_arena_copy(&u->batch.arena, cells[HD_THREAD_WORDS_WORD].bytes, &word);
    if (!err) {
        const struct hd_cell key[] = {hd_cell_bytes(u->thread.principal),
                                      hd_cell_bytes(u->thread.id), hd_cell_bytes(word)};

        err = hd_batch_delete(&u->batch, HD_THREAD_WORDS, key, HD_COUNT(key));
    }
    return err;
}

static int add_rows(struct update *u)
{
    struct hd_slice word;
    size_t pos = 0;
    void *value;
    int err = 0;

    while (!err && hd_map_next(&u->words, &pos, &word, &value)) {
        const struct hd_cell row[] = {[HD_THREAD_WORDS_PRINCIPAL] =
                                          hd_cell_bytes(u->thread.principal),
                                      [HD_THREAD_WORDS_ID] = hd_cell_bytes(u->thread.id),
                                      [HD_THREAD_WORDS_WORD] = hd_cell_bytes(word),
                                      [HD_THREAD_WORDS_REV] = hd_cell_int(u->thread.rev)};

        err = hd_batch_row(&u->batch, HD_OP_PUT, HD_THREAD_WORDS, row);
    }
    return err;
}

static int store_words(struct update *u)
{
    const struct hd_cell key[] = {hd_cell_bytes(u->thread.principal), hd_cell_bytes(u->thread.id)};
    const struct hd_query query = {.table = HD_THREAD_WORDS,
                                   .index = HD_PRIMARY,
                                   .prefix = key,
                                   .prefix_count = HD_COUNT(key)};
    struct hd_batch view;
    struct hd_slice lane;
    int err = hd_batch_expect(&u->batch, HD_THREAD_INFO, key, HD_THREAD_INFO_REV, u->thread.rev);

    if (!err)
        err = hd_rows_read(u->app->store, &query, 1, on_stored_word, u, u->fault);
    if (!err)
        err = add_rows(u);
    if (!err)
        err = put_texts(&u->batch, HD_OP_PUT, u->thread.principal, u->thread.id, u->thread.rev,
                        &u->label);
    if (!err)
        err = hd_thread_lane(&u->arena, u->thread.principal, u->thread.id, &lane);
    view = hd_batch_view(&u->batch);
    return err ? err : hd_rows_apply(u->app->store, lane, &view, NULL, u->fault);
}

/* The revision that was indexed, or 0. */
static int read_rev(struct update *u, int64_t *out)
{
    const struct hd_cell key[] = {hd_cell_bytes(u->thread.principal), hd_cell_bytes(u->thread.id)};
    struct hd_cell cells[HD_MAX_COLUMNS];
    int err = hd_record_get(u->app->store, HD_THREAD_TEXTS, key, HD_COUNT(key), &u->arena, cells,
                            u->fault);

    *out = err ? 0 : cells[HD_THREAD_TEXTS_REV].number;
    return err == HD_ENOTFOUND ? 0 : err;
}

int hd_thread_texts_update(struct hd_app *app, struct hd_slice principal, struct hd_slice thread_id,
                           struct heddle_error *fault)
{
    struct update u = {.app = app, .fault = fault};
    int64_t rev = 0;
    int err;

    hd_arena_init(&u.arena, MAX_ARENA);
    hd_map_init(&u.words, HD_THREAD_TEXTS_MAX_WORDS);
    hd_batch_init(&u.batch);
    err = hd_thread_read(app->store, principal, thread_id, &u.arena, &u.thread, fault);
    if (!err)
        err = read_rev(&u, &rev);
    if (!err && rev != u.thread.rev)
        err = add_all(&u);
    if (!err && rev != u.thread.rev)
        err = store_words(&u);
    /* Deleted, or changed again: then it was noted again. */
    if (err == HD_ENOTFOUND || err == HD_ECONFLICT) {
        *fault = (struct heddle_error){0};
        err = 0;
    }
    hd_batch_fini(&u.batch);
    hd_map_fini(&u.words);
    hd_arena_fini(&u.arena);
    return err;
}

int hd_thread_texts_delete(struct hd_batch_builder *batch, struct hd_slice principal,
                           struct hd_slice thread_id)
{
    const struct hd_cell key[] = {hd_cell_bytes(principal), hd_cell_bytes(thread_id)};
    int err = hd_batch_delete(batch, HD_THREAD_TEXTS, key, HD_COUNT(key));

    return err ? err : hd_batch_delete(batch, HD_THREAD_WORDS, key, HD_COUNT(key));
}

/* ---- searching --------------------------------------------------------- */

struct parsing {
    struct hd_terms *terms;
    struct hd_arena *arena;
};

static int on_term(void *arg, struct hd_slice word)
{
    struct parsing *p = arg;
    int err;

    if (p->terms->count == HD_THREAD_TEXTS_MAX_TERMS)
        return 0;
    err = hd_arena_copy(p->arena, word, &p->terms->items[p->terms->count]);
    p->terms->count += !err;
    return err;
}

static int compare_lengths(const void *a, const void *b)
{
    size_t one = ((const struct hd_slice *)a)->len, other = ((const struct hd_slice *)b)->len;

    return one < other ? 1 : -(one > other);
}

int hd_terms_parse(struct hd_terms *terms, struct hd_slice text, struct hd_arena *arena)
{
    struct parsing p = {.terms = terms, .arena = arena};
    int err;

    terms->count = 0;
    err = hd_words_of_search(text, on_term, &p);
    if (!err && terms->count > 1)
        qsort(terms->items, terms->count, sizeof(*terms->items), compare_lengths);
    return err;
}

/* The words that begin with a term: from it up to it followed by the greatest character. */
struct bounds {
    struct hd_cell low, high;
    char room[HD_WORD_MAX + 4];
};

static void set_bounds(struct bounds *bounds, struct hd_slice term)
{
    memcpy(bounds->room, term.ptr, term.len);
    bounds->low = hd_cell_bytes(term);
    bounds->high = hd_cell_bytes(
        hd_slice(bounds->room, term.len + hd_utf8_put(0x10ffff, bounds->room + term.len)));
}

static int on_matching_word(void *arg, size_t which, const struct hd_cell *cells)
{
    (void)which;
    (void)cells;
    *(bool *)arg = true;
    return 1;
}

static int has_term(struct heddle *store, struct hd_slice principal, struct hd_slice thread_id,
                    struct hd_slice term, bool *out, struct heddle_error *fault)
{
    const struct hd_cell key[] = {hd_cell_bytes(principal), hd_cell_bytes(thread_id)};
    struct bounds bounds;
    struct hd_query query = {.table = HD_THREAD_WORDS,
                             .index = HD_PRIMARY,
                             .prefix = key,
                             .prefix_count = HD_COUNT(key),
                             .limit = 1};

    set_bounds(&bounds, term);
    query.low = &bounds.low;
    query.high = &bounds.high;
    *out = false;
    return hd_rows_read(store, &query, 1, on_matching_word, out, fault);
}

int hd_thread_texts_match(struct heddle *store, struct hd_slice principal,
                          struct hd_slice thread_id, const struct hd_terms *terms, bool *out,
                          struct heddle_error *fault)
{
    int err = 0;

    *out = terms->count > 0;
    for (size_t i = 0; !err && *out && i < terms->count; i++)
        err = has_term(store, principal, thread_id, terms->items[i], out, fault);
    return err;
}

struct term_finding {
    const struct hd_map *among; /* NULL: any thread */
    struct hd_map *found;
    size_t rows;
};

static int on_found_thread(void *arg, size_t which, const struct hd_cell *cells)
{
    struct term_finding *f = arg;
    struct hd_slice id = cells[HD_THREAD_WORDS_ID].bytes;

    (void)which;
    if (++f->rows > MAX_ROWS)
        return 1;
    if (f->among && !hd_map_get(f->among, id))
        return 0;
    return hd_map_get(f->found, id) ? 0 : hd_map_put(f->found, id, f->found);
}

static int find_term(struct heddle *store, struct hd_slice principal, struct hd_slice term,
                     struct term_finding *f, struct heddle_error *fault)
{
    const struct hd_cell prefix = hd_cell_bytes(principal);
    struct bounds bounds;
    struct hd_query query = {.table = HD_THREAD_WORDS,
                             .index = HD_THREAD_WORDS_BY_WORD,
                             .prefix = &prefix,
                             .prefix_count = 1};

    set_bounds(&bounds, term);
    query.low = &bounds.low;
    query.high = &bounds.high;
    return hd_rows_scan(store, query, on_found_thread, f, fault);
}

/* Moves those of `from` that have the term to `to`. */
static int check_each(struct heddle *store, struct hd_slice principal, struct hd_slice term,
                      const struct hd_map *from, struct hd_map *to, struct heddle_error *fault)
{
    struct hd_slice id;
    size_t pos = 0;
    void *value;
    int err = 0;

    while (!err && hd_map_next(from, &pos, &id, &value)) {
        bool is_match;

        err = has_term(store, principal, id, term, &is_match, fault);
        if (!err && is_match)
            err = hd_map_put(to, id, to);
    }
    return err;
}

/* Replaces *found by those of it that have the term; `is_first`: by all threads that have it. */
static int narrow(struct heddle *store, struct hd_slice principal, struct hd_slice term,
                  bool is_first, struct hd_map *found, bool *is_common, struct heddle_error *fault)
{
    struct hd_map among = *found;
    struct term_finding f = {.among = is_first ? NULL : &among, .found = found};
    int err = 0;

    hd_map_init(found, MAX_FOUND);
    if (is_first || among.count > FEW)
        err = find_term(store, principal, term, &f, fault);
    *is_common = f.rows > MAX_ROWS;
    if (!err && !is_first && (*is_common || among.count <= FEW)) {
        hd_map_fini(found);
        hd_map_init(found, MAX_FOUND);
        err = check_each(store, principal, term, &among, found, fault);
    }
    hd_map_fini(&among);
    return err;
}

int hd_thread_texts_find(struct heddle *store, struct hd_slice principal,
                         const struct hd_terms *terms, struct hd_map *found, bool *is_common,
                         struct heddle_error *fault)
{
    size_t first = 0;
    int err = 0;

    *is_common = true;
    hd_map_init(found, MAX_FOUND);
    for (; !err && *is_common && first < terms->count; first++)
        err = narrow(store, principal, terms->items[first], true, found, is_common, fault);
    for (size_t i = 0; !err && !*is_common && i < terms->count && found->count > 0; i++) {
        bool is_so;

        if (i + 1 != first)
            err = narrow(store, principal, terms->items[i], false, found, &is_so, fault);
    }
    if (err)
        hd_map_fini(found);
    return err;
}
