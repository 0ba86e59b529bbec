/* The server's certificate and key, for TLS 1.2 and newer; files in PEM. Belongs to the loop. */
#ifndef HD_HTTP_TLS_H
#define HD_HTTP_TLS_H

#include "base/compiler.h"
#include "base/error.h"

struct hd_tls;

/*
 * `certificate` has the server's own first, then intermediates. HD_EINVAL names the file and the
 * reason. Copies the file names.
 */
HD_MUST_CHECK int hd_tls_create(const char *certificate, const char *key, struct hd_tls **out,
                                struct heddle_error *fault);
/* No connection may be open. */
void hd_tls_destroy(struct hd_tls *tls);

/* Reads both files again, for new connections. On failure the current certificate stays. */
HD_MUST_CHECK int hd_tls_reload(struct hd_tls *tls, struct heddle_error *fault);

#endif
