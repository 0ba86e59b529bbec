/*
 * Secrets in what a run is configured with: they live in memory, for the run.
 *
 * hd_secrets_take() replaces each secret of a value by a *marker*, a string that names
 * its place ("heddle:secret:mcp_config.servers.0.headers.Authorization"), and returns what
 * the markers stand for. Everything that is stored, shown or seen by expressions has
 * markers; only who sends a secret to the server it is meant for reveals it.
 */
#ifndef HD_SECRET_SECRET_H
#define HD_SECRET_SECRET_H

#include <stdbool.h>

#include "base/compiler.h"
#include "base/slice.h"
#include "value/val.h"

#define HD_SECRET_PREFIX "heddle:secret:"

/* By name: api keys, tokens (not `max_tokens`), passwords, secrets, authorization, cookies … */
bool hd_secret_is_name(struct hd_slice name);
/*
 * Headers that a request sends: any but those that are known to be harmless (Accept, User-Agent,
 * names that end with `-version`, …), since services name the headers of their keys as they like.
 */
bool hd_secret_is_header(struct hd_slice name);
/* Members of an object that say where a request goes (`url`, …) and what it sends (`headers`). */
bool hd_secret_names_target(struct hd_slice name);
bool hd_secret_names_headers(struct hd_slice name);
/* By shape: JSON Web Tokens, "Bearer …", keys as providers make them. */
bool hd_secret_is_text(struct hd_slice text);

/*
 * Takes `config` and returns it with markers. What they stand for is added to *secrets, an
 * object of markers to strings and numbers (made when it is NULL and there is something to add).
 * Members of an object with a secret name (`apiKeys`) are all secret, and so are the headers of a
 * server, an agent or a tool, an object with `url` and `headers`. Markers that come in stand
 * for nothing and become null, so that nobody gets at a secret by its name. NULL: HD_ENOMEM.
 */
HD_MUST_CHECK struct hd_val *hd_secrets_take(struct hd_val *config, struct hd_val **secrets);

/*
 * Whether there is a secret in a value that will be stored: by name, and `by_text` too. Its place
 * is appended to `path`.
 */
bool hd_secrets_find(const struct hd_val *value, bool by_text, struct hd_buf *path);

/* A copy in which markers are what they stand for; those that nobody knows any more become null. */
HD_MUST_CHECK struct hd_val *hd_secrets_reveal(const struct hd_val *value,
                                               const struct hd_val *secrets);
/*
 * Appends a text in which markers may stand anywhere ("Bearer heddle:secret:…"), with what they
 * stand for. HD_ENOTFOUND: nobody knows it any more.
 */
HD_MUST_CHECK int hd_secrets_reveal_text(struct hd_slice text, const struct hd_val *secrets,
                                         struct hd_buf *out);
/* What the longest marker that the text begins with stands for; NULL: none is known. */
const struct hd_val *hd_secrets_first(struct hd_slice text, const struct hd_val *secrets,
                                      size_t *len);
bool hd_secret_is_marker(struct hd_slice text);

#endif
