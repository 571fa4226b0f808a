/*  What the files of a resume file share with each other; nobody else includes this.
 */
#ifndef HWS_RESUME_PART_IO_H
#define HWS_RESUME_PART_IO_H

#include "receiver/resume_io.h"

/*  A sender and the place of its line.  */
typedef struct {
    hws_resume_sender_t sender;
    hws_map_node_t node;   /* in `senders`, by sender.sender_id */
    hws_link_t dirty_link; /* in `dirty` while its line is behind it */
    hws_link_t ended_link; /* in `ended` or `doubted`, in their order */
    size_t line;           /* from 1 on; the first line of the file is the anchor's */
} hws_resume_entry_t;

struct hws_resume {
    char *path;      /* as the user named it */
    char *temporary; /* that of a file which is being made, or null */
    int fd;          /* -1: none */
    bool is_there;   /* it was there, so that an anchor is to be continued */
    hws_resume_anchor_t anchor;
    char handle[HWS_HANDLE_TEXT_SIZE];     /* the anchor's, as texts */
    char owner_token[2 * HWS_ID_SIZE + 1]; /* the same */
    uint64_t records, ended_count, bad;    /* of all that was read */
    hws_map_t senders;
    hws_resume_entry_t *last; /* the sender that was found last, or null */
    hws_list_t dirty;         /* those whose lines have to be written */
    hws_list_t ended;         /* those that have ended, the oldest first */
    uint64_t last_order;      /* of the ending that was noted last */
    hws_list_t doubted;       /* those whose ending may be only ours */
    size_t line_count;        /* lines of the file */
    char error[512];
};

/*  Keeps what failed, "FILE: text"; the second form what errno says. Return the code.  */
int hws_resume_fail (hws_resume_t *self, int code, const char *text);
int hws_resume_fail_system (hws_resume_t *self);
int hws_resume_fail_memory (hws_resume_t *self);

/*  Writes the anchor's line. Returns 0 or HWS_ESYSTEM.  */
int hws_resume_write_anchor (hws_resume_t *self);

/*  Knows a sender that has a line; null without memory.  */
hws_resume_entry_t *hws_resume_add_entry (hws_resume_t *self, const hws_resume_sender_t *sender,
                                          size_t line);

/*  Knows no sender, and no line.  */
void hws_resume_forget_all (hws_resume_t *self);

#endif
