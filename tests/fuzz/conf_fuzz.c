/*  Any bytes as a configuration file, and as an endpoint: no crash, and a refusal is
 *  one line that names the file.
 */
#include "broker/settings.h"
#include "conf/endpoint.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size);

static void check (bool is_right)
{
    if (!is_right) {
        abort ();
    }
}

/*  What was taken must be taken again as it is printed.  */
static void check_printed (const hws_conf_t *conf)
{
    char *const printed = hws_conf_print (conf);
    hws_conf_t *again;
    if (printed && hws_conf_new (&again, &hws_broker_program) == 0) {
        check (hws_conf_load (again, "again", hws_bytes_of_text (printed)) == 0);
        hws_conf_destroy (&again);
    }
    free (printed);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    hws_conf_t *conf;
    if (hws_conf_new (&conf, &hws_broker_program) != 0) {
        return 0;
    }
    const int rc = hws_conf_load (conf, "file", hws_bytes (data, size));
    if (rc == HWS_EINVALID) {
        const char *const line = hws_conf_error (conf);
        check (strncmp (line, "file:", 5) == 0 && strchr (line, '\n') == NULL);
    } else if (rc == 0) {
        check_printed (conf);
        hws_conf_check (conf);
    }
    hws_conf_destroy (&conf);

    hws_endpoint_parts_t parts;
    char why[64] = "";
    const int refused =
        hws_endpoint_parse (hws_bytes (data, size), HWS_ENDPOINT_LISTEN, &parts, why, sizeof why);
    check ((refused != 0) == (why[0] != '\0'));
    return 0;
}
