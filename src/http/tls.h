/* The server's certificate and key, for TLS 1.2 and newer; files in PEM. Belongs to the loop. */
#ifndef HD_HTTP_TLS_H
#define HD_HTTP_TLS_H

#include "base/compiler.h"
#include "base/error.h"

struct hd_tls;

/*
 * `certificate` has the server's own first, then those between it and a root. HD_EINVAL says what
 * is wrong with which file. The names are copied.
 */
HD_MUST_CHECK int hd_tls_create(const char *certificate, const char *key, struct hd_tls **out,
                                struct hd_fault *fault);
/* No connection may be open. */
void hd_tls_destroy(struct hd_tls *tls);

/*
 * Reads both files again, for connections from now on. When something is wrong with them what was
 * there stays.
 */
HD_MUST_CHECK int hd_tls_reload(struct hd_tls *tls, struct hd_fault *fault);

#endif
