#include "tests/support/scratch.h"

#include "tests/support/process.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXTS_MAX 4096

static struct {
    char directory[PATH_MAX];
    char *texts[TEXTS_MAX]; /* paths and lines that were given out */
    size_t text_count;
} s_scratch;

int scratch_make (void)
{
    const char *base = getenv ("HAWSER_SCRATCH");

    snprintf (s_scratch.directory, sizeof s_scratch.directory, "%s/hawser-test.XXXXXX",
              base ? base : "/tmp");
    if (!mkdtemp (s_scratch.directory)) {
        print_message ("no scratch directory: %s\n", strerror (errno));
        return -1;
    }
    return 0;
}

const char *scratch_keep (char *text)
{
    assert_non_null (text);
    assert_true (s_scratch.text_count < TEXTS_MAX);
    s_scratch.texts[s_scratch.text_count++] = text;
    return text;
}

const char *process_directory (void)
{
    return s_scratch.directory;
}

const char *process_path (const char *format, ...)
{
    char *name = NULL;
    char *path = NULL;
    va_list arguments;
    va_start (arguments, format);
    const int size = vasprintf (&name, format, arguments);
    va_end (arguments);

    assert_true (size >= 0);
    assert_true (asprintf (&path, "%s/%s", s_scratch.directory, name) > 0);
    free (name);
    return scratch_keep (path);
}

static int remove_entry (const char *path, const struct stat *status, int kind, struct FTW *walk)
{
    (void) status;
    (void) kind;
    (void) walk;
    return remove (path);
}

size_t count_entries (const char *directory)
{
    size_t count = 0;
    DIR *entries = opendir (directory);
    if (!entries) {
        return 0;
    }
    while (readdir (entries)) {
        count++;
    }
    closedir (entries);
    return count;
}

void scratch_remove (void)
{
    for (size_t i = 0; i < s_scratch.text_count; i++) {
        free (s_scratch.texts[i]);
    }
    s_scratch.text_count = 0;
    nftw (s_scratch.directory, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/*  ---- What the system says ---- */

size_t process_descriptors (const process_t *self)
{
    char path[64];
    snprintf (path, sizeof path, "/proc/%d/fd", (int) process_pid (self));
    return count_entries (path);
}

static uint64_t read_status (const process_t *self, const char *key)
{
    char path[64];
    char line[256];
    uint64_t kib = 0;

    snprintf (path, sizeof path, "/proc/%d/status", (int) process_pid (self));
    FILE *file = fopen (path, "re");
    if (!file) {
        return 0;
    }
    while (fgets (line, sizeof line, file)) {
        if (strncmp (line, key, strlen (key)) == 0) {
            kib = strtoull (line + strlen (key), NULL, 10);
        }
    }
    fclose (file);
    return kib * 1024;
}

uint64_t process_resident_bytes (const process_t *self)
{
    return read_status (self, "VmRSS:");
}

uint64_t process_peak_bytes (const process_t *self)
{
    return read_status (self, "VmHWM:");
}

/*  User and system time are the 14th and 15th field of its line; the second, its name, may
 *  have anything in it up to the last parenthesis.  */
int64_t process_cpu_ms (const process_t *self)
{
    char path[64];
    char line[1024] = "";
    long long user = 0;
    long long kernel = 0;

    snprintf (path, sizeof path, "/proc/%d/stat", (int) process_pid (self));
    FILE *file = fopen (path, "re");
    if (!file) {
        return 0;
    }
    const bool is_read = fgets (line, sizeof line, file) != NULL;
    fclose (file);
    const char *rest = strrchr (line, ')');
    if (!is_read || !rest ||
        sscanf (rest + 1, "%*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %lld %lld", &user,
                &kernel) != 2) {
        return 0;
    }
    return (int64_t) ((user + kernel) * 1000 / sysconf (_SC_CLK_TCK));
}
