#include "broker/ipc_lock_io.h"

#include "base/error.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>

typedef struct {
    char directory[64];
    char path[80];      /* of the socket */
    char lock_path[96]; /* of its lock file */
    char fault[256];
} fixture_t;

static int make_directory (void **state)
{
    fixture_t *const self = calloc (1, sizeof *self);
    strcpy (self->directory, "/tmp/hawser-test-XXXXXX");
    if (!mkdtemp (self->directory)) {
        return -1;
    }
    snprintf (self->path, sizeof self->path, "%s/socket", self->directory);
    snprintf (self->lock_path, sizeof self->lock_path, "%s.lock", self->path);
    *state = self;
    return 0;
}

static int remove_directory (void **state)
{
    fixture_t *const self = *state;
    unlink (self->path);
    unlink (self->lock_path);
    const int rc = rmdir (self->directory);
    free (self);
    return rc;
}

static int listen_at (const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy (address.sun_path, path, strlen (path) + 1);
    const int listener = socket (AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal (bind (listener, (struct sockaddr *) &address, sizeof address), 0);
    assert_int_equal (listen (listener, 1), 0);
    return listener;
}

static int claim (fixture_t *self, hws_ipc_lock_t *lock)
{
    return hws_ipc_lock_claim (lock, self->path, self->fault, sizeof self->fault);
}

static void a_free_path_is_claimed_and_its_lock_file_goes_with_the_claim (void **state)
{
    fixture_t *const self = *state;
    hws_ipc_lock_t lock;

    assert_int_equal (claim (self, &lock), 0);
    assert_int_equal (access (self->lock_path, F_OK), 0);
    hws_ipc_lock_release (&lock);

    assert_int_equal (access (self->lock_path, F_OK), -1);
}

static void a_released_path_leaves_no_socket_behind (void **state)
{
    fixture_t *const self = *state;
    hws_ipc_lock_t lock;
    assert_int_equal (claim (self, &lock), 0);
    const int listener = listen_at (self->path);

    hws_ipc_lock_release (&lock);

    assert_int_equal (access (self->path, F_OK), -1);
    close (listener);
}

static void a_claimed_path_is_refused_until_it_is_released (void **state)
{
    fixture_t *const self = *state;
    hws_ipc_lock_t first, second;
    assert_int_equal (claim (self, &first), 0);

    assert_int_equal (claim (self, &second), HWS_EADDRESS_IN_USE);
    assert_string_equal (self->fault, "another broker listens there");

    hws_ipc_lock_release (&first);
    assert_int_equal (claim (self, &second), 0);
    hws_ipc_lock_release (&second);
}

static void a_lock_file_that_nobody_holds_is_no_hindrance (void **state)
{
    fixture_t *const self = *state;
    hws_ipc_lock_t lock;
    close (open (self->lock_path, O_CREAT | O_RDWR, 0600));

    assert_int_equal (claim (self, &lock), 0);

    hws_ipc_lock_release (&lock);
}

static void the_socket_of_a_dead_broker_is_removed (void **state)
{
    fixture_t *const self = *state;
    hws_ipc_lock_t lock;
    close (listen_at (self->path));

    assert_int_equal (claim (self, &lock), 0);

    assert_int_equal (access (self->path, F_OK), -1);
    hws_ipc_lock_release (&lock);
}

static void a_socket_that_answers_is_refused_and_stays (void **state)
{
    fixture_t *const self = *state;
    hws_ipc_lock_t lock;
    const int listener = listen_at (self->path);

    assert_int_equal (claim (self, &lock), HWS_EADDRESS_IN_USE);

    assert_int_equal (access (self->path, F_OK), 0);
    assert_int_equal (access (self->lock_path, F_OK), -1);
    close (listener);
}

static void a_file_that_is_no_socket_is_refused_and_stays (void **state)
{
    fixture_t *const self = *state;
    hws_ipc_lock_t lock;
    const int file = open (self->path, O_CREAT | O_RDWR, 0600);
    assert_int_equal (write (file, "precious", 8), 8);
    close (file);

    assert_int_equal (claim (self, &lock), HWS_EADDRESS_IN_USE);

    struct stat found;
    assert_int_equal (stat (self->path, &found), 0);
    assert_int_equal (found.st_size, 8);
}

static void a_symbolic_link_is_refused_as_path_and_as_lock (void **state)
{
    fixture_t *const self = *state;
    hws_ipc_lock_t lock;

    assert_int_equal (symlink ("/nonexistent/target", self->path), 0);
    assert_int_equal (claim (self, &lock), HWS_EADDRESS_IN_USE);
    unlink (self->path);

    assert_int_equal (symlink ("/nonexistent/target", self->lock_path), 0);
    assert_int_equal (claim (self, &lock), HWS_ESYSTEM);
    assert_int_equal (access (self->lock_path, F_OK), -1);
}

static void a_directory_that_is_not_there_is_an_error_of_the_system (void **state)
{
    fixture_t *const self = *state;
    hws_ipc_lock_t lock;

    const int rc =
        hws_ipc_lock_claim (&lock, "/nonexistent/hawser/socket", self->fault, sizeof self->fault);

    assert_int_equal (rc, HWS_ESYSTEM);
    assert_non_null (strstr (self->fault, "No such file or directory"));
}

#define TEST(name) cmocka_unit_test_setup_teardown (name, make_directory, remove_directory)

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (a_free_path_is_claimed_and_its_lock_file_goes_with_the_claim),
        TEST (a_released_path_leaves_no_socket_behind),
        TEST (a_claimed_path_is_refused_until_it_is_released),
        TEST (a_lock_file_that_nobody_holds_is_no_hindrance),
        TEST (the_socket_of_a_dead_broker_is_removed),
        TEST (a_socket_that_answers_is_refused_and_stays),
        TEST (a_file_that_is_no_socket_is_refused_and_stays),
        TEST (a_symbolic_link_is_refused_as_path_and_as_lock),
        TEST (a_directory_that_is_not_there_is_an_error_of_the_system),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
