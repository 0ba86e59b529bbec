/*
 * Which model is asked, where, with which key: from the settings of a run, the defaults of
 * the node and the environment. Pure, but for the environment that it is given.
 *
 * Which key goes where: a key of the environment is sent to the server that the environment (or
 * the provider's own address) names, never to one that a request chose. For `base_url` the
 * environment has CUSTOM_API_KEY. Keys of the request go where the request says.
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

/* Where settings come from, the strongest first; borrows everything. */
struct hd_settings {
    const struct hd_val *layers[HD_SETTINGS_MAX_LAYERS];
    size_t layer_count;
    const struct hd_val *defaults;                   /* may be NULL */
    bool are_fixed;                                  /* the defaults are the graph's own words */
    const struct hd_val *secrets;                    /* what markers stand for; may be NULL */
    struct hd_slice graph;                           /* its name */
    const char *(*env)(void *ctx, const char *name); /* NULL: not set */
    void *env_ctx;
};

/* The run's settings, with what they say of the assistant underneath. */
void hd_settings_init(struct hd_settings *settings, const struct hd_val *given,
                      const struct hd_val *defaults);
/* The first that is neither null nor "", of the defaults too; NULL: none. */
const struct hd_val *hd_setting(const struct hd_settings *settings, const char *name);

struct hd_model_choice {
    const struct hd_provider *provider;
    struct hd_buf model;
    struct hd_buf base_url; /* without a slash at the end; empty: the model needs no server */
    bool is_own_url;        /* the environment, the graph or Heddle itself has it */
    struct hd_buf key;      /* empty: none */
    struct hd_buf org, tier, graph; /* what a router of models is told; empty: nothing */
    bool has_temperature;
    double temperature;
    int64_t max_tokens; /* 0: not said */
    const char *error_type;
    struct hd_fault fault;
};

void hd_model_choice_fini(struct hd_model_choice *choice);
/* HD_EINVAL with error_type and fault, HD_ENOMEM. To be let go in either case. */
HD_MUST_CHECK int hd_model_choose(const struct hd_settings *settings,
                                  struct hd_model_choice *choice);

#endif
