#include "conf/program_io.h"

#include "base/limits.h"
#include "base/version.h"
#include "conf/options.h"
#include "conf/store.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdlib.h>
#include <unistd.h>

/*  getopt_long's values: short options are their letters, long ones without a letter
 *  come after every letter.  */
#define FIRST_LONG 256

/*  What an option means, exactly one of the three.  */
typedef struct {
    const hws_field_t *field;
    const hws_alias_t *alias;
    const hws_shared_option_t *shared;
} meaning_t;

/*  A command line being read.  */
typedef struct {
    const hws_program_t *program;
    int argc;
    char **argv;
    struct option *long_options; /* for getopt_long, ended by zeros */
    meaning_t *meanings;         /* of each long option */
    size_t count;                /* of both */
    char *letters;               /* for getopt_long */

    bool is_asked[HWS_SHARED_COUNT]; /* which shared options are there */
    const char *file;                /* of --config, or null */
    hws_conf_t *conf;                /* the settings so far */
} reader_t;

/*  ---- Options ---- */

static const hws_option_t *option_of (const meaning_t *meaning)
{
    if (meaning->field) {
        return &meaning->field->option;
    }
    return meaning->alias ? &meaning->alias->option : &meaning->shared->option;
}

static void add_option (reader_t *reader, meaning_t meaning)
{
    const hws_option_t *const option = option_of (&meaning);
    if (option->name == NULL) {
        return;
    }
    reader->long_options[reader->count] = (struct option){
        .name = option->name,
        .has_arg = option->argument ? required_argument : no_argument,
        .val = option->letter ? option->letter : FIRST_LONG + (int) reader->count,
    };
    reader->meanings[reader->count++] = meaning;
    if (option->letter) {
        const size_t used = strlen (reader->letters);
        reader->letters[used] = option->letter;
        reader->letters[used + 1] = option->argument ? ':' : '\0';
    }
}

static int init_options (reader_t *reader)
{
    const hws_program_t *const program = reader->program;
    const size_t count = program->field_count + program->alias_count + HWS_SHARED_COUNT;
    reader->long_options = calloc (count + 1, sizeof *reader->long_options);
    reader->meanings = calloc (count, sizeof *reader->meanings);
    reader->letters = calloc (2 * count + 2, 1);
    if (reader->long_options == NULL || reader->meanings == NULL || reader->letters == NULL) {
        return HWS_ENO_MEMORY;
    }
    reader->letters[0] = ':'; /* a missing argument is told apart */
    for (size_t i = 0; i < program->field_count; i++) {
        add_option (reader, (meaning_t){.field = &program->fields[i]});
    }
    for (size_t i = 0; i < program->alias_count; i++) {
        add_option (reader, (meaning_t){.alias = &program->aliases[i]});
    }
    for (size_t i = 0; i < HWS_SHARED_COUNT; i++) {
        add_option (reader, (meaning_t){.shared = &hws_shared_options[i]});
    }
    return 0;
}

static const meaning_t *find_meaning (const reader_t *reader, int value)
{
    for (size_t i = 0; i < reader->count; i++) {
        if (reader->long_options[i].val == value) {
            return &reader->meanings[i];
        }
    }
    return NULL;
}

/*  A long option that getopt_long does not know, or that could be several.  */
static int refuse_long (reader_t *reader, const char *word)
{
    const char *const program = reader->program->name;
    const char *const name = word + 2;
    const size_t size = strcspn (name, "=");
    const char *first = NULL;
    for (size_t i = 0; i < reader->count; i++) {
        const char *const candidate = reader->long_options[i].name;
        if (strncmp (candidate, name, size) != 0) {
            continue;
        }
        if (first) {
            return hws_conf_fail (reader->conf, program, "--%.*s could be --%s or --%s", (int) size,
                                  name, first, candidate);
        }
        first = candidate;
    }

    char typed[HWS_PLACE_PATH_SIZE];
    snprintf (typed, sizeof typed, "%.*s", (int) size, name);
    const char *const nearest = hws_option_nearest (reader->program, typed);
    if (nearest) {
        return hws_conf_fail (reader->conf, program, "unknown option --%s; did you mean --%s?",
                              typed, nearest);
    }
    return hws_conf_fail (reader->conf, program, "unknown option --%s; see --help", typed);
}

/*  What getopt_long took offence at, as one line. It leaves a letter or a long
 *  option's value in optopt, or 0 for a long option it does not know, which is then
 *  the word before optind.  */
static int refuse_option (reader_t *reader)
{
    const char *const program = reader->program->name;
    const meaning_t *const meaning = find_meaning (reader, optopt);
    if (meaning) {
        const hws_option_t *const option = option_of (meaning);
        return option->argument
                   ? hws_conf_fail (reader->conf, program, "--%s: %s is missing", option->name,
                                    option->argument)
                   : hws_conf_fail (reader->conf, program, "--%s takes no value", option->name);
    }
    if (optopt != 0) {
        return hws_conf_fail (reader->conf, program, "unknown option -%c; see --help", optopt);
    }
    return refuse_long (reader, reader->argv[optind - 1]);
}

/*  Calls `take` for each option in its order, then for each operand with a null
 *  meaning.  */
typedef int take_t (reader_t *reader, const meaning_t *meaning, const char *argument);

static int for_each_option (reader_t *reader, take_t *take)
{
    opterr = 0;
    optind = 0; /* glibc: begin anew, a reload comes here again */
    for (;;) {
        const int found =
            getopt_long (reader->argc, reader->argv, reader->letters, reader->long_options, NULL);
        if (found == -1) {
            break;
        }
        if (found == '?' || found == ':') {
            return refuse_option (reader);
        }
        const int rc = take (reader, find_meaning (reader, found), optarg);
        if (rc != 0) {
            return rc;
        }
    }
    for (int i = optind; i < reader->argc; i++) {
        const int rc = take (reader, NULL, reader->argv[i]);
        if (rc != 0) {
            return rc;
        }
    }
    return 0;
}

/*  The first pass: what is asked for at all, and where the file is.  */
static int take_shared (reader_t *reader, const meaning_t *meaning, const char *argument)
{
    const hws_program_t *const program = reader->program;
    if (meaning == NULL) {
        return program->operands ? 0
                                 : hws_conf_fail (reader->conf, program->name,
                                                  "unexpected argument \"%s\"", argument);
    }
    if (meaning->shared == NULL) {
        return 0;
    }
    const size_t place = (size_t) (meaning->shared - hws_shared_options);
    if (place == HWS_SHARED_CONFIG) {
        if (reader->file) {
            return hws_conf_fail (reader->conf, program->name, "--config comes twice");
        }
        reader->file = argument;
    }
    reader->is_asked[place] = true;
    return 0;
}

static const hws_field_t *operands_field (const hws_program_t *program)
{
    for (size_t i = 0; i < program->field_count; i++) {
        if (program->fields[i].type == HWS_FIELD_OPERANDS) {
            return &program->fields[i];
        }
    }
    return NULL;
}

/*  The second pass: values.  */
static int take_value (reader_t *reader, const meaning_t *meaning, const char *argument)
{
    if (meaning == NULL) {
        return hws_conf_set (reader->conf, operands_field (reader->program),
                             HWS_SOURCE_COMMAND_LINE, argument);
    }
    if (meaning->field) {
        return hws_conf_set (reader->conf, meaning->field, HWS_SOURCE_COMMAND_LINE,
                             argument ? argument : "true");
    }
    return meaning->alias ? hws_conf_set_alias (reader->conf, meaning->alias) : 0;
}

/*  ---- The other sources ---- */

static int set_environment (hws_conf_t *conf, const hws_program_t *program)
{
    for (size_t i = 0; i < program->field_count; i++) {
        const hws_field_t *const field = &program->fields[i];
        const char *const text = field->environment ? getenv (field->environment) : NULL;
        if (text == NULL || text[0] == '\0') {
            continue;
        }
        const int rc = hws_conf_set (conf, field, HWS_SOURCE_ENVIRONMENT, text);
        if (rc != 0) {
            return rc;
        }
    }
    return 0;
}

/*  Reads at most `size` bytes; returns 0 and how many, or HWS_ESYSTEM and errno.  */
static int read_bytes (int fd, char *buffer, size_t size, size_t *used)
{
    *used = 0;
    while (*used < size) {
        const ssize_t count = read (fd, buffer + *used, size - *used);
        if (count == 0) {
            break;
        }
        if (count < 0 && errno != EINTR) {
            return HWS_ESYSTEM;
        }
        *used += count > 0 ? (size_t) count : 0;
    }
    return 0;
}

/*  One byte more than allowed is read, so that a file which is too long is seen to
 *  be.  */
static int load_file (hws_conf_t *conf, const char *path)
{
    int rc = HWS_ENO_MEMORY;
    size_t used = 0;
    const int fd = open (path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    char *const buffer = malloc (HWS_CONF_SIZE_MAX + 1);
    if (fd < 0) {
        rc = hws_conf_fail (conf, path, "cannot be opened: %s", strerror (errno));
        goto done;
    }
    if (buffer == NULL) {
        goto done;
    }
    if (read_bytes (fd, buffer, HWS_CONF_SIZE_MAX + 1, &used) != 0) {
        rc = hws_conf_fail (conf, path, "cannot be read: %s", strerror (errno));
        goto done;
    }
    rc = hws_conf_load (conf, path, hws_bytes (buffer, used));
done:
    free (buffer);
    if (fd >= 0) {
        close (fd);
    }
    return rc;
}

/*  ---- The whole ---- */

static int init_reader (reader_t *reader, const hws_program_t *program, int argc, char **argv)
{
    *reader = (reader_t){.program = program, .argc = argc, .argv = argv};
    const int rc = init_options (reader);
    return rc == 0 ? hws_conf_new (&reader->conf, program) : rc;
}

static void fini_reader (reader_t *reader)
{
    hws_conf_destroy (&reader->conf);
    free (reader->letters);
    free (reader->meanings);
    free (reader->long_options);
}

/*  Everything behind the first pass, in the order of precedence.  */
static int read_sources (reader_t *reader)
{
    int rc = reader->file ? load_file (reader->conf, reader->file) : 0;
    if (rc == 0) {
        rc = set_environment (reader->conf, reader->program);
    }
    if (rc == 0) {
        rc = for_each_option (reader, take_value);
    }
    return rc == 0 ? hws_conf_check (reader->conf) : rc;
}

int hws_program_read (hws_conf_t **conf, const hws_program_t *program, int argc, char **argv,
                      char *text, size_t size)
{
    *conf = NULL;
    reader_t reader;
    int rc = init_reader (&reader, program, argc, argv);
    if (rc == 0) {
        rc = for_each_option (&reader, take_shared);
    }
    if (rc == 0) {
        rc = read_sources (&reader);
    }
    if (rc == 0) {
        rc = hws_conf_check_required (reader.conf);
    }
    if (rc == 0) {
        *conf = reader.conf;
        reader.conf = NULL;
    } else {
        snprintf (text, size, "%s",
                  rc == HWS_EINVALID ? hws_conf_error (reader.conf) : hws_strerror (rc));
    }
    fini_reader (&reader);
    return rc;
}

/*  Flushes what was said; a full disk must not look like success.  */
static int finish_output (const hws_program_t *program)
{
    if (fflush (stdout) == 0 && !ferror (stdout)) {
        return HWS_EXIT_DONE;
    }
    fprintf (stderr, "%s: cannot write: %s\n", program->name, strerror (errno));
    return HWS_EXIT_FAILED;
}

static int say_text (const hws_program_t *program, char *text)
{
    if (text == NULL) {
        fprintf (stderr, "%s: %s\n", program->name, hws_strerror (HWS_ENO_MEMORY));
        return HWS_EXIT_FAILED;
    }
    fputs (text, stdout);
    free (text);
    return finish_output (program);
}

static int say_versions (const hws_program_t *program, hws_print_versions_t *print_versions)
{
    printf ("%s %s\nlibhawser %s, wire protocol %d\n", program->name, HWS_VERSION, hws_version (),
            HWS_PROTOCOL_VERSION);
    if (print_versions) {
        print_versions (stdout);
    }
    return finish_output (program);
}

static int say_error (const reader_t *reader, int rc)
{
    if (rc == HWS_EINVALID) {
        fprintf (stderr, "%s\n", hws_conf_error (reader->conf));
        return HWS_EXIT_USAGE;
    }
    fprintf (stderr, "%s: %s\n", reader->program->name, hws_strerror (rc));
    return HWS_EXIT_FAILED;
}

/*  Does what needs no valid settings; returns HWS_PROGRAM_RUN if there is nothing.  */
static int do_early (const reader_t *reader, hws_print_versions_t *print_versions)
{
    if (reader->is_asked[HWS_SHARED_HELP]) {
        return say_text (reader->program, hws_program_help (reader->program));
    }
    if (reader->is_asked[HWS_SHARED_VERSION]) {
        return say_versions (reader->program, print_versions);
    }
    if (reader->is_asked[HWS_SHARED_SCHEMA]) {
        return say_text (reader->program, hws_program_schema (reader->program));
    }
    return HWS_PROGRAM_RUN;
}

/*  Does what wants valid settings and no run.  */
static int do_late (const reader_t *reader)
{
    if (reader->is_asked[HWS_SHARED_PRINT]) {
        return say_text (reader->program, hws_conf_print (reader->conf));
    }
    if (reader->is_asked[HWS_SHARED_CHECK]) {
        const hws_field_t *const missing = hws_conf_missing (reader->conf);
        printf ("%s: ok%s%s\n", reader->file ? reader->file : reader->program->name,
                missing ? "; a run also needs --" : "", missing ? missing->option.name : "");
        return finish_output (reader->program);
    }
    return HWS_PROGRAM_RUN;
}

/*  Returns HWS_PROGRAM_RUN when the settings are ready, else the exit status.  */
static int start (reader_t *reader, hws_print_versions_t *print_versions)
{
    int rc = for_each_option (reader, take_shared);
    if (rc != 0) {
        return say_error (reader, rc);
    }
    int status = do_early (reader, print_versions);
    if (status != HWS_PROGRAM_RUN) {
        return status;
    }
    rc = read_sources (reader);
    if (rc != 0) {
        return say_error (reader, rc);
    }
    status = do_late (reader);
    if (status != HWS_PROGRAM_RUN) {
        return status;
    }
    rc = hws_conf_check_required (reader->conf);
    return rc == 0 ? HWS_PROGRAM_RUN : say_error (reader, rc);
}

int hws_program_start (hws_conf_t **conf, const hws_program_t *program, int argc, char **argv,
                       hws_print_versions_t *print_versions)
{
    *conf = NULL;
    reader_t reader;
    const int rc = init_reader (&reader, program, argc, argv);
    const int status = rc == 0 ? start (&reader, print_versions) : say_error (&reader, rc);
    if (status == HWS_PROGRAM_RUN) {
        *conf = reader.conf;
        reader.conf = NULL;
    }
    fini_reader (&reader);
    return status;
}
