/*
 * Identity of a server process for other servers: its URL, host and process. Stored as JSON beside
 * the lock on a store, so that a refused server can report which server holds the store.
 */
#ifndef HD_CLUSTER_SERVER_IDENTITY_H
#define HD_CLUSTER_SERVER_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/slice.h"
#include "base/uuid.h"

/* The lease of a server that uses its store alone. */
#define HD_SERVER_IDENTITY_LEASE_US INT64_C(10000000)

struct hd_server_identity {
    char address[256]; /* URL; empty: not known yet */
    char host[128];    /* name of the machine, for messages */
    char version[32];
    char boot[64];   /* id of the kernel's current boot; empty: unknown */
    char pid_ns[64]; /* namespace that `pid` belongs to; empty: unknown */
    int64_t pid;
    int64_t pid_started;   /* in clock ticks since boot; 0: unknown */
    char id[HD_UUID_SIZE]; /* of a server in a cluster; empty: it uses its store alone */
    int64_t lease_us;      /* of a server in a cluster; 0: HD_SERVER_IDENTITY_LEASE_US */
};

/* This process, with no address. */
void hd_server_identity_init(struct hd_server_identity *self);

/* Appends a JSON object. */
HD_MUST_CHECK int hd_server_identity_write(const struct hd_server_identity *identity,
                                           struct hd_buf *out);
/* Missing and overlong members stay empty; invalid JSON gives an empty identity. */
void hd_server_identity_read(struct hd_slice json, struct hd_server_identity *out);

/* The time after which the server is dead unless its row changes. */
int64_t hd_server_identity_lease(const struct hd_server_identity *identity);

/* "the server at http://localhost:2024 (process 12 on host a)", with the parts that are set. */
void hd_server_identity_describe(const struct hd_server_identity *identity, char *out, size_t size);

/*
 * True if the process certainly no longer exists: `self` is on the same host, sees the same process
 * ids, and finds no process with this id and start time. False when this cannot be determined.
 */
bool hd_server_identity_is_gone(const struct hd_server_identity *identity,
                                const struct hd_server_identity *self);

#endif
