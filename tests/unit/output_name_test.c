/*  File names made of labels: never outside the directory, whatever the label.  */
#include "receiver/output_name.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdbool.h>
#include <string.h>

static void expect_name (const char *label, uint64_t sender_id, unsigned attempt,
                         const char *expected)
{
    hws_output_name_t name;

    hws_output_name (label, sender_id, attempt, name);

    assert_string_equal (name, expected);
}

static void a_plain_label_is_the_name (void **state)
{
    (void) state;
    expect_name ("gpu0", 7, 0, "gpu0");
    expect_name ("log.2026 (a)", 7, 0, "log.2026 (a)");
    expect_name ("m\xc3\xbchle-\xe2\x9a\x93", 7, 0, "m\xc3\xbchle-\xe2\x9a\x93");
}

static void a_sender_without_label_is_named_by_its_id (void **state)
{
    (void) state;
    expect_name ("", 1, 0, "1");
    expect_name ("", UINT64_MAX, 0, "18446744073709551615");
}

static void a_label_in_use_gets_the_senders_id (void **state)
{
    (void) state;
    expect_name ("gpu0", 12, 1, "gpu0.12");
    expect_name ("gpu0", 12, 2, "gpu0.12.2");
    expect_name ("", 12, 1, "12.12");
}

static void slashes_become_underscores (void **state)
{
    (void) state;
    expect_name ("/etc/passwd", 1, 0, "_etc_passwd");
    expect_name ("a/../../b", 1, 0, "a_.._.._b");
    expect_name ("/", 1, 0, "_");
}

static void leading_dots_and_dashes_become_underscores (void **state)
{
    (void) state;
    expect_name (".", 1, 0, "_");
    expect_name ("..", 1, 0, "__");
    expect_name ("../x", 1, 0, "___x");
    expect_name (".hidden.txt", 1, 0, "_hidden.txt");
    expect_name ("-rf", 1, 0, "_rf");
}

static void control_characters_and_invalid_utf8_become_underscores (void **state)
{
    (void) state;
    expect_name ("a\nb\x1b[2J\x7f", 1, 0, "a_b_[2J_");
    expect_name ("c1\xc2\x9b"
                 "31m",
                 1, 0, "c1_31m");
    expect_name ("\xff\xfe"
                 "x",
                 1, 0, "__x");
    expect_name ("half\xe2\x9a", 1, 0, "half__");
}

static void a_long_label_is_cut_at_a_character_and_leaves_room_for_the_id (void **state)
{
    char label[256];
    hws_output_name_t name;

    /*  An `x`, and then characters of two bytes: byte 230 is the first of one.  */
    (void) state;
    label[0] = 'x';
    for (size_t i = 1; i + 1 < sizeof label; i += 2) {
        memcpy (label + i, "\xc3\xa4", 2);
    }
    label[255] = '\0';
    hws_output_name (label, UINT64_MAX, 999, name);

    assert_memory_equal (name, label, 229);
    assert_string_equal (name + 229, ".18446744073709551615.999");
}

/*  Every byte alone, doubled, and between letters: the name is always one that a
 *  directory takes as a plain file within itself.  */
static void no_label_makes_a_name_that_leaves_the_directory (void **state)
{
    (void) state;
    for (int byte = 1; byte < 256; byte++) {
        const char c = (char) byte;
        const char labels[3][4] = {{c, '\0'}, {c, c, '\0'}, {'a', c, 'b', '\0'}};
        for (size_t i = 0; i < 3; i++) {
            hws_output_name_t name;
            hws_output_name (labels[i], 1, 0, name);
            assert_null (strchr (name, '/'));
            assert_true (name[0] != '\0' && name[0] != '.' && name[0] != '-');
            for (size_t k = 0; name[k]; k++) {
                assert_true ((unsigned char) name[k] >= 0x20 && name[k] != 0x7f);
            }
        }
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (a_plain_label_is_the_name),
        cmocka_unit_test (a_sender_without_label_is_named_by_its_id),
        cmocka_unit_test (a_label_in_use_gets_the_senders_id),
        cmocka_unit_test (slashes_become_underscores),
        cmocka_unit_test (leading_dots_and_dashes_become_underscores),
        cmocka_unit_test (control_characters_and_invalid_utf8_become_underscores),
        cmocka_unit_test (a_long_label_is_cut_at_a_character_and_leaves_room_for_the_id),
        cmocka_unit_test (no_label_makes_a_name_that_leaves_the_directory),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
