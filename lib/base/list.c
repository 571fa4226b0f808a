#include "base/list.h"

#include "base/assert.h"

void hws_list_append (hws_list_t *self, hws_link_t *link)
{
    hws_assert (link->list == NULL);

    *link = (hws_link_t){.prev = self->tail, .list = self};
    if (self->tail) {
        self->tail->next = link;
    } else {
        self->head = link;
    }
    self->tail = link;
    self->count++;
}

void hws_list_prepend (hws_list_t *self, hws_link_t *link)
{
    hws_assert (link->list == NULL);

    *link = (hws_link_t){.next = self->head, .list = self};
    if (self->head) {
        self->head->prev = link;
    } else {
        self->tail = link;
    }
    self->head = link;
    self->count++;
}

void hws_list_remove (hws_link_t *link)
{
    hws_list_t *const self = link->list;
    if (self == NULL) {
        return;
    }
    if (link->prev) {
        link->prev->next = link->next;
    } else {
        self->head = link->next;
    }
    if (link->next) {
        link->next->prev = link->prev;
    } else {
        self->tail = link->prev;
    }
    self->count--;
    *link = (hws_link_t){0};
}

hws_link_t *hws_list_pop (hws_list_t *self)
{
    hws_link_t *const link = self->head;
    if (link) {
        hws_list_remove (link);
    }
    return link;
}
