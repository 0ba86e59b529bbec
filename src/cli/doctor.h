/* The two halves of `heddle doctor`. */
#ifndef HD_CLI_DOCTOR_H
#define HD_CLI_DOCTOR_H

/* doctor_secrets.c: what a database holds that it should not; one of HD_EXIT_*. */
int hd_doctor_secrets(const char *url);

#endif
