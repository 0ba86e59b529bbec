#include "store/list_append.h"

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/vec.h"
#include "store/codec/split_internal.h"

#define FIRST_CAP 1024
#define STATE_ALIGN 64 /* required by XXH3 for its state */

/*
 * Memory that grows at its end while other threads read its older part: it never moves; when it is
 * full the listing continues in a larger copy.
 */
struct hd_text {
    size_t refs;
    size_t cap;
    char bytes[];
};

/* The position of a cutter before it closes the last open group, as offsets: the group may grow. */
struct cutter_place {
    size_t done;
    size_t group; /* 0: no group; the bracket is there */
    size_t group_end;
    size_t last_end; /* of the last element */
    bool has_pieces; /* any that remain */
};

struct hd_listing {
    struct hd_text *text;
    size_t len;    /* without the closing bracket */
    size_t hashed; /* number of bytes in `hash` */
    void *memory;  /* of hash */
    XXH3_state_t *hash;
    HD_VEC(size_t) ends; /* of the elements added since the last growth */

    /* The last growth. */
    struct cutter_place place;
    uint64_t size;
    uint64_t checksum;
};

/* ---- text ------------------------------------------------------------- */

static void text_release(struct hd_text *text)
{
    if (text && --text->refs == 0)
        hd_free(text);
}

/* Reserves `more` bytes after the listing's text. */
static int listing_reserve(struct hd_listing *listing, size_t more)
{
    size_t need = listing->len + more, cap = listing->text ? listing->text->cap : FIRST_CAP / 2;
    struct hd_text *text;

    if (need < more || need > SIZE_MAX / 4)
        return HD_ENOMEM;
    if (listing->text && need <= cap)
        return 0;
    while (cap < need)
        cap *= 2;
    text = hd_malloc(sizeof(*text) + cap);
    if (!text)
        return HD_ENOMEM;
    text->refs = 1;
    text->cap = cap;
    if (listing->len > 0)
        memcpy(text->bytes, listing->text->bytes, listing->len);
    text_release(listing->text);
    listing->text = text;
    return 0;
}

static void listing_append(struct hd_listing *listing, struct hd_slice s)
{
    memcpy(listing->text->bytes + listing->len, s.ptr, s.len);
    listing->len += s.len;
}

void hd_growth_write(const struct hd_growth *growth, char *out)
{
    memcpy(out, growth->text->bytes, growth->size - 1);
    out[growth->size - 1] = ']';
}

/* ---- listings --------------------------------------------------------- */

struct hd_listing *hd_listing_create(void)
{
    struct hd_listing *listing = hd_calloc(1, sizeof(*listing));

    if (!listing)
        return NULL;
    listing->memory = hd_malloc(sizeof(XXH3_state_t) + STATE_ALIGN);
    if (!listing->memory) {
        hd_free(listing);
        return NULL;
    }
    listing->hash = (XXH3_state_t *)(((uintptr_t)listing->memory + STATE_ALIGN - 1) &
                                     ~(uintptr_t)(STATE_ALIGN - 1));
    hd_listing_reset(listing);
    return listing;
}

void hd_listing_destroy(struct hd_listing *listing)
{
    if (!listing)
        return;
    text_release(listing->text);
    hd_free(listing->memory);
    hd_vec_fini(&listing->ends);
    hd_free(listing);
}

void hd_listing_reset(struct hd_listing *listing)
{
    text_release(listing->text);
    listing->text = NULL;
    listing->len = listing->hashed = 0;
    listing->ends.count = 0;
    listing->place = (struct cutter_place){0};
    (void)XXH3_64bits_reset(listing->hash);
}

int hd_listing_add(struct hd_listing *listing, struct hd_slice element)
{
    int err = listing_reserve(listing, element.len + 2);

    if (err)
        return err;
    if (listing->len != 1)
        listing_append(listing, listing->len == 0 ? HD_S("[") : HD_S(","));
    listing_append(listing, element);
    return hd_vec_push(&listing->ends, listing->len);
}

/* ---- growths ---------------------------------------------------------- */

static uint64_t checksum(struct hd_listing *listing)
{
    XXH3_state_t whole;

    (void)XXH3_64bits_update(listing->hash, listing->text->bytes + listing->hashed,
                             listing->len - listing->hashed);
    listing->hashed = listing->len;
    XXH3_copyState(&whole, listing->hash);
    (void)XXH3_64bits_update(&whole, "]", 1);
    return XXH3_64bits_digest(&whole);
}

static int cut_elements(const struct hd_listing *listing, struct hd_cutter *cutter,
                        struct cutter_place *place)
{
    const char *bytes = listing->text->bytes;
    int err = 0;

    for (size_t i = 0; !err && i < listing->ends.count; i++) {
        /* A bracket or a comma precedes it. */
        size_t begin = place->last_end > 0 ? place->last_end + 1 : 1;

        err = hd_cutter_element(cutter, bytes + begin, bytes + listing->ends.items[i]);
        place->last_end = listing->ends.items[i];
    }
    return err;
}

/* Moves `place` past the added elements; the pieces are those from its old done on. */
static int listing_cut(const struct hd_listing *listing, struct cutter_place *place,
                       struct hd_pieces *pieces)
{
    const char *bytes = listing->text->bytes;
    struct hd_cutter cutter = {.pieces = pieces,
                               .done = bytes + place->done,
                               .group = place->group ? bytes + place->group : NULL,
                               .group_end = bytes + place->group_end};
    int err = cut_elements(listing, &cutter, place);

    place->done = (size_t)(cutter.done - bytes);
    place->group = cutter.group ? (size_t)(cutter.group - bytes) : 0;
    place->group_end = cutter.group ? (size_t)(cutter.group_end - bytes) : 0;
    place->has_pieces |= pieces->count > 0;
    if (!err)
        err = hd_cutter_flush(&cutter);
    return err ? err : hd_pieces_add_literal(pieces, HD_S("]"));
}

static int growth_fill(struct hd_listing *listing, struct hd_growth *growth)
{
    struct cutter_place place = listing->place;
    int err = listing->len == 0 ? listing_reserve(listing, 1) : 0;

    if (err)
        return err;
    if (listing->len == 0)
        listing_append(listing, HD_S("["));
    err = listing_cut(listing, &place, &growth->pieces);
    if (err)
        return err;
    growth->has_base = listing->place.has_pieces;
    growth->base_size = listing->size;
    growth->base_checksum = listing->checksum;
    growth->drops_chunk = listing->place.group > 0;
    growth->size = listing->len + 1;
    growth->checksum = checksum(listing);
    growth->text = listing->text;
    growth->text->refs++;
    listing->place = place;
    listing->size = growth->size;
    listing->checksum = growth->checksum;
    listing->ends.count = 0;
    return 0;
}

int hd_listing_grow(struct hd_listing *listing, struct hd_growth **out)
{
    struct hd_growth *growth = hd_calloc(1, sizeof(*growth));
    int err;

    if (!growth)
        return HD_ENOMEM;
    err = growth_fill(listing, growth);
    if (err)
        hd_growth_destroy(growth);
    else
        *out = growth;
    return err;
}

void hd_growth_destroy(struct hd_growth *growth)
{
    if (!growth)
        return;
    hd_pieces_fini(&growth->pieces);
    text_release(growth->text);
    hd_free(growth);
}

/* ---- a stored list ---------------------------------------------------- */

static int note_ends(struct hd_listing *listing)
{
    const char *bytes = listing->text->bytes, *end = bytes + listing->len, *p = bytes;
    int err = 0;

    while (!err && p < end) {
        p = hd_split_json_value(p + 1, end); /* after the bracket, or a comma */
        if (!p || (p < end && *p != ','))
            return HD_EINVAL;
        err = hd_vec_push(&listing->ends, (size_t)(p - bytes));
    }
    return err;
}

static int listing_read_text(struct hd_listing *listing, struct hd_slice text)
{
    struct hd_pieces pieces = {0};
    struct cutter_place place = {0};
    int err;

    if (text.len < 3 || text.ptr[0] != '[' || text.ptr[text.len - 1] != ']')
        return HD_EINVAL;
    err = listing_reserve(listing, text.len);
    if (err)
        return err;
    listing_append(listing, hd_slice(text.ptr, text.len - 1));
    err = note_ends(listing);
    if (!err)
        err = listing_cut(listing, &place, &pieces);
    hd_pieces_fini(&pieces);
    if (err)
        return err;
    listing->place = place;
    listing->size = text.len;
    listing->checksum = checksum(listing);
    listing->ends.count = 0;
    return 0;
}

int hd_listing_read(struct hd_listing *listing, struct hd_slice text)
{
    int err;

    hd_listing_reset(listing);
    err = listing_read_text(listing, text);
    if (err)
        hd_listing_reset(listing);
    return err;
}

bool hd_listing_is(const struct hd_listing *listing, uint64_t *size, uint64_t *sum)
{
    *size = listing->size;
    *sum = listing->checksum;
    return listing->len > 0 && listing->ends.count == 0;
}
