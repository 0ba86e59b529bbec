/* Shared by the retrieval sources: requests, and (rag_text.c, pure) results. */
#ifndef HD_AGENT_RAG_H
#define HD_AGENT_RAG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/exchange.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "value/val.h"

#define HD_RAG_MAX_TEXT ((size_t)192 << 10) /* of a result */
#define HD_RAG_MAX_BODY ((size_t)8 << 20)

struct hd_engine_run;
struct hd_task;

/* ---- requests: rag.c -------------------------------------------------- */

struct hd_rag_ask {
    struct hd_task *task; /* NULL: for the run */
    struct hd_engine_run *run;
    const char *method;
    const char *url;
    bool is_trusted;       /* the operator chose the URL */
    struct hd_slice token; /* sent as bearer; empty: none */
    struct hd_slice body;  /* JSON; ptr NULL: none */
    void (*on_done)(void *ctx, const struct hd_reply *reply);
    void *ctx;
};

HD_MUST_CHECK int hd_rag_ask(const struct hd_rag_ask *ask, struct hd_agent_exchange **out);
/* Checks a response: HD_EIO with the reason, or 0. */
HD_MUST_CHECK int hd_rag_check(const struct hd_reply *reply, struct heddle_error *fault);

/* Appends `base` without trailing slashes. */
HD_MUST_CHECK int hd_rag_put_base(struct hd_buf *out, struct hd_slice base);

/* ---- results: rag_text.c ---------------------------------------------- */

/* Keeps letters, digits, `_` and `-`, replaces anything else by `_`; 64 at most. */
void hd_rag_clean_name(struct hd_slice name, char out[65]);

/*
 * LangConnect's list of documents as `<all-documents><document id="…">…`, escaped; documents that
 * do not fit into `max` bytes are counted at the end. HD_EINVAL: invalid.
 */
HD_MUST_CHECK int hd_rag_documents(struct hd_slice body, size_t max, struct hd_buf *out);

/* A hit in an archive; ordered by distance after sorting. */
struct hd_rag_hit {
    double distance;
    size_t number;       /* order of arrival */
    struct hd_val *val;  /* {"archive", "id", "distance", "metadata"} */
    struct hd_val *text; /* a string */
};

struct hd_rag_hits {
    struct hd_rag_hit *list;
    size_t count, cap;
};

void hd_rag_hits_fini(struct hd_rag_hits *hits);
/* Adds the hits of a Chroma query. HD_EINVAL: invalid response. */
HD_MUST_CHECK int hd_rag_hits_read(struct hd_rag_hits *hits, struct hd_slice body,
                                   struct hd_slice archive);
/* Sorts, and keeps the nearest `top`. */
void hd_rag_hits_sort(struct hd_rag_hits *hits, size_t top);
/* "[1] archive, source, page, heading\ntext", separated by blank lines; at most `max` bytes. */
HD_MUST_CHECK int hd_rag_hits_text(const struct hd_rag_hits *hits, size_t max, struct hd_buf *out);
/* A list of their `val`. */
HD_MUST_CHECK struct hd_val *hd_rag_hits_val(const struct hd_rag_hits *hits);

#endif
