/*
 * A scripted model: what a provider of language models would answer, decided by the rules
 * of a script (docs/mock-model.md). Pure: requests go in as bytes, answers come out as bytes
 * cut into the pieces that a stream sends one by one. Who serves it keeps the times.
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

/* Whose API is spoken. */
enum hd_mock_form { HD_MOCK_OPENAI, HD_MOCK_ANTHROPIC, HD_MOCK_GEMINI };

/* A script, and how often each of its rules was used. */
struct hd_mock;

/* Empty text: the default script. HD_EINVAL with the path of what is wrong, or HD_ENOMEM. */
HD_MUST_CHECK int hd_mock_create(struct hd_mock **out, struct hd_slice text,
                                 struct hd_fault *fault);
void hd_mock_destroy(struct hd_mock *mock);

/* As if nothing had been asked yet. */
void hd_mock_reset(struct hd_mock *mock);

/* Whether a request with this key is served; an empty one stands for none. */
bool hd_mock_admits(const struct hd_mock *mock, struct hd_slice key);

struct hd_mock_ask {
    enum hd_mock_form form;
    struct hd_slice body;
    struct hd_slice model; /* Gemini's: it is in the path, as is whether to stream */
    bool is_stream;
};

struct hd_mock_answer {
    int status;
    int64_t rule; /* that decided, from 0; -1: none */
    int64_t latency_ms;
    int64_t delay_ms;
    int64_t retry_after; /* seconds; -1: not said */
    bool hangs;          /* never answers */
    bool is_stream;
    size_t cut;         /* the connection breaks after so many pieces; 0: it does not */
    struct hd_buf text; /* the body */
    size_t *ends;       /* of the pieces, in `text`; one when it is no stream */
    size_t count;
};

/*
 * What to answer. A request that is wrong gets an answer with a status too; the only errors are
 * HD_ENOMEM and HD_ELIMIT.
 */
HD_MUST_CHECK int hd_mock_chat(struct hd_mock *mock, const struct hd_mock_ask *ask,
                               struct hd_mock_answer *out);
/* Vectors made from the words of the texts: the same for the same text, near for similar ones. */
HD_MUST_CHECK int hd_mock_embed(struct hd_slice body, struct hd_mock_answer *out);
/* The list of models. */
HD_MUST_CHECK int hd_mock_models(const struct hd_mock *mock, struct hd_mock_answer *out);
/* An error as the API says it. */
HD_MUST_CHECK int hd_mock_refuse(enum hd_mock_form form, int status, const char *text,
                                 struct hd_mock_answer *out);
void hd_mock_answer_fini(struct hd_mock_answer *answer);

#endif
