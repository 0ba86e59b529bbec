/* The two halves of `heddle doctor`. */
#ifndef HD_CLI_DOCTOR_H
#define HD_CLI_DOCTOR_H

/* doctor_secrets.c: finds secrets in a database; returns HD_EXIT_*. */
int hd_doctor_secrets(const char *url);

#endif
