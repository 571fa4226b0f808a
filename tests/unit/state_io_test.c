/*  The state directory: what a start finds there, makes and leaves, and what it refuses.  */
#include "broker/state_io.h"

#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#define NOBODY 65534

typedef struct {
    char scratch[64];
    char directory[80]; /* of the state; not there at first */
    char file[96];      /* in it */
    char lock[96];
    char new_file[112];
    hws_state_fault_t fault;
} fixture_t;

static int make_scratch (void **state)
{
    fixture_t *const self = calloc (1, sizeof *self);
    strcpy (self->scratch, "/tmp/hawser-test-XXXXXX");
    if (!mkdtemp (self->scratch)) {
        return -1;
    }
    snprintf (self->directory, sizeof self->directory, "%s/state", self->scratch);
    snprintf (self->file, sizeof self->file, "%s/broker.json", self->directory);
    snprintf (self->lock, sizeof self->lock, "%s/lock", self->directory);
    snprintf (self->new_file, sizeof self->new_file, "%s.new", self->file);
    *state = self;
    return 0;
}

static int remove_entry (const char *path, const struct stat *status, int kind, struct FTW *walk)
{
    (void) status;
    (void) kind;
    (void) walk;
    return remove (path);
}

static int remove_scratch (void **state)
{
    fixture_t *const self = *state;
    const int rc = nftw (self->scratch, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    free (self);
    return rc;
}

/*  ---- Steps ---- */

/*  One life of a broker; returns what it was.  */
static hws_identity_t live (fixture_t *self)
{
    hws_state_t life;
    if (hws_state_open (&life, self->directory, self->fault) != 0) {
        fail_msg ("%s", self->fault);
    }
    const hws_identity_t identity = life.identity;
    hws_state_close (&life);
    return identity;
}

/*  A start that fails so, with these words in its line.  */
static void expect_refused (fixture_t *self, int code, const char *words)
{
    hws_state_t life;
    assert_int_equal (hws_state_open (&life, self->directory, self->fault), code);
    assert_int_equal (life.lock, -1);
    if (!strstr (self->fault, words) || !strstr (self->fault, self->directory)) {
        fail_msg ("no \"%s\" with its path in \"%s\"", words, self->fault);
    }
}

static void put_file (const char *path, const char *text)
{
    const int descriptor = open (path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true (descriptor >= 0);
    assert_int_equal (write (descriptor, text, strlen (text)), strlen (text));
    close (descriptor);
}

static void get_file (const char *path, char text[1024])
{
    const int descriptor = open (path, O_RDONLY);
    assert_true (descriptor >= 0);
    const ssize_t size = read (descriptor, text, 1023);
    assert_true (size >= 0);
    text[size] = '\0';
    close (descriptor);
}

static mode_t mode_of (const char *path)
{
    struct stat found;
    assert_int_equal (stat (path, &found), 0);
    return found.st_mode & 07777;
}

static void put_epoch (const fixture_t *self, uint32_t epoch)
{
    const hws_identity_t identity = {.broker_id = 1, .epoch = epoch};
    char text[HWS_IDENTITY_TEXT_SIZE];
    hws_identity_print (&identity, text);
    put_file (self->file, text);
}

/*  ---- What it does ---- */

static void the_first_start_makes_a_broker_that_nobody_else_can_read (void **state)
{
    fixture_t *const self = *state;
    const uint8_t nothing[HWS_CREDENTIAL_KEY_SIZE] = {0};

    const hws_identity_t identity = live (self);

    assert_int_equal (identity.epoch, 1);
    assert_true (identity.broker_id != 0);
    assert_memory_not_equal (identity.key, nothing, sizeof nothing);
    assert_int_equal (mode_of (self->directory), 0700);
    assert_int_equal (mode_of (self->file), 0600);
    assert_int_equal (mode_of (self->lock), 0600);
    assert_int_equal (access (self->new_file, F_OK), -1);
}

static void every_start_is_the_same_broker_in_its_next_epoch (void **state)
{
    fixture_t *const self = *state;
    const hws_identity_t first = live (self);

    for (uint32_t i = 2; i < 10; i++) {
        const hws_identity_t next = live (self);
        assert_int_equal (next.epoch, i);
        assert_true (next.broker_id == first.broker_id);
        assert_memory_equal (next.key, first.key, sizeof first.key);
    }
}

static void two_directories_are_two_brokers (void **state)
{
    fixture_t *const self = *state;
    const hws_identity_t one = live (self);
    strcat (self->directory, "2");

    const hws_identity_t other = live (self);

    assert_true (one.broker_id != other.broker_id);
    assert_memory_not_equal (one.key, other.key, sizeof one.key);
}

static void a_directory_has_one_broker_at_a_time (void **state)
{
    fixture_t *const self = *state;
    hws_state_t life;
    assert_int_equal (hws_state_open (&life, self->directory, self->fault), 0);

    expect_refused (self, HWS_EBUSY, "another broker runs with the state directory");
    hws_state_close (&life);

    assert_int_equal (live (self).epoch, 2);
}

static void what_an_earlier_start_left_half_done_is_in_nobodys_way (void **state)
{
    fixture_t *const self = *state;
    live (self);
    put_file (self->new_file, "{\n    \"versi");
    assert_int_equal (chmod (self->new_file, 0644), 0);

    assert_int_equal (live (self).epoch, 2);

    assert_int_equal (access (self->new_file, F_OK), -1);
    assert_int_equal (mode_of (self->file), 0600);
}

/*  ---- What it refuses ---- */

static void a_directory_whose_parent_is_missing_is_not_made (void **state)
{
    fixture_t *const self = *state;
    snprintf (self->directory, sizeof self->directory, "%s/not/there", self->scratch);

    expect_refused (self, HWS_ENOT_FOUND, "No such file or directory");
}

static void a_file_in_place_of_the_directory_is_refused (void **state)
{
    fixture_t *const self = *state;
    put_file (self->directory, "");

    expect_refused (self, HWS_ESYSTEM, "Not a directory");
}

static void what_others_can_reach_is_refused (void **state)
{
    fixture_t *const self = *state;
    static const mode_t modes[] = {01, 02, 04, 010, 020, 040};
    live (self);

    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        chmod (self->directory, 0700 | modes[i]);
        expect_refused (self, HWS_EDENIED, "chmod go=");
        chmod (self->directory, 0700);
        chmod (self->file, 0600 | modes[i]);
        expect_refused (self, HWS_EDENIED, "broker.json is open to other users");
        chmod (self->file, 0600);
    }

    assert_int_equal (live (self).epoch, 2);
}

static void what_belongs_to_another_user_is_refused (void **state)
{
    fixture_t *const self = *state;
    if (geteuid () != 0) {
        skip ();
    }
    live (self);

    assert_int_equal (chown (self->file, NOBODY, NOBODY), 0);
    expect_refused (self, HWS_EDENIED, "broker.json belongs to user 65534, not to user 0");
    assert_int_equal (chown (self->file, 0, 0), 0);
    assert_int_equal (chown (self->directory, NOBODY, NOBODY), 0);
    expect_refused (self, HWS_EDENIED, "belongs to user 65534");
}

/*  Root may read everything, so it becomes somebody else meanwhile.  */
static void what_cannot_be_read_is_refused (void **state)
{
    fixture_t *const self = *state;
    const uid_t user = geteuid ();
    if (user == 0) {
        assert_int_equal (chown (self->scratch, NOBODY, NOBODY), 0);
        assert_int_equal (seteuid (NOBODY), 0);
    }
    live (self);

    chmod (self->file, 0);
    expect_refused (self, HWS_ESYSTEM, "broker.json: Permission denied");
    chmod (self->file, 0600);
    chmod (self->directory, 0500);
    expect_refused (self, HWS_ESYSTEM, "broker.json.new: Permission denied");
    chmod (self->directory, 0);
    expect_refused (self, HWS_ESYSTEM, "Permission denied");
    chmod (self->directory, 0700);
    assert_int_equal (live (self).epoch, 2);

    assert_int_equal (seteuid (user), 0);
}

static void a_broken_file_is_refused_and_stays_as_it_is (void **state)
{
    fixture_t *const self = *state;
    char whole[1024];
    char found[1024];
    char more[2100];
    live (self);
    get_file (self->file, whole);

    for (size_t size = 0; size < strlen (whole) - 1; size++) {
        assert_int_equal (truncate (self->file, (off_t) size), 0);
        expect_refused (self, HWS_EMALFORMED, "restore it from a backup, or move it away");
        get_file (self->file, found);
        assert_int_equal (strlen (found), size);
        put_file (self->file, whole);
    }
    snprintf (more, sizeof more, "%s%1000s", whole, "");
    put_file (self->file, more);
    expect_refused (self, HWS_EMALFORMED, "is too large; restore it from a backup");
    put_file (self->file, whole);

    assert_int_equal (live (self).epoch, 2);
}

static void what_is_no_file_is_refused_without_waiting_for_it (void **state)
{
    fixture_t *const self = *state;
    live (self);

    assert_int_equal (unlink (self->file), 0);
    assert_int_equal (mkfifo (self->file, 0600), 0);
    expect_refused (self, HWS_EMALFORMED, "broker.json is not a file");
    assert_int_equal (unlink (self->file), 0);
    assert_int_equal (symlink ("/dev/null", self->file), 0);
    expect_refused (self, HWS_ESYSTEM, "broker.json: ");
    assert_int_equal (unlink (self->file), 0);
    assert_int_equal (mkdir (self->file, 0700), 0);
    expect_refused (self, HWS_EMALFORMED, "broker.json is not a file");
}

static void the_last_epoch_has_none_after_it (void **state)
{
    fixture_t *const self = *state;
    live (self);
    put_epoch (self, HWS_EPOCH_MAX - 1);

    assert_int_equal (live (self).epoch, HWS_EPOCH_MAX);

    expect_refused (self, HWS_ELIMIT, "has used all its epochs; move it away");
}

/*  ---- A disk that is full ---- */

static void a_file_that_cannot_be_written_leaves_the_old_one (void **state)
{
    fixture_t *const self = *state;
    struct rlimit before;
    const struct rlimit small = {.rlim_cur = 20, .rlim_max = RLIM_INFINITY};
    char old[1024];
    char found[1024];
    live (self);
    get_file (self->file, old);
    signal (SIGXFSZ, SIG_IGN);
    getrlimit (RLIMIT_FSIZE, &before);

    assert_int_equal (setrlimit (RLIMIT_FSIZE, &(struct rlimit){small.rlim_cur, before.rlim_max}),
                      0);
    expect_refused (self, HWS_ESYSTEM, "broker.json.new: File too large");
    assert_int_equal (setrlimit (RLIMIT_FSIZE, &before), 0);

    get_file (self->file, found);
    assert_string_equal (found, old);
    assert_int_equal (access (self->new_file, F_OK), -1);
    assert_int_equal (live (self).epoch, 2);
}

/*  In the child, whose mounts are its own. Returns an exit status.  */
static int start_on_a_full_disk (fixture_t *self)
{
    hws_state_t life;
    if (mkdir (self->directory, 0700) != 0 || unshare (CLONE_NEWNS) != 0 ||
        mount ("none", "/", "none", MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount ("tmpfs", self->directory, "tmpfs", 0, "size=4096,mode=0700") != 0) {
        return 77;
    }
    put_file (self->new_file, "");
    strcpy (self->lock, self->directory);
    strcat (self->lock, "/filler");
    put_file (self->lock, "this takes the only page that there is");
    const int rc = hws_state_open (&life, self->directory, self->fault);
    if (rc != HWS_ESYSTEM || !strstr (self->fault, "broker.json.new: No space left on device") ||
        access (self->file, F_OK) == 0) {
        fprintf (stderr, "%d: %s\n", rc, self->fault);
        return 1;
    }
    return 0;
}

static void a_full_disk_is_said_and_nothing_is_made (void **state)
{
    fixture_t *const self = *state;
    int status;
    if (geteuid () != 0) {
        skip ();
    }
    const pid_t child = fork ();
    if (child == 0) {
        _exit (start_on_a_full_disk (self));
    }

    assert_int_equal (waitpid (child, &status, 0), child);
    if (WEXITSTATUS (status) == 77) {
        skip (); /* mounts are not allowed here */
    }

    assert_int_equal (status, 0);
}

#define ONE(test) cmocka_unit_test_setup_teardown (test, make_scratch, remove_scratch)

int main (void)
{
    const struct CMUnitTest tests[] = {
        ONE (the_first_start_makes_a_broker_that_nobody_else_can_read),
        ONE (every_start_is_the_same_broker_in_its_next_epoch),
        ONE (two_directories_are_two_brokers),
        ONE (a_directory_has_one_broker_at_a_time),
        ONE (what_an_earlier_start_left_half_done_is_in_nobodys_way),
        ONE (a_directory_whose_parent_is_missing_is_not_made),
        ONE (a_file_in_place_of_the_directory_is_refused),
        ONE (what_others_can_reach_is_refused),
        ONE (what_belongs_to_another_user_is_refused),
        ONE (what_cannot_be_read_is_refused),
        ONE (a_broken_file_is_refused_and_stays_as_it_is),
        ONE (what_is_no_file_is_refused_without_waiting_for_it),
        ONE (the_last_epoch_has_none_after_it),
        ONE (a_file_that_cannot_be_written_leaves_the_old_one),
        ONE (a_full_disk_is_said_and_nothing_is_made),
    };
    return cmocka_run_group_tests_name ("state_io", tests, NULL, NULL);
}
