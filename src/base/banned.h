/*
 * Functions that must not be used in this tree: using one is a compile error. The build includes
 * this header before everything else (-include).
 */
#ifndef HD_BASE_BANNED_H
#define HD_BASE_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HD_BANNED(function) do_not_use_##function

#undef strcpy
#define strcpy(...) HD_BANNED(strcpy)
#undef strcat
#define strcat(...) HD_BANNED(strcat)
#undef strncpy
#define strncpy(...) HD_BANNED(strncpy)
#undef sprintf
#define sprintf(...) HD_BANNED(sprintf)
#undef vsprintf
#define vsprintf(...) HD_BANNED(vsprintf)
#undef strtok
#define strtok(...) HD_BANNED(strtok)
#undef gets
#define gets(...) HD_BANNED(gets)
#undef atoi
#define atoi(...) HD_BANNED(atoi)
#undef localtime
#define localtime(...) HD_BANNED(localtime)
#undef gmtime
#define gmtime(...) HD_BANNED(gmtime)

#endif
