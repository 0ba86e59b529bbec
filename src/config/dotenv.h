/*
 * Files of environment variables: .env. Pure.
 *
 *   # a comment
 *   NAME=value             # another; spaces around the value do not count
 *   export NAME="with \n, \t, \" and ${OTHER}, over several lines if need be"
 *   NAME='as it stands'
 *   OTHER=${NAME:-what it is when NAME is not set}
 */
#ifndef HD_CONFIG_DOTENV_H
#define HD_CONFIG_DOTENV_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"

#define HD_DOTENV_MAX 1000 /* variables */
#define HD_DOTENV_MAX_VALUE 65536

struct hd_dotenv_item {
    const char *name;
    const char *value;
};

struct hd_dotenv {
    struct hd_dotenv_item *items; /* in the order of the file; of a name given twice the last */
    size_t count;
};

/* The value of a variable that the file does not set; NULL: it is not set at all. */
typedef const char *(*hd_dotenv_lookup)(void *ctx, const char *name);

/* HD_EINVAL names the line, never the value. All is in the arena. `lookup` may be NULL. */
HD_MUST_CHECK int hd_dotenv_parse(struct hd_slice text, hd_dotenv_lookup lookup, void *ctx,
                                  struct hd_arena *arena, struct hd_dotenv *out,
                                  struct heddle_error *fault);
/* [A-Za-z_][A-Za-z0-9_]* */
bool hd_dotenv_is_name(struct hd_slice name);
/* Sets one, or replaces it. HD_EINVAL: too many, too long, a NUL in it. */
HD_MUST_CHECK int hd_dotenv_put(struct hd_dotenv *env, struct hd_arena *arena, struct hd_slice name,
                                struct hd_slice value, struct heddle_error *fault);

#endif
