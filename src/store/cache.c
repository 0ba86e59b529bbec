#include "store/cache.h"

#include <sys/random.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/vec.h"

#define MAX_THREADS (1u << 20)
#define MAX_CHUNKS (1u << 24) /* per thread; beyond that nothing new is shared */
#define FIRST_SEQ 1

int hd_epoch_create(int64_t *out)
{
    uint64_t random;

    if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
        return HD_EIO;
    *out = (int64_t)((random >> 2) & ~(uint64_t)1);
    return 0;
}

/* ---- threads ---- */

void hd_cache_init(struct hd_cache *cache, size_t limit)
{
    memset(cache, 0, sizeof(*cache));
    hd_map_init(&cache->threads, MAX_THREADS);
    cache->limit = limit;
}

static void state_destroy(struct hd_cached_thread *state)
{
    state->cache->bytes -= state->bytes;
    for (size_t i = 0; i < state->sequence_count; i++) {
        hd_free((void *)state->sequences[i].name.ptr);
        hd_free(state->sequences[i].hashes);
    }
    for (size_t i = 0; i < HD_STATE_HEADS; i++)
        hd_free(state->heads[i].memory);
    hd_free(state->sequences);
    hd_free(state->slots);
    hd_free((void *)state->key.ptr);
    hd_free(state);
}

static void unlink_state(struct hd_cache *cache, struct hd_cached_thread *state)
{
    *(state->newer ? &state->newer->older : &cache->newest) = state->older;
    *(state->older ? &state->older->newer : &cache->oldest) = state->newer;
    state->newer = state->older = NULL;
}

static void link_newest(struct hd_cache *cache, struct hd_cached_thread *state)
{
    state->older = cache->newest;
    *(state->older ? &state->older->newer : &cache->oldest) = state;
    cache->newest = state;
}

static void remove_state(struct hd_cache *cache, struct hd_cached_thread *state)
{
    unlink_state(cache, state);
    hd_map_remove(&cache->threads, state->key);
    state_destroy(state);
}

/* Adds to the size; wraps around for fewer bytes. */
static void weigh(struct hd_cached_thread *state, size_t more)
{
    state->bytes += more;
    state->cache->bytes += more;
}

void hd_cache_fini(struct hd_cache *cache)
{
    while (cache->oldest)
        remove_state(cache, cache->oldest);
    hd_map_fini(&cache->threads);
}

void hd_cache_trim(struct hd_cache *cache)
{
    while (cache->bytes > cache->limit && cache->oldest != cache->newest)
        remove_state(cache, cache->oldest);
}

void hd_cache_drop(struct hd_cache *cache, struct hd_slice key)
{
    struct hd_cached_thread *state = hd_map_get(&cache->threads, key);

    if (state)
        remove_state(cache, state);
}

struct hd_cached_thread *hd_cache_find(struct hd_cache *cache, struct hd_slice key)
{
    return hd_map_get(&cache->threads, key);
}

static int read_thread_row(void *arg, size_t which, const struct hd_cell *cells)
{
    struct hd_cached_thread *state = arg;

    (void)which;
    state->epoch = cells[HD_THREADS_EPOCH].number;
    state->created_at = cells[HD_THREADS_CREATED].number;
    state->is_stored = true;
    return 0;
}

static int state_create(struct hd_cache *cache, struct hd_slice key, struct hd_cached_thread **out)
{
    struct hd_cached_thread *state = hd_calloc(1, sizeof(*state));
    char *copy = hd_malloc(key.len + 1);

    if (!state || !copy) {
        hd_free(state);
        hd_free(copy);
        return HD_ENOMEM;
    }
    if (key.len)
        memcpy(copy, key.ptr, key.len);
    state->key = hd_slice(copy, key.len);
    state->cache = cache;
    weigh(state, sizeof(*state) + key.len);
    *out = state;
    return 0;
}

static int state_load(const struct hd_cache *cache, struct hd_cached_thread *state,
                      struct hd_backend *backend, struct heddle_error *fault)
{
    struct hd_cell prefix = hd_cell_bytes(state->key);
    struct hd_query query = {.table = HD_THREADS,
                             .index = HD_PRIMARY,
                             .prefix = &prefix,
                             .prefix_count = 1,
                             .limit = 1,
                             .columns = HD_ALL_COLUMNS};
    int err = hd_backend_read(backend, &query, 1, read_thread_row, state, fault);

    state->loaded_at = hd_clock_monotonic_us();
    if (err || state->is_stored)
        return err;
    state->was_absent = true;
    state->is_new = !cache->is_careful;
    return hd_epoch_create(&state->epoch);
}

int hd_cache_thread(struct hd_cache *cache, struct hd_backend *backend, struct hd_slice key,
                    struct hd_cached_thread **out, struct heddle_error *fault)
{
    struct hd_cached_thread *state = hd_map_get(&cache->threads, key);
    int err;

    if (state) {
        unlink_state(cache, state);
        link_newest(cache, state);
        *out = state;
        return 0;
    }
    err = state_create(cache, key, &state);
    if (err)
        return err;
    err = state_load(cache, state, backend, fault);
    if (!err)
        err = hd_map_put(&cache->threads, state->key, state);
    if (err) {
        state_destroy(state);
        return err;
    }
    link_newest(cache, state);
    *out = state;
    return 0;
}

/* ---- chunks ---- */

static bool hash_eq(struct hd_hash128 a, struct hd_hash128 b)
{
    return a.lo == b.lo && a.hi == b.hi;
}

static void slot_insert(struct hd_chunk_slot *slots, size_t cap, struct hd_chunk_slot slot)
{
    size_t at = slot.hash.lo & (cap - 1);

    while (slots[at].seq) {
        if (slots[at].sequence == slot.sequence && hash_eq(slots[at].hash, slot.hash))
            return; /* the first chunk with this content stays the shared one */
        at = (at + 1) & (cap - 1);
    }
    slots[at] = slot;
}

static int grow_slots(struct hd_cached_thread *state)
{
    size_t cap = state->slot_cap ? state->slot_cap * 2 : 64;
    struct hd_chunk_slot *slots;

    if (cap > MAX_CHUNKS)
        return HD_ELIMIT;
    slots = hd_calloc(cap, sizeof(*slots));
    if (!slots)
        return HD_ENOMEM;
    for (size_t i = 0; i < state->slot_cap; i++) {
        if (state->slots[i].seq)
            slot_insert(slots, cap, state->slots[i]);
    }
    hd_free(state->slots);
    weigh(state, (cap - state->slot_cap) * sizeof(*slots));
    state->slots = slots;
    state->slot_cap = cap;
    return 0;
}

static int index_chunk(struct hd_cached_thread *state, uint32_t sequence, struct hd_hash128 hash,
                       int64_t seq)
{
    if ((state->slot_count + 1) * 4 > state->slot_cap * 3) {
        int err = grow_slots(state);

        if (err)
            return err == HD_ELIMIT ? 0 : err; /* stored nevertheless, only not shared */
    }
    slot_insert(state->slots, state->slot_cap,
                (struct hd_chunk_slot){.hash = hash, .seq = seq, .sequence = sequence});
    state->slot_count++;
    return 0;
}

static int sequence_push(struct hd_cached_thread *state, struct hd_chunk_sequence *sequence,
                         struct hd_hash128 hash)
{
    size_t cap = sequence->cap;
    int err = hd_array_grow(sequence->hashes, sequence->count, sequence->cap);

    if (err)
        return err;
    weigh(state, (sequence->cap - cap) * sizeof(hash));
    sequence->hashes[sequence->count++] = hash;
    return 0;
}

static int64_t next_seq(const struct hd_chunk_sequence *sequence)
{
    return sequence->first + (int64_t)sequence->count;
}

struct sequence_loader {
    struct hd_cached_thread *state;
    uint32_t number;
};

static int load_chunk(void *arg, size_t which, const struct hd_cell *cells)
{
    struct sequence_loader *loader = arg;
    struct hd_chunk_sequence *sequence = &loader->state->sequences[loader->number];
    int64_t seq = cells[HD_CHUNKS_SEQ].number;
    struct hd_slice bytes = cells[HD_CHUNKS_HASH].bytes;
    struct hd_hash128 hash;
    int err;

    (void)which;
    if (bytes.len != sizeof(hash) || seq < next_seq(sequence) || seq > HD_CHUNK_SEQ_MAX)
        return HD_ECORRUPT;
    memcpy(&hash, bytes.ptr, sizeof(hash));
    if (sequence->count == 0)
        sequence->first = seq;
    /*
     * Collected chunks leave gaps, which are never referred to; after a huge gap the earlier chunks
     * are dropped instead of storing the gap.
     */
    if (seq - next_seq(sequence) > 1 << 20) {
        sequence->count = 0;
        sequence->first = seq;
    }
    while (next_seq(sequence) < seq) {
        err = sequence_push(loader->state, sequence, (struct hd_hash128){0, 0});
        if (err)
            return err;
    }
    /*
     * Chunks of a thread that had no row belong to a thread created meanwhile, which may be deleted
     * again before our own row exists: no epoch would show that. So only their numbers are
     * reserved.
     */
    if (loader->state->was_absent)
        return sequence_push(loader->state, sequence, (struct hd_hash128){0, 0});
    err = sequence_push(loader->state, sequence, hash);
    return err ? err : index_chunk(loader->state, loader->number, hash, seq);
}

static int sequence_add(struct hd_cached_thread *state, struct hd_slice name)
{
    struct hd_chunk_sequence *grown =
        hd_realloc(state->sequences, (state->sequence_count + 1) * sizeof(*grown));
    char *copy;

    if (!grown)
        return HD_ENOMEM;
    state->sequences = grown;
    copy = hd_malloc(name.len + 1);
    if (!copy)
        return HD_ENOMEM;
    if (name.len)
        memcpy(copy, name.ptr, name.len);
    grown[state->sequence_count] =
        (struct hd_chunk_sequence){.name = hd_slice(copy, name.len), .first = FIRST_SEQ};
    state->sequence_count++;
    weigh(state, sizeof(*grown) + name.len);
    return 0;
}

static bool sequence_find(const struct hd_cached_thread *state, struct hd_slice name, uint32_t *out)
{
    for (size_t i = 0; i < state->sequence_count; i++) {
        if (hd_slice_eq(state->sequences[i].name, name)) {
            *out = (uint32_t)i;
            return true;
        }
    }
    return false;
}

bool hd_cached_has_sequence(const struct hd_cached_thread *state, struct hd_slice name)
{
    uint32_t number;

    return state->is_new || sequence_find(state, name, &number);
}

int hd_cached_sequence(struct hd_cached_thread *state, struct hd_backend *backend,
                       struct hd_slice name, uint32_t *out, struct heddle_error *fault)
{
    struct hd_cell prefix[] = {hd_cell_bytes(state->key), hd_cell_bytes(name)};
    struct hd_query query = {.table = HD_CHUNKS,
                             .index = HD_PRIMARY,
                             .prefix = prefix,
                             .prefix_count = 2,
                             .columns = 1u << HD_CHUNKS_HASH};
    struct sequence_loader loader = {.state = state};
    int err;

    if (sequence_find(state, name, out))
        return 0;
    err = sequence_add(state, name);
    if (err)
        return err;
    loader.number = *out = (uint32_t)(state->sequence_count - 1);
    if (state->is_new)
        return 0;
    return hd_backend_read(backend, &query, 1, load_chunk, &loader, fault);
}

/* While an epoch is odd old chunks may be removed: nothing is shared then. */
static bool may_share(const struct hd_cached_thread *state)
{
    return (state->epoch & 1) == 0;
}

bool hd_cached_is_chunk(const struct hd_cached_thread *state, uint32_t number, int64_t seq,
                        struct hd_hash128 hash)
{
    const struct hd_chunk_sequence *sequence = &state->sequences[number];

    return seq >= sequence->first && seq < next_seq(sequence) && may_share(state) &&
           hash_eq(sequence->hashes[seq - sequence->first], hash);
}

int64_t hd_cached_find(const struct hd_cached_thread *state, uint32_t sequence,
                       struct hd_hash128 hash)
{
    if (state->slot_cap == 0 || !may_share(state))
        return 0;
    for (size_t at = hash.lo & (state->slot_cap - 1); state->slots[at].seq;
         at = (at + 1) & (state->slot_cap - 1)) {
        if (state->slots[at].sequence == sequence && hash_eq(state->slots[at].hash, hash))
            return state->slots[at].seq;
    }
    return 0;
}

int64_t hd_cached_find_any(const struct hd_cached_thread *state, struct hd_hash128 hash,
                           uint32_t *sequence)
{
    if (state->slot_cap == 0 || !may_share(state))
        return 0;
    for (size_t at = hash.lo & (state->slot_cap - 1); state->slots[at].seq;
         at = (at + 1) & (state->slot_cap - 1)) {
        if (hash_eq(state->slots[at].hash, hash)) {
            *sequence = state->slots[at].sequence;
            return state->slots[at].seq;
        }
    }
    return 0;
}

int hd_cached_add(struct hd_cached_thread *state, uint32_t number, struct hd_hash128 hash,
                  int64_t *seq)
{
    struct hd_chunk_sequence *sequence = &state->sequences[number];
    int64_t mine = next_seq(sequence);
    int err = sequence_push(state, sequence, hash);

    if (!err)
        err = index_chunk(state, number, hash, mine);
    if (!err)
        *seq = mine;
    return err;
}

/* ---- heads ---- */

bool hd_cached_head(const struct hd_cached_thread *state, struct hd_slice ns, struct hd_slice id,
                    struct hd_slice *body)
{
    for (size_t i = 0; i < HD_STATE_HEADS && state->heads[i].memory; i++) {
        if (hd_slice_eq(state->heads[i].id, id) && hd_slice_eq(state->heads[i].ns, ns)) {
            *body = state->heads[i].body;
            return true;
        }
    }
    return false;
}

static struct hd_slice place(char **pos, struct hd_slice s)
{
    struct hd_slice placed = hd_slice(*pos, s.len);

    if (s.len)
        memcpy(*pos, s.ptr, s.len);
    *pos += s.len;
    return placed;
}

/* The slot to overwrite: the same checkpoint's, or the oldest. */
static size_t head_victim(const struct hd_cached_thread *state, struct hd_slice ns,
                          struct hd_slice id)
{
    size_t i = 0;

    while (i < HD_STATE_HEADS - 1 && state->heads[i].memory &&
           !(hd_slice_eq(state->heads[i].id, id) && hd_slice_eq(state->heads[i].ns, ns)))
        i++;
    return i;
}

int hd_cached_set_head(struct hd_cached_thread *state, struct hd_slice ns, struct hd_slice id,
                       struct hd_slice body)
{
    size_t victim = head_victim(state, ns, id);
    struct hd_cached_head *old = &state->heads[victim];
    char *pos = hd_malloc(ns.len + id.len + body.len + 1);
    struct hd_cached_head head = {.memory = pos};

    if (!pos)
        return HD_ENOMEM;
    head.ns = place(&pos, ns);
    head.id = place(&pos, id);
    head.body = place(&pos, body);
    weigh(state, ns.len + id.len + body.len);
    if (old->memory) {
        weigh(state, (size_t)0 - (old->ns.len + old->id.len + old->body.len));
        hd_free(old->memory);
    }
    memmove(&state->heads[1], &state->heads[0], victim * sizeof(state->heads[0]));
    state->heads[0] = head;
    return 0;
}
