/*
 * Store URLs: scheme:rest?name=value&… . Our own parameters are removed and checked here, once for
 * all drivers; the others stay in `rest`.
 */
#ifndef HD_STORE_URL_H
#define HD_STORE_URL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/compiler.h"
#include "base/error.h"

struct hd_url {
    const char *scheme;
    const char *rest; /* after "scheme:", without our parameters, percent-decoded only for sqlite */
    const char *full; /* scheme:rest, for drivers whose library takes URLs */
    bool is_relaxed;  /* durability=relaxed */
    size_t max_value; /* max_value=, default 256 MiB */
    unsigned pool;    /* pool=, default 4, 1 to 64 */
    const char *schema; /* schema=, default "heddle": [a-z_][a-z0-9_]*, at most 40 characters */
    int timeout_ms;     /* timeout= in seconds, default 10, 1 to 600 */
    /* Not in the text: a database of this version or a newer one stays as it is; 0: ours. */
    int enough_version;
};

/* Strings live in `arena`. HD_EINVAL names the parameter and what it takes. */
HD_MUST_CHECK int hd_url_parse(struct hd_url *url, const char *text, struct hd_arena *arena,
                               struct heddle_error *fault);

/* A URL without its password, for display; also when the password breaks the URL. */
/* The file of a sqlite: URL; false when it names no file. */
bool hd_url_file(const char *url, char *out, size_t size);
void hd_url_show(const char *url, char *out, size_t size);

#endif
