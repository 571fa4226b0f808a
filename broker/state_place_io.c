#include "broker/state_place_io.h"

#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/*  An absolute path of the environment, as the rules of XDG want it, or null.  */
static const char *path_of (const char *variable)
{
    const char *const text = getenv (variable);
    return text && *text == '/' ? text : NULL;
}

/*  The default directory into `path`, from malloc; null when there is none.  */
static int find_default (char **path)
{
    const char *const from_systemd = path_of ("STATE_DIRECTORY");
    const char *const from_xdg = path_of ("XDG_STATE_HOME");
    const char *const home = path_of ("HOME");
    int size = 0;
    *path = NULL;
    if (from_systemd) {
        /*  Of several, between colons, the first.  */
        size = asprintf (path, "%.*s", (int) strcspn (from_systemd, ":"), from_systemd);
    } else if (from_xdg) {
        size = asprintf (path, "%s/hawser", from_xdg);
    } else if (home) {
        size = asprintf (path, "%s/.local/state/hawser", home);
    }
    if (size < 0) {
        *path = NULL;
        return HWS_ENO_MEMORY;
    }
    return 0;
}

/*  Makes the directories above a path as far as that works; who makes the last one says what is
 *  wrong.  */
static void make_above (char *path)
{
    for (char *slash = strchr (path + 1, '/'); slash; slash = strchr (slash + 1, '/')) {
        *slash = '\0';
        mkdir (path, 0700);
        *slash = '/';
    }
}

static int take_default (hws_state_t *self, hws_state_fault_t fault)
{
    char *path;
    int rc = find_default (&path);
    if (rc != 0) {
        snprintf (fault, sizeof (hws_state_fault_t), "%s", hws_strerror (rc));
        return rc;
    }
    if (path) {
        make_above (path);
        rc = hws_state_open (self, path, fault);
    } else {
        snprintf (fault, sizeof (hws_state_fault_t), "there is no HOME to have one in");
        rc = HWS_ENOT_FOUND;
    }
    free (path);
    return rc == HWS_EBUSY || rc == HWS_ENOT_FOUND ? 0 : rc;
}

int hws_state_take (hws_state_t *self, const char *wanted, hws_state_fault_t fault)
{
    *self = (hws_state_t) HWS_STATE_NONE;
    fault[0] = '\0';
    if (!wanted) {
        return 0;
    }
    return strcmp (wanted, HWS_STATE_AUTO) == 0 ? take_default (self, fault)
                                                : hws_state_open (self, wanted, fault);
}
