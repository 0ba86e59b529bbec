/*
 * JSON Schemas in Gemini's subset of OpenAPI. Resolves references (to a maximum depth, as they may
 * be recursive), turns lists of types into `nullable` or `anyOf`, and removes unknown members.
 */
#include "agent/model/provider.h"

#define MAX_DEPTH 24
#define MAX_SCHEMAS 4000 /* of one tool, with references resolved */

struct schema_walk {
    const struct hd_val *root;
    int depth;
    int count;
};

static struct hd_val *reduce(struct schema_walk *walk, const struct hd_val *schema);

static bool is_listed_word(struct hd_slice text, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (hd_slice_eq(text, hd_slice_cstr(list[i])))
            return true;
    }
    return false;
}

/* "#/$defs/Name": a pointer into the root; NULL: unresolved. */
static const struct hd_val *follow(const struct schema_walk *walk, struct hd_slice ref)
{
    const struct hd_val *at = walk->root;
    size_t pos = 2;

    if (!hd_slice_starts(ref, HD_S("#/")))
        return NULL;
    while (at && pos <= ref.len) {
        size_t end = pos;

        while (end < ref.len && ref.ptr[end] != '/')
            end++;
        at = hd_val_get(at, hd_slice(ref.ptr + pos, end - pos));
        pos = end + 1;
    }
    return at;
}

static struct hd_val *reduce_list(struct schema_walk *walk, const struct hd_val *list)
{
    struct hd_val *out = hd_val_list();

    for (size_t i = 0; i < hd_val_count(list); i++)
        out = hd_val_append(out, reduce(walk, hd_val_at(list, i)));
    return out;
}

static struct hd_val *reduce_properties(struct schema_walk *walk, const struct hd_val *properties)
{
    struct hd_val *out = hd_val_object();

    for (size_t i = 0; i < hd_val_count(properties); i++) {
        struct hd_val *key, *val = hd_val_member(properties, i, &key);

        out = hd_val_with_key(out, hd_val_ref(key), reduce(walk, val));
    }
    return out;
}

/* ["string", "null"] becomes a nullable string, ["string", "integer"] an anyOf. Takes `out`. */
static struct hd_val *with_types(struct hd_val *out, const struct hd_val *types)
{
    struct hd_val *any = hd_val_list();
    bool is_nullable = false;

    for (size_t i = 0; i < hd_val_count(types); i++) {
        struct hd_val *type = hd_val_at(types, i);

        if (hd_slice_eq(hd_val_get_string(type), HD_S("null")))
            is_nullable = true;
        else
            any = hd_val_append(any, hd_val_with(hd_val_object(), HD_S("type"), hd_val_ref(type)));
    }
    if (hd_val_count(any) == 1)
        out = hd_val_merge(out, hd_val_at(any, 0));
    else if (!any || hd_val_count(any) > 1)
        out = hd_val_with(out, HD_S("anyOf"), any ? hd_val_ref(any) : NULL);
    hd_val_unref(any);
    return is_nullable ? hd_val_with(out, HD_S("nullable"), hd_val_bool(true)) : out;
}

/* Enum values must be strings. Takes `out`. */
static struct hd_val *with_enum(struct hd_val *out, const struct hd_val *values)
{
    struct hd_val *list = hd_val_list();

    for (size_t i = 0; i < hd_val_count(values); i++) {
        if (hd_val_is_string(hd_val_at(values, i)))
            list = hd_val_append(list, hd_val_ref(hd_val_at(values, i)));
    }
    if (list && (hd_val_count(list) == 0 || hd_val_count(list) < hd_val_count(values))) {
        hd_val_unref(list);
        return out;
    }
    if (!hd_val_get(out, HD_S("type")))
        out = hd_val_with(out, HD_S("type"), hd_val_cstr("string"));
    return hd_val_with(out, HD_S("enum"), list);
}

static bool is_known_format(const struct hd_val *format)
{
    static const char *const names[] = {"date-time", "enum", "int32", "int64", "float", "double"};

    return is_listed_word(hd_val_get_string(format), names, HD_COUNT(names));
}

/* Takes `out`; adds one member of a schema. */
static struct hd_val *with_member(struct schema_walk *walk, struct hd_val *out, struct hd_slice key,
                                  const struct hd_val *val)
{
    static const char *const kept[] = {"description", "title",    "nullable", "minimum",
                                       "maximum",     "minItems", "maxItems", "minLength",
                                       "maxLength",   "pattern",  "required"};

    if (is_listed_word(key, kept, HD_COUNT(kept)))
        return hd_val_with(out, key, hd_val_ref(val));
    if (hd_slice_eq(key, HD_S("type")))
        return hd_val_is_list(val) ? with_types(out, val) : hd_val_with(out, key, hd_val_ref(val));
    if (hd_slice_eq(key, HD_S("format")) && is_known_format(val))
        return hd_val_with(out, key, hd_val_ref(val));
    if (hd_slice_eq(key, HD_S("properties")))
        return hd_val_with(out, key, reduce_properties(walk, val));
    if (hd_slice_eq(key, HD_S("items")) && hd_val_is_object(val))
        return hd_val_with(out, key, reduce(walk, val));
    if (hd_slice_eq(key, HD_S("anyOf")) || hd_slice_eq(key, HD_S("oneOf")))
        return hd_val_with(out, HD_S("anyOf"), reduce_list(walk, val));
    if (hd_slice_eq(key, HD_S("enum")))
        return with_enum(out, val);
    if (hd_slice_eq(key, HD_S("const")) && hd_val_is_string(val)) {
        struct hd_val *one = hd_val_append(hd_val_list(), hd_val_ref(val));

        out = with_enum(out, one);
        hd_val_unref(one);
    }
    return out;
}

/* Takes `out`; adds the members of `more` that it lacks. */
static struct hd_val *with_other(struct schema_walk *walk, struct hd_val *out,
                                 const struct hd_val *more)
{
    struct hd_val *other = reduce(walk, more);

    for (size_t i = 0; i < hd_val_count(other) && out; i++) {
        struct hd_val *key, *val = hd_val_member(other, i, &key);

        if (!hd_val_get(out, hd_val_get_string(key)))
            out = hd_val_with_key(out, hd_val_ref(key), hd_val_ref(val));
    }
    if (!other) {
        hd_val_unref(out);
        out = NULL;
    }
    hd_val_unref(other);
    return out;
}

static struct hd_val *reduce_members(struct schema_walk *walk, const struct hd_val *schema)
{
    const struct hd_val *target = follow(walk, hd_val_get_string(hd_val_get(schema, HD_S("$ref"))));
    const struct hd_val *all = hd_val_get(schema, HD_S("allOf"));
    struct hd_val *out = hd_val_object();

    for (size_t i = 0; i < hd_val_count(schema) && out; i++) {
        struct hd_val *key, *val = hd_val_member(schema, i, &key);

        out = with_member(walk, out, hd_val_get_string(key), val);
    }
    if (target && out)
        out = with_other(walk, out, target);
    for (size_t i = 0; hd_val_is_list(all) && i < hd_val_count(all) && out; i++)
        out = with_other(walk, out, hd_val_at(all, i));
    return out;
}

static struct hd_val *reduce(struct schema_walk *walk, const struct hd_val *schema)
{
    struct hd_val *out;

    if (!hd_val_is_object(schema) || walk->depth >= MAX_DEPTH || ++walk->count > MAX_SCHEMAS)
        return hd_val_with(hd_val_object(), HD_S("type"), hd_val_cstr("object"));
    walk->depth++;
    out = reduce_members(walk, schema);
    walk->depth--;
    return out;
}

struct hd_val *hd_schema_reduce(const struct hd_val *schema)
{
    struct schema_walk walk = {.root = schema};

    return reduce(&walk, schema);
}
