/*
 * Search by meaning: `store.index` of the configuration.
 *
 * Texts of items, and queries, become vectors: by the project's function in a worker, or by a
 * server with OpenAI's /embeddings. The loop sends the request; a store thread parses the response.
 * The nearest text of an item determines its score.
 */
#ifndef HD_SEARCH_EMBED_H
#define HD_SEARCH_EMBED_H

#include <stddef.h>

#include "base/arena.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"

struct hd_app;
struct hd_embedder;

/* *out is NULL when there is no store.index. HD_EINVAL: it is not as it should be. */
HD_MUST_CHECK int hd_embedder_create(struct hd_app *app, struct hd_embedder **out,
                                     struct heddle_error *fault);
/* Nothing may be under way. */
void hd_embedder_destroy(struct hd_embedder *embedder);

/* How many embeddings are under way, for shutting down; 0 for NULL. The loop's. */
size_t hd_embedder_count(const struct hd_embedder *embedder);
size_t hd_embedder_dims(const struct hd_embedder *embedder);
/* The paths of texts in items without paths in their request. */
const struct hd_slice *hd_embedder_fields(const struct hd_embedder *embedder, size_t *count);

struct hd_embedding;
/* On the loop. `err` not 0: there are no vectors, and `fault` has the reason. */
typedef void (*hd_embedded_fn)(void *ctx, int err, const struct heddle_error *fault);

/*
 * Requests the vectors of these texts. The texts and the embedding must stay valid until `done` is
 * called: once, later, on the loop. On error it is not called.
 */
HD_MUST_CHECK int hd_embed(struct hd_embedder *embedder, const struct hd_slice *texts, size_t count,
                           hd_embedded_fn done, void *ctx, struct hd_embedding **out);
/*
 * Parses the response: a vector of length 1 for each text, hd_embedder_dims() numbers each. For a
 * store thread. They belong to the embedding. HD_EUNAVAILABLE: the response is invalid.
 */
HD_MUST_CHECK int hd_embedding_read(struct hd_embedding *embedding, const float **out,
                                    struct heddle_error *fault);
/* Accepts NULL. Not before `done`. */
void hd_embedding_free(struct hd_embedding *embedding);

/* As they are stored: `count` numbers, little endian. */
HD_MUST_CHECK int hd_embed_pack(const float *vectors, size_t count, struct hd_arena *arena,
                                struct hd_slice *out);
/* The similarity of a vector and the nearest of the packed ones: from -1 to 1; NAN: no vectors. */
double hd_embed_nearness(const float *query, size_t dims, struct hd_slice packed);

#endif
