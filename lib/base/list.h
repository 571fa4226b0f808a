/*  A doubly linked list whose links live in the objects.
 *
 *  Adding and removing never fail and never allocate. An object is in at most
 *  one list per link; a link that is in no list has a null `list`. Deleting the
 *  object at hand while walking with hws_list_next is allowed when the next one
 *  was taken first.
 */
#ifndef HWS_LIST_H
#define HWS_LIST_H

#include <stdbool.h>
#include <stddef.h>

typedef struct hws_list hws_list_t;
typedef struct hws_link hws_link_t;

struct hws_link {
    hws_link_t *next; /* towards the tail, null at the tail */
    hws_link_t *prev; /* towards the head, null at the head */
    hws_list_t *list; /* the list this link is in, or null */
};

struct hws_list {
    hws_link_t *head;
    hws_link_t *tail;
    size_t count;
};

/*  The object of type `type` whose member `member` is `pointer`.  */
#define hws_container_of(pointer, type, member)                                                    \
    ((type *) (void *) ((char *) (pointer) -offsetof (type, member)))

/*  Puts the link last. It must be in no list.  */
void hws_list_append (hws_list_t *self, hws_link_t *link);

/*  Puts the link first. It must be in no list.  */
void hws_list_prepend (hws_list_t *self, hws_link_t *link);

/*  Takes the link out of its list; harmless when it is in none.  */
void hws_list_remove (hws_link_t *link);

/*  Takes the first link out and returns it, or null.  */
hws_link_t *hws_list_pop (hws_list_t *self);

static inline bool hws_link_is_in_list (const hws_link_t *link)
{
    return link->list != NULL;
}

#endif
