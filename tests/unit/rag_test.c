/* Texts made from retrieved documents. */
#include "unit/check.h"

#include <stdio.h>
#include <string.h>

#include "agent/rag.h"

static void names_are_cleaned(void **state)
{
    static const char *const cases[][2] = {
        {"Plain_name-1", "Plain_name-1"},
        {"My Files (2026)", "My_Files__2026_"},
        {"Gr\xc3\xbc\xc3\x9f"
         "e",
         "Gr__e"},
        {"", ""},
    };
    char name[65], long_name[101];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        hd_rag_clean_name(hd_slice_cstr(cases[i][0]), name);
        assert_string_equal(name, cases[i][1]);
    }
    memset(long_name, 'x', 100);
    long_name[100] = 0;
    hd_rag_clean_name(hd_slice_cstr(long_name), name);
    assert_int_equal(strlen(name), 64);
}

static void check_documents(const char *body, size_t max, const char *expected)
{
    struct hd_buf out;

    hd_buf_init(&out, 1 << 20);
    assert_err(hd_rag_documents(hd_slice_cstr(body), max, &out), 0);
    assert_slice(hd_buf_slice(&out), hd_slice_cstr(expected));
    hd_buf_fini(&out);
}

static void documents_are_escaped(void **state)
{
    (void)state;
    check_documents("[{\"id\":\"a\\\"b\",\"page_content\":\"x < y & </document>\"},{\"id\":7}]",
                    1000,
                    "<all-documents>\n  <document id=\"a&quot;b\">\nx &lt; y &amp; "
                    "&lt;/document&gt;\n  </document>\n  <document id=\"7\">\n\n  </document>\n"
                    "</all-documents>");
    check_documents("[]", 1000, "<all-documents>\n</all-documents>");
}

static void documents_that_do_not_fit_are_counted(void **state)
{
    (void)state;
    check_documents("[{\"id\":\"1\",\"page_content\":\"a text that is far too long to fit into so "
                    "little room as there is\"},{\"id\":\"2\",\"page_content\":\"short\"}]",
                    90,
                    "<all-documents>\n  <document id=\"2\">\nshort\n  </document>\n  <left-out "
                    "count=\"1\"/>\n</all-documents>");
}

static void other_replies_than_documents_are_refused(void **state)
{
    static const char *const bodies[] = {"{}", "", "[", "null", "\"x\""};
    struct hd_buf out;

    (void)state;
    for (size_t i = 0; i < sizeof(bodies) / sizeof(*bodies); i++) {
        hd_buf_init(&out, 1 << 20);
        assert_err(hd_rag_documents(hd_slice_cstr(bodies[i]), 100, &out), HD_EINVAL);
        hd_buf_fini(&out);
    }
}

static void read_hits(struct hd_rag_hits *hits, const char *body, const char *archive)
{
    assert_err(hd_rag_hits_read(hits, hd_slice_cstr(body), hd_slice_cstr(archive)), 0);
}

static void check_hits(const struct hd_rag_hits *hits, size_t max, const char *expected)
{
    struct hd_buf out;

    hd_buf_init(&out, 1 << 20);
    assert_err(hd_rag_hits_text(hits, max, &out), 0);
    assert_slice(hd_buf_slice(&out), hd_slice_cstr(expected));
    hd_buf_fini(&out);
}

static void the_nearest_of_all_archives_come_first(void **state)
{
    struct hd_rag_hits hits = {0};
    struct hd_val *list;
    struct hd_buf text;

    (void)state;
    read_hits(&hits,
              "{\"ids\":[[\"a1\",\"a2\",\"a3\"]],\"documents\":[[\"one\",null,\"three\"]],"
              "\"metadatas\":[[{\"source\":\"f.pdf\",\"page_number\":3,\"section_heading\":\"On\"},"
              "null,null]],\"distances\":[[0.5,0.1,0.9]]}",
              "A");
    read_hits(&hits, "{\"ids\":[[\"b1\"]],\"documents\":[[\"two\"]],\"distances\":[[0.7]]}", "B");
    assert_int_equal(hits.count, 3);
    hd_rag_hits_sort(&hits, 2);
    check_hits(&hits, 1000, "[1] A, f.pdf, 3, On\none\n\n[2] B\ntwo");
    check_hits(&hits, 22, "[1] A, f.pdf, 3, On\non");
    list = hd_rag_hits_val(&hits);
    hd_buf_init(&text, 1 << 20);
    assert_non_null(list);
    assert_err(hd_val_render(&text, list), 0);
    assert_slice(hd_buf_slice(&text),
                 HD_S("[{\"archive\":\"A\",\"id\":\"a1\",\"distance\":0.5,\"metadata\":{\"source\":"
                      "\"f.pdf\",\"page_number\":3,\"section_heading\":\"On\"}},{\"archive\":\"B\","
                      "\"id\":\"b1\",\"distance\":0.7}]"));
    hd_buf_fini(&text);
    hd_val_unref(list);
    hd_rag_hits_fini(&hits);
}

static void answers_of_other_shapes_are_refused(void **state)
{
    static const char *const bodies[] = {
        "", "[]", "{}", "{\"ids\":[]}", "{\"ids\":[3]}", "{\"error\":\"x\"}"};
    struct hd_rag_hits hits = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(bodies) / sizeof(*bodies); i++)
        assert_err(hd_rag_hits_read(&hits, hd_slice_cstr(bodies[i]), HD_S("A")), HD_EINVAL);
    read_hits(&hits, "{\"ids\":[[\"a\"]],\"documents\":[[\"t\"]],\"distances\":[[]]}", "A");
    assert_int_equal(hits.count, 1);
    hd_rag_hits_fini(&hits);
}

static int find_something(void *arg)
{
    struct hd_rag_hits hits = {0};
    struct hd_buf out;
    int err;

    (void)arg;
    hd_buf_init(&out, 1 << 20);
    err = hd_rag_hits_read(&hits,
                           HD_S("{\"ids\":[[\"a\",\"b\"]],\"documents\":[[\"t\",\"u\"]],"
                                "\"metadatas\":[[{},{}]],\"distances\":[[2,1]]}"),
                           HD_S("A"));
    hd_rag_hits_sort(&hits, 1);
    if (!err)
        err = hd_rag_hits_text(&hits, 100, &out);
    if (!err)
        err = hd_rag_documents(HD_S("[{\"id\":\"1\",\"page_content\":\"x\"}]"), 100, &out);
    hd_rag_hits_fini(&hits);
    hd_buf_fini(&out);
    return err;
}

static void failed_allocations_are_reported(void **state)
{
    (void)state;
    assert_true(check_every_allocation(find_something, NULL) > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_cleaned),
        cmocka_unit_test(documents_are_escaped),
        cmocka_unit_test(documents_that_do_not_fit_are_counted),
        cmocka_unit_test(other_replies_than_documents_are_refused),
        cmocka_unit_test(the_nearest_of_all_archives_come_first),
        cmocka_unit_test(answers_of_other_shapes_are_refused),
        cmocka_unit_test(failed_allocations_are_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
