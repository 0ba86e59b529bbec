/* Identity of server processes: its stored form, and the detection of ended processes. */
#include "cluster/server_identity.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/check.h"

static void an_identity_survives_being_stored(void **state)
{
    struct hd_server_identity self, read;
    struct hd_buf text;

    (void)state;
    hd_server_identity_init(&self);
    (void)snprintf(self.address, sizeof(self.address), "http://localhost:2024");
    hd_buf_init(&text, 4096);
    assert_int_equal(hd_server_identity_write(&self, &text), 0);
    hd_server_identity_read(hd_buf_slice(&text), &read);
    assert_memory_equal(&self, &read, sizeof(self));
    hd_buf_fini(&text);
}

static void foreign_text_gives_an_empty_identity(void **state)
{
    static const char *const texts[] = {"", "{", "[]", "{\"pid\":\"x\",\"address\":7}"};
    struct hd_server_identity read, empty = {.pid = 0};
    char name[64];

    (void)state;
    for (size_t i = 0; i < HD_COUNT(texts); i++) {
        hd_server_identity_read(hd_slice_cstr(texts[i]), &read);
        assert_memory_equal(&read, &empty, sizeof(read));
        hd_server_identity_describe(&read, name, sizeof(name));
        assert_string_equal(name, "another server");
    }
}

static void a_live_process_is_not_gone(void **state)
{
    struct hd_server_identity self;

    (void)state;
    hd_server_identity_init(&self);
    assert_false(hd_server_identity_is_gone(&self, &self));
}

/* Before and after its parent waits for it. */
static void a_dead_process_is_gone(void **state)
{
    struct hd_server_identity self, child;
    int told[2];
    siginfo_t info;

    (void)state;
    hd_server_identity_init(&self);
    assert_int_equal(pipe(told), 0);
    child = self;
    child.pid = fork();
    if (child.pid == 0) {
        hd_server_identity_init(&child);
        _exit(write(told[1], &child, sizeof(child)) != (ssize_t)sizeof(child));
    }
    assert_int_equal(read(told[0], &child, sizeof(child)), sizeof(child));
    assert_int_equal(waitid(P_PID, (id_t)child.pid, &info, WEXITED | WNOWAIT), 0);
    assert_true(hd_server_identity_is_gone(&child, &self));
    assert_int_equal(waitid(P_PID, (id_t)child.pid, &info, WEXITED), 0);
    assert_true(hd_server_identity_is_gone(&child, &self));
    (void)close(told[0]);
    (void)close(told[1]);
}

static void another_process_with_the_same_id_does_not_count(void **state)
{
    struct hd_server_identity self, old;

    (void)state;
    hd_server_identity_init(&self);
    old = self;
    old.pid_started--;
    assert_true(hd_server_identity_is_gone(&old, &self));
}

static void a_process_of_another_host_or_container_is_never_known_to_be_gone(void **state)
{
    struct hd_server_identity self, other;

    (void)state;
    hd_server_identity_init(&self);
    other = self;
    other.pid = 1 << 30;
    assert_true(hd_server_identity_is_gone(&other, &self));
    other.boot[0] ^= 1;
    assert_false(hd_server_identity_is_gone(&other, &self));
    other = self;
    other.pid = 1 << 30;
    other.pid_ns[0] ^= 1;
    assert_false(hd_server_identity_is_gone(&other, &self));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_identity_survives_being_stored),
        cmocka_unit_test(foreign_text_gives_an_empty_identity),
        cmocka_unit_test(a_live_process_is_not_gone),
        cmocka_unit_test(a_dead_process_is_gone),
        cmocka_unit_test(another_process_with_the_same_id_does_not_count),
        cmocka_unit_test(a_process_of_another_host_or_container_is_never_known_to_be_gone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
