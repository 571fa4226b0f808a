/*  The tables of all programs: their defaults, their rules, and that what
 *  stands in config/ is what they print today.
 *
 *      settings_test --write     writes the files in config/ anew
 */
#include "broker/settings.h"
#include "base/limits.h"
#include "conf/options.h"
#include "conf/words.h"
#include "ctl/settings.h"
#include "receiver/settings.h"
#include "sender/settings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cjson/cJSON.h>
#include <cmocka.h>

#define COUNT(array) (sizeof array / sizeof *array)

static const hws_program_t *const s_programs[] = {&hws_broker_program, &hws_send_program,
                                                  &hws_recv_program, &hws_ctl_program};

static hws_conf_t *new_conf (const hws_program_t *program)
{
    hws_conf_t *conf;
    assert_int_equal (hws_conf_new (&conf, program), 0);
    return conf;
}

static int load (hws_conf_t *conf, const char *json)
{
    const int rc = hws_conf_load (conf, "f", hws_bytes_of_text (json));
    return rc == 0 ? hws_conf_check (conf) : rc;
}

static int set (hws_conf_t *conf, const char *key, const char *text)
{
    return hws_conf_set (conf, hws_program_field (hws_conf_program (conf), key),
                         HWS_SOURCE_COMMAND_LINE, text);
}

static void assert_refused (const hws_program_t *program, const char *json, const char *line)
{
    hws_conf_t *conf = new_conf (program);

    const int rc = load (conf, json);

    if (rc != HWS_EINVALID || strcmp (hws_conf_error (conf), line) != 0) {
        fail_msg ("%s: %d, \"%s\" instead of \"%s\"", json, rc, hws_conf_error (conf), line);
    }
    hws_conf_destroy (&conf);
}

/*  ---- All tables ---- */

static void every_table_has_defaults_that_pass_its_rules (void **state)
{
    (void) state;
    for (size_t i = 0; i < COUNT (s_programs); i++) {
        hws_conf_t *conf = new_conf (s_programs[i]);
        assert_int_equal (hws_conf_check (conf), 0);
        hws_conf_destroy (&conf);
    }
}

/*  How many options of the program have this name or this letter.  */
static size_t count_options (const hws_program_t *program, const hws_option_t *option)
{
    size_t count = 0;
    for (size_t i = 0; i < program->field_count + program->alias_count + HWS_SHARED_COUNT; i++) {
        const hws_option_t *const other =
            i < program->field_count ? &program->fields[i].option
            : i < program->field_count + program->alias_count
                ? &program->aliases[i - program->field_count].option
                : &hws_shared_options[i - program->field_count - program->alias_count].option;
        const bool same_name =
            option->name && other->name && strcmp (option->name, other->name) == 0;
        count += same_name || (option->letter && option->letter == other->letter) ? 1 : 0;
    }
    return count;
}

static void every_option_has_a_name_and_letter_of_its_own (void **state)
{
    (void) state;
    for (size_t i = 0; i < COUNT (s_programs); i++) {
        const hws_program_t *const program = s_programs[i];
        for (size_t j = 0; j < program->field_count; j++) {
            const hws_option_t *const option = &program->fields[j].option;
            assert_true (option->name == NULL || count_options (program, option) == 1);
            assert_true (option->name == NULL ||
                         (option->argument == NULL) == (program->fields[j].type == HWS_FIELD_FLAG));
        }
        for (size_t j = 0; j < program->alias_count; j++) {
            assert_true (count_options (program, &program->aliases[j].option) == 1);
            assert_non_null (hws_program_field (program, program->aliases[j].key));
        }
        for (size_t j = 0; j < HWS_SHARED_COUNT; j++) {
            assert_true (count_options (program, &hws_shared_options[j].option) == 1);
        }
    }
}

static void every_key_comes_once_and_groups_stand_together (void **state)
{
    (void) state;
    for (size_t i = 0; i < COUNT (s_programs); i++) {
        char *const reference = hws_program_reference (s_programs[i]);
        char *const schema = hws_program_schema (s_programs[i]);
        hws_conf_t *conf = new_conf (s_programs[i]);
        char *const printed = hws_conf_print (conf);

        /*  A key or group that comes twice is a duplicate member of these.  */
        assert_int_equal (load (conf, reference), 0);
        assert_int_equal (load (conf, printed), 0);
        assert_int_equal (load (conf, schema), HWS_EINVALID);
        assert_null (strstr (hws_conf_error (conf), "twice"));

        free (printed);
        hws_conf_destroy (&conf);
        free (schema);
        free (reference);
    }
}

static void level_words_stand_at_the_numbers_of_the_levels (void **state)
{
    (void) state;
    assert_string_equal (hws_level_words[HWS_LOG_ERROR], "error");
    assert_string_equal (hws_level_words[HWS_LOG_WARN], "warn");
    assert_string_equal (hws_level_words[HWS_LOG_INFO], "info");
    assert_string_equal (hws_level_words[HWS_LOG_DEBUG], "debug");
    assert_null (hws_level_words[HWS_LOG_DEBUG + 1]);
}

/*  ---- config/ ---- */

typedef char *print_t (const hws_program_t *program);

static const struct {
    const char *suffix;
    print_t *print;
} s_files[] = {{".json", hws_program_reference}, {".schema.json", hws_program_schema}};

static void write_path (char path[128], const hws_program_t *program, const char *suffix)
{
    snprintf (path, 128, "config/%s%s", program->name, suffix);
}

static void the_files_in_config_are_what_the_tables_print (void **state)
{
    (void) state;
    for (size_t i = 0; i < COUNT (s_programs) * COUNT (s_files); i++) {
        const hws_program_t *const program = s_programs[i / COUNT (s_files)];
        char path[128], found[65536];
        write_path (path, program, s_files[i % COUNT (s_files)].suffix);
        FILE *const file = fopen (path, "r");
        if (file == NULL) {
            fail_msg ("%s is missing; the tests run in the root, settings_test --write writes it",
                      path);
        }
        const size_t size = fread (found, 1, sizeof found - 1, file);
        found[size] = '\0';
        fclose (file);

        char *const printed = s_files[i % COUNT (s_files)].print (program);

        if (strcmp (found, printed) != 0) {
            fail_msg ("%s is out of date; settings_test --write writes it", path);
        }
        free (printed);
    }
}

static int write_files (void)
{
    for (size_t i = 0; i < COUNT (s_programs) * COUNT (s_files); i++) {
        const hws_program_t *const program = s_programs[i / COUNT (s_files)];
        char path[128];
        write_path (path, program, s_files[i % COUNT (s_files)].suffix);
        char *const text = s_files[i % COUNT (s_files)].print (program);
        FILE *const file = fopen (path, "w");
        if (text == NULL || file == NULL || fputs (text, file) == EOF || fclose (file) != 0) {
            perror (path);
            return 1;
        }
        free (text);
    }
    return 0;
}

static const cJSON *at (const cJSON *object, const char *key)
{
    const cJSON *const item = cJSON_GetObjectItemCaseSensitive (object, key);
    assert_non_null (item);
    return item;
}

static void the_schema_has_types_ranges_and_defaults (void **state)
{
    (void) state;
    char *const text = hws_program_schema (&hws_broker_program);
    cJSON *const schema = cJSON_Parse (text);
    assert_non_null (schema);

    const cJSON *const limits = at (at (schema, "properties"), "limits");
    const cJSON *const batch = at (at (limits, "properties"), "batch_bytes");
    const cJSON *const level =
        at (at (at (at (schema, "properties"), "log"), "properties"), "level");

    assert_true (cJSON_IsFalse (at (limits, "additionalProperties")));
    assert_string_equal (at (batch, "type")->valuestring, "integer");
    assert_true (at (batch, "minimum")->valueint == 4096);
    assert_true (at (batch, "maximum")->valueint == 1048576);
    assert_true (at (batch, "default")->valueint == 262144);
    assert_int_equal (cJSON_GetArraySize (at (level, "enum")), 4);
    cJSON_Delete (schema);
    free (text);
}

/*  ---- hawser-broker ---- */

static void the_broker_runs_with_no_configuration_at_all (void **state)
{
    (void) state;
    hws_conf_t *conf = new_conf (&hws_broker_program);

    const hws_broker_settings_t *const settings = hws_conf_values (conf);

    assert_int_equal (settings->listen.count, 1);
    assert_string_equal (settings->listen.text[0], "tcp://127.0.0.1:7733");
    assert_true (settings->anchors.heartbeat_interval_ms == 5000);
    assert_true (settings->anchors.reconnect_grace_ms == 10000);
    assert_int_equal (settings->anchors.unattached_timeout_ms.state, HWS_NULL);
    assert_true (settings->anchors.orphan_ttl_ms == 30000);
    assert_int_equal (settings->anchors.max_senders.state, HWS_NULL);
    assert_true (settings->anchors.buffer_bytes == 64 << 20);
    assert_true (settings->anchors.window_bytes_min == 16384);
    assert_true (settings->anchors.window_bytes_max == 4 << 20);
    assert_true (settings->anchors.window_records == 65536);
    assert_true (settings->limits.heartbeat_min_ms == 100);
    assert_true (settings->limits.peers == 10000);
    assert_true (settings->limits.anchors == 4096);
    assert_true (settings->limits.anchors_per_peer == 1024);
    assert_true (settings->limits.senders_per_anchor == 4096);
    assert_true (settings->limits.seats_per_peer == 4096);
    assert_true (settings->limits.exiting_seats == 4096);
    assert_true (settings->limits.waiting_attaches == 4096);
    assert_true (settings->limits.wait_ms == 86400000);
    assert_true (settings->limits.tombstones == 65536);
    assert_true (settings->limits.cancel_orphan_ttl_ms == 120000);
    assert_true (settings->limits.cancel_sweep_ms == 1000);
    assert_true (settings->limits.cancel_orphans == 65536);
    assert_true (settings->limits.cancel_orphans_per_peer == 1024);
    assert_true (settings->limits.record_bytes == 16 << 20);
    assert_true (settings->limits.batch_bytes == 262144);
    assert_int_equal (settings->limits.buffer_bytes.state, HWS_NULL);
    assert_true (settings->send_queue == 1024 && settings->drain_timeout_ms == 5000);
    assert_int_equal (settings->log_level, HWS_LOG_INFO);
    assert_false (settings->allow_insecure);
    hws_conf_destroy (&conf);
}

static void the_numbers_of_the_broker_fit_each_other (void **state)
{
    (void) state;
    const hws_program_t *const program = &hws_broker_program;
    assert_refused (program, "{\"anchors\": {\"window_bytes_min\": 8388608}}",
                    "f:1:34: anchors.window_bytes_min: must be at most anchors.window_bytes_max, "
                    "which is 4194304");
    assert_refused (program,
                    "{\"anchors\": {\"window_bytes_max\": 16384,\n\"window_bytes_min\": 16385}}",
                    "f:2:21: anchors.window_bytes_min: must be at most anchors.window_bytes_max, "
                    "which is 16384");
    assert_refused (program,
                    "{\"anchors\": {\"buffer_bytes\": 65536, \"window_bytes_min\": 32769}, "
                    "\"limits\": {\"record_bytes\": 32768}}",
                    "f:1:57: anchors.window_bytes_min: must be at most half of "
                    "anchors.buffer_bytes, which is 65536");
    assert_refused (program, "{\"anchors\": {\"buffer_bytes\": 1048576}}",
                    "f:1:30: anchors.buffer_bytes: half of it must be at least "
                    "limits.record_bytes, which is 16777216");
    assert_refused (program, "{\"limits\": {\"record_bytes\": 33554433}}",
                    "f:1:29: limits.record_bytes: must be at most half of anchors.buffer_bytes, "
                    "which is 67108864");
    assert_refused (program, "{\"limits\": {\"heartbeat_min_ms\": 5001}}",
                    "f:1:33: limits.heartbeat_min_ms: must be at most "
                    "anchors.heartbeat_interval_ms, which is 5000");
    assert_refused (program, "{\"anchors\": {\"max_senders\": 4097}}",
                    "f:1:29: anchors.max_senders: must be at most limits.senders_per_anchor, "
                    "which is 4096");
    assert_refused (program, "{\"limits\": {\"buffer_bytes\": 67108863}}",
                    "f:1:29: limits.buffer_bytes: must be at least anchors.buffer_bytes, which "
                    "is 67108864");
    assert_refused (program, "{\"limits\": {\"batch_bytes\": 4095}}",
                    "f:1:28: limits.batch_bytes: must be from 4096 to 1048576");
    assert_refused (program, "{\"anchors\": {\"window_bytes_min\": 16383}}",
                    "f:1:34: anchors.window_bytes_min: must be from 16384 to 1073741824");
}

static void numbers_of_the_broker_at_their_bounds_pass (void **state)
{
    (void) state;
    hws_conf_t *conf = new_conf (&hws_broker_program);

    const int rc =
        load (conf, "{\"anchors\": {\"buffer_bytes\": 65536, \"window_bytes_min\": 16384, "
                    "\"window_bytes_max\": 16384, \"max_senders\": 1}, \"limits\": "
                    "{\"record_bytes\": 32768, \"buffer_bytes\": 65536, "
                    "\"senders_per_anchor\": 1, \"heartbeat_min_ms\": 5000}}");

    assert_string_equal (hws_conf_error (conf), "");
    assert_int_equal (rc, 0);
    hws_conf_destroy (&conf);
}

/*  B79, as users write it.  */
static void a_misspelt_key_of_the_broker_is_not_passed_over (void **state)
{
    (void) state;
    assert_refused (&hws_broker_program, "{\"heartbeat_intervall\": 5}",
                    "f:1:2: heartbeat_intervall: unknown key; did you mean "
                    "\"anchors.heartbeat_interval_ms\"?");
}

static void a_suggestion_prefers_the_same_group (void **state)
{
    (void) state;
    assert_refused (&hws_broker_program, "{\"limits\": {\"buffer_byte\": 5}}",
                    "f:1:13: limits.buffer_byte: unknown key; did you mean "
                    "\"limits.buffer_bytes\"?");
}

static void plain_tcp_beyond_this_machine_must_be_meant (void **state)
{
    (void) state;
    static const char line[] = "f:1:12: listen: \"tcp://*:1\" is plain TCP beyond this machine; if "
                               "that is meant, set \"allow_insecure\": true in the file given "
                               "with -c";
    assert_refused (&hws_broker_program, "{\"listen\": [\"tcp://127.0.0.1:1\", \"tcp://*:1\"]}",
                    line);
    hws_conf_t *conf = new_conf (&hws_broker_program);

    const int rc = load (conf, "{\"listen\": [\"tcp://*:1\"], \"allow_insecure\": true}");

    assert_int_equal (rc, 0);
    hws_conf_destroy (&conf);
}

static void an_endpoint_may_not_come_twice_but_any_port_may (void **state)
{
    (void) state;
    assert_refused (&hws_broker_program, "{\"listen\": [\"ipc://a\", \"ipc://a\"]}",
                    "f:1:12: listen: \"ipc://a\" comes twice");
    assert_refused (&hws_broker_program,
                    "{\"listen\": [\"tcp://[::1]:1\", \"ipc://a\", \"tcp://[::1]:1\"]}",
                    "f:1:12: listen: \"tcp://[::1]:1\" comes twice");
    hws_conf_t *conf = new_conf (&hws_broker_program);

    const int rc = load (conf, "{\"listen\": [\"tcp://127.0.0.1:*\", \"tcp://127.0.0.1:0\"]}");

    assert_int_equal (rc, 0);
    hws_conf_destroy (&conf);
}

static void a_bad_endpoint_is_refused_with_its_place (void **state)
{
    (void) state;
    assert_refused (&hws_broker_program,
                    "{\"listen\": [\"tcp://127.0.0.1:1\",\n  \"tcp://127.0.0.1:99999\"]}",
                    "f:2:3: listen[1]: the port must be from 0 to 65535, or *");
}

/*  ---- hawser-send and hawser-recv ---- */

static void what_a_sender_is_told_reaches_the_library (void **state)
{
    (void) state;
    hws_conf_t *conf = new_conf (&hws_send_program);
    const hws_send_settings_t *const settings = hws_conf_values (conf);
    assert_int_equal (hws_send_client_options (settings).connect_ms, 5000);
    assert_int_equal (hws_send_client_options (settings).give_up_ms, 60000);
    assert_int_equal (hws_send_sender_options (settings).wait_ms, 0);

    assert_int_equal (set (conf, "wait_ms", "1.5"), 0);
    assert_int_equal (set (conf, "give_up_ms", "none"), 0);
    assert_int_equal (set (conf, "label", "l"), 0);

    assert_string_equal (hws_send_client_options (settings).endpoint, HWS_DEFAULT_ENDPOINT);
    assert_int_equal (hws_send_client_options (settings).connect_ms, 1500);
    assert_int_equal (hws_send_client_options (settings).give_up_ms, HWS_FOREVER);
    assert_int_equal (hws_send_sender_options (settings).wait_ms, 1500);
    assert_string_equal (hws_send_sender_options (settings).label, "l");
    assert_int_equal (set (conf, "wait_ms", "none"), 0);
    assert_int_equal (hws_send_client_options (settings).connect_ms, HWS_FOREVER);
    assert_int_equal (hws_send_sender_options (settings).wait_ms, HWS_FOREVER);
    hws_conf_destroy (&conf);
}

static void what_a_receiver_is_not_told_is_the_brokers_to_choose (void **state)
{
    (void) state;
    hws_conf_t *conf = new_conf (&hws_recv_program);

    const hws_receiver_options_t options = hws_recv_receiver_options (hws_conf_values (conf));

    assert_int_equal (options.heartbeat_interval_ms, HWS_DEFAULT);
    assert_int_equal (options.reconnect_grace_ms, HWS_DEFAULT);
    assert_int_equal (options.unattached_timeout_ms, HWS_DEFAULT);
    assert_int_equal (options.orphan_ttl_ms, HWS_DEFAULT);
    assert_int_equal (options.max_senders, HWS_DEFAULT);
    assert_int_equal (options.buffer_bytes, HWS_DEFAULT);
    assert_int_equal (options.wait_ms, HWS_FOREVER);
    assert_false (options.manual_ack);
    assert_false (options.exclusive);
    assert_false (options.dedicated);
    hws_conf_destroy (&conf);
}

static void what_a_receiver_is_told_reaches_the_library (void **state)
{
    (void) state;
    hws_conf_t *conf = new_conf (&hws_recv_program);
    assert_int_equal (set (conf, "heartbeat_interval_ms", "200ms"), 0);
    assert_int_equal (set (conf, "reconnect_grace_ms", "0"), 0);
    assert_int_equal (set (conf, "unattached_timeout_ms", "none"), 0);
    assert_int_equal (set (conf, "max_senders", "3"), 0);
    assert_int_equal (set (conf, "buffer_bytes", "1M"), 0);
    assert_int_equal (set (conf, "exclusive", "true"), 0);
    assert_int_equal (set (conf, "dedicated", "true"), 0);

    const hws_receiver_options_t options = hws_recv_receiver_options (hws_conf_values (conf));

    assert_int_equal (options.heartbeat_interval_ms, 200);
    assert_int_equal (options.reconnect_grace_ms, 0);
    assert_int_equal (options.unattached_timeout_ms, HWS_FOREVER);
    assert_int_equal (options.max_senders, 3);
    assert_int_equal (options.buffer_bytes, 1 << 20);
    assert_true (options.exclusive);
    assert_true (options.dedicated);
    hws_conf_destroy (&conf);
}

static void what_a_receiver_waits_for_is_the_broker_and_the_name (void **state)
{
    (void) state;
    hws_conf_t *conf = new_conf (&hws_recv_program);
    const hws_recv_settings_t *const settings = hws_conf_values (conf);
    assert_false (hws_recv_has_wait (settings));
    assert_int_equal (hws_recv_client_options (settings).connect_ms, 5000);

    assert_int_equal (set (conf, "wait_ms", "1.5"), 0);

    assert_true (hws_recv_has_wait (settings));
    assert_int_equal (hws_recv_wait_ms (settings), 1500);
    assert_int_equal (hws_recv_client_options (settings).connect_ms, 1500);
    assert_int_equal (set (conf, "wait_ms", "none"), 0);
    assert_int_equal (hws_recv_wait_ms (settings), HWS_FOREVER);
    assert_int_equal (hws_recv_client_options (settings).connect_ms, HWS_FOREVER);
    hws_conf_destroy (&conf);
}

static void progress_is_not_drawn_where_records_go (void **state)
{
    (void) state;
    hws_conf_t *conf = new_conf (&hws_recv_program);
    const hws_recv_settings_t *const settings = hws_conf_values (conf);
    assert_false (hws_recv_draws_progress (settings, false));

    assert_int_equal (set (conf, "progress", "true"), 0);

    assert_true (hws_recv_draws_progress (settings, false));
    assert_false (hws_recv_draws_progress (settings, true));
    assert_int_equal (set (conf, "output_dir", "d"), 0);
    assert_true (hws_recv_draws_progress (settings, true));
    hws_conf_destroy (&conf);
}

static void names_are_checked_before_anything_is_connected (void **state)
{
    (void) state;
    static const char handle[] = "0123456789abcdef0123456789ABCDEF";
    hws_conf_t *send = new_conf (&hws_send_program);
    hws_conf_t *recv = new_conf (&hws_recv_program);

    assert_int_equal (set (send, "anchor", handle), 0);
    assert_int_equal (set (recv, "anchor", handle), HWS_EINVALID);
    assert_string_equal (
        hws_conf_error (recv),
        "hawser-recv: --anchor: must not be 32 hexadecimal digits, which are a handle");
    assert_int_equal (set (send, "anchor", ""), HWS_EINVALID);
    assert_string_equal (hws_conf_error (send), "hawser-send: --anchor: must not be empty");
    assert_int_equal (set (send, "label", "a\tb"), HWS_EINVALID);
    assert_string_equal (hws_conf_error (send),
                         "hawser-send: --label: must not contain control characters");
    assert_int_equal (set (send, "label", "\xff"), HWS_EINVALID);
    assert_string_equal (hws_conf_error (send), "hawser-send: --label: must be valid UTF-8");
    assert_int_equal (set (send, "broker", "tcp://*:1"), HWS_EINVALID);
    assert_string_equal (hws_conf_error (send),
                         "hawser-send: --broker: \"*\" is no host to connect to");
    assert_int_equal (set (recv, "output_dir", ""), HWS_EINVALID);
    hws_conf_destroy (&recv);
    hws_conf_destroy (&send);
}

static void a_cancel_token_is_exact_and_not_0 (void **state)
{
    (void) state;
    hws_conf_t *send = new_conf (&hws_send_program);
    hws_conf_t *recv = new_conf (&hws_recv_program);
    assert_true (hws_send_sender_options (hws_conf_values (send)).cancel_token == 0);
    assert_true (hws_recv_receiver_options (hws_conf_values (recv)).cancel_token == 0);

    assert_int_equal (set (send, "cancel_token", "18446744073709551615"), 0);
    assert_int_equal (load (recv, "{\"cancel_token\": \"9007199254740993\"}"), 0);

    assert_true (hws_send_sender_options (hws_conf_values (send)).cancel_token == UINT64_MAX);
    assert_true (hws_recv_receiver_options (hws_conf_values (recv)).cancel_token ==
                 9007199254740993);
    static const char *const bad[] = {"0", "", "-1", "18446744073709551616", "0x10", "1 "};
    for (size_t i = 0; i < COUNT (bad); i++) {
        assert_int_equal (set (send, "cancel_token", bad[i]), HWS_EINVALID);
        assert_string_equal (
            hws_conf_error (send),
            "hawser-send: --cancel-token: must be a whole number from 1 to 18446744073709551615");
    }
    hws_conf_destroy (&recv);
    hws_conf_destroy (&send);
}

static void a_framing_is_refused_where_no_text_is_framed (void **state)
{
    (void) state;
    assert_refused (&hws_recv_program, "{\"format\": \"json\", \"framing\": \"nul\"}",
                    "f:1:31: framing: is for --format text; json needs none, whatever the senders "
                    "have");
    assert_refused (&hws_recv_program, "{\"framing\": \"length\", \"format\": \"raw\"}",
                    "f:1:13: framing: is for --format text; raw needs none, whatever the senders "
                    "have");
    hws_conf_t *conf = new_conf (&hws_recv_program);

    const int rc = load (conf, "{\"format\": \"json\", \"framing\": \"line\"}");

    assert_int_equal (rc, 0);
    hws_conf_destroy (&conf);
}

static void only_a_sender_must_be_told_its_anchor (void **state)
{
    (void) state;
    hws_conf_t *send = new_conf (&hws_send_program);
    hws_conf_t *recv = new_conf (&hws_recv_program);

    assert_int_equal (hws_conf_check_required (send), HWS_EINVALID);
    assert_string_equal (hws_conf_error (send), "hawser-send: --anchor must be given");
    assert_int_equal (hws_conf_check_required (recv), 0);
    hws_conf_destroy (&recv);
    hws_conf_destroy (&send);
}

/*  ---- hawser-ctl ---- */

/*  Adds operands up to a null.  */
static hws_conf_t *ctl_conf (const char *const *words)
{
    hws_conf_t *const conf = new_conf (&hws_ctl_program);
    const hws_field_t *const operands = &hws_ctl_program.fields[hws_ctl_program.field_count - 1];
    for (; *words; words++) {
        assert_int_equal (hws_conf_set (conf, operands, HWS_SOURCE_COMMAND_LINE, *words), 0);
    }
    return conf;
}

static void what_hawser_ctl_is_asked_for_is_read_from_its_operands (void **state)
{
    (void) state;
    hws_ctl_command_t command;
    uint64_t token;
    char why[256];
    hws_conf_t *make = ctl_conf ((const char *[]){"token", NULL});
    hws_conf_t *cancel = ctl_conf ((const char *[]){"cancel-token", "18446744073709551615", NULL});

    assert_int_equal (hws_ctl_read (hws_conf_values (make), &command, &token, why, sizeof why), 0);
    assert_int_equal (command, HWS_CTL_TOKEN);
    assert_int_equal (hws_ctl_read (hws_conf_values (cancel), &command, &token, why, sizeof why),
                      0);

    assert_int_equal (command, HWS_CTL_CANCEL_TOKEN);
    assert_true (token == UINT64_MAX);
    hws_conf_destroy (&make);
    hws_conf_destroy (&cancel);
}

static void what_hawser_ctl_is_asked_wrongly_is_named (void **state)
{
    (void) state;
    static const struct {
        const char *words[4];
        const char *why;
    } rows[] = {
        {{NULL}, "a command is missing; see --help"},
        {{"cancel", "7", NULL}, "unknown command \"cancel\"; see --help"},
        {{"token", "7", NULL}, "unexpected argument \"7\""},
        {{"cancel-token", NULL}, "cancel-token: TOKEN is missing"},
        {{"cancel-token", "7", "8", NULL}, "unexpected argument \"8\""},
        {{"cancel-token", "0", NULL},
         "cancel-token: TOKEN must be a whole number from 1 to 18446744073709551615"},
    };
    for (size_t i = 0; i < COUNT (rows); i++) {
        hws_ctl_command_t command;
        uint64_t token;
        char why[256] = "";
        hws_conf_t *conf = ctl_conf (rows[i].words);

        const int rc = hws_ctl_read (hws_conf_values (conf), &command, &token, why, sizeof why);

        assert_int_equal (rc, HWS_EINVALID);
        assert_string_equal (why, rows[i].why);
        hws_conf_destroy (&conf);
    }
}

static void what_hawser_ctl_is_told_reaches_the_library (void **state)
{
    (void) state;
    hws_conf_t *conf = new_conf (&hws_ctl_program);
    const hws_ctl_settings_t *const settings = hws_conf_values (conf);
    char text[HWS_TEXT_SIZE_MAX + 2];
    memset (text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    assert_int_equal (hws_ctl_client_options (settings).connect_ms, 5000);
    assert_false (hws_ctl_has_wait (settings));

    assert_int_equal (set (conf, "wait_ms", "1.5"), 0);
    assert_int_equal (hws_ctl_client_options (settings).connect_ms, 1500);
    assert_true (hws_ctl_has_wait (settings));
    assert_int_equal (set (conf, "wait_ms", "none"), 0);
    assert_int_equal (hws_ctl_client_options (settings).connect_ms, HWS_FOREVER);
    assert_true (hws_ctl_has_wait (settings));

    assert_int_equal (set (conf, "reason", text), HWS_EINVALID);
    assert_string_equal (hws_conf_error (conf),
                         "hawser-ctl: --reason: must have at most 1024 bytes");
    assert_int_equal (set (conf, "reason", "\xff"), HWS_EINVALID);
    assert_string_equal (hws_conf_error (conf), "hawser-ctl: --reason: must be valid UTF-8");
    text[HWS_TEXT_SIZE_MAX] = '\0';
    assert_int_equal (set (conf, "reason", text), 0);
    hws_conf_destroy (&conf);
}

int main (int argc, char **argv)
{
    if (argc == 2 && strcmp (argv[1], "--write") == 0) {
        return write_files ();
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (every_table_has_defaults_that_pass_its_rules),
        cmocka_unit_test (every_option_has_a_name_and_letter_of_its_own),
        cmocka_unit_test (every_key_comes_once_and_groups_stand_together),
        cmocka_unit_test (level_words_stand_at_the_numbers_of_the_levels),
        cmocka_unit_test (the_files_in_config_are_what_the_tables_print),
        cmocka_unit_test (the_schema_has_types_ranges_and_defaults),
        cmocka_unit_test (the_broker_runs_with_no_configuration_at_all),
        cmocka_unit_test (the_numbers_of_the_broker_fit_each_other),
        cmocka_unit_test (numbers_of_the_broker_at_their_bounds_pass),
        cmocka_unit_test (a_misspelt_key_of_the_broker_is_not_passed_over),
        cmocka_unit_test (a_suggestion_prefers_the_same_group),
        cmocka_unit_test (plain_tcp_beyond_this_machine_must_be_meant),
        cmocka_unit_test (an_endpoint_may_not_come_twice_but_any_port_may),
        cmocka_unit_test (a_bad_endpoint_is_refused_with_its_place),
        cmocka_unit_test (what_a_sender_is_told_reaches_the_library),
        cmocka_unit_test (what_a_receiver_is_not_told_is_the_brokers_to_choose),
        cmocka_unit_test (what_a_receiver_is_told_reaches_the_library),
        cmocka_unit_test (what_a_receiver_waits_for_is_the_broker_and_the_name),
        cmocka_unit_test (progress_is_not_drawn_where_records_go),
        cmocka_unit_test (names_are_checked_before_anything_is_connected),
        cmocka_unit_test (a_cancel_token_is_exact_and_not_0),
        cmocka_unit_test (what_hawser_ctl_is_asked_for_is_read_from_its_operands),
        cmocka_unit_test (what_hawser_ctl_is_asked_wrongly_is_named),
        cmocka_unit_test (what_hawser_ctl_is_told_reaches_the_library),
        cmocka_unit_test (a_framing_is_refused_where_no_text_is_framed),
        cmocka_unit_test (only_a_sender_must_be_told_its_anchor),
    };
    return cmocka_run_group_tests_name ("settings", tests, NULL, NULL);
}
