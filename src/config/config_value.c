/* Values of settings: from text (flags, environment) and from JSON, checked alike. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/suggest.h"
#include "config/config_internal.h"

#define MAX_GRAPH_ID 64
#define MAX_DECIMALS 6

static void *target(const struct hd_config_place *place)
{
    return (char *)place->config + place->setting->offset;
}

static int no_memory(const struct hd_config_place *place)
{
    return hd_error_set(place->fault, HD_ENOMEM, "out of memory while reading the configuration");
}

/* "--port: "x" is not …"; a secret is not repeated. */
static int refuse_value(const struct hd_config_place *place, struct hd_slice text, const char *fmt,
                        ...) HD_PRINTF(3, 4);
static int refuse_value(const struct hd_config_place *place, struct hd_slice text, const char *fmt,
                        ...)
{
    char why[160];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(why, sizeof(why), fmt, args);
    va_end(args);
    if (place->setting->is_secret)
        return hd_error_set(place->fault, HD_EINVAL, "%s: the value %s", place->origin, why);
    return hd_error_set(place->fault, HD_EINVAL, "%s: \"%.*s\" %s", place->origin, HD_SHOW(text),
                        why);
}

static struct hd_slice trim_blanks(struct hd_slice text)
{
    while (text.len > 0 && (text.ptr[0] == ' ' || text.ptr[0] == '\t')) {
        text.ptr++;
        text.len--;
    }
    while (text.len > 0 && (text.ptr[text.len - 1] == ' ' || text.ptr[text.len - 1] == '\t'))
        text.len--;
    return text;
}

/* ---- single values ------------------------------------------------------ */

static int set_string(const struct hd_config_place *place, struct hd_slice text)
{
    struct heddle_error why = {0};
    struct hd_slice copy;

    if (text.len > 0 && memchr(text.ptr, '\0', text.len))
        return refuse_value(place, text, "contains a NUL");
    if (hd_arena_copy(&place->config->arena, text, &copy) != 0)
        return no_memory(place);
    if (place->setting->check && place->setting->check(copy.ptr, &why) != 0)
        return hd_error_set(place->fault, why.code, "%s: %s", place->origin, why.text);
    *(const char **)target(place) = copy.ptr;
    return 0;
}

static int set_bool(const struct hd_config_place *place, struct hd_slice text)
{
    static const char *const words[] = {"true", "1", "yes", "on", "false", "0", "no", "off"};

    for (size_t i = 0; i < HD_COUNT(words); i++) {
        if (strlen(words[i]) == text.len && strncasecmp(words[i], text.ptr, text.len) == 0) {
            *(bool *)target(place) = i < HD_COUNT(words) / 2;
            return 0;
        }
    }
    return refuse_value(place, text, "is neither true nor false");
}

/* Digits only; false when there are none or too many for `max`. Takes them off the text. */
static bool take_digits(struct hd_slice *text, int64_t max, int64_t *out)
{
    int64_t value = 0;
    size_t i = 0;

    for (; i < text->len && text->ptr[i] >= '0' && text->ptr[i] <= '9'; i++) {
        value = value * 10 + (text->ptr[i] - '0');
        if (value > max)
            return false;
    }
    *text = hd_slice(text->ptr + i, text->len - i);
    *out = value;
    return i > 0;
}

static int set_int(const struct hd_config_place *place, struct hd_slice text)
{
    const struct hd_setting *setting = place->setting;
    struct hd_slice rest = text;
    int64_t value;

    if (!take_digits(&rest, setting->max, &value) || rest.len > 0 || value < setting->min)
        return refuse_value(place, text, "is not a number from %lld to %lld",
                            (long long)setting->min, (long long)setting->max);
    *(int *)target(place) = (int)value;
    return 0;
}

/* "64m", "64MiB": how many bits the number moves left; -1 when it is no unit. */
static int unit_shift(struct hd_slice unit)
{
    static const char letters[] = "kmg";
    const char *found;

    if (unit.len == 0)
        return 0;
    found = strchr(letters, unit.ptr[0] | 0x20);
    if (!found || !*found ||
        (unit.len > 1 && (unit.len != 3 || strncasecmp(unit.ptr + 1, "ib", 2) != 0)))
        return -1;
    return 10 * (int)(found - letters + 1);
}

static int set_size(const struct hd_config_place *place, struct hd_slice text)
{
    const struct hd_setting *setting = place->setting;
    struct hd_slice unit = text;
    int64_t value = 0;
    int shift = -1;

    if (take_digits(&unit, setting->max, &value))
        shift = unit_shift(unit);
    if (shift < 0 || value > setting->max >> shift || value << shift < setting->min)
        return refuse_value(place, text,
                            "is not a number from %lld to %lld (k, m, g may follow it)",
                            (long long)setting->min, (long long)setting->max);
    *(size_t *)target(place) = (size_t)(value << shift);
    return 0;
}

/* "2.5" in millionths; false when it is something else or greater than `max`. */
static bool parse_decimal(struct hd_slice text, int64_t max, int64_t *out)
{
    int64_t value, millionths = 0, weight = 1000000;

    if (!take_digits(&text, max, &value))
        return false;
    if (text.len > 0 && (text.ptr[0] != '.' || text.len < 2 || text.len > MAX_DECIMALS + 1))
        return false;
    for (size_t i = 1; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return false;
        weight /= 10;
        millionths += (text.ptr[i] - '0') * weight;
    }
    *out = value * 1000000 + millionths;
    return *out <= max * 1000000;
}

/*
 * Below the minimum only whole settings that mean "off" are of use, and they have
 * minimum 0; otherwise anything above 0 down to a tenth is taken, so that tests
 * need not wait.
 */
static int set_duration(const struct hd_config_place *place, struct hd_slice text)
{
    const struct hd_setting *setting = place->setting;
    int64_t millionths, unit = setting->scale / 1000;
    bool is_good = parse_decimal(text, setting->max, &millionths);

    if (!is_good || (setting->min > 0 && millionths < 100000))
        return refuse_value(place, text, "is not a number of %ss from %s to %lld",
                            strcmp(setting->value, "MINUTES") == 0 ? "minute" : "second",
                            setting->min > 0 ? "0.1" : "0", (long long)setting->max);
    /* In two steps, so that a century of minutes does not overflow. */
    *(int64_t *)target(place) = millionths / 1000 * unit + millionths % 1000 * unit / 1000;
    return 0;
}

static int set_choice(const struct hd_config_place *place, struct hd_slice text)
{
    const char *const *choices = place->setting->choices;
    char all[128] = "";
    size_t len = 0;

    for (int i = 0; choices[i]; i++) {
        if (hd_slice_eq(hd_slice_cstr(choices[i]), text)) {
            *(int *)target(place) = i;
            return 0;
        }
        len +=
            (size_t)snprintf(all + len, sizeof(all) - len, "%s%s", i > 0 ? ", " : "", choices[i]);
    }
    return refuse_value(place, text, "is not one of %s", all);
}

/* ---- lists -------------------------------------------------------------- */

/*
 * Appends a zeroed element; NULL with `fault` set on failure. Lists are short: no spare capacity.
 */
static void *grow_items(const struct hd_config_place *place, void *items, size_t *count,
                        size_t size)
{
    char *more;

    if (*count == HD_CONFIG_MAX_ITEMS) {
        (void)hd_error_set(place->fault, HD_EINVAL, "%s: more than %d values", place->origin,
                           HD_CONFIG_MAX_ITEMS);
        return NULL;
    }
    if (*count % 16 != 0)
        return items;
    more = hd_arena_calloc(&place->config->arena, *count + 16, size);
    if (!more) {
        (void)no_memory(place);
        return NULL;
    }
    if (*count > 0)
        memcpy(more, items, *count * size);
    return more;
}

static int grow_error(const struct hd_config_place *place)
{
    return place->fault->code;
}

static int add_to_list(const struct hd_config_place *place, struct hd_slice text)
{
    struct hd_config_list *list = target(place);
    struct heddle_error why = {0};
    struct hd_slice *items;

    if (text.len == 0 || memchr(text.ptr, '\0', text.len))
        return refuse_value(place, text, "is not a value for a list");
    items = grow_items(place, list->items, &list->count, sizeof(*items));
    if (!items)
        return grow_error(place);
    list->items = items;
    if (hd_arena_copy(&place->config->arena, text, &items[list->count]) != 0)
        return no_memory(place);
    if (place->setting->check && place->setting->check(items[list->count].ptr, &why) != 0)
        return refuse_value(place, text, "is %s", why.text);
    list->count++;
    return 0;
}

static int add_port(const struct hd_config_place *place, struct hd_slice text)
{
    struct hd_config_ports *ports = target(place);
    struct hd_slice rest = text;
    int64_t value;
    int *items;

    if (!take_digits(&rest, 65535, &value) || rest.len > 0 || value < 1)
        return refuse_value(place, text, "is not a port from 1 to 65535");
    items = grow_items(place, ports->items, &ports->count, sizeof(*items));
    if (!items)
        return grow_error(place);
    ports->items = items;
    items[ports->count++] = (int)value;
    return 0;
}

/* ---- graphs ------------------------------------------------------------- */

/* Clients send it in paths, queries and bodies. Spaces are inside alone. */
static bool is_graph_id(struct hd_slice id)
{
    for (size_t i = 0; i < id.len; i++) {
        char c = id.ptr[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '_' || c == '-' || c == '.' || (c == ' ' && i > 0 && i + 1 < id.len)))
            return false;
    }
    return id.len > 0 && id.len <= MAX_GRAPH_ID;
}

static bool has_graph(const struct hd_config_graphs *graphs, struct hd_slice id)
{
    for (size_t i = 0; i < graphs->count; i++) {
        if (hd_slice_eq(graphs->items[i].id, id))
            return true;
    }
    return false;
}

/* "./agent.py:graph": what follows the last colon, when it is an identifier. */
static struct hd_slice symbol_of(struct hd_slice path)
{
    const char *colon = path.len > 0 ? memrchr(path.ptr, ':', path.len) : NULL;
    struct hd_slice symbol = {0};

    if (!colon)
        return symbol;
    symbol = hd_slice(colon + 1, path.len - (size_t)(colon + 1 - path.ptr));
    for (size_t i = 0; i < symbol.len; i++) {
        char c = symbol.ptr[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '_' || c == '$' || (c & 0x80)))
            return (struct hd_slice){0};
    }
    return symbol;
}

static bool ends(struct hd_slice text, const char *ending)
{
    size_t len = strlen(ending);

    return text.len > len && memcmp(text.ptr + text.len - len, ending, len) == 0;
}

struct hd_slice hd_config_code_file(struct hd_slice path)
{
    struct hd_slice symbol = symbol_of(path);

    return hd_slice(path.ptr, symbol.len > 0 ? path.len - symbol.len - 1 : path.len);
}

bool hd_config_is_module(struct hd_slice path)
{
    struct hd_slice file = hd_config_code_file(path);
    enum hd_rt_language language;

    return hd_config_code(path, &language) == HD_CODE && language == HD_RT_PYTHON &&
           !ends(file, ".py");
}

enum hd_code_kind hd_config_code(struct hd_slice path, enum hd_rt_language *language)
{
    static const char *const scripts[] = {".ts",  ".js",  ".mts", ".mjs",
                                          ".cts", ".cjs", ".tsx", ".jsx"};
    struct hd_slice symbol = symbol_of(path), file = hd_config_code_file(path);

    *language = HD_RT_JS;
    for (size_t i = 0; i < HD_COUNT(scripts); i++) {
        if (ends(file, scripts[i]))
            return HD_CODE; /* what a file exports by default needs no name */
    }
    *language = HD_RT_PYTHON;
    if (ends(file, ".py"))
        return symbol.len > 0 ? HD_CODE : HD_CODE_NAMELESS;
    if (symbol.len == 0 || ends(file, ".json"))
        return HD_CODE_NONE;
    /* A module: agents.chat:graph. */
    return memchr(file.ptr, '/', file.len) || file.len == 0 ? HD_CODE_UNKNOWN : HD_CODE;
}

/*
 * Workers resolve paths in the project's folder; the path of a flag is relative to the current one.
 */
static int put_code(const struct hd_config_place *place, struct hd_config_graph *graph,
                    struct hd_slice path)
{
    struct hd_arena *arena = &place->config->arena;
    const char *folder = place->config->folder;
    char here[4096];

    graph->is_remote = true;
    if (path.ptr[0] != '/' && !hd_config_is_module(path) && place->folder.len == 0 && folder &&
        *folder && getcwd(here, sizeof(here)))
        graph->path =
            hd_slice_cstr(hd_arena_printf(arena, "%s/%.*s", here, (int)path.len, path.ptr));
    else if (hd_arena_copy(arena, path, &graph->path) != 0)
        graph->path.ptr = NULL;
    return graph->path.ptr ? 0 : no_memory(place);
}

static int put_graph(const struct hd_config_place *place, struct hd_config_graph *graph,
                     struct hd_slice id, struct hd_slice file, struct hd_slice description)
{
    bool is_relative = file.ptr[0] != '/' && place->folder.len > 0;
    struct hd_arena *arena = &place->config->arena;

    if (hd_arena_copy(arena, id, &graph->id) != 0 ||
        hd_arena_copy(arena, description, &graph->description) != 0)
        return no_memory(place);
    if (hd_config_code(file, &graph->language) == HD_CODE)
        return put_code(place, graph, file);
    graph->file = is_relative ? hd_arena_printf(arena, "%.*s/%.*s", (int)place->folder.len,
                                                place->folder.ptr, (int)file.len, file.ptr)
                              : hd_arena_printf(arena, "%.*s", (int)file.len, file.ptr);
    return graph->file ? 0 : no_memory(place);
}

int hd_config_check_code(const struct hd_config_place *place, struct hd_slice id,
                         struct hd_slice path)
{
    enum hd_rt_language language;

    switch (hd_config_code(path, &language)) {
    case HD_CODE_NAMELESS:
        return refuse_value(
            place, id, "needs the name of the object in the file, after a colon: \"%.*s:graph\"",
            HD_SHOW(path));
    case HD_CODE_UNKNOWN:
        return refuse_value(place, id,
                            "has an unknown language: \"%.*s\" is neither .py, .ts, .js nor a "
                            "declaration (.json)",
                            HD_SHOW(path));
    default:
        return 0;
    }
}

static int add_graph(const struct hd_config_place *place, struct hd_slice id, struct hd_slice file,
                     struct hd_slice description)
{
    struct hd_config_graphs *graphs = target(place);
    struct hd_config_graph *items;
    int err;

    if (!is_graph_id(id))
        return refuse_value(
            place, id,
            "is not a graph's id: letters, digits, \"_\", \"-\", \".\", and spaces between "
            "them, at most %d",
            MAX_GRAPH_ID);
    if (has_graph(graphs, id))
        return refuse_value(place, id, "is a duplicate");
    if (file.len == 0 || file.len > 4096 || memchr(file.ptr, '\0', file.len))
        return refuse_value(place, id, "needs the path of a file");
    err = hd_config_check_code(place, id, file);
    if (err != 0)
        return err;
    items = grow_items(place, graphs->items, &graphs->count, sizeof(*items));
    if (!items)
        return grow_error(place);
    graphs->items = items;
    err = put_graph(place, &items[graphs->count], id, file, description);
    if (err == 0)
        graphs->count++;
    return err;
}

static int add_graph_text(const struct hd_config_place *place, struct hd_slice text)
{
    const char *sign = text.len > 0 ? memchr(text.ptr, '=', text.len) : NULL;
    size_t len = sign ? (size_t)(sign - text.ptr) : 0;

    if (!sign)
        return refuse_value(place, text, "is not ID=FILE");
    return add_graph(place, hd_slice(text.ptr, len), hd_slice(sign + 1, text.len - len - 1),
                     HD_S(""));
}

/* {"id": "file"} or, as in langgraph.json, {"id": {"path": "file", "description": "…"}}. */
static int add_graph_json(const struct hd_config_place *place, struct hd_slice id, hd_json_val val)
{
    hd_json_val path = hd_json_is_object(val) ? hd_json_get(val, HD_S("path")) : val;
    hd_json_val description = hd_json_get(val, HD_S("description"));

    if (!hd_json_is_string(path) ||
        (description && !hd_json_is_string(description) && !hd_json_is_null(description)))
        return refuse_value(place, id,
                            "must be a path or {\"path\": …, \"description\": …}, not %s",
                            hd_json_type_name(val));
    return add_graph(place, id, hd_json_string(path), hd_json_string(description));
}

/* ---- any setting -------------------------------------------------------- */

static bool is_list(const struct hd_setting *setting)
{
    return setting->type == HD_SETTING_LIST || setting->type == HD_SETTING_PORTS ||
           setting->type == HD_SETTING_GRAPHS;
}

/* The value of a source replaces that of a lower one. */
static void clear_list(const struct hd_config_place *place)
{
    if (place->setting->type == HD_SETTING_LIST)
        *(struct hd_config_list *)target(place) = (struct hd_config_list){0};
    else if (place->setting->type == HD_SETTING_PORTS)
        *(struct hd_config_ports *)target(place) = (struct hd_config_ports){0};
    else
        *(struct hd_config_graphs *)target(place) = (struct hd_config_graphs){0};
}

static int add_one(const struct hd_config_place *place, struct hd_slice text)
{
    if (place->setting->type == HD_SETTING_LIST)
        return add_to_list(place, text);
    if (place->setting->type == HD_SETTING_PORTS)
        return add_port(place, text);
    return add_graph_text(place, text);
}

static int set_list_text(const struct hd_config_place *place, struct hd_slice text)
{
    int err = 0;

    if (!place->is_more)
        clear_list(place);
    text = trim_blanks(text);
    while (err == 0 && text.len > 0) {
        const char *comma = memchr(text.ptr, ',', text.len);
        size_t len = comma ? (size_t)(comma - text.ptr) : text.len;

        err = add_one(place, trim_blanks(hd_slice(text.ptr, len)));
        text = comma ? hd_slice(comma + 1, text.len - len - 1) : HD_S("");
    }
    return err;
}

int hd_config_set_text(const struct hd_config_place *place, struct hd_slice text)
{
    if (is_list(place->setting))
        return set_list_text(place, text);
    if (place->setting->type == HD_SETTING_TEXT)
        return set_string(place, text);
    text = trim_blanks(text);
    switch (place->setting->type) {
    case HD_SETTING_BOOL:
        return set_bool(place, text);
    case HD_SETTING_INT:
        return set_int(place, text);
    case HD_SETTING_SIZE:
        return set_size(place, text);
    case HD_SETTING_DURATION:
        return set_duration(place, text);
    case HD_SETTING_CHOICE:
        return set_choice(place, text);
    default:
        return 0;
    }
}

/* ---- JSON --------------------------------------------------------------- */

static int fail_type(const struct hd_config_place *place, const char *wanted, hd_json_val val)
{
    return hd_error_set(place->fault, HD_EINVAL, "%s: must be %s, not %s", place->origin, wanted,
                        hd_json_type_name(val));
}

static int set_list_json(const struct hd_config_place *place, hd_json_val val)
{
    bool is_graphs = place->setting->type == HD_SETTING_GRAPHS;
    struct hd_json_iter it = hd_json_iter(val);
    int err = 0;

    if (is_graphs ? !hd_json_is_object(val) : !hd_json_is_array(val))
        return fail_type(place, is_graphs ? "an object of ids and files" : "an array", val);
    clear_list(place);
    while (err == 0 && hd_json_next(&it)) {
        if (is_graphs)
            err = add_graph_json(place, it.key, it.val);
        else if (place->setting->type == HD_SETTING_PORTS && hd_json_is_number(it.val))
            err = add_port(place, hd_json_number_text(it.val));
        else if (place->setting->type == HD_SETTING_LIST && hd_json_is_string(it.val))
            err = add_to_list(place, hd_json_string(it.val));
        else
            err = fail_type(place,
                            place->setting->type == HD_SETTING_LIST ? "an array of strings"
                                                                    : "an array of numbers",
                            it.val);
    }
    return err;
}

/* A separate document: that of the file is freed. */
static int set_object(const struct hd_config_place *place, hd_json_val val)
{
    struct hd_config_object *object = target(place);
    struct hd_buf text;
    int err;

    if (place->setting->type == HD_SETTING_ENV && hd_json_is_string(val))
        ;
    else if (place->setting->type == HD_SETTING_OBJECTS) {
        if (!hd_json_is_array(val))
            return fail_type(place, "an array of objects", val);
    } else if (!hd_json_is_object(val))
        return fail_type(place,
                         place->setting->type == HD_SETTING_ENV
                             ? "the path of a file or an object of variables"
                             : "an object",
                         val);
    hd_json_fini(&object->json);
    hd_buf_init(&text, (size_t)6 * HD_CONFIG_MAX_FILE);
    err = hd_json_write_val(&text, val);
    if (!err)
        err = hd_json_parse(&object->json, hd_buf_slice(&text), NULL);
    hd_buf_fini(&text);
    if (err || hd_arena_copy(&place->config->arena, place->folder, &object->folder))
        return no_memory(place);
    object->val = hd_json_root(&object->json);
    return 0;
}

int hd_config_set_json(const struct hd_config_place *place, hd_json_val val)
{
    enum hd_setting_type type = place->setting->type;

    if (hd_setting_is_json(place->setting))
        return set_object(place, val);
    if (is_list(place->setting))
        return set_list_json(place, val);
    if (type == HD_SETTING_BOOL && !hd_json_is_bool(val))
        return fail_type(place, "a boolean", val);
    if ((type == HD_SETTING_TEXT || type == HD_SETTING_CHOICE) && !hd_json_is_string(val))
        return fail_type(place, "a string", val);
    if ((type == HD_SETTING_INT || type == HD_SETTING_DURATION) && !hd_json_is_number(val))
        return fail_type(place, "a number", val);
    if (type == HD_SETTING_SIZE && !hd_json_is_number(val) && !hd_json_is_string(val))
        return fail_type(place, "a number or a string such as \"64m\"", val);
    if (hd_json_is_bool(val))
        return hd_config_set_text(place, hd_json_is_true(val) ? HD_S("true") : HD_S("false"));
    return hd_config_set_text(place, hd_json_is_string(val) ? hd_json_string(val)
                                                            : hd_json_number_text(val));
}
