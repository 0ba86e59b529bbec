/* Reads expressions of a declaration; for the decl_expr*.c files and decl_channels.c. */
#ifndef HD_GRAPH_DECL_DECL_EXPR_H
#define HD_GRAPH_DECL_DECL_EXPR_H

#include "graph/decl/decl.h"
#include "graph/expr/builtin.h"

/* decl_expr_path.c */
HD_MUST_CHECK int hd_decl_path_read(struct hd_decl *decl, const struct hd_decl_at *at,
                                    const struct hd_names *names, struct hd_slice text,
                                    const struct hd_path **out);
/* A string: a literal, a path or a text with paths. */
HD_MUST_CHECK int hd_decl_string_expr(struct hd_decl *decl, const struct hd_decl_at *at,
                                      const struct hd_names *names, struct hd_expr *out);
HD_MUST_CHECK int hd_decl_literal(struct hd_decl *decl, struct hd_val *val, struct hd_expr *out);

/* decl_expr_record.c: an object that begins with `$`. */
bool hd_decl_is_record(hd_json_val val);
/* True if `val` is or contains a record. */
bool hd_decl_has_record(hd_json_val val);
/* Read a record without expressions, which is checked, and the kind of one with expressions. */
HD_MUST_CHECK int hd_decl_record(struct hd_decl *decl, const struct hd_decl_at *at,
                                 struct hd_expr *out);
HD_MUST_CHECK int hd_decl_record_kind(struct hd_decl *decl, const struct hd_decl_at *at,
                                      size_t *out);
#endif
