/*
 * Chooses the model, its server and its key: from the settings of a run, the defaults of the node
 * and the environment. Pure, except for the environment that it is given.
 *
 * Keys: a key of the environment is sent to the server that the environment (or the provider's
 * default) names, never to one that a request chose. For `base_url` the environment has
 * CUSTOM_API_KEY. Keys of the request go to the server of the request.
 */
#ifndef HD_AGENT_MODEL_MODEL_CHOICE_H
#define HD_AGENT_MODEL_MODEL_CHOICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/model/provider.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "base/slice.h"
#include "value/val.h"

#define HD_SETTINGS_MAX_LAYERS 8

/* Sources of settings, in order of precedence; borrows everything. */
struct hd_settings {
    const struct hd_val *layers[HD_SETTINGS_MAX_LAYERS];
    size_t layer_count;
    const struct hd_val *defaults;                   /* may be NULL */
    bool are_fixed;                                  /* the graph overrides the request */
    const struct hd_val *secrets;                    /* values of markers; may be NULL */
    struct hd_slice graph;                           /* its name */
    const char *(*env)(void *ctx, const char *name); /* NULL: not set */
    void *env_ctx;
};

/* The run's settings, with the assistant's below. */
void hd_settings_init(struct hd_settings *settings, const struct hd_val *given,
                      const struct hd_val *defaults);
/* The first that is neither null nor "", including the defaults; NULL: none. */
const struct hd_val *hd_model_setting(const struct hd_settings *settings, const char *name);

struct hd_model_choice {
    const struct hd_provider *provider;
    struct hd_buf model;
    struct hd_buf base_url;         /* without a trailing slash; empty: no server */
    bool is_own_url;                /* from the environment, the graph or the default */
    struct hd_buf key;              /* empty: none */
    struct hd_buf org, tier, graph; /* for a model router; empty: none */
    bool has_temperature;
    double temperature;
    int64_t max_tokens; /* 0: not set */
    const char *error_type;
    struct heddle_error fault;
};

void hd_model_choice_fini(struct hd_model_choice *choice);
/* HD_EINVAL with error_type and fault, HD_ENOMEM. Free it in either case. */
HD_MUST_CHECK int hd_model_choose(const struct hd_settings *settings,
                                  struct hd_model_choice *choice);

#endif
