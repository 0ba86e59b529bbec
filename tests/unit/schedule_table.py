#!/usr/bin/env python3
"""Makes tests/data/schedules.tsv and tests/data/zones.tsv, which the unit tests read.

    pip install croniter
    python3 tests/unit/schedule_table.py          # writes both and compares with croniter

The firings are found in another way than in src/schedule/cron_schedule.c: every local time that
matches is turned into UTC by Python's zoneinfo. Where the clocks do not change they
must also be those of croniter. All dates are past, so that new rules of a
government do not change them.
"""

import pathlib
import random
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

from croniter import croniter

DATA = pathlib.Path(__file__).resolve().parent.parent / "data"
ZONES = [
    "UTC",
    "Europe/Berlin",
    "Europe/London",
    "Europe/Dublin",
    "America/New_York",
    "America/Los_Angeles",
    "America/Sao_Paulo",
    "America/St_Johns",
    "America/Santiago",
    "America/Havana",
    "Africa/Cairo",
    "Africa/Casablanca",
    "Asia/Kolkata",
    "Asia/Kathmandu",
    "Asia/Tehran",
    "Asia/Tokyo",
    "Asia/Gaza",
    "Australia/Sydney",
    "Australia/Lord_Howe",
    "Pacific/Auckland",
    "Pacific/Chatham",
    "Pacific/Apia",
    "Antarctica/Troll",
    "Asia/Amman",
]
MINUTES = ["0", "30", "*/15", "5,35", "*", "7-50/9", "59", "15,45", "*/20", "50-10/5"]
HOURS = ["*", "*", "*/2", "0", "1", "2", "3", "2,14", "1-3", "0-23/3", "22-2", "23", "*/1", "9-17"]
DAYS = ["*", "*", "*", "*", "1", "15", "31", "L", "*/10", "1-7", "29", "?"]
MONTHS = ["*", "*", "*", "*", "3", "MAR,oct", "11", "APR-SEP", "2", "NOV-feb", "*/5"]
WEEKDAYS = ["*", "*", "*", "*", "0", "7", "SUN", "MON-FRI", "6,7", "1", "sat-sun", "5-1", "*/2"]


def values(field, low, high, words):
    """The set of a field's values, read without any of croniter's code."""
    names = {w: low + i for i, w in enumerate(words.split())}
    count = 7 if high == 7 else high - low + 1
    result = set()
    for part in field.upper().replace("?", "*").split(","):
        span, _, step = part.partition("/")
        if span == "*":
            first, last = low, low + count - 1
        else:
            first, dash, last = span.partition("-")
            first = names.get(first, first)
            last = names.get(last, last) if dash else (low + count - 1 if step else first)
            first, last = int(first), int(last)
        if last < first:
            last += count
        result |= {low + (v - low) % count for v in range(first, last + 1, int(step or 1))}
    return result


def day_matcher(expression):
    _, _, day, month, weekday = expression.split()
    months = values(month, 1, 12, "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC")
    days = set() if day == "L" else values(day, 1, 31, "")
    weekdays = values(weekday, 0, 7, "SUN MON TUE WED THU FRI SAT")
    any_day, any_weekday = day in "*?", weekday == "*"

    def matches(date):
        is_day = date.day in days or (day == "L" and (date + timedelta(1)).day == 1)
        is_weekday = (date.weekday() + 1) % 7 in weekdays
        if date.month not in months:
            return False
        if any_day or any_weekday:
            return (any_day or is_day) and (any_weekday or is_weekday)
        return is_day or is_weekday

    return matches


def jump(low, high, zone):
    """The moment between two instants at which the offset changes."""
    offset = low.astimezone(zone).utcoffset()
    while high - low > timedelta(seconds=1):
        middle = low + timedelta(seconds=(high - low).total_seconds() // 2)
        if middle.astimezone(zone).utcoffset() == offset:
            low = middle
        else:
            high = middle
    return high


def instants(local, zone, names_hours):
    first = local.replace(tzinfo=zone, fold=0).astimezone(timezone.utc)
    second = local.replace(tzinfo=zone, fold=1).astimezone(timezone.utc)
    if first.astimezone(zone).replace(tzinfo=None) != local:
        return [jump(second, first, zone)] if names_hours else []
    return [first] if names_hours or first == second else [first, second]


def next_firing(expression, zone, after):
    minutes = sorted(values(expression.split()[0], 0, 59, ""))
    hours = sorted(values(expression.split()[1], 0, 23, ""))
    matches = day_matcher(expression)
    names_hours = len(hours) < 24
    date = after.astimezone(zone).date() - timedelta(2)
    for _ in range(366 * 9):
        if matches(date):
            found = [
                at
                for hour in hours
                for minute in minutes
                for at in instants(datetime(date.year, date.month, date.day, hour, minute), zone, names_hours)
                if at > after
            ]
            # Firings of one day may be out of order only among themselves.
            if found:
                return min(found)
        date += timedelta(1)
    raise SystemExit(f"{expression} never fires")


def is_even(zone, low, high):
    steps = int((high - low) / timedelta(hours=12)) + 2
    offsets = {(low - timedelta(1) + timedelta(hours=12) * i).astimezone(zone).utcoffset() for i in range(steps + 3)}
    return len(offsets) == 1


def changes(zone):
    """The offset changes of a zone since 2000."""
    at, end, step = (
        datetime(2000, 1, 1, tzinfo=timezone.utc),
        datetime(2025, 1, 1, tzinfo=timezone.utc),
        timedelta(1),
    )
    found = []
    while at < end:
        if at.astimezone(zone).utcoffset() != (at + step).astimezone(zone).utcoffset():
            found.append(jump(at, at + step, zone))
        at += step
    return found


def schedules(random_):
    compared = 0
    for name in ZONES:
        zone = ZoneInfo(name)
        around = changes(zone) or [datetime(2012, 2, 28, tzinfo=timezone.utc)]
        for number in range(40):
            expression = " ".join(random_.choice(field) for field in (MINUTES, HOURS, DAYS, MONTHS, WEEKDAYS))
            if number % 2:
                expression = " ".join(expression.split()[:2] + ["*", "*", "*"])
                after = random_.choice(around) + timedelta(minutes=random_.randrange(-300, 200))
            else:
                after = datetime(2000, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=random_.randrange(788_000_000))
            if expression.split()[2] == "31" and expression.split()[3] in ("2", "11"):
                continue
            found = next_firing(expression, zone, after)
            if is_even(zone, after, found) and "*/1" not in expression:
                other = croniter(expression.replace("?", "*"), after.astimezone(zone)).get_next(datetime)
                if other != found:
                    raise SystemExit(f"{expression} in {name} after {after}: {found}, croniter {other}")
                compared += 1
            yield f"{expression}\t{name}\t{int(after.timestamp())}\t{int(found.timestamp())}"
    print(f"{compared} as croniter has them")


def zones(random_):
    for name in ZONES:
        zone = ZoneInfo(name)
        moments = [at + timedelta(seconds=s) for at in changes(zone)[-8:] for s in (-1, 0)]
        start = datetime(1975, 1, 1, tzinfo=timezone.utc)
        moments += [start + timedelta(seconds=random_.randrange(1_577_000_000)) for _ in range(20)]
        for at in moments:
            offset = int(at.astimezone(zone).utcoffset().total_seconds())
            yield f"{name}\t{int(at.timestamp())}\t{offset}"


def write(name, head, lines):
    lines = list(lines)
    (DATA / name).write_text(head + "\n" + "\n".join(lines) + "\n")
    print(f"{name}: {len(lines)} lines")


if __name__ == "__main__":
    write("schedules.tsv", "# schedule, zone, after, next (seconds UTC)", schedules(random.Random(1)))
    write("zones.tsv", "# zone, seconds UTC, offset", zones(random.Random(2)))
