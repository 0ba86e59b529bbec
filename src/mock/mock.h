/*
 * A scripted model: responds as a language model provider would, by the rules of a script
 * (docs/mock-model.md). Pure: takes requests as bytes, returns responses as bytes split into the
 * pieces that a stream sends one by one. The server that uses it keeps the timing.
 */
#ifndef HD_MOCK_MOCK_H
#define HD_MOCK_MOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"

#define HD_MOCK_MAX_SCRIPT ((size_t)4 << 20)
#define HD_MOCK_MAX_REQUEST ((size_t)32 << 20)
#define HD_MOCK_MAX_ANSWER ((size_t)64 << 20)

/* The API format. */
enum hd_mock_form { HD_MOCK_OPENAI, HD_MOCK_ANTHROPIC, HD_MOCK_GEMINI };

/* A script, and the use count of each rule. */
struct hd_mock;

/* Empty text: the default script. HD_EINVAL with the path of the invalid member, or HD_ENOMEM. */
HD_MUST_CHECK int hd_mock_create(struct hd_mock **out, struct hd_slice text,
                                 struct heddle_error *fault);
void hd_mock_destroy(struct hd_mock *mock);

/* Resets all counters. */
void hd_mock_reset(struct hd_mock *mock);

/* Whether a request with this key is accepted; empty: no key. */
bool hd_mock_admits(const struct hd_mock *mock, struct hd_slice key);

struct hd_mock_ask {
    enum hd_mock_form form;
    struct hd_slice body;
    struct hd_slice model; /* Gemini only: the path has the model and whether to stream */
    bool is_stream;
};

struct hd_mock_answer {
    int status;
    int64_t rule; /* index of the matching rule; -1: none */
    int64_t latency_ms;
    int64_t delay_ms;
    int64_t retry_after; /* seconds; -1: no header */
    bool hangs;          /* never responds */
    bool is_stream;
    size_t cut;         /* closes the connection after this many pieces; 0: never */
    struct hd_buf text; /* the body */
    size_t *ends;       /* ends of the pieces in `text`; one if not a stream */
    size_t count;
};

/*
 * Makes the response. An invalid request gets a response with an error status; the only errors
 * returned are HD_ENOMEM and HD_ELIMIT.
 */
HD_MUST_CHECK int hd_mock_chat(struct hd_mock *mock, const struct hd_mock_ask *ask,
                               struct hd_mock_answer *out);
/* Vectors made from the words of the texts: equal for equal texts, close for similar ones. */
HD_MUST_CHECK int hd_mock_embed(struct hd_slice body, struct hd_mock_answer *out);
/* The list of models. */
HD_MUST_CHECK int hd_mock_models(const struct hd_mock *mock, struct hd_mock_answer *out);
/* An error in the API's format. */
HD_MUST_CHECK int hd_mock_refuse(enum hd_mock_form form, int status, const char *text,
                                 struct hd_mock_answer *out);
void hd_mock_answer_fini(struct hd_mock_answer *answer);

#endif
