#include "conf/near.h"

#include <string.h>

#define WORD_SIZE_MAX 64

static size_t min (size_t a, size_t b)
{
    return a < b ? a : b;
}

/*  Damerau's distance, restricted to swaps of neighbours (1964).  */
size_t hws_near_distance (const char *a, const char *b)
{
    const size_t rows = strlen (a), columns = strlen (b);
    if (rows > WORD_SIZE_MAX || columns > WORD_SIZE_MAX) {
        return HWS_NEAR_FAR;
    }
    size_t distance[WORD_SIZE_MAX + 1][WORD_SIZE_MAX + 1];
    for (size_t j = 0; j <= columns; j++) {
        distance[0][j] = j;
    }
    for (size_t i = 1; i <= rows; i++) {
        distance[i][0] = i;
        for (size_t j = 1; j <= columns; j++) {
            const size_t changed = distance[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            distance[i][j] = min (changed, 1 + min (distance[i - 1][j], distance[i][j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                distance[i][j] = min (distance[i][j], 1 + distance[i - 2][j - 2]);
            }
        }
    }
    const size_t longer = rows > columns ? rows : columns;
    return distance[rows][columns] > longer / 3 ? HWS_NEAR_FAR : distance[rows][columns];
}
