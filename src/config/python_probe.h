/* Checks whether a Python can run graphs. */
#ifndef HD_CONFIG_PYTHON_PROBE_H
#define HD_CONFIG_PYTHON_PROBE_H

/* Exit statuses of the probe, distinct from those of Python itself. */
enum hd_probe {
    HD_PROBE_GOOD = 80,
    HD_PROBE_NO_PACKAGE,
    HD_PROBE_NO_RUNTIME,
    HD_PROBE_NO_LANGGRAPH,
    HD_PROBE_TOO_OLD,
    HD_PROBE_OLD_LANGGRAPH,
    HD_PROBE_BROKEN
};

/* Starts it and waits, a minute at most: only before there is a server. */
enum hd_probe hd_probe_python(const char *python);

#endif
