/*  What the process keeps of the memory that it frees.  */
#ifndef HWS_HEAP_IO_H
#define HWS_HEAP_IO_H

/*  glibc gives freed memory back to the system and faults it in anew, page by page, as soon as
 *  the free end of a heap is larger than twice the largest block that the process has ever
 *  freed: for batches of 256 KiB that come and go, again and again. This frees a block of
 *  4 MiB, once in a process, so that each heap keeps up to 8 MiB. No page of it is touched, and
 *  what the program has set itself (mallopt, environment) stays as it is.  */
void hws_heap_keep (void);

#endif
