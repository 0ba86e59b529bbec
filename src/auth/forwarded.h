/*
 * The header `Heddle-Forwarded`: a server of a cluster sends a request of its client on to another
 * one, with the identity that it has verified. Pure: no I/O, no clock.
 *
 * The value is base64url(JSON) "." base64url(HMAC-SHA256). The key is derived from `cluster.key`.
 * The code covers the JSON, the method, the path and the query; the JSON contains the SHA-256 of
 * the body and names the receiver, whose id is new at each start. So a header is of no use with
 * another request, at another server, or after a restart.
 */
#ifndef HD_AUTH_FORWARDED_H
#define HD_AUTH_FORWARDED_H

#include "auth/digest.h"
#include "auth/identity.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "base/slice.h"

#define HD_FORWARDED_HEADER HD_S("heddle-forwarded")
#define HD_FORWARDED_MAX ((size_t)192 << 10) /* bytes of the header's value */

struct hd_forwarded_key {
    unsigned char bytes[HD_SHA256_LEN];
};

/* The parts of a request that the code covers, as they are sent: still percent-encoded. */
struct hd_forwarded_target {
    struct hd_slice method;
    struct hd_slice path;
    struct hd_slice query;
};

struct hd_forwarded {
    struct hd_slice source, target; /* ids of the servers: UUIDs */
    struct hd_identity *identity;   /* NULL: the servers have no authentication */
    struct hd_identity *by;         /* the administrator who acts for `identity`; NULL: none */
    struct hd_slice principal;      /* the owner of the thread in the path, or the caller */
    enum hd_role role;              /* of the caller in that thread */
    unsigned char body[HD_SHA256_LEN];
};

HD_MUST_CHECK int hd_forwarded_key_derive(struct hd_slice cluster_key,
                                          struct hd_forwarded_key *out);

/* Appends the header's value. HD_ELIMIT: it would be larger than HD_FORWARDED_MAX. */
HD_MUST_CHECK int hd_forwarded_write(const struct hd_forwarded_key *key,
                                     const struct hd_forwarded *forwarded,
                                     const struct hd_forwarded_target *target, struct hd_buf *out);
/*
 * HD_EACCESS: malformed, or the code is not that of the request. HD_ETAKEN: it is for another
 * server than `self`. Slices are in the arena; hd_forwarded_fini() releases the identities. The
 * caller compares the body's hash (hd_sha256()), which may take long.
 */
HD_MUST_CHECK int hd_forwarded_read(const struct hd_forwarded_key *key, struct hd_slice self,
                                    struct hd_slice header,
                                    const struct hd_forwarded_target *target,
                                    struct hd_arena *arena, struct hd_forwarded *out);
void hd_forwarded_fini(struct hd_forwarded *forwarded);

#endif
