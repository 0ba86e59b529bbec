/*
 * How long threads live. A `ttl` is kept as JSON, in full:
 *
 *   {"ttl": minutes, "strategy": "delete" | "keep_latest" | "keep_branches",
 *    "keep_last": k, "sliding": false}
 *
 * keep_last is there with keep_branches only, sliding only when it is false: then the time begins
 * when the thread, or its ttl, is made, and otherwise anew with each change.
 */
#ifndef HD_CONFIG_TTL_H
#define HD_CONFIG_TTL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/json.h"
#include "base/slice.h"
#include "config/config.h"

#define HD_KEEP_LAST_MAX 1000000

struct hd_ttl {
    double minutes; /* 0: no expiry */
    enum hd_ttl_strategy strategy;
    size_t keep_last; /* HD_TTL_KEEP_BRANCHES */
    bool is_fixed;
};

/* NULL-terminated, by enum hd_ttl_strategy. */
extern const char *const hd_ttl_strategies[];

/* Reads the JSON; absent and invalid members get the default. */
struct hd_ttl hd_ttl_read(struct hd_slice ttl);
/* As JSON, in the arena; empty: no expiry. */
HD_MUST_CHECK int hd_ttl_write(const struct hd_ttl *ttl, struct hd_arena *arena,
                               struct hd_slice *out);
/*
 * From a request: minutes alone (0: no expiry), or an object with them (`refresh` is another word
 * for `sliding`); what it leaves out is as configured. HD_EINVAL with a sentence.
 */
HD_MUST_CHECK int hd_ttl_parse(const struct hd_config *config, hd_json_val val, struct hd_ttl *out,
                               struct heddle_error *fault);
/* The ttl that the configuration gives to a thread without one; empty: none. In the arena. */
HD_MUST_CHECK int hd_ttl_standard(const struct hd_config *config, struct hd_arena *arena,
                                  struct hd_slice *out);

#endif
