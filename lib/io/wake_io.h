/*  A descriptor that one side makes readable and another polls.  */
#ifndef HWS_WAKE_IO_H
#define HWS_WAKE_IO_H

/*  Returns a descriptor, to be closed with close (), or HWS_ESYSTEM.  */
int hws_wake_new (void);

/*  Makes it readable, if it is not yet. Never waits.  */
void hws_wake_set (int descriptor);

/*  Makes it unreadable, if it is not yet. Never waits.  */
void hws_wake_clear (int descriptor);

#endif
