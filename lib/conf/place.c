#include "conf/place.h"

#include "conf/conf.h"

#include <stdio.h>

/*  An array or object that is open at the place in question.  */
typedef struct {
    bool is_object;
    bool wants_key;  /* the next string is a key, not a value */
    hws_bytes_t key; /* OBJECT: the present one, escapes as written; null before it */
    size_t index;    /* ARRAY: of the present element */
} frame_t;

typedef struct {
    frame_t frames[HWS_CONF_DEPTH_MAX];
    size_t depth;
} walk_t;

/*  The offset behind the string that begins at `at`, or beyond the size when it does
 *  not end.  */
static size_t after_string (hws_bytes_t json, size_t at)
{
    for (at++; at < json.size; at++) {
        if (json.data[at] == '\\') {
            at++;
        } else if (json.data[at] == '"') {
            return at + 1;
        }
    }
    return json.size + 1;
}

static void open_frame (walk_t *walk, bool is_object)
{
    if (walk->depth < HWS_CONF_DEPTH_MAX) {
        walk->frames[walk->depth++] = (frame_t){.is_object = is_object, .wants_key = is_object};
    }
}

static void pass_comma (frame_t *frame)
{
    if (frame->is_object) {
        frame->key = hws_bytes (NULL, 0);
        frame->wants_key = true;
    } else {
        frame->index++;
    }
}

/*  Passes one byte outside of strings.  */
static void pass (walk_t *walk, uint8_t byte)
{
    if (byte == '{' || byte == '[') {
        open_frame (walk, byte == '{');
    } else if (walk->depth > 0 && (byte == '}' || byte == ']')) {
        walk->depth--;
    } else if (walk->depth > 0 && byte == ',') {
        pass_comma (&walk->frames[walk->depth - 1]);
    }
}

/*  Passes the string at `at` and returns the offset behind it. One that is broken
 *  at `offset` is no key.  */
static size_t pass_string (walk_t *walk, hws_bytes_t json, size_t at, size_t offset)
{
    const size_t end = after_string (json, at);
    frame_t *const frame = walk->depth > 0 ? &walk->frames[walk->depth - 1] : NULL;
    const bool is_broken = at < offset && offset < end;
    if (frame && frame->wants_key && !is_broken && end - at >= 2) {
        frame->key = hws_bytes (json.data + at + 1, end - at - 2);
        frame->wants_key = false;
    }
    return end;
}

static void write_path (const walk_t *walk, char *path, size_t size)
{
    size_t used = 0;
    path[0] = '\0';
    for (size_t i = 0; i < walk->depth && used < size; i++) {
        const frame_t *const frame = &walk->frames[i];
        int more = 0;
        if (!frame->is_object) {
            more = snprintf (path + used, size - used, "[%zu]", frame->index);
        } else if (frame->key.data) {
            const int key_size = (int) (frame->key.size < size ? frame->key.size : size);
            more = snprintf (path + used, size - used, "%s%.*s", used > 0 ? "." : "", key_size,
                             (const char *) frame->key.data);
        }
        used += more > 0 ? (size_t) more : 0;
    }
}

void hws_place_find (hws_bytes_t json, size_t offset, hws_place_t *place)
{
    walk_t walk = {.depth = 0};
    size_t at = 0;
    while (at < offset) {
        if (json.data[at] == '"') {
            at = pass_string (&walk, json, at, offset);
        } else {
            pass (&walk, json.data[at++]);
        }
    }
    if (at == offset && at < json.size && json.data[at] == '"') {
        pass_string (&walk, json, at, offset);
    }
    write_path (&walk, place->path, sizeof place->path);

    place->line = 1;
    place->column = 1;
    for (size_t i = 0; i < offset; i++) {
        if (json.data[i] == '\n') {
            place->line++;
            place->column = 1;
        } else if ((json.data[i] & 0xc0) != 0x80) {
            place->column++;
        }
    }
}

size_t hws_place_next (hws_bytes_t json, size_t at)
{
    while (at < json.size && strchr (" \t\r\n,:", json.data[at])) {
        at++;
    }
    return at;
}

size_t hws_place_after (hws_bytes_t json, size_t at)
{
    size_t depth = 0;
    do {
        const uint8_t byte = json.data[at];
        if (byte == '"') {
            at = after_string (json, at);
        } else if (byte == '{' || byte == '[') {
            depth++;
            at++;
        } else if (byte == '}' || byte == ']') {
            depth--;
            at++;
        } else {
            at += hws_place_number (json, at).size;
        }
        if (depth > 0) {
            at = hws_place_next (json, at);
        }
    } while (depth > 0);
    return at;
}

hws_bytes_t hws_place_number (hws_bytes_t json, size_t at)
{
    size_t end = at;
    while (end < json.size && !strchr (" \t\r\n,:{}[]\"", json.data[end])) {
        end++;
    }
    return hws_bytes (json.data + at, end - at);
}
