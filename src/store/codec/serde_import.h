/*
 * Values that the canonical encoding cannot express are stored as LangGraph's own serializers wrote
 * them: `msgpack` of Python's, `json` of JavaScript's. Only the program that wrote one can use it,
 * but its contents can be shown.
 */
#ifndef HD_STORE_CODEC_SERDE_IMPORT_H
#define HD_STORE_CODEC_SERDE_IMPORT_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/json.h"
#include "base/slice.h"

/*
 * Writes the value as LangGraph's server would show it to a client. False when it cannot be decoded
 * (another serializer, encrypted, damaged): nothing was written then. Other errors are in the
 * writer. Secrets of pydantic are shown as asterisks.
 */
HD_MUST_CHECK bool hd_serde_put(struct hd_jw *jw, struct hd_slice type, struct hd_slice data);

/*
 * For each serializer: appends JSON that is nested at the given depth. HD_EINVAL or HD_ELIMIT:
 * damaged, or too deep.
 */
HD_MUST_CHECK int hd_serde_msgpack(struct hd_buf *out, struct hd_slice data, int depth);
HD_MUST_CHECK int hd_serde_json(struct hd_buf *out, struct hd_slice text, int depth);

#endif
