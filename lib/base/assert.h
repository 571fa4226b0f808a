/*  The assertion for our own bugs, always compiled in.
 *
 *  It guards what only a mistake in this code can break: a null object, an
 *  impossible state. What a peer, a user or the system does never reaches it.
 */
#ifndef HWS_ASSERT_H
#define HWS_ASSERT_H

/*  Prints the condition with its place and aborts.  */
_Noreturn void hws_assert_failed (const char *condition, const char *file, int line);

#define hws_assert(condition)                                                                      \
    ((condition) ? (void) 0 : hws_assert_failed (#condition, __FILE__, __LINE__))

#endif
