/*
 * Secrets in a run's configuration: kept in memory, for the run.
 *
 * hd_secrets_take() replaces each secret of a value by a *marker*, a string with its path
 * ("heddle:secret:mcp_config.servers.0.headers.Authorization"), and returns a map of markers to
 * secrets. Everything that is stored, shown or evaluated has markers; only the code that sends a
 * secret to its server reveals it.
 */
#ifndef HD_SECRET_SECRET_H
#define HD_SECRET_SECRET_H

#include <stdbool.h>

#include "base/compiler.h"
#include "base/slice.h"
#include "value/val.h"

#define HD_SECRET_PREFIX "heddle:secret:"

/* By name: API keys, tokens (not `max_tokens`), passwords, secrets, authorization, cookies … */
bool hd_secret_is_name(struct hd_slice name);
/*
 * Request headers: any except known harmless ones (Accept, User-Agent, names that end with
 * `-version`, …), since services choose the header names of their keys freely.
 */
bool hd_secret_is_header(struct hd_slice name);
/* Object members that give a request's target (`url`, …) and what it sends (`headers`). */
bool hd_secret_names_target(struct hd_slice name);
bool hd_secret_names_headers(struct hd_slice name);
/* By shape: JSON Web Tokens, "Bearer …", providers' key formats. */
bool hd_secret_is_text(struct hd_slice text);

/*
 * Takes `config` and returns it with markers. Adds the secrets to *secrets, an object of markers to
 * strings and numbers (created when it is NULL and needed). All members of an object with a secret
 * name (`apiKeys`) are secret, and so are the headers of a server, an agent or a tool: an object
 * with `url` and `headers`. Markers in the input become null, so that a secret cannot be read by
 * its name. NULL: HD_ENOMEM.
 */
HD_MUST_CHECK struct hd_val *hd_secrets_take(struct hd_val *config, struct hd_val **secrets);

/*
 * Whether a value to be stored has a secret: by name, and with `by_text` also by shape. Appends its
 * path to `path`.
 */
bool hd_secrets_find(const struct hd_val *value, bool by_text, struct hd_buf *path);

/* A copy with markers replaced by their secrets; unknown markers become null. */
HD_MUST_CHECK struct hd_val *hd_secrets_reveal(const struct hd_val *value,
                                               const struct hd_val *secrets);
/*
 * Appends a text in which markers may occur anywhere ("Bearer heddle:secret:…"), with their
 * secrets. HD_ENOTFOUND: unknown marker.
 */
HD_MUST_CHECK int hd_secrets_reveal_text(struct hd_slice text, const struct hd_val *secrets,
                                         struct hd_buf *out);
/* The secret of the longest marker that the text begins with; NULL: none is known. */
const struct hd_val *hd_secrets_first(struct hd_slice text, const struct hd_val *secrets,
                                      size_t *len);
bool hd_secret_is_marker(struct hd_slice text);

#endif
