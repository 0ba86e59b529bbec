#include "http/query.h"

#include <inttypes.h>

#include "base/json.h"
#include "base/utf8.h"
#include "http/request.h"

/* Characters of a value shown in an error text. */
#define SHOWN 60

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool is_text(struct hd_slice s)
{
    const char *pos = s.ptr, *end = s.ptr + s.len;

    while (pos < end) {
        size_t len = *pos == '\0' ? 0 : hd_utf8_char(pos, end);

        if (len == 0)
            return false;
        pos += len;
    }
    return true;
}

static bool is_encoded(struct hd_slice s, bool plus)
{
    return s.len > 0 && (memchr(s.ptr, '%', s.len) || (plus && memchr(s.ptr, '+', s.len)));
}

/* `out` has room for text.len bytes. Returns the length, or -1. */
static ptrdiff_t decode_percent(struct hd_slice text, bool plus, char *out)
{
    size_t len = 0;

    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];

        if (c == '%') {
            int high = i + 1 < text.len ? hex_value(text.ptr[i + 1]) : -1;
            int low = i + 2 < text.len ? hex_value(text.ptr[i + 2]) : -1;

            if (high < 0 || low < 0)
                return -1;
            c = (char)(high << 4 | low);
            i += 2;
        } else if (c == '+' && plus) {
            c = ' ';
        }
        out[len++] = c;
    }
    return (ptrdiff_t)len;
}

int hd_percent_decode(struct hd_slice text, bool plus, struct hd_arena *arena, struct hd_slice *out)
{
    ptrdiff_t len;
    char *copy;

    if (text.len == 0) {
        *out = hd_slice("", 0);
        return 0;
    }
    if (is_encoded(text, plus)) {
        copy = hd_arena_alloc(arena, text.len);
        if (!copy)
            return HD_ENOMEM;
        len = decode_percent(text, plus, copy);
        if (len < 0)
            return HD_EINVAL;
        text = hd_slice(copy, (size_t)len);
    }
    if (!is_text(text))
        return HD_EINVAL;
    *out = text;
    return 0;
}

static size_t count_pairs(struct hd_slice query)
{
    size_t count = query.len > 0;

    for (size_t i = 0; i < query.len; i++)
        count += query.ptr[i] == '&';
    return count;
}

static int parse_pair(struct hd_param *out, struct hd_slice pair, struct hd_arena *arena,
                      struct heddle_error *fault)
{
    const char *equals = memchr(pair.ptr, '=', pair.len);
    struct hd_slice name = pair, value = hd_slice("", 0);
    int err;

    if (equals) {
        name.len = (size_t)(equals - pair.ptr);
        value = hd_slice(equals + 1, pair.len - name.len - 1);
    }
    err = hd_percent_decode(name, true, arena, &out->name);
    if (!err)
        err = hd_percent_decode(value, true, arena, &out->value);
    if (err == HD_EINVAL)
        return hd_error_set(fault, err, "the query string is not percent-encoded UTF-8");
    return err;
}

int hd_params_parse(struct hd_params *out, struct hd_slice query, struct hd_arena *arena,
                    struct heddle_error *fault)
{
    size_t most = count_pairs(query);
    struct hd_params params = {0};
    int err;

    /* Empty pairs ("a=1&&b=2") count too: this limits the work. */
    if (most > HD_PARAMS_MAX)
        return hd_error_set(fault, HD_ELIMIT, "the query string has more than %d parameters",
                            HD_PARAMS_MAX);
    params.pairs = hd_arena_calloc(arena, most, sizeof(*params.pairs));
    if (!params.pairs)
        return HD_ENOMEM;
    while (query.len > 0) {
        const char *end = memchr(query.ptr, '&', query.len);
        size_t len = end ? (size_t)(end - query.ptr) : query.len;

        if (len > 0) {
            err = parse_pair(&params.pairs[params.count++], hd_slice(query.ptr, len), arena, fault);
            if (err)
                return err;
        }
        query = end ? hd_slice(end + 1, query.len - len - 1) : hd_slice(NULL, 0);
    }
    *out = params;
    return 0;
}

bool hd_params_get(const struct hd_params *params, struct hd_slice name, struct hd_slice *out)
{
    for (size_t i = 0; i < params->count; i++) {
        if (params->pairs[i].value.len > 0 && hd_slice_eq(params->pairs[i].name, name)) {
            *out = params->pairs[i].value;
            return true;
        }
    }
    return false;
}

bool hd_params_has(const struct hd_params *params, struct hd_slice name)
{
    for (size_t i = 0; i < params->count; i++) {
        if (hd_slice_eq(params->pairs[i].name, name))
            return true;
    }
    return false;
}

/* A list under construction. */
struct gathering {
    struct hd_slice name;
    struct hd_arena *arena;
    struct heddle_error *fault;
    struct hd_slice *items;
    size_t count;
    size_t cap;
};

static int refuse_parameter(struct heddle_error *fault, struct hd_slice name, struct hd_slice value,
                            const char *what)
{
    bool is_long = value.len > SHOWN;
    size_t shown = is_long ? hd_utf8_cut(value.ptr, SHOWN) : value.len;

    return hd_error_set(fault, HD_EINVAL, "query parameter '%.*s' must be %s, not '%.*s%s'",
                        (int)(name.len < SHOWN ? name.len : SHOWN), name.ptr, what, (int)shown,
                        value.ptr, is_long ? "…" : "");
}

static int gather_item(struct gathering *g, struct hd_slice item)
{
    struct hd_slice *items;
    size_t cap = g->cap ? g->cap * 2 : 8;

    if (g->count == HD_PARAMS_MAX_LIST)
        return hd_error_set(g->fault, HD_EINVAL, "query parameter '%.*s' has more than %d elements",
                            (int)g->name.len, g->name.ptr, HD_PARAMS_MAX_LIST);
    if (g->count == g->cap) {
        items = hd_arena_alloc(g->arena, cap * sizeof(*items));
        if (!items)
            return HD_ENOMEM;
        if (g->count > 0)
            memcpy(items, g->items, g->count * sizeof(*items));
        g->items = items;
        g->cap = cap;
    }
    g->items[g->count++] = item;
    return 0;
}

/* A scalar's text, copied because the document is temporary. Skips null. */
static int add_json_scalar(struct gathering *g, hd_json_val val, struct hd_slice whole)
{
    struct hd_slice text;
    int err;

    switch (hd_json_type(val)) {
    case HD_JSON_STRING:
        text = hd_json_string(val);
        break;
    case HD_JSON_NUMBER:
        text = hd_json_number_text(val);
        break;
    case HD_JSON_BOOL:
        text = hd_json_is_true(val) ? HD_S("true") : HD_S("false");
        break;
    case HD_JSON_NULL:
        return 0;
    default:
        return refuse_parameter(g->fault, g->name, whole, "a list of plain values");
    }
    if (text.len > 0 && !is_text(text))
        return refuse_parameter(g->fault, g->name, whole, "a list of values without NUL");
    err = hd_arena_copy(g->arena, text, &text);
    return err ? err : gather_item(g, text);
}

/* `["a","b"]`, and `"a"`, sent by clients that encode everything as JSON. */
static int add_json(struct gathering *g, struct hd_slice text)
{
    struct hd_json json = {0};
    hd_json_val root;
    int err;

    err = hd_json_parse(&json, text, NULL);
    if (err == HD_EINVAL)
        return refuse_parameter(g->fault, g->name, text, "a list: a,b or [\"a\",\"b\"]");
    if (err)
        return err;
    root = hd_json_root(&json);
    if (hd_json_is_array(root)) {
        struct hd_json_iter it = hd_json_iter(root);

        while (!err && hd_json_next(&it))
            err = add_json_scalar(g, it.val, text);
    } else {
        err = add_json_scalar(g, root, text);
    }
    hd_json_fini(&json);
    return err;
}

static struct hd_slice trim_spaces(struct hd_slice s)
{
    while (s.len > 0 && s.ptr[0] == ' ')
        s = hd_slice(s.ptr + 1, s.len - 1);
    while (s.len > 0 && s.ptr[s.len - 1] == ' ')
        s.len--;
    return s;
}

static int add_commas(struct gathering *g, struct hd_slice text)
{
    int err;

    while (text.len > 0) {
        const char *comma = memchr(text.ptr, ',', text.len);
        size_t len = comma ? (size_t)(comma - text.ptr) : text.len;
        struct hd_slice item = trim_spaces(hd_slice(text.ptr, len));

        err = item.len > 0 ? gather_item(g, item) : 0;
        if (err)
            return err;
        text = comma ? hd_slice(comma + 1, text.len - len - 1) : hd_slice(NULL, 0);
    }
    return 0;
}

int hd_params_list(const struct hd_params *params, struct hd_slice name, struct hd_arena *arena,
                   struct hd_slice **items, size_t *count, struct heddle_error *fault)
{
    struct gathering g = {.name = name, .arena = arena, .fault = fault};
    int err;

    for (size_t i = 0; i < params->count; i++) {
        struct hd_slice value = trim_spaces(params->pairs[i].value);

        if (value.len == 0 || !hd_slice_eq(params->pairs[i].name, name))
            continue;
        err = value.ptr[0] == '[' || value.ptr[0] == '"' ? add_json(&g, value)
                                                         : add_commas(&g, value);
        if (err)
            return err;
    }
    *items = g.items;
    *count = g.count;
    return 0;
}

int hd_params_bool(const struct hd_params *params, struct hd_slice name, bool otherwise, bool *out,
                   struct heddle_error *fault)
{
    static const struct {
        struct hd_slice text;
        bool value;
    } forms[] = {
        {HD_S_INIT("true"), true}, {HD_S_INIT("false"), false}, {HD_S_INIT("1"), true},
        {HD_S_INIT("0"), false},   {HD_S_INIT("yes"), true},    {HD_S_INIT("no"), false},
    };
    struct hd_slice value;

    if (!hd_params_get(params, name, &value)) {
        *out = otherwise;
        return 0;
    }
    for (size_t i = 0; i < HD_COUNT(forms); i++) {
        if (hd_slice_eq_nocase(value, forms[i].text)) {
            *out = forms[i].value;
            return 0;
        }
    }
    return refuse_parameter(fault, name, value, "true or false");
}

/* Digits with an optional sign, nothing else; false when invalid or out of range. */
static bool read_int(struct hd_slice text, int64_t *out)
{
    bool is_negative = text.len > 0 && text.ptr[0] == '-';
    size_t pos = text.len > 0 && (is_negative || text.ptr[0] == '+');
    int64_t value = 0;

    if (pos == text.len)
        return false;
    for (; pos < text.len; pos++) {
        int digit = text.ptr[pos] - '0';

        if (digit < 0 || digit > 9)
            return false;
        /* Computed as a negative number, whose range is larger by one. */
        if (value < (INT64_MIN + digit) / 10)
            return false;
        value = value * 10 - digit;
    }
    if (!is_negative && value == INT64_MIN)
        return false;
    *out = is_negative ? value : -value;
    return true;
}

int hd_params_int(const struct hd_params *params, struct hd_slice name, int64_t min, int64_t max,
                  int64_t otherwise, int64_t *out, struct heddle_error *fault)
{
    struct hd_slice text;
    char what[96];
    int64_t value;

    if (!hd_params_get(params, name, &text)) {
        *out = otherwise;
        return 0;
    }
    if (read_int(text, &value) && value >= min && value <= max) {
        *out = value;
        return 0;
    }
    if (max == INT64_MAX)
        (void)snprintf(what, sizeof(what), "an integer of at least %" PRId64, min);
    else
        (void)snprintf(what, sizeof(what), "an integer from %" PRId64 " to %" PRId64, min, max);
    return refuse_parameter(fault, name, text, what);
}
